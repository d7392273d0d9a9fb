"""Trees made anew from folded arrays, node by node."""


def unfold_tree(feature, pairs, thresholds, gains, leaf_rows, leaf_totals):
    """Return the nodes of one tree as dicts, given lists by node, by cut and by leaf."""
    pairs, thresholds, gains = iter(pairs), iter(thresholds), iter(gains)
    leaf_rows, leaf_totals = iter(leaf_rows), iter(leaf_totals)
    nodes = []
    for number in feature:
        if number == -1:
            node = {"left_child": -1, "threshold": 0.0, "gain": 0.0, "n_samples": next(leaf_rows)}
            nodes.append({**node, "totals": list(next(leaf_totals))})
        else:
            nodes.append({"left_child": 2 * next(pairs) + 1, "threshold": next(thresholds), "gain": next(gains)})

    def fill(node):
        if node["left_child"] >= 0:
            children = nodes[node["left_child"]], nodes[node["left_child"] + 1]
            for child in children:
                fill(child)
            node["n_samples"] = children[0]["n_samples"] + children[1]["n_samples"]
            node["totals"] = [one + other for one, other in zip(children[0]["totals"], children[1]["totals"])]
        node["weight"] = float(sum(node["totals"]))
        node["value"] = [total / node["weight"] for total in node["totals"]]

    fill(nodes[0])
    return nodes

"""Hierarchical shrinkage by its definition, node by node from the root."""


def shrink(left_child, weight, value, amount) -> list[list[float]]:
    """Return h_root = p_root, h_t = h_parent + (p_t - p_parent) / (1 + amount / n_parent) for all nodes."""
    shrunk = {0: list(value[0])}
    for parent, left in enumerate(left_child):  # parents come before their children
        keep = 1 / (1 + amount / weight[parent])
        for child in (left, left + 1) if left >= 0 else ():
            shrunk[child] = [h + (p - q) * keep for h, p, q in zip(shrunk[parent], value[child], value[parent])]
    return [shrunk[node] for node in range(len(left_child))]

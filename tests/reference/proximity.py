"""Proximities by loops over pairs of rows and trees."""


def shared_leaves(places, other_places) -> list[list[float]]:
    """Return the share of trees in which two rows have the same leaf; places[i][t] is the leaf of row i in tree t."""
    return [
        [sum(a == b for a, b in zip(one, other)) / len(one) for other in other_places]
        for one in places
    ]  # fmt: skip


def out_of_bag(places, counts, weights) -> list[list[float]]:
    """Return definition 1 of Rhodes, Cutler and Moon, draws by weight; counts[i][t] is how often tree t drew row i."""
    n_rows, n_trees = len(places), len(places[0])
    matrix = []
    for i in range(n_rows):
        unseen = [t for t in range(n_trees) if counts[i][t] == 0]
        line = []
        for j in range(n_rows):
            total = 0.0
            for t in unseen:
                leaf = {k: counts[k][t] * weights[k] for k in range(n_rows) if places[k][t] == places[i][t]}
                total += leaf.get(j, 0.0) / sum(leaf.values())
            line.append(total / len(unseen) if unseen else float("nan"))
        matrix.append(line)
    return matrix

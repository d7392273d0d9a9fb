"""Hierarchical shrinkage by its definition, node by node from the root."""

from tests.reference.paths import path


def shrink(left_child, weight, value, amount) -> list[list[float]]:
    """Return h_root = p_root, h_t = h_parent + (p_t - p_parent) / (1 + amount / n_parent) for all nodes."""

    def shrunk(node):
        *above, node = path(left_child, [left + 1 for left in left_child], node)
        if not above:
            return list(value[node])
        parent = above[-1]
        keep = 1 / (1 + amount / weight[parent])
        return [h + (p - q) * keep for h, p, q in zip(shrunk(parent), value[node], value[parent])]

    return [shrunk(node) for node in range(len(left_child))]

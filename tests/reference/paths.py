"""Paths from the root of a tree, by a search for each parent."""


def path(left, right, node):
    """Return the nodes from the root, number 0, to a node."""
    nodes = [node]
    while nodes[0] != 0:
        (parent,) = [i for i in range(len(left)) if left[i] >= 0 and nodes[0] in (left[i], right[i])]
        nodes.insert(0, parent)
    return nodes

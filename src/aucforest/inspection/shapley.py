"""Path-dependent Shapley values of tree predictions.

At each split on the path to a leaf, a proportion of the node's training weight goes to the child on the path. Let z_j
be the product of these proportions over the splits of feature j. Let o_j be 1 if the row follows the path at all splits
of feature j, else 0. If only some features are known, a leaf of value v adds v times the product of o_j over the known
and of z_j over the unknown features to the prediction. So the leaf adds to the Shapley value of feature i

    v (o_i - z_i) * integral from 0 to 1 over t of the product over j != i of p_j(t),  p_j(t) = o_j t + z_j (1 - t).

This is Owen's form of the Shapley value (1972, Management Science 18): each other feature is known with probability t.
For a path with m features, the integrand is a polynomial of degree m - 1, so Gauss-Legendre quadrature with m / 2
points, rounded up, is exact. No p_j(t) is negative, so no digits cancel in the sum, however deep the tree. At a point
t, the products of all leaves below a node are summed once, as in Linear TreeSHAP (Yu, Bifet, Read, Xu 2022, NeurIPS).
So the time for a row is proportional to nodes times points.

A categorical column and its target rates (target encoding) are known or unknown together: they are one player of the
Shapley game. Any other feature is a player by itself.

`estimators.log_odds` needs the integral over t in parts: the steps, intervals of t that divide [0, 1]. Each step has
about the same number of quadrature points.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.estimators.log_odds import gauss_legendre
from aucforest.tree.prediction import TreeNodes, goes_right, split_of
from aucforest.tree.tree import LEAF, Tree, find_parents

# Limits of the number of rows that descend a tree together, so that their products fit into the second-level cache.
_MOST_ROWS, _LEAST_ROWS, _CACHE_BYTES = 128, 8, 2**20
# The side that a row goes to at a split; 0 if the row left the path at an earlier split of the same player.
_LEFT, _RIGHT = 1, 2


class ShapleyTree(NamedTuple):
    """The input of `add_shapley_values` for a tree. An edge has the index of its lower node; 0 means no edge."""

    nodes: TreeNodes
    player: NDArray[np.int64]  # player of each split: its feature, or the categorical feature of a target rate
    depth: NDArray[np.int64]
    last_edge: NDArray[np.int64]  # for each split, the last edge above it from a split of the same player
    fraction: NDArray[np.float64]  # for each edge, z of its player on the path from the root to the edge
    points: NDArray[np.float64]  # quadrature points
    weights: NDArray[np.float64]  # quadrature weights
    step: NDArray[np.int64]  # for each point, the index of its step

    @classmethod
    def of(cls, tree: Tree, players: NDArray[np.int64], n_steps: int) -> "ShapleyTree":
        """Prepare a tree; `players` has the player of each feature."""
        nodes, player = TreeNodes.of(tree), np.append(players, LEAF)[tree.feature]
        parent, depth = find_parents(tree.left_child, tree.left_child + 1)
        (last_edge, n_distinct), fraction = np.zeros((2, tree.n_nodes), dtype=np.int64), np.ones(tree.n_nodes)
        most = _follow_edges(nodes, player, parent, n_distinct, last_edge, fraction)
        points, weights = gauss_legendre(max(n_steps, (most + 1) // 2))
        step = np.arange(len(points)) * n_steps // len(points)
        return cls(nodes, player, depth, last_edge, fraction, points, weights, step)


@bare_kernel
def _follow_edges(nodes, player, parent, n_distinct, last_edge, fraction):
    """Write `last_edge` and `fraction` (initially ones), and return the maximum number of players on a path."""
    most = 0
    for node in range(len(player)):
        left = nodes.left_child[node]
        if left < 0:
            continue
        edge = node
        while edge > 0 and player[parent[edge]] != player[node]:
            edge = parent[edge]
        last_edge[node] = edge
        for child in range(left, left + 2):
            n_distinct[child] = n_distinct[node] + (edge == 0)
            fraction[child] = fraction[edge] * (nodes.weight[child] / nodes.weight[node])
        most = max(most, n_distinct[left])
    return most


def scratch_shape(trees: list[ShapleyTree]) -> tuple[int, int, int]:
    """Return the shape of the products: nodes (two at each depth), points, and rows that descend together."""
    n_nodes, n_points = 2 * max(int(tree.depth.max()) for tree in trees) + 1, max(len(tree.points) for tree in trees)
    n_rows = _CACHE_BYTES // (8 * n_nodes * n_points) // _LEAST_ROWS * _LEAST_ROWS
    return n_nodes, n_points, min(max(n_rows, _LEAST_ROWS), _MOST_ROWS)


def make_scratch(shape: tuple[int, int, int]) -> tuple[NDArray[Any], ...]:
    """Return scratch arrays of `add_shapley_values`: the stack of nodes, the sides of rows, and the products."""
    n_nodes, _, n_rows = shape
    sides = np.empty((n_nodes // 2 + 1, n_rows), dtype=np.int64)
    return np.empty(2 * n_nodes + 1, dtype=np.int64), sides, np.empty(shape)


@bare_device
def _assign_sides(tree, node, X, sides):
    """Write the side of each row of X at a split to ``sides[depth + 1]``."""
    edge, column, new_sides = tree.last_edge[node], X[tree.nodes.feature[node]], sides[tree.depth[node] + 1]
    # Left children have odd indices.
    old_sides, path_side, split = sides[tree.depth[edge]], _LEFT if edge & 1 else _RIGHT, split_of(tree.nodes, node)
    for i in range(len(column)):
        side = _LEFT + np.int64(goes_right(split, column[i]))
        new_sides[i] = side if old_sides[i] == path_side else 0


@bare_device
def _index(tree, node):
    """Return the index of the products of a node. Each depth has an index for left and one for right children."""
    return 2 * tree.depth[node] - (node & 1)


@bare_device
def _multiply(tree, values, node, products, n_rows, sides):
    """Write the product of p_j(t) over the players on the path to each child of a node. Leaves include their value."""
    left = tree.nodes.left_child[node]
    z_before, z_left, z_right = tree.fraction[tree.last_edge[node]], tree.fraction[left], tree.fraction[left + 1]
    v_left = values[left] if tree.nodes.feature[left] == LEAF else 1.0
    v_right = values[left + 1] if tree.nodes.feature[left + 1] == LEAF else 1.0
    # The hot factor of a child is for rows that go to the child, the cold one for rows that go to its sibling. The off
    # factor is for rows that left the path at an earlier split of the player. This factor, z of the child divided by
    # z_before, is computed from weights, because z_before may be 0.
    off_left = tree.nodes.weight[left] / tree.nodes.weight[node] * v_left
    off_right = tree.nodes.weight[left + 1] / tree.nodes.weight[node] * v_right
    for q in range(len(tree.points)):
        t = tree.points[q]
        p_before = t + z_before * (1.0 - t)
        hot_left, cold_left = (t + z_left * (1.0 - t)) / p_before * v_left, z_left * (1.0 - t) / p_before * v_left
        hot_right, cold_right = (t + z_right * (1.0 - t)) / p_before * v_right, z_right * (1.0 - t) / p_before * v_right
        above = products[_index(tree, node), q]
        below_left, below_right = products[_index(tree, left), q], products[_index(tree, left + 1), q]
        for i in range(n_rows):
            side, product = sides[i], above[i]
            below_left[i] = product * (hot_left if side == _LEFT else cold_left if side == _RIGHT else off_left)
            below_right[i] = product * (hot_right if side == _RIGHT else cold_right if side == _LEFT else off_right)


@bare_device
def _collect(tree, node, products, n_rows, sides, total):
    """Replace the products of a node by sums over its leaves, and add their contributions to the player of the node.

    For each player, a leaf's product is multiplied by (o - z) / p of the player's last edge on the path. So each edge
    adds its own (o - z) / p, and subtracts that of the player's previous edge.
    """
    left = tree.nodes.left_child[node]
    z_before, z_left, z_right = tree.fraction[tree.last_edge[node]], tree.fraction[left], tree.fraction[left + 1]
    for q in range(len(tree.points)):
        t, weight = tree.points[q], tree.weights[q]
        term_before = (1.0 - z_before) / (t + z_before * (1.0 - t))
        hot_left = weight * ((1.0 - z_left) / (t + z_left * (1.0 - t)) - term_before)
        hot_right = weight * ((1.0 - z_right) / (t + z_right * (1.0 - t)) - term_before)
        cold = weight * (-1.0 / (1.0 - t) - term_before)
        above, values = products[_index(tree, node), q], total[tree.step[q], tree.player[node]]
        below_left, below_right = products[_index(tree, left), q], products[_index(tree, left + 1), q]
        for i in range(n_rows):
            is_left = sides[i] == _LEFT
            at_left, at_right = below_left[i], below_right[i]
            value = at_left * (hot_left if is_left else cold) + at_right * (cold if is_left else hot_right)
            # If o was 0 before, (o - z) / p does not change.
            values[i] += value if sides[i] != 0 else 0.0
            above[i] = at_left + at_right


@bare_kernel
def add_shapley_values(tree, values, X, scratch, total):
    """Add the integrals over each step to `total`, (n_steps, n_players, n_rows).

    The sum over the steps has the Shapley values.
    `values` are the predictions of the nodes; only leaves are read. X has transposed rows, (n_features, n_rows), at
    most as many as the scratch allows; categories are codes. `scratch` is the result of `make_scratch` for the
    `scratch_shape` of trees that include this tree.
    """
    stack, sides, products = scratch
    n_rows, n_stacked = X.shape[1], 0
    for i in range(n_rows):
        # Index 0, for no edge, counts as a right child, because it is even. So all rows start on the right.
        sides[0, i] = _RIGHT
    for q in range(len(tree.points)):
        for i in range(n_rows):
            products[0, q, i] = 1.0
    if tree.nodes.feature[0] != LEAF:
        stack[0], n_stacked = 0, 1
    while n_stacked > 0:
        n_stacked -= 1
        node = stack[n_stacked]
        if node < 0:
            # All nodes below have been processed.
            node = ~node
            _collect(tree, node, products, n_rows, sides[tree.depth[node] + 1], total)
            continue
        _assign_sides(tree, node, X, sides)
        _multiply(tree, values, node, products, n_rows, sides[tree.depth[node] + 1])
        stack[n_stacked] = ~node
        n_stacked += 1
        left = np.int64(tree.nodes.left_child[node])
        for child in range(left, left + 2):
            if tree.nodes.feature[child] != LEAF:
                stack[n_stacked] = child
                n_stacked += 1

"""Path-dependent Shapley values of tree predictions.

On the way to a leaf let z_j be the proportion of the training weight that passes the splits of feature j, the product
over these, and o_j 1 if the row itself passes them all, else 0. A leaf of value v predicts v times the product of o_j
over known and z_j over unknown features, and gives feature i

    v (o_i - z_i) * integral from 0 to 1 over t of the product over j != i of p_j(t),  p_j(t) = o_j t + z_j (1 - t),

which is Owen's form of the Shapley value (1972, Management Science 18): each other feature is known with chance t. The
integrand is a polynomial of one degree less than there are features on the way, so Gauss-Legendre quadrature with half
as many points is exact. All its terms are positive: nothing is lost to rounding, however deep the tree. At a point t
the products of all leaves below a node are summed up once for all of them, as in Linear TreeSHAP (Yu, Bifet, Read, Xu
2022, NeurIPS), so a row takes time in proportion to nodes times points.

A column of categories and the target rates that are made of it are known together: they are one feature, a player.

Where t is the chance that a feature is known, the integral up to a t is the part of the value that a feature has got up
to there. Parts of the interval, each of some of the points, are the steps of `estimators.log_odds`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.estimators.log_odds import gauss_legendre
from aucforest.tree.prediction import goes_right
from aucforest.tree.tree import LEAF, Tree, find_parents

# Rows that descend a tree together, and the bytes of their products, which fit into the second-level cache.
_MOST_ROWS, _LEAST_ROWS, _CACHE_BYTES = 128, 8, 2**20
# The side of a split on which a row is; 0 if it did not satisfy the earlier splits of the same feature.
_LEFT, _RIGHT = 1, 2


class ShapleyTree(NamedTuple):
    """The input of `add_shapley_values` for a tree. An edge is numbered by the node at its end; 0 is no edge."""

    feature: NDArray[np.int32]
    player: NDArray[np.int64]  # what the values of a split are those of: its feature, or the one that this is made of
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    left_child: NDArray[np.int32]
    weight: NDArray[np.float64]
    depth: NDArray[np.int64]
    set_number: NDArray[np.int64]  # -1 for a split without a set
    sets: NDArray[np.uint64]
    last_edge: NDArray[np.int64]  # of a split: the last edge above it that belongs to a split of the same player
    fraction: NDArray[np.float64]  # of an edge: z of its player on the path from the root to it
    points: NDArray[np.float64]
    weights: NDArray[np.float64]  # of the points
    step: NDArray[np.int64]  # of a point: the part of the interval from 0 to 1 that it is counted in

    @classmethod
    def of(cls, tree: Tree, inputs: NDArray[np.int64] | None = None, n_steps: int = 1) -> "ShapleyTree":
        """Prepare a tree; `inputs` are the players of its features, by default the features themselves."""
        player = tree.feature.astype(np.int64) if inputs is None else np.append(inputs, LEAF)[tree.feature]
        set_number = np.full(tree.n_nodes, -1)
        set_number[tree.set_nodes] = np.arange(len(tree.set_nodes))
        parent, depth = find_parents(tree.left_child, tree.left_child + 1)
        (last_edge, n_distinct), fraction = np.zeros((2, tree.n_nodes), dtype=np.int64), np.ones(tree.n_nodes)
        most = _follow_edges(player, tree.left_child, tree.weight, parent, n_distinct, last_edge, fraction)
        points, weights = gauss_legendre(max(n_steps, (most + 1) // 2))
        return cls(
            feature=tree.feature,
            player=player,
            threshold=tree.threshold,
            missing_left=tree.missing_left,
            left_child=tree.left_child,
            weight=tree.weight,
            depth=depth,
            set_number=set_number,
            sets=tree.sets,
            last_edge=last_edge,
            fraction=fraction,
            points=points,
            weights=weights,
            step=np.arange(len(points)) * n_steps // len(points),
        )


@bare_kernel
def _follow_edges(player, left_child, weight, parent, n_distinct, last_edge, fraction):
    """Write `last_edge` and `fraction`, whose first element is 1; return the maximum number of players on a path."""
    most = 0
    for node in range(len(player)):
        left = left_child[node]
        if left < 0:
            continue
        edge = node
        while edge > 0 and player[parent[edge]] != player[node]:
            edge = parent[edge]
        last_edge[node] = edge
        for child in range(left, left + 2):
            n_distinct[child] = n_distinct[node] + (edge == 0)
            fraction[child] = fraction[edge] * (weight[child] / weight[node])
        most = max(most, n_distinct[left])
    return most


def scratch_shape(trees: list[ShapleyTree]) -> tuple[int, int, int]:
    """Return how many nodes products of trees are kept of, two at each depth, at how many points, and of how many rows.

    So many rows go down the trees together.
    """
    n_nodes, n_points = 2 * max(int(tree.depth.max()) for tree in trees) + 1, max(len(tree.points) for tree in trees)
    n_rows = _CACHE_BYTES // (8 * n_nodes * n_points) // _LEAST_ROWS * _LEAST_ROWS
    return n_nodes, n_points, min(max(n_rows, _LEAST_ROWS), _MOST_ROWS)


def make_scratch(shape: tuple[int, int, int]) -> tuple[NDArray[Any], ...]:
    """Return scratch of `add_shapley_values`."""
    n_nodes, _, n_rows = shape
    sides = np.empty((n_nodes // 2 + 1, n_rows), dtype=np.int64)
    return np.empty(2 * n_nodes + 1, dtype=np.int64), sides, np.empty(shape)


@bare_device
def _part_rows(tree, node, X, sides):
    """Write the side of a split on which each row is, at the depth of the split plus 1."""
    edge, column, below = tree.last_edge[node], X[tree.feature[node]], sides[tree.depth[node] + 1]
    above, passed = sides[tree.depth[edge]], _side_of(edge)
    threshold, missing_left, set_number = tree.threshold[node], tree.missing_left[node], tree.set_number[node]
    for i in range(len(column)):
        side = _LEFT + np.int64(goes_right(column[i], threshold, missing_left, tree.sets, set_number))
        below[i] = side if above[i] == passed else 0


@bare_device
def _side_of(edge):
    """Return the side of an edge; left children have odd numbers."""
    return _LEFT if edge & 1 else _RIGHT


@bare_device
def _place(tree, node):
    """Return the index of the products of a node; each depth has one for left and one for right children."""
    return 2 * tree.depth[node] - (node & 1)


@bare_device
def _multiply(tree, values, node, products, n_rows, sides):
    """Write the products of both children at all points from those of a node; those of a leaf times its value."""
    left = tree.left_child[node]
    old, z_left, z_right = tree.fraction[tree.last_edge[node]], tree.fraction[left], tree.fraction[left + 1]
    v_left = values[left] if tree.feature[left] == LEAF else 1.0
    v_right = values[left + 1] if tree.feature[left + 1] == LEAF else 1.0
    # for rows that did not satisfy the earlier splits of the feature, where z may be rounded to 0
    none_left = tree.weight[left] / tree.weight[node] * v_left
    none_right = tree.weight[left + 1] / tree.weight[node] * v_right
    for q in range(len(tree.points)):
        t = tree.points[q]
        before = t + old * (1.0 - t)
        hot_left, cold_left = (t + z_left * (1.0 - t)) / before * v_left, z_left * (1.0 - t) / before * v_left
        hot_right, cold_right = (t + z_right * (1.0 - t)) / before * v_right, z_right * (1.0 - t) / before * v_right
        above = products[_place(tree, node), q]
        below_left, below_right = products[_place(tree, left), q], products[_place(tree, left + 1), q]
        for i in range(n_rows):
            side, product = sides[i], above[i]
            below_left[i] = product * (hot_left if side == _LEFT else cold_left if side == _RIGHT else none_left)
            below_right[i] = product * (hot_right if side == _RIGHT else cold_right if side == _LEFT else none_right)


@bare_device
def _collect(tree, node, products, n_rows, sides, total):
    """Sum up the leaves below a node in place of its products, and add what they give to the player of its split.

    A leaf gives (o - z) / p at the last edge of the player: added here, and taken away at the edge before.
    """
    left = tree.left_child[node]
    old, z_left, z_right = tree.fraction[tree.last_edge[node]], tree.fraction[left], tree.fraction[left + 1]
    for q in range(len(tree.points)):
        t, weight = tree.points[q], tree.weights[q]
        before = (1.0 - old) / (t + old * (1.0 - t))
        hot_left = weight * ((1.0 - z_left) / (t + z_left * (1.0 - t)) - before)
        hot_right = weight * ((1.0 - z_right) / (t + z_right * (1.0 - t)) - before)
        cold = weight * (-1.0 / (1.0 - t) - before)
        above, values = products[_place(tree, node), q], total[tree.step[q], tree.player[node]]
        below_left, below_right = products[_place(tree, left), q], products[_place(tree, left + 1), q]
        for i in range(n_rows):
            is_left = sides[i] == _LEFT
            at_left, at_right = below_left[i], below_right[i]
            value = at_left * (hot_left if is_left else cold) + at_right * (cold if is_left else hot_right)
            # without o, (o - z) / p is the same at both edges
            values[i] += value if sides[i] != 0 else 0.0
            above[i] = at_left + at_right


@bare_kernel
def add_shapley_values(tree, values, X, scratch, total):
    """Add the Shapley values of a tree.

    Parameters
    ----------
    tree : ShapleyTree
    values : ndarray of shape (n_nodes,), float64
        What the tree predicts in each node; only leaves are read.
    X : ndarray of shape (n_features, n_rows), float64
        By columns, at most as many rows as the scratch has. Of categorical features the codes, or NaN.
    scratch
        Of `make_scratch`, for a `scratch_shape` of this tree and others.
    total : ndarray of shape (n_steps, n_players, n_rows), float64
        Output, added to. Shapley values are the sums over steps, of which there are as many as `tree` was made for.
    """
    stack, sides, products = scratch
    n_rows, n_stacked = X.shape[1], 0
    for i in range(n_rows):
        # before all splits all rows are on the side that the root is said to be on
        sides[0, i] = _RIGHT
    for q in range(len(tree.points)):
        for i in range(n_rows):
            products[0, q, i] = 1.0
    if tree.feature[0] != LEAF:
        stack[0], n_stacked = 0, 1
    while n_stacked > 0:
        n_stacked -= 1
        node = stack[n_stacked]
        if node < 0:
            # all below it is done
            node = ~node
            _collect(tree, node, products, n_rows, sides[tree.depth[node] + 1], total)
            continue
        _part_rows(tree, node, X, sides)
        _multiply(tree, values, node, products, n_rows, sides[tree.depth[node] + 1])
        stack[n_stacked] = ~node
        n_stacked += 1
        left = np.int64(tree.left_child[node])
        for child in range(left, left + 2):
            if tree.feature[child] != LEAF:
                stack[n_stacked] = child
                n_stacked += 1

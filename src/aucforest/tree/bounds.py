"""Monotonic constraints of a tree with two classes: the share of the second class rises, or falls, along a feature.

Every node has bounds, and a cut is allowed if the shares of both children lie inside those of their node, and, where
it cuts a constrained feature, in the order asked for. Such a cut hands the mean of the two shares on as a bound
between its children, so that no later cut can turn the order round; others hand on the bounds as they are. A cut that
parts nothing but missing values from the others does not act along the feature, so it is free in its order.

All shares are computed as `Tree.value` is, so every node's value lies inside its bounds to the last bit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device


class Bounds(NamedTuple):
    """What shares must keep to.

    signs : (n_features,), int8: 1 for a share that rises with the feature, -1 for one that falls, 0 for either; empty
        without constraints
    low, high : (capacity,), the bounds of every node; empty without constraints
    """

    signs: NDArray[np.int8]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def make_bounds(signs: tuple[int, ...], capacity: int) -> Bounds:
    """Allocate the bounds of up to so many nodes; no signs are no constraints."""
    size = capacity if signs else 0
    return Bounds(np.array(signs, dtype=np.int8), np.empty(size), np.empty(size))


@bare_device
def _share(totals):  # type: ignore[no-untyped-def]
    """Return the share of the second class."""
    first, second = np.float64(totals[0]), np.float64(totals[1])
    return second / (first + second)


@bare_device
def start_bounds(bounds):  # type: ignore[no-untyped-def]
    """Let the share of the root be anything."""
    if len(bounds.signs) > 0:
        bounds.low[0], bounds.high[0] = 0.0, 1.0


@bare_device
def keeps_bounds(bounds, node, feature, left, right, missing_alone):  # type: ignore[no-untyped-def]
    """Say whether a cut with these class totals is allowed; `missing_alone` if just missing values go right."""
    if len(bounds.signs) == 0:
        return True
    left_share, right_share = _share(left), _share(right)
    if min(left_share, right_share) < bounds.low[node] or max(left_share, right_share) > bounds.high[node]:
        return False
    return missing_alone or bounds.signs[feature] * (right_share - left_share) >= 0.0


@bare_device
def pass_bounds(bounds, nodes, node, left_child, cut):  # type: ignore[no-untyped-def]
    """Hand the bounds of a node on to its children, whose class totals are known."""
    if len(bounds.signs) == 0:
        return
    for child in (left_child, left_child + 1):
        bounds.low[child], bounds.high[child] = bounds.low[node], bounds.high[node]
    if cut.next_code < 0 or bounds.signs[cut.feature] == 0:
        return
    middle = 0.5 * (_share(nodes.totals[left_child]) + _share(nodes.totals[left_child + 1]))
    rises = bounds.signs[cut.feature] > 0
    bounds.high[left_child if rises else left_child + 1] = middle
    bounds.low[left_child + 1 if rises else left_child] = middle

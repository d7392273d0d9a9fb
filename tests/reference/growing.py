"""Monotonic constraints, drawn cuts and best-first growth, on top of the reference that tries every cut."""

import math
from collections.abc import Callable, Iterator

from tests.reference.tree import Cut, Rules, Table, all_cuts, derive_key, may_split

LARGEST = 1.7976931348623157e308


def share(totals) -> float:
    """Return the share of the second class."""
    return totals[1] / (totals[0] + totals[1])


def is_allowed(cut: Cut, table: Table, signs, low: float, high: float) -> bool:
    """Say whether the shares of the children lie inside the bounds and in the order that the feature asks for."""
    left, right = share(table.totals(cut.left)), share(table.totals(cut.right))
    if not (low <= left <= high and low <= right <= high):
        return False
    # A cut between missing values and all others says nothing of the order along the feature.
    return cut.next_code is None or signs[cut.feature] * (right - left) >= 0


def bounds_below(cut: Cut, table: Table, signs, low: float, high: float) -> list[tuple[float, float]]:
    """Return the bounds of both children."""
    middle = (share(table.totals(cut.left)) + share(table.totals(cut.right))) / 2
    sign = 0 if cut.next_code is None else signs[cut.feature]
    return {0: [(low, high), (low, high)], 1: [(low, middle), (middle, high)], -1: [(middle, high), (low, middle)]}[
        sign
    ]


def ends(locations: list[float]) -> tuple[float, float]:
    """Return between what a cut is drawn, from where the codes of a node lie, in rising order."""
    finite = [x for x in locations if math.isfinite(x)]
    if not finite:
        return 0.0, 0.0
    low, high = finite[0], finite[-1]
    reach = min(high - low, LARGEST) if high > low else 1.0
    return (
        max(low - reach, -LARGEST) if locations[0] == -math.inf else low,
        min(high + reach, LARGEST) if locations[-1] == math.inf else high,
    )


def draw(locations: list[float], key: int, feature: int, n_features: int) -> float:
    """Return the number drawn for a feature."""
    low, high = ends(locations)
    u = (derive_key(key, n_features + 2 + feature) >> 11) * 2.0**-53
    return (1.0 - u) * low + u * high


def drawn_cuts(table: Table, rows, key: int, rules: Rules, location) -> Iterator[Cut]:
    """Yield the one cut of every feature tried, missing rows on either side; location[feature][code] is a value."""
    for cut in all_cuts(table, rows, key, rules):
        column = table.columns[cut.feature]
        codes = sorted({column[r] for r in rows} - {None})
        if len(codes) == 1:
            yield cut
            continue
        places = [location[cut.feature][code] for code in codes]
        drawn = draw(places, key, cut.feature, len(table.columns))
        if cut.code == max([codes[0]] + [c for c, place in zip(codes[:-1], places) if place <= drawn]):
            yield cut


class Leaf:
    """A node that may be cut: `number` orders equals."""

    def __init__(self, rows, key: int, depth: int, number: int) -> None:
        self.rows, self.key, self.depth, self.number = rows, key, depth, number
        self.cut: Cut | None = None
        self.children: list[Leaf] = []


def grow_best_first(table: Table, rows, key: int, rules: Rules, max_leaves: int, best_of: Callable) -> Leaf:
    """Grow a tree: of all leaves the one whose best cut gains most, times its weight, is cut next; return the root.

    Numbers are given in pairs, whenever a cut is found.
    """
    root = Leaf(rows, key, 0, 0)
    fresh, offers, n_leaves, n_numbers = [root], [], 1, 1
    while True:
        for leaf in fresh:
            cut = best_of(leaf.rows, leaf.key) if may_split(table, leaf.rows, leaf.depth, rules) else None
            if cut is not None:
                offers.append((cut.gain * sum(table.totals(leaf.rows)), -leaf.number, leaf, cut, n_numbers))
                n_numbers += 2
        if not offers or n_leaves == max_leaves:
            return root
        best = max(offers, key=lambda offer: offer[:2])
        offers.remove(best)
        _, _, leaf, leaf.cut, first_child = best
        n_leaves += 1
        leaf.children = fresh = [
            Leaf(below, derive_key(leaf.key, side), leaf.depth + 1, first_child + side)
            for side, below in enumerate((leaf.cut.left, leaf.cut.right))
        ]


def parents_first(leaf: Leaf) -> Iterator[Leaf]:
    """Yield a node and all below it, left before right."""
    yield leaf
    for child in leaf.children:
        yield from parents_first(child)

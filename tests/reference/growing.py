"""Growing one tree by trying every split of every feature of every node, in exact arithmetic where there is any.

A table has columns of ordered codes, one list a feature, None for a missing value; labels from 0; integer weights.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count
from typing import NamedTuple

import numpy as np

from tests.reference.tree import GAINS, derive_key, sample_features

LARGEST = 1.7976931348623157e308
# Splits whose scores differ by no more tie.
ROUNDING = 1e-12


class Table(NamedTuple):
    """`bins` has the least and the greatest value of every code, `by_set` the features whose codes are categories."""

    columns: list[list[int | None]]
    labels: list[int]
    weights: list[int]
    n_classes: int
    bins: tuple[list[tuple[float, float]], ...] = ()
    by_set: tuple[int, ...] = ()

    def totals(self, rows) -> list[int]:
        """Return the weight of every class."""
        totals = [0] * self.n_classes
        for r in rows:
            totals[self.labels[r]] += self.weights[r]
        return totals


class Rules(NamedTuple):
    """The criterion is a name, or a function of float arrays: class totals on the left, and of the node."""

    criterion: str | Callable[..., float] = "auc"
    max_features: int = 1000
    min_samples_leaf: int = 1
    min_weight_leaf: int = 0
    max_depth: int = 1000
    min_samples_split: int = 2
    min_gain: float = 0.0
    signs: tuple[int, ...] = ()
    random: bool = False
    max_leaf_nodes: int | None = None


class Split(NamedTuple):
    """`codes` are those on the left, `next_code` is the first one on the right; `rank` is what is greatest."""

    feature: int
    codes: list[int]
    next_code: int | None
    missing_left: bool
    drawn: float
    gain: Fraction | float
    rank: float
    left: list[int]
    right: list[int]


class Node:
    """A node; `low` and `high` limit the frequency of the second class, `number` orders equals."""

    def __init__(self, rows, key: int, depth: int = 0, low: float = 0.0, high: float = 1.0, number: int = 0) -> None:
        self.rows, self.key, self.depth, self.low, self.high, self.number = rows, key, depth, low, high, number
        self.split: Split | None = None
        self.children: list[Node] = []

    def __iter__(self) -> "Iterator[Node]":
        """Go through the node and all below it, parents first and left before right."""
        yield self
        for child in self.children:
            yield from child


def rank_of(criterion, left, right) -> tuple[Fraction | float, float]:
    """Return the gain of a split and what it is ranked by.

    That is the gain but for two classes, where it is the difference of their fractions on the left for the AUC, and the
    correlation of class and side for Gini.
    """
    if not isinstance(criterion, str):
        gain = criterion(np.array(left, dtype=float), np.add(left, right, dtype=float))
        return gain, gain
    gain = GAINS[criterion](left, right)
    present = [a + b for a, b in zip(left, right) if a + b > 0]
    if len(present) == 2 and criterion == "auc":
        return gain, float(2 * gain)
    if len(present) == 2 and criterion == "gini":
        return gain, math.sqrt(gain * Fraction(sum(present) ** 2, 2 * math.prod(present)))
    return gain, float(gain)


def tried_features(table: Table, node: Node, rules: Rules) -> list[int]:
    """Return the first max_features of the drawn features that are not constant in the node."""
    drawn = sample_features(node.key, len(table.columns))
    varied = [f for f in drawn if len({table.columns[f][r] for r in node.rows}) > 1]
    return varied[: rules.max_features]


def frequency(totals) -> float:
    """Return the frequency of the second class."""
    return totals[1] / (float(totals[0]) + float(totals[1]))


def location(low: float, high: float) -> float:
    """Return where a code lies: in the middle of its bin, or at its finite end."""
    return high if low == -math.inf else low if high == math.inf else 0.5 * low + 0.5 * high


def ends(locations: list[float]) -> tuple[float, float]:
    """Return between what a threshold is drawn, from where the codes of a node lie, in rising order."""
    finite = [x for x in locations if math.isfinite(x)]
    if not finite:
        return 0.0, 0.0
    low, high = finite[0], finite[-1]
    reach = min(high - low, LARGEST) if high > low else 1.0
    return (
        max(low - reach, -LARGEST) if locations[0] == -math.inf else low,
        min(high + reach, LARGEST) if locations[-1] == math.inf else high,
    )


def draw(locations: list[float], key: int, feature: int) -> float:
    """Return the number drawn for a feature."""
    low, high = ends(locations)
    u = (derive_key(key, "split", feature) >> 11) * 2.0**-53
    return (1.0 - u) * low + u * high


def draw_set(categories: list[int], key: int, feature: int) -> list[int]:
    """Return the categories drawn to go left: neither none nor all, unless there is just one."""
    for attempt in count():
        attempt_key = derive_key(derive_key(key, "split", feature), "attempt", attempt)
        drawn = [c for c in categories if derive_key(attempt_key, "category", c) & 1]
        if drawn and (len(drawn) < len(categories) or len(categories) == 1):
            return drawn


def order_codes(table: Table, node: Node, feature: int, rules: Rules) -> tuple[list[int], list[int], float]:
    """Return the codes of a node in their order, how many of them may go left, and the threshold that is drawn."""
    column = table.columns[feature]
    codes = sorted({column[r] for r in node.rows} - {None})
    if feature in table.by_set:
        if rules.random:
            category = {code: int(table.bins[feature][code][0]) for code in codes}
            drawn = draw_set(list(category.values()), node.key, feature)
            return sorted(codes, key=lambda code: category[code] not in drawn), [len(drawn)], 0.0
        by_code = {code: frequency(table.totals(r for r in node.rows if column[r] == code)) for code in codes}
        codes.sort(key=lambda code: by_code[code])
    elif rules.random and len(codes) > 1:
        locations = [location(*table.bins[feature][code]) for code in codes]
        drawn = draw(locations, node.key, feature)
        return codes, [max(1, sum(x <= drawn for x in locations[:-1]))], drawn
    return codes, list(range(1, len(codes) + 1)), math.inf


def all_splits(table: Table, node: Node, rules: Rules) -> Iterator[Split]:
    """Yield every split that the rules allow, those that win ties first."""
    for feature in tried_features(table, node, rules):
        column = table.columns[feature]
        codes, sizes, drawn = order_codes(table, node, feature, rules)
        any_missing = any(column[r] is None for r in node.rows)
        for missing_left in (False, True) if any_missing else (False,):
            for n_left in sizes:
                on_left = {*codes[:n_left], None} if missing_left else set(codes[:n_left])
                sides = (
                    [r for r in node.rows if column[r] in on_left],
                    [r for r in node.rows if column[r] not in on_left],
                )
                totals = [table.totals(side) for side in sides]
                left_weight, right_weight = map(sum, totals)
                if min(map(len, sides)) < max(1, rules.min_samples_leaf):
                    continue
                if min(left_weight, right_weight) < rules.min_weight_leaf:
                    continue
                next_code = codes[n_left] if n_left < len(codes) else None
                if rules.signs and not is_allowed(*map(frequency, totals), node, next_code, rules.signs[feature]):
                    continue
                if not any_missing:
                    missing_left = 2 * left_weight >= (1 - ROUNDING) * (left_weight + right_weight)
                yield Split(
                    feature, codes[:n_left], next_code, missing_left, drawn, *rank_of(rules.criterion, *totals), *sides
                )


def is_allowed(left: float, right: float, node: Node, next_code: int | None, sign: int) -> bool:
    """Say whether the frequencies of the children lie inside the limits and in the order that the feature asks for."""
    if not (node.low <= left <= node.high and node.low <= right <= node.high):
        return False
    # A split between missing values and all others says nothing of the order along the feature.
    return next_code is None or sign * (right - left) >= 0


def limits_below(table: Table, node: Node, signs) -> list[tuple[float, float]]:
    """Return the limits of both children."""
    low, high, split = node.low, node.high, node.split
    if not signs or split.next_code is None or signs[split.feature] == 0:
        return [(low, high), (low, high)]
    middle = (frequency(table.totals(split.left)) + frequency(table.totals(split.right))) / 2
    limits = [(low, middle), (middle, high)]
    return limits if signs[split.feature] > 0 else limits[::-1]


def may_split(table: Table, node: Node, rules: Rules) -> bool:
    """Say whether a node is searched at all."""
    totals = table.totals(node.rows)
    if sum(t > 0 for t in totals) < 2 or node.depth >= rules.max_depth:
        return False
    return len(node.rows) >= rules.min_samples_split


def best_split(table: Table, node: Node, rules: Rules) -> Split | None:
    """Return the first of the best splits, None if none gains anything. A user's own criterion is taken as it is."""
    rounding = ROUNDING if isinstance(rules.criterion, str) else 0.0
    best, bar = None, rounding
    for split in all_splits(table, node, rules) if may_split(table, node, rules) else ():
        if bar < split.rank < math.inf:
            best, bar = split, split.rank + rounding
    return best if best is not None and best.gain >= rules.min_gain else None


def grow(table: Table, rows, key: int, rules: Rules) -> Node:
    """Grow a tree and return its root: the leaf whose best split gains most, times its weight, is split next.

    Numbers are given in pairs, whenever a split is found. Without a limit the order makes no difference.
    """
    root = Node(rows, key)
    fresh, offers, n_leaves, n_numbers = [root], [], 1, 1
    while True:
        for node in fresh:
            split = best_split(table, node, rules)
            if split is not None:
                offers.append((float(split.gain) * sum(table.totals(node.rows)), -node.number, node, split, n_numbers))
                n_numbers += 2
        if not offers or n_leaves == rules.max_leaf_nodes:
            return root
        best = max(offers, key=lambda offer: offer[:2])
        offers.remove(best)
        _, _, node, node.split, number = best
        n_leaves += 1
        sides = zip(range(2), (node.split.left, node.split.right), limits_below(table, node, rules.signs))
        node.children = fresh = [
            Node(below, derive_key(node.key, "child", side), node.depth + 1, *limits, number + side)
            for side, below, limits in sides
        ]

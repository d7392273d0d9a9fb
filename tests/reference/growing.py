"""Growing one tree by trying every split of every feature of every node, in exact arithmetic where possible.

A table has a list of ordered codes for each feature (None for a missing value), labels from 0, and integer weights.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count
from typing import NamedTuple

import numpy as np

from tests.reference.tree import GAINS, derive_key, sample_features

LARGEST = 1.7976931348623157e308
# Splits are tied if their scores differ by no more.
ROUNDING = 1e-12


class Table(NamedTuple):
    """`bins` has the least and the greatest value of each code; the codes of the features `by_set` are categories."""

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
    """The criterion is a name, or a function of two float arrays: class totals of the left child and the node."""

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
    """`codes` go left, `next_code` is the first code that goes right; the best split has the greatest `rank`."""

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
    """A node; `low` and `high` limit the frequency of the second class, and ties are broken by `number`."""

    def __init__(self, rows, key: int, depth: int = 0, low: float = 0.0, high: float = 1.0, number: int = 0) -> None:
        self.rows, self.key, self.depth, self.low, self.high, self.number = rows, key, depth, low, high, number
        self.split: Split | None = None
        self.children: list[Node] = []

    def __iter__(self) -> "Iterator[Node]":
        """Yield the node and all nodes below it, parents before children and left before right."""
        yield self
        for child in self.children:
            yield from child


def rank_of(criterion, left, right) -> tuple[Fraction | float, float]:
    """Return the gain of a split, and its rank among all splits.

    The rank is the gain, except for two classes: for the AUC it is the difference between the proportions of the
    classes that go left, and for Gini it is the correlation of class and side.
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
    """Return the location of a code: the middle of its bin, or the finite end of an infinite bin."""
    return high if low == -math.inf else low if high == math.inf else 0.5 * low + 0.5 * high


def ends(locations: list[float]) -> tuple[float, float]:
    """Return the bounds of a random threshold, given the locations of the codes of a node in ascending order."""
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
    """Return the random threshold of a feature."""
    low, high = ends(locations)
    u = (derive_key(key, "split", feature) >> 11) * 2.0**-53
    return (1.0 - u) * low + u * high


def draw_set(categories: list[int], key: int, feature: int) -> list[int]:
    """Return the random categories that go left: some but not all, unless there is only one."""
    for attempt in count():
        attempt_key = derive_key(derive_key(key, "split", feature), "attempt", attempt)
        drawn = [c for c in categories if derive_key(attempt_key, "category", c) & 1]
        if drawn and (len(drawn) < len(categories) or len(categories) == 1):
            return drawn


def order_codes(table: Table, node: Node, feature: int, rules: Rules) -> tuple[list[int], list[int], float]:
    """Return the codes of a node in order, the possible numbers of codes that go left, and the random threshold."""
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
    """Yield every split that the rules allow; of tied splits, the first one wins."""
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
    """Return whether the frequencies of the children are within the limits and in the order of the constraint."""
    if not (node.low <= left <= node.high and node.low <= right <= node.high):
        return False
    # A split between missing and all other values does not depend on the order of values.
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
    """Return whether splits of a node are searched."""
    totals = table.totals(node.rows)
    if sum(t > 0 for t in totals) < 2 or node.depth >= rules.max_depth:
        return False
    return len(node.rows) >= rules.min_samples_split


def best_split(table: Table, node: Node, rules: Rules) -> Split | None:
    """Return the first of the best splits, or None if no gain is positive; custom criteria are compared exactly."""
    rounding = ROUNDING if isinstance(rules.criterion, str) else 0.0
    best, bar = None, rounding
    for split in all_splits(table, node, rules) if may_split(table, node, rules) else ():
        if bar < split.rank < math.inf:
            best, bar = split, split.rank + rounding
    return best if best is not None and best.gain >= rules.min_gain else None


def grow(table: Table, rows, key: int, rules: Rules) -> Node:
    """Grow a tree and return its root: the leaf with the greatest product of gain and weight is split next.

    Whenever a split is found, its children get the next two numbers. Without max_leaf_nodes the order has no effect.
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

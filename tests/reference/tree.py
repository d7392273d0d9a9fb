"""Growing one tree by trying every cut of every feature of every node, in exact arithmetic where there is any.

A table has columns of ordered codes, one list a feature, None for a missing value; labels from 0; integer weights.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

WORD = 2**64


def mix(key: int) -> int:
    """Return the finaliser of SplitMix64."""
    key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9 % WORD
    key = (key ^ key >> 27) * 0x94D049BB133111EB % WORD
    return key ^ key >> 31


def derive_key(key: int, index: int) -> int:
    """Return the output number `index` of SplitMix64 seeded with `key`."""
    return mix((key + 0x9E3779B97F4A7C15 * (index + 1)) % WORD)


def draw_features(key: int, n_features: int) -> list[int]:
    """Return all features in the order in which a node looks at them: one shuffle of Fisher and Yates."""
    features = list(range(n_features))
    for n in range(n_features):
        low_bits = derive_key(key, n + 2) % 2**32
        pick = n + low_bits * (n_features - n) // 2**32
        features[n], features[pick] = features[pick], features[n]
    return features


def auc_gain(left, right) -> Fraction:
    """Return the mean over pairs of max((1 - alpha + beta) / 2, (1 - beta + alpha) / 2), less 1 / 2."""
    to_right = [Fraction(r, n + r) for n, r in zip(left, right) if n + r > 0]
    pairs = [max((1 - a + b) / 2, (1 - b + a) / 2) for a, b in combinations(to_right, 2)]
    return sum(pairs) / len(pairs) - Fraction(1, 2)


def hellinger_gain(left, right) -> float:
    """Return the mean over pairs of the distance between the distributions of two classes over the children."""
    shares = [(n / (n + r), r / (n + r)) for n, r in zip(left, right) if n + r > 0]
    distances = [
        math.sqrt(sum((math.sqrt(p) - math.sqrt(q)) ** 2 for p, q in zip(one, other)))
        for one, other in combinations(shares, 2)
    ]
    return math.fsum(distances) / len(distances)


def gini(totals) -> Fraction:
    """Return 1 - sum q_k**2."""
    return 1 - sum(Fraction(t, sum(totals)) ** 2 for t in totals)


def entropy(totals) -> float:
    """Return -sum q_k log2 q_k."""
    return -math.fsum(t / sum(totals) * math.log2(t / sum(totals)) for t in totals if t > 0)


def impurity_decrease(impurity, left, right):
    """Return the impurity of a node less the weighted mean of its children's."""
    node = [n + r for n, r in zip(left, right)]
    share = Fraction(sum(left), sum(node))
    return impurity(node) - share * impurity(left) - (1 - share) * impurity(right)


GAINS = {
    "auc": auc_gain,
    "hellinger": hellinger_gain,
    "gini": lambda left, right: impurity_decrease(gini, left, right),
    "entropy": lambda left, right: impurity_decrease(entropy, left, right),
}


class Table(NamedTuple):
    columns: list[list[int | None]]
    labels: list[int]
    weights: list[int]
    n_classes: int

    def totals(self, rows) -> list[int]:
        """Return the weight of every class."""
        return [sum(self.weights[r] for r in rows if self.labels[r] == k) for k in range(self.n_classes)]


class Rules(NamedTuple):
    criterion: str = "auc"
    max_features: int = 1000
    min_samples_leaf: int = 1
    min_weight_leaf: int = 0
    max_depth: int = 1000
    min_samples_split: int = 2
    min_weight_split: int = 0
    min_gain: float = 0.0


class Cut(NamedTuple):
    feature: int
    code: int
    next_code: int | None
    missing_left: bool
    gain: Fraction | float
    left: list[int]
    right: list[int]


def tried_features(table: Table, rows, key: int, rules: Rules) -> list[int]:
    """Return the first max_features of the drawn features that are not constant in the node."""
    drawn = draw_features(key, len(table.columns))
    varied = [f for f in drawn if len({table.columns[f][r] for r in rows}) > 1]
    return varied[: rules.max_features]


def all_cuts(table: Table, rows, key: int, rules: Rules) -> Iterator[Cut]:
    """Yield every cut that the rules allow, those that win ties first."""
    for feature in tried_features(table, rows, key, rules):
        column = table.columns[feature]
        codes = sorted({column[r] for r in rows} - {None})
        any_missing = any(column[r] is None for r in rows)
        for missing_left in (False, True) if any_missing else (False,):
            for code in codes:
                goes_left = {r: missing_left if column[r] is None else column[r] <= code for r in rows}
                left = [r for r in rows if goes_left[r]]
                right = [r for r in rows if not goes_left[r]]
                weights = [sum(table.weights[r] for r in side) for side in (left, right)]
                if not left or not right or min(weights) < rules.min_weight_leaf:
                    continue
                if min(len(left), len(right)) < rules.min_samples_leaf:
                    continue
                gain = GAINS[rules.criterion](table.totals(left), table.totals(right))
                next_code = min((c for c in codes if c > code), default=None)
                heavier_left = missing_left if any_missing else weights[0] >= weights[1]
                yield Cut(feature, code, next_code, heavier_left, gain, left, right)


def best_cut(table: Table, rows, key: int, rules: Rules) -> Cut | None:
    """Return the first of the best cuts, None if none gains anything."""
    best = max(all_cuts(table, rows, key, rules), key=lambda cut: cut.gain, default=None)
    return best if best is not None and best.gain > 0 and best.gain >= rules.min_gain else None


def may_split(table: Table, rows, depth: int, rules: Rules) -> bool:
    """Say whether a node is searched at all."""
    totals = table.totals(rows)
    if sum(t > 0 for t in totals) < 2 or depth >= rules.max_depth:
        return False
    return len(rows) >= rules.min_samples_split and sum(totals) >= rules.min_weight_split


class Node(NamedTuple):
    rows: list[int]
    totals: list[int]
    cut: Cut | None
    left: "Node | None"
    right: "Node | None"


def grow(table: Table, rows, key: int, rules: Rules, depth: int = 0) -> Node:
    """Grow the branch below a node."""
    cut = best_cut(table, rows, key, rules) if may_split(table, rows, depth, rules) else None
    if cut is None:
        return Node(rows, table.totals(rows), None, None, None)
    left = grow(table, cut.left, derive_key(key, 0), rules, depth + 1)
    right = grow(table, cut.right, derive_key(key, 1), rules, depth + 1)
    return Node(rows, table.totals(rows), cut, left, right)


def leaf_of(tree, row) -> int:
    """Return the leaf that a row of raw values, or codes of categories, reaches, going from node to node."""
    node, sets = 0, dict(zip(tree.set_nodes.tolist(), tree.sets.tolist()))
    while tree.feature[node] != -1:
        value = row[tree.feature[node]]
        if math.isnan(value):
            is_left = tree.missing_left[node]
        elif node in sets:
            is_left = sets[node][int(value) // 64] >> int(value) % 64 & 1
        else:
            is_left = value <= tree.threshold[node]
        node = tree.left_child[node] + (0 if is_left else 1)
    return int(node)

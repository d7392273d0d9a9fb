"""Compare grown trees with the reference that tries every cut."""

import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tests.reference import tree as reference
from tests.reference.growing import LARGEST, bounds_below, draw, drawn_cuts, is_allowed
from tests.tree.growing import Grown, Growth, bin_for, grow_binned

# What sums of floats may differ by, in the units of a gain.
ROUNDING = 1e-12


def make_table(binned, labels, n_classes, counts=None, weights=None) -> tuple[reference.Table, list[int]]:
    """Return the reference's view of binned data, and the rows that were drawn."""
    columns = [
        [None if code == n else code for code in codes.tolist()] for codes, n in zip(binned.codes, binned.n_bins)
    ]
    rows = list(range(len(labels))) if counts is None else np.flatnonzero(counts).tolist()
    if weights is None:
        weights = [1] * len(labels) if counts is None else counts
    table = reference.Table(columns, [int(k) for k in labels], [int(w) for w in weights], n_classes)
    return table, rows


def make_rules(how: Growth) -> reference.Rules:
    """Return the same rules for the reference."""
    return reference.Rules(**{name: getattr(how, name) for name in reference.Rules._fields})


def threshold(values, cut: reference.Cut) -> float:
    """Return the value midway between the two sides."""
    if cut.next_code is None:
        return math.inf
    first = values.first[cut.feature]
    low, high = values.upper[first + cut.code], values.lower[first + cut.next_code]
    return low + (high - low) / 2


class Search(NamedTuple):
    """How the reference searches a node.

    cuts_of : rows, key -> the cuts there are, those that win ties first
    threshold_of : cut, rows, key -> the threshold
    signs : of monotonic constraints, one a feature
    is_exact : totals -> whether the engine ranks the cuts by integers, or by floats that hold them
    """

    cuts_of: Callable[..., Iterable[reference.Cut]]
    threshold_of: Callable[..., float]
    signs: tuple[int, ...]
    is_exact: Callable[..., bool]


def check_branch(grown: Grown, node: int, table, rows, key: int, rules, search: Search, depth=0, low=0.0, high=1.0):
    """Check every node below one: a best cut, in exact arithmetic the one that wins ties; a leaf only without one."""
    tree = grown.tree
    totals = table.totals(rows)
    assert grown.totals[node].tolist() == totals
    assert tree.n_samples[node] == len(rows)
    cuts = list(search.cuts_of(rows, key)) if reference.may_split(table, rows, depth, rules) else []
    if search.signs:
        cuts = [cut for cut in cuts if is_allowed(cut, table, search.signs, low, high)]
    most = max((cut.gain for cut in cuts), default=0)
    if tree.feature[node] < 0:
        assert most <= 10 * ROUNDING or most < rules.min_gain
        return
    chosen = [
        cut
        for cut in cuts
        if (tree.feature[node], tree.missing_left[node]) == (cut.feature, cut.missing_left)
        and math.isclose(tree.threshold[node], search.threshold_of(cut, rows, key), abs_tol=1e-9)
    ]
    assert len(chosen) == 1, f"node {node} holds a cut that is not allowed"
    cut = chosen[0]
    assert abs(tree.gain[node] - cut.gain) <= ROUNDING
    if search.is_exact(totals):
        assert cut is next(c for c in cuts if c.gain == most)
    else:
        assert cut.gain >= most - ROUNDING
        assert cut.gain > 0.1 * ROUNDING
    bounds = bounds_below(cut, table, search.signs, low, high) if search.signs else [(low, high)] * 2
    for side, below in enumerate((cut.left, cut.right)):
        child, child_key = int(tree.left_child[node]) + side, reference.derive_key(key, side)
        check_branch(grown, child, table, below, child_key, rules, search, depth + 1, *bounds[side])


def check_tree(
    X, labels, how: Growth, max_bins=255, wide=False, n_classes=None, counts=None, weights=None, name=None
) -> Grown:
    """Grow a tree and check every node of it; `name` is that of the criterion where it is a function."""
    n_classes = int(max(labels)) + 1 if n_classes is None else n_classes
    binned = bin_for(X, max_bins, wide)
    grown = grow_binned(binned, labels, how, n_classes, counts, weights)
    table, rows = make_table(binned, labels, n_classes, counts, weights)
    rules = make_rules(how if name is None else how._replace(criterion=name))

    def is_exact(totals) -> bool:
        present = [t for t in totals if t > 0]
        if len(present) != 2 or how.random or name is not None:
            return False
        return how.criterion == "auc" or (how.criterion == "gini" and sum(present) < 2**12)

    locations = places(binned)

    def cuts_of(rows, key):
        if how.random:
            return drawn_cuts(table, rows, key, rules, locations)
        return reference.all_cuts(table, rows, key, rules)

    def threshold_of(cut, rows, key) -> float:
        if not how.random or cut.next_code is None:
            return threshold(binned.values, cut)
        codes = sorted({table.columns[cut.feature][r] for r in rows} - {None})
        drawn = draw([locations[cut.feature][c] for c in codes], key, cut.feature, len(table.columns))
        first = binned.values.first[cut.feature]
        low, high = binned.values.upper[first + cut.code], binned.values.lower[first + cut.next_code]
        return drawn if low <= drawn < high else 0.5 * max(low, -LARGEST) + 0.5 * min(high, LARGEST)

    check_branch(grown, 0, table, rows, how.key, rules, Search(cuts_of, threshold_of, how.signs, is_exact))
    return grown


def places(binned) -> list[list[float]]:
    """Return where every code of every feature lies: in the middle of its bin, or at its finite end."""
    first, lower, upper = (part.tolist() for part in binned.values)
    middles = [
        high if low == -math.inf else low if high == math.inf else 0.5 * low + 0.5 * high
        for low, high in zip(lower, upper)
    ]
    return [middles[start:stop] for start, stop in pairwise(first)]


def random_data(seed: int, n_classes: int, n_rows=60, n_features=4, n_values=7, missing=0.15):
    """Draw small data full of ties: few values, some missing, classes that lean on the features, and one constant."""
    rng = np.random.default_rng(seed)
    n_values = rng.integers(2, n_values + 1, n_features)
    X = rng.integers(0, n_values, (n_rows, n_features)).astype(float) * 0.5 - 1.0
    lean = X[:, 0] - X[:, -1] + rng.normal(0, 1.5, n_rows)
    labels = np.clip(np.floor(lean + n_classes / 2), 0, n_classes - 1).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    X[:, rng.integers(n_features)] = rng.choice([np.nan, 3.0])
    return X, labels

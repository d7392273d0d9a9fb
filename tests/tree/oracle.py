"""Comparison of grown trees with those of the reference, which evaluates every split."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.reference import growing as reference
from tests.reference.tree import leaf_of
from tests.tree.growing import Grown, Growth, bin_for, canonical, grow_binned


def make_table(binned, labels, n_classes, counts=None, weights=None, by_set=()) -> tuple[reference.Table, list[int]]:
    """Return binned data in the form of the reference, and the rows in the bootstrap sample."""
    columns = [
        [None if code == n else code for code in codes.tolist()] for codes, n in zip(binned.codes, binned.values.n_bins)
    ]
    rows = list(range(len(labels))) if counts is None else np.flatnonzero(counts).tolist()
    if weights is None:
        weights = [1] * len(labels) if counts is None else counts
    first, lower, upper = (part.tolist() for part in binned.values)
    bins = tuple(list(zip(lower[start:stop], upper[start:stop])) for start, stop in pairwise(first))
    labels, weights = [int(k) for k in labels], [int(w) for w in weights]
    return reference.Table(columns, labels, weights, n_classes, bins, by_set), rows


def make_rules(how: Growth) -> reference.Rules:
    rules = reference.Rules(**{name: getattr(how, name) for name in reference.Rules._fields})
    return rules if isinstance(how.criterion, str) else rules._replace(criterion=how.criterion.py_func)


def threshold(bins, split: reference.Split) -> float:
    """Return the threshold that was sampled if it is between the values of both sides, else their middle."""
    if split.next_code is None:
        return math.inf
    low, high = bins[split.codes[-1]][1], bins[split.next_code][0]
    if low <= split.drawn < high:
        return split.drawn
    middle = 0.5 * max(low, -reference.LARGEST) + 0.5 * min(high, reference.LARGEST)
    return middle if low <= middle < high else low


def canonical_reference(root: reference.Node, table: reference.Table) -> list[tuple]:
    """Return the nodes of a tree of the reference in the form of `canonical`."""
    nodes = []
    for node in root:
        counted = len(node.rows), *table.totals(node.rows)
        split = node.split
        if split is None:
            nodes.append((-1, 0.0, False, (), 0.0, *counted))
            continue
        bins, gain = table.bins[split.feature], pytest.approx(float(split.gain), abs=1e-12)
        if split.feature in table.by_set:
            goes_left = np.full(255, split.missing_left)
            goes_left[[int(bins[c][0]) for c in {table.columns[split.feature][r] for r in node.rows} - {None}]] = False
            goes_left[[int(bins[code][0]) for code in split.codes]] = True
            index, left = 0.0, tuple(np.flatnonzero(goes_left).tolist())
        else:
            index, left = pytest.approx(threshold(bins, split), rel=1e-12, abs=1e-12), ()
        nodes.append((split.feature, index, split.missing_left, left, gain, *counted))
    return nodes


def check_tree(X, labels, how: Growth, max_bins=255, n_bytes=1, n_classes=None, counts=None, weights=None) -> Grown:
    """Grow a tree, check each of its nodes, and return the tree."""
    n_classes = int(max(labels)) + 1 if n_classes is None else n_classes
    binned = bin_for(X, max_bins, n_bytes)
    grown = grow_binned(binned, labels, how, n_classes, counts, weights)
    table, rows = make_table(binned, labels, n_classes, counts, weights, how.by_set)
    assert canonical(grown) == canonical_reference(reference.grow(table, rows, how.key, make_rules(how)), table)
    return grown


def check_trees(how: Growth, n_classes=None, max_bins=255, n_bytes=1, **data) -> list[Grown]:
    """Check trees of random data with each of the `weighings`; without n_classes, they have 2 and 3 classes in turn."""
    grown = []
    for seed in range(4):
        n_present = n_classes or 2 + seed % 2
        X, labels = random_data(seed, n_present, **data)
        X = 6 * X + 6 if how.by_set else X  # categories are every third integer from 0 on
        weighing = weighings(seed, len(X))[seed]
        grown.append(check_tree(X, labels, how._replace(key=seed), max_bins, n_bytes, n_present, **weighing))
    return grown


def check_rows_by_value(grown: Grown, X, labels, counts=None) -> None:
    """Check that rows reach the same leaves by their values as by their codes."""
    tree, counts = grown.tree, np.ones(len(X), dtype=int) if counts is None else counts
    leaves = np.array([leaf_of(tree, row) for row in X])
    for node in np.flatnonzero(tree.is_leaf):
        rows = np.flatnonzero((leaves == node) & (counts > 0))
        assert tree.n_samples[node] == len(rows)
        assert grown.totals[node].tolist() == np.bincount(labels[rows], counts[rows], tree.n_classes).tolist()


def weighings(seed: int, n_rows: int) -> list[dict]:
    """Return weights of rows in four forms: equal weights, the counts of a bootstrap sample, and fixed-point weights.

    Small fixed-point weights are for some of the rows, large ones for all rows.
    """
    rng = np.random.default_rng(seed)
    uniform, counts = rng.uniform(1, 2, n_rows), rng.poisson(1.2, n_rows)
    small, large = (np.rint(uniform * 2**bits) for bits in (3, 53))
    return [{}, {"counts": counts}, {"counts": counts > 0, "weights": small}, {"weights": large}]


def random_data(seed: int, n_classes: int, n_rows=60, n_features=4, n_values=7, missing=0.15):
    """Return random data with many ties: few values, some missing, a constant, and labels that depend on features."""
    rng = np.random.default_rng(seed)
    n_values = rng.integers(2, n_values + 1, n_features)
    X = rng.integers(0, n_values, (n_rows, n_features)).astype(float) * 0.5 - 1.0
    score = X[:, 0] - X[:, -1] + rng.normal(0, 1.5, n_rows)
    labels = np.clip(np.floor(score + n_classes / 2), 0, n_classes - 1).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    X[:, rng.integers(n_features)] = rng.choice([np.nan, 3.0])
    return X, labels


AWKWARD = [-reference.LARGEST, -1.0, -5e-324, 0.0, 5e-324, 1.0, np.nextafter(1, 2), 2.5, reference.LARGEST]
AWKWARD += [-np.inf, np.inf, np.nan]


@st.composite
def datasets(draw, most_classes=4):
    """Draw small matrices of awkward values, with labels and a bootstrap sample."""
    n_classes, n_features = draw(st.integers(2, most_classes)), draw(st.integers(1, 7))
    values = st.lists(st.sampled_from(AWKWARD) | st.floats(-9, 9), min_size=n_features, max_size=n_features)
    row = st.tuples(values, st.integers(0, n_classes - 1), st.integers(0, 3))
    X, labels, counts = (np.array(part) for part in zip(*draw(st.lists(row, min_size=1, max_size=50))))
    counts[0] = max(counts[0], 1)
    return X.astype(float), labels, counts, n_classes

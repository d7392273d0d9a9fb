"""Compare grown trees with the reference that tries every cut."""

import math

import numpy as np

from tests.reference import tree as reference
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


def same_cut(grown: Grown, node: int, cut: reference.Cut) -> bool:
    """Say whether a node of the tree holds this cut."""
    tree = grown.tree
    if (tree.feature[node], tree.missing_left[node]) != (cut.feature, cut.missing_left):
        return False
    return math.isclose(tree.threshold[node], threshold(grown.binned.values, cut), abs_tol=1e-9)


def check_branch(grown: Grown, node: int, table, rows, key: int, rules, depth: int, is_exact) -> None:
    """Check every node below one: a best cut, in exact arithmetic the one that wins ties; a leaf only without one."""
    tree = grown.tree
    totals = table.totals(rows)
    assert grown.totals[node].tolist() == totals
    assert tree.n_samples[node] == len(rows)
    cuts = list(reference.all_cuts(table, rows, key, rules)) if reference.may_split(table, rows, depth, rules) else []
    most = max((cut.gain for cut in cuts), default=0)
    if tree.feature[node] < 0:
        assert most <= 10 * ROUNDING or most < rules.min_gain
        return
    chosen = [cut for cut in cuts if same_cut(grown, node, cut)]
    assert len(chosen) == 1, f"node {node} holds a cut that is not allowed"
    cut = chosen[0]
    assert abs(tree.gain[node] - cut.gain) <= ROUNDING
    if is_exact(totals):
        assert cut is next(c for c in cuts if c.gain == most)
    else:
        assert cut.gain >= most - ROUNDING
        assert cut.gain > 0.1 * ROUNDING
    left = int(tree.left_child[node])
    check_branch(grown, left, table, cut.left, reference.derive_key(key, 0), rules, depth + 1, is_exact)
    check_branch(grown, left + 1, table, cut.right, reference.derive_key(key, 1), rules, depth + 1, is_exact)


def check_tree(X, labels, how: Growth, max_bins=255, wide=False, n_classes=None, counts=None, weights=None) -> Grown:
    """Grow a tree and check every node of it."""
    n_classes = int(max(labels)) + 1 if n_classes is None else n_classes
    binned = bin_for(X, max_bins, wide)
    grown = grow_binned(binned, labels, how, n_classes, counts, weights)
    table, rows = make_table(binned, labels, n_classes, counts, weights)

    def is_exact(totals) -> bool:
        """Say whether the engine ranks the cuts of a node by integers, or by floats that hold them."""
        present = [t for t in totals if t > 0]
        if len(present) != 2:
            return False
        return how.criterion == "auc" or (how.criterion == "gini" and sum(present) < 2**12)

    check_branch(grown, 0, table, rows, how.key, make_rules(how), 0, is_exact)
    return grown


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

"""Out-of-bag predictions equal those of the single trees; warnings about rows without them; random parts of rows."""

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score

from aucforest.fitting.bootstrap import BootstrapSampler, resolve_sampler
from aucforest.fitting.out_of_bag import Bags, parts_of_rows, warn_of_never_out
from aucforest.fitting.spec import tree_keys
from tests.estimators.data import UNSCORED, X4, Y4, make_table, small_forest

X, Y = make_table(n_rows=240, missing=0.1)


def slow_out_of_bag(model, table, labels, weights=None):
    """Return for each row the mean probability over the trees that did not sample it, NaN if all did."""
    kept = np.arange(len(table)) if weights is None else np.flatnonzero(weights)
    sampler = resolve_sampler(model.get_params(), labels[kept].astype(np.uint16), model.classes_)
    proba = np.full((len(table), len(model.classes_)), np.nan)
    counts = np.array([sampler.counts(key) for key in tree_keys(model._seed, range(len(model)))])
    by_tree = np.array([tree.predict_proba(table) for tree in model.estimators_])
    for index, row in enumerate(kept):
        is_out = counts[:, index] == 0
        if np.any(is_out):
            proba[row] = np.mean(by_tree[is_out, row], axis=0)
    return proba if model.calibration_ is None else model.calibration_.apply(proba)


@pytest.mark.parametrize(
    ("params", "weighted"),
    [
        ({}, False), ({"max_samples": 0.3, "n_jobs": 2}, True), ({"class_weight": "balanced_subsample"}, True),
        ({"sampling": "balanced"}, False), ({"sampling": "balanced", "calibration": None, "n_jobs": 2}, True),
        ({"sampling": {0: 0.2, 3: 2.0}}, True), ({"sampling": "subsample", "shrinkage": 0}, False),
    ],
    ids=str,
)  # fmt: skip
def test_out_of_bag_probabilities_equal_those_of_each_tree_alone(params, weighted):
    # More rows than a block of the sampler has.
    table, labels = np.tile(X4, (15, 1)), np.tile(Y4, 15)
    weights = np.random.default_rng(0).choice([0, 0.5, 1, 3], len(labels)) if weighted else None
    forest = small_forest(5, oob_score=True, max_depth=5, **params)
    with pytest.warns(UserWarning, match=UNSCORED.partition(":")[2]) as caught:
        forest.fit(table, labels, weights)
    expected = slow_out_of_bag(forest, table, labels, weights)
    np.testing.assert_allclose(forest.oob_decision_function_, expected, rtol=1e-13)
    scored = ~np.isnan(expected[:, 0])
    n_kept = len(labels) if weights is None else np.count_nonzero(weights)
    assert 0 < scored.sum() < n_kept
    assert str(caught[0].message).startswith(
        f"{n_kept - scored.sum()} of {n_kept} samples are in the training sample of every one of the 5 trees"
    )


def test_the_warning_of_a_single_row_or_tree():
    with pytest.warns(UserWarning, match="^1 of 6000 samples is in .* so it has .* and is ignored in oob_score_: "):
        warn_of_never_out(1, 6000, 20, "oob_score_")
    with pytest.warns(UserWarning, match="training sample of the only tree, so .*: use more trees$") as caught:
        small_forest(1, oob_score=True).fit(X, Y)
    assert caught[0].filename == __file__


def test_no_row_out_of_bag():
    with pytest.warns(UserWarning, match="^2 of 2 samples are in .* the only tree, .* ignored in oob_score_$"):
        forest = small_forest(1, oob_score=True, random_state=3).fit(X[:2], [0, 1])
    assert forest.trees_[0].n_samples[0] == 2
    assert np.isnan(forest.oob_score_)
    assert np.isnan(forest.oob_decision_function_).all()


@pytest.mark.filterwarnings(UNSCORED)
def test_one_class_out_of_bag():
    labels = np.arange(240) == 7
    with pytest.warns(UndefinedMetricWarning, match="^ROC AUC is not defined: a class has no weight"):
        forest = small_forest(1, oob_score=True).fit(X, labels)
    assert np.isnan(forest.oob_decision_function_[7]).all()
    assert np.isnan(forest.oob_score_)


def test_parts_hold_equal_numbers_of_each_class_and_whole_groups():
    labels = np.repeat([0, 1, 0, 2], [35, 20, 25, 10])
    parts = parts_of_rows(labels, None)
    for k, n_rows in enumerate(([6, 6], [2, 2], [1, 1])):
        counts = np.bincount(parts[labels == k], minlength=10)
        assert (counts.min(), counts.max()) == tuple(n_rows)
    # Every second group has a row of the rare class. Assigned in turn, these would be in only five parts.
    groups = np.repeat(np.arange(40), 3)
    labels = ((groups % 2 == 0) & (np.arange(120) % 3 == 0)).astype(int)
    parts = parts_of_rows(labels, groups)
    assert all(len(set(parts[groups == group])) == 1 for group in range(40))
    assert np.bincount(parts[labels == 1], minlength=10).tolist() == [2] * 10
    assert np.bincount(parts, minlength=10).tolist() == [12] * 10


def test_other_parts_do_not_predict_noise_of_rows_sorted_by_category():
    """Assigned in turn, the rows of each category in a part would have the same class frequencies as all its rows."""
    labels, category = np.random.default_rng(0).integers(0, 2, 4000), np.repeat(np.arange(200), 20)
    parts, scores = parts_of_rows(labels, None) % 5, np.empty(4000)
    for part in range(5):
        is_out = parts == part
        rates = np.bincount(category, labels * ~is_out) / np.bincount(category, ~is_out)
        scores[is_out] = rates[category[is_out]]
    # The AUC of each part, because a part with more positives has lower rates from the other parts.
    aucs = [roc_auc_score(labels[parts == part], scores[parts == part]) for part in range(5)]
    assert abs(np.mean(aucs) - 0.5) < 0.03


@pytest.mark.parametrize("kept", [None, np.arange(0, 20_000, 2)])
def test_counts_of_some_rows_are_those_of_all(kept):
    """Also without rows, and for rows at the ends of blocks."""
    rows = np.arange(20_000) if kept is None else kept
    bags = Bags(BootstrapSampler.for_rows(len(rows), 9_000, replace=True), [1, 2, 3], kept)
    counts = bags.counts_at(rows, range(3), 1)
    for first, stop in ((0, 0), (0, 5), (4_095, 4_097), (len(rows) - 1, len(rows))):
        np.testing.assert_array_equal(bags.counts_at(rows[first:stop], range(3), 1), counts[:, first:stop])

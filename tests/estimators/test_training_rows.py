"""Draws made anew are those of the fit, and other data are told from the training's."""

import numpy as np
import pytest

from aucforest.estimators.out_of_bag import training_rows
from tests.estimators.data import make_table, small_forest, walk

X, Y = make_table(n_rows=300, n_classes=3, missing=0.1)
LABELS = np.array(["a", "b", "c"])[Y]
WEIGHT = np.where(np.arange(300) % 5 == 0, 0.0, 1.0 + np.arange(300) % 2)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"max_samples": 0.3},
        {"sampling": "balanced"},
        {"sampling": "subsample"},
        {"sampling": {"a": 0.5}},
        {"max_bins": 5},
    ],
)
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_the_rows_drawn_are_those_that_fill_the_leaves(params, weight):
    forest = small_forest(4, max_depth=4, **params).fit(X, LABELS, weight)
    rows = training_rows(forest, X, LABELS, weight)
    counts = rows.counts(range(4))
    np.testing.assert_array_equal(rows.labels, Y)
    assert not counts[WEIGHT == 0].any() or weight is None
    np.testing.assert_array_equal(rows.counts(range(2, 4)), counts[:, 2:])
    weights = counts if weight is None else counts * weight[:, None]
    for tree, drawn, weighed in zip(forest.trees_, counts.T, weights.T):
        leaves = np.array([walk(tree, row)[-1] for row in X])
        for leaf in np.flatnonzero(tree.is_leaf):
            assert np.count_nonzero(drawn[leaves == leaf]) == tree.n_samples[leaf]
            assert weighed[leaves == leaf].sum() == pytest.approx(tree.weight[leaf])


SHUFFLED = np.random.default_rng(0).permutation(300)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (
            (X[:299], LABELS[:299], None),
            "the trees were grown on 300 of 300 samples, but with this data it would be 299 of 299 samples",
        ),
        (
            (X, LABELS, WEIGHT),
            "the trees were grown on 300 of 300 samples, but with this data it would be 240 of 240 samples",
        ),
        ((X[SHUFFLED], LABELS[SHUFFLED], None), "X must be the training samples in the order of fit"),
        ((X, LABELS[:299], None), "y has 299 samples, but X has 300"),
        ((X, np.where(Y == 2, "z", LABELS), None), "the label 'z'"),
        ((X, LABELS[SHUFFLED], None), "y must be the training labels in the order of fit"),
        ((X, LABELS, -np.ones(300)), "Negative values"),
    ],
)
def test_other_data_are_refused(data, sentence):
    forest = small_forest(3).fit(X, LABELS)
    with pytest.raises(ValueError, match=sentence):
        training_rows(forest, *data)


def test_forests_whose_draws_cannot_be_made_anew():
    with pytest.raises(ValueError, match="out-of-bag samples need a forest with bootstrap=True"):
        training_rows(small_forest(3, bootstrap=False).fit(X, LABELS), X, LABELS, None)
    grown = small_forest(3, warm_start=True, calibration=None).fit(X[:200], LABELS[:200])
    grown.set_params(n_estimators=5).fit(X, LABELS)
    with pytest.raises(ValueError, match="the trees were grown on 200 of 200 samples, 300 of 300 samples"):
        training_rows(grown, X, LABELS, None)

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import precision_recall_curve

from aucforest.metrics import (
    bootstrap_interval,
    gains_curve,
    precision_at_k,
    recall_at_fpr,
    recall_at_k,
    recall_at_precision,
    roc_curve,
)
from tests.metrics.strategies import random_rows, two_classes
from tests.reference import metrics as reference


@settings(max_examples=100, deadline=None)
@given(two_classes(), st.floats(0.01, 1.0))
def test_proportions_of_samples_are_as_defined(rows, k):
    positive, scores, weights = rows
    for known in (None, weights):
        total = len(scores) if known is None else known.sum()
        found = reference.positives_among_first(k * total, positive, scores, known)
        of_all = np.sum(positive if known is None else known[positive])
        assert precision_at_k(positive, scores, k, sample_weight=known) == pytest.approx(found / (k * total))
        assert recall_at_k(positive, scores, k, sample_weight=known) == pytest.approx(found / of_all)


def test_ties_at_the_boundary_are_averaged_over_their_orders():
    positive, scores = np.array([1, 0, 0, 1, 1, 0]), np.array([3, 2, 2, 2, 2, 1])
    found = []
    for tied in permutations([1, 2, 3, 4]):
        found.append(positive[[0, *tied, 5]][:3].mean())
    assert precision_at_k(positive, scores, 3) == pytest.approx(np.mean(found))


def test_a_number_of_samples_is_a_proportion_of_them():
    positive, scores, weights = random_rows(200, levels=5)
    assert precision_at_k(positive, scores, 50) == precision_at_k(positive, scores, 0.25)
    assert recall_at_k(positive, scores, 200) == 1.0
    assert recall_at_k(positive, scores, 1.0, sample_weight=weights) == 1.0
    doubled = {"sample_weight": np.full(200, 2.0)}
    assert precision_at_k(positive, scores, 100, **doubled) == precision_at_k(positive, scores, 50)


def test_k_is_an_integer_of_numpy_as_well():
    assert precision_at_k([0, 1, 1], [1, 2, 3], np.int64(1)) == 1.0


@settings(max_examples=100, deadline=None)
@given(two_classes(), st.floats(0.01, 1.0))
def test_recall_at_a_bound_is_that_of_the_best_threshold(rows, bound):
    positive, scores, weights = rows
    for known in (None, weights):
        fpr, tpr, _ = roc_curve(positive, scores, sample_weight=known, drop_intermediate=False)
        # a bound may be met up to rounding only
        expected = {tpr[fpr <= bound * (1.0 + tiny)].max() for tiny in (-1e-12, 1e-12)}
        assert min(abs(recall_at_fpr(positive, scores, bound, sample_weight=known) - e) for e in expected) < 1e-12
        # of ranks, since scikit-learn adds scores up, which may overflow
        ranks = np.unique(scores, return_inverse=True)[1]
        precision, recall, _ = precision_recall_curve(positive, ranks, sample_weight=known)
        # the last point of scikit-learn is no threshold; rounding apart
        expected = {recall[:-1][precision[:-1] >= bound * (1.0 + tiny)].max(initial=0.0) for tiny in (-1e-12, 1e-12)}
        assert min(abs(recall_at_precision(positive, scores, bound, sample_weight=known) - e) for e in expected) < 1e-12


def test_gains_are_recall_at_each_proportion():
    positive, scores, weights = random_rows(300, levels=4)
    proportion, gain, thresholds = gains_curve(positive, scores, sample_weight=weights)
    assert thresholds[0] == np.inf
    np.testing.assert_array_equal(thresholds[1:], np.unique(scores)[::-1])
    for k, expected in zip(proportion[1:], gain[1:]):
        assert recall_at_k(positive, scores, min(k, 1.0), sample_weight=weights) == pytest.approx(expected)
    assert (proportion[0], gain[0], gain[-1]) == (0.0, 0.0, 1.0)


def test_labels_of_all_kinds():
    scores = [0.1, 0.2, 0.3]
    assert precision_at_k(["bad", "good", "bad"], scores, 1, pos_label="bad") == 1.0
    assert precision_at_k(["bad", "good", "bad"], scores, 1) == 0.0


def test_without_positives_recall_is_not_defined():
    for metric, bound in ((recall_at_k, 1), (recall_at_precision, 0.5), (recall_at_fpr, 0.5)):
        with pytest.warns(UndefinedMetricWarning, match="recall is not defined"):
            assert np.isnan(metric([0, 0], [1, 2], bound))
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(gains_curve([0, 0], [1, 2])[1]).all()
    assert precision_at_k([0, 0], [1, 2], 1) == 0.0


@pytest.mark.parametrize("k", [0, 3, -1, 0.0, 1.5, True, float("nan")])
def test_bad_k(k):
    with pytest.raises(ValueError, match=r"^k must be"):
        precision_at_k([0, 1], [1, 2], k)


def test_bad_bounds_and_weights():
    with pytest.raises(ValueError, match=r"precision must be in \(0, 1\], but is 0"):
        recall_at_precision([0, 1], [1, 2], 0)
    with pytest.raises(ValueError, match=r"fpr must be in \[0, 1\], but is 2"):
        recall_at_fpr([0, 1], [1, 2], 2)
    with pytest.raises(ValueError, match="sample_weight is 0 for every sample"):
        precision_at_k([0, 1], [1, 2], 1, sample_weight=[0, 0])


def test_bootstrap_intervals_cover():
    covered = []
    for seed in range(60):
        positive, scores, _ = random_rows(400, seed=seed)
        _, low, high = bootstrap_interval(precision_at_k, positive, scores, 0.2, n_resamples=200, random_state=seed)
        covered.append(low <= 0.615 <= high)
    # the mean over 2,000,000 rows is 0.615; of 60 intervals of 95 % fewer than 50 cover it once in 2,000 times or so
    assert sum(covered) >= 50


def test_bootstrap_intervals_are_reproducible_and_weighted():
    positive, scores, weights = random_rows(100)
    known = {"sample_weight": weights, "n_resamples": 50, "random_state": 3}
    first = bootstrap_interval(recall_at_k, positive, scores, 0.1, **known)
    assert first == bootstrap_interval(recall_at_k, np.where(positive, "yes", "no"), scores, 0.1, **known)
    assert first[0] == recall_at_k(positive, scores, 0.1, sample_weight=weights)
    assert first[1] <= first[0] <= first[2]
    with pytest.raises(ValueError, match="level must be in"):
        bootstrap_interval(recall_at_k, positive, scores, 0.1, level=1.0)

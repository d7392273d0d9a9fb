"""The metrics of a report against scikit-learn, scipy and plain counting."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    precision_recall_curve,
    recall_score,
    roc_auc_score,
)
from sklearn.model_selection import FixedThresholdClassifier

from aucforest.estimators.out_of_bag import training_rows
from aucforest.metrics import auc_confidence_interval
from aucforest.report.metrics import (
    RECALLS,
    auc_by_trees,
    compute_scores,
    cost_matrix,
    cumulate_class,
    find_thresholds,
    metric_function,
    reliability,
    resample,
    thin,
)
from aucforest.report.rows import score_rows
from tests.estimators.data import small_forest
from tests.report.pages import TEST, TRAIN, X, Y

WEIGHT = 1.0 + np.arange(200) % 3


@pytest.fixture(scope="module")
def model():
    return LogisticRegression().fit(X[TRAIN], Y[TRAIN])


def shifted_rows(n_rows, frequency, shift):
    """Return rows of one feature that is greater for positive rows, and its values."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n_rows, 1)), rng.random(n_rows) < frequency
    x[y] += shift
    return score_rows(LogisticRegression().fit(x, y), x, y, None), x[:, 0]


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_scores_are_those_of_scikit_learn(forest, weight):
    rows = score_rows(forest, X[TEST], Y[TEST], weight)
    y, p = Y[TEST], forest.predict_proba(X[TEST])[:, 1]
    frequency = np.average(y, weights=weight)
    recalls = recall_score(y, forest.predict(X[TEST]), average=None, sample_weight=weight)
    no_skill = log_loss(y, np.full(200, frequency), sample_weight=weight)
    expected = {
        "ROC AUC": (roc_auc_score(y, p, sample_weight=weight), 0.5),
        "average precision": (average_precision_score(y, p, sample_weight=weight), frequency),
        "Brier score": (brier_score_loss(y, p, sample_weight=weight), frequency * (1 - frequency)),
        "log loss": (log_loss(y, p, sample_weight=weight), no_skill),
        "G-mean": (np.sqrt(np.prod(recalls)), 0.0),
    }
    scores = compute_scores(rows, resample(rows, 20, 0))
    assert {score.name: pytest.approx((score.value, score.no_skill)) for score in scores} == expected
    assert all(score.low <= score.value <= score.high for score in scores)
    assert scores[0][1:4] == auc_confidence_interval(y, p, sample_weight=weight)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_bins_of_the_calibration_hold_what_lies_between_their_ends(model, weight):
    rows = score_rows(model, X[TEST], Y[TEST], weight)
    bins, proba = reliability(rows, 1), rows.scores[:, 1]
    assert sum(each.n_rows for each in bins) == len(proba)
    assert all(first.most < second.least for first, second in pairwise(bins))
    for each in bins:
        inside = (proba >= each.least) & (proba <= each.most)
        weights = rows.weights[inside]
        assert each.n_rows == inside.sum()
        assert each.mean == pytest.approx(np.average(proba[inside], weights=weights))
        assert each.observed == pytest.approx(np.average(rows.labels[inside], weights=weights))
        if weight is None:
            interval = binomtest(int(rows.labels[inside].sum()), int(inside.sum())).proportion_ci(method="wilson")
            assert (each.low, each.high) == pytest.approx(tuple(interval), abs=1e-12)


def test_bins_hold_like_parts_of_both_classes():
    rows, _ = shifted_rows(20_000, 0.01, 1.0)
    negative, positive = rows.totals
    parts = [bin_.n_rows * (bin_.observed / positive + (1 - bin_.observed) / negative) for bin_ in reliability(rows, 1)]
    assert parts == pytest.approx([0.2] * 10, abs=0.01)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_curves_of_drawn_rows_are_those_of_scikit_learn(model, weight):
    rows = score_rows(model, X[TEST], Y[TEST], weight)
    drawn = np.random.default_rng(1).integers(0, 200, 200)
    times = np.bincount(drawn, minlength=200)
    found = metric_function(rows, 2000)(rows.weights * times)
    y, p, weights = rows.labels[drawn], rows.scores[drawn, 1], rows.weights[drawn]
    assert found["average_precision"] == pytest.approx(average_precision_score(y, p, sample_weight=weights))
    expected, recall, _ = precision_recall_curve(y, p, sample_weight=weights)
    # of all points that find at least so much, the one of the greatest threshold
    firsts = [np.flatnonzero(recall[:-1] >= level - 1e-12)[-1] for level in RECALLS[1:]]
    assert found["precision"][1:] == pytest.approx(expected[firsts])


def test_merging_scores_hardly_changes_a_curve():
    rows, x = shifted_rows(40_000, 0.01, 1.5)
    area = metric_function(rows, 2000)(np.ones(40_000))["average_precision"]
    assert area == pytest.approx(average_precision_score(rows.labels, x), abs=2e-3)


def test_thinned_curves_keep_their_area(model):
    cumulated = cumulate_class(score_rows(model, X[TEST], Y[TEST], None), 1)
    indices = thin(cumulated, 60)
    assert len(indices) <= 62
    fpr, tpr = cumulated.fps[indices] / cumulated.fps[-1], cumulated.tps[indices] / cumulated.tps[-1]
    exact = roc_auc_score(Y[TEST], model.predict_proba(X[TEST])[:, 1])
    assert np.trapezoid(tpr, fpr) == pytest.approx(exact, abs=0.005)
    assert {0, cumulated.tps.size - 1, 7} <= set(thin(cumulated, 30, (7,)).tolist())


def test_intervals_of_drawn_rows_are_as_wide_as_the_spread_of_means(model):
    rows = score_rows(model, X[TEST], Y[TEST], None)
    losses = np.square(rows.scores[:, 1] - rows.labels)
    within = [losses[rows.labels == k].var() * np.mean(rows.labels == k) for k in (0, 1)]
    resamples = resample(rows, 400, 0)
    assert len(resamples["precision"]) == 400
    assert resamples["brier"].std() == pytest.approx(np.sqrt(sum(within) / 200), rel=0.12)
    (brier,) = (score for score in compute_scores(rows, resamples) if score.name == "Brier score")
    assert [brier.low, brier.high] == np.quantile(resamples["brier"], [0.025, 0.975]).tolist()


def test_the_last_point_by_trees_is_the_score_of_the_forest():
    forest = small_forest(40, oob_score=True, threshold="gmean").fit(X, Y)
    points = auc_by_trees(forest, training_rows(forest, X, Y, None))
    assert points[-1, :2].tolist() == [40, forest.oob_score_]
    assert (np.diff(points[:, [2, 1, 3]]) > 0).all()


def test_costs_are_those_of_the_forest(model):
    assert cost_matrix(small_forest(threshold={"cost": [[1, 3], [7, 0]]})).tolist() == [[1, 3], [7, 0]]
    of_rows = [[[0, 1], [4, 0]], [[0, 3], [6, 0]]]
    assert cost_matrix(small_forest(threshold={"cost": of_rows})).tolist() == [[0, 2], [5, 0]]
    budget = {"alerts": 0.1}
    assert cost_matrix(small_forest(threshold=budget | {"cost": [[1, 3], [7, 0]]})).tolist() == [[1, 3], [7, 0]]
    for other in (*(small_forest(threshold=rule) for rule in (budget, budget | {"cost": "fit"}, "gmean")), model):
        assert cost_matrix(other) is None


def test_the_threshold_of_a_model_is_found():
    for threshold in (0.0, 0.3, 0.9, 1.0):
        model = FixedThresholdClassifier(LogisticRegression(), threshold=threshold).fit(X[TRAIN], Y[TRAIN])
        found = find_thresholds(score_rows(model, X[TEST], Y[TEST], None))
        called = confusion_matrix(Y[TEST], model.predict(X[TEST]))[:, 1]
        assert [found.fp[found.model_index], found.tp[found.model_index]] == called.tolist()


def test_few_of_many_scores_are_kept_with_the_least_cost_of_all():
    rows, _ = shifted_rows(6000, 0.3, 1.0)
    y, scores, found = rows.labels == 1, rows.scores[:, 1], find_thresholds(rows)
    tp, fp = found.tp, found.fp
    assert len(tp) <= 600
    thresholds = found.thresholds[:-1, None]
    np.testing.assert_array_equal(tp[:-1], np.sum(y & (scores >= thresholds), axis=1))
    np.testing.assert_array_equal(fp[:-1], np.sum(~y & (scores >= thresholds), axis=1))
    steps = np.abs(np.diff(tp)) / y.sum() + np.abs(np.diff(fp)) / np.sum(~y)
    assert steps.max() < 0.02
    cuts = np.append(np.unique(scores), np.inf)
    all_fp = np.array([np.sum(~y & (scores >= cut)) for cut in cuts])
    all_fn = np.array([np.sum(y & (scores < cut)) for cut in cuts])
    for cost in [(7, 1), (3, 1), (2, 1), (3, 2), (1, 1), (2, 3), (1, 2), (1, 3), (1, 7)]:
        kept = cost[0] * fp + cost[1] * (y.sum() - tp)
        assert kept.min() == np.min(cost[0] * all_fp + cost[1] * all_fn)

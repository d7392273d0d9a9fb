"""The metrics of a report against scikit-learn, scipy and plain counting."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn import metrics as expected_metrics
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

from aucforest.metrics import auc_confidence_interval
from aucforest.report import metrics
from aucforest.report.rows import score_rows
from tests.estimators.data import small_forest
from tests.report.pages import TEST, TRAIN, X, Y

WEIGHT = 1.0 + np.arange(200) % 3
weights = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])


def rows_of(model, weight=None):
    return score_rows(model, X[TEST], Y[TEST], weight)


@pytest.fixture(scope="module")
def model():
    return LogisticRegression().fit(X[TRAIN], Y[TRAIN])


def shifted_rows(n_rows, frequency):
    """Return rows of one feature that is greater for positive rows."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n_rows, 1)), rng.random(n_rows) < frequency
    x[y] += 1.0
    return score_rows(LogisticRegression().fit(x, y), x, y, None)


@weights
def test_metrics_are_those_of_scikit_learn(forest, weight):
    rows, y, p = rows_of(forest, weight), Y[TEST], forest.predict_proba(X[TEST])[:, 1]
    frequency = np.average(y, weights=weight)
    recalls = expected_metrics.recall_score(y, forest.predict(X[TEST]), average=None, sample_weight=weight)

    def of(metric, scores=p):
        return getattr(expected_metrics, metric)(y, scores, sample_weight=weight)

    expected = {
        "ROC AUC": (of("roc_auc_score"), 0.5),
        "average precision": (of("average_precision_score"), frequency),
        "Brier score": (of("brier_score_loss"), frequency * (1 - frequency)),
        "log loss": (of("log_loss"), of("log_loss", np.full(200, frequency))),
        "G-mean": (np.sqrt(np.prod(recalls)), 0.0),
    }
    resamples = metrics.resample(rows, 20, 0)
    found = {metric.name: metric for metric in metrics.compute_metrics(rows, resamples)}
    assert {name: pytest.approx((metric.value, metric.no_skill)) for name, metric in found.items()} == expected
    assert all(metric.low <= metric.value <= metric.high for metric in found.values())
    assert found["ROC AUC"][1:4] == auc_confidence_interval(y, p, sample_weight=weight)
    assert list(found["Brier score"][2:4]) == np.quantile(resamples["brier"], [0.025, 0.975]).tolist()


@weights
def test_calibration_bins_contain_the_rows_between_their_ends(model, weight):
    rows = rows_of(model, weight)
    bins, proba = metrics.reliability(rows, 1), rows.scores[:, 1]
    assert sum(each.n_rows for each in bins) == len(proba)
    assert all(first.most < second.least for first, second in pairwise(bins))
    for each in bins:
        inside = (proba >= each.least) & (proba <= each.most)
        labels, of_bin = rows.labels[inside], rows.weights[inside]
        assert each.n_rows == inside.sum()
        assert each.mean == pytest.approx(np.average(proba[inside], weights=of_bin))
        assert each.observed == pytest.approx(np.average(labels, weights=of_bin))
        if weight is None:
            interval = binomtest(int(labels.sum()), len(labels)).proportion_ci(method="wilson")
            assert (each.low, each.high) == pytest.approx(tuple(interval), abs=1e-12)


def test_calibration_bins_have_equal_sums_of_class_proportions():
    rows = shifted_rows(20_000, 0.01)
    negative, positive = rows.totals
    bins = metrics.reliability(rows, 1)
    parts = [each.n_rows * (each.observed / positive + (1 - each.observed) / negative) for each in bins]
    assert parts == pytest.approx([0.2] * 10, abs=0.01)


@weights
def test_metrics_of_bootstrap_samples_are_those_of_scikit_learn(model, weight):
    rows, drawn = rows_of(model, weight), np.random.default_rng(1).integers(0, 200, 200)
    found = metrics.metric_function(rows, 2000)(rows.weights * np.bincount(drawn, minlength=200))
    how = {"sample_weight": rows.weights[drawn]}
    y, p = rows.labels[drawn], rows.scores[drawn, 1]
    assert found["average_precision"] == pytest.approx(expected_metrics.average_precision_score(y, p, **how))
    expected, recall, _ = expected_metrics.precision_recall_curve(y, p, **how)
    # the points with the highest threshold among those with at least these recalls
    firsts = [np.flatnonzero(recall[:-1] >= level - 1e-12)[-1] for level in metrics.RECALLS[1:]]
    assert found["precision"][1:] == pytest.approx(expected[firsts])


def test_thinned_curves_keep_their_ends(model):
    # The last threshold has the same rates as the one before, as if its samples had a negligible weight.
    cumulated = metrics.Cumulated(*(np.append(part, part[-1]) for part in metrics.cumulate_class(rows_of(model), 1)))
    indices = metrics.thin(cumulated, 30, (7,)).tolist()
    assert {0, cumulated.tps.size - 1, 7} <= set(indices)
    assert len(indices) <= 33


def test_costs_are_those_of_the_forest(model):
    of_rows = [[[0, 1], [4, 0]], [[0, 3], [6, 0]]]
    assert metrics.cost_matrix(small_forest(threshold={"cost": of_rows})).tolist() == [[0, 2], [5, 0]]
    within_budget = small_forest(threshold={"alerts": 0.1, "cost": [[1, 3], [7, 0]]})
    assert metrics.cost_matrix(within_budget).tolist() == [[1, 3], [7, 0]]
    for rule in ({"alerts": 0.1}, {"alerts": 0.1, "cost": "fit"}, "gmean"):
        assert metrics.cost_matrix(small_forest(threshold=rule)) is None
    assert metrics.cost_matrix(model) is None


def test_the_threshold_of_a_model_is_found():
    for threshold in (0.0, 0.3, 0.9, 1.0):
        model = FixedThresholdClassifier(LogisticRegression(), threshold=threshold).fit(X[TRAIN], Y[TRAIN])
        found = metrics.find_thresholds(rows_of(model))
        called = expected_metrics.confusion_matrix(Y[TEST], model.predict(X[TEST]))[:, 1]
        assert [found.fp[found.model_index], found.tp[found.model_index]] == called.tolist()


def test_thresholds_of_least_cost_are_kept():
    rows = shifted_rows(6000, 0.3)
    y, scores, found = rows.labels == 1, rows.scores[:, 1], metrics.find_thresholds(rows)
    tp, fp = found.tp, found.fp
    assert len(tp) <= 600
    for counts, of_class in ((tp, y), (fp, ~y)):
        np.testing.assert_array_equal(counts[:-1], np.sum(of_class & (scores >= found.thresholds[:-1, None]), axis=1))
    steps = np.abs(np.diff(tp)) / y.sum() + np.abs(np.diff(fp)) / np.sum(~y)
    assert steps.max() < 0.02
    cuts = np.append(np.unique(scores), np.inf)
    all_fp, all_tp = (np.array([np.sum(of_class & (scores >= cut)) for cut in cuts]) for of_class in (~y, y))
    for cost in [(7, 1), (3, 1), (2, 1), (3, 2), (1, 1), (2, 3), (1, 2), (1, 3), (1, 7)]:
        kept, every = (cost[0] * fps + cost[1] * (y.sum() - tps) for fps, tps in ((fp, tp), (all_fp, all_tp)))
        assert kept.min() == every.min()

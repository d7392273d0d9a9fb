"""Metrics of predicted classes against recorded cases, scikit-learn and finite differences; alert limits."""

import warnings
from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn import metrics as sk
from sklearn.metrics import roc_auc_score

from aucforest.metrics import precision_at_k, recall_at_k
from aucforest.monitoring import CBPE, Chunks, expected_confusion_matrix
from aucforest.monitoring._rows import Rows, label_variance
from aucforest.monitoring.metrics import THRESHOLD_METRICS, EstimatedMetric, alert_limits, find_metrics
from tests.monitoring.data import ONE, binary_cases, drawn, load, only


@pytest.mark.parametrize("case", [c for c in load("cbpe_unit")["thresholds"] if c["std_mult"] in ([3, 3], [0, 0])])
def test_recorded_limits(case):
    values = np.array([value for value in case["values"] if value is not None])
    limits = alert_limits(EstimatedMetric("m", len, *case["limits"]), values, case["std_mult"][0])
    assert limits == pytest.approx(tuple(case["result"]), abs=1e-12)


def test_estimates_beyond_the_limits_are_alerts():
    score, y_true = drawn(4000, power=1.0)
    cbpe = CBPE(calibration="none").fit(y_score=score, y_true=y_true, chunks=Chunks.by_size(500))
    lower, upper = cbpe.limits_["roc_auc"]
    assert lower < roc_auc_score(y_true, score) < upper
    vague = 0.4 + 0.2 * score  # the same ranks, but a lower expected AUC
    sharp = np.where(score > 0.5, 0.98, 0.02)
    rows = [only(cbpe.estimate(new, chunks=ONE)) for new in (score, vague, sharp)]
    assert [row.alert for row in rows] == [False, True, True]
    assert rows[1].estimate < lower == rows[1].lower_limit
    assert rows[2].estimate > upper == rows[2].upper_limit


def test_rounding_errors_raise_no_alert():
    """If classes are perfectly separated, both limits are 1, and estimates are 1 except for rounding errors."""
    y_true = np.random.default_rng(0).random(1000) < 0.3
    cbpe = CBPE(["average_precision"], calibration="none").fit(y_true=y_true, y_score=y_true.astype(float))
    assert cbpe.limits_["average_precision"] == (1.0, 1.0)
    for value, alert in ((1.0, False), (0.999, True)):
        row = only(cbpe.estimate(np.where(y_true, value, 1.0 - value), chunks=ONE), "average_precision")
        assert row.alert is alert
        assert row.estimate < 1.0


@pytest.mark.filterwarnings("ignore:the ranking is inverted")
def test_if_reference_values_are_equal_alerts_need_an_interval():
    """Recall at K is 0 in all chunks of the reference, so an alert needs an interval that excludes 0."""
    score = 0.02 * drawn(1000)[0]
    y_true = np.zeros(1000, dtype=int)
    y_true[np.flatnonzero(score < np.quantile(score, 0.7))[::70]] = 1
    cbpe = CBPE(["recall_at_0.1"], calibration="none").fit(y_true=y_true, y_score=score)
    assert cbpe.limits_["recall_at_0.1"] == (0.0, 0.0)
    (row,) = cbpe.estimate(score[:200], chunks=ONE).estimates
    assert row.low == 0.0 < row.estimate
    assert row.alert is False


def test_limits_of_counts_are_for_the_rows_of_the_chunk():
    """A chunk with a fifth of the rows has about a fifth of the true positives, which is no reason for an alert."""
    score, y_true = drawn(4000, power=1.0)
    y_pred = score > 0.4
    day = np.minimum(np.arange(4000) * 16 // 4000, 14)  # 14 days of 250 rows, then one of 500
    days = Chunks.by_period(np.datetime64("2024-01-01") + day, "D")
    cbpe = CBPE(["confusion_matrix"], calibration="none").fit(y_score=score, y_true=y_true, y_pred=y_pred, chunks=days)
    rates = np.bincount(day, y_true * y_pred) / np.bincount(day)
    expected = 4000 / 15 * (rates.mean() + 3 * rates.std() * np.array([-1, 1]))
    assert cbpe.limits_["true_positive"] == pytest.approx(tuple(expected))
    large = cbpe.estimate(score, y_pred=y_pred, chunks=ONE).of("true_positive")[0]
    assert (large.lower_limit, large.upper_limit) == pytest.approx(tuple(expected * 15))
    small = cbpe.estimate(score, y_pred=y_pred, chunks=Chunks.by_size(50)).of("true_positive")
    farther = rates.mean() + 3 * rates.std() * np.sqrt(4000 / 15 / 50) * np.array([-1, 1])
    assert (small[0].lower_limit, small[0].upper_limit) == pytest.approx(tuple(50 * farther))
    assert np.mean([row.alert for row in small]) < 0.05


@pytest.mark.parametrize(
    ("chunks", "n", "missing"),
    [
        (Chunks.by_size(3000), 0, "alert limits: they need two"),
        (Chunks.by_size(1500), 1, "alert limits: they need two"),
        (Chunks.by_size(1000), 2, "limits of shifts: they need three"),
    ],
)
def test_a_reference_of_too_few_chunks_leaves_alerts_undefined(chunks, n, missing):
    """Alerts are not False, whatever shifts. Each of two chunks is compared with the other, which is one comparison."""
    score, y_true = drawn(power=1.0)
    advice = "so that alerts are undefined: fit with smaller chunks, such as 200 of 2000 samples"
    with pytest.warns(UserWarning, match=f"no {missing} full reference chunks, but there are {n}, {advice}"):
        cbpe = CBPE(calibration="none").fit(y_true=y_true, y_score=score, chunks=chunks)
    for new, alert in ((score, None), (expit(logit(score) + 3.0), None if n < 2 else True)):
        result = cbpe.estimate(new, chunks=ONE)
        row = only(result)
        assert np.isnan([row.lower_limit, row.upper_limit]).all() == (n < 2)
        assert row.alert is alert
        assert result.shifts[row.chunk].valid is None
    assert f"{1 if n == 2 else 0} alerts" in repr(result)


@pytest.mark.filterwarnings("ignore:the alert limits of accuracy .* are so wide:UserWarning")
def test_metrics_that_are_defined_in_too_few_chunks_have_no_limits():
    score, y_true = drawn(1000)
    y_true = y_true * (np.arange(1000) < 100)
    with pytest.warns(
        UserWarning, match="no alert limits of roc_auc: they need two .* but there are 1 of 10: fit with"
    ):
        cbpe = CBPE(["roc_auc", "accuracy"]).fit(y_true=y_true, y_score=score, y_pred=score > 0.5)
    result = cbpe.estimate(score[:200], y_pred=score[:200] > 0.5, chunks=ONE)
    assert only(result).alert is None
    assert only(result, "accuracy").alert is False


@pytest.mark.parametrize("n", [3, 10])
def test_limits_that_no_shift_could_cross_leave_alerts_undefined(n):
    """Of three chunks of 30 samples PSI limits are about 10, and the greatest PSI is about 3."""
    score, y_true = drawn(30 * n, seed=1)
    cbpe = CBPE(calibration="none", metrics=["average_precision"]).fit(
        y_true=y_true, y_score=score, chunks=Chunks.by_number(n)
    )
    expected = pytest.warns(UserWarning, match="no shift could be beyond its limits in ") if n == 3 else nullcontext()
    with expected:
        (shift,) = cbpe.estimate(expit(logit(score[:30]) + 9.0), chunks=ONE).shifts.values()
    assert shift.valid is (None if n == 3 else False)


NAMES = sorted(THRESHOLD_METRICS)
CASES = [case for case in binary_cases() if 0 < sum(case["p"]) < len(case["p"])]
COST = [[-1.0, 5.0], [2.0, -3.0]]


def recorded_rows(case):
    """Return the rows of a recorded case."""
    return Rows([], np.array(case["p"])[:, None], np.array(case["yhat"], dtype=np.uint32))


def metric(name, n_classes=2, normalize=None, cost=None):
    """Return a metric by name; of a confusion matrix all cells."""
    return find_metrics([name], np.arange(n_classes), "ovo", normalize, cost)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_recorded_cases(case):
    for name in NAMES:
        (recorded_metric,) = metric(name)
        estimate = recorded_metric.estimate(recorded_rows(case))
        if name == "precision" and not any(case["yhat"]):
            assert np.isnan(estimate.value)
            continue
        assert estimate.value == pytest.approx(case["nannyml"][name], abs=1e-12)
        recorded = case["closed_form"].get(name)
        if recorded and recorded["var"] is not None:
            assert estimate.value == pytest.approx(recorded["value"], abs=1e-12)
            assert label_variance(recorded_rows(case).p, estimate.influence) == pytest.approx(
                recorded["var"], abs=1e-12
            )


def random_rows(n_classes, n=60, seed=0):
    """Return probabilities, random labels with these probabilities and predictions."""
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.ones(n_classes), size=n)
    y_true = (random.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    return p, y_true, random.integers(0, n_classes, n).astype(np.uint32)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_known_labels_give_the_ordinary_metrics(n_classes):
    _, y_true, y_pred = random_rows(n_classes)
    known = np.eye(n_classes)[y_true]
    rows = Rows([], known[:, 1:] if n_classes == 2 else known, y_pred)
    average = {"average": "binary" if n_classes == 2 else "macro"}
    expected = {
        "accuracy": sk.accuracy_score(y_true, y_pred),
        "precision": sk.precision_score(y_true, y_pred, **average),
        "recall": sk.recall_score(y_true, y_pred, **average),
        "f1": sk.f1_score(y_true, y_pred, **average),
        "specificity": specificity(y_true, y_pred, n_classes),
    }
    for name in NAMES:
        assert metric(name, n_classes)[0].estimate(rows).value == pytest.approx(expected[name], abs=1e-12)
    for normalize in (None, "all", "true", "pred"):
        matrix = sk.confusion_matrix(y_true, y_pred, normalize=normalize)
        p = rows.p[:, 0] if n_classes == 2 else rows.p
        np.testing.assert_allclose(
            expected_confusion_matrix(y_pred=y_pred, p=p, normalize=normalize), matrix, atol=1e-12
        )
        cells = [cell.estimate(rows).value for cell in metric("confusion_matrix", n_classes, normalize)]
        np.testing.assert_allclose(cells, matrix.ravel(), atol=1e-12)


def specificity(y_true, y_pred, n_classes):
    """Return the recall of "not this class", for the positive class or on average."""
    classes = [1] if n_classes == 2 else range(n_classes)
    return np.mean([sk.recall_score(y_true != c, y_pred != c) for c in classes])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("normalize", [None, "all", "true", "pred"])
def test_influence_is_the_derivative(n_classes, normalize):
    p, _, y_pred = random_rows(n_classes)
    rows = Rows([], p[:, 1:] if n_classes == 2 else p, y_pred)
    cost = np.arange(n_classes**2, dtype=float).reshape(n_classes, n_classes)
    np.fill_diagonal(cost, -1.0)
    names = [*NAMES, "confusion_matrix", "cost", "cost_per_row"]
    step = 1e-6
    for one in [found for name in names for found in metric(name, n_classes, normalize, cost)]:
        influence = one.estimate(rows).influence
        for i, c in product((0, 7), range(rows.p.shape[1])):
            change = np.zeros_like(rows.p)
            change[i, c] = step
            if n_classes > 2:  # the sum of a row stays 1
                change[i, (c + 1) % n_classes] = -step
            up, down = (one.estimate(rows._replace(p=rows.p + sign * change)).value for sign in (1, -1))
            assert (up - down) / (2 * step) == pytest.approx((influence * change).sum() / step, abs=1e-6), one.name


def test_metrics_at_k():
    """Realized values are those of `aucforest.metrics`, and estimates of the reference equal its realized values."""
    score, y_true = drawn(4000)
    new, labels = drawn(2000, seed=1)
    names = ["precision_at_0.05", "recall_at_0.05"]
    cbpe = CBPE(names, calibration="isotonic").fit(y_score=score, y_true=y_true)
    for name, metric in zip(names, (precision_at_k, recall_at_k)):
        assert only(cbpe.estimate(score, chunks=ONE), name).estimate == pytest.approx(metric(y_true, score, 0.05))
        row = only(cbpe.estimate(new, y_true=labels, chunks=ONE), name)
        assert row.realized == pytest.approx(metric(labels, new, 0.05))
        assert 0.0 < row.low < row.estimate < row.high < 1.0
        assert row.low <= row.realized <= row.high


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("precision_at_100", "has 'precision_at_100', but K must be a proportion, such as 0.01: chunks differ in size"),
        ("recall_at_1.5", r"k of 'recall_at_1.5' must be a number of samples \(int\) or a proportion"),
        ("lift_at_0.1", "metrics must be among .*, precision_at_K, recall_at_K, but has 'lift_at_0.1'"),
    ],
)
def test_names_of_metrics_at_k(name, sentence):
    with pytest.raises(ValueError, match=sentence):
        metric(name)


def test_costs():
    p, y_pred = [0.9, 0.6, 0.3, 0.1], [1, 1, 0, 0]
    rows = Rows([], np.array(p)[:, None], np.array(y_pred, dtype=np.uint32))
    total = -3 * 1.5 + 5 * 0.5 + 2 * 0.4 - 1 * 1.6
    assert metric("cost", cost=COST)[0].estimate(rows).value == pytest.approx(total)
    assert metric("cost_per_row", cost=COST)[0].estimate(rows).value == pytest.approx(total / 4)
    for cost, sentence in (
        (None, "needs cost"),
        ([[1, 2]], "2 x 2"),
        ([[1, 2], [3, np.nan]], "finite"),
        ((1, 2), "pass"),
    ):
        with pytest.raises(ValueError, match=sentence):
            metric("cost", cost=cost)


def test_expected_confusion_matrix_of_other_labels():
    p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]
    matrix = expected_confusion_matrix(y_pred=["b", "a"], p=p, labels=["a", "b", "c"])
    np.testing.assert_allclose(matrix, [[0.1, 0.7, 0], [0.8, 0.2, 0], [0.1, 0.1, 0]], atol=1e-12)
    np.testing.assert_allclose(expected_confusion_matrix(y_pred=[True, False], p=[0.9, 0.2]), [[0.8, 0.1], [0.2, 0.9]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(expected_confusion_matrix(y_pred=[0, 0], p=[0.5, 0.5], normalize="pred")[:, 1]).all()


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (([0, 2], [0.5, 0.5]), {}, "y_pred has the label 2"),
        (([0, 1, 1], [0.5, 0.5]), {}, "y_pred has 3 samples"),
        (([0, 1], [0.5, 1.5]), {}, r"p must be in \[0, 1\]"),
        (([0, 1], [[0.5, 0.4], [0.5, 0.5]]), {}, "rows of p must sum to 1"),
        (([0, 1], [0.5, 0.5]), {"labels": [0, 1, 2]}, "p has 2 classes, but labels"),
        (([0, 1], [0.5, 0.5]), {"normalize": "rows"}, "normalize must be"),
    ],
)
def test_invalid_arguments_of_expected_confusion_matrix(arguments, options, sentence):
    y_pred, p = arguments
    with pytest.raises(ValueError, match=sentence):
        expected_confusion_matrix(p=p, y_pred=y_pred, **options)

from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn import metrics as sk
from sklearn.metrics import roc_auc_score

from aucforest.metrics import precision_at_k, recall_at_k
from aucforest.monitoring import CBPE, Chunks, expected_confusion_matrix
from aucforest.monitoring._rows import RankedSamples, label_variance
from aucforest.monitoring.metrics import THRESHOLD_METRICS, EstimatedMetric, alert_limits, find_metrics
from tests.monitoring.data import BINARY_CASES, ONE, drawn, load, only


@pytest.mark.parametrize("case", [c for c in load("cbpe_unit")["thresholds"] if c["std_mult"] in ([3, 3], [0, 0])])
def test_recorded_limits(case):
    values = np.array([value for value in case["values"] if value is not None])
    limits = alert_limits(EstimatedMetric("m", len, *case["limits"]), values, case["std_mult"][0])
    assert limits == pytest.approx(tuple(case["result"]), abs=1e-12)


def test_estimates_beyond_the_limits_are_alerts():
    score, y_true = drawn(4000, power=1.0)
    cbpe = CBPE(calibration="none").fit(y_score=score, y_true=y_true, chunks=Chunks.by_size(600))
    lower, upper = cbpe.limits_["roc_auc"]
    full = [roc_auc_score(*chunk) for chunk in zip(np.split(y_true[:3600], 6), np.split(score[:3600], 6))]
    assert (lower, upper) == pytest.approx(alert_limits(EstimatedMetric("m", len), np.array(full), 3.0))
    assert lower < roc_auc_score(y_true, score) < upper
    # The last chunk is not full, so there is no warning.
    assert cbpe.estimate(score[:602], chunks=Chunks.by_size(600)).shifts["[600:601]"].valid is None
    vaguely, sharply = 0.4 + 0.2 * score, np.where(score > 0.5, 0.98, 0.02)  # the same ranks, but a lower expected AUC
    same, vague, sharp = (only(cbpe.estimate(new, chunks=ONE)) for new in (score, vaguely, sharply))
    assert [row.alert for row in (same, vague, sharp)] == [False, True, True]
    assert vague.estimate < lower == vague.lower_limit
    assert sharp.estimate > upper == sharp.upper_limit


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
    score, y_true = 0.02 * drawn(1000)[0], np.zeros(1000, dtype=int)
    y_true[np.flatnonzero(score < np.quantile(score, 0.7))[::70]] = 1
    cbpe = CBPE(["recall_at_0.1"], calibration="none").fit(y_true=y_true, y_score=score)
    assert cbpe.limits_["recall_at_0.1"] == (0.0, 0.0)
    row = only(cbpe.estimate(score[:200], chunks=ONE), "recall_at_0.1")
    assert row.low == 0.0 < row.estimate
    assert row.alert is False


def test_limits_of_counts_are_for_the_rows_of_the_chunk():
    """A chunk with a fifth of the rows has about a fifth of the true positives, which is no reason for an alert."""
    score, y_true = drawn(4000, power=1.0)
    y_pred = score > 0.4
    day = np.minimum(np.arange(4000) * 16 // 4000, 14)  # 14 days of 250 rows, then one of 500
    days = Chunks.by_period(np.datetime64("2024-01-01") + day, "D")
    cbpe = CBPE(["confusion_matrix"], calibration="none").fit(y_score=score, y_true=y_true, y_pred=y_pred, chunks=days)
    rates, usual = np.bincount(day, y_true * y_pred) / np.bincount(day), 4000 / 15

    def limits(n_rows):
        return tuple(n_rows * (rates.mean() + 3 * rates.std() * np.sqrt(max(usual / n_rows, 1)) * np.array([-1, 1])))

    assert cbpe.limits_["true_positive"] == pytest.approx(limits(usual))
    (large,) = cbpe.estimate(score, y_pred=y_pred, chunks=ONE).of("true_positive")
    small = cbpe.estimate(score, y_pred=y_pred, chunks=Chunks.by_size(50)).of("true_positive")
    for row, n_rows in ((large, 4000), (small[0], 50)):
        assert (row.lower_limit, row.upper_limit) == pytest.approx(limits(n_rows))
    assert np.mean([row.alert for row in small]) < 0.05


@pytest.mark.parametrize(("n", "missing"), [
    (0, "alert limits: they need two"), (1, "alert limits: they need two"), (2, "limits of shifts: they need three"),
])  # fmt: skip
def test_a_reference_of_too_few_chunks_leaves_alerts_undefined(n, missing):
    score, y_true = drawn(power=1.0)
    advice = "so that alerts are undefined: fit with smaller chunks, such as 200 of 2000 samples"
    with pytest.warns(UserWarning, match=f"no {missing} full reference chunks, but there are {n}, {advice}"):
        cbpe = CBPE(calibration="none").fit(y_true=y_true, y_score=score, chunks=Chunks.by_size((3000, 1500, 1000)[n]))
    for new, alert in ((score, None), (expit(logit(score) + 3.0), None if n < 2 else True)):
        result = cbpe.estimate(new, chunks=ONE)
        row = only(result)
        assert np.isnan([row.lower_limit, row.upper_limit]).all() == (n < 2)
        assert row.alert is alert
        assert result.shifts[row.chunk].valid is None
    assert f"{1 if n == 2 else 0} alerts" in repr(result)


@pytest.mark.parametrize("n", [3, 10])
def test_limits_that_no_shift_could_cross_leave_alerts_undefined(n):
    """With three chunks of 30 samples, the limit of the PSI is about 10, and the greatest possible PSI about 3."""
    score, y_true = drawn(30 * n, seed=1)
    cbpe = CBPE(calibration="none", metrics=["average_precision"])
    cbpe.fit(y_true=y_true, y_score=score, chunks=Chunks.by_number(n))
    with pytest.warns(UserWarning, match="no shift could be beyond its limits in ") if n == 3 else nullcontext():
        (shift,) = cbpe.estimate(expit(logit(score[:30]) + 9.0), chunks=ONE).shifts.values()
    assert shift.valid is (None if n == 3 else False)


@pytest.mark.filterwarnings("ignore:the alert limits of accuracy .* are so wide:UserWarning")
def test_metrics_that_are_defined_in_too_few_chunks_have_no_limits():
    score, y_true = drawn(1000)
    y_true[100:] = 0
    with pytest.warns(UserWarning, match="no alert limits of roc_auc: they need two .* there are 1 of 10: fit with"):
        cbpe = CBPE(["roc_auc", "accuracy"]).fit(y_true=y_true, y_score=score, y_pred=score > 0.5)
    result = cbpe.estimate(score[:200], y_pred=score[:200] > 0.5, chunks=ONE)
    assert only(result).alert is None
    assert only(result, "accuracy").alert is False


NAMES = sorted(THRESHOLD_METRICS)
CASES = [case for case in BINARY_CASES if 0 < sum(case["p"]) < len(case["p"])]


def metric(name, n_classes=2, normalize=None, cost=None):
    """Return a metric by name; of a confusion matrix all cells."""
    return find_metrics([name], np.arange(n_classes), "ovo", normalize, cost)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_recorded_cases(case):
    rows = RankedSamples([], np.array(case["p"])[:, None], np.array(case["yhat"], dtype=np.uint32))
    for name in NAMES:
        estimate = metric(name)[0].estimate(rows)
        if name == "precision" and not any(case["yhat"]):
            assert np.isnan(estimate.value)
            continue
        assert estimate.value == pytest.approx(case["nannyml"][name], abs=1e-12)
        recorded = case["closed_form"].get(name)
        if recorded and recorded["var"] is not None:
            found = estimate.value, label_variance(rows.p, estimate.influence)
            assert found == pytest.approx((recorded["value"], recorded["var"]), abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_known_labels_give_the_ordinary_metrics(n_classes):
    y_true, y_pred = np.random.default_rng(0).integers(0, n_classes, (2, 60)).astype(np.uint32)
    known, classes = np.eye(n_classes)[y_true], [1] if n_classes == 2 else range(n_classes)
    rows = RankedSamples([], known[:, classes], y_pred)
    expected = {"accuracy": sk.accuracy_score(y_true, y_pred)}
    expected["specificity"] = np.mean([sk.recall_score(y_true != c, y_pred != c) for c in classes])
    for name in ("precision", "recall", "f1"):
        average = "binary" if n_classes == 2 else "macro"
        expected[name] = getattr(sk, f"{name}_score")(y_true, y_pred, average=average)
    for name in NAMES:
        assert metric(name, n_classes)[0].estimate(rows).value == pytest.approx(expected[name], abs=1e-12)
    for normalize in (None, "all", "true", "pred"):
        matrix = sk.confusion_matrix(y_true, y_pred, normalize=normalize)
        p = known[:, 1] if n_classes == 2 else known
        found = expected_confusion_matrix(y_pred=y_pred, p=p, normalize=normalize)
        np.testing.assert_allclose(found, matrix, atol=1e-12)
        cells = [cell.estimate(rows).value for cell in metric("confusion_matrix", n_classes, normalize)]
        np.testing.assert_allclose(cells, matrix.ravel(), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("normalize", [None, "all", "true", "pred"])
def test_influence_is_the_derivative(n_classes, normalize):
    random, step = np.random.default_rng(0), 1e-6
    p, y_pred = random.dirichlet(np.ones(n_classes), size=60), random.integers(0, n_classes, 60).astype(np.uint32)
    rows = RankedSamples([], p[:, 1:] if n_classes == 2 else p, y_pred)
    cost = np.arange(n_classes**2, dtype=float).reshape(n_classes, n_classes)
    np.fill_diagonal(cost, -1.0)
    names = [*NAMES, "confusion_matrix", "cost", "cost_per_row"]
    for one in [found for name in names for found in metric(name, n_classes, normalize, cost)]:
        influence = one.estimate(rows).influence
        for i, c in product((0, 7), range(rows.p.shape[1])):
            change = np.zeros_like(rows.p)
            change[i, c] = step
            if n_classes > 2:  # the sum of a row stays 1
                change[i, (c + 1) % n_classes] = -step
            up, down = (one.estimate(rows._replace(p=rows.p + sign * change)).value for sign in (1, -1))
            assert (up - down) / (2 * step) == pytest.approx((influence * change).sum() / step, abs=1e-6), one.name


@pytest.mark.parametrize(("name", "metric"), [("precision_at_0.05", precision_at_k), ("recall_at_0.05", recall_at_k)])
def test_metrics_at_k(name, metric):
    """Realized values are those of `aucforest.metrics`, and estimates of the reference equal its realized values."""
    (score, y_true), (new, labels) = drawn(4000), drawn(2000, seed=1)
    cbpe = CBPE([name], calibration="isotonic").fit(y_score=score, y_true=y_true)
    assert only(cbpe.estimate(score, chunks=ONE), name).estimate == pytest.approx(metric(y_true, score, 0.05))
    row = only(cbpe.estimate(new, y_true=labels, chunks=ONE), name)
    assert row.realized == pytest.approx(metric(labels, new, 0.05))
    assert 0.0 < row.low < row.estimate < row.high < 1.0
    assert row.low <= row.realized <= row.high


def test_costs():
    rows = RankedSamples([], np.array([[0.9], [0.6], [0.3], [0.1]]), np.array([1, 1, 0, 0], dtype=np.uint32))
    total = -3 * 1.5 + 5 * 0.5 + 2 * 0.4 - 1 * 1.6
    for name, expected in (("cost", total), ("cost_per_row", total / 4)):
        assert metric(name, cost=[[-1.0, 5.0], [2.0, -3.0]])[0].estimate(rows).value == pytest.approx(expected)


@pytest.mark.parametrize(("name", "cost", "sentence"), [
    ("cost", None, "needs cost"), ("cost", [[1, 2]], "2 x 2"), ("cost", [[1, 2], [3, np.nan]], "finite"),
    ("precision_at_100", None, "'precision_at_100', but K must be a proportion, such as 0.01: chunks differ"),
    ("recall_at_1.5", None, r"k of 'recall_at_1.5' must be a number of samples \(int\) or a proportion"),
    ("lift_at_0.1", None, "metrics must be among .*, precision_at_K, recall_at_K, but has 'lift_at_0.1'"),
])  # fmt: skip
def test_invalid_costs_and_names(name, cost, sentence):
    with pytest.raises(ValueError, match=sentence):
        metric(name, cost=cost)


def test_expected_confusion_matrix_of_other_labels():
    p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]
    matrix = expected_confusion_matrix(y_pred=["b", "a"], p=p, labels=["a", "b", "c"])
    np.testing.assert_allclose(matrix, [[0.1, 0.7, 0], [0.8, 0.2, 0], [0.1, 0.1, 0]], atol=1e-12)
    np.testing.assert_allclose(expected_confusion_matrix(y_pred=[True, False], p=[0.9, 0.2]), [[0.8, 0.1], [0.2, 0.9]])
    assert np.isnan(expected_confusion_matrix(y_pred=[0, 0], p=[0.5, 0.5], normalize="pred")[:, 1]).all()


@pytest.mark.parametrize(("y_pred", "p", "options", "sentence"), [
    ([0, 2], [0.5, 0.5], {}, "y_pred has the label 2"), ([0, 1, 1], [0.5, 0.5], {}, "y_pred has 3 samples"),
    ([0, 1], [0.5, 1.5], {}, r"p must be in \[0, 1\]"),
    ([0, 1], [[0.5, 0.4], [0.5, 0.5]], {}, "rows of p must sum to 1"),
    ([0, 1], [0.5, 0.5], {"labels": [0, 1, 2]}, "p has 2 classes, but labels"),
    ([0, 1], [0.5, 0.5], {"normalize": "rows"}, "normalize must be"),
])  # fmt: skip
def test_invalid_arguments_of_expected_confusion_matrix(y_pred, p, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        expected_confusion_matrix(p=p, y_pred=y_pred, **options)

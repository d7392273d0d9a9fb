"""Metrics of predicted classes against recorded cases, scikit-learn and finite differences."""

import warnings

import numpy as np
import pytest
from sklearn import metrics as sk

from aucforest.monitoring import expected_confusion_matrix
from aucforest.monitoring._metrics import find_metrics
from aucforest.monitoring._rows import Rows, label_variance
from aucforest.monitoring.counts import THRESHOLD_METRICS
from tests.monitoring.golden import binary_cases

NAMES = sorted(THRESHOLD_METRICS)
CASES = [case for case in binary_cases() if 0 < sum(case["p"]) < len(case["p"])]
COST = [[-1.0, 5.0], [2.0, -3.0]]


def rows_of(case):
    """Return the rows of a recorded case."""
    return Rows([], np.array(case["p"])[:, None], np.array(case["yhat"], dtype=np.uint32))


def metric(name, n_classes=2, normalize=None, cost=None):
    """Return a metric by name; of a confusion matrix all cells."""
    return find_metrics([name], np.arange(n_classes), "ovo", normalize, cost)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
@pytest.mark.parametrize("name", NAMES)
def test_recorded_cases(case, name):
    (one,) = metric(name)
    estimate = one.estimate(rows_of(case))
    if name == "precision" and not any(case["yhat"]):
        assert np.isnan(estimate.value)
        return
    assert estimate.value == pytest.approx(case["nannyml"][name], abs=1e-12)
    recorded = case["closed_form"].get(name)
    if recorded and recorded["var"] is not None:
        assert estimate.value == pytest.approx(recorded["value"], abs=1e-12)
        assert label_variance(rows_of(case).p, estimate.influence) == pytest.approx(recorded["var"], abs=1e-12)


def random_rows(n_classes, n=60, seed=0):
    """Return chances, labels drawn from them and predictions."""
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
        np.testing.assert_allclose(expected_confusion_matrix(y_pred, p, normalize=normalize), matrix, atol=1e-12)
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
        for i in (0, 7):
            for c in range(rows.p.shape[1]):
                if n_classes == 2:
                    up, down = rows.p.copy(), rows.p.copy()
                    up[i, c] += step
                    down[i, c] -= step
                    expected = influence[i, c]
                else:  # rows keep their sum: raise one class, lower the next
                    other = (c + 1) % n_classes
                    up, down = rows.p.copy(), rows.p.copy()
                    up[i, [c, other]] += [step, -step]
                    down[i, [c, other]] -= [step, -step]
                    expected = influence[i, c] - influence[i, other]
                values = [one.estimate(rows._replace(p=p)).value for p in (up, down)]
                assert (values[0] - values[1]) / (2 * step) == pytest.approx(expected, abs=1e-6), one.name


def test_cost():
    p, y_pred = [0.9, 0.6, 0.3, 0.1], [1, 1, 0, 0]
    rows = Rows([], np.array(p)[:, None], np.array(y_pred, dtype=np.uint32))
    total = -3 * 1.5 + 5 * 0.5 + 2 * 0.4 - 1 * 1.6
    assert metric("cost", cost=COST)[0].estimate(rows).value == pytest.approx(total)
    assert metric("cost_per_row", cost=COST)[0].estimate(rows).value == pytest.approx(total / 4)
    for cost, sentence in (
        (None, "needs cost"),
        ([[1, 2]], "2 x 2"),
        ([[1, 2], [3, np.nan]], "finite"),
        ((1, 2), "write"),
    ):
        with pytest.raises(ValueError, match=sentence):
            metric("cost", cost=cost)


def test_labels_of_any_kind():
    p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]
    matrix = expected_confusion_matrix(["b", "a"], p, labels=["a", "b", "c"])
    np.testing.assert_allclose(matrix, [[0.1, 0.7, 0], [0.8, 0.2, 0], [0.1, 0.1, 0]], atol=1e-12)
    np.testing.assert_allclose(expected_confusion_matrix([True, False], [0.9, 0.2]), [[0.8, 0.1], [0.2, 0.9]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(expected_confusion_matrix([0, 0], [0.5, 0.5], normalize="pred")[:, 1]).all()


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (([0, 2], [0.5, 0.5]), {}, "y_pred has the label 2"),
        (([0, 1, 1], [0.5, 0.5]), {}, "y_pred has 3 rows"),
        (([0, 1], [0.5, 1.5]), {}, r"p must be in \[0, 1\]"),
        (([0, 1], [[0.5, 0.4], [0.5, 0.5]]), {}, "rows of p must sum to 1"),
        (([0, 1], [0.5, 0.5]), {"labels": [0, 1, 2]}, "p is of 2 classes, but labels"),
        (([0, 1], [0.5, 0.5]), {"normalize": "rows"}, "normalize must be"),
    ],
)
def test_refusals(arguments, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        expected_confusion_matrix(*arguments, **options)

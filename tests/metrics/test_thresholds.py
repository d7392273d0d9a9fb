import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.metrics import optimal_threshold
from tests.metrics.strategies import two_classes
from tests.reference import metrics as reference

COST = [[-1.0, 2.0], [3.5, 0.5]]
VALUES = {
    "youden": lambda tp, fp, fn, tn: tp / (tp + fn) - fp / (fp + tn),
    "gmean": lambda tp, fp, fn, tn: tp / (tp + fn) * tn / (fp + tn),
    "f1": lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn),
    "cost": lambda tp, fp, fn, tn: -(-1 * tn + 2 * fp + 3.5 * fn + 0.5 * tp),
}


@settings(max_examples=100, deadline=None)
@given(two_classes())
def test_no_threshold_is_better(rows):
    positive, scores, weights = rows
    for criterion, value in VALUES.items():
        for sample_weight in (None, weights):
            best = optimal_threshold(
                positive,
                scores,
                criterion=criterion,
                cost=COST if criterion == "cost" else None,
                sample_weight=sample_weight,
            )
            values = {
                t: value(*reference.decision_counts(t, positive, scores, sample_weight)) for t in (np.inf, *scores)
            }
            greatest = max(values.values())
            assert best in values
            assert values[best] == pytest.approx(greatest, rel=1e-12, abs=1e-12)
            # of equally good thresholds the greatest: each greater one is worse, up to rounding
            assert all(v <= greatest + 1e-12 for v in values.values())


def test_the_greatest_of_equally_good_thresholds():
    assert optimal_threshold([0, 1, 0, 1], [1, 2, 3, 4]) == 4.0


def test_nothing_is_worth_calling_positive():
    assert optimal_threshold([1, 0], [1, 2]) == np.inf
    assert optimal_threshold([0, 1], [1, 2], criterion="cost", cost=[[0, 1], [0, 0]]) == np.inf


def test_cost_moves_the_threshold():
    y_true, y_score = [0, 0, 0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert optimal_threshold(y_true, y_score, criterion="cost", cost=[[0, 1], [3, 0]]) == 0.4
    assert optimal_threshold(y_true, y_score, criterion="cost", cost=[[0, 3], [1, 0]]) == 0.6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "best"}, "criterion must be one of"),
        ({"criterion": "cost"}, "needs cost, such as"),
        ({"criterion": "f1", "cost": [[0, 1], [1, 0]]}, "cost needs criterion='cost', but criterion is 'f1'"),
        (
            {"criterion": "cost", "cost": (1, 1, 1)},
            "^cost must be a 2 x 2 matrix of finite numbers, one row for each true class$",
        ),
        ({"criterion": "cost", "cost": "dear"}, "2 x 2 matrix of finite numbers"),
        ({"criterion": "cost", "cost": [[0, 1], [np.nan, 0]]}, "2 x 2 matrix of finite numbers"),
        ({"criterion": "cost", "cost": [[0, -1], [1, 0]]}, r"^cost\[i\]\[j\] of an error must be at least"),
        ({"criterion": "cost", "cost": np.zeros((2, 2))}, "is the same for errors and correct predictions"),
        (
            {"criterion": "cost", "cost": (3, 0.5)},
            r"row for each true class: pass \[\[0, 3\], \[0.5, 0\]\] instead of",
        ),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        optimal_threshold([0, 1], [1, 2], **options)


@pytest.mark.parametrize("y_true", [[0, 0], [1, 1]])
@pytest.mark.parametrize("criterion", ["youden", "gmean", "f1"])
def test_one_class_is_undefined(y_true, criterion):
    with pytest.warns(UndefinedMetricWarning, match="a class has no weight") as caught:
        assert np.isnan(optimal_threshold(y_true, [1, 2], criterion=criterion))
    assert caught[0].filename == __file__


def test_a_cost_is_asked_for_with_an_example():
    with pytest.raises(ValueError, match=r"criterion='cost' needs cost, such as \[\[0, 1\], \[10, 0\]\]"):
        optimal_threshold([0, 1], [0.2, 0.8], criterion="cost")

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.metrics import optimal_threshold
from aucforest.metrics.thresholds import find_best
from tests.metrics.strategies import two_classes
from tests.reference import metrics as reference

COST = [[-1.0, 2.0], [3.5, 0.5]]
VALUES = {
    "youden": lambda tp, fp, fn, tn: tp / (tp + fn) - fp / (fp + tn),
    "gmean": lambda tp, fp, fn, tn: tp / (tp + fn) * tn / (fp + tn),
    "f1": lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn),
    "cost": lambda tp, fp, fn, tn: -(-1 * tn + 2 * fp + 3.5 * fn + 0.5 * tp),
}


@given(two_classes())
def test_no_threshold_is_better(rows):
    positive, scores, weights = rows
    for criterion, value in VALUES.items():
        for weight in (None, weights):
            cost = COST if criterion == "cost" else None
            best = optimal_threshold(positive, scores, criterion=criterion, cost=cost, sample_weight=weight)
            values = {t: value(*reference.decision_counts(t, positive, scores, weight)) for t in (np.inf, *scores)}
            assert values[best] == pytest.approx(max(values.values()), rel=1e-12, abs=1e-12)


@pytest.mark.filterwarnings("ignore:no threshold has a precision:UserWarning")
@pytest.mark.parametrize("rule", ["alerts", "precision", "recall", "fpr"])
@given(two_classes(), st.integers(1, 16))
def test_bounds_against_every_threshold(rule, rows, sixteenths):
    positive, scores, weights = rows
    bound = sixteenths / 16
    for weight in (None, weights):
        found = optimal_threshold(positive, scores, criterion={rule: bound}, sample_weight=weight)
        expected = reference.threshold_within(rule, bound, positive, scores, weight)
        if expected is None and rule == "precision":
            points = reference.roc_points(positive, scores, weight)[1:]
            highest = max(tp / (tp + fp) for fp, tp, _ in points)
            expected = min(threshold for fp, tp, threshold in points if tp / (tp + fp) == highest)
        assert found == (np.inf if expected is None else expected)


def test_a_precision_that_is_not_reached():
    with pytest.warns(UserWarning, match=r"^no threshold has a precision of 0.9: the highest is 0.5, which is taken$"):
        assert optimal_threshold([1, 0, 0, 1, 0], [1, 5, 3, 4, 2], criterion={"precision": 0.9}) == 4


def random_costs(n_rows, seed):
    """Return a cost matrix for each row. Errors cost at least as much as correct predictions, in the first row more."""
    costs = np.random.default_rng(seed).integers(0, 8, (n_rows, 2, 2)) / 4.0
    costs[:, [0, 1], [0, 1]] = costs.min(axis=2)
    costs[0] = [[0.0, 1.0], [1.0, 0.0]]
    return costs


@given(two_classes(), st.integers(0, 100), st.integers(1, 16), st.booleans())
def test_costs_with_and_without_a_budget_against_every_threshold(rows, seed, sixteenths, is_one_matrix):
    positive, scores, weights = rows
    costs = random_costs(len(scores), seed)
    costs = np.repeat(costs[:1], len(scores), axis=0) if is_one_matrix else costs
    budget, cost = sixteenths / 16, costs[0] if is_one_matrix else costs
    for weight in (None, weights):
        for criterion, most in (("cost", 1.0), ({"alerts": budget}, budget)):
            found = optimal_threshold(positive, scores, criterion=criterion, cost=cost, sample_weight=weight)
            assert found == reference.cheapest_within(most, positive, scores, costs, weight)


def test_products_of_rows_that_float64_does_not_hold():
    n = 2**27 + 1
    assert find_best(np.array([0.0, 1.0, n]), np.array([0.0, 0.0, n - 1.0]), "gmean") == 1
    assert find_best(np.array([0.0, n - 2.0, n - 1.0, n]), np.array([0.0, 0.0, 1.0, n]), "youden") == 1


@pytest.mark.parametrize("criterion", ["youden", "gmean", "f1", "cost"])
def test_ties_are_those_of_exact_fractions(criterion):
    """The highest of equally good thresholds is returned, although sums of tenths are rounded."""
    random, cost = np.random.default_rng(0), [[0, 1], [3, 0]] if criterion == "cost" else None
    for _ in range(150):
        n = int(random.integers(4, 24))
        positive, scores = np.arange(n) < random.integers(1, n), random.random(n).round(2)
        expected = reference.best_threshold(criterion, positive, scores.tolist(), cost)
        forms = [(None, cost), (np.full(n, 0.1), cost)]
        if cost is not None:
            forms += [(None, np.array(cost) / 10), (None, np.repeat([cost], n, axis=0) / 10)]
        for units, costs in forms:
            assert optimal_threshold(positive, scores, criterion=criterion, cost=costs, sample_weight=units) == expected


@pytest.mark.parametrize(("options", "message"), [
    ({"criterion": "best"}, "criterion must be one of"),
    ({"criterion": {"lift": 0.9}}, r"^criterion must be a dict with a single key, .*'fpr', .* keys \['lift'\]$"),
    ({"criterion": {"alerts": 1, "cost": [[0, 1], [1, 0]]}}, r"has the keys \['alerts', 'cost'\]$"),
    ({"criterion": {"recall": 0}}, r"^criterion: recall must be in \(0, 1\], but is 0$"),
    ({"criterion": {"recall": 0.1}, "cost": [[0, 1], [1, 0]]}, "^cost needs .* but criterion is {'recall': 0.1}$"),
    ({"criterion": {"alerts": 0}}, "^criterion: alerts must be from 1 to inf"),
    ({"criterion": {"alerts": 3}}, "^alerts must be from 1 to 2, the number"),
    ({"criterion": {"alerts": 1.5}}, r"^criterion: alerts must be a number of samples \(int\) or a proportion"),
    ({"criterion": {"fpr": True}}, r"^criterion: fpr must be in \[0, 1\], but is True$"),
    ({"criterion": "cost", "cost": np.zeros((3, 2, 2))}, "^cost has 3 matrices, but there are 2 samples$"),
    ({"criterion": "cost", "cost": np.ones((2, 3, 3))}, "^cost must be a 2 x 2 matrix"),
    ({"criterion": "cost"}, r"criterion='cost' needs cost, such as \[\[0, 1\], \[10, 0\]\]"),
    ({"criterion": "f1", "cost": [[0, 1], [1, 0]]}, "{'alerts': k}, but criterion is 'f1'$"),
    ({"criterion": "cost", "cost": "dear"}, "2 x 2 matrix of finite numbers"),
    ({"criterion": "cost", "cost": [[0, 1], [np.nan, 0]]}, "2 x 2 matrix of finite numbers"),
    ({"criterion": "cost", "cost": [[0, -1], [1, 0]]}, r"^cost\[i\]\[j\] of an error must be at least"),
    ({"criterion": "cost", "cost": np.zeros((2, 2))}, "is the same for errors and correct predictions"),
    ({"criterion": "cost", "cost": (3, 0.5)}, r"row for each true class: pass \[\[0, 3\], \[0.5, 0\]\] instead of"),
])  # fmt: skip
def test_invalid_criteria_and_costs(options, message):
    with pytest.raises(ValueError, match=message):
        optimal_threshold([0, 1], [1, 2], **options)


@pytest.mark.parametrize("y_true", [[0, 0], [1, 1]])
def test_one_class_is_undefined(y_true):
    with pytest.warns(UndefinedMetricWarning, match="a class has no weight"):
        assert np.isnan(optimal_threshold(y_true, [1, 2]))

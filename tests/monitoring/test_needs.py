"""When scores need a curve: recorded cases, false alarms and power."""

import numpy as np
import pytest

from aucforest.monitoring._rows import RankedColumn, rank_columns
from aucforest.monitoring.needs import RULES, calibration_error, columns_to_fit, needs_calibration
from tests.monitoring.golden import load
from tests.monitoring.simulation import share_that_fires

MOST_FALSE_ALARMS = 0.06


@pytest.mark.parametrize("case", load("cbpe_unit")["ece"], ids=lambda case: f"{case['bins']} bins")
def test_recorded_calibration_errors(case):
    y, p = np.array(case["y"], dtype=float), np.array(case["p"])
    assert calibration_error(y, p, case["bins"]) == pytest.approx(case["ece"], abs=1e-12)
    order = np.random.default_rng(0).permutation(y.size)
    assert calibration_error(y[order], p[order], case["bins"]) == pytest.approx(case["ece"], abs=1e-12)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", load("cbpe_unit")["calibration"][:2], ids=lambda case: case["name"])
def test_recorded_decisions(case, rule):
    column = RankedColumn(np.array(case["score"]))
    assert needs_calibration(column, np.array(case["y"], dtype=float), rule=rule) == case["needs"]


def test_squared_scores_are_found():
    assert share_that_fires(1000, 2.0, "brier_or_auc", 20) == 1.0
    assert share_that_fires(200, 2.0, "brier_or_auc", 40) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 1000, 5000])
def test_calibrated_scores_are_left_alone(n):
    assert share_that_fires(n, 1.0, "brier_or_auc", 400) <= MOST_FALSE_ALARMS
    assert share_that_fires(n, 1.0, "brier", 400) <= 0.01


def test_the_promised_auc_finds_what_the_brier_score_does_not():
    """A slightly steeper curve: too little for the squared error, plain in the AUC."""
    found = {"brier": 0, "brier_or_auc": 0}
    for seed in range(10):
        random = np.random.default_rng(seed)
        logit = random.normal(0, 1.5, 20_000)
        labels = (random.random(logit.size) < 1 / (1 + np.exp(-1.1 * logit))).astype(float)
        column = RankedColumn(1 / (1 + np.exp(-logit)))
        for rule in found:
            found[rule] += needs_calibration(column, labels, rule=rule, random_state=seed)
    assert found["brier_or_auc"] >= 9
    assert found["brier_or_auc"] > found["brier"]


def test_which_columns_get_a_curve():
    random = np.random.default_rng(0)
    p = random.dirichlet([1.0, 2.0, 3.0], size=3000)
    truth = np.eye(3)[(random.random(3000)[:, None] > p.cumsum(axis=1)).sum(axis=1)]
    distorted = p**2 / (p**2).sum(axis=1, keepdims=True)

    def chosen(scores, calibration):
        return columns_to_fit(rank_columns(scores), truth, calibration, "brier_or_auc", 0).tolist()

    assert chosen(p, "auto") == [False] * 3
    assert chosen(distorted, "auto") == [True] * 3
    assert chosen(3 * p, "auto") == [True] * 3  # no probabilities, so nothing to test
    assert chosen(p, "isotonic") == [True] * 3
    assert chosen(distorted, "none") == [False] * 3
    assert chosen(p, [True, False, True]) == [True, False, True]
    with pytest.raises(ValueError, match="one bool for each of 3 columns"):
        chosen(p, [True])

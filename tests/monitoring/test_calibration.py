"""Isotonic curves against scikit-learn and pooling in plain loops, and tests of whether scores need calibration."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from aucforest.monitoring._rows import RankedColumn, rank_columns
from aucforest.monitoring.calibration import (
    IsotonicCurve,
    _brier_improves,
    columns_to_fit,
    is_rising,
    needs_calibration,
)
from tests.monitoring.data import load
from tests.monitoring.simulation import share_that_fires
from tests.monitoring.strategies import labelled
from tests.reference.isotonic import curve_at, pooled_blocks

GRID = np.linspace(-6, 6, 49)


def values(curve, scores):
    """Return a curve at scores, in their order."""
    (column,) = rank_columns(np.asarray(scores, dtype=float))
    return column.to_rows(curve.at(curve.locate(column)))


@given(labelled())
def test_rising_curves(rows):
    scores, labels = rows
    scores = scores if is_rising(RankedColumn(scores), labels) else -scores
    curve = IsotonicCurve(RankedColumn(scores), labels)
    peer = IsotonicRegression(out_of_bounds="clip").fit(scores, labels)
    np.testing.assert_allclose(values(curve, GRID), peer.predict(GRID), atol=1e-12)
    blocks = pooled_blocks(scores, labels)
    np.testing.assert_allclose(values(curve, GRID), [curve_at(blocks, labels, score) for score in GRID], atol=1e-12)
    assert curve.mass.tolist() == [len(members) for _, _, members in blocks]
    assert curve.hits.tolist() == [labels[members].sum() for _, _, members in blocks]


@given(labelled(), st.data())
def test_falling_and_weighted_curves(rows, data):
    scores, labels = rows
    scores = -scores if is_rising(RankedColumn(scores), labels) else scores
    assume(not is_rising(RankedColumn(scores), labels))
    drawn = st.lists(st.sampled_from([0.5, 1.0, 2.5]), min_size=labels.size, max_size=labels.size)
    weights = np.array(data.draw(drawn))
    peer = IsotonicRegression(out_of_bounds="clip", increasing=False).fit(scores, labels, sample_weight=weights)
    curve = IsotonicCurve(RankedColumn(scores), labels, weights)
    np.testing.assert_allclose(values(curve, GRID), peer.predict(GRID), atol=1e-12)


MOST_FALSE_ALARMS = 0.06


@pytest.mark.parametrize("case", load("cbpe_unit")["calibration"][:2], ids=lambda case: case["name"])
def test_recorded_decisions(case):
    column = RankedColumn(np.array(case["score"]))
    assert needs_calibration(column, np.array(case["y"], dtype=float)) == case["needs"]


def test_squared_scores_are_calibrated():
    assert share_that_fires(1000, 2.0, 20) == 1.0
    assert share_that_fires(200, 2.0, 40) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 5000])
def test_calibrated_scores_are_not_calibrated_again(n):
    assert share_that_fires(n, 1.0, 400) <= MOST_FALSE_ALARMS


def test_the_auc_test_detects_what_the_brier_test_does_not():
    """A slightly too steep curve changes the Brier score little, and the expected AUC significantly."""
    fired = {_brier_improves: 0, needs_calibration: 0}
    for seed in range(10):
        random = np.random.default_rng(seed)
        logit = random.normal(0, 1.5, 20_000)
        labels = (random.random(logit.size) < 1 / (1 + np.exp(-1.1 * logit))).astype(float)
        column = RankedColumn(1 / (1 + np.exp(-logit)))
        for test in fired:
            fired[test] += test(column, labels, random_state=seed)
    assert fired[needs_calibration] >= 9
    assert fired[needs_calibration] > fired[_brier_improves]


def test_which_columns_are_calibrated():
    random = np.random.default_rng(0)
    p = random.dirichlet([1.0, 2.0, 3.0], size=3000)
    truth = np.eye(3)[(random.random(3000)[:, None] > p.cumsum(axis=1)).sum(axis=1)]
    distorted = p**2 / (p**2).sum(axis=1, keepdims=True)

    def chosen(scores, calibration):
        return columns_to_fit(rank_columns(scores), truth, calibration, 0).tolist()

    assert chosen(p, "auto") == [False] * 3
    assert chosen(distorted, "auto") == [True] * 3
    assert chosen(3 * p, "auto") == [True] * 3  # no probabilities, so nothing to test
    assert chosen(p, "isotonic") == [True] * 3
    assert chosen(distorted, "none") == [False] * 3
    assert chosen(p, [True, False, True]) == [True, False, True]
    with pytest.raises(ValueError, match="one bool for each of 3 columns"):
        chosen(p, [True])

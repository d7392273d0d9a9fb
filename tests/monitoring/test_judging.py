"""Estimates, standard errors and intervals of a chunk."""

import numpy as np
import pytest
from scipy.stats import t as student

from aucforest.monitoring import CBPE, Chunks
from aucforest.monitoring._influence import Rows
from aucforest.monitoring._judging import Judge, Scored
from aucforest.monitoring._metrics import find_metrics
from aucforest.monitoring._noise import Curves
from aucforest.monitoring._validation import rank_columns
from aucforest.monitoring.calibration import Calibration

ONE = Chunks.by_number(1)


def fitted(metrics, n_reference=600, **options):
    """Return a CBPE with a curve, and scores of new rows."""
    random = np.random.default_rng(0)
    score = random.random(n_reference)
    labels = random.random(n_reference) < score**2
    cbpe = CBPE(metrics, calibration="isotonic", **options).fit(score, labels, score > 0.5)
    return cbpe, random.random(150)


def test_counts_are_shares_times_rows():
    """The reference has four times the rows: what is taken off a count must shrink with it."""
    counts, new = fitted(["confusion_matrix"])
    shares, _ = fitted(["confusion_matrix"], normalize="all")
    rows = zip(*(cbpe.estimate(new, new > 0.45, chunks=ONE).estimates for cbpe in (counts, shares)))
    for count, share in rows:
        assert count[5:9] == pytest.approx(150 * np.array(share[5:9]), abs=1e-9)


def test_drawn_intervals_hold_the_noise_of_the_curve():
    """Labels of average precision are drawn; a small reference must make its intervals wider."""
    widths = []
    for n_reference in (200, 20_000):
        cbpe, _ = fitted(["average_precision"], n_reference, n_draws=2000)
        (row,) = cbpe.estimate(np.linspace(0, 1, 3000), chunks=ONE).estimates
        assert row.high - row.low == pytest.approx(2 * 1.96 * row.standard_error, rel=0.1)
        widths.append(row.high - row.low)
    assert widths[0] > 1.5 * widths[1]


def test_an_interval_needs_two_draws_of_both_classes():
    """Positives are possible and never drawn: there is an expectation, and no interval."""
    random = np.random.default_rng(0)
    score = random.random(400)
    cbpe = CBPE(calibration="none").fit(score, random.random(400) < score)
    (row,) = cbpe.estimate(np.array([0.0, 0.0, 1e-12, 0.0]), chunks=ONE).estimates
    assert row.estimate == pytest.approx((3 + 0.5) / 4, abs=1e-4)
    assert np.isnan([row.standard_error, row.low, row.high]).all()


def test_equal_chunks_have_draws_of_their_own():
    cbpe, new = fitted(["average_precision"])
    first, second = cbpe.estimate(np.tile(new, 2), chunks=Chunks.by_size(150)).estimates
    assert first.low != second.low
    again, _ = cbpe.estimate(np.tile(new, 2), chunks=Chunks.by_size(150)).estimates
    assert again[5:9] == first[5:9]


@pytest.mark.parametrize(("metric", "reach"), [("accuracy", 0.0), ("average_precision", 0.1)])
def test_few_reference_rows_that_decide_widen_the_interval(metric, reach):
    """All new scores are at the upper edge of 40 reference rows."""
    random = np.random.default_rng(2)
    score = random.random(40)
    truth = (random.random(40) < score)[:, None].astype(float)
    curves = Curves(Calibration(rank_columns(score), truth, np.array([True])), Rows(rank_columns(score), truth))
    calibrated = curves.calibration.apply(rank_columns(np.linspace(0.9, 1.0, 3000)))
    rows = Rows(calibrated.columns, calibrated.p, np.arange(3000, dtype=np.uint32) // 1500)
    (one,) = find_metrics([metric], np.arange(2), "ovo", None, None)
    judge = Judge(0.8, True, 20_000, np.random.default_rng(0))
    judged = judge.judge(one._replace(low=-np.inf, high=np.inf), Scored(rows, curves, calibrated), None)
    noise = curves.noise(calibrated, one.estimate(rows).influence, curves.no_offset())
    assert noise.freedom < 10
    width = 2 * student.ppf(0.9, noise.freedom) * judged.standard_error
    assert judged.high - judged.low == pytest.approx(width, rel=max(reach, 0.01))
    assert width > 1.05 * 2 * 1.2816 * judged.standard_error


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_the_level_sets_the_width(level):
    cbpe, new = fitted(["accuracy"], level=level)
    (row,) = cbpe.estimate(new, new > 0.5, chunks=ONE).estimates
    z = {0.5: 0.6745, 0.9: 1.6449, 0.99: 2.5758}[level]
    assert row.high - row.low == pytest.approx(2 * z * row.standard_error, rel=1e-4)
    assert (row.high + row.low) / 2 == pytest.approx(row.estimate)

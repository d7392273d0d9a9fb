"""Limits of shifts: they do not depend on the sizes of chunks, and few chunks are beyond them without a shift."""

import numpy as np
import pytest
from scipy.stats import norm

from aucforest.monitoring import CBPE, Chunks, ShiftReport
from aucforest.monitoring.validity import MOST_CHUNKS, Measured, prediction_limits, spread_out
from tests.monitoring.simulation import false_alerts


def test_limits_are_on_the_scale_of_the_measures():
    """A report exactly at its limits is valid; limits for more samples are closer."""
    error = np.sqrt(1001 / (12 * 900 * 100))
    report = ShiftReport(0.05, 0.0, 0.55, error, 0.8)
    limits = Measured(report, 900, 100).standardized()
    judged = Measured(report, 900, 100).judged(limits)
    assert judged.valid
    assert judged[:5] == report[:5]
    assert judged[5:8] == pytest.approx((0.05, 0.55, 0.8))
    for change in ({"psi": 0.051}, {"domain_auc": 0.551}, {"effective_sample_size": 0.799}):
        assert not Measured(report._replace(**change), 900, 100).judged(limits).valid
    larger = Measured(report._replace(domain_auc_error=error / 2), 3600, 400).judged(limits)
    assert larger.psi_limit == pytest.approx(0.05 / 4)
    assert larger.domain_auc_limit == pytest.approx(0.525)
    assert 1 / larger.effective_sample_size_limit - 1 == pytest.approx((1 / 0.8 - 1) / 4)
    assert not larger.valid


def test_a_new_row_is_beyond_prediction_limits_as_often_as_the_level_says():
    random = np.random.default_rng(0)
    values, slack = random.normal(5.0, 2.0, (1000, 6, 2)), 3.0 * np.sqrt(0.16 * 0.84 / 1000)
    limits = np.array([prediction_limits(rows, 1.0) for rows in values[:, :5]])
    beyond = (values[:, 5] > limits).any(axis=1).mean()
    assert norm.sf(1.0) - 0.02 - slack < beyond < norm.sf(1.0) + slack  # Bonferroni: a little less
    values[:, :, 1] = np.nan
    limits = np.array([prediction_limits(rows, 1.0) for rows in values[:, :5]])
    assert np.isnan(limits[:, 1]).all()
    assert (values[:, 5, 0] > limits[:, 0]).mean() == pytest.approx(norm.sf(1.0), abs=slack)
    assert np.isnan(prediction_limits(np.zeros((1, 3)), 3.0)).all()


def test_many_chunks_are_thinned():
    assert spread_out(range(5)) == [0, 1, 2, 3, 4]
    thinned = spread_out(range(1000))
    assert (len(thinned), thinned[0], thinned[-1]) == (MOST_CHUNKS, 0, 999)


@pytest.mark.filterwarnings("ignore:the alert limits of .* are so wide:UserWarning")
def test_scores_without_a_shift_are_valid():
    """500 chunks, smaller than in the reference; `benchmarks/monitoring_bias.py --alerts` has features as well."""
    rates, level = false_alerts(500, 100, 80, 25, with_features=False)
    assert rates.mean() <= level + 3.0 * np.sqrt(level / 500)


def test_the_seasons_of_the_reference_widen_the_limits():
    """Chunks that differ from each other, as months do, say what is usual."""
    random = np.random.default_rng(0)
    season = np.repeat(np.resize([0.0, 0.4], 10), 400)
    score = random.normal(season, 1.0)
    y_true = random.random(score.size) < norm.cdf(score)
    chunks = Chunks.by_size(400)
    usual = CBPE(calibration="isotonic").fit(y_score=score, y_true=y_true, chunks=chunks)
    shuffled = random.permutation(score.size)
    calm = CBPE(calibration="isotonic").fit(y_score=score[shuffled], y_true=y_true[shuffled], chunks=chunks)
    new = random.normal(0.4, 1.0, 400)
    assert usual.estimate(new).shifts["[0:399]"].valid
    assert not calm.estimate(new).shifts["[0:399]"].valid

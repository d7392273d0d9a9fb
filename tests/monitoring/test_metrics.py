"""Alert limits: recorded cases, counts, and references that set none."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from aucforest.monitoring import CBPE, Chunks
from aucforest.monitoring._metrics import Metric, alert_limits
from tests.monitoring.golden import load
from tests.monitoring.test_estimation import ONE, drawn, only


@pytest.mark.parametrize("case", [c for c in load("cbpe_unit")["thresholds"] if c["std_mult"] in ([3, 3], [0, 0])])
def test_recorded_limits(case):
    values = [np.nan if value is None else value for value in case["values"]]
    limits = alert_limits(Metric("m", len, *case["limits"]), values, case["std_mult"][0])
    assert limits == pytest.approx(tuple(case["result"]), abs=1e-12)


def test_alerts():
    score, y_true = drawn(4000, power=1.0)
    cbpe = CBPE(calibration="none").fit(score, y_true, chunks=Chunks.by_size(500))
    lower, upper = cbpe.limits_["roc_auc"]
    assert lower < roc_auc_score(y_true, score) < upper
    vague = 0.4 + 0.2 * score  # ranks the same, promises less
    sharp = np.where(score > 0.5, 0.98, 0.02)
    rows = [only(cbpe.estimate(new, chunks=ONE)) for new in (score, vague, sharp)]
    assert [row.alert for row in rows] == [False, True, True]
    assert rows[1].estimate < lower == rows[1].lower_limit
    assert rows[2].estimate > upper == rows[2].upper_limit


def test_rounding_alone_alerts_nobody():
    """Of a reference that is separated perfectly limits have no width, and sums are one but for rounding."""
    y_true = np.random.default_rng(0).random(1000) < 0.3
    cbpe = CBPE(["average_precision"], calibration="none").fit(y_true.astype(float), y_true)
    assert cbpe.limits_["average_precision"] == (1.0, 1.0)
    for value, alert in ((1.0, False), (0.999, True)):
        row = only(cbpe.estimate(np.where(y_true, value, 1.0 - value), chunks=ONE), "average_precision")
        assert row.alert is alert
        assert row.estimate < 1.0


def test_limits_of_counts_are_for_the_rows_of_the_chunk():
    """A chunk with a fifth of the rows has about a fifth of the true positives, which is no reason for an alert."""
    score, y_true = drawn(4000, power=1.0)
    y_pred = score > 0.4
    day = np.minimum(np.arange(4000) * 16 // 4000, 14)  # 14 days of 250 rows, then one of 500
    days = Chunks.by_period(np.datetime64("2024-01-01") + day, "D")
    cbpe = CBPE(["confusion_matrix"], calibration="none").fit(score, y_true, y_pred, chunks=days)
    rates = np.bincount(day, y_true * y_pred) / np.bincount(day)
    expected = 4000 / 15 * (rates.mean() + 3 * rates.std() * np.array([-1, 1]))
    assert cbpe.limits_["true_positive"] == pytest.approx(tuple(expected))
    small = cbpe.estimate(score, y_pred, chunks=Chunks.by_size(50)).of("true_positive")
    assert (small[0].lower_limit, small[0].upper_limit) == pytest.approx(tuple(expected * 50 * 15 / 4000))
    assert np.mean([row.alert for row in small]) < 0.25


def test_one_reference_chunk_sets_no_limits():
    score, y_true = drawn()
    for chunks in (ONE, Chunks.by_size(1500)):
        with pytest.warns(UserWarning, match="no alert limits: they need two full reference chunks, but there are 1"):
            cbpe = CBPE().fit(score, y_true, chunks=chunks)
        row = only(cbpe.estimate(score, chunks=ONE))
        assert np.isnan([row.lower_limit, row.upper_limit]).all()
        assert not row.alert

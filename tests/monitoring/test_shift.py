from unittest.mock import Mock

import numpy as np
import pytest
from scipy.stats import norm

from aucforest.monitoring import CBPE, Chunks, ShiftReport, estimation, shift
from aucforest.monitoring._rows import rank_columns
from tests.monitoring.simulation import false_alerts


def normal(n, mean=0.0, seed=0, columns=1):
    return np.random.default_rng(seed).normal(mean, 1.0, (n, columns))


def psi(reference, new, **options):
    return shift.stability_index(rank_columns(reference), rank_columns(new), **options)[0]


def test_stability_index_by_hand():
    reference = np.arange(100.0)[:, None]
    new, old = np.concatenate([np.zeros(50), np.arange(50.0, 100.0)])[:, None], np.full(10, 10.5) / 105
    shares = (np.array([50, 0, 0, 0, 0, 10, 10, 10, 10, 10]) + 0.5) / 105
    assert psi(reference, new) == pytest.approx(((shares - old) * np.log(shares / old)).sum())
    two, same = np.repeat([0.1, 0.9], 50)[:, None], np.full((100, 1), 0.3)
    assert psi(reference, reference) == psi(two, two) == psi(same, same[:5]) == 0.0
    assert psi(two, np.repeat([0.1, 0.9], [90, 10])[:, None]) > 0.5
    assert psi(same, np.full((5, 1), 0.4)) > 1.0


def test_a_part_is_compared_with_the_rest():
    scores, rest = normal(1000, columns=2), np.arange(1000) % 10 > 0
    whole, part = (shift.ComparedSamples(rank_columns(rows), rows) for rows in (scores, scores[~rest]))
    measured = shift.measure_shift(whole, part, np.random.default_rng(0), rest)
    assert (measured.n_reference, measured.n_new, measured.ratios.size) == (900, 100, 900)
    # The bins are those of the whole, so the indices are only approximately equal.
    assert measured.report.psi == pytest.approx(psi(scores[rest], scores[~rest]), rel=0.3)
    assert measured.report[2:5] == shift.tell_apart(scores[rest], scores[~rest], np.random.default_rng(0))[:3]
    moved = psi(np.repeat([0.0, 1.0], 50)[:, None], np.ones((50, 1)), is_part=True)
    # After adding 1/2, counts of 50.5 and 0.5 are compared with 0.5 and 50.5; a third bin is empty and ignored.
    assert moved == pytest.approx(2 * 50 / 51 * np.log(101))


def test_stability_index_is_that_of_the_worst_column():
    both = np.hstack([normal(5000), normal(5000, seed=2)])
    assert psi(both, np.hstack([normal(5000, seed=3), normal(5000, 1.0, seed=1)])) > 0.2


@pytest.mark.parametrize("scores", [normal(1000), np.repeat([0.0, 1.0, 2.0, 3.0], [100, 200, 300, 400])[:, None]])
def test_no_new_samples_have_more_than_the_greatest_index(scores):
    reference = rank_columns(scores)
    new = [rank_columns(np.full((30, 1), value)) for value in np.linspace(-3.0, 4.0, 50)]
    found, greatest = zip(*(shift.stability_index(reference, rows) for rows in new))
    assert max(found) == pytest.approx(greatest[0])
    assert set(greatest) == {greatest[0]}


def test_share_outside():
    rows = [[0.2, 0.5], [0.4, 0.9]], [[0.2, 0.5], [0.1, 0.5], [0.3, 1.0], [0.5, 0.4]]
    reference, new = (shift.ComparedSamples(rank_columns(np.array(scores)), None) for scores in rows)
    assert shift.measure_shift(reference, new, np.random.default_rng(0)).report.outside == 0.75


def test_the_domain_classifier_detects_a_shift():
    reference = normal(800, columns=3)
    same, moved = (normal(600, mean, seed=1, columns=3) for mean in (0.0, 1.0))
    auc, error, size, _ = shift.tell_apart(reference, same, np.random.default_rng(0))
    moved_auc, _, moved_size, ratios = shift.tell_apart(reference, moved, np.random.default_rng(0))
    assert error == pytest.approx(np.sqrt(1401 / (12 * 800 * 600)))
    assert abs(auc - 0.5) < 4 * error
    assert moved_auc > 0.8
    assert size > 0.6 > 0.3 > moved_size
    assert ratios.mean() == pytest.approx(1.0)
    # Rows near the new rows have higher weights.
    heavy = ratios > np.median(ratios)
    assert reference[heavy].mean() > reference[~heavy].mean() + 0.3


@pytest.mark.parametrize("n", [2, 4])
def test_small_samples_have_fewer_folds(n):
    auc, *_ = shift.tell_apart(normal(100, columns=2), normal(n, seed=1, columns=2), np.random.default_rng(0))
    assert 0.0 <= auc <= 1.0


def test_the_domain_classifier_uses_a_sample_of_many_rows():
    reference = normal(shift.MOST_ROWS + 100, columns=1)
    for all_reference, n_rows in ((False, shift.MOST_ROWS), (True, len(reference))):
        fit = shift.tell_apart(reference, normal(50, seed=1), np.random.default_rng(0), all_reference=all_reference)
        assert fit[3].size == n_rows


def test_limits_are_on_the_scale_of_the_measures():
    """A report exactly at its limits is valid; limits for more samples are narrower."""
    error = np.sqrt(1001 / (12 * 900 * 100))
    report = ShiftReport(0.05, 0.0, 0.55, error, 0.8)
    limits = shift.MeasuredShift(report, 900, 100).standardized()
    judged = shift.MeasuredShift(report, 900, 100).with_limits(limits)
    assert judged.valid
    assert judged[:5] == report[:5]
    assert judged[5:8] == pytest.approx((0.05, 0.55, 0.8))
    for change in ({"psi": 0.051}, {"domain_auc": 0.551}, {"effective_sample_size": 0.799}):
        assert not shift.MeasuredShift(report._replace(**change), 900, 100).with_limits(limits).valid
    larger = shift.MeasuredShift(report._replace(domain_auc_error=error / 2), 3600, 400).with_limits(limits)
    assert larger.psi_limit == pytest.approx(0.05 / 4)
    assert larger.domain_auc_limit == pytest.approx(0.525)
    assert 1 / larger.effective_sample_size_limit - 1 == pytest.approx((1 / 0.8 - 1) / 4)
    assert not larger.valid


def test_a_new_row_is_beyond_prediction_limits_as_often_as_the_level_says():
    random = np.random.default_rng(0)
    values, slack = random.normal(5.0, 2.0, (1000, 6, 2)), 3.0 * np.sqrt(0.16 * 0.84 / 1000)
    limits = np.array([shift.prediction_limits(rows, 1.0) for rows in values[:, :5]])
    beyond = (values[:, 5] > limits).any(axis=1).mean()
    assert norm.sf(1.0) - 0.02 - slack < beyond < norm.sf(1.0) + slack  # Bonferroni: a little less
    values[:, :, 1] = np.nan
    limits = np.array([shift.prediction_limits(rows, 1.0) for rows in values[:, :5]])
    assert np.isnan(limits[:, 1]).all()
    assert (values[:, 5, 0] > limits[:, 0]).mean() == pytest.approx(norm.sf(1.0), abs=slack)
    assert np.isnan(shift.prediction_limits(np.zeros((1, 3)), 3.0)).all()


@pytest.mark.filterwarnings("ignore:the alert limits of .* are so wide:UserWarning")
@pytest.mark.parametrize("n_chunks", [5, 50])
def test_at_most_20_reference_chunks_are_compared(n_chunks, monkeypatch):
    """The first and the last are among them."""
    measure = Mock(side_effect=shift.measure_shift)
    monkeypatch.setattr(estimation, "measure_shift", measure)
    y_true = np.arange(2000) % 2
    CBPE().fit(y_true=y_true, y_score=normal(2000)[:, 0] + y_true, chunks=Chunks.by_number(n_chunks))
    compared = [np.flatnonzero(~call.args[3]) for call in measure.call_args_list]
    assert len(compared) == min(n_chunks, estimation.MOST_CHUNKS)
    assert (compared[0][0], compared[-1][-1]) == (0, 1999)


@pytest.mark.filterwarnings("ignore:the alert limits of .* are so wide:UserWarning")
def test_scores_without_a_shift_are_valid():
    rates, level = false_alerts(500, 100, 20, 25, with_features=False)
    assert rates.mean() <= level + 3.0 * np.sqrt(level / 500)

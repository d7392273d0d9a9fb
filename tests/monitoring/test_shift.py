"""The shift report: nothing where nothing changed, something where it did."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from aucforest.monitoring._rows import rank_columns
from aucforest.monitoring.shift import MOST_ROWS, Sample, greatest_index, measure_shift, stability_index, tell_apart


def normal(n, mean=0.0, seed=0, columns=1):
    """Return normal columns."""
    return np.random.default_rng(seed).normal(mean, 1.0, (n, columns))


def test_stability_index_by_hand():
    reference = np.arange(100.0)[:, None]
    new = np.concatenate([np.zeros(50), np.arange(50.0, 100.0)])[:, None]
    old = np.full(10, 10.5) / 105
    counts = np.array([50, 0, 0, 0, 0, 10, 10, 10, 10, 10]) + 0.5
    shares = counts / counts.sum()
    expected = ((shares - old) * np.log(shares / old)).sum()
    assert stability_index(rank_columns(reference), rank_columns(new)) == pytest.approx(expected)
    assert stability_index(rank_columns(reference), rank_columns(reference)) == 0.0


def test_a_part_is_compared_with_the_rest():
    scores = normal(1000, columns=2)
    rest = np.arange(1000) % 10 > 0
    whole, part = Sample(rank_columns(scores), scores), Sample(rank_columns(scores[~rest]), scores[~rest])
    found, ratios = measure_shift(whole, part, np.random.default_rng(0), rest=rest)
    # bins are those of the whole, so the indices are close, not equal
    assert found.psi == pytest.approx(stability_index(rank_columns(scores[rest]), part.columns), rel=0.3)
    assert found[2:5] == tell_apart(scores[rest], scores[~rest], np.random.default_rng(0))[:3]
    assert ratios.size == 900
    halves = rank_columns(np.repeat([0.0, 1.0], 50)[:, None])
    moved = stability_index(halves, rank_columns(np.ones((50, 1))), is_part=True)
    # of 50 samples and three bins, of which an empty one does not count: 50.5 and 0.5 are compared with 0.5 and 50.5
    assert moved == pytest.approx(2 * 50 / 51 * np.log(101))


def test_stability_index_grows_with_the_shift_and_takes_the_worst_column():
    reference = rank_columns(normal(5000))
    values = [stability_index(reference, rank_columns(normal(5000, mean, seed=1))) for mean in (0.0, 0.3, 1.0)]
    assert values[0] < 0.01 < values[1] < 0.2 < values[2]
    both = rank_columns(np.hstack([normal(5000), normal(5000, seed=2)]))
    moved = np.hstack([normal(5000, seed=3), normal(5000, 1.0, seed=1)])
    assert stability_index(both, rank_columns(moved)) > 0.2


def test_few_distinct_scores():
    reference = rank_columns(np.repeat([0.1, 0.9], 50)[:, None])
    assert stability_index(reference, rank_columns(np.repeat([0.1, 0.9], 50)[:, None])) == 0.0
    assert stability_index(reference, rank_columns(np.repeat([0.1, 0.9], [90, 10])[:, None])) > 0.5
    same = rank_columns(np.full((100, 1), 0.3))
    assert stability_index(same, rank_columns(np.full((5, 1), 0.3))) == 0.0
    assert stability_index(same, rank_columns(np.full((5, 1), 0.4))) > 1.0


def test_no_new_samples_have_more_than_the_greatest_index():
    random = np.random.default_rng(0)
    for reference in (
        rank_columns(normal(1000)),
        rank_columns(random.choice(4, (1000, 1), p=[0.1, 0.2, 0.3, 0.4]) * 1.0),
    ):
        bins = [np.full((30, 1), value) for value in np.linspace(-3.0, 4.0, 50)]
        found = max(stability_index(reference, rank_columns(new)) for new in bins)
        assert found == pytest.approx(greatest_index(reference, 30))


def test_share_outside():
    reference = Sample(rank_columns(np.array([[0.2, 0.5], [0.4, 0.9]])), None)
    new = Sample(rank_columns(np.array([[0.2, 0.5], [0.1, 0.5], [0.3, 1.0], [0.5, 0.4]])), None)
    assert measure_shift(reference, new, np.random.default_rng(0))[0].outside == 0.75


def test_a_domain_classifier_sees_a_shift_and_nothing_else():
    reference = normal(800, columns=3)
    auc, error, size, _ = tell_apart(reference, normal(600, seed=1, columns=3), np.random.default_rng(0))
    moved = normal(600, 1.0, seed=1, columns=3)
    moved_auc, _, moved_size, ratios = tell_apart(reference, moved, np.random.default_rng(0))
    assert error == pytest.approx(np.sqrt(1401 / (12 * 800 * 600)))
    assert abs(auc - 0.5) < 4 * error
    assert moved_auc > 0.8
    assert size > 0.6 > 0.3 > moved_size
    assert ratios.mean() == pytest.approx(1.0)
    # rows near the new ones weigh more
    heavy = ratios > np.median(ratios)
    assert reference[heavy].mean() > reference[~heavy].mean() + 0.3


def test_the_null_error_is_that_of_mann_whitney():
    random = np.random.default_rng(0)
    n0, n1 = 30, 20
    samples = random.random((4000, n0)), random.random((4000, n1))
    values = mannwhitneyu(*samples, axis=1).statistic / (n0 * n1)
    assert np.std(values) == pytest.approx(np.sqrt((n0 + n1 + 1) / (12 * n0 * n1)), rel=0.05)


@pytest.mark.parametrize("n", [2, 4])
def test_small_samples_have_fewer_folds(n):
    auc, *_ = tell_apart(normal(100, columns=2), normal(n, seed=1, columns=2), np.random.default_rng(0))
    assert 0.0 <= auc <= 1.0


def test_large_samples_are_thinned():
    reference = normal(MOST_ROWS + 100, columns=1)
    for all_reference, n_rows in ((False, MOST_ROWS), (True, len(reference))):
        fit = tell_apart(reference, normal(50, seed=1), np.random.default_rng(0), all_reference=all_reference)
        assert fit[3].size == n_rows

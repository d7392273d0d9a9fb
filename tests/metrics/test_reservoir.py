import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.metrics import AUCReservoir, delong_covariance, roc_auc_score
from tests.metrics.strategies import random_rows


def test_all_rows_while_they_fit():
    positive, scores, _ = random_rows(300)
    reservoir = AUCReservoir(300, random_state=0)
    reservoir.update(positive, scores)
    assert reservoir.score() == roc_auc_score(positive, scores)
    assert reservoir.stderr() == pytest.approx(np.sqrt(delong_covariance(positive, scores)[1][0, 0]), rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 400), max_size=6), st.integers(0, 100))
def test_batches_do_not_matter(cuts, seed):
    positive, scores, _ = random_rows(400)
    whole, parts = AUCReservoir(20, random_state=seed), AUCReservoir(20, random_state=seed)
    whole.update(positive, scores)
    for rows in np.split(np.arange(400), sorted(cuts)):
        if rows.size:
            parts.update(positive[rows], scores[rows])
    assert parts.score() == whole.score()


def test_every_row_stays_with_the_same_chance():
    # 4000 runs over 10 rows into 3 places: each row is kept 1200 times, standard deviation 29
    kept = np.zeros(10)
    for seed in range(4000):
        reservoir = AUCReservoir(3, random_state=seed)
        reservoir.update(np.ones(10, bool), np.arange(10.0))
        kept[reservoir._kept[1].astype(int)] += 1
    assert kept.sum() == 12_000
    assert np.abs(kept - 1200).max() < 4.5 * 29


def drifting_stream(rng, n_batches=20, n_rows=100):
    """Yield batches of rare positives that the scores tell apart less and less."""
    for batch in range(n_batches):
        positive = rng.random(n_rows) < 0.2
        yield positive, rng.normal(size=n_rows) + positive * 3.0 * (1 - batch / n_batches)


def shared_count_auc(stream, size, rng):
    """Return the AUC of the classic mistake: one count for both classes decides about replacing a row."""
    kept, seen = ([], []), 0
    for positive, scores in stream:
        for label, score in zip(positive, scores):
            seen += 1
            sample = kept[int(label)]
            if len(sample) < size:
                sample.append(score)
            elif (slot := rng.integers(seen)) < size:
                sample[slot] = score
    return roc_auc_score(np.repeat([0, 1], [len(kept[0]), len(kept[1])]), np.concatenate(kept))


def test_unbiased_under_drift():
    errors, classic_errors = [], []
    for seed in range(60):
        stream = list(drifting_stream(np.random.default_rng(seed)))
        exact = roc_auc_score(*map(np.concatenate, zip(*stream)))
        reservoir = AUCReservoir(100, random_state=seed)
        for batch in stream:
            reservoir.update(*batch)
        errors.append(reservoir.score() - exact)
        if seed < 15:
            classic_errors.append(shared_count_auc(stream, 100, np.random.default_rng(seed)) - exact)
    standard_error = np.std(errors) / np.sqrt(60)
    assert abs(np.mean(errors)) < 3.5 * standard_error < 0.02
    assert np.mean(classic_errors) > 0.06  # the stream does tell the two apart


def test_standard_error_is_the_spread_of_the_score():
    scores, errors = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        positive = np.repeat([True, False], 500)
        reservoir = AUCReservoir(50, random_state=seed)
        reservoir.update(positive, rng.normal(size=1000) + positive)
        scores.append(reservoir.score())
        errors.append(reservoir.stderr())
    # a standard deviation of 300 values is good to 4 %, three times that
    assert np.mean(errors) == pytest.approx(np.std(scores), rel=0.13)
    assert np.mean(scores) == pytest.approx(ndtr(np.sqrt(0.5)), abs=0.01)


@pytest.mark.parametrize("rows", [([], []), ([0], [1.0]), ([1, 1], [1.0, 2.0])])
def test_without_both_classes(rows):
    reservoir = AUCReservoir(5, random_state=0)
    if len(rows[0]):
        reservoir.update(*rows)
    with pytest.warns(UndefinedMetricWarning, match="no row of a class") as caught:
        assert np.isnan(reservoir.score())
    assert caught[0].filename == __file__
    with pytest.warns(UndefinedMetricWarning, match="fewer than two rows"):
        assert np.isnan(reservoir.stderr())


def test_bad_input():
    with pytest.raises(ValueError, match="size must be at least 2, but is 1"):
        AUCReservoir(1)
    with pytest.raises(TypeError, match="float"):
        AUCReservoir(2.5)
    reservoir = AUCReservoir(2, random_state=0)
    for arguments in (([0, 2], [1, 2]), ([0, 1], [1, np.nan]), ([], [])):
        with pytest.raises(ValueError, match=r"y_true of a stream|y_score"):
            reservoir.update(*arguments)
    assert reservoir._seen == [0, 0]

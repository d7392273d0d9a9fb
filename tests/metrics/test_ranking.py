import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.metrics.ranking import HALF, WORD, lost_columns, lost_pairs, rank_rows
from tests.metrics.strategies import scores


def assert_ranked(values):
    """Check ranks against numpy's distinct values, and that equal scores keep the order of rows."""
    ranked = rank_rows(values)
    ranks, rows = ranked >> HALF, (ranked & WORD).astype(int)
    np.testing.assert_array_equal(ranks, np.unique(values, return_inverse=True)[1][rows])
    np.testing.assert_array_equal(rows, np.argsort(values, kind="stable"))


@given(st.lists(scores, min_size=1, max_size=200), st.sampled_from([np.float32, np.float64]))
def test_ranks(values, dtype):
    assert_ranked(np.clip(values, np.finfo(dtype).min, np.finfo(dtype).max).astype(dtype))


@pytest.mark.parametrize("centre", [0.0, 1.0, -1.0, 1e-300, -5e100])
def test_scores_that_share_their_high_word(centre):
    for n_rows in (2, 48, 49, 5000):
        values = np.array([centre]).view(np.int64) + np.random.default_rng(0).integers(0, 4 * n_rows, n_rows)
        assert_ranked(values.view(np.float64))
        assert_ranked(np.repeat(values.view(np.float64), 3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows(dtype):
    rng, limits = np.random.default_rng(1), np.finfo(dtype)
    assert_ranked(np.array([limits.max, limits.min, 0.0], dtype=dtype))
    assert_ranked(rng.normal(size=20_000).astype(dtype))
    assert_ranked((rng.normal(size=20_000) * 10.0 ** rng.integers(-30, 30, 20_000)).astype(dtype))
    assert_ranked(rng.integers(-5, 5, 20_000).astype(dtype))


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
def test_scores_must_be_finite(bad):
    columns, codes = np.array([[0.5, 1.0, 2.0], [-1.0, 2.0, bad]]), np.array([0, 1, 1], dtype=np.uint32)
    for call in (
        lambda: rank_rows(columns[1]),
        lambda: rank_rows(columns[1].astype(np.float32)),
        lambda: lost_columns(codes, columns, np.ones((1, 3))),
    ):
        with pytest.raises(ValueError, match=r"y_score must be finite, but value [25] is"):
            call()


@pytest.mark.parametrize("n_rows", [1, 2, 700])
def test_several_weights_at_once(n_rows):
    """The results are those of single weights to the last bit."""
    rng = np.random.default_rng(n_rows)
    columns, weights = rng.integers(0, 40, (2, n_rows)) / 7.0, rng.random((3, n_rows))
    codes, weights[1] = rng.integers(0, 2, n_rows).astype(np.uint32), 0.0
    expected = [lost_pairs(codes, columns.T, each) for each in weights]
    np.testing.assert_array_equal(lost_columns(codes, columns, weights), expected)

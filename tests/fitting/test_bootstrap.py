"""Draws of rows: by blocks, by strata, with replacement and without."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.fitting.bootstrap import BLOCK_ROWS, RowDraws
from aucforest.tree.random import tree_key
from tests.reference.tree import derive_key

WORDS = st.integers(0, 2**64 - 1)
SIZES = st.integers(1, 3 * BLOCK_ROWS)


def in_calls(draws: RowDraws, key: int, per_call: int) -> np.ndarray:
    """Draw all rows in calls of some blocks each."""
    by_block = draws.by_block(key)
    parts = [
        draws.counts_of_blocks(key, by_block[block : block + per_call], block)
        for block in range(0, len(by_block), per_call)
    ]
    return np.concatenate(parts)


def in_parts(draws: RowDraws, key: int, bounds: list[int]) -> np.ndarray:
    """Draw with the members of some blocks at a time."""
    of_trees = draws.of_trees([key - 1 if key else 1, key])
    parts = [of_trees.of_part(a * BLOCK_ROWS, (b - a) * BLOCK_ROWS) for a, b in pairwise(bounds)]
    joined = RowDraws.joined(parts)
    assert joined.n_rows == draws.n_rows
    assert np.array_equal(joined.counts(key), draws.counts(key))
    # A part of a part is one of all rows.
    parts.append(parts.pop().of_part(0, BLOCK_ROWS * len(draws.starts)))
    return np.concatenate([part.counts(key) for part in parts])


def by_hand(draws: RowDraws, strata: np.ndarray, key: int) -> np.ndarray:
    """Draw with Python's own containers, one row after the other."""
    counts = np.zeros(draws.n_rows, dtype=np.int64)
    for block, sizes in enumerate(draws.by_block(key)):
        start, n_drawn = block * BLOCK_ROWS, 0
        block_key = derive_key(key, block)
        for stratum, size in enumerate(sizes.tolist()):
            rows = start + np.flatnonzero(strata[start : start + BLOCK_ROWS] == stratum)
            taken: set[int] = set()
            for j in range(size):
                last = len(rows) if draws.replace else len(rows) - size + j + 1
                row = rows[derive_key(block_key, n_drawn) % 2**32 * last >> 32]
                if not draws.replace and row in taken:
                    row = rows[last - 1]
                taken.add(row)
                counts[row] += 1
                n_drawn += 1
    return counts


@given(WORDS, SIZES, st.integers(1, 30_000))
def test_blocks_share_all_draws(key, n_rows, n_draws):
    draws = RowDraws.of_all(n_rows, n_draws)
    assert draws.n_draws == n_draws
    assert draws.by_block(key).sum() == n_draws
    assert draws.by_block(key).shape == (-(-n_rows // BLOCK_ROWS), 1)
    assert np.array_equal(draws.by_block(key), draws.by_block(key))


def test_blocks_draw_by_their_size():
    draws = RowDraws.of_all(2 * BLOCK_ROWS + BLOCK_ROWS // 2, 10_000)
    mean = np.mean([draws.by_block(key)[:, 0] for key in range(400)], axis=0)
    # The mean of a block's binomial count has a standard deviation of 2.5.
    assert mean == pytest.approx([4000, 4000, 2000], abs=10)


@pytest.mark.parametrize("key", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("n_rows", [1, 4096, 4097, 14_000])
@pytest.mark.parametrize("replace", [True, False])
def test_draws_do_not_depend_on_how_blocks_are_spread(key, n_rows, replace):
    draws = RowDraws.of_all(n_rows, -(-n_rows // 2), replace=replace)
    whole = draws.counts(key)
    assert whole.sum() == draws.n_draws
    for per_call in (1, 2, 3):
        assert np.array_equal(whole, in_calls(draws, key, per_call))
    assert np.array_equal(whole, by_hand(draws, np.zeros(n_rows), key))


def test_blocks_and_keys_draw_differently():
    draws = RowDraws.of_all(2 * BLOCK_ROWS, 2 * BLOCK_ROWS)
    counts = draws.counts(5)
    # Unrelated counts correlate by 0.016 or so.
    assert abs(np.corrcoef(counts[:BLOCK_ROWS], counts[BLOCK_ROWS:])[0, 1]) < 0.08
    assert not np.array_equal(counts, draws.counts(6))


def test_counts_are_those_of_a_bootstrap():
    n_rows, n_trees = 5000, 200
    draws = RowDraws.of_all(n_rows, n_rows)
    counts = np.array([draws.counts(int(tree_key(np.uint64(3), t))) for t in range(n_trees)])
    # A million draws: standard errors of the shares are below 0.0005, of a row's mean 0.07.
    poisson = np.exp(-1.0) / np.array([1, 1, 2, 6, 24])
    assert np.bincount(counts.ravel())[:5] / counts.size == pytest.approx(poisson, abs=0.0025)
    assert np.abs(counts.mean(axis=0) - 1).max() < 0.07 * 5
    # Neighbouring rows and neighbouring trees are unrelated, but that all draws of a tree sum to n.
    assert abs(np.corrcoef(counts[:, :-1].ravel(), counts[:, 1:].ravel())[0, 1]) < 0.005
    assert abs(np.corrcoef(counts[:-1].ravel(), counts[1:].ravel())[0, 1]) < 0.005


@given(WORDS, SIZES, st.floats(0, 1))
def test_no_row_is_drawn_twice_without_replacement(key, n_rows, share):
    n_draws = max(1, round(share * n_rows))
    counts = RowDraws.of_all(n_rows, n_draws, replace=False).counts(key)
    assert counts.sum() == n_draws
    assert counts.max() == 1


def test_a_subsample_takes_every_row_alike():
    n_rows, n_trees = BLOCK_ROWS + 904, 400
    draws = RowDraws.of_all(n_rows, n_rows // 4, replace=False)
    counts = np.array([draws.counts(int(tree_key(np.uint64(1), t))) for t in range(n_trees)])
    # The mean of a row has a standard error of 0.022, that of all rows of a block none to speak of.
    assert np.abs(counts.mean(axis=0) - 0.25).max() < 0.022 * 5
    assert counts[:, :BLOCK_ROWS].mean() == pytest.approx(0.25, abs=0.002)
    assert counts.std(axis=0).mean() == pytest.approx(np.sqrt(0.25 * 0.75), abs=0.002)
    assert abs(np.corrcoef(counts[:, :-1].ravel(), counts[:, 1:].ravel())[0, 1]) < 0.005


@given(WORDS, SIZES, st.lists(st.integers(1, 3000), min_size=1, max_size=5), st.integers(0, 9))
def test_strata_draw_their_own_numbers(key, n_rows, sizes, seed):
    strata = np.random.default_rng(seed).integers(len(sizes), size=n_rows).astype(np.uint16)
    present = np.bincount(strata, minlength=len(sizes)) > 0
    sizes = np.where(present, sizes, 0)
    draws = RowDraws.of_strata(strata, sizes)
    counts = draws.counts(key)
    assert np.array_equal(np.bincount(strata, counts, minlength=len(sizes)), sizes)
    assert np.array_equal(counts, in_calls(draws, key, 1))
    n_blocks = len(draws.starts)
    assert np.array_equal(counts, in_parts(draws, key, [0, n_blocks // 2, n_blocks // 2, n_blocks]))
    assert np.array_equal(counts, by_hand(draws, strata, key))
    n_rows_of = np.bincount(strata, minlength=len(sizes))
    np.testing.assert_array_equal(draws.rates[present], sizes[present] / n_rows_of[present])


def test_a_part_knows_no_other_trees_than_those_it_was_given():
    part = RowDraws.of_all(9000, 5000).of_trees([7]).of_part(BLOCK_ROWS, BLOCK_ROWS)
    assert part.counts(7).shape == (BLOCK_ROWS,)
    with pytest.raises(ValueError, match="8"):
        part.counts(8)


def test_one_stratum_draws_as_all_rows_do():
    draws = RowDraws.of_strata(np.zeros(9000, dtype=np.uint16), np.array([5000]))
    assert np.array_equal(draws.counts(7), RowDraws.of_all(9000, 5000).counts(7))


def test_rows_of_a_stratum_are_drawn_alike():
    strata = (np.arange(6000) % 100 == 0).astype(np.uint16)
    draws = RowDraws.of_strata(strata, np.array([60, 60]))
    counts = np.mean([draws.counts(key) for key in range(2000)], axis=0)
    assert draws.rates == pytest.approx([60 / 5940, 1.0])
    # Standard errors of a rare row's mean are 0.022, of a common one's 0.0022.
    assert np.abs(counts[strata == 1] - 1).max() < 0.022 * 5
    assert np.abs(counts[strata == 0] - 60 / 5940).max() < 0.0022 * 6

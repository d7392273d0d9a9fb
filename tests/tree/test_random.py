"""Keys and draws against the published generator, and against what their distribution must be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree.random import BLOCK_ROWS, block_draws, bounded, derive_key, draw_blocks, mix, tree_key
from tests.reference import tree as reference

WORDS = st.integers(0, 2**64 - 1)

# Outputs of the SplitMix64 of its authors for two seeds.
KNOWN = {
    0: [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC, 0x1B39896A51A8749B],
    1234567: [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ],
}


@pytest.mark.parametrize("seed", KNOWN)
def test_keys_are_outputs_of_splitmix64(seed):
    assert [int(derive_key(np.uint64(seed), i)) for i in range(5)] == KNOWN[seed]
    assert [reference.derive_key(seed, i) for i in range(5)] == KNOWN[seed]


@given(WORDS, st.integers(0, 2**40))
def test_tree_key_mixes_the_seed_first(seed, tree):
    assert int(tree_key(np.uint64(seed), tree)) == reference.derive_key(int(mix(np.uint64(seed))), tree)


@given(WORDS, st.integers(1, 2**32 - 1))
def test_bounded_scales_the_low_half(bits, bound):
    assert bounded(np.uint64(bits), bound) == bits % 2**32 * bound >> 32 < bound


def test_bounded_reaches_both_ends():
    assert bounded(np.uint64(0), 7) == 0
    assert bounded(np.uint64(2**64 - 1), 7) == 6


@given(WORDS, st.integers(1, 5 * BLOCK_ROWS), st.integers(1, 30_000))
def test_blocks_share_all_draws(key, n_rows, n_draws):
    draws = block_draws(key, n_rows, n_draws)
    assert draws.sum() == n_draws
    assert len(draws) == -(-n_rows // BLOCK_ROWS)
    assert np.array_equal(draws, block_draws(key, n_rows, n_draws))


def test_blocks_draw_by_their_size():
    n_rows, n_draws = 2 * BLOCK_ROWS + BLOCK_ROWS // 2, 10_000
    mean = np.mean([block_draws(key, n_rows, n_draws) for key in range(400)], axis=0)
    # The mean of a block's binomial count has a standard deviation of 2.5.
    assert mean == pytest.approx([4000, 4000, 2000], abs=10)


def counts_of(key: int, n_rows: int, n_draws: int, per_call: int) -> np.ndarray:
    """Draw a bootstrap in calls of some blocks each."""
    draws, counts = block_draws(key, n_rows, n_draws), np.full(n_rows, 9, dtype=np.uint16)
    for block in range(0, len(draws), per_call):
        part = counts[block * BLOCK_ROWS : (block + per_call) * BLOCK_ROWS]
        draw_blocks(np.uint64(key), draws[block : block + per_call], block, part)
    return counts


@pytest.mark.parametrize("key", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("n_rows", [1, 4096, 4097, 14_000])
def test_a_bootstrap_does_not_depend_on_how_blocks_are_spread(key, n_rows):
    whole = counts_of(key, n_rows, n_rows, 100)
    assert whole.sum() == n_rows
    for per_call in (1, 2, 3):
        assert np.array_equal(whole, counts_of(key, n_rows, n_rows, per_call))


def test_blocks_and_keys_draw_differently():
    counts = counts_of(5, 2 * BLOCK_ROWS, 2 * BLOCK_ROWS, 2)
    # Unrelated counts correlate by 0.016 or so.
    assert abs(np.corrcoef(counts[:BLOCK_ROWS], counts[BLOCK_ROWS:])[0, 1]) < 0.08
    assert not np.array_equal(counts, counts_of(6, 2 * BLOCK_ROWS, 2 * BLOCK_ROWS, 2))


def test_counts_are_those_of_a_bootstrap():
    n_rows, n_trees = 5000, 200
    counts = np.array([counts_of(int(tree_key(np.uint64(3), t)), n_rows, n_rows, 9) for t in range(n_trees)])
    # A million draws: standard errors of the shares are below 0.0005, of a row's mean 0.07.
    poisson = np.exp(-1.0) / np.array([1, 1, 2, 6, 24])
    assert np.bincount(counts.ravel())[:5] / counts.size == pytest.approx(poisson, abs=0.0025)
    assert np.abs(counts.mean(axis=0) - 1).max() < 0.07 * 5
    # Neighbouring rows and neighbouring trees are unrelated, but that all draws of a tree sum to n.
    assert abs(np.corrcoef(counts[:, :-1].ravel(), counts[:, 1:].ravel())[0, 1]) < 0.005
    assert abs(np.corrcoef(counts[:-1].ravel(), counts[1:].ravel())[0, 1]) < 0.005

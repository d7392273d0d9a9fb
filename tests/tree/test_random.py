"""Keys and draws against the published generator, and against what their distribution must be."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest._compile import bare_kernel
from aucforest.tree import random
from aucforest.tree.random import derive_tree_keys
from tests.reference import tree as reference

WORDS = st.integers(0, 2**64 - 1)


@bare_kernel
def derive_key(key, purpose, index):
    return random.derive_key(key, purpose, index)


@bare_kernel
def bounded(bits, bound):
    return random.bounded(bits, bound)


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
    assert [int(derive_key(np.uint64(seed), random.TREE, i)) for i in range(5)] == KNOWN[seed]
    assert [reference.derive_key(seed, "tree", i) for i in range(5)] == KNOWN[seed]


@given(WORDS, st.integers(0, len(reference.PURPOSES) - 1), st.integers(0, 2**48 - 1))
def test_keys_are_the_reference(key, purpose, index):
    assert int(derive_key(np.uint64(key), purpose, index)) == reference.derive_key(
        key, reference.PURPOSES[purpose], index
    )


def test_purposes_have_different_streams():
    """Every call names a purpose, and no two purposes share a number of the stream below a key."""
    purposes = {name: value for name, value in vars(random).items() if name.isupper() and type(value) is int}
    assert sorted(purposes.values()) == list(range(len(purposes)))
    assert [name.lower() for name in purposes][: len(reference.PURPOSES)] == list(reference.PURPOSES)
    sources = [path.read_text() for path in Path(random.__file__).parents[1].rglob("*.py")]
    calls = re.findall(r"(?<!def )derive_key\((.*)", "\n".join(sources))
    assert len(calls) >= 8
    for call in calls:
        assert re.search(r", (\w+), ", call)[1] in purposes, call
    keys = {int(derive_key(np.uint64(7), purpose, i)) for purpose in purposes.values() for i in range(500)}
    assert len(keys) == 500 * len(purposes)


@given(WORDS, st.lists(st.integers(0, 2**40), max_size=3))
def test_keys_of_trees_mix_the_seed_first(seed, trees):
    keys = np.empty(len(trees), dtype=np.uint64)
    derive_tree_keys(np.uint64(seed), np.array(trees, dtype=np.int64), keys)
    assert keys.tolist() == [reference.derive_key(reference.mix(seed), "tree", tree) for tree in trees]


@given(WORDS, st.integers(1, 2**32 - 1))
def test_bounded_scales_the_low_half(bits, bound):
    assert bounded(np.uint64(bits), bound) == bits % 2**32 * bound >> 32 < bound


def test_bounded_reaches_both_ends():
    assert bounded(np.uint64(0), 7) == 0
    assert bounded(np.uint64(2**64 - 1), 7) == 6

"""Random numbers: keys are outputs of the published generator, and purposes have different streams."""

import numpy as np
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


# The outputs of the authors' SplitMix64 for the seed 1234567.
KNOWN = [0x599ED017FB08FC85, 0x2C73F08458540FA5, 0x883EBCE5A3F27C77, 0x3FBEF740E9177B3F, 0xE3B8346708CB5ECD]


def test_keys_are_outputs_of_splitmix64():
    assert [reference.derive_key(1234567, "tree", i) for i in range(5)] == KNOWN


@given(WORDS, st.integers(0, len(reference.PURPOSES) - 1), st.integers(0, 2**48 - 1))
def test_keys_are_the_reference(key, purpose, index):
    assert int(derive_key(np.uint64(key), purpose, index)) == reference.derive_key(
        key, reference.PURPOSES[purpose], index
    )


def test_purposes_have_different_streams():
    purposes = {name: value for name, value in vars(random).items() if name.isupper() and type(value) is int}
    assert sorted(purposes.values()) == list(range(len(purposes)))
    assert [name.lower() for name in purposes][: len(reference.PURPOSES)] == list(reference.PURPOSES)
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

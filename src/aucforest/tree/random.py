"""Counter-based random numbers: each is a function of what it is for, never of those before it.

So a bootstrap depends on (seed, tree, global row number) and the features of a node on (seed, tree, path from the
root) alone: not on the number of threads, nor on the order in which nodes are grown or rows are stored.
The mixing function is the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
"""

import numpy as np

from aucforest._compile import bare_device, bare_kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_LOW_32 = np.uint64(0xFFFFFFFF)


@bare_device
def mix(key: np.uint64) -> np.uint64:
    """Scramble 64 bits, one to one."""
    key = (key ^ (key >> np.uint64(30))) * _MIX_1
    key = (key ^ (key >> np.uint64(27))) * _MIX_2
    return key ^ (key >> np.uint64(31))


@bare_device
def derive_key(key: np.uint64, index: int) -> np.uint64:
    """Return the key of the index-th thing that belongs to `key`: a tree, a block, a child, a random number."""
    return mix(key + _GOLDEN * (np.uint64(index) + np.uint64(1)))


@bare_device
def bounded(bits: np.uint64, bound: int) -> np.int64:
    """Map random bits to 0..bound-1 (bound below 2**32; bias below bound / 2**32)."""
    return np.int64(((bits & _LOW_32) * np.uint64(bound)) >> np.uint64(32))


@bare_kernel
def tree_key(seed: np.uint64, tree: int) -> np.uint64:
    """Return the key of the root of a tree."""
    return derive_key(mix(seed), tree)

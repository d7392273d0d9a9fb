"""Counter-based random numbers: functions of a key, a purpose and an index, and not of earlier random numbers.

So a bootstrap sample only depends on (seed, tree, row index), and the sampled features of a node only depend on (seed,
tree, path from the root). The number of threads, the order of growing nodes and the storage of rows have no effect. A
key has a stream for each purpose, so that the random numbers of one purpose do not predict those of another purpose.
The mixing function is the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
"""

import numpy as np

from aucforest._compile import bare_device, bare_kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_LOW_32 = np.uint64(0xFFFFFFFF)

# Purposes. The key of a tree is derived from the mixed seed, and is also the key of its root.
TREE = 0
BLOCK, ROW = 1, 2  # bootstrap samples: a block of rows of a tree, a sampled row of a block
CHILD, FEATURE, SPLIT = 3, 4, 5  # for a node: a child, a sampled feature, the random split of a feature
ATTEMPT, CATEGORY = 6, 7  # random sets of categories: an attempt to sample a set, the side of a category in it
RATE_ORDER = 15  # for a tree: the order of samples for target rates, and the choice of interactions
# The other purposes are for NumPy's generators, which are seeded with a purpose and a key or seed.
BLOCK_SIZES = 8  # the numbers of sampled rows of the blocks
SCORED_SAMPLE = 9  # the rows scored out of bag
PAIRED_SAMPLE, PAIRED_TREES = 10, 11  # a paired comparison: the rows, and the halves of the trees
SPREAD_SAMPLE, RESAMPLED_TREES = 12, 13  # the spread of a threshold: the rows, and the resampled trees
STACK_SAMPLE = 14  # the rows that a stack samples
HALF_SAMPLES = 16  # half-samples shared by trees, and rows that measure the dispersion of trees
PARTS_OF_ROWS = 17  # the parts of rows for cross-validation and the jackknife, the same for every seed
# Indices are less than 2**48, so that the purposes of a key have different streams.
_INDEX_BITS = np.uint64(48)


@bare_device
def mix(key: np.uint64) -> np.uint64:
    """Hash 64 bits with a bijective function."""
    key = (key ^ (key >> np.uint64(30))) * _MIX_1
    key = (key ^ (key >> np.uint64(27))) * _MIX_2
    return key ^ (key >> np.uint64(31))


@bare_device
def derive_key(key: np.uint64, purpose: int, index: int | np.int64) -> np.uint64:
    """Return a number of the SplitMix64 stream of `key` for a purpose and an index; it is a key or random bits."""
    return mix(key + _GOLDEN * ((np.uint64(purpose) << _INDEX_BITS) + np.uint64(index) + np.uint64(1)))


@bare_device
def bounded(bits: np.uint64, bound: int) -> np.int64:
    """Map random bits to 0..bound-1. The bound must be below 2**32, and the bias is below bound / 2**32."""
    return np.int64(((bits & _LOW_32) * np.uint64(bound)) >> np.uint64(32))


@bare_kernel
def derive_tree_keys(seed, trees, keys):
    """Write the keys of the roots of trees."""
    for i in range(len(trees)):
        keys[i] = derive_key(mix(seed), TREE, trees[i])

"""Random samples of rows with a maximum number of rows of each class, and class frequencies."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.metrics.validation import count_classes

# Number of rows in a block of the search for the rows of a class.
_MASK_ROWS = 2**20


def sample_classes(labels: NDArray[Any], n_classes: int, most: int, seed: Sequence[int]) -> NDArray[np.int64]:
    """Return the indices, in ascending order, of a random sample of at most `most` rows of each class.

    `seed` is the seed of NumPy's generator. It should include the constant of `tree.random` for the purpose.
    """
    generator, sample = np.random.default_rng(seed), []
    for k in range(n_classes):
        is_class = labels == k
        n_rows = np.count_nonzero(is_class)
        ranks = np.arange(n_rows) if n_rows <= most else generator.choice(n_rows, most, replace=False, shuffle=False)
        sample.append(_positions(is_class, np.sort(ranks)))
    return np.sort(np.concatenate(sample))


def _positions(mask: NDArray[np.bool_], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the True values of a mask that have the given ascending ranks, counted from 0."""
    positions, n_passed = [np.empty(0, dtype=np.int64)], 0
    for start in range(0, len(mask), _MASK_ROWS):
        in_block = np.flatnonzero(mask[start : start + _MASK_ROWS])
        first, last = np.searchsorted(ranks, (n_passed, n_passed + len(in_block)))
        positions.append(start + in_block[ranks[first:last] - n_passed])
        n_passed += len(in_block)
    return np.concatenate(positions)


def class_frequencies(labels: NDArray[Any], weights: NDArray[np.float64] | None, n_classes: int) -> NDArray[np.float64]:
    """Return the proportion of each class in the total weight of the rows."""
    totals = count_classes(labels, n_classes, weights)
    return np.asarray(totals / totals.sum())


def class_factors(labels: NDArray[Any], sample_labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return a weight factor for each sampled row, so that the sample has the class totals of all rows."""
    n_classes = int(labels.max()) + 1
    counts, sample_counts = (np.bincount(codes, minlength=n_classes) for codes in (labels, sample_labels))
    return np.asarray(counts / np.maximum(sample_counts, 1))[sample_labels]

"""Random samples of rows with a maximum number of rows of each class, and class frequencies."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.metrics.validation import count_classes

# The rows of a class are searched in blocks of this many rows, to save memory.
_BLOCK_ROWS = 2**20


def sample_classes(labels: NDArray[Any], n_classes: int, max_rows: int, seed: Sequence[int]) -> NDArray[np.int64]:
    """Return the indices, in ascending order, of a random sample of at most `max_rows` rows of each class.

    `seed` should include a constant of `tree.random`, so that samples for different purposes are independent.
    """
    generator, sample = np.random.default_rng(seed), []
    for k in range(n_classes):
        is_class = labels == k
        n_rows = np.count_nonzero(is_class)
        ranks = np.arange(n_rows)
        if n_rows > max_rows:
            ranks = np.sort(generator.choice(n_rows, max_rows, replace=False, shuffle=False))
        sample.append(_positions(is_class, ranks))
    return np.sort(np.concatenate(sample))


def _positions(mask: NDArray[np.bool_], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the True values of a mask that have the given ascending ranks, counted from 0."""
    positions, n_passed = [np.empty(0, dtype=np.int64)], 0
    for start in range(0, len(mask), _BLOCK_ROWS):
        in_block = np.flatnonzero(mask[start : start + _BLOCK_ROWS])
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

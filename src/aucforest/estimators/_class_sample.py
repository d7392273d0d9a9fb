"""Random samples of rows with a maximum number of rows of each class, and class frequencies."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.metrics.validation import count_classes


def sample_classes(labels: NDArray[Any], n_classes: int, max_rows: int, seed: Sequence[int]) -> NDArray[np.int64]:
    """Return the ascending indices of a random sample of at most `max_rows` rows of each class.

    `seed` should include a constant of `tree.random`, so that samples for different purposes are independent.
    """
    generator, sample = np.random.default_rng(seed), []
    for k in range(n_classes):
        rows = np.flatnonzero(labels == k)
        if len(rows) > max_rows:
            rows = generator.choice(rows, max_rows, replace=False, shuffle=False)
        sample.append(rows)
    return np.sort(np.concatenate(sample))


def class_frequencies(labels: NDArray[Any], weights: NDArray[np.float64] | None, n_classes: int) -> NDArray[np.float64]:
    """Return the proportion of each class in the total weight of the rows."""
    totals = count_classes(labels, n_classes, weights)
    return np.asarray(totals / totals.sum())


def class_factors(labels: NDArray[Any], sample_labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return a weight for each sampled row. The weights of a class sum to the number of all rows of the class."""
    n_classes = int(labels.max()) + 1
    counts, sample_counts = (np.bincount(codes, minlength=n_classes) for codes in (labels, sample_labels))
    return np.asarray(counts / np.maximum(sample_counts, 1))[sample_labels]

"""Ordered target statistics: class frequencies of the category of a sample among samples that come before it.

The samples of a tree are in a random order of the tree's own. The rates of a sample do not depend on its label, so a
tree cannot learn from them that a category with a single sample has the class of this sample (Prokhorenkova et al.
2018, CatBoost: unbiased boosting with categorical features, NeurIPS). Samples of a group do not inform each other.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_kernel
from aucforest.tree.random import RATE_ORDER, bounded, derive_key


class SampleOrder(NamedTuple):
    """The samples of a tree in random order; those of a group are together."""

    samples: NDArray[np.int64]  # (n_samples,)
    ends: NDArray[np.int64]  # (n_groups,) the end of each group in `samples`; empty if each sample is one


@bare_kernel
def shuffle(key, purpose, numbers):
    """Shuffle numbers (Fisher and Yates), given a key and a purpose of `tree.random`."""
    for i in range(len(numbers) - 1, 0, -1):
        j = bounded(derive_key(key, purpose, i), i + 1)
        numbers[i], numbers[j] = numbers[j], numbers[i]


@bare_kernel
def _sort_by_group(ranks, ends, samples):
    """Write the samples sorted by the rank of their group, and the end of each group."""
    for i in range(len(ranks)):
        ends[ranks[i]] += 1
    total = 0
    for rank in range(len(ends)):
        size = ends[rank]
        ends[rank] = total
        total += size
    for i in range(len(ranks)):
        samples[ends[ranks[i]]] = i
        ends[ranks[i]] += 1


def sample_order(key: int, n_samples: int, groups: NDArray[np.integer] | None) -> SampleOrder:
    """Return a random order of the samples of a tree, given its key and the groups of the samples."""
    if groups is None:
        samples = np.arange(n_samples)
        shuffle(np.uint64(key), RATE_ORDER, samples)
        return SampleOrder(samples, np.empty(0, dtype=np.int64))
    numbers = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    rank_of = np.arange(numbers.max() + 1)
    shuffle(np.uint64(key), RATE_ORDER, rank_of)
    samples, ends = np.empty(n_samples, dtype=np.int64), np.zeros(len(rank_of), dtype=np.int64)
    _sort_by_group(rank_of[numbers], ends, samples)
    return SampleOrder(samples, ends)


@bare_kernel
def _add_ordered(samples, ends, cells, labels, weights, classes, smoothing, totals, counts, rates):
    """Replace the rates that are smoothed towards, (n_classes, n_samples), by those of the cells.

    `totals`, (n_cells,), and `counts`, (n_cells, n_classes), are 0 at the beginning. `weights` may be empty.
    """
    start, n_groups = 0, len(ends) if len(ends) > 0 else len(samples)
    for group in range(n_groups):
        stop = ends[group] if len(ends) > 0 else group + 1
        for place in range(start, stop):
            i = samples[place]
            cell = cells[i]
            if cell < 0:
                continue
            for c in range(len(classes)):
                rates[c, i] = (counts[cell, c] + smoothing * rates[c, i]) / (totals[cell] + smoothing)
        for place in range(start, stop):
            i = samples[place]
            cell = cells[i]
            if cell < 0:
                continue
            weight = weights[i] if len(weights) > 0 else 1.0
            totals[cell] += weight
            for c in range(len(classes)):
                if labels[i] == classes[c]:
                    counts[cell, c] += weight
        start = stop


def ordered_rates(
    order: SampleOrder,
    cells: NDArray[np.int64],
    n_cells: int,
    labels: NDArray[np.uint16],
    weights: NDArray[np.float64],
    classes: NDArray[np.int64],
    smoothing: float,
    towards: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the ordered rates of some classes, (n_classes, n_samples).

    Parameters
    ----------
    order : SampleOrder
    cells : ndarray of shape (n_samples,), int64
        The number of the category of each sample, or of its combination with something else; -1 for a missing one.
    n_cells : int
    labels : ndarray of shape (n_samples,), uint16
    weights : ndarray of shape (n_samples,), float64, or empty if all are 1
    classes : ndarray of shape (n_classes,), int64
    smoothing : float
        The weight of `towards`, in samples.
    towards : ndarray of shape (n_classes, n_samples), float64
        The rates without any sample of the cell.
    """
    rates = towards.copy()
    totals, counts = np.zeros(n_cells), np.zeros((n_cells, len(classes)))
    _add_ordered(order.samples, order.ends, cells, labels, weights, classes, smoothing, totals, counts, rates)
    return rates

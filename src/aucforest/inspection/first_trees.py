"""Out-of-bag probabilities of the first trees of a forest."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.out_of_bag import TrainingRows


class FirstTrees(NamedTuple):
    """What the first trees say of the training rows that one of them did not draw."""

    n_trees: int
    # these rows, and their class probabilities
    seen: NDArray[np.int64]
    proba: NDArray[np.float64]


def first_trees(forest: Any, rows: TrainingRows, n_points: int) -> Iterator[FirstTrees]:
    """Yield growing parts of a fitted forest, at even ratios from one tree to all; every tree is asked once."""
    n_trees = np.unique(np.geomspace(1, len(forest.trees_), n_points).round().astype(np.int64))
    total, n_unseen = np.zeros((len(rows.labels), len(forest.classes_))), np.zeros(len(rows.labels), np.int64)
    for start, stop in pairwise([0, *n_trees.tolist()]):
        (sums,) = forest._sum_out_of_bag(rows, [range(start, stop)])
        total += sums.total
        n_unseen += sums.n_trees
        seen = np.flatnonzero(n_unseen)
        yield FirstTrees(stop, seen, forest._mean_of_trees(total[seen], n_unseen[seen, None]))

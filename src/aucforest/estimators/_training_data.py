"""What a fit knows of its training rows, wherever they are."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs
from numpy.typing import NDArray

from aucforest.estimators._out_of_bag import Bags, SumRows, TrainingRows
from aucforest.fitting.growth_params import GrowthParams
from aucforest.fitting.memory import FitSize, check_fit
from aucforest.tree.tree import Tree


def kept_rows(sample_weight: NDArray[np.float64] | None) -> NDArray[np.int64] | None:
    """Return the rows of positive weight, None for all."""
    return None if sample_weight is None or np.all(sample_weight > 0) else np.flatnonzero(sample_weight)


class KeptRows:
    """What is said of the rows of positive weight, where labels and weights are those of all rows."""

    labels: NDArray[np.uint16]
    sample_weight: NDArray[np.float64] | None
    kept: NDArray[np.int64] | None

    @cached_property
    def kept_labels(self) -> NDArray[np.uint16]:
        """The labels of these rows."""
        return self.labels if self.kept is None else self.labels[self.kept]

    @cached_property
    def kept_weight(self) -> NDArray[np.float64] | None:
        """The sample weights of these rows."""
        return self.sample_weight if self.sample_weight is None or self.kept is None else self.sample_weight[self.kept]


@dataclass(frozen=True)
class TrainingData(KeptRows):
    """Validated rows, and how trees are grown from them.

    Attributes
    ----------
    X : anything with ``X[rows]``, a float matrix of some rows given by their numbers or a mask
        As trees read it; rows of weight 0 need not be there.
    n_features : int
    labels : ndarray of shape (n_rows,), uint16
        The numbers of the classes.
    sample_weight : ndarray of shape (n_rows,), float64, or None
    kept : ndarray of int64, or None
        The rows of positive weight, which trees are grown from; None for all.
    weights : ndarray of shape (n_kept,), float64, or None
        What these count in trees: sample weights times class weights. None when every row counts 1.
    grow : callable
        Takes what trees need to know and their keys; returns the trees.
    n_codes : int or None
        Most codes of a feature, missing values included; None where rows are elsewhere, with plans of their own.
    sum_rows : callable or None
        Sums out of bag where the rows are, in place of `_out_of_bag.sum_out_of_bag`.
    """

    X: Any
    n_features: int
    labels: NDArray[np.uint16]
    sample_weight: NDArray[np.float64] | None
    kept: NDArray[np.int64] | None
    weights: NDArray[np.float64] | None
    grow: Callable[[GrowthParams, list[int]], list[Tree]]
    n_codes: int | None = None
    sum_rows: SumRows | None = None

    @property
    def n_kept(self) -> int:
        """Number of rows that trees grow from."""
        return len(self.labels if self.kept is None else self.kept)

    def check_memory(self, params: GrowthParams, n_trees: int, n_jobs: int | None, n_sums: int = 0) -> None:
        """Refuse a fit that would take too much memory, given its out-of-bag sums that are kept at a time."""
        if self.n_codes is not None:
            size = (self.n_kept, self.n_features, int(self.labels.max()) + 1, self.n_codes)
            weighted = self.weights is not None or params.balance_draws
            # Workers elsewhere do not take memory of this machine.
            n_threads = min(effective_n_jobs(n_jobs), cpu_count())
            check_fit(FitSize(*size, n_trees, n_threads, weighted, n_sums), params)

    def rows(self, bags: Bags) -> TrainingRows:
        """Return the rows with the draws of the trees."""
        return TrainingRows(self.X, self.labels, self.sample_weight, bags, self.sum_rows)

"""Validated and ranked scores of samples, and the probabilities of their labels.

p[i, c] is the probability that sample i has class c. For two classes there is one column, for the positive class. For
more classes there is a column for each. The realized metric is the metric of random labels with these probabilities.
An influence h[i, c] is the derivative of a metric with respect to p[i, c]. Since the labels of different samples are
independent, the variance of the realized metric is, to first order,

    sum_i ( sum_c p h^2 - (sum_c p h)^2 )            or, for one column, sum_i p (1 - p) h^2
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.metrics.ranking import HALF, WORD, rank_rows
from aucforest.metrics.validation import FloatArray, check_scores, require_range

IntArray = NDArray[np.intp]

SUM_TOLERANCE = 1e-3  # the tolerance of sums of probabilities, which are often rounded to a few decimals


class RankedColumn:
    """The ranked scores of one column.

    `order` has the indices of the samples in ascending order of their scores. A group is all samples with equal scores.
    The samples of group g are ``order[edges[g]:edges[g + 1]]``.
    """

    def __init__(self, scores: FloatArray) -> None:
        ranked = rank_rows(scores)  # the rank is in the upper half of each integer, and the sample in the lower half
        self.scores = scores
        self.order: IntArray = (ranked & WORD).view(np.intp)
        has_ties = int(ranked[-1] >> HALF) + 1 < scores.size
        self.edges: IntArray = _edges(np.diff(ranked >> HALF) > 0) if has_ties else np.arange(scores.size + 1)

    @classmethod
    def from_sorted(cls, scores: FloatArray) -> Self:
        """Return the column of scores that are in ascending order."""
        column = cls.__new__(cls)
        column.scores, column.order, column.edges = scores, np.arange(scores.size), _edges(np.diff(scores) > 0.0)
        return column

    @property
    def is_distinct(self) -> bool:
        """Whether no two scores are equal."""
        return self.edges.size > self.order.size

    @cached_property
    def distinct(self) -> FloatArray:
        """The distinct scores, ascending."""
        return self.scores[self.order if self.is_distinct else self.order[self.edges[:-1]]]

    @cached_property
    def midranks(self) -> FloatArray:
        """The mean rank of the group of each sample (midrank), minus (n + 1) / 2; the sum is 0."""
        return self.to_rows(0.5 * (self.edges[:-1] + self.edges[1:] - self.scores.size))

    def to_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return for every sample the value of its group."""
        out = np.empty(self.scores.size, values.dtype)
        out[self.order] = values if self.is_distinct else np.repeat(values, np.diff(self.edges))
        return out

    def sums(self, values: NDArray[Any]) -> FloatArray:
        """Return for every group the sum of the values of its samples."""
        ordered = values[self.order].astype(np.float64, copy=False)
        return ordered if self.is_distinct else np.add.reduceat(ordered, self.edges[:-1])

    def below(self, values: NDArray[Any]) -> FloatArray:
        """Return for every sample the sum of the values of all lower scores, plus half the sum of its own group."""
        sums = self.sums(values)
        return self.to_rows(np.cumsum(sums) - 0.5 * sums)


def _edges(rises: NDArray[np.bool_]) -> IntArray:
    """Return the starts of the groups of equal scores, and the number of samples as the last element."""
    return np.concatenate([[0], np.flatnonzero(rises) + 1, [rises.size + 1]])


def rank_columns(scores: FloatArray) -> list[RankedColumn]:
    """Rank each column of scores, which may have one or two dimensions."""
    return [RankedColumn(np.ascontiguousarray(column)) for column in scores.reshape(len(scores), -1).T]


def side_by_side(columns: Sequence[FloatArray]) -> FloatArray:
    """Return the columns as a matrix (n_samples, n_columns) in column-major order."""
    return np.array(columns).T


def dot(a: FloatArray, b: FloatArray) -> float:
    """Return the sum of products. BLAS is not used, because its threads are slow if other processes are running."""
    axes = "ij"[: a.ndim]
    return float(np.einsum(f"{axes},{axes}->", a, b))


class RankedSamples(NamedTuple):
    """Samples with ranked scores and class probabilities."""

    columns: list[RankedColumn]
    p: FloatArray  # the probabilities, or 0 and 1 for known labels
    predicted: NDArray[np.uint32] | None = None  # the class indices of the predictions

    def by_column(self) -> list["RankedSamples"]:
        """Return one-vs-rest samples for each class, with the scores and probabilities of this class."""
        return [RankedSamples([column], self.p[:, k : k + 1]) for k, column in enumerate(self.columns)]


class Estimate(NamedTuple):
    """An estimate of a metric; the module docstring defines the influence."""

    value: float  # the metric with p in place of labels
    expected: float  # the expectation of the realized metric
    influence: FloatArray

    @classmethod
    def undefined(cls, p: FloatArray) -> Self:
        return cls(np.nan, np.nan, np.full_like(p, np.nan))


def label_variance(p: FloatArray, influence: FloatArray) -> float:
    """Return the variance of a realized metric by the formula of the module docstring."""
    product = p * influence
    means = product if p.shape[1] == 1 else product.sum(axis=1)
    return max(0.0, dot(product, influence) - dot(means, means))


def is_probability(values: FloatArray) -> bool:
    """Return whether all values are in [0, 1] and, if there are several columns, each row sums to 1."""
    if values.min() < 0.0 or values.max() > 1.0:
        return False
    return values.shape[1] == 1 or bool(np.abs(values.sum(axis=1) - 1.0).max() <= SUM_TOLERANCE)


def check_probabilities(p: ArrayLike, *, n_dims: int, name: str = "p") -> FloatArray:
    """Return validated probabilities as float64, with one row for each sample and one column if `n_dims` is 1."""
    values = np.asarray(check_scores(p, n_dims=n_dims, name=name, finite=True), dtype=np.float64)
    require_range(values, name)
    columns = values.reshape(len(values), -1)
    if not is_probability(columns):
        sums = columns.sum(axis=1)
        row = int(np.argmax(np.abs(sums - 1.0)))
        raise ValueError(f"rows of {name} must sum to 1, but row {row} sums to {sums[row]:.6g}")
    return columns


def check_raw_scores(scores: FloatArray, calibrated: NDArray[np.bool_]) -> None:
    """Raise ValueError if the columns for which `calibrated` is False are not probabilities."""
    for column in scores[:, ~calibrated].T:  # one at a time, so that the error has the index of the sample
        require_range(column, "y_score")
    if not calibrated.any():
        check_probabilities(scores, n_dims=2, name="y_score")


def check_scored(y_score: ArrayLike, p: ArrayLike, *, n_dims: int) -> RankedSamples:
    """Return samples with validated scores and probabilities, which have `n_dims` dimensions."""
    scores = np.asarray(check_scores(y_score, n_dims=n_dims), dtype=np.float64)
    columns = check_probabilities(p, n_dims=n_dims)
    if scores.shape != np.shape(p):
        raise ValueError(f"y_score and p must have the same shape, but have {scores.shape} and {np.shape(p)}")
    if n_dims == 2 and columns.shape[1] < 2:
        raise ValueError("p must have at least two columns, but has 1")
    return RankedSamples(rank_columns(scores), columns)

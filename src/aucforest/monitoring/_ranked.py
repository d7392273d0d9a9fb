"""One column of scores in ascending order: what ranking, calibration and average precision all walk over."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from aucforest.metrics._ranking import HALF, WORD, rank_rows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class RankedColumn:
    """Scores with their ascending order and their groups of equal values.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        As given.
    order : ndarray of shape (n,)
        Rows by ascending score.
    edges : ndarray of shape (n_groups + 1,)
        Group g of equal scores is ``order[edges[g]:edges[g + 1]]``.
    """

    def __init__(self, scores: FloatArray) -> None:
        ranked = rank_rows(scores)
        self.scores = scores
        self.order: IntArray = (ranked & WORD).view(np.intp)
        has_ties = int(ranked[-1] >> HALF) + 1 < scores.size
        self.edges: IntArray = _edges(np.diff(ranked >> HALF) > 0) if has_ties else np.arange(scores.size + 1)

    @classmethod
    def of_sorted(cls, scores: FloatArray) -> Self:
        """Return the column of scores that ascend already."""
        column = cls.__new__(cls)
        column.scores, column.order, column.edges = scores, np.arange(scores.size), _edges(np.diff(scores) > 0.0)
        return column

    @property
    def is_distinct(self) -> bool:
        """Whether no two scores are equal."""
        return self.edges.size > self.order.size

    @cached_property
    def values(self) -> FloatArray:
        """The distinct scores, ascending."""
        return self.scores[self.order if self.is_distinct else self.order[self.edges[:-1]]]

    @cached_property
    def midranks(self) -> FloatArray:
        """Midrank of every row minus (n + 1) / 2, so that they sum to 0."""
        centred = 0.5 * (self.edges[:-1] + self.edges[1:] - self.scores.size)
        return self.to_rows(centred)

    def to_rows(self, of_groups: NDArray[Any]) -> NDArray[Any]:
        """Return for every row the value of its group."""
        out = np.empty(self.scores.size, of_groups.dtype)
        out[self.order] = of_groups if self.is_distinct else np.repeat(of_groups, np.diff(self.edges))
        return out

    def sums(self, of_rows: NDArray[Any]) -> FloatArray:
        """Return for every group the sum over its rows."""
        ordered = of_rows[self.order].astype(np.float64, copy=False)
        return ordered if self.is_distinct else np.add.reduceat(ordered, self.edges[:-1])

    def below(self, of_rows: NDArray[Any]) -> FloatArray:
        """Return for every row the sum over the rows ranked below it, ties half."""
        sums = self.sums(of_rows)
        return self.to_rows(np.cumsum(sums) - 0.5 * sums)


def _edges(rises: NDArray[np.bool_]) -> IntArray:
    """Return where groups of equal scores begin, and the number of rows."""
    return np.concatenate([[0], np.flatnonzero(rises) + 1, [rises.size + 1]])


def side_by_side(columns: Sequence[FloatArray]) -> FloatArray:
    """Return columns as a matrix (n, n_columns) in which each stays contiguous, since they are worked on one by one."""
    return np.array(columns).T


def dot(a: FloatArray, b: FloatArray) -> float:
    """Return the sum of products; not by BLAS, whose threads wait for each other when others use the processors."""
    axes = "ij"[: a.ndim]
    return float(np.einsum(f"{axes},{axes}->", a, b))

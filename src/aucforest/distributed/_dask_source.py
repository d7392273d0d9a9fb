"""Dask partitions in three looks: at labels and weights, at what the values are, and as codes."""

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, _check_y

from aucforest.distributed._coding import Coding, Request, Summary, choose_coding, merge_all, places_within, summarize
from aucforest.distributed._collections import Partitions
from aucforest.distributed._dask_executor import DaskExecutor
from aucforest.distributed._fitting import Target
from aucforest.distributed._parts import CodedPart
from aucforest.estimators._base import code_classes
from aucforest.estimators._columns import as_table
from aucforest.estimators._growing import combine_weights
from aucforest.tree.sampling import BLOCK_ROWS, RowDraws

# Summaries that are merged at a time.
_MERGED = 8


class LabelledPart(NamedTuple):
    """What a partition says of its target: sorted classes, their numbers by row, and weights."""

    classes: NDArray[Any]
    labels: NDArray[np.uint16]
    sample_weight: NDArray[np.float64] | None


class Piece(NamedTuple):
    """The rows of positive weight of a partition: codes (n_features, n_rows), the numbers of classes, and weights."""

    codes: NDArray[np.unsignedinteger]
    labels: NDArray[np.uint16]
    sample_weight: NDArray[np.float64] | None


class DaskSource:
    """Partitions on a cluster, which become codes.

    Parameters
    ----------
    executor : DaskExecutor
    partitions : Partitions

    Attributes
    ----------
    target : Target
    """

    def __init__(self, executor: DaskExecutor, partitions: Partitions) -> None:
        self._executor = executor
        n_parts, weights = len(partitions.y), partitions.sample_weight
        # All at once: what tables and labels are made of is read once.
        y, *others = executor.compute([partitions.y, *([] if weights is None else [weights]), partitions.X])
        self._X = others.pop()
        self._labelled = [
            executor.submit(_look_at_target, place, y[place], others[0][place] if others else None)
            for place in range(n_parts)
        ]
        parts = executor.gather(self._labelled)
        sample_weight = np.concatenate([part.sample_weight for part in parts]) if others else None
        self.target = Target([part[:2] for part in parts], sample_weight)
        self._firsts = np.concatenate(([0], np.cumsum([len(part.labels) for part in parts])))
        kept = self.target.kept
        # Where the rows of every partition begin among those of positive weight, and where the last ones end.
        self._starts = (self._firsts if kept is None else np.searchsorted(kept, self._firsts)).tolist()

    def code(self, request: Request) -> Coding:
        """Choose codes by what all partitions say, and let the workers encode them."""
        executor, X, labelled = self._executor, self._X, self._labelled
        coding = choose_coding(*self._summarize(request), request.max_bins)
        shared, classes = executor.share(coding), executor.share(self.target.classes)
        self._pieces = [executor.submit(_encode, *pair, classes, shared) for pair in zip(X, labelled)]
        del X, labelled, self._X, self._labelled
        executor.release()
        return coding

    def _summarize(self, request: Request) -> tuple[Summary, NDArray[np.float64] | None]:
        """Return what all partitions say, and the weights of the sampled rows."""
        executor, target, firsts = self._executor, self.target, self._firsts
        sample = target.sample(request.max_bins)
        rows = sample if target.kept is None else target.kept[sample]
        level = []
        for place, (first, last) in enumerate(pairwise(firsts.tolist())):
            look = self._X[place], self._labelled[place], places_within(rows, first, last - first)
            level.append(executor.submit(_look_at_values, place, *look, request))
        while len(level) > 1:
            groups = [level[i : i + _MERGED] for i in range(0, len(level), _MERGED)]
            level = [executor.submit(_merge, group, request.max_bins) for group in groups]
        weight = target.kept_weight
        return executor.gather(level)[0], None if weight is None else weight[sample]

    def make_parts(
        self, draws: RowDraws | None, by_class: NDArray[np.float64] | None, n_parts: int
    ) -> tuple[list[Any], list[int]]:
        """Return futures of coded parts of about equal size, and their bounds; to be called once.

        Parameters
        ----------
        draws : RowDraws or None
        by_class : ndarray of shape (n_classes,), float64, or None
            The weights of classes.
        n_parts : int
        """
        executor, n_rows = self._executor, self._starts[-1]
        n_blocks = -(-n_rows // BLOCK_ROWS)
        bounds = np.minimum(np.linspace(0, n_blocks, n_parts + 1).astype(np.int64) * BLOCK_ROWS, n_rows).tolist()
        if draws is not None:
            draws = replace(draws, members=np.empty(0, dtype=np.uint16))
        shared = executor.share((draws, by_class))
        parts = []
        for start, stop in pairwise(bounds):
            cuts = []
            for piece, (first, last) in zip(self._pieces, pairwise(self._starts)):
                if max(first, start) < min(last, stop):
                    inner = max(start - first, 0), min(stop, last) - first
                    # A piece is cut where it is: no more is moved than is needed.
                    cuts.append(piece if inner == (0, last - first) else executor.submit(_cut, piece, *inner))
            parts.append(executor.submit(_join, start, shared, cuts))
        del self._pieces
        return parts, bounds


def _look_at_target(place: int, y: Any, sample_weight: Any) -> LabelledPart:
    """Return the classes of a partition; refuse what are no labels or weights."""
    n_rows = len(y)
    if sample_weight is not None and len(sample_weight) != n_rows:
        raise ValueError(f"partition {place} of sample_weight has {len(sample_weight)} rows, but y has {n_rows} there")
    if n_rows == 0:
        weights = None if sample_weight is None else np.empty(0)
        return LabelledPart(np.empty(0), np.empty(0, dtype=np.uint16), weights)
    if sample_weight is not None:
        sample_weight = _check_sample_weight(
            sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
        )
    return LabelledPart(*code_classes(_check_y(y)), sample_weight)


def _kept(labelled: LabelledPart) -> NDArray[np.int64] | None:
    """Return the rows of positive weight of a partition, None for all."""
    weights = labelled.sample_weight
    return None if weights is None or np.all(weights > 0) else np.flatnonzero(weights)


def _look_at_values(
    place: int, X: Any, labelled: LabelledPart, sample: NDArray[np.int64], request: Request
) -> Summary | None:
    """Return what the values of a partition are, None without rows."""
    n_rows = len(labelled.labels)
    if len(X) != n_rows:
        raise ValueError(f"partition {place} of X has {len(X)} rows, but y has {n_rows} there")
    return summarize(as_table(X), _kept(labelled), sample, request) if n_rows > 0 else None


def _merge(summaries: list[Summary | None], max_bins: int | None) -> Summary | None:
    """Return what some partitions say together."""
    found = [summary for summary in summaries if summary is not None]
    return merge_all(found, max_bins) if found else None


def _encode(X: Any, labelled: LabelledPart, classes: NDArray[Any], coding: Coding) -> Piece | None:
    """Return the codes of a partition, None without rows."""
    if len(labelled.labels) == 0:
        return None
    rows = _kept(labelled)
    some: Any = slice(None) if rows is None else rows
    labels = np.searchsorted(classes, labelled.classes).astype(np.uint16)[labelled.labels]
    weights = labelled.sample_weight
    return Piece(coding.encode(as_table(X), rows), labels[some], None if weights is None else weights[some])


def _cut(piece: Piece, start: int, stop: int) -> Piece:
    """Return some rows of a piece, as copies: those of the others are given up."""
    weights = None if piece.sample_weight is None else piece.sample_weight[start:stop].copy()
    return Piece(piece.codes[:, start:stop].copy(), piece.labels[start:stop].copy(), weights)


def _join(first_row: int, shared: tuple[RowDraws | None, NDArray[np.float64] | None], pieces: list[Piece]) -> CodedPart:
    """Return pieces as one part, whose draws are made anew from its labels."""
    draws, by_class = shared
    labels = np.concatenate([piece.labels for piece in pieces])
    weights = [piece.sample_weight for piece in pieces if piece.sample_weight is not None]
    weight = combine_weights(
        np.concatenate(weights) if weights else None, None if by_class is None else by_class[labels]
    )
    if draws is not None:
        members = RowDraws.of_strata(labels, draws.sizes).members if len(draws.sizes) > 1 else draws.members
        draws = replace(draws, members=members, first_block=first_row // BLOCK_ROWS)
    return CodedPart(first_row, np.concatenate([piece.codes for piece in pieces], axis=1), labels, weight, draws)

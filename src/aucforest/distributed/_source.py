"""Dask partitions in three looks: at labels and weights, at what the values are, and as codes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_y, check_array, check_non_negative

from aucforest.distributed._collections import Partitions
from aucforest.distributed._executor import DaskExecutor, import_distributed
from aucforest.estimators._coded_fit import CodedFit, RunningSums, Target, code_part
from aucforest.estimators._out_of_bag import Bags, Sums, sum_places, within
from aucforest.estimators._training_data import kept_rows
from aucforest.fitting.bootstrap import BLOCK_ROWS, RowDraws
from aucforest.fitting.coding import Coding, Request, Summary, choose_coding, merge_all, places_within, summarize
from aucforest.fitting.executor import as_completed, merge_by_groups
from aucforest.fitting.growing import combine_weights, map_in_threads
from aucforest.fitting.parts import CodedPart
from aucforest.tables.columns import Table, as_table, decode_labels
from aucforest.tree.prediction import PackedTrees

# Summaries that are merged at a time.
_MERGED = 8
# Bytes of trees that go to workers at a time.
_GROUP_BYTES = 2**28


class LabelledPart(NamedTuple):
    """What a partition says of its target: sorted classes, their numbers by row, and weights."""

    classes: NDArray[Any]
    labels: NDArray[np.uint16]
    sample_weight: NDArray[np.float64] | None


class Piece(NamedTuple):
    """Rows of positive weight: codes (n_features, n_rows), the numbers of classes, and weights."""

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
        self._X, self._delayed = others.pop(), partitions.X
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

    def code(self, fit: CodedFit, request: Request) -> tuple[Coding, NDArray[Any]]:
        """Choose codes by what all partitions say, and let workers encode them; return the rows to score by as well."""
        executor, target, starts = self._executor, self.target, self._starts
        summary = self._summarize(fit.sample, request)
        self._coding = executor.submit(_choose_coding, summary, fit.sample_weight, request.max_bins)
        coding: Coding = executor.gather([self._coding])[0]
        classes = executor.share(target.classes)
        coded = []
        for place, (start, stop) in enumerate(pairwise(starts)):
            scored = places_within(fit.scored, start, stop - start)
            look = self._X[place], self._labelled[place], scored
            coded.append(executor.submit(_encode, *look, classes, self._coding))
        self._pieces = [executor.submit(_first, pair) for pair in coded]
        scored_rows = [executor.submit(_second, pair) for pair in coded]
        del coded, self._X
        # Tables go as soon as they are coded.
        executor.release()
        known = [rows for rows in executor.gather(scored_rows) if rows is not None]
        return coding, np.concatenate(known)

    def _summarize(self, sample: NDArray[np.int64], request: Request) -> Any:
        """Return a future of what all partitions say."""
        executor, kept = self._executor, self.target.kept
        rows = sample if kept is None else kept[sample]
        summaries = []
        for place, (first, last) in enumerate(pairwise(self._firsts.tolist())):
            look = self._X[place], self._labelled[place], places_within(rows, first, last - first)
            summaries.append(executor.submit(_look_at_values, place, *look, request))
        return merge_by_groups(executor.submit, _merge, summaries, _MERGED, request.max_bins)

    def make_parts(self, draws: RowDraws | None, by_class: NDArray[np.float64] | None, n_parts: int) -> list[Any]:
        """Return futures of coded parts of about equal size; to be called once.

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
        return parts

    def sum_rows(self, bags: Bags, packed: PackedTrees, ranges: Sequence[range]) -> list[Sums]:
        """Sum out of bag, as `_out_of_bag.sum_out_of_bag` does, where the partitions are, which are read once more."""
        executor, running = self._executor, RunningSums(bags, packed, ranges, len(self.target.labels))
        (X,), futures = executor.compute([self._delayed]), [None] * len(self._delayed)
        for group in _cut_trees(packed, bags.n_trees):
            # Each on top of the sums of those before it: sums are rounded as if all trees came at once.
            some = [within(trees, group) for trees in ranges]
            shared, keys = executor.share((packed.some(group), some)), bags.keys[group.start : group.stop]
            for place, (start, stop) in enumerate(pairwise(self._starts)):
                first = start // BLOCK_ROWS * BLOCK_ROWS
                blocks = bags.draws.of_part(first, -(-stop // BLOCK_ROWS) * BLOCK_ROWS - first)
                look = X[place], self._labelled[place], self._coding
                futures[place] = executor.submit(_sum_out_of_bag, *look, shared, blocks, keys, start, futures[place])
        del X, look
        executor.release()
        for place, sums in as_completed(executor, futures):
            if sums is not None:
                running.put(self._starts[place], sums)
        return running.sums


def _cut_trees(packed: PackedTrees, n_trees: int) -> list[range]:
    """Cut trees into groups that are not too much for a message."""
    ends = packed.nodes.itemsize * packed.first + packed.values.itemsize * packed.values.shape[1] * packed.first_leaf
    bounds = [0]
    while bounds[-1] < n_trees:
        fitting = int(np.searchsorted(ends, ends[bounds[-1]] + _GROUP_BYTES, side="right")) - 1
        bounds.append(max(fitting, bounds[-1] + 1))
    return [range(*pair) for pair in pairwise(bounds)]


def read_table(X: Any) -> Table:
    """Return the table that a partition is."""
    table = as_table(X)
    assert table is not None
    return table


def _look_at_target(place: int, y: Any, sample_weight: Any) -> LabelledPart:
    """Return the classes of a partition; refuse what are no labels or weights."""
    n_rows = len(y)
    if sample_weight is not None and len(sample_weight) != n_rows:
        raise ValueError(f"partition {place} of sample_weight has {len(sample_weight)} rows, but y has {n_rows} there")
    if n_rows == 0:
        weights = None if sample_weight is None else np.empty(0)
        return LabelledPart(np.empty(0), np.empty(0, dtype=np.uint16), weights)
    if sample_weight is not None:
        options = {"dtype": np.float64, "ensure_2d": False, "input_name": "sample_weight"}
        sample_weight = check_array(sample_weight, **options)
        check_non_negative(sample_weight, "`sample_weight`")
    return LabelledPart(*code_part(_check_y(decode_labels(y))), sample_weight)


def _look_at_values(
    place: int, X: Any, labelled: LabelledPart, sample: NDArray[np.int64], request: Request
) -> Summary | None:
    """Return what the values of a partition are, None without rows."""
    n_rows = len(labelled.labels)
    if len(X) != n_rows:
        raise ValueError(f"partition {place} of X has {len(X)} rows, but y has {n_rows} there")
    return summarize(read_table(X), kept_rows(labelled.sample_weight), sample, request) if n_rows > 0 else None


def _merge(summaries: list[Summary | None], max_bins: int | None) -> Summary | None:
    """Return what some partitions say together."""
    found = [summary for summary in summaries if summary is not None]
    return merge_all(found, max_bins) if found else None


def _choose_coding(summary: Summary, sample_weight: NDArray[np.float64] | None, max_bins: int | None) -> Coding:
    """Choose codes by what all partitions say, in all threads of the worker: others wait for it."""
    # Not asked of joblib, which allows one to the processes that Dask starts.
    n_threads = import_distributed().get_worker().state.nthreads
    return choose_coding(summary, sample_weight, max_bins, partial(map_in_threads, n_threads=n_threads))


def _encode(
    X: Any, labelled: LabelledPart, scored: NDArray[np.int64], classes: NDArray[Any], coding: Coding
) -> tuple[Piece, NDArray[Any]] | None:
    """Return the codes of a partition, and some of its rows as trees read them; None without rows."""
    if len(labelled.labels) == 0:
        return None
    weights = labelled.sample_weight
    rows = kept_rows(weights)
    some: Any = slice(None) if rows is None else rows
    labels = np.searchsorted(classes, labelled.classes).astype(np.uint16)[labelled.labels]
    matrix = coding.read(read_table(X), rows)
    return Piece(coding.encode(matrix), labels[some], None if weights is None else weights[some]), matrix[scored]


def _first(pair: tuple[Piece, NDArray[Any]] | None) -> Piece | None:
    """Return the first of two."""
    return None if pair is None else pair[0]


def _second(pair: tuple[Piece, NDArray[Any]] | None) -> NDArray[Any] | None:
    """Return the second of two."""
    return None if pair is None else pair[1]


def _sum_out_of_bag(
    X: Any,
    labelled: LabelledPart,
    coding: Coding,
    shared: tuple[PackedTrees, list[range]],
    draws: RowDraws,
    keys: list[int],
    start: int,
    before: list[Sums] | None,
) -> list[Sums] | None:
    """Return the sums of a partition whose rows of positive weight begin at a place; None without rows."""
    rows = kept_rows(labelled.sample_weight)
    if len(labelled.labels if rows is None else rows) == 0:
        return None
    return sum_places(Bags(draws, keys, None), *shared, start, coding.read(read_table(X), rows), before)


def _cut(piece: Piece, start: int, stop: int) -> Piece:
    """Return some rows of a piece, as copies: those of the others are given up."""
    weights = None if piece.sample_weight is None else piece.sample_weight[start:stop].copy()
    return Piece(piece.codes[:, start:stop].copy(), piece.labels[start:stop].copy(), weights)


def _join(first_row: int, shared: tuple[RowDraws | None, NDArray[np.float64] | None], pieces: list[Piece]) -> CodedPart:
    """Return pieces as one part, whose draws are made anew from its labels."""
    draws, by_class = shared
    labels = np.concatenate([piece.labels for piece in pieces])
    weights = [piece.sample_weight for piece in pieces if piece.sample_weight is not None]
    weight = combine_weights(labels, np.concatenate(weights) if weights else None, by_class)
    if draws is not None:
        members = RowDraws.of_strata(labels, draws.sizes).members if len(draws.sizes) > 1 else draws.members
        draws = replace(draws, members=members, first_block=first_row // BLOCK_ROWS)
    return CodedPart(first_row, np.concatenate([piece.codes for piece in pieces], axis=1), labels, weight, draws)

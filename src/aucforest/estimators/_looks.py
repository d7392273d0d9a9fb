"""Looks at all rows of a source, batch by batch, by several threads: at their values, and for their codes."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from aucforest.estimators._coded_fit import CodedFit, RunningSums, Target
from aucforest.fitting.code_matrix import CodeMatrix
from aucforest.fitting.coding import Coding, Request, Summary, choose_coding, merge_all, places_within, summarize
from aucforest.fitting.growing import run_in_threads
from aucforest.tables.columns import Table, as_table

# Cells of a batch: few enough that several stay in memory, enough that Python's share is small.
_BATCH_CELLS = 2**21
# Cells of codes whose checksum is recorded at a time.
_CHUNK_CELLS = 2**25


class Batches(Protocol):
    """What gives batches of rows."""

    name: str

    def batches(self, columns: Sequence[str], first_row: int = 0, rows: int | None = None) -> Iterator[Any]:
        """Yield batches of some columns, from a row on, of up to so many rows."""


class Features(NamedTuple):
    """The columns to learn from.

    source : Batches
    names : list of str
    to_frame : callable
        Turns a batch into a frame.
    target : Target
    """

    source: Batches
    names: list[str]
    to_frame: Callable[[Any], Any]
    target: Target

    def as_table(self, batch: Any) -> Table:
        """Return a batch as what is learned from."""
        table = as_table(self.to_frame(batch))
        assert table is not None
        return table

    def over_batches(
        self, function: Callable[[int, Any], Any], n_threads: int, what: str, first_row: int = 0, verbose: int = 0
    ) -> Iterator[tuple[int, Any]]:
        """Yield, in order, the first row after a batch, and what a function returns of its first row and its table."""

        def call(start: int, batch: Any) -> tuple[int, Any]:
            return start + batch.num_rows, function(start, self.as_table(batch))

        n_rows, row = len(self.target.labels), first_row
        with tqdm(total=n_rows, initial=first_row, desc=what, unit_scale=True, disable=not verbose) as progress:
            for stop, result in _in_order(call, self._numbered(first_row), n_threads):
                progress.update(stop - row)
                row = stop
                yield row, result
        if row != n_rows:
            raise self._changed(row)

    def _numbered(self, row: int) -> Iterator[tuple[int, Any]]:
        """Yield the first row of each batch, and the batch."""
        for batch in self.source.batches(self.names, row, max(1, _BATCH_CELLS // len(self.names))):
            if row + batch.num_rows > len(self.target.labels):
                raise self._changed(row + batch.num_rows)
            yield row, batch
            row += batch.num_rows

    def _changed(self, n_rows: int) -> ValueError:
        return ValueError(
            f"{self.source.name} had {len(self.target.labels):,} rows when it was read first, but has {n_rows:,} or"
            " more now: it must not change while it is read"
        )

    def rows_of(self, start: int, table: Table) -> tuple[NDArray[np.int64] | None, int, int]:
        """Return the rows of positive weight in a table, None for all; the place of the first, and their number."""
        kept = self.target.kept
        if kept is None:
            return None, start, len(table)
        rows = places_within(kept, start, len(table))
        return rows, int(np.searchsorted(kept, start)), len(rows)


def _in_order(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], n_threads: int) -> Iterator[Any]:
    """Yield results in order, while threads work on few of those that follow."""
    threads = ThreadPoolExecutor(n_threads)
    waiting: deque[Future[Any]] = deque()
    try:
        for argument in arguments:
            waiting.append(threads.submit(function, *argument))
            if len(waiting) > n_threads + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        threads.shutdown(cancel_futures=True)


def look_for_coding(features: Features, forest: Any, fit: CodedFit, n_threads: int) -> Coding:
    """Choose codes as a fit of all rows in memory does."""
    request = Request.of(forest, features.as_table(next(features.source.batches(features.names, rows=1))))

    def look(start: int, table: Table) -> Summary:
        rows, place, n_rows = features.rows_of(start, table)
        sampled = places_within(fit.sample, place, n_rows)
        return summarize(table, rows, sampled if rows is None else rows[sampled], request)

    merged = _Merged(forest.max_bins)
    for _, summary in features.over_batches(look, n_threads, "rows read", verbose=forest.verbose):
        merged.add(summary)
    return choose_coding(merged.all(), fit.sample_weight, forest.max_bins, run_in_threads(n_threads))


class _Merged:
    """Summaries that follow each other, merged in pairs of about equal size: each is copied a few times only."""

    def __init__(self, max_bins: int | None) -> None:
        self._max_bins, self._sizes, self._summaries = max_bins, [], []  # type: ignore[var-annotated]

    def add(self, summary: Summary) -> None:
        """Add the next one."""
        size = 1
        while self._sizes and self._sizes[-1] == size:
            size += self._sizes.pop()
            summary = merge_all([self._summaries.pop(), summary], self._max_bins)
        self._sizes.append(size)
        self._summaries.append(summary)

    def all(self) -> Summary:
        """Return them merged."""
        summaries, self._summaries = self._summaries, []
        return merge_all(summaries, self._max_bins)


def write_codes(
    features: Features, coding: Coding, known: NDArray[np.int64], matrix: CodeMatrix, n_threads: int, verbose: int
) -> None:
    """Write the codes that are not there yet; the rows of some places as they are, too."""

    def write(start: int, table: Table) -> int:
        rows, place, n_rows = features.rows_of(start, table)
        values = coding.read(table, rows)
        matrix.write(place, coding.encode(values))
        first, after = np.searchsorted(known, (place, place + n_rows))
        matrix.known[first:after] = values[known[first:after] - place]
        return place + n_rows

    chunk_rows, n_rows = _CHUNK_CELLS // len(features.names), len(features.target.labels)
    if matrix.n_read < n_rows:
        for n_read, n_written in features.over_batches(write, n_threads, "rows coded", matrix.n_read, verbose):
            if n_written - matrix.n_written >= chunk_rows or n_read == n_rows:
                matrix.record(n_read, n_written)


def sum_out_of_bag(features: Features, coding: Coding, sums: RunningSums, n_threads: int, verbose: int) -> None:
    """Sum what trees predict of the rows that they did not draw."""

    def add(start: int, table: Table) -> None:
        rows, place, _ = features.rows_of(start, table)
        sums.add(place, coding.read(table, rows))

    for _ in features.over_batches(add, n_threads, "out of bag", verbose=verbose):
        pass

"""Training data that are read in batches, with their codes in a memory-mapped file."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from aucforest._memory import format_bytes, return_freed_memory
from aucforest._progress import progress_bar
from aucforest.columns.categorical import Counted, Table, find_categorical, read_table, warn_of_text
from aucforest.columns.dates import Dates, find_dates
from aucforest.columns.expansion import FoundCategories, expand, n_added
from aucforest.columns.integers import warn_of_rounding
from aucforest.columns.target_rates import append_rates
from aucforest.fitting.code_matrix import CodeMatrix
from aucforest.fitting.coding import Coding, Summary, choose_coding, sample_for_bins, summarize_table
from aucforest.fitting.growing import grow_batches, thread_map
from aucforest.fitting.integer_categories import (
    CountedRows,
    count_values_of,
    find_integer_categories,
    merge_values,
    order_values,
    searched_columns,
)
from aucforest.fitting.job import JobFolder
from aucforest.fitting.out_of_bag import Bags, RunningSums, Sums, TreeRanges
from aucforest.fitting.parts import Grown, Growth, indices_within
from aucforest.fitting.plan import plan_on_disk
from aucforest.fitting.table import RowsWithValues, TrainingTable
from aucforest.fitting.target import Target
from aucforest.tree.prediction import PackedTrees

# Number of values of a batch. Several such batches fit into memory, and the overhead of Python per value is small.
_BATCH_CELLS = 2**21
# Number of results of batches that are merged at a time.
_MERGED = 8
# Only if there are more codes, freed memory is returned to the system, because this takes some 30 ms.
_LARGE_CELLS = 2**24


class FeatureBatches(NamedTuple):
    """The features of the training data in batches."""

    source: Any  # a `tables.sources.Source`, whose module needs pyarrow
    names: list[str]
    to_frame: Callable[[Any], Any]  # converts a batch to a frame
    target: Target
    dates: Dates  # the features that columns of dates become
    categorical: Sequence[int] = ()  # the columns that are known to be categorical before they are read

    @classmethod
    def of(cls, source: Any, names: Sequence[str], target: Target, params: dict[str, Any]) -> Self:
        """Return the features with the given names; `params` are the parameters of the forest."""
        from aucforest.tables.kinds import to_features

        head = read_table(source.schema(names).empty_table())
        categorical = find_categorical(head, params["categorical_features"])
        dates = find_dates(head, params["date_parts"], categorical)
        return cls(source, list(names), to_features, target, dates, categorical)

    def rows_of(self, start: int, table: Table) -> tuple[NDArray[np.int64] | None, int, int]:
        """Return which rows of a batch are kept (None for all), and the numbers of kept rows before and in the batch.

        Kept are the rows of positive weight. The batch starts at row `start` of the source.
        """
        kept = self.target.kept
        if kept is None:
            return None, start, len(table)
        rows = indices_within(kept, start, len(table))
        return rows, int(np.searchsorted(kept, start)), len(rows)

    def map(self, function: Callable[[int, Table], Any], what: str, n_threads: int, verbose: int = 0) -> Iterator[Any]:
        """Yield function(index of the first row, table) for each batch, in order."""

        def call(start: int, batch: Any) -> tuple[int, Any]:
            return batch.num_rows, function(start, read_table(self.to_frame(batch)))

        n_rows, n_read = len(self.target.labels), 0
        with progress_bar(total=n_rows, desc=what, unit_scale=True, verbose=verbose) as progress:
            for n_of_batch, result in _in_order(call, self._numbered(), n_threads):
                progress.update(n_of_batch)
                n_read += n_of_batch
                yield result
        if n_read != n_rows:
            raise self._changed(f"{n_read:,}")

    def _numbered(self) -> Iterator[tuple[int, Any]]:
        row = 0
        for batch in self.source.batches(self.names, max_rows=max(1, _BATCH_CELLS // len(self.names))):
            if row + batch.num_rows > len(self.target.labels):
                raise self._changed(f"{row + batch.num_rows:,} or more")
            yield row, batch
            row += batch.num_rows

    def _changed(self, n_rows: str) -> ValueError:
        return ValueError(
            f"{self.source.name} had {len(self.target.labels):,} rows when it was read first, but has {n_rows} now: it"
            " must not change while it is read"
        )


class RowsOnDisk(TrainingTable):
    """Training data of a table that is read in batches; see `TrainingTable`.

    `open_job` opens the job folder in which trees are stored. It is called after all checks. `used` bytes of the memory
    limit are already in use, without the labels, weights and groups.
    """

    def __init__(
        self,
        features: FeatureBatches,
        memory_limit: int,
        open_job: Callable[[], JobFolder] | None = None,
        *,
        used: int = 0,
    ) -> None:
        self.names, self.target, self.dates = features.names, features.target, features.dates
        self.n_features, self.categorical = len(features.names) + n_added(features.dates), features.categorical
        self._features, self._limit, self._used = features, memory_limit, used
        self._open_job = open_job

    def _encode_rows(self, coding: Coding) -> None:
        """Write the codes of all rows to a temporary file, in the job folder if there is one."""
        if coding.rated:  # these columns are known only now
            self._make_plan(coding)
        folder = None if self._job is None else self._job.folder
        self._matrix = CodeMatrix(coding.n_codes, len(self.target.kept_labels), folder)
        self._codes = self._matrix.codes
        if self._plan.copies_rows:  # codes are only read to be counted and copied
            self._release = self._matrix.release
        self.X = self._write_codes(coding)
        if self._codes.size > _LARGE_CELLS:
            return_freed_memory()  # of batches and of the values that bins were chosen from

    def _make_plan(self, coding: Coding | None = None) -> None:
        """Choose how rows are read and trees grow (printed if verbose); raise ValueError if the limit is too small."""
        n_features, limit = self.n_features, self._limit
        self._plan = plan_on_disk(self._spec, self.target, n_features, limit, coding, used=self._used)
        if self._spec.verbose:
            fits = "do not fit into the limit, but a copy of the sample of each tree does"
            if not self._plan.copies_rows:
                fits = "fit into the limit"
            rated = "" if coding is None else f", {len(coding.rated)} with target rates"
            what = f"{len(self.target.labels):,} rows of {self.n_features} features{rated}: the binned data {fits}"
            n_bytes = f"up to {format_bytes(self._plan.n_bytes)} plus the trees"
            tqdm.write(f"{what}; {self._plan.n_threads} threads, {n_bytes}", file=sys.stderr)

    def sum_rows(
        self, bags: Bags, packed: PackedTrees, ranges: Sequence[range], chosen: NDArray[np.int64] | None
    ) -> list[Sums]:
        """Read all rows again, and return the same sums as `sum_out_of_bag`."""
        trees = TreeRanges(bags, packed, ranges)
        running = RunningSums(bags.sampler.n_rows, len(ranges), len(self.target.classes), chosen)

        def add(start: int, table: Table) -> None:
            rows, first, _ = self._features.rows_of(start, table)
            left_out = None
            if self._left_out is not None:
                left_out = self._left_out(start + (np.arange(len(table)) if rows is None else rows))
            running.add(trees, first, append_rates(self._coding.read(table, rows), self._coding.rates, left_out))

        for _ in self._map(add, "out of bag"):
            pass
        return running.at_all_rows(bags.kept, len(self.target.labels))

    def _grow_trees(self, growth: Growth, keys: list[int]) -> Grown:
        part = self._make_part(copies_rows=self._plan.copies_rows)._replace(release=self._release)
        return grow_batches(growth, part, keys, self._plan.n_threads)

    def _map(self, function: Callable[[int, Table], Any], what: str) -> Iterator[Any]:
        return self._features.map(function, what, self._plan.n_readers, self._spec.verbose)

    def _choose_coding(self) -> Coding:
        """Choose codes from a summary of all rows, after the checks of the memory and of the job folder."""
        self._make_plan()
        if self._open_job is not None:
            self._job = self._open_job()
        features, spec = self._features, self._spec
        head = read_table(features.to_frame(next(features.source.batches(features.names, max_rows=1))))
        categorical = find_categorical(head, spec.categorical_features)
        sample, sample_weight = sample_for_bins(self.target, spec.max_bins)
        found = self._known(spec)
        counted_rows = None if found is not None else CountedRows.of_target(self.target, self.n_features)

        def summarize_batch(start: int, table: Table) -> Summary:
            rows, index, n_rows = features.rows_of(start, table)
            sampled = indices_within(sample, index, n_rows)
            sampled = sampled if rows is None else rows[sampled]
            counted = counted_rows and counted_rows._replace(labels=counted_rows.labels[index : index + n_rows])
            return summarize_table(expand(table, self.dates), rows, sampled, categorical, spec.max_bins, counted)

        summary = self._merge(summarize_batch, partial(Summary.joined, max_bins=spec.max_bins), "rows read")
        warn_of_rounding([summary.names[feature] for feature in sorted(summary.rounded)])
        if isinstance(spec.categorical_features, str):
            warn_of_text({summary.names[feature]: counted for feature, counted in summary.counted.items()})
        if counted_rows is not None:
            columns = searched_columns(len(features.names), {*categorical, *self.dates}, spec)
            found = self._count_integers(find_integer_categories(summary.by_class, columns))
        run = thread_map(self._plan.n_readers)
        coding = choose_coding(run, summary, sample_weight, spec.max_bins, self.dates, found or {})
        return coding.with_rated(spec.encodings)

    def _count_integers(self, found: dict[int, tuple[int, ...]]) -> FoundCategories:
        """Return the categories of the found columns of integers; read all rows, unless there are no columns."""
        if not found:
            return {}

        def count(start: int, table: Table) -> dict[int, Counted]:
            return count_values_of(table, self._features.rows_of(start, table)[0], found)

        return order_values(self._merge(count, merge_values, "integers counted"), found)

    def _merge(self, function: Callable[[int, Table], Any], merge: Callable[[Sequence[Any]], Any], what: str) -> Any:
        # Only results of equally many batches are merged, so that each is merged a few times, and a few are in memory.
        merged: list[tuple[int, Any]] = []  # numbers of batches, which are powers of _MERGED, and their results
        for result in self._map(function, what):
            merged.append((1, result))
            while len(merged) >= _MERGED and merged[-_MERGED][0] == merged[-1][0]:
                (size, *_), results = zip(*merged[-_MERGED:])
                merged[-_MERGED:] = [(size * _MERGED, merge(results))]
        return merge([result for _, result in merged])

    def _write_codes(self, coding: Coding) -> RowsWithValues:
        """Write the codes of all rows, and return the values of the rows `FitSpec.rows_with_values`."""
        codes, rows_with_values = self._codes, self._spec.rows_with_values
        stored_values = np.zeros((len(rows_with_values), self.n_features))

        def write(start: int, table: Table) -> None:
            rows, index, n_rows = self._features.rows_of(start, table)
            values = coding.read(table, rows)
            codes[:, index : index + n_rows] = coding.encode(values)
            first, stop = np.searchsorted(rows_with_values, (index, index + n_rows))
            stored_values[first:stop] = values[rows_with_values[first:stop] - index]

        for _ in self._map(write, "rows coded"):
            if self._release is not None:
                self._release()
        return RowsWithValues(self.target.rows_at(rows_with_values), stored_values)


def _in_order(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], n_threads: int) -> Iterator[Any]:
    """Yield results in order, while n_threads threads compute the next n_threads + 1 results."""
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

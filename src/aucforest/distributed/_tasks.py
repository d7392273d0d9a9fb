"""Tasks that read, encode and join partitions on the workers, and grow trees from them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_non_negative

from aucforest._sklearn import check_y
from aucforest.columns.categorical import Counted, decode_labels, read_table
from aucforest.columns.dates import Dates
from aucforest.columns.expansion import expand
from aucforest.columns.target_rates import RateTable, TargetRates, append_rates
from aucforest.distributed._collections import import_distributed, refuse_sparse
from aucforest.distributed._executor import watch_task
from aucforest.fitting.bootstrap import BootstrapSampler
from aucforest.fitting.coding import Coding, Summary, choose_coding, summarize_table
from aucforest.fitting.growing import TreeBuffers, grow_batch, grow_rows, map_in_threads
from aucforest.fitting.integer_categories import CountedRows, count_values_of, find_integer_categories
from aucforest.fitting.out_of_bag import Bags, RunningSums, Sums, TreeRanges
from aucforest.fitting.parts import Growth, Part, TreeRows
from aucforest.fitting.spec import combine_weights
from aucforest.fitting.target import code_part, kept_rows
from aucforest.fitting.target_rates import CellFinder, CodedRows, Digits, RateWeights, left_out_rows, sampled_rows
from aucforest.tree.prediction import PackedTrees
from aucforest.tree.tree import Tree


class LabelledPart(NamedTuple):
    """The target of a partition: sorted classes, the class index of each row, and weights."""

    classes: NDArray[Any]
    labels: NDArray[np.uint16]
    sample_weight: NDArray[np.float64] | None

    def kept(
        self, classes: NDArray[Any]
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.uint16], NDArray[np.float64] | None]:
        """Return the rows of positive weight (None for all), their labels as indices in `classes`, and weights."""
        rows, weights = kept_rows(self.sample_weight), self.sample_weight
        labels = np.searchsorted(classes, self.classes).astype(np.uint16)[self.labels]
        if rows is not None and weights is not None:
            labels, weights = labels[rows], weights[rows]
        return rows, labels, weights


def read_partition_target(index: int, y: Any, sample_weight: Any) -> LabelledPart:
    """Return the target of a partition; raise ValueError or TypeError if labels or weights are not valid."""
    n_rows = len(y)
    if sample_weight is not None and len(sample_weight) != n_rows:
        raise ValueError(f"partition {index} of sample_weight has {len(sample_weight)} rows, that of y has {n_rows}")
    if n_rows == 0:
        weights = None if sample_weight is None else np.empty(0)
        return LabelledPart(np.empty(0), np.empty(0, dtype=np.uint16), weights)
    if sample_weight is not None:
        sample_weight = check_array(sample_weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight")
        check_non_negative(sample_weight, "`sample_weight`")
    classes, labels = code_part(check_y(decode_labels(y)))
    return LabelledPart(classes, labels, sample_weight)


def summarize_values(
    index: int,
    X: Any,
    labelled: LabelledPart,
    sample: NDArray[np.int64],
    params: tuple[Sequence[int], Dates, int | None, NDArray[Any] | None],
) -> Summary | None:
    """Return the summary of the values of a partition, or None if the partition is empty.

    `params` are the same for all partitions: the categorical columns, the features of dates, max_bins, and the classes
    of all rows, which are None if no categories are searched by the labels.
    """
    categorical, dates, max_bins, classes = params
    n_rows = len(labelled.labels)
    refuse_sparse(X)  # here, too, because Dask may not know the type of blocks before they are computed
    if len(X) != n_rows:
        raise ValueError(f"partition {index} of X has {len(X)} rows, that of y has {n_rows}")
    if n_rows == 0:
        return None
    table, counted = expand(read_table(X), dates), None
    if classes is not None:
        counted = CountedRows.of(labelled.kept(classes)[1], len(classes), table.shape[1])
    return summarize_table(table, kept_rows(labelled.sample_weight), sample, categorical, max_bins, counted)


def merge_summaries(summaries: list[Summary | None], max_bins: int | None) -> Summary | None:
    """Return the merged summary of partitions, or None if all of them are empty."""
    non_empty = [summary for summary in summaries if summary is not None]
    return Summary.joined(non_empty, max_bins) if non_empty else None


def find_integers(summary: Summary, columns: list[int]) -> dict[int, tuple[int, ...]]:
    """Return the columns whose integers are categories, with the widths of the ranges of values."""
    return find_integer_categories(summary.by_class, columns)


def count_integers(X: Any, labelled: LabelledPart, columns: list[int]) -> dict[int, Counted]:
    """Return the distinct values of columns of a partition with their counts."""
    return count_values_of(read_table(X), kept_rows(labelled.sample_weight), columns)


def choose_codes(encodings: Sequence[str], *arguments: Any) -> Coding:
    """Return the result of `choose_coding` for the encodings, computed by all threads of the worker."""
    # In processes that Dask starts, joblib would use only one thread.
    n_threads = import_distributed().get_worker().state.nthreads
    return choose_coding(partial(map_in_threads, n_threads=n_threads), *arguments).with_rated(encodings)


def encode_partition(
    X: Any, labelled: LabelledPart, stored: NDArray[np.int64], classes: NDArray[Any], coding: Coding
) -> tuple[Part, NDArray[Any]]:
    """Return the encoded rows of positive weight of a partition, and the features of those at the indices `stored`."""
    rows, labels, weights = labelled.kept(classes)
    matrix = coding.read(read_table(X), rows)
    return Part(coding.encode(matrix), labels, weights), matrix[stored]


def sample_column(part: Part, first_row: int, digits: Digits, feature: int, n_rows: int) -> CodedRows:
    """Return a sample of a partition, to choose target rates (class frequencies) of a column; see `sampled_rows`."""
    rows = CodedRows(part.codes, part.labels)
    return rows.take(sampled_rows(rows, digits, feature, n_rows, first_row))


def count_cells(
    part: Part, weighting: RateWeights, finder: CellFinder, tables: tuple[RateTable, ...], n_classes: int
) -> list[NDArray[np.int64]]:
    """Return, for each table of target rates, the class totals of its cells over the rows of a partition."""
    rows = CodedRows(part.codes, part.labels, weighting.integers(part.weights))
    return [finder.count(table, rows, n_classes) for table in tables]


def add_totals(counted: list[list[NDArray[np.int64]]]) -> list[NDArray[np.int64]]:
    """Return the sums of the totals of partitions for each table."""
    return [sum(totals) for totals in zip(*counted)]


def cut_part(part: Part, start: int, stop: int) -> Part:
    """Return rows of a partition, copied so that the memory of the partition can be released."""
    weights = None if part.weights is None else part.weights[start:stop].copy()
    return Part(part.codes[:, start:stop].copy(), part.labels[start:stop].copy(), weights)


def join_parts(
    sampler: BootstrapSampler | None,
    by_class: NDArray[np.float64] | None,
    copies_rows: bool,
    parts: list[Part],
    weighting: RateWeights | None = None,
) -> Part:
    """Join parts to one part, and compute the members of the strata of its sampler from the labels.

    `weighting` converts sample weights to weights in target rates. It is None if there are no target rates.
    """
    joined = Part.joined(parts)
    weights = combine_weights(joined.labels, joined.weights, by_class)
    if sampler is not None and len(sampler.sizes) > 1:
        sampler = replace(sampler, members=BootstrapSampler.for_strata(joined.labels, sampler.sizes).members)
    rate_weights = None if weighting is None else weighting.in_samples(joined.weights)
    return Part(joined.codes, joined.labels, weights, sampler, copies_rows, rate_weights=rate_weights)


def grow(growth: Growth, part: Part, keys: list[int]) -> list[Tree]:
    """Return the trees of a task; raise Reschedule if the task is cancelled before all trees are grown."""
    trees = grow_batch(growth, part, watch_task(), [], keys)
    if len(trees) < len(keys):
        # If the cancelled task was submitted again in the meantime, Dask now runs it again.
        raise import_distributed().Reschedule()
    return trees


def sample(part: Part, keys: list[int]) -> list[TreeRows]:
    """Return, for each key of a tree, copies of the rows of the part that are in the sample of the tree."""
    return [part.sample([key]) for key in keys]


def grow_samples(growth: Growth, keys: list[int], samples: list[list[TreeRows]]) -> list[Tree]:
    """Return the trees of a task; `samples` has a list for each part, with the sampled rows of each tree."""
    most_rows = max(sum(rows.part.n_rows for rows in pieces) for pieces in zip(*samples))
    work, trees = TreeBuffers(most_rows), []
    for key, pieces in zip(keys, zip(*samples)):
        part, counts = Part.joined([rows.part for rows in pieces]), np.concatenate([rows.counts for rows in pieces])
        trees += grow_rows(growth, TreeRows.of_tree(part, counts), [key], work)
    return trees


class PartitionReader(NamedTuple):
    """Reads the rows of partitions for out-of-bag predictions."""

    coding: Coding
    classes: NDArray[Any]
    weighting: RateWeights | None  # the weights of rows in target rates; None without target rates
    rates: TargetRates | None

    def read(self, X: Any, labelled: LabelledPart) -> NDArray[Any]:
        """Return the rows of positive weight of a partition, with target rates that leave out the row itself."""
        rows, labels, weights = labelled.kept(self.classes)
        matrix = self.coding.read(read_table(X), rows)
        if self.weighting is None:
            return matrix
        left_out = left_out_rows(labels, self.weighting.integers(weights), len(self.classes))
        return append_rates(matrix, self.rates, left_out)


def add_out_of_bag(
    X: Any,
    labelled: LabelledPart,
    reader: PartitionReader,
    trees: tuple[PackedTrees, Sequence[range]],
    rows: tuple[BootstrapSampler, int, NDArray[np.int64] | None],
    earlier_sums: list[Sums] | None,
) -> list[Sums]:
    """Return `earlier_sums` plus the out-of-bag predictions of trees for the rows of a partition.

    `rows` describes these rows: a sampler of the whole blocks that contain them, the index of the first of them in the
    first block, and the argument `chosen` of `TreeRanges.add`.
    """
    (packed, ranges), (sampler, start, chosen) = trees, rows
    matrix = reader.read(X, labelled)
    sums, _ = RunningSums(len(matrix), len(ranges), packed.values.shape[1], chosen).part(0, len(matrix))
    for total, earlier in zip(sums, earlier_sums or ()):
        total.copy_from(earlier)
    TreeRanges(Bags(sampler, list(sampler.keys), None), packed, ranges).add(sums, start, matrix, chosen)
    return sums

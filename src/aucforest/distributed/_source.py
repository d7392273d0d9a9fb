"""Training data as Dask partitions: labels, weights, summaries of values, and codes."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import pairwise, zip_longest
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_y, _get_feature_names, check_array, check_non_negative

from aucforest.distributed._collections import Partitions, refuse_sparse
from aucforest.distributed._errors import ClusterError
from aucforest.distributed._executor import DaskExecutor, import_distributed
from aucforest.distributed._growing import grow_replicated
from aucforest.fitting.bootstrap import BLOCK_ROWS, BootstrapSampler
from aucforest.fitting.coding import (
    Coding,
    Summary,
    choose_coding,
    merge_all,
    places_within,
    sample_for_bins,
    summarize,
)
from aucforest.fitting.executor import merge_by_groups
from aucforest.fitting.growing import estimate_seconds, map_in_threads
from aucforest.fitting.job import JobFolder, describe_fit, digest_codes
from aucforest.fitting.level import grow_by_level
from aucforest.fitting.out_of_bag import Bags, RunningSums, Sums, sum_places, within
from aucforest.fitting.parts import Grown, Growth, Part
from aucforest.fitting.plan import FitSize, Plan, advice_on_cluster, plan_on_cluster
from aucforest.fitting.spec import FitSpec, combine_weights, tree_keys
from aucforest.fitting.table import SomeRows, TrainingTable
from aucforest.fitting.target import Target, code_part, kept_rows
from aucforest.tables.columns import decode_labels, find_categorical, read_table
from aucforest.tables.dates import Dates, expand, find_dates, n_added
from aucforest.tree.prediction import PackedTrees

# Number of summaries that are merged in a task.
_MERGED = 8
# Maximum bytes of trees that are sent to workers together.
_GROUP_BYTES = 2**28


class LabelledPart(NamedTuple):
    """The target of a partition: sorted classes, class numbers of the rows, and weights."""

    classes: NDArray[Any]
    labels: NDArray[np.uint16]
    sample_weight: NDArray[np.float64] | None


class ReadTarget(NamedTuple):
    """Labels and weights, the futures of those and of the tables of each partition, and the bounds of partitions."""

    target: Target
    labelled: list[Any]
    tables: list[Any]
    first_rows: NDArray[np.int64]


def read_target(executor: DaskExecutor, partitions: Partitions) -> ReadTarget:
    """Read the labels and weights of the partitions."""
    # Computed together, so that common inputs of tables and labels are read once.
    y, weights, tables = executor.compute(partitions.y, partitions.sample_weight or [], partitions.X)
    pairs = enumerate(zip_longest(y, weights))
    labelled = [executor.submit(_look_at_target, place, *pair) for place, pair in pairs]
    parts = executor.gather(labelled)
    sample_weight = np.concatenate([part.sample_weight for part in parts]) if weights else None
    first_rows = np.concatenate(([0], np.cumsum([len(part.labels) for part in parts])))
    return ReadTarget(Target.of_parts([part[:2] for part in parts], sample_weight), labelled, tables, first_rows)


def dates_of(meta: Any, n_columns: int, params: dict[str, Any]) -> tuple[list[int], Dates]:
    """Return the categorical columns of a collection, and what is made of its columns of dates."""
    # The meta of an array has no columns.
    table = read_table(meta if hasattr(meta, "columns") else np.empty((0, n_columns), dtype=meta.dtype))
    categorical = find_categorical(table, params["categorical_features"])
    return categorical, find_dates(table, params["date_parts"], categorical)


class RowsOnCluster(TrainingTable):
    """Training data as partitions on a Dask cluster.

    Parameters
    ----------
    executor : DaskExecutor
    partitions : Partitions
    params : dict
        Those of the forest: `strategy`, `local_rows`, `max_hist_bytes`, `checkpoint_dir` (the job folder), and what
        tells this fit from others.
    """

    def __init__(self, executor: DaskExecutor, partitions: Partitions, params: dict[str, Any]) -> None:
        self._executor, self._params, self._delayed = executor, params, partitions.X
        names = _get_feature_names(partitions.meta)
        self._categorical, self.dates = dates_of(partitions.meta, partitions.n_features, params)
        self.n_features = partitions.n_features + n_added(self.dates)
        self.names = None if names is None else names.tolist()
        self.target, self._labelled, self._X, self._firsts = read_target(executor, partitions)
        kept = self.target.kept
        # The bounds of the partitions among the rows of positive weight.
        self._starts = (self._firsts if kept is None else np.searchsorted(kept, self._firsts)).tolist()

    def code(self, spec: FitSpec) -> Coding:
        """Choose codes from a summary of all rows, and encode them; raise ClusterError if memory is too small."""
        self._spec, executor, target, starts = spec, self._executor, self.target, self._starts
        self._plan = choose_plan(executor, self._params, spec, target, self.n_features)
        executor.advice = advice_on_cluster(self._plan)
        if self._plan.worker_bytes > self._plan.workers.memory:
            raise ClusterError(f"too little memory: {executor.advice}")
        sample, sample_weight = sample_for_bins(target, spec.max_bins)
        summary = self._summarize(spec, target.rows_at(sample))
        self._coding = executor.submit(_choose_coding, summary, sample_weight, spec.max_bins, self.dates)
        coding: Coding = executor.gather([self._coding])[0]
        classes = executor.share(target.classes)
        coded = []
        for place, (start, stop) in enumerate(pairwise(starts)):
            scored = places_within(spec.scored, start, stop - start)
            look = self._X[place], self._labelled[place], scored
            coded.append(executor.submit(_encode, *look, classes, self._coding))
        self._pieces = [executor.submit(getitem, pair, 0) for pair in coded]
        scored_rows = [executor.submit(getitem, pair, 1) for pair in coded]
        # Tables are released as soon as they are encoded.
        for table in self._X:
            table.release()
        del coded, self._X
        rows = np.concatenate([rows for rows in executor.gather(scored_rows) if rows is not None])
        self.X = SomeRows(target.rows_at(spec.scored), rows)
        self._parts = self._make_parts(spec)
        self._growth = Growth.of(spec, coding, len(target.kept_labels), len(target.classes))
        if (folder := self._params["checkpoint_dir"]) is not None:
            self._job = JobFolder(folder, self._manifest(spec, coding))
        return coding

    def _manifest(self, spec: FitSpec, coding: Coding) -> dict[str, Any]:
        """Return the data that determine the trees of this fit."""
        by_part = self._executor.gather([self._executor.submit(digest_codes, part) for part in self._parts])
        digests = {
            "the digest of the values": sha256(b"".join(by_part)).hexdigest(),
            "the digest of the bins": sha256(b"".join(array.tobytes() for array in coding.values)).hexdigest(),
            "the features": self.names,
            "the categorical features": sorted(coding.categories),
            "the monotonic constraints": list(spec.params.signs),
        }
        return digests | describe_fit(self._params, spec.seed, self.target)

    def _grow_some(self, growth: Growth, keys: list[int]) -> Grown:
        """Yield indices of keys and their trees, as they are grown."""
        plan, executor, parts = self._plan, self._executor, self._parts
        if plan.strategy == "replicate":
            return grow_replicated(parts[0], growth, keys, executor, estimate_seconds(growth))
        # All rows of each tree must be gathered, even if the plan underestimates their number.
        local_rows = growth.n_sampled if plan.strategy == "gather" else plan.local_rows
        sizes = {"local_rows": local_rows, "max_hist_bytes": plan.max_hist_bytes}
        return grow_by_level(parts, growth, keys, executor, **sizes)

    def _summarize(self, spec: FitSpec, rows: NDArray[np.int64]) -> Any:
        """Return a future of the summary of all partitions; `rows` are those from which bins are computed."""
        executor, summaries = self._executor, []
        request = self._categorical, self.dates, spec.max_bins
        for place, (first, last) in enumerate(pairwise(self._firsts.tolist())):
            look = self._X[place], self._labelled[place], places_within(rows, first, last - first)
            summaries.append(executor.submit(_look_at_values, place, *look, *request))
        return merge_by_groups(executor.submit, _merge, summaries, _MERGED, spec.max_bins)

    def _make_parts(self, spec: FitSpec) -> list[Any]:
        """Return futures of coded parts of about equal size."""
        sampler, plan = spec.sampler, self._plan
        executor, n_rows = self._executor, self._starts[-1]
        n_blocks = -(-n_rows // BLOCK_ROWS)
        bounds = np.minimum(np.linspace(0, n_blocks, plan.n_parts + 1).astype(np.int64) * BLOCK_ROWS, n_rows).tolist()
        if sampler is not None:
            # Members are computed from the labels by the task.
            sampler = replace(sampler, members=np.empty(0, dtype=np.uint16))
            if plan.strategy != "replicate":
                sampler = sampler.of_trees(tree_keys(spec.seed, spec.numbers))
        by_class = executor.share(spec.class_weights)
        parts = []
        for start, stop in pairwise(bounds):
            cuts = []
            for piece, (first, last) in zip(self._pieces, pairwise(self._starts)):
                if max(first, start) < min(last, stop):
                    inner = max(start - first, 0), min(stop, last) - first
                    # A separate task selects the rows, so that other rows of the partition are not sent.
                    cuts.append(piece if inner == (0, last - first) else executor.submit(_cut, piece, *inner))
            of_part = sampler
            if sampler is not None and plan.strategy != "replicate":
                of_part = sampler.of_part(start, stop - start)
            parts.append(executor.submit(_join, of_part, by_class, cuts))
        del self._pieces
        return parts

    def sum_rows(
        self, bags: Bags, packed: PackedTrees, ranges: Sequence[range], chosen: NDArray[np.int64] | None
    ) -> list[Sums]:
        """Compute the sums of `fitting.out_of_bag.sum_out_of_bag` on the workers, which read the partitions again."""
        # Workers need the memory, and no more trees are grown.
        self.__dict__.pop("_parts", None)
        executor, target = self._executor, self.target
        running = RunningSums(bags.kept, len(ranges), len(target.labels), len(target.classes), chosen)
        (X,), futures = executor.compute(self._delayed), [None] * len(self._delayed)
        for group in _cut_trees(packed, bags.n_trees):
            # Each group is added to the sums of the groups before it, so that rounding errors are those of one group.
            some = [within(trees, group) for trees in ranges]
            shared, keys = executor.share((packed.some(group), some)), bags.keys[group.start : group.stop]
            sampler = bags.sampler.of_trees(keys)
            for place, (start, stop) in enumerate(pairwise(self._starts)):
                first = start // BLOCK_ROWS * BLOCK_ROWS
                blocks = sampler.of_part(first, -(-stop // BLOCK_ROWS) * BLOCK_ROWS - first)
                look = X[place], self._labelled[place], self._coding
                known = futures[place], running.chosen_within(start, stop - start)
                futures[place] = executor.submit(_sum_out_of_bag, *look, shared, blocks, start - first, *known)
        for table in X:
            table.release()
        places = dict(zip(futures, self._starts))
        for future, sums in executor.as_completed(futures):
            if sums is not None:
                running.put(places[future], sums)
        return running.sums


def choose_plan(executor: DaskExecutor, params: dict[str, Any], spec: FitSpec, target: Target, n_features: int) -> Plan:
    """Return the plan for the parameters of a forest on the current cluster."""
    size = FitSize.of(spec, len(target.kept_labels), n_features, len(target.classes))
    options = {name: params[name] for name in ("strategy", "local_rows", "max_hist_bytes")}
    return plan_on_cluster(spec, size, executor.cluster(), **options)


def _cut_trees(packed: PackedTrees, n_trees: int) -> list[range]:
    """Divide trees into groups for messages of limited size."""
    node_bytes = packed.nodes.nbytes // len(packed.nodes.words)
    ends = node_bytes * packed.first + packed.values.itemsize * packed.values.shape[1] * packed.first_leaf
    bounds = [0]
    while bounds[-1] < n_trees:
        fitting = int(np.searchsorted(ends, ends[bounds[-1]] + _GROUP_BYTES, side="right")) - 1
        bounds.append(max(fitting, bounds[-1] + 1))
    return [range(*pair) for pair in pairwise(bounds)]


def _look_at_target(place: int, y: Any, sample_weight: Any) -> LabelledPart:
    """Return the target of a partition; raise ValueError or TypeError if labels or weights are not valid."""
    n_rows = len(y)
    if sample_weight is not None and len(sample_weight) != n_rows:
        raise ValueError(f"partition {place} of sample_weight has {len(sample_weight)} rows, that of y has {n_rows}")
    if n_rows == 0:
        weights = None if sample_weight is None else np.empty(0)
        return LabelledPart(np.empty(0), np.empty(0, dtype=np.uint16), weights)
    if sample_weight is not None:
        options = {"dtype": np.float64, "ensure_2d": False, "input_name": "sample_weight"}
        sample_weight = check_array(sample_weight, **options)
        check_non_negative(sample_weight, "`sample_weight`")
    return LabelledPart(*code_part(_check_y(decode_labels(y))), sample_weight)


def _look_at_values(
    place: int,
    X: Any,
    labelled: LabelledPart,
    sample: NDArray[np.int64],
    categorical: list[int],
    dates: Dates,
    max_bins: int | None,
) -> Summary | None:
    """Return the summary of the values of a partition, or None if it is empty."""
    n_rows = len(labelled.labels)
    refuse_sparse(X)  # Dask may not know it before
    if len(X) != n_rows:
        raise ValueError(f"partition {place} of X has {len(X)} rows, that of y has {n_rows}")
    if n_rows == 0:
        return None
    table = expand(read_table(X), dates)
    return summarize(table, kept_rows(labelled.sample_weight), sample, categorical, max_bins)


def _merge(summaries: list[Summary | None], max_bins: int | None) -> Summary | None:
    """Return the merged summary of some partitions, or None if they are empty."""
    found = [summary for summary in summaries if summary is not None]
    return merge_all(found, max_bins) if found else None


def _choose_coding(
    summary: Summary, sample_weight: NDArray[np.float64] | None, max_bins: int | None, dates: Dates
) -> Coding:
    """Choose codes from the summary of all partitions, with all threads of the worker."""
    # Not by joblib, which uses one thread in processes that Dask starts.
    n_threads = import_distributed().get_worker().state.nthreads
    return choose_coding(summary, sample_weight, max_bins, dates, partial(map_in_threads, n_threads=n_threads))


def _encode(
    X: Any, labelled: LabelledPart, scored: NDArray[np.int64], classes: NDArray[Any], coding: Coding
) -> tuple[Part | None, NDArray[Any] | None]:
    """Return the codes of a partition, and some of its rows as input of trees, or None if it is empty."""
    if len(labelled.labels) == 0:
        return None, None
    weights = labelled.sample_weight
    rows = kept_rows(weights)
    some: Any = slice(None) if rows is None else rows
    labels = np.searchsorted(classes, labelled.classes).astype(np.uint16)[labelled.labels]
    matrix = coding.read(read_table(X), rows)
    return Part(coding.encode(matrix), labels[some], None if weights is None else weights[some]), matrix[scored]


def _sum_out_of_bag(
    X: Any,
    labelled: LabelledPart,
    coding: Coding,
    shared: tuple[PackedTrees, list[range]],
    sampler: BootstrapSampler,
    start: int,
    before: list[Sums] | None,
    chosen: NDArray[np.int64] | None,
) -> list[Sums] | None:
    """Return the out-of-bag sums of a partition, or None if it is empty."""
    rows = kept_rows(labelled.sample_weight)
    if len(labelled.labels if rows is None else rows) == 0:
        return None
    bags, matrix = Bags(sampler, list(sampler.keys), None), coding.read(read_table(X), rows)
    return sum_places(bags, *shared, start, matrix, before, chosen)


def _cut(piece: Part, start: int, stop: int) -> Part:
    """Return copies of some rows of a piece, so that the others can be released."""
    return deepcopy(piece.some(start, stop))


def _join(sampler: BootstrapSampler | None, by_class: NDArray[np.float64] | None, pieces: list[Part]) -> Part:
    """Join pieces with sample weights to one part, and compute the members of its sampler from the labels."""
    part = Part.joined(pieces)
    weights = combine_weights(part.labels, part.weights, by_class)
    if sampler is not None and len(sampler.sizes) > 1:
        sampler = replace(sampler, members=BootstrapSampler.of_strata(part.labels, sampler.sizes).members)
    return part._replace(weights=weights, sampler=sampler)

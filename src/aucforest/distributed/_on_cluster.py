"""Training data as Dask partitions, and the plan of a fit."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise, zip_longest
from operator import getitem
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._sklearn import get_feature_names
from aucforest.distributed import _tasks
from aucforest.distributed._collections import Partitions, align_columns, known_lengths, split
from aucforest.distributed._executor import ClusterError, DaskExecutor, merge_by_groups
from aucforest.distributed._growing import grow_gathered, grow_replicated
from aucforest.distributed._plan import ClusterPlan, plan_on_cluster
from aucforest.fitting.bootstrap import BLOCK_ROWS
from aucforest.fitting.coding import Coding, indices_within, own_totals, rates_without_totals, sample_for_bins
from aucforest.fitting.job import JobFolder, describe_fit, digest_codes
from aucforest.fitting.out_of_bag import Bags, RatedRows, RunningSums, Sums, within
from aucforest.fitting.parts import Grown, Growth
from aucforest.fitting.plan import NO_RATES, FitSize, RateSize
from aucforest.fitting.spec import FitSpec, tree_keys
from aucforest.fitting.table import SomeRows, TrainingTable
from aucforest.fitting.target import Target
from aucforest.fitting.target_rates import CodedRows, RateWeights, Sample, with_totals
from aucforest.tables.columns import find_categorical, read_table
from aucforest.tables.dates import Dates, find_dates, n_added
from aucforest.tables.target_rates import TargetRates
from aucforest.tree.prediction import PackedTrees

# Number of summaries that are merged in a task.
_MERGED = 8
# Maximum bytes of trees that are sent to workers together.
_GROUP_BYTES = 2**28


def read_target(
    executor: DaskExecutor, partitions: Partitions
) -> tuple[Target, list[Any], list[Any], NDArray[np.int64]]:
    """Return labels and weights, the futures of those and of the table of each partition, and the bounds of these."""
    # Computed together, so that common inputs of tables and labels are read once.
    y, weights, tables = executor.compute(partitions.y, partitions.sample_weight or [], partitions.X)
    labelled = [
        executor.submit(_tasks.read_labels, index, labels, weight)
        for index, (labels, weight) in enumerate(zip_longest(y, weights))
    ]
    parts = executor.gather(labelled)
    sample_weight = np.concatenate([part.sample_weight for part in parts]) if weights else None
    first_rows = np.concatenate(([0], np.cumsum([len(part.labels) for part in parts])))
    return Target.of_parts([part[:2] for part in parts], sample_weight), labelled, tables, first_rows


def find_columns(meta: Any, n_columns: int, params: dict[str, Any]) -> tuple[list[int], Dates]:
    """Return the categorical columns of a collection, and what is made of its columns of dates."""
    # The meta of an array has no columns.
    table = read_table(meta if hasattr(meta, "columns") else np.empty((0, n_columns), dtype=meta.dtype))
    categorical = find_categorical(table, params["categorical_features"])
    return categorical, find_dates(table, params["date_parts"], categorical)


class RowsOnCluster(TrainingTable):
    """Training data as partitions on a Dask cluster; `params` are those of the forest."""

    def __init__(self, executor: DaskExecutor, partitions: Partitions, params: dict[str, Any]) -> None:
        self._executor, self._params, self._delayed = executor, params, partitions.X
        self._rates: TargetRates | None = None
        self._in_rates: RateWeights | None = None  # the weights in target rates, None if there are none
        names = get_feature_names(partitions.meta)
        self._categorical, self.dates = find_columns(partitions.meta, partitions.n_features, params)
        self.n_features = partitions.n_features + n_added(self.dates)
        self.names = None if names is None else names.tolist()
        self.may_have_rates = len(self._categorical) > 0
        self.target, self._labelled, self._X, self._first_rows = read_target(executor, partitions)
        kept = self.target.kept
        # The bounds of the partitions among the rows of positive weight.
        self._starts = (self._first_rows if kept is None else np.searchsorted(kept, self._first_rows)).tolist()

    def code(self, spec: FitSpec) -> Coding:
        """Choose codes from a summary of all rows, and encode them; raise ClusterError if memory is too small."""
        self._spec, target = spec, self.target
        self._make_plan(NO_RATES)
        self._coding = self._choose_coding()
        coding: Coding = self._executor.gather([self._coding])[0]
        if coding.rated:  # which columns these are is known only now
            self._make_plan(RateSize.of(coding))
        coded = self._encode()
        if coding.rated:
            coding = self._choose_rates(coding, coded)
        self._parts = self._make_parts(spec, coded)
        self._growth = Growth.of(spec, coding, len(target.kept_labels), len(target.classes))
        if (folder := self._params["checkpoint_dir"]) is not None:
            self._job = JobFolder(folder, self._manifest(spec, coding))
        return coding

    def _make_plan(self, rates: RateSize) -> None:
        """Choose where trees grow; raise ClusterError if memory is too small."""
        strategy, executor = self._params["strategy"], self._executor
        self._plan = choose_plan(executor, strategy, self._spec, self.target, self.n_features, rates)
        executor.advice = self._plan.advice
        if self._plan.worker_bytes > self._plan.workers.memory:
            raise ClusterError(f"too little memory: {executor.advice}")

    def _choose_coding(self) -> Any:
        """Return the future of the codes, which are chosen from a summary of all partitions."""
        spec = self._spec
        sample, sample_weight = sample_for_bins(self.target, spec.max_bins)
        rows, executor, summaries = self.target.rows_at(sample), self._executor, []
        for index, (first, last) in enumerate(pairwise(self._first_rows.tolist())):
            table, labelled, sampled = self._X[index], self._labelled[index], indices_within(rows, first, last - first)
            summary = executor.submit(
                _tasks.summarize_values, index, table, labelled, sampled, self._categorical, self.dates, spec.max_bins
            )
            summaries.append(summary)
        merged = merge_by_groups(executor.submit, _tasks.merge_summaries, summaries, _MERGED, spec.max_bins)
        return executor.submit(_tasks.choose_codes, merged, sample_weight, spec.max_bins, self.dates, spec.encodings)

    def _encode(self) -> list[Any]:
        """Return futures of the codes of the partitions, and keep the values of `FitSpec.rows_with_values`."""
        executor, classes = self._executor, self._executor.share(self.target.classes)
        coded, scored_rows, with_values = [], [], self._spec.rows_with_values
        for index, (start, stop) in enumerate(pairwise(self._starts)):
            scored, labelled = indices_within(with_values, start, stop - start), self._labelled[index]
            pair = executor.submit(_tasks.encode_partition, self._X[index], labelled, scored, classes, self._coding)
            coded.append(executor.submit(getitem, pair, 0))
            scored_rows.append(executor.submit(getitem, pair, 1))
        del pair
        # Tables are released as soon as they are encoded.
        for table in self._X:
            table.release()
        del self._X
        rows = np.concatenate([rows for rows in executor.gather(scored_rows) if rows is not None])
        self.X = SomeRows(self.target.rows_at(with_values), rows)
        return coded

    def _choose_rates(self, coding: Coding, coded: list[Any]) -> Coding:
        """Return the coding with target rates; the rows of `FitSpec.rows_with_values` get theirs as well."""
        executor, target, spec, rows = self._executor, self.target, self._spec, coding.rate_rows
        sample_weight, n_classes = target.kept_weight, len(target.classes)
        self._in_rates = weights = RateWeights.of(sample_weight, spec.sampler, n_classes)
        indices = [index for index, (start, stop) in enumerate(pairwise(self._starts)) if start < stop]
        pieces = [coded[index] for index in indices]
        firsts = [self._starts[index] for index in indices]
        samples = (self._sample_column(coding, pieces, firsts, feature) for feature in coding.rated)
        rates = rates_without_totals(coding, spec, target, weights, samples)
        shared = [executor.share(value) for value in (weights, rows, rates.tables)]
        counted = [executor.submit(_tasks.count_cells, piece, *shared, n_classes) for piece in pieces]
        merged = merge_by_groups(executor.submit, _tasks.add_totals, counted, _MERGED)
        rates = with_totals(rates, executor.gather([merged])[0])
        own = own_totals(coding, target, weights.integers(sample_weight), rates)
        self._rates, self.X = rates, RatedRows(self.X, rates, own)
        return replace(coding, rates=rates)

    def _sample_column(self, coding: Coding, pieces: list[Any], firsts: list[int], feature: int) -> Sample:
        """Return the rows from which the target rates of a column are chosen; `firsts` are the pieces' first rows."""
        n_rows, submit = len(self.target.kept_labels), self._executor.submit
        arguments = coding.digits, feature, n_rows
        futures = [submit(_tasks.sample_column, piece, first, *arguments) for piece, first in zip(pieces, firsts)]
        rows = CodedRows.joined(self._executor.gather(futures))
        return Sample(feature, rows, np.arange(len(rows.labels)))

    def _make_parts(self, spec: FitSpec, coded: list[Any]) -> list[Any]:
        """Return futures of coded parts of about equal size, which are made of partitions."""
        executor, n_rows, is_gathered = self._executor, self._starts[-1], self._plan.strategy == "gather"
        blocks = np.linspace(0, -(-n_rows // BLOCK_ROWS), self._plan.n_parts + 1).astype(np.int64)
        bounds = np.minimum(blocks * BLOCK_ROWS, n_rows).tolist()
        sampler, of_part = spec.sampler, None
        if sampler is not None:
            # Members are computed from the labels by the task.
            sampler = of_part = replace(sampler, members=np.empty(0, dtype=np.uint16))
            if is_gathered:
                sampler = sampler.of_trees(tree_keys(spec.seed, spec.numbers))
        by_class, in_rates = executor.share(spec.class_weights), executor.share(self._in_rates)
        copies_rows = is_gathered or (self._in_rates is not None and sampler is not None)
        parts = []
        for start, stop in pairwise(bounds):
            pieces = []
            for piece, (first, last) in zip(coded, pairwise(self._starts)):
                if max(first, start) >= min(last, stop):
                    continue
                if start > first or stop < last:
                    # A separate task selects the rows, so that other rows of the partition are not sent.
                    piece = executor.submit(_tasks.cut_part, piece, max(start - first, 0), min(stop, last) - first)
                pieces.append(piece)
            if sampler is not None and is_gathered:
                of_part = sampler.of_part(start, stop - start)
            parts.append(executor.submit(_tasks.join_parts, of_part, by_class, copies_rows, pieces, in_rates))
        return parts

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
        if self._plan.strategy == "replicate":
            return grow_replicated(self._parts[0], growth, keys, self._executor)
        return grow_gathered(self._parts, growth, keys, self._executor, self._plan.trees_per_task)

    def sum_rows(
        self, bags: Bags, packed: PackedTrees, ranges: Sequence[range], chosen: NDArray[np.int64] | None
    ) -> list[Sums]:
        """Compute the sums of `fitting.out_of_bag.sum_out_of_bag` on the workers, which read the partitions again."""
        # Workers need the memory, and no more trees are grown.
        self.__dict__.pop("_parts", None)
        executor, target = self._executor, self.target
        running = RunningSums(bags.kept, len(ranges), len(target.labels), len(target.classes), chosen)
        (tables,) = executor.compute(self._delayed)
        reading = executor.submit(_tasks.Reading, self._coding, target.classes, self._in_rates, self._rates)
        futures: list[Any] = [None] * len(tables)
        for group in cut_trees(packed, len(bags.keys)):
            # Each group is added to the sums of the groups before it, so that rounding errors are those of one group.
            trees = executor.share((packed.some(group), [within(trees, group) for trees in ranges]))
            sampler = bags.sampler.of_trees(bags.keys[group.start : group.stop])
            for index, (start, stop) in enumerate(pairwise(self._starts)):
                first = start // BLOCK_ROWS * BLOCK_ROWS
                futures[index] = executor.submit(
                    _tasks.add_out_of_bag,
                    tables[index],
                    self._labelled[index],
                    reading,
                    trees,
                    sampler.of_part(first, -(-stop // BLOCK_ROWS) * BLOCK_ROWS - first),
                    start - first,
                    futures[index],
                    running.chosen_within(start, stop - start),
                )
        for table in tables:
            table.release()
        starts = dict(zip(futures, self._starts))
        for future, sums in executor.as_completed(futures):
            if sums is not None:
                running.put(starts[future], sums)
        return running.sums


def choose_plan(
    executor: DaskExecutor,
    strategy: str,
    spec: FitSpec,
    target: Target,
    n_features: int,
    rates: RateSize = NO_RATES,
) -> ClusterPlan:
    """Return the plan of a fit on the current cluster."""
    size = FitSize.of(spec, len(target.kept_labels), n_features, len(target.classes))
    return plan_on_cluster(replace(size, rates=rates), executor.workers(), strategy)


def explain_plan(executor: DaskExecutor, forest: Any, X: Any, y: Any, sample_weight: Any) -> ClusterPlan:
    """Return the plan of a fit, for collections of whole rows."""
    target, names = _read_target_only(executor, forest, X, y, sample_weight), get_feature_names(X._meta)
    categorical, dates = find_columns(X._meta, X.shape[1], forest._params())
    sizes = {"n_features": X.shape[1] + n_added(dates), "may_have_rates": len(categorical) > 0}
    table = SimpleNamespace(target=target, names=names, dates=dates, **sizes)
    # The plan does not depend on the seed, and a generator is left as it is.
    forest = copy(forest).set_params(random_state=0)
    spec = forest._resolve(table, forest._start())
    return choose_plan(executor, forest.strategy, spec, target, table.n_features)


def _read_target_only(executor: DaskExecutor, forest: Any, X: Any, y: Any, sample_weight: Any) -> Target:
    """Return the labels and weights of the partitions without reading X; without labels two classes."""
    if y is not None:
        labels, *weights = align_columns(y=y, sample_weight=sample_weight)
        return read_target(executor, Partitions([], labels, weights[0] if weights else None, None, 0))[0]
    for name in ("sampling", "class_weight"):
        if isinstance(getattr(forest, name), dict):
            raise ValueError(f"explain_plan needs y if {name} is a dict, but {name}={getattr(forest, name)}")
    if sample_weight is not None:
        raise ValueError("explain_plan needs y if there is a sample_weight")
    parts = [executor.submit(len, part) for part in executor.compute(*split(X))[0]]
    return Target(np.arange(2), np.zeros(sum(known_lengths(X) or executor.gather(parts)), np.uint16), None)


def cut_trees(packed: PackedTrees, n_trees: int) -> list[range]:
    """Divide trees into groups for messages of limited size."""
    node_bytes = packed.nodes.nbytes // len(packed.nodes.words)
    ends = node_bytes * packed.first + packed.values.itemsize * packed.values.shape[1] * packed.first_leaf
    bounds = [0]
    while bounds[-1] < n_trees:
        n_fitting = int(np.searchsorted(ends, ends[bounds[-1]] + _GROUP_BYTES, side="right")) - 1
        bounds.append(max(n_fitting, bounds[-1] + 1))
    return [range(start, stop) for start, stop in pairwise(bounds)]

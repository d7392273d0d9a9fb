"""Training data as Dask partitions, and the plan of a fit."""

from collections import deque
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise, zip_longest
from operator import getitem
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._sklearn import get_feature_names
from aucforest.columns.categorical import find_categorical, read_table
from aucforest.columns.dates import find_dates
from aucforest.columns.expansion import FoundCategories, n_added
from aucforest.columns.target_rates import RateTable
from aucforest.distributed import _tasks
from aucforest.distributed._collections import Partitions, align_columns, delayed_partitions, known_lengths
from aucforest.distributed._executor import ClusterError, DaskExecutor
from aucforest.distributed._plan import ClusterPlan, plan_on_cluster
from aucforest.fitting.bootstrap import BLOCK_ROWS
from aucforest.fitting.coding import Coding, sample_for_bins
from aucforest.fitting.growing import estimate_seconds
from aucforest.fitting.integer_categories import merge_values, order_values, searched_columns
from aucforest.fitting.job import JobFolder, describe_fit, digest_codes
from aucforest.fitting.out_of_bag import Bags, RunningSums, Sums, indices_in_batch
from aucforest.fitting.parts import Grown, Growth, indices_within
from aucforest.fitting.plan import FitSize
from aucforest.fitting.spec import FitSpec, tree_keys
from aucforest.fitting.table import RowsWithValues, TrainingTable
from aucforest.fitting.target import Target
from aucforest.fitting.target_rates import CodedRows, ColumnSample, RateWeights
from aucforest.tree.prediction import PackedTrees

# Minimum and maximum seconds of a task that grows trees. Shorter tasks have too much overhead. Longer tasks lose more
# work if a worker dies.
_LEAST_TASK_SECONDS, _MOST_TASK_SECONDS = 0.5, 20.0
# Maximum bytes of trees that are sent to workers together, as a batch.
_BATCH_BYTES = 2**28


class RowsOnCluster(TrainingTable):
    """Training data as partitions on a Dask cluster; `params` are the parameters of the forest."""

    def __init__(self, executor: DaskExecutor, partitions: Partitions, params: dict[str, Any]) -> None:
        self._executor, self._params, self._delayed = executor, params, partitions.X
        meta, names = partitions.meta, get_feature_names(partitions.meta)
        # The meta of an array has no columns.
        table = read_table(meta if hasattr(meta, "columns") else np.empty((0, partitions.n_features), dtype=meta.dtype))
        self.categorical = find_categorical(table, params["categorical_features"])
        self.dates = find_dates(table, params["date_parts"], self.categorical)
        self.n_features = partitions.n_features + n_added(self.dates)
        self.names = None if names is None else names.tolist()
        if partitions.y:
            self._read_target(partitions)

    def _read_target(self, partitions: Partitions) -> None:
        """Read labels and weights, and keep futures of the labels and of the table of each partition."""
        executor = self._executor
        # Tables and labels are computed together, so that their common inputs are read once.
        y, weights, self._X = executor.compute(partitions.y, partitions.sample_weight or [], partitions.X)
        self._labelled = [
            executor.submit(_tasks.read_partition_target, index, labels, weight)
            for index, (labels, weight) in enumerate(zip_longest(y, weights))
        ]
        parts = executor.gather(self._labelled)
        sample_weight = np.concatenate([part.sample_weight for part in parts]) if weights else None
        self.target = Target.from_parts([part[:2] for part in parts], sample_weight)
        self._first_rows = np.concatenate(([0], np.cumsum([len(part.labels) for part in parts])))
        kept = self.target.kept
        bounds = (self._first_rows if kept is None else np.searchsorted(kept, self._first_rows)).tolist()
        # (index, start, stop) of each partition with rows of positive weight: their range among the rows of positive
        # weight of all partitions.
        self._partitions = [(i, start, stop) for i, (start, stop) in enumerate(pairwise(bounds)) if start < stop]

    def code(self, spec: FitSpec) -> Coding:
        """Choose bins, and encode the rows of positive weight; raise ClusterError if memory is too small."""
        coding = super().code(spec)
        self._parts = self._join_parts()
        del self._coded  # so that workers release the codes of partitions
        if (folder := self._params["checkpoint_dir"]) is not None:
            self._job = JobFolder(folder, self._manifest(coding))
        return coding

    def _choose_coding(self) -> Coding:
        """Choose bins and codes of categories from a summary of all rows."""
        self._make_plan()
        self._shared_coding = self._submit_choice()
        coding: Coding = self._executor.gather([self._shared_coding])[0]
        return coding

    def _make_plan(self, coding: Coding | None = None) -> None:
        """Choose where trees grow; raise ClusterError if memory is too small."""
        size = FitSize.of(self._spec, self.target, self.n_features, coding=coding)
        self._plan = plan_on_cluster(size, self._executor.workers(), self._params["strategy"])
        self._executor.advice = self._plan.advice
        if self._plan.worker_bytes > self._plan.workers.memory:
            raise ClusterError(f"too little memory: {self._plan.advice}")

    def _submit_choice(self) -> Any:
        """Return the future of the coding. Futures of summaries are not kept, so that workers release the summaries."""
        spec, executor, found, summaries = self._spec, self._executor, self._known(self._spec), []
        sample, sample_weight = sample_for_bins(self.target, spec.max_bins)
        rows, classes = self.target.rows_at(sample), self.target.classes if found is None else None
        params = executor.share((self.categorical, self.dates, spec.max_bins, classes))
        for index, (first, last) in enumerate(pairwise(self._first_rows.tolist())):
            table, labelled, sampled = self._X[index], self._labelled[index], indices_within(rows, first, last - first)
            summaries.append(executor.submit(_tasks.summarize_values, index, table, labelled, sampled, params))
        merged = executor.merge(_tasks.merge_summaries, summaries, spec.max_bins)
        if found is None:
            found = self._find_integers(merged)
        return executor.submit(
            _tasks.choose_codes, spec.encodings, merged, sample_weight, spec.max_bins, self.dates, found
        )

    def _find_integers(self, summary: Any) -> FoundCategories:
        """Return the columns of integers that are categories, given the future of the summary of all rows."""
        executor, n_columns = self._executor, self.n_features - n_added(self.dates)
        columns = searched_columns(n_columns, {*self.categorical, *self.dates}, self._spec)
        found = executor.gather([executor.submit(_tasks.find_integers, summary, columns)])[0]
        if not found:
            return {}
        counted = [
            executor.submit(_tasks.count_integers, self._X[index], self._labelled[index], list(found))
            for index, _, _ in self._partitions
        ]
        return order_values(executor.gather([executor.merge(merge_values, counted)])[0], found)

    def _encode_rows(self, coding: Coding) -> None:
        """Set `_coded` to futures of codes of `_partitions`, and `X` to the values of `FitSpec.rows_with_values`."""
        if coding.rated:  # only now it is known which columns have target rates
            self._make_plan(coding)
        executor, shared = self._executor, self._shared_coding
        classes = executor.share(self.target.classes)
        self._coded, stored_values, rows_with_values = list[Any](), [], self._spec.rows_with_values
        for index, start, stop in self._partitions:
            stored, labelled = indices_within(rows_with_values, start, stop - start), self._labelled[index]
            pair = executor.submit(_tasks.encode_partition, self._X[index], labelled, stored, classes, shared)
            self._coded.append(executor.submit(getitem, pair, 0))
            stored_values.append(executor.submit(getitem, pair, 1))
        del pair  # so that workers release the last pair
        # Tables are released as soon as they are encoded.
        for table in self._X:
            table.release()
        del self._X
        values = np.concatenate(executor.gather(stored_values))
        self.X = RowsWithValues(self.target.rows_at(rows_with_values), values)

    def _sample_column(self, coding: Coding, feature: int) -> ColumnSample:
        submit, arguments = self._executor.submit, (coding.digits, feature, len(self.target.kept_labels))
        coded = zip(self._coded, self._partitions)
        futures = [submit(_tasks.sample_column, part, start, *arguments) for part, (_, start, _) in coded]
        codes, labels, *_ = zip(*self._executor.gather(futures))
        rows = CodedRows(np.concatenate(codes, axis=1), np.concatenate(labels))
        return ColumnSample(feature, rows, np.arange(len(rows.labels)))

    def _count_cells(
        self, coding: Coding, weighting: RateWeights, tables: Sequence[RateTable]
    ) -> list[NDArray[np.int64]]:
        executor, n_classes = self._executor, len(self.target.classes)
        shared = [executor.share(value) for value in (weighting, coding.cell_finder, tables)]
        counted = [executor.submit(_tasks.count_cells, part, *shared, n_classes) for part in self._coded]
        return executor.gather([executor.merge(_tasks.add_totals, counted)])[0]

    def _join_parts(self) -> list[Any]:
        """Return futures of parts of about equal numbers of rows, which are joined from pieces of partitions."""
        executor, spec, n_rows = self._executor, self._spec, len(self.target.kept_labels)
        blocks = np.linspace(0, -(-n_rows // BLOCK_ROWS), self._plan.n_parts + 1).astype(np.int64)
        sampler, copies_rows = spec.sampler, self._plan.strategy == "gather"
        if sampler is not None:
            # `join_parts` computes the members of strata from the labels, so they need not be sent.
            sampler = replace(sampler, members=np.empty(0, dtype=np.uint16))
            if copies_rows:
                sampler = sampler.store_sizes(tree_keys(spec.seed, spec.numbers))
            copies_rows |= self._weighting is not None
        by_class, weighting = executor.share(spec.class_weights), executor.share(self._weighting)
        parts = []
        for start, stop in pairwise(np.minimum(blocks * BLOCK_ROWS, n_rows).tolist()):
            part_sampler = sampler
            if sampler is not None and sampler.stored_sizes is not None:
                part_sampler = sampler.part(start, stop - start)
            pieces = self._cut(start, stop)
            parts.append(executor.submit(_tasks.join_parts, part_sampler, by_class, copies_rows, pieces, weighting))
        return parts

    def _cut(self, start: int, stop: int) -> list[Any]:
        """Return futures of the rows from start to stop of all encoded rows, one for each partition that has any."""
        pieces = []
        for piece, (_, first, last) in zip(self._coded, self._partitions):
            if max(first, start) < min(last, stop):
                if start > first or stop < last:
                    # A separate task selects the rows, so that the other rows of the partition are not sent.
                    bounds = max(start - first, 0), min(stop, last) - first
                    piece = self._executor.submit(_tasks.cut_part, piece, *bounds)
                pieces.append(piece)
        return pieces

    def _manifest(self, coding: Coding) -> dict[str, Any]:
        """Return the data that determine the trees of this fit."""
        by_part = self._executor.gather([self._executor.submit(digest_codes, part) for part in self._parts])
        digests = {
            "the digest of the values": sha256(b"".join(by_part)).hexdigest(),
            "the digest of the bins": sha256(b"".join(array.tobytes() for array in coding.values)).hexdigest(),
            "the features": self.names,
            "the categorical features": sorted(coding.categories),
            "the monotonic constraints": self._spec.params.signs.tolist(),
        }
        return digests | describe_fit(self._params, self._spec.seed, self.target)

    def _grow_trees(self, growth: Growth, keys: list[int]) -> Grown:
        """Yield, for each finished task, the indices in `keys` of its trees, and the trees.

        Trees grow from a copy of all rows ("replicate"), or from their sampled rows, which are gathered from all parts
        ("gather"). With "gather", each thread has two submitted tasks: one gathers while the other grows trees.
        """
        executor, running, seconds = self._executor, {}, estimate_seconds(growth)
        gathers, n_threads = self._plan.strategy == "gather", executor.workers().n_threads
        most_trees = self._plan.trees_per_task if gathers else int(_MOST_TASK_SECONDS / seconds)
        shared, submitted = executor.share(growth), list[Any]()
        # The longest tasks are submitted first.
        waiting = deque(cut_tasks(len(keys), n_threads, seconds, most_trees))

        def submit_next() -> None:
            task = waiting.popleft()
            task_keys = [keys[i] for i in task]
            if gathers:
                samples = [executor.submit(_tasks.sample, part, task_keys, in_order=True) for part in self._parts]
                future = executor.submit(_tasks.grow_samples, shared, task_keys, samples, in_order=True)
            else:
                future = executor.submit(_tasks.grow, shared, self._parts[0], task_keys, in_order=True)
            running[future] = task
            submitted.append(future)

        for _ in range(min(2 * n_threads, len(waiting)) if gathers else len(waiting)):
            submit_next()
        for future, trees in executor.as_completed(submitted):
            if waiting:
                submit_next()
            yield running.pop(future), trees

    def sum_rows(
        self, bags: Bags, packed: PackedTrees, ranges: Sequence[range], chosen: NDArray[np.int64] | None
    ) -> list[Sums]:
        """Compute the sums of `sum_out_of_bag` on the workers, which read the partitions again."""
        # No more trees are grown, so the rows that trees grow from are released.
        self.__dict__.pop("_parts", None)
        executor, target = self._executor, self.target
        running = RunningSums(bags.sampler.n_rows, len(ranges), len(target.classes), chosen)
        (tables,) = executor.compute(self._delayed)
        reader = executor.submit(
            _tasks.PartitionReader, self._shared_coding, target.classes, self._weighting, self._coding.rates
        )
        futures: list[Any] = [None] * len(self._partitions)
        for batch in cut_trees(packed, len(bags.keys)):
            # Each batch is added to the sums of earlier batches, so that rounding errors are those of a single batch.
            trees = executor.share((packed.part(batch), [indices_in_batch(trees, batch) for trees in ranges]))
            sampler = bags.sampler.store_sizes(bags.keys[batch.start : batch.stop])
            for number, (index, start, stop) in enumerate(self._partitions):
                first = start // BLOCK_ROWS * BLOCK_ROWS
                part_sampler = sampler.part(first, -(-stop // BLOCK_ROWS) * BLOCK_ROWS - first)
                rows = part_sampler, start - first, running.part(start, stop - start)[1]
                arguments = tables[index], self._labelled[index], reader, trees, rows, futures[number]
                futures[number] = executor.submit(_tasks.add_out_of_bag, *arguments)
        for table in tables:
            table.release()
        by_future = dict(zip(futures, self._partitions))
        for future, sums in executor.as_completed(futures):
            _, start, stop = by_future[future]
            for total, computed in zip(running.part(start, stop - start)[0], sums):
                total.copy_from(computed)
        return running.at_all_rows(bags.kept, len(target.labels))


def explain_plan(executor: DaskExecutor, forest: Any, X: Any, y: Any, sample_weight: Any) -> ClusterPlan:
    """Return the plan of a fit to X, whose partitions have whole rows. Without y, two classes are assumed."""
    labels, *weights = [[]] if y is None else align_columns(y=y, sample_weight=sample_weight)
    partitions = Partitions([], labels, weights[0] if weights else None, X._meta, X.shape[1])
    table = RowsOnCluster(executor, partitions, forest._params())
    if y is None:
        table.target = _assume_target(executor, forest, X, sample_weight)
    # The plan does not depend on the seed. A fixed seed leaves the state of a generator in random_state unchanged.
    forest = copy(forest).set_params(random_state=0)
    spec = forest._resolve(table, forest._start())
    return plan_on_cluster(FitSize.of(spec, table.target, table.n_features), executor.workers(), forest.strategy)


def _assume_target(executor: DaskExecutor, forest: Any, X: Any, sample_weight: Any) -> Target:
    """Return a target of two classes for the rows of X."""
    for name in ("sampling", "class_weight"):
        if isinstance(getattr(forest, name), dict):
            raise ValueError(f"explain_plan needs y if {name} is a dict, but {name}={getattr(forest, name)}")
    if sample_weight is not None:
        raise ValueError("explain_plan needs y if there is a sample_weight")
    parts = [executor.submit(len, part) for part in executor.compute(*delayed_partitions(X))[0]]
    return Target(np.arange(2), np.zeros(sum(known_lengths(X) or executor.gather(parts)), np.uint16), None)


def cut_tasks(n_trees: int, n_threads: int, tree_seconds: float, most_trees: int) -> list[range]:
    """Return the trees of each task as ranges of decreasing length, so that threads finish at about the same time."""
    most = max(1, most_trees)
    least = max(1, min(most, int(_LEAST_TASK_SECONDS / tree_seconds), n_trees // (4 * n_threads)))
    bounds = [0]
    while bounds[-1] < n_trees:
        n_left = n_trees - bounds[-1]
        bounds.append(bounds[-1] + min(n_left, max(least, min(most, n_left // (2 * n_threads)))))
    return [range(start, stop) for start, stop in pairwise(bounds)]


def cut_trees(packed: PackedTrees, n_trees: int) -> list[range]:
    """Return batches of trees, each small enough to be sent to a worker."""
    node_bytes = packed.nodes.nbytes // len(packed.nodes.words)
    ends = node_bytes * packed.first + packed.values.itemsize * packed.values.shape[1] * packed.first_leaf
    bounds = [0]
    while bounds[-1] < n_trees:
        n_fitting = int(np.searchsorted(ends, ends[bounds[-1]] + _BATCH_BYTES, side="right")) - 1
        bounds.append(max(n_fitting, bounds[-1] + 1))
    return [range(start, stop) for start, stop in pairwise(bounds)]

"""The fit of a forest on a Dask cluster, from partitions to out-of-bag sums."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _get_feature_names
from tqdm import tqdm

from aucforest.distributed._collections import Partitions, known_lengths, split
from aucforest.distributed._executor import DaskExecutor, default_client
from aucforest.distributed._growing import grow_replicated
from aucforest.distributed._plan import Plan, choose_plan, count_tree_rows
from aucforest.distributed._resume import open_checkpoint
from aucforest.distributed._source import DaskSource, read_table
from aucforest.estimators._base import refuse_dates
from aucforest.estimators._coded_fit import CodedFit, Source
from aucforest.fitting.checkpoint import grow_missing
from aucforest.fitting.coding import Coding, Request
from aucforest.fitting.growing import estimate_seconds
from aucforest.fitting.growth_params import GrowthParams, resolve_max_features
from aucforest.fitting.level import grow_by_level
from aucforest.fitting.parts import Growth, describe_growth
from aucforest.fitting.sampling import resolve_draws
from aucforest.tree.tree import Tree


def fit_on_cluster(forest: Any, partitions: Partitions) -> None:
    """Fit a DaskAUCForestClassifier; when that fails, all tasks are cancelled and the forest is as it was."""
    refuse_dates(partitions.meta)
    names = _get_feature_names(partitions.meta)
    before = dict(vars(forest))
    with _cluster(forest) as executor:
        try:
            source = DaskSource(executor, partitions)
            target = source.target
            plan = _plan(forest, executor, target.kept_labels, target.classes, partitions.n_features)
            plan.check()
            executor.advice = plan.advice
            fit = CodedFit(forest, target)
            coding, scored = source.code(fit, Request.of(forest, read_table(partitions.meta)))
            growing = _Growing(forest, fit, executor, source, coding, plan)
            features = None if names is None else names.tolist()
            fit.finish(Source(features, coding, scored, growing.grow, source.sum_rows))
        except BaseException:
            vars(forest).clear()
            vars(forest).update(before)
            raise


def explain(forest: Any, X: Any, y: Any) -> Plan:
    """Return the plan of a fit, for collections of whole rows."""
    forest._validate_params()
    with _cluster(forest) as executor:
        if y is not None:
            target = DaskSource(executor, Partitions([], split(y), None, None, 0)).target
            return _plan(forest, executor, target.kept_labels, target.classes, X.shape[1])
        if isinstance(forest.sampling, dict):
            raise ValueError(f"explain_plan needs y, since sampling={forest.sampling} are rates by class")
        lengths = known_lengths(X) or executor.gather(
            [executor.submit(len, part) for part in executor.compute([split(X)])[0]]
        )
        labels = np.zeros(sum(lengths), dtype=np.uint16)
        return _plan(forest, executor, labels, np.arange(2), X.shape[1])


@contextmanager
def _cluster(forest: Any) -> Iterator[DaskExecutor]:
    """Run tasks on the cluster of a forest; none is left behind."""
    executor = DaskExecutor(default_client(forest.client))
    try:
        yield executor
    finally:
        executor.cancel()


def _plan(
    forest: Any, executor: DaskExecutor, labels: NDArray[np.uint16], classes: NDArray[Any], n_features: int
) -> Plan:
    """Choose how to grow a forest from rows of these labels."""
    draws = resolve_draws(forest, labels, classes)
    sizes, replace = (None, False) if draws is None else (draws.sizes, draws.replace)
    return choose_plan(
        forest,
        shape=(len(labels), n_features),
        n_classes=len(classes),
        tree_rows=count_tree_rows(len(labels), sizes, replace),
        max_features=resolve_max_features(forest.max_features, n_features),
        cluster=executor.cluster(),
    )


@dataclass
class _Growing:
    """What a fit asks of rows that are on a cluster."""

    forest: Any
    fit: CodedFit
    executor: DaskExecutor
    source: DaskSource
    coding: Coding
    plan: Plan

    def grow(self, params: GrowthParams, keys: list[int], weights: NDArray[np.float64] | None) -> list[Tree]:
        """Grow a tree for every key."""
        target, forest = self.source.target, self.forest
        parts = self.source.make_parts(params.draws, self.fit.class_weights, self.plan.n_parts)
        no_codes = np.empty((len(self.coding.n_bins), 0), dtype=np.uint8)
        growth = describe_growth(target.training_set(no_codes, self.coding, weights), params)
        grow = partial(self._grow_with_progress, parts, growth, len(keys))
        with ExitStack() as stack:
            checkpoint = None
            if forest.checkpoint_dir is not None:
                opened = open_checkpoint(forest, self.fit.seed, target, self.coding, parts, self.executor)
                checkpoint = stack.enter_context(opened)
            return grow_missing(forest.n_estimators, keys, checkpoint, grow)

    def _grow_with_progress(
        self, parts: list[Any], growth: Growth, n_trees: int, keys: list[int]
    ) -> Iterator[tuple[list[int], list[Tree]]]:
        """Yield places of keys and their trees, as they are done, and show how many of the trees are."""
        done = n_trees - len(keys)
        with tqdm(total=n_trees, initial=done, desc="trees", disable=not self.forest.verbose) as progress:
            for places, trees in self._grow_somewhere(parts, growth, keys):
                yield places, trees
                progress.update(len(trees))

    def _grow_somewhere(
        self, parts: list[Any], growth: Growth, keys: list[int]
    ) -> Iterator[tuple[list[int], list[Tree]]]:
        """Yield places of keys and their trees, as they are done."""
        plan, executor = self.plan, self.executor
        if plan.strategy == "replicate":
            seconds = estimate_seconds(growth.n_draws, growth.params)
            yield from grow_replicated(parts, growth, keys, executor, seconds)
            return
        # The plan knows about how many distinct rows a tree has; that all are gathered must hold for every tree.
        local_rows = growth.n_draws if plan.strategy == "gather" else plan.local_rows
        sizes = {"local_rows": local_rows, "max_hist_bytes": plan.max_hist_bytes}
        for place, tree in grow_by_level(parts, growth, keys, executor, **sizes):
            yield [place], [tree]

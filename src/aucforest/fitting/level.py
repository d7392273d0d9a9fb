"""Growing of trees from rows in parts: by histograms at the top of a tree, and as whole branches below.

The parts answer questions of many trees at once; their histograms are added up by a tree of tasks. Nodes small
enough for one task are grown there from their samples. The trees are those that one process would grow from all rows,
bit for bit: histograms are integers, the search is the same code, and what is drawn at a node depends on its key alone.
"""

from collections import deque
from operator import getitem
from typing import Any

import numpy as np

from aucforest.fitting.executor import Executor, merge_by_groups
from aucforest.fitting.level_tasks import (
    Branch,
    Question,
    add_up,
    count_part,
    grow_branches,
    hand_out,
    histogram_dtype,
    histogram_sizes,
)
from aucforest.fitting.parts import Grown, Growth
from aucforest.fitting.spec import GrowthParams, needs_all_rows
from aucforest.fitting.top import Searcher, TopTree
from aucforest.tree.binning import MAX_BINS

# Number of trees in a round. With fewer there are more round trips, with more trees wait for each other.
_TREES_A_ROUND = 50
# Number of rounds: while this process searches for splits of one, workers count for the other.
_ROUNDS = 2
# Minimum number of bundles of branches for each worker, so that workers finish at about the same time.
_BUNDLES_A_WORKER = 4
# Number of histograms that are summed in a task.
_ARITY = 4


class _Level:
    """The state of growing: waiting trees and branches, and running tasks."""

    def __init__(
        self,
        parts: list[Any],
        growth: Growth,
        keys: list[int],
        executor: Executor,
        local_rows: int,
        max_hist_bytes: int,
    ) -> None:
        self._parts, self._growth, self._executor = parts, growth, executor
        self._local_rows, self._max_hist_bytes = local_rows, max_hist_bytes
        self._shared = executor.share(growth)
        self._bundle_rows = min(local_rows, growth.n_sampled * len(keys) // (_BUNDLES_A_WORKER * executor.n_workers))
        searchers: dict[GrowthParams, Searcher] = {}
        self._new: deque[TopTree] = deque()
        for place, key in enumerate(keys):
            of_tree = growth.of_tree(key)
            if of_tree.params not in searchers:
                searchers[of_tree.params] = Searcher(of_tree, local_rows)
            self._new.append(TopTree(place, key, searchers[of_tree.params]))
        self._trees_a_round = min(_TREES_A_ROUND, -(-len(keys) // _ROUNDS))
        self._waiting: deque[TopTree] = deque()
        self._branches: deque[tuple[TopTree, Branch]] = deque()
        # The futures of rounds of questions, and of bundles of branches.
        self._rounds: dict[Any, list[tuple[TopTree, Question]]] = {}
        self._bundles: dict[Any, list[tuple[TopTree, Branch]]] = {}
        self._completed = executor.as_completed()
        if growth.n_sampled <= local_rows:
            self._branches.extend((tree, branch) for tree in self._new for branch in tree.branches())
            self._new.clear()

    def run(self) -> Grown:
        """Yield trees in the order of completion."""
        self._send_bundles()
        self._send_rounds()
        for future, result in self._completed:
            if future in self._rounds:
                yield from self._take_histograms(self._rounds.pop(future), result)
                self._send_bundles()
            else:
                bundle = self._bundles.pop(future)
                # Workers continue while this process handles the result.
                self._send_bundles()
                for (tree, branch), grown in zip(bundle, result):
                    tree.take(branch, grown)
                    if tree.is_complete:
                        yield [tree.place], [tree.tree()]
            self._send_rounds()

    def _send_rounds(self) -> None:
        """Submit questions, unless there are enough branches to keep all workers busy."""
        while len(self._rounds) < _ROUNDS and (self._waiting or self._new):
            n_rows, enough = sum(branch.n_rows for _, branch in self._branches), 2 * self._executor.n_workers
            # Branches that wait for others to share a task are submitted if nothing else is running.
            if not self._waiting and (self._rounds or self._bundles) and n_rows > enough * self._local_rows:
                return
            asked = self._ask()
            questions = self._executor.share([question for _, question in asked])
            counted = [self._executor.submit(count_part, part, self._shared, questions) for part in self._parts]
            total = merge_by_groups(self._executor.submit, add_up, counted, _ARITY)
            self._rounds[total] = asked
            self._completed.add(total)

    def _ask(self) -> list[tuple[TopTree, Question]]:
        """Return waiting trees and some of their questions, limited by the bytes of histograms."""
        asked: list[tuple[TopTree, Question]] = []
        itemsize = np.dtype(histogram_dtype(self._growth)).itemsize
        room = self._max_hist_bytes // itemsize
        while len(asked) < self._trees_a_round and (self._waiting or self._new):
            queue = self._waiting or self._new
            question = queue[0].ask(room)
            if question is None:
                break
            asked.append((queue.popleft(), question))
            room -= int(histogram_sizes(self._growth, question.features).sum())
        if not asked:
            sizes = np.sort(histogram_sizes(self._growth, np.arange(len(self._growth.n_bins))))
            largest = sizes[-self._growth.params.max_features :].sum() * itemsize
            raise ValueError(
                f"max_hist_bytes={self._max_hist_bytes} is too small: the histograms of a single node take up to"
                f" {largest} bytes"
            )
        return asked

    def _take_histograms(self, asked: list[tuple[TopTree, Question]], histograms: Any) -> Grown:
        """Split the nodes of a round."""
        end = 0
        for tree, question in asked:
            start, end = end, end + int(histogram_sizes(self._growth, question.features).sum())
            tree.answer(question, histograms[start:end])
            if tree.is_open:
                self._waiting.append(tree)
            elif tree.is_complete:
                yield [tree.place], [tree.tree()]
            else:
                self._branches.extend((tree, branch) for branch in tree.branches())

    def _send_bundles(self) -> None:
        """Submit branches in several bundles together, so that a part sorts the samples of a tree only once."""
        room = 2 * self._executor.n_workers - len(self._bundles)
        bundles: list[list[tuple[TopTree, Branch]]] = []
        while room >= self._executor.n_workers and len(bundles) < room and (bundle := self._next_bundle()):
            bundles.append(bundle)
        if not bundles:
            return
        submit, tasks = self._executor.submit, [[branch for _, branch in bundle] for bundle in bundles]
        shared = self._executor.share(tasks)
        handed_out = [submit(hand_out, part, self._shared, shared) for part in self._parts]
        for place, bundle in enumerate(bundles):
            rows = [submit(getitem, part, place) for part in handed_out]
            grown = submit(grow_branches, self._shared, tasks[place], rows)
            self._bundles[grown] = bundle
            self._completed.add(grown)

    def _next_bundle(self) -> list[tuple[TopTree, Branch]]:
        """Return branches with the number of rows of a task, or none if there are few and more may follow."""
        bundle: list[tuple[TopTree, Branch]] = []
        n_rows = 0
        while self._branches and (not bundle or n_rows + self._branches[0][1].n_rows <= self._bundle_rows):
            bundle.append(self._branches.popleft())
            n_rows += bundle[-1][1].n_rows
        if not self._branches and (self._new or self._waiting or self._rounds):
            self._branches.extend(bundle)
            return []
        return bundle


def grow_by_level(
    parts: list[Any], growth: Growth, keys: list[int], executor: Executor, *, local_rows: int, max_hist_bytes: int
) -> Grown:
    """Yield indices of keys and their trees, in the order of completion; trees equal those of `growing.grow_batches`.

    Parts are `Part` or futures of them, in the order of their rows; keys are those of `spec.tree_keys`. Nodes of at
    most local_rows samples are grown in one task: where that is all samples of a tree, its rows are just gathered.
    max_hist_bytes is the largest message of histograms; a ValueError if that is too small for a node, or for a
    parameter that needs all rows of a tree in one place where trees may have more than local_rows.
    """
    name = "max_bins=None" if int(growth.n_bins.max()) > MAX_BINS else needs_all_rows(growth.variants)
    if growth.n_sampled > local_rows and name is not None:
        raise ValueError(
            f"{name} needs all {growth.n_sampled} rows of a tree on one worker: increase local_rows, which is"
            f" {local_rows}, decrease max_samples, or use strategy='gather' or 'replicate'"
        )
    return _Level(parts, growth, keys, executor, local_rows, max_hist_bytes).run()

"""The top of a tree that is grown level by level: its nodes, and what each of them still has to know."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.distributed._level_kernels import Route
from aucforest.distributed._level_tasks import Branch, Question, Result, histogram_sizes
from aucforest.distributed._parts import Growth
from aucforest.estimators._growing import tree_bounds
from aucforest.tree.assembly import Grown, splice
from aucforest.tree.growing import Nodes, Stops, branch_rows
from aucforest.tree.histogram_search import Top, draw_candidates, make_top, split_by_histograms
from aucforest.tree.splitter import Rules, make_scratch
from aucforest.tree.subsets import make_subsets
from aucforest.tree.tree import Tree

_NO_NAMES = np.empty((0, 0), dtype=np.uint32)


class Searcher:
    """What searching nodes takes beside them; for one thread.

    Nodes of at most local_rows rows are handed out as branches.
    """

    def __init__(self, growth: Growth, local_rows: int) -> None:
        self.growth, self.local_rows = growth, local_rows
        self.n_features = len(growth.n_bins)
        self.scratch = make_scratch(self.n_features, int(growth.n_bins.max()) + 1, growth.n_classes)
        self.subsets = None if growth.by_set is None else make_subsets(growth.by_set, 1, growth.n_classes)
        self.unit = 1.0 if growth.fixed is None else growth.fixed.unit
        self.aside_rows = branch_rows(self.n_features, growth.params.max_features)

    def candidates(self, key: int, is_constant: NDArray[np.bool_]) -> list[int]:
        """Return the features that a node looks at, as far as it is known which of them are constant."""
        n_tried = draw_candidates(key, is_constant, self.growth.params.max_features, self.scratch)
        tried: list[int] = self.scratch.tried[:n_tried].tolist()
        return tried


class _OpenNode:
    """A node that waits for histograms."""

    def __init__(self, is_constant: NDArray[np.bool_]) -> None:
        self.is_constant = is_constant
        self.histograms: dict[int, NDArray[np.int64]] = {}


class TopTree:
    """A tree from its root down to the nodes that are handed out as branches."""

    def __init__(self, place: int, key: int, searcher: Searcher) -> None:
        self.place, self.key, self._searcher = place, key, searcher
        self._n_nodes = 1
        self._top = make_top(1, searcher.growth.n_classes, by_set=searcher.growth.by_set is not None)
        self._top.keys[0] = key
        self._open = {0: _OpenNode(np.zeros(searcher.n_features, dtype=np.bool_))}
        self._handed_out: list[int] = []
        self._results: dict[int, Result] = {}

    @property
    def is_open(self) -> bool:
        """Whether a node waits for histograms."""
        return len(self._open) > 0

    def hand_out_root(self) -> None:
        """Make the whole tree one branch."""
        self._open.clear()
        self._handed_out.append(0)

    def _route(self) -> Route:
        """Copy what takes rows down."""
        top = self._top
        columns = (top.nodes.feature, top.code, top.nodes.missing_left, top.nodes.left_child, top.codes_left)
        return Route._make(column[: self._n_nodes].copy() for column in columns)

    def ask(self, room: int) -> Question | None:
        """Ask for the histograms that open nodes lack, node by node up to so many numbers; None if not one fits."""
        nodes: list[int] = []
        features: list[int] = []
        for node, open_node in self._open.items():
            candidates = self._searcher.candidates(self._top.keys[node], open_node.is_constant)
            lacking = [feature for feature in candidates if feature not in open_node.histograms]
            room -= int(histogram_sizes(self._searcher.growth, np.array(lacking)).sum())
            if room < 0:
                break
            nodes += [node] * len(lacking)
            features += lacking
        if not nodes:
            return None
        return Question(self.key, self._route(), np.array(nodes), np.array(features))

    def answer(self, question: Question, histograms: NDArray[Any]) -> None:
        """Take the histograms of a question, and cut the nodes that lack nothing more."""
        growth, asked = self._searcher.growth, question.nodes.tolist()
        ends = np.cumsum(histogram_sizes(growth, question.features)).tolist()
        for node, feature, start, end in zip(asked, question.features.tolist(), [0, *ends], ends):
            histogram = histograms[start:end].astype(np.int64)
            counts = histogram.reshape(-1, growth.n_classes + 1)
            if node == 0 and self._n_nodes == 1 and not self._open[0].histograms:
                *self._top.nodes.totals[0], self._top.nodes.n_samples[0] = counts.sum(axis=0)
            if np.count_nonzero(counts[:, -1]) > 1:
                self._open[node].histograms[feature] = histogram
            else:
                self._open[node].is_constant[feature] = True
        if self._n_nodes == 1 and self._top.nodes.n_samples[0] <= self._searcher.local_rows:
            self.hand_out_root()
            return
        bounds = tree_bounds(growth.params, self._weight)
        for node in dict.fromkeys(asked):
            self._cut(node, bounds)

    @property
    def _weight(self) -> int:
        """The weight of all rows, in units."""
        return int(self._top.nodes.totals[0].sum())

    def _cut(self, node: int, bounds: tuple[Rules, Stops]) -> None:
        """Cut a node if nothing lacks; what its children wait for is histograms, or to be handed out."""
        searcher, open_node = self._searcher, self._open[node]
        growth = searcher.growth
        candidates = searcher.candidates(self._top.keys[node], open_node.is_constant)
        if any(feature not in open_node.histograms for feature in candidates):
            return
        del self._open[node]
        if not candidates:
            return
        if self._n_nodes + 2 > len(self._top.code):
            self._top = _enlarge(self._top, 2 * self._n_nodes + 2)
        worth = split_by_histograms(
            np.concatenate([open_node.histograms[feature] for feature in candidates]),
            np.array(candidates, dtype=np.int32),
            growth.n_bins,
            _NO_NAMES,
            growth.values,
            *bounds,
            self._top,
            node,
            self._n_nodes,
            searcher.scratch,
            searcher.subsets,
        )
        if worth < 0:
            return
        for side in range(2):
            child = self._n_nodes + side
            if not worth >> side & 1:
                continue
            if self._top.nodes.n_samples[child] <= searcher.local_rows:
                self._handed_out.append(child)
            else:
                self._open[child] = _OpenNode(open_node.is_constant.copy())
        self._n_nodes += 2

    def branches(self) -> list[Branch]:
        """Return the nodes that are handed out."""
        route, top = self._route(), self._top
        if self._handed_out == [0]:
            return [Branch(self.key, route, 0, self.key, 0, self._searcher.growth.n_draws, None)]
        return [
            Branch(
                self.key,
                route,
                node,
                int(top.keys[node]),
                int(top.depth[node]),
                int(top.nodes.n_samples[node]),
                self._weight,
            )
            for node in self._handed_out
        ]

    def take(self, branch: Branch, result: Result) -> None:
        """Take a branch that is grown."""
        self._results[branch.node] = result

    @property
    def is_complete(self) -> bool:
        """Whether no node lacks its histograms or its branch."""
        return not self._open and len(self._results) == len(self._handed_out)

    def tree(self) -> Tree:
        """Return the tree, once it is complete."""
        if self._handed_out == [0]:
            grown, unit = self._results[0]
        else:
            branches = {node: result.grown for node, result in sorted(self._results.items())}
            grown, unit = splice(self._grown(), branches, self._searcher.aside_rows), self._searcher.unit
        n_nodes, n_features = len(grown.nodes.feature), self._searcher.n_features
        return Tree.from_nodes(grown.nodes, n_nodes, unit, n_features, set_nodes=grown.set_nodes, sets=grown.sets)

    def _grown(self) -> Grown:
        """Return the nodes of the top."""
        nodes = Nodes._make(column[: self._n_nodes] for column in self._top.nodes)
        by_set = self._searcher.growth.by_set
        set_nodes = np.empty(0, dtype=np.int64)
        if by_set is not None:
            set_nodes = np.flatnonzero((nodes.feature >= 0) & by_set[nodes.feature])
        return Grown(nodes, set_nodes, self._top.sets[set_nodes])


def _enlarge(top: Top, capacity: int) -> Top:
    """Return the same top with more room."""
    larger = make_top(capacity, top.nodes.totals.shape[1], by_set=len(top.sets) > 0)
    columns: list[Any] = [*larger.nodes, *larger[1:]]
    for column, old in zip(columns, (*top.nodes, *top[1:])):
        column[: len(top.code)] = old
    return larger

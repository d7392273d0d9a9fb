"""The top of a tree that is grown level by level: its nodes, and what each of them still has to know."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.growing import TrainingSet, make_buffers, tree_bounds
from aucforest.fitting.level_kernels import Route, SummedCounts, draw_known, enlarge_top, make_top, split_node
from aucforest.fitting.level_tasks import Branch, Question, Result, histogram_sizes
from aucforest.fitting.parts import Growth
from aucforest.tree.binning import BinnedMatrix
from aucforest.tree.growing import Stops
from aucforest.tree.samples import NO_NAMES
from aucforest.tree.splitter import Rules
from aucforest.tree.tree import Nodes, Tree, depth_first, first_nodes

# They are numbered in 32 bits.
_MOST_NODES = 2**31 - 1


class Searcher:
    """What searching nodes takes beside them; for one thread.

    Nodes of at most local_rows samples are handed out as branches.
    """

    def __init__(self, growth: Growth, local_rows: int) -> None:
        self.growth, self.local_rows = growth, local_rows
        self.n_features = len(growth.n_bins)
        self.unit = 1.0 if growth.fixed is None else growth.fixed.unit
        no_codes = BinnedMatrix(np.empty((self.n_features, 0), dtype=np.uint8), growth.n_bins, growth.values)
        no_weights = None if growth.fixed is None else np.empty(0)
        no_rows = TrainingSet(no_codes, np.empty(0, dtype=np.uint16), no_weights, growth.n_classes, growth.kinds)
        self.rules, work = make_buffers(no_rows, growth.params, 1, growth.n_rows, growth.n_draws)
        self.by_set, self.buffers = no_rows.by_set, work.buffers

    def features(self, key: np.uint64, is_constant: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return the features that a node looks at, as far as it is known which of them are constant."""
        buffers = self.buffers.features
        return buffers.tried[: draw_known(key, is_constant, self.growth.params.max_features, buffers)].copy()


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
        self._top = make_top(key, searcher.growth.n_classes, by_set=bool(np.any(searcher.by_set)))
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
        """Copy what takes samples down."""
        top = self._top
        columns = (top.nodes.feature, top.code, top.nodes.missing_left, top.nodes.left_child, top.codes_left)
        return Route._make(column[: self._n_nodes].copy() for column in columns)

    def ask(self, room: int) -> Question | None:
        """Ask for the histograms that open nodes lack, node by node up to so many numbers; None if not one fits."""
        nodes: list[int] = []
        features: list[int] = []
        for node, open_node in self._open.items():
            tried = self._searcher.features(self._top.keys[node], open_node.is_constant).tolist()
            lacking = [feature for feature in tried if feature not in open_node.histograms]
            room -= int(histogram_sizes(self._searcher.growth, np.array(lacking)).sum())
            if room < 0:
                break
            nodes += [node] * len(lacking)
            features += lacking
        if not nodes:
            return None
        return Question(self.key, self._route(), np.array(nodes), np.array(features))

    def answer(self, question: Question, histograms: NDArray[Any]) -> None:
        """Take the histograms of a question, and split the nodes that lack nothing more."""
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
        least_weight, stops = tree_bounds(growth.params, self._weight)
        rules = self._searcher.rules._replace(min_weight_leaf=least_weight)
        for node in dict.fromkeys(asked):
            self._split(node, rules, stops)

    @property
    def _weight(self) -> int:
        """The weight of all samples, in units."""
        return int(self._top.nodes.totals[0].sum())

    def _split(self, node: int, rules: Rules, stops: Stops) -> None:
        """Split a node if nothing lacks; what its children wait for is histograms, or to be handed out."""
        searcher, open_node, histograms = self._searcher, self._open[node], self._open[node].histograms
        n_bins = searcher.growth.n_bins
        features = searcher.features(self._top.keys[node], open_node.is_constant)
        if any(feature not in histograms for feature in features.tolist()):
            return
        del self._open[node]
        if len(features) == 0:
            return
        if self._n_nodes + 2 > len(self._top.code):
            self._top = enlarge_top(self._top)
        sizes = histogram_sizes(searcher.growth, features)
        counts = np.concatenate([histograms[feature] for feature in features.tolist()])
        source = SummedCounts(counts, np.cumsum(sizes) - sizes, n_bins, self._top.nodes.totals[node])
        worth = split_node(source, features, NO_NAMES, rules, stops, self._top, node, self._n_nodes, searcher.buffers)
        if self._top.nodes.feature[node] < 0:
            return
        for child, is_worth_it in enumerate(worth, self._n_nodes):
            if is_worth_it and self._top.nodes.n_samples[child] <= searcher.local_rows:
                self._handed_out.append(child)
            elif is_worth_it:
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
            nodes, unit = self._results[0]
        else:
            branches = {node: result.nodes for node, result in sorted(self._results.items())}
            nodes, unit = splice(first_nodes(self._top.nodes, self._n_nodes), branches), self._searcher.unit
        return Tree.from_nodes(nodes, unit, self._searcher.by_set)


def splice(top: Nodes, branches: dict[int, Nodes]) -> Nodes:
    """Put branches in the place of leaves, and number all nodes depth first.

    Parameters
    ----------
    top : Nodes
    branches : dict
        Leaf of the top -> the branch whose root it is.

    Raises
    ------
    ValueError
        If there are too many nodes.
    """
    sizes = np.array([len(nodes.feature) for nodes in (top, *branches.values())])
    if sizes.sum() > _MOST_NODES:
        raise ValueError(f"a tree has more than {_MOST_NODES} nodes: lower max_samples or max_depth")
    nodes = Nodes._make(map(np.concatenate, zip(top, *branches.values())))
    offsets = np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_split = nodes.left_child >= 0
    nodes.left_child[is_split] += offsets[is_split]
    roots = np.cumsum(sizes)[:-1]
    for column in nodes:
        if len(column) > 0:
            column[list(branches)] = column[roots]
    return depth_first(nodes)

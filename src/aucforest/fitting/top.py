"""The top of a tree that is grown level by level: its nodes, and the histograms that they need."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.level_kernels import Route, SummedCounts, draw_known, enlarge_top, make_top, split_node
from aucforest.fitting.level_tasks import Branch, Question, histogram_sizes
from aucforest.fitting.parts import Growth
from aucforest.tree.criteria import entropy_table
from aucforest.tree.samples import NO_NAMES
from aucforest.tree.splitter import SplitBuffers, TreeParams
from aucforest.tree.tree import Nodes, Tree, depth_first, first_nodes

# Node numbers have 32 bits.
_MOST_NODES = 2**31 - 1


class Searcher:
    """Buffers of a thread for the search of splits. Nodes of at most local_rows samples become branches."""

    def __init__(self, growth: Growth, local_rows: int) -> None:
        self.growth, self.local_rows = growth, local_rows
        table = entropy_table([growth.params.criterion], np.inf if growth.weighted else growth.n_sampled)
        n_codes = int(growth.n_bins.max()) + 1
        self.buffers = SplitBuffers.of(len(growth.kinds), n_codes, growth.n_classes, table)

    def features(self, key: np.uint64, is_constant: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return the features to search at a node, as far as is known which features are constant."""
        buffers = self.buffers.features
        return buffers.tried[: draw_known(key, is_constant, self.growth.params.max_features, buffers)].copy()


class _OpenNode(NamedTuple):
    """A node that needs histograms, and what is known about its features."""

    is_constant: NDArray[np.bool_]
    histograms: dict[int, NDArray[np.int64]]


class TopTree:
    """A tree from its root to the nodes that become branches."""

    def __init__(self, place: int, key: int, searcher: Searcher) -> None:
        self.place, self.key, self._searcher = place, key, searcher
        self._n_nodes = 1
        self._top = make_top(key, searcher.growth.n_classes, by_set=bool(np.any(searcher.growth.by_set)))
        self._open = {0: _OpenNode(np.zeros(len(searcher.growth.kinds), dtype=np.bool_), {})}
        self._handed_out: list[int] = []
        self._grown: dict[int, tuple[Nodes, float]] = {}
        if searcher.growth.n_sampled <= searcher.local_rows:
            self._hand_out_root()

    @property
    def is_open(self) -> bool:
        """Whether a node needs histograms."""
        return len(self._open) > 0

    @property
    def is_complete(self) -> bool:
        """Whether all nodes have their histograms and branches."""
        return not self._open and len(self._grown) == len(self._handed_out)

    @property
    def _weight(self) -> int:
        """The weight of all samples in units."""
        return int(self._top.nodes.totals[0].sum())

    def _hand_out_root(self) -> None:
        """Make the whole tree one branch."""
        self._open.clear()
        self._handed_out.append(0)

    def _route(self) -> Route:
        """Return a copy of the nodes for routing samples."""
        top = self._top
        columns = (top.nodes.feature, top.code, top.nodes.missing_left, top.nodes.left_child, top.codes_left)
        return Route._make(column[: self._n_nodes].copy() for column in columns)

    def ask(self, room: int) -> Question | None:
        """Return a question for missing histograms up to a total size, or None if no histogram fits."""
        nodes: list[int] = []
        features: list[int] = []
        for node, (is_constant, histograms) in self._open.items():
            tried = self._searcher.features(self._top.keys[node], is_constant).tolist()
            lacking = [feature for feature in tried if feature not in histograms]
            room -= int(histogram_sizes(self._searcher.growth, np.array(lacking)).sum())
            if room < 0:
                break
            nodes += [node] * len(lacking)
            features += lacking
        return Question(self.key, self._route(), np.array(nodes), np.array(features)) if nodes else None

    def answer(self, question: Question, histograms: NDArray[Any]) -> None:
        """Store the histograms of a question, and split the nodes that have all of theirs."""
        growth, asked, root = self._searcher.growth, question.nodes.tolist(), self._top.nodes
        ends = np.cumsum(histogram_sizes(growth, question.features)).tolist()
        for node, feature, start, end in zip(asked, question.features.tolist(), [0, *ends], ends):
            histogram = histograms[start:end].astype(np.int64)
            counts = histogram.reshape(-1, growth.n_classes + 1)
            if self._n_nodes == 1 and not self._open[0].histograms:
                *root.totals[0], root.n_samples[0] = counts.sum(axis=0)
            if np.count_nonzero(counts[:, -1]) > 1:
                self._open[node].histograms[feature] = histogram
            else:
                self._open[node].is_constant[feature] = True
        if self._n_nodes == 1 and root.n_samples[0] <= self._searcher.local_rows:
            self._hand_out_root()
            return
        params = growth.tree_params(self._weight)
        for node in dict.fromkeys(asked):
            self._split(node, params)

    def _split(self, node: int, params: TreeParams) -> None:
        """Split a node that has all histograms; its children need histograms, become branches, or are leaves."""
        searcher, (is_constant, histograms) = self._searcher, self._open[node]
        features = searcher.features(self._top.keys[node], is_constant)
        if any(feature not in histograms for feature in features.tolist()):
            return
        del self._open[node]
        if len(features) == 0:
            return
        if self._n_nodes + 2 > len(self._top.code):
            self._top = enlarge_top(self._top)
        top, sizes = self._top, histogram_sizes(searcher.growth, features)
        counts = np.concatenate([histograms[feature] for feature in features.tolist()])
        source = SummedCounts(counts, np.cumsum(sizes) - sizes, searcher.growth.n_bins, top.nodes.totals[node])
        worth = split_node(source, features, NO_NAMES, params, top, node, self._n_nodes, searcher.buffers)
        if top.nodes.feature[node] < 0:
            return
        for child, is_worth_it in enumerate(worth, self._n_nodes):
            if is_worth_it and top.nodes.n_samples[child] <= searcher.local_rows:
                self._handed_out.append(child)
            elif is_worth_it:
                self._open[child] = _OpenNode(is_constant.copy(), {})
        self._n_nodes += 2

    def branches(self) -> list[Branch]:
        """Return the nodes that have become branches."""
        route, top = self._route(), self._top
        if self._handed_out == [0]:
            return [Branch(self.key, route, 0, self.key, 0, self._searcher.growth.n_sampled, None)]
        columns = (column[self._handed_out].tolist() for column in (top.keys, top.depth, top.nodes.n_samples))
        return [
            Branch(self.key, route, node, key, depth, n_rows, self._weight)
            for node, key, depth, n_rows in zip(self._handed_out, *columns)
        ]

    def take(self, branch: Branch, grown: tuple[Nodes, float]) -> None:
        """Store a grown branch."""
        self._grown[branch.node] = grown

    def tree(self) -> Tree:
        """Return the complete tree."""
        if self._handed_out == [0]:
            nodes, unit = self._grown[0]
        else:
            fixed, branches = self._searcher.growth.fixed, {node: grown for node, (grown, _) in self._grown.items()}
            nodes = splice(first_nodes(self._top.nodes, self._n_nodes), branches)
            unit = 1.0 if fixed is None else fixed.unit
        return Tree.from_nodes(nodes, unit, self._searcher.growth.by_set)


def splice(top: Nodes, branches: dict[int, Nodes]) -> Nodes:
    """Replace leaves of the top by branches, and number all nodes depth first."""
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

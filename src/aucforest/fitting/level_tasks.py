"""Tasks for growing level by level: counting, summing of histograms, extraction of samples, growing of branches."""

from dataclasses import replace
from functools import reduce
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.growing import grow_rows, make_buffers
from aucforest.fitting.level_kernels import PartColumns, Route, copy_samples, fill_histograms, route_samples
from aucforest.fitting.parts import Growth, Part
from aucforest.tree.samples import take_samples
from aucforest.tree.tree import Nodes

_NO_WEIGHTS = np.empty(0, dtype=np.int64)


class Question(NamedTuple):
    """A request for histograms of a tree: of features[i] in nodes[i]."""

    key: int
    route: Route
    nodes: NDArray[np.int64]
    features: NDArray[np.int64]


class Rows(NamedTuple):
    """The samples of a node in one part: their rows, and their counts in the bootstrap sample."""

    part: Part
    counts: NDArray[np.uint16]


class Branch(NamedTuple):
    """A node to grow from its samples."""

    tree_key: int
    route: Route  # the top of the tree
    node: int
    key: int  # of the node
    depth: int
    n_rows: int  # maximum number of samples
    tree_weight: int | None  # weight of all samples of the tree, in units; None at the root, where it is computed


def histogram_sizes(growth: Growth, features: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the sizes of the histograms of features."""
    sizes: NDArray[np.int64] = (growth.n_bins[features] + 1) * (growth.n_classes + 1)
    return sizes


def histogram_dtype(growth: Growth) -> type[np.unsignedinteger] | type[np.int64]:
    """Return a type that represents the sums over all parts."""
    return np.uint32 if growth.most_weight < 2**32 else np.int64


class _RoutedPart:
    """A part whose samples are sorted by the nodes of one tree after another."""

    def __init__(self, part: Part, growth: Growth) -> None:
        self.part, self.growth = part, growth
        self.columns = PartColumns.of(part.codes)
        self._samples, self._spill = np.empty((2, part.n_rows), dtype=np.uint64)
        self._labels = np.require(part.labels, requirements=["C", "W"])

    def route(
        self, key: int, route: Route, nodes: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the samples of a tree, and the starts and ends of its nodes; the next call overwrites them."""
        samples = self._samples[: take_samples(self._labels, self.part.counts(key), True, self._samples)]
        n_nodes = len(route.feature)
        starts, ends = np.zeros((2, n_nodes), dtype=np.int64)
        is_wanted = np.zeros(n_nodes, dtype=np.bool_)
        is_wanted[nodes] = True
        n_bins, kinds = self.growth.n_bins, self.growth.kinds
        route_samples(self.columns, n_bins, kinds, route, is_wanted, samples, self._spill, starts, ends)
        return samples, starts, ends

    def copy(self, samples: NDArray[np.uint64]) -> Rows:
        """Return the rows of some samples."""
        part, n = self.part, len(samples)
        rows, counts = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.uint16)
        codes = np.empty((len(part.codes), n), dtype=part.codes.dtype)
        copy_samples(self.columns, samples, rows, counts, codes)
        return Rows(Part(codes, part.labels[rows], None if part.weights is None else part.weights[rows]), counts)


def count_part(part: Part, growth: Growth, questions: list[Question]) -> NDArray[np.unsignedinteger]:
    """Return the histograms of all questions, one after the other, counted in one part."""
    ends = np.cumsum([histogram_sizes(growth, question.features).sum() for question in questions]).tolist()
    histograms = np.zeros(ends[-1], dtype=np.int64)
    routed = _RoutedPart(part, growth)
    weights = _NO_WEIGHTS if growth.fixed is None or part.weights is None else growth.fixed.apply(part.weights)
    n_cells = (int(growth.n_bins.max()) + 1) << (growth.n_classes - 1).bit_length()
    cells = np.zeros(n_cells if growth.n_sampled < 2**32 else 0, dtype=np.uint64)
    for (key, route, nodes, features), start, end in zip(questions, [0, *ends], ends):
        of_part = routed.columns, growth.n_bins, weights, *routed.route(key, route, nodes)
        fill_histograms(*of_part, nodes, features, growth.n_classes, cells, histograms[start:end])
    return histograms.astype(histogram_dtype(growth), copy=False)


def add_up(parts: list[NDArray[np.unsignedinteger]]) -> NDArray[np.unsignedinteger]:
    """Return the sum of histograms."""
    return reduce(np.add, parts)


def hand_out(part: Part, growth: Growth, bundles: list[list[Branch]]) -> list[list[Rows]]:
    """Return the samples of one part in each branch of some bundles; the branches of a tree are consecutive."""
    routed, rows = _RoutedPart(part, growth), []
    for tree_key, of_tree in groupby((branch for some in bundles for branch in some), lambda branch: branch.tree_key):
        branches = list(of_tree)
        nodes = [branch.node for branch in branches]
        samples, starts, ends = routed.route(tree_key, branches[0].route, np.array(nodes))
        rows += [routed.copy(samples[starts[node] : ends[node]]) for node in nodes]
    remaining = iter(rows)
    return [[next(remaining) for _ in bundle] for bundle in bundles]


def grow_branches(growth: Growth, branches: list[Branch], handed_out: list[list[Rows]]) -> list[tuple[Nodes, float]]:
    """Grow branches from the samples of all parts; return their nodes and units of weight."""
    by_branch = list(zip(*handed_out))
    joined = [Part.joined([of_part.part for of_part in rows]) for rows in by_branch]
    work, grown = make_buffers(growth, joined[0].codes, max(part.n_rows for part in joined)), []
    for branch, rows, part in zip(branches, by_branch, joined):
        counts = np.concatenate([of_part.counts for of_part in rows])
        params = growth.of_tree(branch.tree_key).params
        below = replace(growth, params=replace(params, max_depth=params.max_depth - branch.depth))
        nodes, unit = grow_rows(below, part, counts, branch.key, work, branch.tree_weight)
        grown.append((Nodes._make(column.copy() for column in nodes), unit))
    return grown

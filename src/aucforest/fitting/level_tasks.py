"""What tasks do for trees that are grown level by level: they count, add up, hand out samples, and grow branches."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.bootstrap import BLOCK_ROWS
from aucforest.fitting.growing import TrainingSet, grow_rows, make_buffers, tree_weights
from aucforest.fitting.level_kernels import PartColumns, Route, copy_samples, fill_histograms, route_samples
from aucforest.fitting.parts import CodedPart, Growth, Rows, join_parts
from aucforest.tree.samples import take_samples
from aucforest.tree.tree import Nodes

_NO_WEIGHTS = np.empty(0, dtype=np.int64)


class Question(NamedTuple):
    """Histograms of a tree that are asked for: of features[i] in nodes[i], both (n_histograms,), int64."""

    key: int
    route: Route
    nodes: NDArray[np.int64]
    features: NDArray[np.int64]


class Branch(NamedTuple):
    """A node to grow from its samples.

    tree_key, route, node : the tree, what there is of it, and the node; the root where there is nothing yet
    key, depth : of the node
    n_rows : at most so many samples
    tree_weight : of all samples of the tree, in units; None at the root, where the samples tell it
    """

    tree_key: int
    route: Route
    node: int
    key: int
    depth: int
    n_rows: int
    tree_weight: int | None


class Result(NamedTuple):
    """A branch, and what a unit of its class totals is worth."""

    nodes: Nodes
    unit: float


def histogram_sizes(growth: Growth, features: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return how many numbers the histograms of features are."""
    sizes: NDArray[np.int64] = (growth.n_bins[features] + 1) * (growth.n_classes + 1)
    return sizes


def histogram_dtype(growth: Growth) -> type[np.unsignedinteger] | type[np.int64]:
    """Return a type that holds the sums of all parts."""
    return np.uint32 if growth.most_weight < 2**32 else np.int64


class _RoutedPart:
    """A part whose samples are arranged by the nodes of one tree after another."""

    def __init__(self, part: CodedPart, growth: Growth) -> None:
        self.part, self.growth = part, growth
        self.columns = PartColumns.of(part.codes)
        self._samples, self._spill = np.empty((2, part.n_rows), dtype=np.uint64)
        self._labels = np.require(part.labels, requirements=["C", "W"])

    def route(
        self, key: int, route: Route, nodes: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the samples of a tree, and where those of the nodes start and end; until the next tree."""
        part = self.part
        if part.draws is None:
            counts = np.ones(part.n_rows, dtype=np.uint16)
        else:
            first, n_blocks = part.first_row // BLOCK_ROWS, -(-part.n_rows // BLOCK_ROWS)
            by_block = part.draws.by_block(key)[first : first + n_blocks]
            counts = part.draws.counts_of_blocks(key, by_block, first)
        samples = self._samples[: take_samples(self._labels, counts, True, self._samples)]
        n_nodes = len(route.feature)
        if n_nodes == 1:
            return samples, np.zeros(1, dtype=np.int64), np.full(1, len(samples))
        starts, ends = np.zeros((2, n_nodes), dtype=np.int64)
        is_wanted = np.zeros(n_nodes, dtype=np.bool_)
        is_wanted[nodes] = True
        n_bins, kinds = self.growth.n_bins, self.growth.kinds
        route_samples(self.columns, n_bins, kinds, route, is_wanted, samples, self._spill, starts, ends)
        return samples, starts, ends


def count_part(part: CodedPart, growth: Growth, questions: list[Question]) -> NDArray[np.unsignedinteger]:
    """Answer questions by the samples of one part: all histograms, one after the other."""
    sizes = [int(histogram_sizes(growth, question.features).sum()) for question in questions]
    histograms = np.zeros(sum(sizes), dtype=np.int64)
    if part.n_rows > 0:
        routed, end = _RoutedPart(part, growth), 0
        weights = _NO_WEIGHTS if growth.fixed is None or part.weights is None else growth.fixed.apply(part.weights)
        n_cells = (int(growth.n_bins.max()) + 1) << (growth.n_classes - 1).bit_length()
        cells = np.zeros(n_cells if growth.n_draws < 2**32 else 0, dtype=np.uint64)
        for (key, route, nodes, features), size in zip(questions, sizes):
            start, end = end, end + size
            fill_histograms(
                routed.columns,
                growth.n_bins,
                weights,
                *routed.route(key, route, nodes),
                nodes,
                features,
                growth.n_classes,
                cells,
                histograms[start:end],
            )
    return histograms.astype(histogram_dtype(growth), copy=False)


def add_up(parts: list[NDArray[np.unsignedinteger]]) -> NDArray[np.unsignedinteger]:
    """Return the sum of histograms."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def hand_out(part: CodedPart, growth: Growth, branches: list[Branch]) -> list[Rows]:
    """Return the samples of one part in every branch; branches of a tree follow each other and share its route."""
    if part.n_rows == 0:
        return [_no_rows(part) for _ in branches]
    routed = _RoutedPart(part, growth)
    handed_out: list[Rows] = []
    while len(handed_out) < len(branches):
        first = branches[len(handed_out)]
        same = [branch for branch in branches[len(handed_out) :] if branch.tree_key == first.tree_key]
        samples, starts, ends = routed.route(first.tree_key, first.route, np.array([branch.node for branch in same]))
        for branch in same:
            of_node = samples[starts[branch.node] : ends[branch.node]]
            rows, counts = np.empty(len(of_node), dtype=np.int64), np.empty(len(of_node), dtype=np.uint16)
            codes = np.empty((len(part.codes), len(of_node)), dtype=part.codes.dtype)
            copy_samples(routed.columns, of_node, rows, counts, codes)
            weights = None if part.weights is None else part.weights[rows]
            handed_out.append(Rows(codes, part.labels[rows], counts, weights))
    return handed_out


def hand_out_bundles(part: CodedPart, growth: Growth, bundles: list[list[Branch]]) -> list[list[Rows]]:
    """Return the samples of one part in every branch of several bundles."""
    rows = iter(hand_out(part, growth, [branch for bundle in bundles for branch in bundle]))
    return [[next(rows) for _ in bundle] for bundle in bundles]


def take_bundle(handed_out: list[list[Rows]], place: int) -> list[Rows]:
    """Return the samples of one bundle."""
    return handed_out[place]


def _no_rows(part: CodedPart) -> Rows:
    """Return what an empty part hands out."""
    weights = None if part.weights is None else part.weights[:0]
    return Rows(part.codes[:, :0], part.labels[:0], np.empty(0, dtype=np.uint16), weights)


def _join(rows: list[Rows], growth: Growth) -> tuple[TrainingSet, NDArray[np.uint16]]:
    """Return the rows of a branch in all parts, in order, and how often each is in the bootstrap sample."""
    return join_parts(growth, rows), np.concatenate([part.counts for part in rows])


def grow_branches(growth: Growth, branches: list[Branch], handed_out: list[list[Rows]]) -> list[Result]:
    """Grow branches from the samples that each part handed out."""
    joined = [_join([rows[i] for rows in handed_out], growth) for i in range(len(branches))]
    most_rows = max(len(counts) for _, counts in joined)
    buffers = make_buffers(joined[0][0], growth.params, most_rows, growth.n_rows, growth.n_draws)
    results = []
    for branch, (training, counts) in zip(branches, joined):
        params = replace(growth.params, max_depth=growth.params.max_depth - branch.depth)
        weights, unit = tree_weights(training, counts, params, growth.fixed)
        nodes = grow_rows(training, counts, weights, unit, params, branch.key, buffers, branch.tree_weight)
        results.append(Result(Nodes._make(column.copy() for column in nodes), unit))
    return results

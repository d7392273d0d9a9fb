"""What tasks do for trees that are grown level by level: they count, add up, hand out rows, and grow branches."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.distributed._level_kernels import PartColumns, Route, copy_rows, fill_histograms, route_rows
from aucforest.distributed._parts import CodedPart, Growth, Rows, join_parts
from aucforest.estimators._growing import TrainingSet, grow_rows, make_buffers, tree_weights
from aucforest.tree.assembly import Grown
from aucforest.tree.bootstrap import BLOCK_ROWS
from aucforest.tree.growing import Nodes, take_rows
from aucforest.tree.subsets import grown_sets

_NO_SETS = np.empty(0, dtype=np.bool_)
_NO_WEIGHTS = np.empty(0, dtype=np.int64)


class Question(NamedTuple):
    """Histograms of a tree that are asked for: of features[i] in nodes[i], both (n_histograms,), int64."""

    key: int
    route: Route
    nodes: NDArray[np.int64]
    features: NDArray[np.int64]


class Branch(NamedTuple):
    """A node to grow from its rows.

    tree_key, route, node : the tree, what there is of it, and the node; the root where there is nothing yet
    key, depth : of the node
    n_rows : at most so many rows
    tree_weight : of all rows of the tree, in units; None at the root, where it is told by the rows
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

    grown: Grown
    unit: float


def histogram_sizes(growth: Growth, features: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many numbers the histograms of features are."""
    sizes: NDArray[np.int64] = (growth.n_bins[features] + 1) * (growth.n_classes + 1)
    return sizes


def histogram_dtype(growth: Growth) -> type[np.unsignedinteger] | type[np.int64]:
    """Return a type that holds the sums of all parts."""
    is_small = growth.n_draws < 2**32 and (growth.fixed is None or growth.fixed.exponent is None)
    return np.uint32 if is_small else np.int64


class _RoutedPart:
    """A part whose rows are arranged by the nodes of one tree after another."""

    def __init__(self, part: CodedPart, growth: Growth) -> None:
        self.part, self.growth = part, growth
        self.columns = PartColumns.of(part.codes)
        self._elements, self._spill = np.empty((2, part.n_rows), dtype=np.uint64)
        self._labels = np.require(part.labels, requirements=["C", "W"])
        self._by_set = _NO_SETS if growth.by_set is None else growth.by_set

    def route(
        self, key: int, route: Route, nodes: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the elements of a tree, and where those of the nodes start and end; until the next tree."""
        part = self.part
        if part.draws is None:
            counts = np.ones(part.n_rows, dtype=np.uint16)
        else:
            first, n_blocks = part.first_row // BLOCK_ROWS, -(-part.n_rows // BLOCK_ROWS)
            by_block = part.draws.by_block(key)[first : first + n_blocks]
            counts = part.draws.counts_of_blocks(key, by_block, first)
        elements = self._elements[: take_rows(self._labels, counts, True, self._elements)]
        n_nodes = len(route.feature)
        if n_nodes == 1:
            return elements, np.zeros(1, dtype=np.int64), np.full(1, len(elements))
        starts, ends = np.zeros((2, n_nodes), dtype=np.int64)
        is_wanted = np.zeros(n_nodes, dtype=np.bool_)
        is_wanted[nodes] = True
        route_rows(
            self.columns, self.growth.n_bins, self._by_set, route, is_wanted, elements, self._spill, starts, ends
        )
        return elements, starts, ends


def count_part(part: CodedPart, growth: Growth, questions: list[Question]) -> NDArray[np.unsignedinteger]:
    """Answer questions by the rows of one part: all histograms, one after the other."""
    sizes = [int(histogram_sizes(growth, question.features).sum()) for question in questions]
    histograms = np.zeros(sum(sizes), dtype=np.int64)
    if part.n_rows > 0:
        routed = _RoutedPart(part, growth)
        fixed = None if growth.fixed is None or part.weights is None else growth.fixed.apply(part.weights)
        n_cells = (int(growth.n_bins.max()) + 1) << (growth.n_classes - 1).bit_length()
        cells = np.zeros(n_cells if growth.n_draws < 2**32 else 0, dtype=np.uint64)
        end = 0
        for question, size in zip(questions, sizes):
            elements, starts, ends = routed.route(question.key, question.route, question.nodes)
            weights = _NO_WEIGHTS
            if fixed is not None:
                weights = np.zeros(part.n_rows, dtype=np.int64)
                rows = (elements & np.uint64(0xFFFFFFFF)).astype(np.int64)
                weights[rows] = fixed[rows] * (elements >> np.uint64(48)).astype(np.int64)
            start, end = end, end + size
            fill_histograms(
                routed.columns,
                growth.n_bins,
                weights,
                elements,
                starts,
                ends,
                question.nodes,
                question.features,
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
    """Return the rows of one part in every branch; branches of a tree follow each other and share its route."""
    if part.n_rows == 0:
        return [_no_rows(part) for _ in branches]
    routed = _RoutedPart(part, growth)
    handed_out: list[Rows] = []
    while len(handed_out) < len(branches):
        first = branches[len(handed_out)]
        same = [branch for branch in branches[len(handed_out) :] if branch.tree_key == first.tree_key]
        elements, starts, ends = routed.route(first.tree_key, first.route, np.array([branch.node for branch in same]))
        for branch in same:
            chosen = elements[starts[branch.node] : ends[branch.node]]
            codes = np.empty((len(part.codes), len(chosen)), dtype=part.codes.dtype)
            copy_rows(routed.columns, chosen, codes)
            labels = ((chosen >> np.uint64(32)) & np.uint64(0xFFFF)).astype(np.uint16)
            counts = (chosen >> np.uint64(48)).astype(np.uint16)
            weights = None if part.weights is None else part.weights[(chosen & np.uint64(0xFFFFFFFF)).astype(np.int64)]
            handed_out.append(Rows(codes, labels, counts, weights))
    return handed_out


def hand_out_bundles(part: CodedPart, growth: Growth, bundles: list[list[Branch]]) -> list[list[Rows]]:
    """Return the rows of one part in every branch of several bundles."""
    rows = iter(hand_out(part, growth, [branch for bundle in bundles for branch in bundle]))
    return [[next(rows) for _ in bundle] for bundle in bundles]


def take_bundle(handed_out: list[list[Rows]], place: int) -> list[Rows]:
    """Return the rows of one bundle."""
    return handed_out[place]


def _no_rows(part: CodedPart) -> Rows:
    """Return what an empty part hands out."""
    weights = None if part.weights is None else part.weights[:0]
    return Rows(part.codes[:, :0], part.labels[:0], np.empty(0, dtype=np.uint16), weights)


def _join(rows: list[Rows], growth: Growth) -> tuple[TrainingSet, NDArray[np.uint16]]:
    """Return the rows of a branch in all parts, in their order, and how often each is drawn."""
    return join_parts(growth, rows), np.concatenate([part.counts for part in rows])


def grow_branches(growth: Growth, branches: list[Branch], handed_out: list[list[Rows]]) -> list[Result]:
    """Grow branches from the rows that each part handed out."""
    joined = [_join([rows[i] for rows in handed_out], growth) for i in range(len(branches))]
    most_rows = max(len(counts) for _, counts in joined)
    buffers = make_buffers(joined[0][0], growth.params, most_rows, growth.n_rows)
    results = []
    for branch, (training, counts) in zip(branches, joined):
        params = replace(growth.params, max_depth=growth.params.max_depth - branch.depth)
        weights, unit = tree_weights(training, counts, params, growth.fixed)
        n_nodes = grow_rows(training, counts, weights, unit, params, branch.key, buffers, branch.tree_weight)
        nodes = Nodes._make(column[:n_nodes].copy() for column in buffers.work.nodes)
        sets = grown_sets(buffers.subsets) or {"set_nodes": _NO_WEIGHTS, "sets": np.empty((0, 4), dtype=np.uint64)}
        results.append(Result(Grown(nodes, **sets), unit))
    return results

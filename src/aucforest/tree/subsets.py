"""Cuts of categorical features: sets of codes in place of thresholds.

In a node the codes that are present get ranks, and from there on the ranks are searched as the codes of any other
feature are. With two classes the ranks rise with the share of the second class: some cut of that order is the best of
all subsets, missing rows on either side, for every criterion that is (quasi-)convex in the class totals on the left,
as all of `criteria` are (Fisher 1958; Breiman et al. 1984, theorem 4.5). That holds for cuts without bounds on the
children; with bounds it is the best cut of the order. With more classes the ranks rise along the first principal
component of the class shares of the codes, weighted by their totals.

Codes that a node has not seen go where its missing values go.

References
----------
Coppersmith, Hong, Hosking 1999: Partitioning nominal attributes in decision trees.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, lowest_bit
from aucforest.tree.criteria import AUC, HELLINGER
from aucforest.tree.many_classes import SORT_ROWS
from aucforest.tree.structure import MISSING_CODE, SET_WORDS

# Codes of a feature, the missing one included.
_N_CODES = MISSING_CODE + 1
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
# The power iteration ends when the squared step of the unit vector is this small, or after so many rounds.
_STEP = 1e-6
_ROUNDS = 24
_GOLDEN = 0.6180339887498949


class Subsets(NamedTuple):
    """Which features are cut by sets, the sets of a tree that grows, and buffers of one search."""

    by_set: NDArray[np.bool_]  # (n_features,)
    n_sets: NDArray[np.int64]  # (1,)
    nodes: NDArray[np.int64]  # (capacity,) the nodes that have the sets
    sets: NDArray[np.uint64]  # (capacity, 4)
    kept_left: NDArray[np.uint64]  # (4,) the codes on the left of the best cut so far
    kept: NDArray[np.uint64]  # (4,) all codes in the node, of the feature of that cut
    codes: NDArray[np.int64]  # (256,) the codes that are present, and so are
    scores: NDArray[np.float64]  # what they are ranked by
    order: NDArray[np.int64]  # rank -> place in `codes`
    starts: NDArray[np.int64]  # (257,) where the events of each code start
    histogram: NDArray[np.int64]  # (512,) of ranks, for two classes
    cells: NDArray[np.uint32]  # (n_cells,) events, for more classes
    cell_weights: NDArray[np.int64]
    moved: NDArray[np.int64]  # (256,)
    mean: NDArray[np.float64]  # (n_classes,) and so are
    direction: NDArray[np.float64]
    turned: NDArray[np.float64]
    scale: NDArray[np.float64]


def make_subsets(by_set: NDArray[np.bool_], n_rows: int, n_classes: int) -> Subsets:
    """Allocate the buffers for trees of up to n_rows rows; untouched pages cost nothing."""
    n_cells = (_N_CODES << (n_classes - 1).bit_length()) + SORT_ROWS

    def integers(size: int) -> NDArray[np.int64]:
        return np.empty(size, dtype=np.int64)

    return Subsets(
        by_set=by_set,
        n_sets=np.zeros(1, dtype=np.int64),
        nodes=integers(n_rows),
        sets=np.empty((n_rows, SET_WORDS), dtype=np.uint64),
        kept_left=np.empty(SET_WORDS, dtype=np.uint64),
        kept=np.empty(SET_WORDS, dtype=np.uint64),
        codes=integers(_N_CODES),
        scores=np.empty(_N_CODES),
        order=integers(_N_CODES),
        starts=integers(_N_CODES + 1),
        histogram=np.zeros(2 * _N_CODES, dtype=np.int64),
        cells=np.empty(n_cells, dtype=np.uint32),
        cell_weights=integers(n_cells),
        moved=integers(_N_CODES),
        mean=np.empty(n_classes),
        direction=np.empty(n_classes),
        turned=np.empty(n_classes),
        scale=np.empty(n_classes),
    )


def grown_sets(subsets: Subsets | None) -> dict[str, Any]:
    """Return the sets of the tree just grown, by their names in `Tree`."""
    if subsets is None:
        return {}
    nodes = subsets.nodes[: subsets.n_sets[0]]
    order = np.argsort(nodes)
    return {"set_nodes": nodes[order], "sets": subsets.sets[order]}


@bare_device
def _rank(n_ranks, subsets):  # type: ignore[no-untyped-def]
    """Order the codes by their scores, equal ones by code: a rank is the number of codes before it.

    Compilers vectorise the counting, so that it beats sorting up to some hundred codes.
    """
    scores, n_codes = subsets.scores, np.uint64(n_ranks)
    for i in range(n_codes):
        score, rank = scores[i], 0
        for j in range(i):
            rank += scores[j] <= score
        for j in range(i + np.uint64(1), n_codes):
            rank += scores[j] < score
        subsets.order[rank] = i


@bare_device
def rank_pair(listed, missing_code, histogram, subsets):  # type: ignore[no-untyped-def]
    """Move the histogram of two classes to subsets.histogram by ranks; list the ranks, and return how many they are."""
    codes, ranked = subsets.codes, subsets.histogram
    n_ranks = np.uint64(0)
    for t in range(len(listed)):
        cell = np.uint64(2) * np.uint64(listed[t])
        weight = histogram[cell] + histogram[cell + np.uint64(1)]
        if weight > 0:
            codes[n_ranks] = listed[t]
            subsets.scores[n_ranks] = histogram[cell + np.uint64(1)] / weight
            n_ranks += np.uint64(1)
    _rank(n_ranks, subsets)
    for rank in range(n_ranks):
        cell = 2 * codes[subsets.order[rank]]
        for k in range(2):
            ranked[np.uint64(2) * rank + np.uint64(k)] = histogram[cell + k]
            histogram[cell + k] = 0
        listed[rank] = rank
    histogram[2 * missing_code] = 0
    histogram[2 * missing_code + 1] = 0
    return np.int64(n_ranks)


@bare_device
def _list_codes(n_events, shift, subsets, cells, cell_weights):  # type: ignore[no-untyped-def]
    """Add events of the same cell up, and list the codes and where their events start; return how many codes.

    Sums of floats over equal cells would depend on the order of rows.
    """
    n_codes, n_kept = 0, 0
    for t in range(n_events):
        if n_kept > 0 and cells[n_kept - 1] == cells[t]:
            cell_weights[n_kept - 1] += cell_weights[t]
            continue
        code = np.int64(np.uint64(cells[t]) >> shift)
        if n_codes == 0 or subsets.codes[n_codes - 1] != code:
            subsets.codes[n_codes] = code
            subsets.starts[n_codes] = n_kept
            n_codes += 1
        cells[n_kept] = cells[t]
        cell_weights[n_kept] = cell_weights[t]
        n_kept += 1
    subsets.starts[n_codes] = n_kept
    return n_codes


@bare_device
def _project(n_codes, n_present, class_bits, cells, cell_weights, subsets):  # type: ignore[no-untyped-def]
    """Score every code by the product of the direction with its class shares, less the mean ones."""
    centre = 0.0
    for k in range(n_present):
        centre += subsets.mean[k] * subsets.direction[k]
    for i in range(n_codes):
        score, weight = 0.0, 0.0
        for t in range(subsets.starts[i], subsets.starts[i + 1]):
            k = np.uint64(cells[t]) & class_bits
            share = cell_weights[t] * subsets.scale[k]
            score += share * subsets.direction[k]
            weight += share
        subsets.scores[i] = score / weight - centre


@bare_device
def _turn(n_codes, n_present, class_bits, cells, cell_weights, subsets):  # type: ignore[no-untyped-def]
    """Multiply the direction by the covariance of the class shares, and return the squared step of the unit vector.

    The scores are the direction times half of the matrix: neither half nor product is ever written down.
    """
    direction, turned = subsets.direction, subsets.turned
    for k in range(n_present):
        turned[k] = 0.0
    for i in range(n_codes):
        for t in range(subsets.starts[i], subsets.starts[i + 1]):
            k = np.uint64(cells[t]) & class_bits
            turned[k] += cell_weights[t] * subsets.scale[k] * subsets.scores[i]
    length = 0.0
    for k in range(n_present):
        length += turned[k] * turned[k]
    if length == 0.0:
        return 0.0
    length, step = math.sqrt(length), 0.0
    for k in range(n_present):
        turned[k] /= length
        step += (turned[k] - direction[k]) * (turned[k] - direction[k])
        direction[k] = turned[k]
    return step


@bare_device
def _score_codes(criterion, n_codes, n_present, class_bits, cells, cell_weights, scratch, subsets):  # type: ignore[no-untyped-def]
    """Score the codes along the first principal component of their class shares, by a power iteration.

    To the criteria that are means over pairs of classes all classes weigh alike, and so they do here. The start leans
    on no class of its own; the matrix is not negative, so the sign is that of the start for good.
    """
    weight = 0.0
    for k in range(n_present):
        known = np.float64(scratch.total[k] - scratch.missing[k])
        subsets.scale[k] = 1.0 / scratch.total[k] if criterion in (AUC, HELLINGER) else 1.0
        subsets.mean[k] = known * subsets.scale[k]
        weight += subsets.mean[k]
        subsets.direction[k] = ((k + 1) * _GOLDEN) % 1.0 - 0.5
    for k in range(n_present):
        subsets.mean[k] /= weight
    for _ in range(_ROUNDS):
        _project(n_codes, n_present, class_bits, cells, cell_weights, subsets)
        if _turn(n_codes, n_present, class_bits, cells, cell_weights, subsets) < _STEP:
            break
    _project(n_codes, n_present, class_bits, cells, cell_weights, subsets)


@bare_device
def rank_events(criterion, n_events, n_present, shift, scratch, subsets):  # type: ignore[no-untyped-def]
    """Give the events of more classes, in scratch, ranks for codes; return how many events and ranks there are."""
    cells, cell_weights = scratch.listed, scratch.cell_weights
    n_ranks = _list_codes(n_events, shift, subsets, cells, cell_weights)
    class_bits = (np.uint64(1) << shift) - np.uint64(1)
    _score_codes(criterion, n_ranks, n_present, class_bits, cells, cell_weights, scratch, subsets)
    _rank(n_ranks, subsets)
    n_moved = 0
    for rank in range(n_ranks):
        place = subsets.order[rank]
        for t in range(subsets.starts[place], subsets.starts[place + 1]):
            subsets.cells[n_moved] = (np.uint64(rank) << shift) | (np.uint64(cells[t]) & class_bits)
            subsets.cell_weights[n_moved] = cell_weights[t]
            n_moved += 1
    for t in range(n_moved):
        cells[t] = subsets.cells[t]
        cell_weights[t] = subsets.cell_weights[t]
    return n_moved, n_ranks


@bare_device
def rank_rows(n_ranks, counts, subsets):  # type: ignore[no-untyped-def]
    """Move counts of rows, or of their weight, from codes to ranks."""
    for rank in range(n_ranks):
        code = subsets.codes[subsets.order[rank]]
        subsets.moved[rank] = counts[code]
        counts[code] = 0
    for rank in range(n_ranks):
        counts[rank] = subsets.moved[rank]


@bare_device
def keep_set(rank, n_ranks, subsets):  # type: ignore[no-untyped-def]
    """Remember the codes up to a rank, and all that are present."""
    for word in range(SET_WORDS):
        subsets.kept[word] = np.uint64(0)
        subsets.kept_left[word] = np.uint64(0)
    for r in range(n_ranks):
        code = np.uint64(subsets.codes[subsets.order[r]])
        bit = np.uint64(1) << (code & np.uint64(63))
        subsets.kept[code >> np.uint64(6)] |= bit
        if r <= rank:
            subsets.kept_left[code >> np.uint64(6)] |= bit


@bare_device
def is_in_set(words, code):  # type: ignore[no-untyped-def]
    """Say whether the bit of a code is set."""
    code = np.uint64(code)
    return ((words[code >> np.uint64(6)] >> (code & np.uint64(63))) & np.uint64(1)) == np.uint64(1)


@bare_device
def record_set(values, names, feature, missing_left, node, subsets):  # type: ignore[no-untyped-def]
    """Write the set of a node from the codes kept: those of categories, not of bins or of a local copy."""
    words = subsets.sets[subsets.n_sets[0]]
    subsets.nodes[subsets.n_sets[0]] = node
    subsets.n_sets[0] += 1
    for word in range(SET_WORDS):
        words[word] = _ALL if missing_left else np.uint64(0)
    for word in range(SET_WORDS):
        bits = subsets.kept[word]
        while bits != np.uint64(0):
            place = lowest_bit(bits)
            code = np.int64((np.uint64(word) << np.uint64(6)) + place)
            if len(names) > 0:
                code = np.int64(names[feature, code])
            category = np.uint64(values.lower[values.first[feature] + code])
            bit = np.uint64(1) << (category & np.uint64(63))
            if is_in_set(subsets.kept_left, (np.uint64(word) << np.uint64(6)) + place):
                words[category >> np.uint64(6)] |= bit
            else:
                words[category >> np.uint64(6)] &= ~bit
            bits &= bits - np.uint64(1)

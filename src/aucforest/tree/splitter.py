"""The best cut of one node: features drawn by the node's key, one histogram and one walk a feature.

Ties: the feature drawn first wins, within it a cut with the missing rows on the right, and then the lowest cut.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device
from aucforest.tree import many_classes, two_classes
from aucforest.tree.candidates import draw_features
from aucforest.tree.criteria import OWN, cannot_be_beaten, cut_gain
from aucforest.tree.histogram import ROUNDING, element_weight, fill, row_of
from aucforest.tree.own_criterion import start_scoring
from aucforest.tree.subsets import keep_set, rank_events, rank_pair, rank_rows
from aucforest.tree.walks import walk_events, walk_pair

# From here on filling two histograms at once pays; smaller nodes stop at a perfect cut.
_PAIR_ROWS = 64


class Columns(NamedTuple):
    """What the search reads.

    codes : (n_features, n_rows), unsigned; a bigger code is a bigger value, code n_bins[f] is a missing value
    n_bins : (n_features,), int64
    weights : (n_rows,), int64, or empty when the elements hold the weights
    """

    codes: NDArray[np.unsignedinteger]
    n_bins: NDArray[np.int64]
    weights: NDArray[np.int64]


class Rules(NamedTuple):
    """What a cut must keep to."""

    criterion: int
    max_features: int
    min_samples_leaf: int
    min_weight_leaf: int


class Scratch(NamedTuple):
    """Buffers of one search; `histogram`, the row counts and `mask` are all zero between searches.

    A cell is a code and a class: there are up to max n_codes * n_classes of them, n_classes rounded up to a power
    of two.
    """

    histogram: NDArray[np.int64]  # (2, n_cells): two columns may be filled at once
    row_counts: NDArray[np.int64]  # (max n_codes,)
    row_weights: NDArray[np.int64]  # (max n_codes,)
    mask: NDArray[np.uint64]  # (ceil(n_cells / 64),)
    listed: NDArray[np.uint32]  # (n_cells + a few,) the codes, or the cells, to visit
    cell_weights: NDArray[np.int64]  # (n_cells + a few,)
    lefts: NDArray[np.float64]  # (max n_codes,) and so is
    scores: NDArray[np.float64]
    features: NDArray[np.int32]  # (n_features,) 0, 1, 2, ... between searches
    drawn: NDArray[np.int32]  # (n_features,)
    tried: NDArray[np.int32]  # (n_features,) the features to search
    slots: NDArray[np.int32]  # (n_classes,) class -> place among the classes present
    total: NDArray[np.int64]  # (n_classes,) of the classes present, and so are all below
    missing: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    best_left: NDArray[np.int64]
    fraction: NDArray[np.int64]
    per_weight: NDArray[np.float64]


class Cut(NamedTuple):
    """A cut: codes <= `code` go left; feature -1 says there is none. Of a feature that is cut by sets, ranks of codes.

    `next_code` is the lowest code to the right, -1 when only missing rows go there. Where the node has no missing row,
    missing ones will follow the heavier child.
    """

    feature: np.int64
    code: int
    next_code: int
    missing_left: bool


def make_scratch(n_features: int, n_codes: int, n_classes: int) -> Scratch:
    """Allocate the buffers for features of up to n_codes codes, the missing one included."""
    n_cells = n_codes << (n_classes - 1).bit_length()
    if n_cells > 2**32:
        raise ValueError(f"{n_codes} codes with {n_classes} classes are too many: set max_bins to 255 or less")

    def per_class() -> NDArray[np.int64]:
        return np.empty(n_classes, dtype=np.int64)

    return Scratch(
        histogram=np.zeros((2, n_cells), dtype=np.int64),
        row_counts=np.zeros(n_codes, dtype=np.int64),
        row_weights=np.zeros(n_codes, dtype=np.int64),
        mask=np.zeros((n_cells + 63) // 64, dtype=np.uint64),
        listed=np.empty(n_cells + many_classes.SORT_ROWS, dtype=np.uint32),
        cell_weights=np.empty(n_cells + many_classes.SORT_ROWS, dtype=np.int64),
        lefts=np.empty(n_codes, dtype=np.float64),
        scores=np.empty(n_codes, dtype=np.float64),
        features=np.arange(n_features, dtype=np.int32),
        drawn=np.empty(n_features, dtype=np.int32),
        tried=np.empty(n_features, dtype=np.int32),
        slots=np.empty(n_classes, dtype=np.int32),
        total=per_class(),
        missing=per_class(),
        left=per_class(),
        right=per_class(),
        best_left=per_class(),
        fraction=per_class(),
        per_weight=np.empty(n_classes, dtype=np.float64),
    )


@bare_device
def number_present(totals, scratch):  # type: ignore[no-untyped-def]
    """Number the classes present in the node, copy their totals and return how many there are."""
    n_present = 0
    for k in range(len(totals)):
        if totals[k] > 0:
            scratch.slots[k] = n_present
            scratch.total[n_present] = totals[k]
            n_present += 1
    return n_present


@bare_device
def _count_rows(column, elements, weights, scratch):  # type: ignore[no-untyped-def]
    """Count rows and weight by code."""
    for i in range(len(elements)):
        row = row_of(elements[i])
        scratch.row_counts[np.uint64(column[row])] += 1
        scratch.row_weights[np.uint64(column[row])] += element_weight(elements[i], row, weights)


@bare_device
def _forget_rows(column, elements, scratch):  # type: ignore[no-untyped-def]
    """Set those counts back to zero."""
    for i in range(len(elements)):
        code = np.uint64(column[row_of(elements[i])])
        scratch.row_counts[code] = 0
        scratch.row_weights[code] = 0


@bare_device
def _admissible(listed, shift, n_rows, missing_code, missing_left, n_present, rules, scratch):  # type: ignore[no-untyped-def]
    """Return the range of codes to cut after whose children keep to the bounds: both bounds are monotone."""
    node_weight = np.int64(0)
    for k in range(n_present):
        node_weight += scratch.total[k]
    rows, weight, first = 0, np.int64(0), missing_code
    if missing_left:
        rows, weight = scratch.row_counts[missing_code], scratch.row_weights[missing_code]
    for t in range(len(listed)):
        code = np.int64(np.uint64(listed[t]) >> shift)
        if t + 1 < len(listed) and np.int64(np.uint64(listed[t + 1]) >> shift) == code:
            continue
        rows += scratch.row_counts[code]
        weight += scratch.row_weights[code]
        if n_rows - rows < rules.min_samples_leaf or node_weight - weight < rules.min_weight_leaf:
            return first, code
        if first == missing_code and rows >= rules.min_samples_leaf and weight >= rules.min_weight_leaf:
            first = code
    return first, missing_code


@bare_device
def is_heavier_left(n_present, scratch):  # type: ignore[no-untyped-def]
    """Say whether at least half of the node's weight is left of the kept cut; what rounding may miss counts as half."""
    left, total = np.int64(0), np.int64(0)
    for k in range(n_present):
        left += scratch.best_left[k]
        total += scratch.total[k]
    return 2.0 * left >= (1.0 - ROUNDING) * total


@bare_device
def has_bounded_children(rules):  # type: ignore[no-untyped-def]
    """Say whether a cut must mind how large its children are."""
    return rules.min_samples_leaf > 1 or rules.min_weight_leaf > 0


@bare_device
def _gather_column(columns, elements, feature, n_present, shift, rules, scratch):  # type: ignore[no-untyped-def]
    """List the codes, or the events, of a feature, and count rows where children are bounded; return how many."""
    column, n_codes = columns.codes[feature], columns.n_bins[feature] + 1
    if has_bounded_children(rules):
        _count_rows(column, elements, columns.weights, scratch)
    if n_present == 2:
        return two_classes.list_visits(column, elements, n_codes, scratch)
    return many_classes.gather(column, elements, columns.weights, n_codes, shift, scratch)


@bare_device
def search_gathered(  # type: ignore[no-untyped-def]
    n_gathered,
    n_rows,
    feature,
    missing_code,
    histogram,
    n_present,
    shift,
    rules,
    score,
    cut,
    scratch,
    subsets,
    extras,
    node,
):
    """Return the better of the best cut so far and the best one of this feature; keep the left totals of the latter.

    What is listed, the histogram and the row counts are those of the node's rows, however they were counted.
    """
    pair = n_present == 2
    code_shift = np.uint64(0) if pair else shift
    if pair:
        n_listed = two_classes.take_missing(n_gathered, missing_code, histogram, scratch)
    else:
        n_listed = many_classes.take_missing(n_gathered, missing_code, shift, n_present, scratch)
    n_ranks = 0
    if subsets is not None:
        if subsets.by_set[feature] and pair:
            n_listed = n_ranks = rank_pair(scratch.listed[:n_listed], missing_code, histogram, subsets)
            histogram = subsets.histogram
        elif subsets.by_set[feature]:
            n_listed, n_ranks = rank_events(rules.criterion, n_listed, n_present, shift, scratch, subsets)
    listed = scratch.listed[:n_listed]
    any_missing = False
    for k in range(n_present):
        any_missing |= scratch.missing[k] > 0
    bounded_children = has_bounded_children(rules)
    if bounded_children and subsets is not None:
        rank_rows(n_ranks, scratch.row_counts, subsets)
        rank_rows(n_ranks, scratch.row_weights, subsets)
    for side in range(2 if any_missing else 1):
        for k in range(n_present):
            scratch.left[k] = scratch.missing[k] if side == 1 else 0
        first, stop = 0, missing_code
        if bounded_children:
            first, stop = _admissible(listed, code_shift, n_rows, missing_code, side == 1, n_present, rules, scratch)
        if pair and side == 1:
            # Below it there is no cut, but for missing rows alone on the left: the last cut with them on the right.
            first = max(first, two_classes.lowest_code(listed, histogram))
        if pair:
            if extras is None:
                new_score, code = two_classes.walk(rules.criterion, listed, first, stop, score, histogram, scratch)
            else:
                new_score, code = walk_pair(
                    extras, node, feature, rules.criterion, listed, histogram, first, stop, score, scratch
                )
        elif extras is None:
            new_score, code = many_classes.walk(
                rules.criterion, n_present, n_listed, shift, first, stop, score, scratch
            )
        else:
            new_score, code = walk_events(
                extras, rules.criterion, n_present, n_listed, shift, first, stop, score, scratch
            )
        if code >= 0:
            score = new_score
            for k in range(n_present):
                scratch.best_left[k] = scratch.missing[k] if side == 1 else 0
            if pair:
                next_code = two_classes.sum_left(listed, code, histogram, scratch.best_left)
            else:
                next_code = many_classes.sum_left(n_listed, code, shift, scratch)
            missing_left = side == 1 if any_missing else is_heavier_left(n_present, scratch)
            cut = Cut(np.int64(feature), code, next_code, missing_left)
            if subsets is not None:
                keep_set(code, n_ranks, subsets)
    if pair:
        two_classes.clear(scratch.listed[:n_gathered], histogram)
    for rank in range(n_ranks if bounded_children else 0):
        scratch.row_counts[rank] = 0
        scratch.row_weights[rank] = 0
    return score, cut


@bare_device
def is_perfect(criterion, n_present, scratch):  # type: ignore[no-untyped-def]
    """Say whether the kept cut has the greatest score there is; False for some that have."""
    n_left = 0
    for k in range(n_present):
        if scratch.best_left[k] != 0 and scratch.best_left[k] != scratch.total[k]:
            return False
        n_left += scratch.best_left[k] != 0
    return cannot_be_beaten(criterion, n_left, n_present)


@bare_device
def gain_of_kept_cut(criterion, n_present, scratch):  # type: ignore[no-untyped-def]
    """Return the gain of the cut whose left totals are kept."""
    left, right = scratch.best_left[:n_present], scratch.right[:n_present]
    for k in range(n_present):
        right[k] = scratch.total[k] - left[k]
    return cut_gain(criterion, left, right)


@bare_device
def find_best_cut(columns, elements, totals, key, rules, scratch, subsets, extras, node):  # type: ignore[no-untyped-def]
    """Find the best cut of a node.

    Parameters
    ----------
    columns : Columns
    elements : ndarray of shape (n_node_rows,), uint64
        The rows of the node, at least two.
    totals : ndarray of shape (n_classes,), int64
        Class totals of the node, at least two of them above zero.
    key : uint64
        The node's key; it alone decides which features are drawn.
    rules : Rules
    subsets : Subsets or None
        For None nothing of sets is compiled. On return `kept` and `kept_left` hold the codes of the cut, if its feature
        is cut by sets.
    scratch : Scratch
        On return `best_left` holds the totals on the left of the cut, for the classes present in order.
    extras : Extras or None
        Without them their code is not compiled.
    node : int
        The node's number, whose bounds `extras` has.

    Returns
    -------
    cut : Cut
        With feature -1 when no cut separates anything.
    gain : float
        What `criteria.cut_gain`, or a user's own criterion, says of it.
    """
    n_present = number_present(totals, scratch)
    shift = many_classes.class_shift(n_present)
    if n_present > 2:
        many_classes.prepare(rules.criterion, n_present, scratch)
    if extras is not None:
        start_scoring(extras.own, totals)
    score, cut = 0.0, Cut(np.int64(-1), 0, -1, False)
    n_tried = draw_features(columns, elements, key, rules.max_features, scratch)
    in_pairs = n_present == 2 and len(columns.weights) == 0 and len(elements) >= _PAIR_ROWS
    for t in range(n_tried):
        feature, place = scratch.tried[t], t & 1 if in_pairs else 0
        if in_pairs and place == 0 and t + 1 < n_tried:
            next_column = columns.codes[scratch.tried[t + 1]]
            two_classes.fill_pair(columns.codes[feature], next_column, elements, scratch)
        elif n_present == 2 and place == 0:
            histogram = scratch.histogram[0]
            fill(columns.codes[feature], elements, columns.weights, scratch.slots, np.uint64(1), histogram)
        n_gathered = _gather_column(columns, elements, feature, n_present, shift, rules, scratch)
        score, cut = search_gathered(
            n_gathered,
            len(elements),
            feature,
            columns.n_bins[feature],
            scratch.histogram[place],
            n_present,
            shift,
            rules,
            score,
            cut,
            scratch,
            subsets,
            extras,
            node,
        )
        if has_bounded_children(rules):
            _forget_rows(columns.codes[feature], elements, scratch)
        # Nothing can beat a best possible cut, and the first one found wins.
        if cut.feature == feature and not in_pairs and is_perfect(rules.criterion, n_present, scratch):
            break
    if cut.feature < 0:
        return cut, 0.0
    return cut, score if rules.criterion == OWN else gain_of_kept_cut(rules.criterion, n_present, scratch)

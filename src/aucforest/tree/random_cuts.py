"""Extremely randomised cuts: of every feature tried one cut is drawn, uniformly between the ends of its values.

A code lies at the middle of its bin, so in exact mode at its value, and goes left if that is not above the draw. An
infinite value would lie beyond every draw: it counts as if it lay as far beyond the finite values of the node as
these reach, or 1 where they are all the same. A draw whose children break a rule is no cut, and that feature has none.
A feature with one value beside missing ones has the cut between the two.

Of a categorical feature a set of the categories in the node is drawn, neither empty nor all, each alike.

References
----------
Geurts, Ernst, Wehenkel 2006: "Extremely randomized trees".
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, lowest_bit
from aucforest.tree.binning import midway
from aucforest.tree.bounds import keeps_bounds
from aucforest.tree.candidates import draw_features
from aucforest.tree.criteria import OWN, cut_gain
from aucforest.tree.histogram import ROUNDING, element_weight, label_of, row_of
from aucforest.tree.own_criterion import add_cut, score_cuts, start_scoring
from aucforest.tree.random import derive_key
from aucforest.tree.splitter import Cut, is_heavier_left, is_perfect, number_present
from aucforest.tree.structure import SET_WORDS
from aucforest.tree.subsets import is_in_set

_LARGEST = float(np.finfo(np.float64).max)
_UNIT = 2.0**-53
_DROPPED_BITS = np.uint64(11)


class RandomCuts(NamedTuple):
    """What drawing cuts needs.

    between_bins : whether rows may have values outside all bins, since bins come from a sample of the rows
    drawn : (1,), float64: where the kept cut was drawn
    present, left : (4,), uint64: the codes in the node of a categorical feature, and those drawn to the left
    n_rows : (3,), int64, on the left of a draw, on its right, and missing, and so are
    totals : (3, n_classes), int64, of the classes present
    """

    between_bins: bool
    drawn: NDArray[np.float64]
    present: NDArray[np.uint64]
    left: NDArray[np.uint64]
    n_rows: NDArray[np.int64]
    totals: NDArray[np.int64]


def make_random_cuts(between_bins: bool, n_classes: int) -> RandomCuts:
    """Allocate the buffers."""
    return RandomCuts(
        between_bins=between_bins,
        drawn=np.empty(1),
        present=np.empty(SET_WORDS, dtype=np.uint64),
        left=np.empty(SET_WORDS, dtype=np.uint64),
        n_rows=np.empty(3, dtype=np.int64),
        totals=np.empty((3, n_classes), dtype=np.int64),
    )


@bare_device
def _bin(values, names, feature, code):  # type: ignore[no-untyped-def]
    """Return where the values of a code lie in CutValues."""
    return values.first[feature] + (np.int64(names[feature, code]) if len(names) > 0 else code)


@bare_device
def _location(values, names, feature, code):  # type: ignore[no-untyped-def]
    """Return the middle of a bin; its finite end if it has just one."""
    at = _bin(values, names, feature, code)
    low, high = values.lower[at], values.upper[at]
    if low == -np.inf:
        return high
    return low if high == np.inf else 0.5 * low + 0.5 * high


@bare_device
def _extent(column, elements, first, stop):  # type: ignore[no-untyped-def]
    """Return the least and the greatest of the codes that lie in [first, stop); (stop, -1) if none does."""
    least, greatest = np.int64(stop), np.int64(-1)
    for i in range(len(elements)):
        code = np.int64(column[row_of(elements[i])])
        if first <= code < stop:
            least, greatest = min(least, code), max(greatest, code)
    return least, greatest


@bare_device
def _feature_key(key, values, feature):  # type: ignore[no-untyped-def]
    """Return the key of the cut of a feature: the first ones of a node are those of its children and its features."""
    return derive_key(key, len(values.first) + 1 + feature)


@bare_device
def _draw(values, names, feature, column, elements, low, high, key):  # type: ignore[no-untyped-def]
    """Draw a number between the values of two different codes, the least and the greatest of the node."""
    least, greatest = _location(values, names, feature, low), _location(values, names, feature, high)
    if least == -np.inf or greatest == np.inf:
        inner_low, inner_high = _extent(column, elements, low + (least == -np.inf), high + (greatest != np.inf))
        if inner_high < 0:
            return 0.0
        start = _location(values, names, feature, inner_low)
        end = _location(values, names, feature, inner_high)
        reach = min(end - start, _LARGEST) if inner_low < inner_high else 1.0
        least = max(start - reach, -_LARGEST) if least == -np.inf else start
        greatest = min(end + reach, _LARGEST) if greatest == np.inf else end
    share = np.float64(_feature_key(key, values, feature) >> _DROPPED_BITS) * _UNIT
    return (1.0 - share) * least + share * greatest


@bare_device
def _last_left(values, names, feature, low, high, drawn):  # type: ignore[no-untyped-def]
    """Return the greatest code below `high` that lies at or below the draw; at least `low`."""
    while low + 1 < high:
        middle = (low + high) >> 1
        if _location(values, names, feature, middle) <= drawn:
            low = middle
        else:
            high = middle
    return low


@bare_device
def _draw_set(values, names, feature, column, elements, missing_code, key, cuts):  # type: ignore[no-untyped-def]
    """Draw the codes that go left to cuts.left; a category goes the same way whatever its code."""
    present, left = cuts.present, cuts.left
    for word in range(SET_WORDS):
        present[word] = np.uint64(0)
    for i in range(len(elements)):
        code = np.uint64(column[row_of(elements[i])])
        if np.int64(code) != missing_code:
            present[code >> np.uint64(6)] |= np.uint64(1) << (code & np.uint64(63))
    feature_key, attempt = _feature_key(key, values, feature), 0
    n_left, n_present = 0, 0
    while n_left == 0 or n_left == n_present > 1:
        attempt_key = derive_key(feature_key, attempt)
        attempt += 1
        n_left, n_present = 0, 0
        for word in range(np.uint64(SET_WORDS)):
            bits = present[word]
            left[word] = np.uint64(0)
            while bits != np.uint64(0):
                place = lowest_bit(bits)
                at = _bin(values, names, feature, np.int64(np.uint64(64) * word + place))
                goes_left = derive_key(attempt_key, int(values.lower[at])) & np.uint64(1)
                left[word] |= goes_left << place
                n_left += int(goes_left)
                n_present += 1
                bits &= bits - np.uint64(1)


@bare_device
def _part(column, elements, weights, last_left, codes_left, missing_code, n_present, scratch, cuts):  # type: ignore[no-untyped-def]
    """Sum rows and classes on the left of a draw, on its right and of the missing rows, without branches.

    A set `codes_left` that is not None tells what goes left in place of the last code that does.
    """
    n_rows, totals, slots = cuts.n_rows, cuts.totals, scratch.slots
    n_rows[:] = 0
    totals[:, :n_present] = 0
    for i in range(len(elements)):
        row = row_of(elements[i])
        code = np.int64(column[row])
        if codes_left is None:
            goes_right = np.uint64(code > last_left)
        else:
            goes_right = np.uint64(not is_in_set(codes_left, code))
        side = goes_right + np.uint64(code == missing_code)
        n_rows[side] += 1
        totals[side, np.uint64(slots[label_of(elements[i])])] += element_weight(elements[i], row, weights)


@bare_device
def _neighbours(column, elements, last_left, missing_code):  # type: ignore[no-untyped-def]
    """Return the greatest code in the node up to the last one on the left, and the least beyond; -1 for none."""
    code, next_code = np.int64(-1), np.int64(missing_code)
    for i in range(len(elements)):
        own = np.int64(column[row_of(elements[i])])
        code = max(code, own if own <= last_left else np.int64(-1))
        next_code = min(next_code, own if own > last_left else np.int64(missing_code))
    return code, (np.int64(-1) if next_code == missing_code else next_code)


@bare_device
def _score(extras, node, feature, missing_alone, criterion, n_present, best, scratch):  # type: ignore[no-untyped-def]
    """Return the better of `best` and the score of the cut whose left totals lie in scratch.left, if it is allowed."""
    left, right = scratch.left[:n_present], scratch.right[:n_present]
    for k in range(n_present):
        right[k] = scratch.total[k] - left[k]
    if not keeps_bounds(extras.bounds, node, feature, left, right, missing_alone):
        return best
    if criterion == OWN:
        best, _ = score_cuts(extras.own, add_cut(extras.own, 0, left, scratch.slots, 0), best, np.int64(0))
        return best
    gain = cut_gain(criterion, left, right)
    return gain if gain > best + ROUNDING else best


@bare_device
def find_random_cut(columns, names, values, elements, totals, key, rules, scratch, subsets, extras, node, cuts):  # type: ignore[no-untyped-def]
    """Find the best of the cuts drawn in a node, as `splitter.find_best_cut` finds the best of all.

    Parameters
    ----------
    columns, elements, totals, key, rules, scratch, subsets, extras, node
        As there; the extras are not None.
    names, values
        As in `grower.grow_tree`: codes to values.
    cuts : RandomCuts
        On return `drawn` holds where the cut was drawn.

    Returns
    -------
    cut : Cut
    gain : float
    """
    n_present = number_present(totals, scratch)
    start_scoring(extras.own, totals)
    best, feature_kept, kept_last, kept_missing = 0.0, np.int64(-1), 0, False
    node_weight = scratch.total[:n_present].sum()
    for t in range(draw_features(columns, elements, key, rules.max_features, scratch)):
        feature = scratch.tried[t]
        column, missing_code = columns.codes[feature], columns.n_bins[feature]
        low, high = _extent(column, elements, 0, missing_code)
        drawn, last_left = np.inf, low
        if subsets is not None and subsets.by_set[feature]:
            _draw_set(values, names, feature, column, elements, missing_code, key, cuts)
            _part(column, elements, columns.weights, 0, cuts.left, missing_code, n_present, scratch, cuts)
        else:
            if low < high:
                drawn = _draw(values, names, feature, column, elements, low, high, key)
                last_left = _last_left(values, names, feature, low, high, drawn)
            _part(column, elements, columns.weights, last_left, None, missing_code, n_present, scratch, cuts)
        n_missing, left = cuts.n_rows[2], scratch.left
        # Where only missing rows are on the right of a cut, they are not tried on the left: nothing would be right.
        for side in range(2 if n_missing > 0 and low < high else 1):
            n_left = cuts.n_rows[0] + side * n_missing
            for k in range(n_present):
                left[k] = cuts.totals[0, k] + side * cuts.totals[2, k]
            left_weight = left[:n_present].sum()
            if min(n_left, len(elements) - n_left) < rules.min_samples_leaf:
                continue
            if min(left_weight, node_weight - left_weight) < rules.min_weight_leaf:
                continue
            score = _score(extras, node, feature, low == high, rules.criterion, n_present, best, scratch)
            if score > best:
                best, feature_kept, kept_last = score, np.int64(feature), last_left
                cuts.drawn[0] = drawn
                for k in range(n_present):
                    scratch.best_left[k] = left[k]
                kept_missing = side == 1 if n_missing > 0 else is_heavier_left(n_present, scratch)
                if subsets is not None and subsets.by_set[feature]:
                    for word in range(SET_WORDS):
                        subsets.kept[word], subsets.kept_left[word] = cuts.present[word], cuts.left[word]
        if feature_kept == feature and is_perfect(rules.criterion, n_present, scratch):
            break
    if feature_kept < 0:
        return Cut(feature_kept, 0, -1, False), 0.0
    code, next_code = _neighbours(columns.codes[feature_kept], elements, kept_last, columns.n_bins[feature_kept])
    return Cut(feature_kept, code, next_code, kept_missing), best


@bare_device
def drawn_threshold(values, names, cut, cuts):  # type: ignore[no-untyped-def]
    """Return where a cut was drawn, moved to where values part as codes do; +inf if only missing ones are right."""
    if cut.next_code < 0:
        return np.inf
    at, next_at = _bin(values, names, cut.feature, cut.code), _bin(values, names, cut.feature, cut.next_code)
    drawn = cuts.drawn[0]
    if cuts.between_bins:
        # A value outside all bins has the code that the edge above it says.
        lowest = midway(values.upper[at], values.lower[at + 1])
        return min(max(drawn, lowest), midway(values.upper[next_at - 1], values.lower[next_at]))
    low, high = values.upper[at], values.lower[next_at]
    return drawn if low <= drawn < high else midway(low, high)

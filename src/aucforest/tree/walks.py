"""Walks over the cuts of one feature for what plain trees do without: bounds of shares, and a user's own criterion."""

from typing import NamedTuple

import numpy as np

from aucforest._compile import bare_device
from aucforest.tree import many_classes, two_classes
from aucforest.tree.bounds import Bounds, keeps_bounds, make_bounds
from aucforest.tree.criteria import AUC, GINI, OWN, cut_gain
from aucforest.tree.own_criterion import (
    OwnCriterion,
    add_cut,
    first_two_present,
    is_full,
    make_own_criterion,
    score_cuts,
)


class Extras(NamedTuple):
    """What a search minds beside the rules."""

    bounds: Bounds
    own: OwnCriterion


def make_extras(signs: tuple[int, ...], address: int, n_classes: int, capacity: int) -> Extras:
    """Allocate the extras of trees of up to so many nodes; no signs are no bounds, address 0 is no own criterion."""
    return Extras(make_bounds(signs, capacity), make_own_criterion(address, n_classes))


@bare_device
def _score(criterion, left, right):  # type: ignore[no-untyped-def]
    """Return what the walks of `two_classes` rank a cut by."""
    if criterion not in (AUC, GINI):
        return cut_gain(criterion, left, right)
    left0, left1 = np.float64(left[0]), np.float64(left[1])
    n0, n1 = np.float64(left[0] + right[0]), np.float64(left[1] + right[1])
    d = n0 * left1 - n1 * left0
    left_weight = left0 + left1
    return abs(d) if criterion == AUC else d * d / (left_weight * (n0 + n1 - left_weight))


@bare_device
def _walk_in_bounds(extras, node, feature, criterion, listed, histogram, first, stop, best, scratch):  # type: ignore[no-untyped-def]
    """Rank the cuts that keep to the bounds of the node."""
    own, left, right, missing = extras.own, scratch.left[:2], scratch.right[:2], scratch.missing
    for k in range(2):
        right[k] = scratch.total[k] - left[k]
    bar, at, n_cuts = two_classes.least_better(criterion, best, scratch.total), np.int64(-1), 0
    for t in range(len(listed)):
        code = np.int64(listed[t])
        for k in range(2):
            weight = histogram[np.uint64(2) * np.uint64(code) + np.uint64(k)]
            left[k] += weight
            right[k] -= weight
        if left[0] + left[1] == 0 or right[0] + right[1] == 0:
            continue
        missing_alone = right[0] == missing[0] and right[1] == missing[1]
        if not first <= code < stop or not keeps_bounds(extras.bounds, node, feature, left, right, missing_alone):
            continue
        if criterion != OWN:
            score = _score(criterion, left, right)
            if score > bar:
                best, at, bar = score, code, two_classes.least_better(criterion, score, scratch.total)
            continue
        n_cuts = add_cut(own, n_cuts, left, scratch.slots, code)
        if is_full(own, n_cuts):
            best, at = score_cuts(own, n_cuts, best, at)
            n_cuts = 0
    return score_cuts(own, n_cuts, best, at) if n_cuts > 0 else (best, at)


@bare_device
def _walk_own(own, listed, histogram, first, stop, best, scratch):  # type: ignore[no-untyped-def]
    """Rank by a user's own criterion: every cut is written down, and the next one over it if it is none."""
    left0, left1, weight = scratch.left[0], scratch.left[1], scratch.total[0] + scratch.total[1]
    one, other = first_two_present(own)
    at, n_cuts = np.int64(-1), np.uint64(0)
    for t in range(np.uint64(len(listed))):
        code = np.int64(listed[t])
        cell = np.uint64(2) * np.uint64(code)
        moved0, moved1 = histogram[cell], histogram[cell + np.uint64(1)]
        left0 += moved0
        left1 += moved1
        own.lefts[n_cuts, one], own.lefts[n_cuts, other] = left0 * own.unit, left1 * own.unit
        own.codes[n_cuts] = code
        is_cut = (moved0 + moved1 > 0) & (first <= code) & (code < stop) & (left0 + left1 < weight)
        n_cuts += np.uint64(is_cut)
        if is_full(own, n_cuts):
            best, at = score_cuts(own, np.int64(n_cuts), best, at)
            n_cuts = np.uint64(0)
    return score_cuts(own, np.int64(n_cuts), best, at) if n_cuts > np.uint64(0) else (best, at)


@bare_device
def walk_pair(extras, node, feature, criterion, listed, histogram, first, stop, best, scratch):  # type: ignore[no-untyped-def]
    """Do what `two_classes.walk` does, over the cuts that keep to the bounds of the node."""
    if len(extras.bounds.signs) > 0:
        return _walk_in_bounds(extras, node, feature, criterion, listed, histogram, first, stop, best, scratch)
    if criterion == OWN:
        return _walk_own(extras.own, listed, histogram, first, stop, best, scratch)
    return two_classes.walk(criterion, listed, first, stop, best, histogram, scratch)


@bare_device
def walk_events(extras, criterion, n_present, n_events, shift, first, stop, best, scratch):  # type: ignore[no-untyped-def]
    """Do what `many_classes.walk` does, for a user's own criterion too."""
    if criterion != OWN:
        return many_classes.walk(criterion, n_present, n_events, shift, first, stop, best, scratch)
    own, left = extras.own, scratch.left
    weight_right = scratch.total[:n_present].sum() - left[:n_present].sum()
    at, n_cuts, t = np.int64(-1), 0, 0
    while t < n_events:
        code = np.uint64(scratch.listed[t]) >> shift
        while t < n_events and np.uint64(scratch.listed[t]) >> shift == code:
            left[np.uint64(scratch.listed[t]) - (code << shift)] += scratch.cell_weights[t]
            weight_right -= scratch.cell_weights[t]
            t += 1
        if first <= code < stop and weight_right > 0:
            n_cuts = add_cut(own, n_cuts, left, scratch.slots, np.int64(code))
            if is_full(own, n_cuts):
                best, at = score_cuts(own, n_cuts, best, at)
                n_cuts = 0
    return score_cuts(own, n_cuts, best, at) if n_cuts > 0 else (best, at)

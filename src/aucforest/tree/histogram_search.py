"""The cut of a node from its histograms: the search of `splitter`, on the same integers, without the rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree import many_classes
from aucforest.tree.candidates import draw_feature, put_back
from aucforest.tree.grower import Nodes, may_split, record_cut, start_node
from aucforest.tree.random import derive_key
from aucforest.tree.splitter import (
    Cut,
    gain_of_kept_cut,
    has_bounded_children,
    is_perfect,
    number_present,
    search_gathered,
)
from aucforest.tree.structure import SET_WORDS
from aucforest.tree.subsets import is_in_set


class Top(NamedTuple):
    """The top of a tree that grows, with room for all its nodes; `codes_left` and `sets` where features are cut so."""

    nodes: Nodes
    code: NDArray[np.int64]
    codes_left: NDArray[np.uint64]  # (capacity, 4): the codes of bins, and
    sets: NDArray[np.uint64]  # (capacity, 4) those of categories
    keys: NDArray[np.uint64]
    depth: NDArray[np.int64]


def make_top(capacity: int, n_classes: int, *, by_set: bool) -> Top:
    """Allocate the top of a tree, whose root is a leaf of nothing; by_set says whether features are cut by sets."""
    words = (capacity if by_set else 0, SET_WORDS)
    return Top(
        nodes=Nodes(
            feature=np.full(capacity, -1, dtype=np.int32),
            threshold=np.zeros(capacity),
            missing_left=np.zeros(capacity, dtype=np.bool_),
            left_child=np.full(capacity, -1, dtype=np.int32),
            gain=np.zeros(capacity),
            n_samples=np.zeros(capacity, dtype=np.int64),
            totals=np.zeros((capacity, n_classes), dtype=np.int64),
        ),
        code=np.zeros(capacity, dtype=np.int64),
        codes_left=np.zeros(words, dtype=np.uint64),
        sets=np.zeros(words, dtype=np.uint64),
        keys=np.zeros(capacity, dtype=np.uint64),
        depth=np.zeros(capacity, dtype=np.int64),
    )


@bare_kernel
def draw_candidates(key, is_constant, max_features, scratch):  # type: ignore[no-untyped-def]
    """List in scratch.tried the first max_features features that are not known to be constant; return how many."""
    n_tried, n_drawn = 0, 0
    while n_drawn < len(scratch.features) and n_tried < max_features:
        feature = draw_feature(key, n_drawn, scratch)
        n_drawn += 1
        scratch.tried[n_tried] = feature
        n_tried += not is_constant[feature]
    put_back(n_drawn, scratch)
    return n_tried


@bare_device
def _gather_pair(counts, totals, n_codes, scratch):  # type: ignore[no-untyped-def]
    """Move the counts of a feature to the scratch and return how many codes are listed."""
    histogram, n_classes, n_listed, at = scratch.histogram[0], len(totals), 0, 0
    for code in range(n_codes):
        if counts[at + n_classes] > 0:
            for k in range(n_classes):
                if totals[k] > 0:
                    histogram[2 * code + scratch.slots[k]] = counts[at + k]
            scratch.listed[n_listed] = code
            n_listed += 1
        at += n_classes + 1
    return n_listed


@bare_device
def _gather_events(counts, totals, n_codes, shift, scratch):  # type: ignore[no-untyped-def]
    """Make the events of a feature and return how many there are."""
    n_classes, n_events, at = len(totals), 0, 0
    for code in range(n_codes):
        for k in range(n_classes):
            if counts[at + k] > 0:
                scratch.listed[n_events] = (np.uint64(code) << shift) | np.uint64(scratch.slots[k])
                scratch.cell_weights[n_events] = counts[at + k]
                n_events += 1
        at += n_classes + 1
    return n_events


@bare_device
def _count_rows(counts, n_codes, n_classes, scratch):  # type: ignore[no-untyped-def]
    """Set rows and weight of every code."""
    at = 0
    for code in range(n_codes):
        weight = np.int64(0)
        for k in range(n_classes):
            weight += counts[at + k]
        scratch.row_counts[code], scratch.row_weights[code] = counts[at + n_classes], weight
        at += n_classes + 1


@bare_device
def _forget_rows(n_codes, scratch):  # type: ignore[no-untyped-def]
    """Set them back to zero."""
    for code in range(n_codes):
        scratch.row_counts[code], scratch.row_weights[code] = 0, 0


@bare_device
def _find_best_cut(counts, features, n_bins, totals, n_rows, rules, scratch, subsets):  # type: ignore[no-untyped-def]
    """Do what `splitter.find_best_cut` does."""
    n_present = number_present(totals, scratch)
    shift = many_classes.class_shift(n_present)
    if n_present > 2:
        many_classes.prepare(rules.criterion, n_present, scratch)
    score, cut = 0.0, Cut(np.int64(-1), 0, -1, False)
    bounded, at = has_bounded_children(rules), 0
    for t in range(len(features)):
        feature = features[t]
        n_codes = n_bins[feature] + 1
        end = at + n_codes * (len(totals) + 1)
        if n_present == 2:
            n_gathered = _gather_pair(counts[at:end], totals, n_codes, scratch)
        else:
            n_gathered = _gather_events(counts[at:end], totals, n_codes, shift, scratch)
        if bounded:
            _count_rows(counts[at:end], n_codes, len(totals), scratch)
        score, cut = search_gathered(
            n_gathered,
            n_rows,
            feature,
            n_codes - 1,
            scratch.histogram[0],
            n_present,
            shift,
            rules,
            score,
            cut,
            scratch,
            subsets,
            None,
            0,
        )
        if bounded:
            _forget_rows(n_codes, scratch)
        if cut.feature == feature and is_perfect(rules.criterion, n_present, scratch):
            break
        at = end
    return cut, 0.0 if cut.feature < 0 else gain_of_kept_cut(rules.criterion, n_present, scratch)


@bare_device
def _rows_left(counts, features, n_bins, n_classes, cut, subsets):  # type: ignore[no-untyped-def]
    """Return how many rows go left."""
    at, t = 0, 0
    while features[t] != cut.feature:
        at += (n_bins[features[t]] + 1) * (n_classes + 1)
        t += 1
    missing_code, n_left = n_bins[cut.feature], np.int64(0)
    for code in range(missing_code + 1):
        at += n_classes
        if code == missing_code:
            goes_left = cut.missing_left
        elif subsets is not None and subsets.by_set[cut.feature]:
            goes_left = is_in_set(subsets.kept_left, code)
        else:
            goes_left = code <= cut.code
        n_left += counts[at] if goes_left else 0
        at += 1
    return n_left


@bare_kernel
def split_by_histograms(  # type: ignore[no-untyped-def]
    counts, features, n_bins, names, values, rules, stops, top, node, left_child, scratch, subsets
):
    """Cut a node.

    Parameters
    ----------
    counts : ndarray of int64
        The histograms of its candidates, one after the other, as `level.fill_histograms` makes them.
    features : ndarray of shape (n_candidates,), int32
        The candidates in the order of their draws, none of them constant.
    n_bins : ndarray of shape (n_features,), int64
    names, values, rules, stops, subsets
        As in `grower.grow_tree`; names are empty.
    top : Top
        Knows the rows, the class totals, the key and the depth of the node, and on return its cut and its children.
    node : int
    left_child : int
        The number that the left child will have; the right one has the next.
    scratch : Scratch

    Returns
    -------
    int
        -1 for a leaf; else bit 0 and bit 1 say whether the left and the right child are worth a search.
    """
    nodes = top.nodes
    totals, n_rows = nodes.totals[node], nodes.n_samples[node]
    if len(features) == 0 or not may_split(totals, n_rows, top.depth[node], stops):
        return -1
    cut, gain = _find_best_cut(counts, features, n_bins, totals, n_rows, rules, scratch, subsets)
    if gain <= 0.0 or gain < stops.min_gain:
        return -1
    if subsets is not None:
        subsets.n_sets[0] = 0
    record_cut(names, values, nodes, node, left_child, cut, gain, scratch, subsets, None)
    top.code[node] = cut.code
    if subsets is not None and subsets.by_set[cut.feature]:
        for word in range(SET_WORDS):
            top.codes_left[node, word] = subsets.kept_left[word]
            top.sets[node, word] = subsets.sets[0, word]
    n_left = _rows_left(counts, features, n_bins, len(totals), cut, subsets)
    worth = np.int64(0)
    for side in range(2):
        child = left_child + side
        start_node(nodes, child, n_rows - n_left if side == 1 else n_left)
        top.keys[child] = derive_key(top.keys[node], side)
        top.depth[child] = top.depth[node] + 1
        worth |= np.int64(may_split(nodes.totals[child], nodes.n_samples[child], top.depth[child], stops)) << side
    return worth

"""A user's own criterion: a compiled function of the class totals left of a cut and of the node.

The function is compiled into a loop over many cuts, and growing trees calls that by its address. So trees are
compiled once, whatever the function, and a call costs nothing beside the cuts that it scores.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, call_scorer

# How many cuts are scored at once.
_CUTS = 64


class OwnCriterion(NamedTuple):
    """The function and the cuts that wait for their scores.

    address : of the loop, as `_compile.compile_scorer` makes it
    unit : the weight that one unit of the integer class totals stands for
    totals : (n_classes,), float64, of the node
    lefts : (n_cuts, n_classes), float64
    codes : (n_cuts,), int64
    scores : (n_cuts,), float64
    failed : (1,), bool: whether the function raised an exception
    """

    address: int
    unit: float
    totals: NDArray[np.float64]
    lefts: NDArray[np.float64]
    codes: NDArray[np.int64]
    scores: NDArray[np.float64]
    failed: NDArray[np.bool_]


def make_own_criterion(address: int, n_classes: int) -> OwnCriterion:
    """Allocate the buffers."""
    return OwnCriterion(
        address=address,
        unit=1.0,
        totals=np.empty(n_classes),
        lefts=np.empty((_CUTS, n_classes)),
        codes=np.empty(_CUTS, dtype=np.int64),
        scores=np.empty(_CUTS),
        failed=np.zeros(1, dtype=np.bool_),
    )


@bare_device
def start_scoring(own, totals):  # type: ignore[no-untyped-def]
    """Ready the search of a node with these class totals."""
    for k in range(len(totals)):
        own.totals[k] = totals[k] * own.unit
        if totals[k] == 0:
            own.lefts[:, k] = 0.0


@bare_device
def add_cut(own, n_cuts, left, slots, code):  # type: ignore[no-untyped-def]
    """Put a cut, given by its left totals over the classes present, beside those that wait; return how many do."""
    for k in range(len(own.totals)):
        if own.totals[k] > 0.0:
            own.lefts[n_cuts, k] = left[slots[k]] * own.unit
    own.codes[n_cuts] = code
    return n_cuts + 1


@bare_device
def first_two_present(own):  # type: ignore[no-untyped-def]
    """Return the numbers of the first two classes that the node holds."""
    one = np.uint64(0)
    while own.totals[one] == 0.0:
        one += np.uint64(1)
    other = one + np.uint64(1)
    while own.totals[other] == 0.0:
        other += np.uint64(1)
    return one, other


@bare_device
def is_full(own, n_cuts):  # type: ignore[no-untyped-def]
    """Say whether there is no room for another cut."""
    return n_cuts == len(own.codes)


@bare_device
def score_cuts(own, n_cuts, best, at):  # type: ignore[no-untyped-def]
    """Return (score, code) of the first of the best cuts that wait and of (best, at)."""
    if call_scorer(own.address, own.lefts, own.totals, own.scores, n_cuts) != 0:
        own.failed[0] = True
        return best, at
    for i in range(n_cuts):
        # What is not a finite number beats nothing.
        if best < own.scores[i] < np.inf:
            best, at = own.scores[i], own.codes[i]
    return best, at

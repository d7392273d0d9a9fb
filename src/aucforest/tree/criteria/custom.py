"""User-defined criteria: a compiled function of class totals, which scores many splits in one call."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, call_scorer

_BATCH = 64  # number of splits that are scored in one call


class CustomCriterion(NamedTuple):
    """A user-defined criterion: a compiled function of the class totals left of a split and of the node.

    The function is compiled into a loop over many splits. The loop is called by its address, so that tree kernels are
    not compiled again for another function.
    """

    address: int  # of the loop, from `_compile.compile_scorer`; 0 without a criterion
    unit: float  # the weight of one unit of the integer class totals
    totals: NDArray[np.float64]  # (n_classes,) class totals of the node
    lefts: NDArray[np.float64]  # (_BATCH, n_classes) left class totals of the pending splits, not yet scored
    indices: NDArray[np.int64]  # (_BATCH,) the index of the last bin on the left of each pending split
    scores: NDArray[np.float64]  # (_BATCH,)
    failed: NDArray[np.bool_]  # (1,) whether the function raised an exception

    @classmethod
    def of(cls, n_classes: int) -> "CustomCriterion":
        """Allocate the buffers, without a criterion."""
        indices, scores, failed = np.empty(_BATCH, dtype=np.int64), np.empty(_BATCH), np.zeros(1, dtype=np.bool_)
        return cls(0, 1.0, np.empty(n_classes), np.empty((_BATCH, n_classes)), indices, scores, failed)


@bare_device
def prepare_node(custom, classes):
    """Prepare the buffers for scoring the splits of a node, given its classes."""
    custom.totals[:] = 0.0
    for k in range(classes.n):
        custom.totals[classes.labels[k]] = classes.totals[k] * custom.unit
    for k in range(len(custom.totals)):
        if custom.totals[k] == 0.0:
            custom.lefts[:, k] = 0.0  # `add_split` only writes the classes of the node


@bare_device
def add_split(custom, n_pending, left, classes, index):
    """Add a split, given by its left class totals, to the pending splits; return the number of pending splits."""
    for k in range(classes.n):
        custom.lefts[n_pending, classes.labels[k]] = left[k] * custom.unit
    custom.indices[n_pending] = index
    return n_pending + 1


@bare_device
def score_pending(custom, n_pending, gain, index):
    """Return the gain and index of the best of the given split and the pending splits; in a tie, the first one wins."""
    if call_scorer(custom.address, custom.lefts, custom.totals, custom.scores, n_pending) != 0:
        custom.failed[0] = True
        return gain, index
    for i in range(n_pending):
        # A score of NaN or infinity never wins.
        if gain < custom.scores[i] < np.inf:
            gain, index = custom.scores[i], custom.indices[i]
    return gain, index

"""AUC of Dask collections."""

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.distributed._collections import align_columns, import_dask
from aucforest.distributed._executor import merge_in_groups
from aucforest.metrics import AUCSketch


def auc_sketch(y_true: Any, y_score: Any, sample_weight: Any = None, *, bits: int = 18) -> AUCSketch:
    """Compute an AUCSketch of Dask collections of labels and scores.

    Parameters
    ----------
    y_true : dask Array or Series of shape (n_samples,)
        Binary labels: bool, 0 and 1, or -1 and 1.
    y_score : dask Array or Series of shape (n_samples,)
        Finite scores, partitioned like y_true.
    sample_weight : dask Array or Series of shape (n_samples,), optional
        Non-negative sample weights.
    bits : int from 4 to 24, default=18
        The sketch has 2**bits bins; see `aucforest.metrics.AUCSketch`.

    Returns
    -------
    AUCSketch
        The sketch, with `score`, `error_bound` and `roc_curve`. It does not depend on the partitions.

    Raises
    ------
    TypeError
        If the input is not one-dimensional Dask collections.
    ValueError
        If partitions do not match, if there are no samples, or in the cases of `AUCSketch.update`.

    Examples
    --------
    >>> import dask.array as da
    >>> from aucforest.distributed import auc_sketch
    >>> labels = da.from_array([0, 1, 1, 0], chunks=2)
    >>> sketch = auc_sketch(labels, da.from_array([0.1, 0.35, 0.8, 0.4], chunks=2))
    >>> sketch.score(), sketch.error_bound()
    (0.75, 0.0)
    """
    empty, columns = AUCSketch(bits), align_columns(y_true=y_true, y_score=y_score, sample_weight=sample_weight)
    delayed = import_dask().delayed
    sketches = [delayed(_count)(empty, *parts) for parts in zip(*columns)]
    sketch, labels = merge_in_groups(delayed(_merge), sketches).compute()
    if len(labels) == 0:
        raise ValueError("y_true has no samples")
    # Labels may be valid in each partition, but not together, such as 0 and -1. In this case, `update` raises
    # ValueError.
    AUCSketch(4).update(labels, np.zeros(len(labels)))
    return sketch


def _count(empty: AUCSketch, *columns: Any) -> tuple[AUCSketch, NDArray[Any]]:
    """Return the sketch and the labels of one partition."""
    rows = [np.asarray(values) for values in columns]
    sketch = AUCSketch(empty.bits)
    if any(map(len, rows)):
        sketch.update(*rows)
    return sketch, np.unique(rows[0])


def _merge(pairs: list[tuple[AUCSketch, NDArray[Any]]]) -> tuple[AUCSketch, NDArray[Any]]:
    sketch = reduce(AUCSketch.merge, (sketch for sketch, _ in pairs))
    return sketch, np.unique(np.concatenate([labels for _, labels in pairs if len(labels) > 0] or [pairs[0][1]]))

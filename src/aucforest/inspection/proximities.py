"""Proximities: how often two samples are in the same leaf."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from aucforest._compile import bare_device, bare_kernel
from aucforest.estimators.out_of_bag import training_rows
from aucforest.fitting.growing import run_in_threads
from aucforest.fitting.out_of_bag import warn_of_seen
from aucforest.inspection.models import check_count, check_forest

_MOST_ENTRIES = 10**8  # entries of a dense matrix: 800 MB
_TASK_ROWS = 256  # rows of one task
_NOT_COUNTED = -1


def proximity(
    forest: Any,
    X: Any,
    Y: Any = None,
    *,
    oob_labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Compute the proximities of all pairs of samples.

    By default the proximity is the proportion of trees in which two samples are in the same leaf ([1]_). The matrix is
    symmetric with 1 on the diagonal, and within a class it is too high for training samples. With `oob_labels` the
    proximities are those of [2]_: the proportion of sample j in the leaf of sample i, averaged over the trees that
    sample i is out of bag for. Then rows sum to 1 with 0 on the diagonal, the matrix is not symmetric, and the average
    of the training labels with these weights is the out-of-bag probability of the forest without shrinkage.

    Parameters
    ----------
    forest : AUCForestClassifier
        A fitted forest.
    X : array-like of shape (n_rows, n_features)
        The input samples.
    Y : array-like of shape (n_other_rows, n_features), default=None
        Other samples. None compares the samples of X with each other.
    oob_labels : array-like of shape (n_rows,), default=None
        The training labels, if X are the training samples, for out-of-bag proximities.
    sample_weight : array-like of shape (n_rows,), default=None
        The sample weights of `fit`, with `oob_labels`.
    n_jobs : int or None, default=None
        The number of threads.

    Returns
    -------
    ndarray of shape (n_rows, n_rows) or (n_rows, n_other_rows), float64
        The proximities. Out of bag, samples that every tree was grown on are NaN, with a UserWarning.

    Raises
    ------
    ValueError
        If there are more than 10**8 pairs, or with `oob_labels` if X and y are not the training data.
    TypeError
        If the model is not supported.

    See Also
    --------
    proximity_neighbors : Only the nearest samples, for data of any size.

    References
    ----------
    .. [1] L. Breiman, "Random forests", Machine Learning 45 (2001), 5-32, and its manual (2003).
    .. [2] J. S. Rhodes, A. Cutler, K. R. Moon, "Geometry- and accuracy-preserving random forest proximities", IEEE
       Transactions on Pattern Analysis and Machine Intelligence 45 (2023), 10947-10959, definition 1.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import proximity
    >>> X, rings = load_abalone(return_X_y=True)
    >>> X, y = X[:300], rings[:300] >= 12
    >>> forest = AUCForestClassifier(50, random_state=0).fit(X, y)
    >>> near = proximity(forest, X)
    >>> near.shape, bool(np.all(near.diagonal() == 1))
    ((300, 300), True)
    >>> bool(np.allclose(proximity(forest, X, oob_labels=y).sum(axis=1), 1))
    True
    """
    prepared = _prepare(forest, X, Y, oob_labels, sample_weight)
    n_rows, n_others = len(prepared.places), prepared.n_others
    if n_rows * n_others > _MOST_ENTRIES:
        raise ValueError(
            f"a dense matrix of {n_rows} x {n_others} proximities exceeds the limit of {_MOST_ENTRIES:.0e}: use"
            " proximity_neighbors for the nearest samples of each"
        )
    matrix = np.zeros((n_rows, n_others))

    def add(start: int) -> None:
        block = slice(start, start + _TASK_ROWS)
        _add_proximities(prepared.places[block], *prepared.leaves, matrix[block])

    list(run_in_threads(n_jobs)(add, range(0, n_rows, _TASK_ROWS)))
    with np.errstate(invalid="ignore"):
        matrix /= prepared.n_counted[:, None]
    return matrix


def proximity_neighbors(
    forest: Any,
    X: Any,
    Y: Any = None,
    *,
    n_neighbors: int = 10,
    oob_labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> csr_matrix:
    """Find the samples with the highest proximity.

    Parameters
    ----------
    forest, X, Y, oob_labels, sample_weight, n_jobs
        As in `proximity`. It takes about 20 bytes of memory for each tree and sample.
    n_neighbors : int, default=10
        The maximum number of neighbors of a sample. There are fewer if no other sample has a positive proximity. A
        sample is not its own neighbor. The first samples are taken among ties.

    Returns
    -------
    csr_matrix of shape (n_rows, n_rows) or (n_rows, n_other_rows), float64
        The proximities of the neighbors, in decreasing order within a row. Out of bag, samples that every tree was
        grown on have no neighbors, with a UserWarning.

    Raises
    ------
    ValueError
        If `n_neighbors` is below 1, or with `oob_labels` if X and y are not the training data.
    TypeError
        If the model is not supported.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import proximity_neighbors
    >>> X, rings = load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(50, random_state=0, n_jobs=2).fit(X, rings >= 12)
    >>> graph = proximity_neighbors(forest, X, n_neighbors=3, n_jobs=2)
    >>> graph.shape, graph.nnz
    ((4177, 4177), 12531)
    """
    check_count("n_neighbors", n_neighbors, 1)
    prepared = _prepare(forest, X, Y, oob_labels, sample_weight)
    n_rows, n_others = len(prepared.places), prepared.n_others
    n_most = min(n_neighbors, n_others)
    near, found = np.zeros((n_rows, n_most)), np.empty((n_rows, n_most), dtype=np.int32)
    n_found = np.empty(n_rows, dtype=np.int64)

    def find(start: int) -> None:
        block = slice(start, start + _TASK_ROWS)
        sums, touched = np.zeros(n_others), np.empty(n_others, dtype=np.int32)
        first_own = start if Y is None else -_TASK_ROWS
        scratch = (sums, touched, near[block], found[block], n_found[block])
        _find_neighbors(prepared.places[block], *prepared.leaves, first_own, *scratch)

    list(run_in_threads(n_jobs)(find, range(0, n_rows, _TASK_ROWS)))
    is_found = np.arange(n_most) < n_found[:, None]
    near /= np.maximum(prepared.n_counted, 1)[:, None]
    starts = np.concatenate(([0], np.cumsum(n_found)))
    return csr_matrix((near[is_found], found[is_found], starts), shape=(n_rows, n_others))


class _Prepared(NamedTuple):
    """The leaves of the rows, and the rows of the leaves."""

    places: NDArray[np.int64]  # (n_rows, n_trees), leaves by number in all trees; _NOT_COUNTED if in bag
    n_counted: NDArray[np.int64]  # (n_rows,), the number of trees that count
    leaves: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]  # start, rows, weights
    n_others: int  # number of rows that are compared with


def _prepare(forest: Any, X: Any, Y: Any, oob_labels: Any, sample_weight: Any) -> _Prepared:
    """Find the leaves of the rows and list the rows of each leaf."""
    check_forest(forest)
    first_node = np.concatenate(([0], np.cumsum([tree.n_nodes for tree in forest.trees_])))
    if oob_labels is None:
        if sample_weight is not None:
            raise ValueError("sample_weight is only used with oob_labels")
        places = forest.apply(X) + first_node[:-1]
        others = places if Y is None else forest.apply(Y) + first_node[:-1]
        n_counted = np.full(len(places), len(forest.trees_))
        return _Prepared(places, n_counted, _list_rows(others, None, int(first_node[-1])), len(others))
    if Y is not None:
        raise ValueError("pass either Y or oob_labels: out-of-bag proximities compare the training samples")
    training = training_rows(forest, X, oob_labels, sample_weight)
    places = forest.apply(X) + first_node[:-1]
    counts = training.counts(range(len(forest.trees_)))
    weighted = counts if training.sample_weight is None else counts * training.sample_weight[:, None]
    leaves = _list_rows(places, weighted, int(first_node[-1]))
    places[counts > 0] = _NOT_COUNTED
    n_counted = np.count_nonzero(counts == 0, axis=1)
    n_seen = int(np.count_nonzero(n_counted == 0))
    warn_of_seen(n_seen, len(places), counts.shape[1], "out-of-bag proximity", stacklevel=4)
    return _Prepared(places, n_counted, leaves, len(places))


def _list_rows(places: NDArray[np.int64], counts: NDArray[Any] | None, n_leaves: int) -> Any:
    """List the rows of each leaf; with `counts`, (n_rows, n_trees), those of positive count and their proportions."""
    if counts is None:
        starts = np.arange(0, places.size + 1, places.shape[1])
        weights, columns = np.ones(places.size), places.ravel()
    else:
        is_sampled = counts > 0
        starts = np.concatenate(([0], np.cumsum(np.count_nonzero(is_sampled, axis=1))))
        weights, columns = counts[is_sampled].astype(np.float64), places[is_sampled]
        weights /= np.bincount(columns, weights, minlength=n_leaves)[columns]
    by_leaf = csr_matrix((weights, columns, starts), shape=(len(places), n_leaves)).tocsc()
    return by_leaf.indptr.astype(np.int64), by_leaf.indices.astype(np.int32), by_leaf.data


@bare_kernel
def _add_proximities(places, first, rows, weights, matrix):
    """Add to matrix[i, j] the weights of row j in the leaves of row i."""
    for i in range(len(places)):
        sums = matrix[i]
        for tree in range(np.uint64(places.shape[1])):
            place = places[i, tree]
            if place == _NOT_COUNTED:
                continue
            for entry in range(np.uint64(first[place]), np.uint64(first[place + 1])):
                sums[np.uint64(rows[entry])] += weights[entry]


@bare_kernel
def _find_neighbors(places, first, rows, weights, first_own, sums, touched, near, found, n_found):
    """Find the rows of greatest sums of weights for every row i, itself (first_own + i) left out; sums must be 0."""
    for i in range(len(places)):
        n_touched = np.uint64(0)
        for tree in range(np.uint64(places.shape[1])):
            place = places[i, tree]
            if place == _NOT_COUNTED:
                continue
            for entry in range(np.uint64(first[place]), np.uint64(first[place + 1])):
                row = np.uint64(rows[entry])
                if sums[row] == 0.0:
                    touched[n_touched] = rows[entry]
                    n_touched += np.uint64(1)
                sums[row] += weights[entry]
        n_found[i] = _take_greatest(sums, touched[:n_touched], first_own + i, near[i], found[i])


@bare_device
def _take_greatest(sums, touched, own, near, found):
    """Sort the greatest sums into near and found, the smaller row first among equals; clear all, return how many."""
    n_found = 0
    for row in touched:
        value = sums[np.uint64(row)]
        sums[np.uint64(row)] = 0.0
        if row == own:
            continue
        place = n_found
        while place > 0 and (value > near[place - 1] or (value == near[place - 1] and row < found[place - 1])):
            place -= 1
        if place == len(near):
            continue
        n_found = min(n_found + 1, len(near))
        for k in range(n_found - 1, place, -1):
            near[k], found[k] = near[k - 1], found[k - 1]
        near[place], found[place] = value, row
    return n_found

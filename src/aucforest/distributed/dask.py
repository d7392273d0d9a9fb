"""A random forest that is grown on a Dask cluster."""

import copy
import os
from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from numbers import Integral
from typing import Any, ClassVar

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from aucforest.distributed._collections import align, as_rows, is_collection, refuse_collections
from aucforest.distributed._fit import explain, fit_on_cluster
from aucforest.distributed._prediction import predict_lazily
from aucforest.distributed._sketches import accuracy
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.fitting.plan import STRATEGIES, Plan


def _join_signatures(forest: Callable[..., Any], own: Callable[..., Any]) -> Signature:
    """Return the signature of a function that hands its last argument, of keywords, on to another."""
    *added, _ = signature(own).parameters.values()
    return Signature(list({param.name: param for param in (*signature(forest).parameters.values(), *added)}.values()))


def _lazily(method: Callable[..., Any]) -> Any:
    """Return a method of `to_local` that takes Dask collections as well, of which it computes nothing yet."""

    @wraps(method)
    def call(self: "DaskAUCForestClassifier", X: Any) -> Any:
        check_is_fitted(self, "trees_")
        local = self.to_local()
        if is_collection(X):
            return predict_lazily(local.set_params(n_jobs=1), X, method.__name__)
        return method(local, X)

    doc = (method.__doc__ or "").replace("X : array-like", "X : dask DataFrame or Array, or array-like,")
    call.__doc__ = doc.replace("    ndarray of", "    ndarray, or of a collection a lazy one with its chunks, of")
    return call


def _in_memory(method: Callable[..., Any]) -> Any:
    """Return a method of the forest that refuses Dask collections, which it would compute in silence."""

    @wraps(method)
    def call(self: "DaskAUCForestClassifier", *args: Any, **options: Any) -> Any:
        refuse_collections(*args, *options.values())
        return method(self, *args, **options)

    return call


class DaskAUCForestClassifier(AUCForestClassifier):
    """A random forest for Dask collections: bit for bit the one that one process grows from the same rows.

    Parameters
    ----------
    n_estimators, criterion, splitter, max_features, max_depth, min_samples_split, min_samples_leaf, \
    min_weight_fraction_leaf, min_gain, max_leaf_nodes, monotonic_cst, bootstrap, sampling, max_samples, \
    prior_correction, class_weight, shrinkage, threshold, oob_score, max_bins, categorical_features, warm_start, \
    n_jobs, random_state, verbose
        As in `AUCForestClassifier`. ``n_jobs`` is for what this process does.
    strategy : {"auto", "replicate", "gather", "level"}, default="auto"
        Where trees grow: "replicate" copies the codes of all rows, a byte a value, to every worker; "gather" brings
        the rows of one tree to a worker; "level" adds up histograms of the parts, until a node has few enough rows to
        be gathered. "auto" takes the first that fits into 40 % of a worker's memory. See `explain_plan`.
    local_rows : int, default=None
        Most rows of a node that "level" hands to one worker; None is what fits into its memory.
    max_hist_bytes : int or str, default="256MB"
        Most bytes of the histograms that "level" asks for at once.
    checkpoint_dir : path-like, default=None
        A folder for finished trees: `fit` with the same data and parameters grows the missing ones alone.
    client : distributed.Client, default=None
        None is the one in use. Never stored: a copy or a pickle has None.

    Attributes
    ----------
    trees_, classes_, n_features_in_, feature_names_in_, categories_, class_prior_, shrinkage_, threshold_, \
    threshold_std_, oob_score_, oob_decision_function_
        As in `AUCForestClassifier`.

    See Also
    --------
    aucforest.AUCForestClassifier : The same for data in memory.

    Notes
    -----
    What `predict`, `predict_proba`, `predict_log_proba`, `apply` and `encode` say of a collection is lazy: an Array
    with the chunks of X, or for labels of a DataFrame a Series with its divisions. `score` computes partition by
    partition. All else takes data in memory: call it on `to_local`, with ``X.compute()``.

    Labels and weights of all rows, 2 and 8 bytes a row, and all trees come to this process. The partitions are held by
    the workers (which write to disk what exceeds their memory) until they are coded; they are computed once more where
    `oob_score`, `threshold` or `prior_correction` needs out-of-bag probabilities. A function as `oob_score` is refused.

    What a worker held that dies is computed anew. Of one that only stops answering Dask waits for the time
    ``distributed.scheduler.worker-ttl``, 5 minutes unless set: 60 s suit a forest, much less takes workers for dead
    that load compiled code. One that is dead is tried for ``distributed.comm.timeouts.connect``, 30 s unless set. A
    cluster without workers, or whose workers have no memory left, is given up after 5 minutes. Results come from the
    workers themselves where they can be reached, unless the client was made with ``direct_to_workers=False``.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.distributed import DaskAUCForestClassifier
    >>> X, rings = load_abalone(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(1000, -1)), da.from_array(rings >= 18, chunks=1000)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
    ...     forest = DaskAUCForestClassifier(50, random_state=0).fit(X, y)
    ...     proba = forest.predict_proba(X)
    ...     print(proba.chunks)
    ...     found = proba.compute()
    ((1000, 1000, 1000, 1000, 177), (2,))
    >>> local = AUCForestClassifier(50, random_state=0).fit(X.compute(), y.compute())
    >>> bool((found == local.predict_proba(X.compute())).all())
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **AUCForestClassifier._parameter_constraints,
        "strategy": [StrOptions(set(STRATEGIES))],
        "local_rows": [Interval(Integral, 1, None, closed="left"), None],
        "max_hist_bytes": [Interval(Integral, 1, None, closed="left"), str],
        "checkpoint_dir": [str, os.PathLike, None],
        "client": [object],
    }

    def __init__(
        self,
        n_estimators: int = 300,
        *,
        strategy: str = "auto",
        local_rows: int | None = None,
        max_hist_bytes: int | str = "256MB",
        checkpoint_dir: str | os.PathLike[str] | None = None,
        client: Any = None,
        **forest_params: Any,
    ) -> None:
        super().__init__(n_estimators, **forest_params)
        self.strategy = strategy
        self.local_rows = local_rows
        self.max_hist_bytes = max_hist_bytes
        self.checkpoint_dir = checkpoint_dir
        self.client = client

    # What scikit-learn takes parameters and their defaults from.
    __init__.__signature__ = _join_signatures(AUCForestClassifier.__init__, __init__)  # type: ignore[attr-defined]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the client, which belongs to this process."""
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> "DaskAUCForestClassifier":
        """Return an unfitted twin with the same client."""
        twin: DaskAUCForestClassifier = AUCForestClassifier.__sklearn_clone__(copy.copy(self))
        twin.client = self.client
        return twin

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "DaskAUCForestClassifier":
        """Grow the forest on the cluster.

        Parameters
        ----------
        X : dask DataFrame, or Array of shape (n_samples, n_features)
            Values as in `AUCForestClassifier.fit`. Lengths of partitions need not be known, and some may be empty.
        y : dask Series or Array of shape (n_samples,)
            Class labels, cut into partitions at the same rows as X.
        sample_weight : dask Series or Array of shape (n_samples,), default=None
            Non-negative, cut likewise.

        Returns
        -------
        self : DaskAUCForestClassifier

        Raises
        ------
        TypeError
            For anything but Dask collections.
        ValueError
            For data that do not fit together, a single class, or a parameter out of range.
        ClusterError
            When workers have too little memory, other versions of the packages, or when the cluster is lost.

            A fit that fails or is interrupted cancels its tasks, and leaves the forest as it was.
        """
        fit_on_cluster(self, align(X, y, sample_weight))
        return self

    def explain_plan(self, X: Any, y: Any = None) -> Plan:
        """Say how `fit` would spread the work over the cluster.

        Parameters
        ----------
        X : dask DataFrame, or Array of shape (n_samples, n_features)
            Where lengths of partitions are not known they are computed.
        y : dask Series or Array of shape (n_samples,), default=None
            Tells the number of classes; two without it.

        Returns
        -------
        Plan
            Rows, bytes of their codes, memory of workers, the strategy and why, parts, and bytes of messages; ``print``
            shows it as a table.
        """
        return explain(self, as_rows(X), y)

    predict_proba = _lazily(AUCForestClassifier.predict_proba)
    predict_log_proba = _lazily(AUCForestClassifier.predict_log_proba)
    predict = _lazily(AUCForestClassifier.predict)
    apply = _lazily(AUCForestClassifier.apply)
    encode = _lazily(AUCForestClassifier.encode)
    decision_path = _in_memory(AUCForestClassifier.decision_path)
    set_threshold = _in_memory(AUCForestClassifier.set_threshold)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict`; see `aucforest.distributed.auc_sketch` for what forests are good at.

        Parameters
        ----------
        X : dask DataFrame or Array, or array-like, of shape (n_samples, n_features)
        y : dask Series or Array, or array-like, of shape (n_samples,)
        sample_weight : dask Series or Array, or array-like, of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        if is_collection(X):
            return accuracy(self.predict(X), y, sample_weight)
        refuse_collections(y, sample_weight)
        return float(self.to_local().score(X, y, sample_weight))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted forest into one file, for `aucforest.load`, which returns an `AUCForestClassifier`.

        Parameters
        ----------
        path : path-like
            See `AUCForestClassifier.save`.
        """
        self.to_local().save(path)

    def to_local(self) -> AUCForestClassifier:
        """Return the same fitted forest as one that is saved, exported and looked into like any other.

        Returns
        -------
        AUCForestClassifier
            Shares its trees with this one.
        """
        local = AUCForestClassifier()
        own = {"_sklearn_version", *self.get_params(deep=False)} - local.get_params().keys()
        local.__dict__.update({name: value for name, value in self.__getstate__().items() if name not in own})
        if "_packed" in self.__dict__:
            local._packed = self._packed
        return local

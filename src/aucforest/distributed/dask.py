"""A random forest classifier for Dask."""

import copy
import os
from collections.abc import Callable
from contextlib import closing
from functools import wraps
from inspect import Signature, signature
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from aucforest._sklearn import StrOptions, fit_context
from aucforest.columns.categorical import check_table
from aucforest.distributed._collections import align, as_rows, is_collection, refuse_collections
from aucforest.distributed._executor import DaskExecutor, default_client
from aucforest.distributed._on_cluster import RowsOnCluster, explain_plan
from aucforest.distributed._plan import STRATEGIES, ClusterPlan
from aucforest.distributed._prediction import predict_lazily
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.fitting.job import check_seed


def _join_signatures(forest: Callable[..., Any], init: Callable[..., Any]) -> Signature:
    """Return the parameters of `forest`, followed by those that only `init` has, without `**forest_params`."""
    inherited = signature(forest).parameters
    *params, _ = signature(init).parameters.values()
    return Signature([*inherited.values(), *(param for param in params if param.name not in inherited)])


def _lazily(method: Callable[..., Any]) -> Any:
    """Return a method of `AUCForestClassifier` whose result is lazy if X is a Dask collection."""

    @wraps(method)
    def call(self: "DaskAUCForestClassifier", X: Any) -> Any:
        check_is_fitted(self, "trees_")
        local = self.to_local()
        if is_collection(X):
            return predict_lazily(local.set_params(n_jobs=1), X, method.__name__)
        return method(local, X)

    doc = (method.__doc__ or "").replace("X : array-like", "X : dask DataFrame or Array, or array-like,")
    call.__doc__ = doc.replace("    ndarray of", "    ndarray, or lazy dask collection for a dask collection, of")
    return call


def _in_memory(method: Callable[..., Any]) -> Any:
    """Return a method that raises TypeError for Dask collections, which numpy would load into memory."""

    @wraps(method)
    def call(self: "DaskAUCForestClassifier", *args: Any, **options: Any) -> Any:
        refuse_collections(*args, *options.values())
        return method(self, *args, **options)

    return call


class DaskAUCForestClassifier(AUCForestClassifier):
    """A random forest classifier for Dask collections.

    The forest is bitwise identical to the one that `AUCForestClassifier` grows from the same data.

    Parameters
    ----------
    n_estimators, criterion, splitter, max_features, max_depth, min_samples_split, min_samples_leaf, \
    min_weight_fraction_leaf, min_gain, max_leaf_nodes, monotonic_cst, bootstrap, sampling, max_samples, \
    calibration, class_weight, shrinkage, pos_label, threshold, oob_score, max_bins, categorical_features, \
    categorical_encoding, date_parts, warm_start, n_jobs, random_state, verbose
        As in `AUCForestClassifier`. ``n_jobs`` is the number of threads of this process.
    strategy : {"auto", "replicate", "gather"}, default="auto"
        Where trees are grown. "replicate" copies the binned data, one byte for each value, to every worker. "gather"
        sends the samples of each tree to the worker that grows it, so a small `max_samples` saves memory on workers.
        "auto" is "replicate" if the binned data fit into 40 % of a worker's memory, else "gather". See `explain_plan`.
    checkpoint_dir : path-like, default=None
        A folder for finished trees. Call `fit` again with the same data and parameters to resume.
    client : distributed.Client, default=None
        The Dask client. None uses the default client. It is not included in pickles.

    Attributes
    ----------
    trees_, classes_, pos_label_, n_features_in_, feature_names_in_, categories_, expanded_, target_rates_, \
    encodings_, encoding_mixture_, split_features_, class_prior_, calibration_, shrinkage_, threshold_, \
    threshold_std_, oob_score_, oob_optimism_, oob_decision_function_, \
    n_classes_, n_outputs_, feature_importances_, split_importances_
        As in `AUCForestClassifier`.

    See Also
    --------
    aucforest.AUCForestClassifier : Random forest classifier for data in memory.

    Notes
    -----
    `predict`, `predict_proba`, `predict_log_proba`, `apply` and `encode` are lazy for Dask collections. They return an
    Array with the chunks of X; for a DataFrame, labels are a Series and `encode` returns a DataFrame. Other methods
    need data in memory: call them on `to_local` with ``X.compute()``. `auc_sketch` computes the ROC AUC of lazy scores.

    This process keeps the trees, and the labels and weights of all samples (2 and 8 bytes each). The workers keep the
    partitions until they are binned, and compute them once more if `oob_score` or `threshold` needs out-of-bag
    probabilities. A callable as `oob_score` is not supported.

    The results of a worker that dies are recomputed. A worker that does not respond for
    ``distributed.scheduler.worker-ttl`` (default 5 minutes) is considered dead. This time can be set to 60 s, but not
    to much less, because workers do not respond while they load compiled code. Connections to a dead worker time out
    after ``distributed.comm.timeouts.connect`` (default 30 s). `fit` fails if a cluster has no workers, or no free
    memory, for 5 minutes. Results are fetched directly from workers unless the client has ``direct_to_workers=False``.

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
    ...     proba_on_cluster = proba.compute()
    ((1000, 1000, 1000, 1000, 177), (2,))
    >>> local = AUCForestClassifier(50, random_state=0).fit(X.compute(), y.compute())
    >>> bool((proba_on_cluster == local.predict_proba(X.compute())).all())
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **AUCForestClassifier._parameter_constraints,
        "strategy": [StrOptions(set(STRATEGIES))],
        "checkpoint_dir": [str, os.PathLike, None],
        "client": [object],
    }

    def __init__(
        self,
        n_estimators: int = 300,
        *,
        strategy: str = "auto",
        checkpoint_dir: str | os.PathLike[str] | None = None,
        client: Any = None,
        **forest_params: Any,
    ) -> None:
        super().__init__(n_estimators, **forest_params)
        self.strategy = strategy
        self.checkpoint_dir = checkpoint_dir
        self.client = client

    # scikit-learn reads parameters and their defaults from the signature.
    __init__.__signature__ = _join_signatures(AUCForestClassifier.__init__, __init__)  # type: ignore[attr-defined]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the client, which cannot be pickled."""
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> "DaskAUCForestClassifier":
        """Return an unfitted copy with the same client."""
        # scikit-learn would copy the client deeply, which fails. `copy.copy` sets it to None, see `__getstate__`.
        clone: DaskAUCForestClassifier = AUCForestClassifier.__sklearn_clone__(copy.copy(self))
        clone.client = self.client
        return clone

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: None = None, cost: None = None
    ) -> "DaskAUCForestClassifier":
        """Fit the forest on the cluster.

        Parameters
        ----------
        X : dask DataFrame, or Array of shape (n_samples, n_features)
            The training samples. Partitions may have unknown lengths and may be empty.
        y : dask Series or Array of shape (n_samples,)
            Class labels, partitioned like X.
        sample_weight : dask Series or Array of shape (n_samples,), default=None
            Non-negative sample weights, partitioned like X.
        groups : None
            Not supported. To sample groups, use `AUCForestClassifier` in memory, or `fit_out_of_core` out of core.
        cost : None
            Not supported. Set the costs of each sample as ``threshold={"cost": array}`` instead.

        Returns
        -------
        self : DaskAUCForestClassifier

        Raises
        ------
        TypeError
            If the data are not Dask collections.
        ValueError
            If the data are inconsistent or have a single class, or if a parameter is out of range.
        ClusterError
            If workers have too little memory or other package versions, or if the cluster is lost. A fit that fails or
            is interrupted cancels its tasks and does not change the forest.
        """
        if groups is not None:
            raise ValueError(
                "groups cannot be sampled on a cluster: fit an AUCForestClassifier in memory, or by fit_out_of_core"
            )
        if cost is not None:
            raise ValueError("cost cannot be passed to a fit on a cluster: set threshold={'cost': array} instead")
        partitions, params = align(X, y, sample_weight), self._params()
        check_table(partitions.meta)
        if self.checkpoint_dir is not None:
            check_seed(params, "checkpoint_dir")
        start = self._start()
        with (
            closing(DaskExecutor(default_client(self.client))) as executor,
            self._fitting(),
            closing(RowsOnCluster(executor, partitions, params)) as table,
        ):
            self._fit_rows(table, start)
        return self

    def explain_plan(self, X: Any, y: Any = None, sample_weight: Any = None) -> ClusterPlan:
        """Explain how `fit` would distribute the work over the cluster.

        Parameters
        ----------
        X : dask DataFrame, or Array of shape (n_samples, n_features)
            The training samples. Unknown lengths of partitions are computed.
        y : dask Series or Array of shape (n_samples,), default=None
            Class labels. If None, two classes are assumed.
        sample_weight : dask Series or Array of shape (n_samples,), default=None
            Sample weights.

        Returns
        -------
        ClusterPlan
            Size of the binned data and number of parts into which its rows are divided, memory of workers, strategy
            and its reason, and size of messages for each worker or tree. ``print`` shows the plan as a table. The
            memory of target rates is not included, because categories are not known before `fit` has read them.
        """
        rows = as_rows(X)
        self._validate_params()
        with closing(DaskExecutor(default_client(self.client))) as executor:
            return explain_plan(executor, self, rows, y, sample_weight)

    predict_proba = _lazily(AUCForestClassifier.predict_proba)
    predict_log_proba = _lazily(AUCForestClassifier.predict_log_proba)
    predict = _lazily(AUCForestClassifier.predict)
    apply = _lazily(AUCForestClassifier.apply)
    encode = _lazily(AUCForestClassifier.encode)
    decision_path = _in_memory(AUCForestClassifier.decision_path)
    predict_interval = _in_memory(AUCForestClassifier.predict_interval)
    set_threshold = _in_memory(AUCForestClassifier.set_threshold)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, as ``AUCForestClassifier.score`` does, of data in memory; TypeError for collections."""
        refuse_collections(X, y, sample_weight)
        return super().score(X, y, sample_weight)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted forest to a file, from which `aucforest.load` restores an `AUCForestClassifier`.

        Parameters
        ----------
        path : path-like
            See `AUCForestClassifier.save`.
        """
        self.to_local().save(path)

    def to_local(self) -> AUCForestClassifier:
        """Return the fitted forest as an `AUCForestClassifier`.

        Returns
        -------
        AUCForestClassifier
            The forest, which shares its trees with this one.
        """
        local = AUCForestClassifier()
        # Parameters that only this class has, and the version of scikit-learn that `__getstate__` adds.
        dropped = {"_sklearn_version", *self.get_params(deep=False)} - local.get_params().keys()
        local.__dict__.update({name: value for name, value in self.__getstate__().items() if name not in dropped})
        local.__dict__["_cached"] = self._cache
        return local

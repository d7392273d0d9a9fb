"""The fit of a forest on a Dask cluster."""

from contextlib import closing
from copy import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils.validation import _get_feature_names

from aucforest.distributed._collections import Partitions, align_columns, known_lengths, split
from aucforest.distributed._executor import DaskExecutor, default_client
from aucforest.distributed._source import RowsOnCluster, choose_plan, dates_of, read_target
from aucforest.fitting.job import check_seed
from aucforest.fitting.plan import Plan
from aucforest.fitting.target import Target
from aucforest.tables.columns import check_table
from aucforest.tables.dates import n_added


def fit_on_cluster(forest: Any, partitions: Partitions) -> None:
    """Fit a DaskAUCForestClassifier; after an error, all tasks are cancelled and the forest is unchanged."""
    check_table(partitions.meta)
    params = forest._params()
    if params["checkpoint_dir"] is not None:
        check_seed(params, "checkpoint_dir")
    start = forest._start()
    with (
        closing(DaskExecutor(default_client(forest.client))) as executor,
        forest._fitting(),
        closing(RowsOnCluster(executor, partitions, params)) as table,
    ):
        forest._fit_rows(table, start)


def explain(forest: Any, X: Any, y: Any, sample_weight: Any) -> Plan:
    """Return the plan of a fit, for collections of whole rows."""
    forest._validate_params()
    with closing(DaskExecutor(default_client(forest.client))) as executor:
        target, names = _read_target(executor, forest, X, y, sample_weight), _get_feature_names(X._meta)
        dates = dates_of(X._meta, X.shape[1], forest._params())[1]
        table = SimpleNamespace(target=target, names=names, n_features=X.shape[1] + n_added(dates), dates=dates)
        # The plan does not depend on the seed, and a generator is left as it is.
        forest = copy(forest).set_params(random_state=0)
        spec = forest._resolve(table, forest._start())
        return choose_plan(executor, forest._params(), spec, target, table.n_features)


def _read_target(executor: DaskExecutor, forest: Any, X: Any, y: Any, sample_weight: Any) -> Target:
    """Return the labels and weights of the partitions; without labels two classes."""
    if y is not None:
        # Without X, which would be read as well.
        labels, *weights = align_columns(y=y, sample_weight=sample_weight)
        return read_target(executor, Partitions([], labels, weights[0] if weights else None, None, 0)).target
    for name in ("sampling", "class_weight"):
        if isinstance(getattr(forest, name), dict):
            raise ValueError(f"explain_plan needs y if {name} is a dict, but {name}={getattr(forest, name)}")
    if sample_weight is not None:
        raise ValueError("explain_plan needs y if there is a sample_weight")
    parts = [executor.submit(len, part) for part in executor.compute(*split(X))[0]]
    return Target(np.arange(2), np.zeros(sum(known_lengths(X) or executor.gather(parts)), np.uint16), None)

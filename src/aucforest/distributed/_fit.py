"""The fit of a forest on a Dask cluster."""

from contextlib import closing
from typing import Any

import numpy as np

from aucforest.distributed._collections import Partitions, known_lengths, split
from aucforest.distributed._executor import DaskExecutor, default_client
from aucforest.distributed._source import RowsOnCluster, choose_plan, dates_of, read_target
from aucforest.fitting.job import check_seed
from aucforest.fitting.plan import Plan
from aucforest.fitting.spec import FitSpec
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


def explain(forest: Any, X: Any, y: Any) -> Plan:
    """Return the plan of a fit, for collections of whole rows."""
    forest._validate_params()
    params = forest._params()
    with closing(DaskExecutor(default_client(forest.client))) as executor:
        if y is not None:
            target = read_target(executor, Partitions([], split(y), None, None, 0)).target
        elif isinstance(forest.sampling, dict):
            raise ValueError(f"explain_plan needs y if sampling is a dict, but sampling={forest.sampling}")
        else:
            parts = [executor.submit(len, part) for part in executor.compute(split(X))[0]]
            target = Target(np.arange(2), np.zeros(sum(known_lengths(X) or executor.gather(parts)), np.uint16), None)
        params |= {"monotonic_cst": None, "class_weight": None}
        n_features = X.shape[1] + n_added(dates_of(X._meta, params)[1])
        spec = FitSpec.resolve(params, target, None, n_features, seed=0)
        return choose_plan(executor, params, spec, target, n_features)

"""Training and prediction out of core and on Dask clusters."""

from aucforest.distributed._executor import ClusterError, VersionMismatchError
from aucforest.distributed._sketches import auc_sketch
from aucforest.distributed.dask import DaskAUCForestClassifier
from aucforest.estimators.outofcore import fit_out_of_core, predict_out_of_core

__all__ = [
    "ClusterError",
    "DaskAUCForestClassifier",
    "VersionMismatchError",
    "auc_sketch",
    "fit_out_of_core",
    "predict_out_of_core",
]

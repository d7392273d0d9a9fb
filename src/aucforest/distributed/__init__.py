"""Data beyond one machine's memory, and beyond one machine."""

from aucforest.distributed._dask_metrics import auc_sketch, roc_auc_score

__all__ = ["auc_sketch", "roc_auc_score"]

"""Performance without labels: what a classifier's scores say about its AUC, with intervals and alerts."""

from aucforest.monitoring.soft import SoftAUCInterval, soft_auc, soft_auc_interval, soft_auc_multiclass

__all__ = ["SoftAUCInterval", "soft_auc", "soft_auc_interval", "soft_auc_multiclass"]

"""AUC metrics: exact, fast, weighted, multiclass, streaming, with confidence."""

from aucforest.metrics.multiclass import hand_till_score
from aucforest.metrics.roc import average_precision_score, roc_auc_score, roc_curve

__all__ = ["average_precision_score", "hand_till_score", "roc_auc_score", "roc_curve"]

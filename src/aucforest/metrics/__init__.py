"""AUC metrics for weighted, multiclass and streaming data, with confidence intervals."""

from aucforest.metrics.at_k import (
    MetricsAtK,
    gains_curve,
    lift_at_k,
    metrics_at_k,
    precision_at_k,
    recall_at_fpr,
    recall_at_k,
    recall_at_precision,
)
from aucforest.metrics.confidence import (
    AUCComparison,
    RocBand,
    auc_confidence_interval,
    compare_auc,
    delong_covariance,
    roc_confidence_band,
)
from aucforest.metrics.curve_displays import GainsDisplay, RocCurveDisplay, RocEntry
from aucforest.metrics.group_rates import GroupRate, GroupRates, group_rates
from aucforest.metrics.intervals import bootstrap_interval
from aucforest.metrics.roc import average_precision_score, hand_till_score, roc_auc_score, roc_curve
from aucforest.metrics.streaming import AUCSketch
from aucforest.metrics.thresholds import optimal_threshold

__all__ = [
    "AUCComparison",
    "AUCSketch",
    "GainsDisplay",
    "GroupRate",
    "GroupRates",
    "MetricsAtK",
    "RocBand",
    "RocCurveDisplay",
    "RocEntry",
    "auc_confidence_interval",
    "average_precision_score",
    "bootstrap_interval",
    "compare_auc",
    "delong_covariance",
    "gains_curve",
    "group_rates",
    "hand_till_score",
    "lift_at_k",
    "metrics_at_k",
    "optimal_threshold",
    "precision_at_k",
    "recall_at_fpr",
    "recall_at_k",
    "recall_at_precision",
    "roc_auc_score",
    "roc_confidence_band",
    "roc_curve",
]

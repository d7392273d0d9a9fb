"""Performance estimation without labels, with confidence intervals and alerts."""

from aucforest.monitoring.chunks import Chunk, Chunks
from aucforest.monitoring.estimation import CBPE
from aucforest.monitoring.metrics import expected_confusion_matrix
from aucforest.monitoring.result import CBPEDisplay, CBPEResult, ChunkEstimate
from aucforest.monitoring.shift import ShiftReport
from aucforest.monitoring.soft import SoftAUCInterval, soft_auc, soft_auc_interval, soft_auc_multiclass

__all__ = [
    "CBPE",
    "CBPEDisplay",
    "CBPEResult",
    "Chunk",
    "ChunkEstimate",
    "Chunks",
    "ShiftReport",
    "SoftAUCInterval",
    "expected_confusion_matrix",
    "soft_auc",
    "soft_auc_interval",
    "soft_auc_multiclass",
]

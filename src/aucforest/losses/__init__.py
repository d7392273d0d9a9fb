"""AUC losses with gradients with respect to scores, and objectives for boosting libraries."""

from aucforest.losses.boosting import boosting_objective
from aucforest.losses.pairwise import pairwise_loss, smooth_auc

__all__ = ["boosting_objective", "pairwise_loss", "smooth_auc"]

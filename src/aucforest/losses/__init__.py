"""AUC losses: values and gradients in the space of scores."""

from aucforest.losses.pairwise import pairwise_loss
from aucforest.losses.smooth import smooth_auc

__all__ = ["pairwise_loss", "smooth_auc"]

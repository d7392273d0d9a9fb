"""The scores of entropy for weights of different magnitudes, and its other name."""

from aucforest.tree.criteria.table import CRITERIA
from tests.tree.criteria.scoring import check_weights_far_apart
from tests.tree.growing import NAMES


def test_scores_of_weights_far_apart():
    check_weights_far_apart("entropy")


def test_log_loss_is_entropy():
    assert CRITERIA["log_loss"] == CRITERIA["entropy"]
    assert set(CRITERIA) == {*NAMES, "log_loss"}

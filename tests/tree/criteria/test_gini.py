"""The scores of Gini for weights of different magnitudes."""

from tests.tree.criteria.scoring import check_weights_far_apart


def test_scores_of_weights_far_apart():
    check_weights_far_apart("gini")

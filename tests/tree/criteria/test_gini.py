"""The scores of Gini for weights of different magnitudes."""

import pytest

from tests.tree.criteria.scoring import check_weights_far_apart


@pytest.mark.parametrize("alone", [1, 200])
def test_scores_of_weights_far_apart(alone):
    check_weights_far_apart("gini", alone)

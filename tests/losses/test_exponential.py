import numpy as np
import pytest

from aucforest.losses import pairwise_loss


@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 1.0, 1.0]])
def test_exp_of_classes_far_apart_keeps_its_digits(weights):
    # exp(-1000) underflows, but not its logarithm.
    value, gradient, _ = pairwise_loss([1, 1, 0, 0], [1000.0, 1001.0, 0.0, 1.0], loss="exp", sample_weight=weights)
    near, near_gradient, _ = pairwise_loss([1, 1, 0, 0], [0.0, 1.0, 0.0, 1.0], loss="exp")
    assert value == pytest.approx(near - 1000.0, rel=1e-14)
    np.testing.assert_allclose(gradient, near_gradient, rtol=1e-12)

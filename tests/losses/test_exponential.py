import numpy as np
import pytest

from aucforest.losses import pairwise_loss


def test_exp_is_the_logarithm_of_a_product():
    rng = np.random.default_rng(5)
    positive, scores = rng.random(50) < 0.5, rng.normal(size=50)
    mean = np.exp(-2 * scores[positive]).mean() * np.exp(2 * scores[~positive]).mean()
    assert pairwise_loss(positive, scores, loss="exp", eps=0.5)[0] == pytest.approx(np.log(mean), rel=1e-13)


@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 1.0, 1.0]])
def test_exp_of_classes_far_apart_keeps_its_digits(weights):
    # exp(-1000) is no float64, its logarithm is
    value, gradient, _ = pairwise_loss([1, 1, 0, 0], [1000.0, 1001.0, 0.0, 1.0], loss="exp", sample_weight=weights)
    near, near_gradient, _ = pairwise_loss([1, 1, 0, 0], [0.0, 1.0, 0.0, 1.0], loss="exp")
    assert value == pytest.approx(near - 1000.0, rel=1e-14)
    np.testing.assert_allclose(gradient, near_gradient, rtol=1e-12)

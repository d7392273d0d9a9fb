import numpy as np
import pytest

from aucforest.losses import pairwise_loss, smooth_auc
from aucforest.losses._series import TERMS
from tests.metrics.strategies import random_rows
from tests.reference import losses as reference


@pytest.mark.parametrize("eps", [1e-3, 0.01, 0.1, 1.0, 100.0])
def test_the_error_is_within_the_bound(eps):
    positive, scores, _ = random_rows(4000, seed=1)
    fast, fast_gradient = smooth_auc(positive, scores, eps)
    exact, exact_gradient = reference.smooth_auc(positive, scores, eps)
    # The bound is the documented truncation error plus the rounding error of 4000 additions.
    assert abs(fast - exact) <= 1e-14 + 4000 * 2**-53
    # Subnormal numbers have fewer digits.
    np.testing.assert_allclose(fast_gradient, exact_gradient, rtol=1e-13 + 4000 * 2**-53, atol=1e-300)


@pytest.mark.parametrize("loss", ["sigmoid", "logistic"])
def test_one_pair_at_every_distance_is_within_the_bound(loss):
    assert (3 + 8**0.5) ** -TERMS < 1e-14  # The series converges like (3 + sqrt(8))^-k.
    for distance in np.concatenate([np.linspace(0, 1, 101), np.linspace(1, 40, 40)]):
        for sign in (1, -1):
            value, gradient, hessian = pairwise_loss([1, 0], [sign * distance, 0.0], loss=loss)
            expected = reference.phi(loss, sign * distance)
            assert value == pytest.approx(expected[0], rel=1e-14 + 4 * 2**-53)
            assert gradient[0] == pytest.approx(expected[1], rel=1e-13)
            assert hessian[0] == pytest.approx(expected[2], rel=1e-13, abs=5e-13)


def test_squared_hinge_with_a_distant_row():
    near, positive = np.array([0.3, -0.2, 0.9, 0.1]), np.array([True, False, True, False])
    value, gradient, _ = pairwise_loss(positive, near, loss="squared_hinge")
    # The far row is positive and has the highest score, so its pairs have no loss.
    far_value, far_gradient, _ = pairwise_loss(np.append(positive, True), np.append(near, 1e6), loss="squared_hinge")
    assert far_value == pytest.approx(value * 4 / 6, rel=1e-13)
    np.testing.assert_allclose(far_gradient[:4], gradient * 4 / 6, rtol=1e-13)

import numpy as np
import pytest

from aucforest.losses import pairwise_loss, smooth_auc
from aucforest.losses._series import TERMS
from aucforest.metrics import roc_auc_score
from tests.metrics.strategies import random_rows
from tests.reference import losses as reference


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_double_loop(weighted):
    positive, scores, weights = random_rows(150, levels=20)
    weights = weights if weighted else None
    value, gradient = smooth_auc(positive, scores, 0.2, sample_weight=weights)
    loss, slopes, _ = reference.pairwise_loss(positive, scores.tolist(), "sigmoid", 0.2, weights)
    assert value == pytest.approx(1 - loss, rel=1e-13)
    np.testing.assert_allclose(gradient, -np.array(slopes), rtol=1e-12)


@pytest.mark.parametrize("eps", [1e-3, 0.01, 0.1, 1.0, 100.0])
def test_the_error_is_within_the_bound(eps):
    positive, scores, _ = random_rows(4000, seed=1)
    fast, fast_gradient = smooth_auc(positive, scores, eps)
    exact, exact_gradient = reference.smooth_auc(positive, scores, eps)
    # the documented truncation, and rounding of some 4000 sums of terms of one sign
    assert abs(fast - exact) <= 1e-14 + 4000 * 2**-53
    # subnormal numbers have fewer digits
    np.testing.assert_allclose(fast_gradient, exact_gradient, rtol=1e-13 + 4000 * 2**-53, atol=1e-300)


@pytest.mark.parametrize("loss", ["sigmoid", "logistic"])
def test_one_pair_at_every_distance_is_within_the_bound(loss):
    # the polynomial itself: no sum to average errors out; the series converges like (3 + sqrt(8))^-k
    assert (3 + 8**0.5) ** -TERMS < 1e-14
    for distance in np.concatenate([np.linspace(0, 1, 101), np.linspace(1, 40, 40)]):
        for sign in (1, -1):
            value, gradient, hessian = pairwise_loss([1, 0], [sign * distance, 0.0], loss=loss)
            expected = reference.phi(loss, sign * distance)
            assert value == pytest.approx(expected[0], rel=1e-14 + 4 * 2**-53)
            assert gradient[0] == pytest.approx(expected[1], rel=1e-13)
            assert hessian[0] == pytest.approx(expected[2], rel=1e-13, abs=5e-13)


def test_it_goes_to_the_auc():
    positive, scores, _ = random_rows(500, levels=3)
    exact = roc_auc_score(positive, scores)
    errors = [abs(smooth_auc(positive, scores, eps)[0] - exact) for eps in (1.0, 0.1, 0.001)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-12  # distinct scores are 333 eps apart, and ties count half


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [0, 0]}, "y has only one class"),
        ({"scores": [0.0, np.nan]}, "scores must be finite"),
        ({"eps": 0}, "eps must be positive"),
        ({"scores": [-1e308, 1e308]}, "are too far apart"),
        ({"sample_weight": [1, -1]}, "sample_weight must not be negative"),
        ({"sample_weight": [0, 1]}, "sample_weight leaves no pair"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        smooth_auc(**{"y": [0, 1], "scores": [0.1, 0.2], "eps": 0.1, **arguments})

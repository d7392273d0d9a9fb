import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.losses import pairwise_loss
from tests.reference import losses as reference

LOSSES = ["exp", "logistic", "sigmoid", "squared_hinge"]

# second derivatives of the sigmoid have zeros, so the documented error of a pair of weight 1 is absolute
BEND_ERROR = 5e-13


@st.composite
def grouped_rows(draw):
    """Draw (positive, scores, weights, groups): ties, distances from tiny to many eps, and a pair in group 0."""
    n = draw(st.integers(2, 25))
    spread = draw(st.sampled_from([1e-3, 1.0, 30.0]))
    score = st.one_of(st.integers(-2, 2).map(float), st.floats(-1.0, 1.0))
    positive = np.array([True, False, *draw(st.lists(st.booleans(), min_size=n - 2, max_size=n - 2))])
    scores = spread * np.array(draw(st.lists(score, min_size=n, max_size=n)))
    weight = st.sampled_from([0.0, 0.25, 1.0, 3.0])
    weights = np.array([1.0, 0.5, *draw(st.lists(weight, min_size=n - 2, max_size=n - 2))])
    groups = np.array([0, 0, *draw(st.lists(st.integers(0, 3), min_size=n - 2, max_size=n - 2))])
    return positive, scores, weights, groups


def assert_is_the_double_loop(positive, scores, loss, eps=1.0, weights=None, groups=None):
    value, gradient, hessian = pairwise_loss(positive, scores, loss=loss, eps=eps, sample_weight=weights, group=groups)
    expected = reference.pairwise_loss(positive, scores.tolist(), loss, eps, weights, groups)
    # the logarithm of a mean near 1 is near 0
    assert value == pytest.approx(expected[0], rel=1e-12, abs=1e-14)
    scale = np.abs(expected[1]).max()
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-10, atol=1e-12 * scale)
    total = 1 if weights is None else max(weights) ** 2 * len(weights)
    np.testing.assert_allclose(hessian, expected[2], rtol=1e-10, atol=BEND_ERROR * total / eps**2)


@pytest.mark.parametrize("loss", LOSSES)
@given(rows=grouped_rows(), eps=st.sampled_from([0.3, 1.0, 4.0]), weighted=st.booleans(), grouped=st.booleans())
def test_equals_the_double_loop(loss, rows, eps, weighted, grouped):
    positive, scores, weights, groups = rows
    assert_is_the_double_loop(positive, scores, loss, eps, weights if weighted else None, groups if grouped else None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "eps"),
    # exp(-x) itself overflows 800 eps apart
    [(loss, eps) for loss in LOSSES for eps in (0.01, 1.0) if (loss, eps) != ("exp", 0.01)],
)
def test_equals_the_double_loop_over_many_anchors(loss, eps):
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(size=150), rng.normal(scale=1e-3, size=50), [-4.0, 4.0]])
    positive = rng.random(scores.size) < 0.3
    assert_is_the_double_loop(positive, scores, loss, eps, rng.exponential(size=scores.size))


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_and_hessian_are_finite_differences(loss):
    rng = np.random.default_rng(1)
    positive, scores, weights = rng.random(40) < 0.4, rng.normal(size=40), rng.exponential(size=40)
    groups = rng.integers(0, 3, size=40)

    def evaluate(scores):
        return pairwise_loss(positive, scores, loss=loss, eps=0.7, sample_weight=weights, group=groups)

    _, gradient, hessian = evaluate(scores)
    for i in range(scores.size):
        # central differences are off by step^2 and by rounding / step: 1e-10 and 1e-11 here
        step = 1e-5 * (np.arange(scores.size) == i)
        (above, slope_above, _), (below, slope_below, _) = evaluate(scores + step), evaluate(scores - step)
        assert (above - below) / 2e-5 == pytest.approx(gradient[i], rel=1e-6, abs=1e-6 * np.abs(gradient).max())
        assert (slope_above[i] - slope_below[i]) / 2e-5 == pytest.approx(
            hessian[i], rel=1e-6, abs=1e-6 * np.abs(hessian).max()
        )


@pytest.mark.parametrize("loss", LOSSES)
def test_only_differences_count(loss):
    rng = np.random.default_rng(2)
    positive, scores = rng.random(100) < 0.5, np.round(rng.normal(size=100), 3)
    value, gradient, _ = pairwise_loss(positive, scores, loss=loss)
    assert gradient.sum() == pytest.approx(0.0, abs=1e-14)
    assert pairwise_loss(positive, scores + 1024.0, loss=loss)[0] == pytest.approx(value, rel=1e-11)
    # the loss of the negated scores of exchanged classes is the same
    assert pairwise_loss(~positive, -scores, loss=loss)[0] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_of_two_is_a_row_twice(loss):
    rng = np.random.default_rng(3)
    positive, scores, repeats = rng.random(30) < 0.5, rng.normal(size=30), rng.integers(0, 3, size=30)
    weighted = pairwise_loss(positive, scores, loss=loss, sample_weight=repeats)
    repeated = pairwise_loss(np.repeat(positive, repeats), np.repeat(scores, repeats), loss=loss)
    assert weighted[0] == pytest.approx(repeated[0], rel=1e-12)
    first = np.flatnonzero(repeats)
    last = np.cumsum(repeats)[first] - 1
    np.testing.assert_allclose(weighted[1][first], repeats[first] * repeated[1][last], rtol=1e-11)
    assert not weighted[1][repeats == 0].any()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("size", "eps"), [(1e4, 1.0), (1e6, 1e-3)])
def test_large_scores_stay_finite(loss, size, eps):
    rng = np.random.default_rng(4)
    scores = rng.uniform(-size, size, size=1000)
    scores[:2] = -size, size
    positive = np.arange(1000) % 2 == 0  # the lowest score is positive, the highest is not
    for weights in (None, np.arange(1000) % 3):
        value, gradient, hessian = pairwise_loss(positive, scores, loss=loss, eps=eps, sample_weight=weights)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
        assert np.isfinite(hessian).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_only_ratios_of_weights_count(loss):
    rng = np.random.default_rng(6)
    positive, scores, weights = rng.random(30) < 0.5, rng.normal(size=30), rng.exponential(size=30)
    expected = pairwise_loss(positive, scores, loss=loss, sample_weight=weights)
    for scale in (1e-290, 1e-9, 1e290):
        for found, value in zip(pairwise_loss(positive, scores, loss=loss, sample_weight=scale * weights), expected):
            np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_largest_distance_stays_finite(loss):
    scores = np.array([-1.0, 1.0, 0.5, -1.0]) * 0.49e-50
    value, gradient, hessian = pairwise_loss([1, 0, 1, 0], scores, loss=loss, eps=1.01e-150)
    assert np.isfinite([value, *gradient, *hessian]).all()


def test_a_far_row_does_not_spoil_the_squared_hinge():
    near = np.array([0.3, -0.2, 0.9, 0.1])
    positive = np.array([True, False, True, False])
    value, gradient, _ = pairwise_loss(positive, near, loss="squared_hinge")
    # the far row is positive and at the top: its pairs have no loss
    far_value, far_gradient, _ = pairwise_loss(np.append(positive, True), np.append(near, 1e6), loss="squared_hinge")
    assert far_value == pytest.approx(value * 4 / 6, rel=1e-13)
    np.testing.assert_allclose(far_gradient[:4], gradient * 4 / 6, rtol=1e-13)


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


def test_a_group_of_one_class_adds_nothing():
    positive, scores, groups = [1, 0, 1, 1], [0.2, 0.4, -3.0, 5.0], ["a", "a", "b", "b"]
    for loss in LOSSES:
        alone = pairwise_loss(positive[:2], scores[:2], loss=loss)
        value, gradient, hessian = pairwise_loss(positive, scores, loss=loss, group=groups)
        assert value == pytest.approx(alone[0], rel=1e-14)
        np.testing.assert_allclose(gradient, [*alone[1], 0, 0], rtol=1e-13)
        np.testing.assert_allclose(hessian, [*alone[2], 0, 0], rtol=1e-13)

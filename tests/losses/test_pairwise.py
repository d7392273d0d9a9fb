import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.losses import pairwise_loss, smooth_auc
from tests.metrics.strategies import random_rows
from tests.reference import losses as reference

LOSSES = ["exp", "logistic", "sigmoid", "squared_hinge"]

BEND_ERROR = 5e-13  # The documented error of second derivatives is absolute, because those of the sigmoid can be 0.


@st.composite
def grouped_rows(draw):
    """Draw (positive, scores, weights, groups): ties, distances from tiny to many eps, and a pair in group 0."""
    n, spread = draw(st.integers(2, 25)), draw(st.sampled_from([1e-3, 1.0, 30.0]))
    score = st.one_of(st.integers(-2, 2).map(float), st.floats(-1.0, 1.0))
    rest = st.tuples(st.booleans(), st.sampled_from([0.0, 0.25, 1.0, 3.0]), st.integers(0, 3))
    rows = [(True, 1.0, 0), (False, 0.5, 0), *draw(st.lists(rest, min_size=n - 2, max_size=n - 2))]
    positive, weights, groups = map(np.array, zip(*rows))
    return positive, spread * np.array(draw(st.lists(score, min_size=n, max_size=n))), weights, groups


def assert_is_the_double_loop(positive, scores, loss, eps=1.0, weights=None, groups=None):
    value, gradient, hessian = pairwise_loss(positive, scores, loss=loss, eps=eps, sample_weight=weights, group=groups)
    expected = reference.pairwise_loss(positive, scores.tolist(), loss, eps, weights, groups)
    assert value == pytest.approx(expected[0], rel=1e-12, abs=1e-14)  # The logarithm of a mean near 1 is near 0.
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
    # exp(-x) overflows in the reference if scores differ by 800 eps.
    [(loss, eps) for loss in LOSSES for eps in (0.01, 1.0) if (loss, eps) != ("exp", 0.01)],
)
def test_equals_the_double_loop_over_many_anchors(loss, eps):
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(size=150), rng.normal(scale=1e-3, size=50), [-4.0, 4.0]])
    positive = rng.random(scores.size) < 0.3
    assert_is_the_double_loop(positive, scores, loss, eps, rng.exponential(size=scores.size))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("size", "eps"), [(1e4, 1.0), (1e6, 1e-3), (0.49e-50, 1.01e-150)])
def test_the_largest_distances_stay_finite(loss, size, eps):
    scores = np.random.default_rng(4).uniform(-size, size, size=1000)
    scores[:2] = -size, size
    positive = np.arange(1000) % 2 == 0  # the lowest score is positive, the highest is not
    for weights in (None, np.arange(1000) % 3):
        value, gradient, hessian = pairwise_loss(positive, scores, loss=loss, eps=eps, sample_weight=weights)
        assert np.isfinite([value, *gradient, *hessian]).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_only_ratios_of_weights_count(loss):
    rng = np.random.default_rng(6)
    rows, weights = (rng.random(30) < 0.5, rng.normal(size=30)), rng.exponential(size=30)
    scales = (1.0, 1e-98, 1e-9, 1e98)
    expected, *others = (np.hstack(pairwise_loss(*rows, loss=loss, sample_weight=weights * scale)) for scale in scales)
    np.testing.assert_allclose(others, [expected] * 3, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_smoothed_auc_is_one_minus_the_sigmoid_loss(weighted):
    positive, scores, weights = random_rows(150, levels=20)
    options = {"sample_weight": weights if weighted else None}
    loss, gradient, _ = pairwise_loss(positive, scores, loss="sigmoid", eps=0.2, **options)
    value, slopes = smooth_auc(positive, scores, 0.2, **options)
    assert value == 1.0 - loss
    np.testing.assert_array_equal(slopes, -gradient)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"y": [1, 1, 1]}, "y has only one class in 3 samples"), ({"y": [0, 1, 2]}, "y must have two labels"),
    ({"y": [0, 1]}, "y has 2 samples, but scores has 3"),
    ({"scores": [0.0, np.nan, 1.0]}, "scores must be finite, but value 1 is nan"),
    ({"scores": [[0.0], [1.0], [2.0]]}, r"scores must have 1 dimension\(s\), but has shape \(3, 1\)"),
    *(({"eps": eps}, "eps must be positive and finite") for eps in (0.0, -1.0, np.nan, np.inf)),
    ({"eps": 1e-200, "loss": "logistic"}, r"above 1e-150\), but is 1e-200"),
    ({"loss": "hinge"}, "loss must be one of 'exp', 'logistic', 'sigmoid', 'squared_hinge', but is 'hinge'"),
    ({"sample_weight": [1.0, -2.0, 1.0]}, "sample_weight must not be negative, but value 1 is -2.0"),
    ({"sample_weight": [1.0, 0.0, 1.0]}, "sample_weight leaves no pair"),
    ({"group": [0, 1, 0]}, "group and sample_weight leave no pair"),
    ({"group": [0, 1]}, "group has 2 samples, but scores has 3"),
    ({"group": ["a", "a", None]}, "group has a missing value"),
    ({"scores": [-1e308, 1e308, 0.0]}, r"scores from -1e\+308 to 1e\+308 are too far apart for eps=1"),
    ({"scores": [0.0, 1e90, 1.0], "eps": 1e-20}, "are too far apart"),
])  # fmt: skip
def test_invalid_arguments(arguments, message):
    arguments = {"y": [0, 1, 0], "scores": [0.1, 0.2, 0.3], "eps": 1.0, **arguments}
    with pytest.raises(ValueError, match=message):
        pairwise_loss(**arguments)
    if not arguments.keys() & {"loss", "group"}:
        with pytest.raises(ValueError, match=message):
            smooth_auc(**arguments)


def test_arguments_of_invalid_types():
    for eps in ("1", True):
        with pytest.raises(TypeError, match="eps must be a number"):
            pairwise_loss([0, 1, 0], [0.1, 0.2, 0.3], eps=eps)
    with pytest.raises(TypeError, match="group has labels that cannot be sorted"):
        pairwise_loss([0, 1, 0], [0.1, 0.2, 0.3], group=np.array(["a", 1, 1], object))

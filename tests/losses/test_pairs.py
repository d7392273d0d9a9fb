"""Pairs of positive and negative samples: how they are ordered, and what is refused."""

import itertools

import numpy as np
import pytest

from aucforest.losses import pairwise_loss
from aucforest.losses.pairs import check_pairs, in_row_order


@pytest.mark.parametrize("grouped", [False, True])
def test_pairs_are_those_of_a_double_loop(grouped):
    rng = np.random.default_rng(0)
    y, scores, weights = rng.random(40) < 0.4, rng.normal(size=40), rng.random(40)
    groups = rng.integers(0, 4, 40) if grouped else np.zeros(40, int)
    pairs = check_pairs(y, 40, weights, groups if grouped else None)
    alike = groups[:, None] == groups
    np.testing.assert_allclose(pairs.total, (np.outer(weights * y, weights * ~y) * alike).sum())
    rows, starts = pairs.by_score(scores), pairs.starts()
    assert sorted(rows) == list(range(40))
    for start, stop in itertools.pairwise(starts):
        assert np.all(np.diff(scores[rows[start:stop]]) >= 0)
        assert len(set(groups[rows[start:stop]])) == 1
    np.testing.assert_array_equal(in_row_order(scores[rows], rows), scores)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [1, 1, 1]}, "y has only one class in 3 samples"),
        ({"y": [0, 1, 2]}, "y must have two labels"),
        ({"y": [0, 1]}, "y has 2 samples, but scores has 3"),
        ({"scores": [0.0, np.nan, 1.0]}, "scores must be finite, but value 1 is nan"),
        ({"scores": [0.0, np.inf, 1.0]}, "scores must be finite, but value 1 is inf"),
        ({"scores": [[0.0], [1.0], [2.0]]}, r"scores must have 1 dimension\(s\), but has shape \(3, 1\)"),
        ({"eps": 0.0}, "eps must be positive and finite"),
        ({"eps": -1.0}, "eps must be positive and finite"),
        ({"eps": np.nan}, "eps must be positive and finite"),
        ({"eps": np.inf}, "eps must be positive and finite"),
        ({"eps": 1e-200, "loss": "logistic"}, r"above 1e-150\), but is 1e-200"),
        ({"loss": "hinge"}, "loss must be one of 'exp', 'logistic', 'sigmoid', 'squared_hinge', but is 'hinge'"),
        ({"sample_weight": [1.0, -2.0, 1.0]}, "sample_weight must not be negative, but value 1 is -2.0"),
        ({"sample_weight": [1.0, 2.0]}, "sample_weight has 2 samples, but scores has 3"),
        ({"sample_weight": [1.0, 0.0, 1.0]}, "sample_weight leaves no pair"),
        ({"group": [0, 1, 0]}, "group and sample_weight leave no pair"),
        ({"group": [0, 1]}, "group has 2 samples, but scores has 3"),
        ({"group": [0, 0, np.nan]}, "group has a missing value"),
        ({"scores": [-1e308, 1e308, 0.0]}, r"scores from -1e\+308 to 1e\+308 are too far apart for eps=1"),
        ({"scores": [0.0, 1e90, 1.0], "eps": 1e-20}, "are too far apart"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        pairwise_loss(**{"y": [0, 1, 0], "scores": [0.1, 0.2, 0.3], **arguments})


def test_groups_have_an_order_and_none_is_missing():
    with pytest.raises(TypeError, match="group has labels that cannot be sorted"):
        pairwise_loss([0, 1], [0.0, 1.0], group=np.array(["a", 1], object))
    with pytest.raises(ValueError, match="group has a missing value"):
        pairwise_loss([0, 1], [0.0, 1.0], group=["a", None])


@pytest.mark.parametrize("eps", ["1", None, True])
def test_eps_is_a_number(eps):
    with pytest.raises(TypeError, match="eps must be a number"):
        pairwise_loss([0, 1], [0.0, 1.0], eps=eps)

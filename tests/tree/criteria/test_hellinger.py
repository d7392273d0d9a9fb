"""The Hellinger distance of classes that hardly differ."""

import pytest

from tests.tree.criteria.scoring import gain


@pytest.mark.parametrize("step", [10**9, 10**6, 10**3])
def test_hellinger_distance_of_nearly_equal_classes_does_not_cancel(step):
    # To first order the distance of the fractions a and b is |a - b| / (2 sqrt(a (1 - a))).
    whole, a = 10**12, 2 * 10**11
    distance = gain("hellinger", [a, a + step], [whole - a, whole - a - step])
    assert distance == pytest.approx(step / whole / 0.8, rel=2 * step / whole + 1e-6)

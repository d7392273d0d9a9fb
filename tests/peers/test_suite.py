"""Tests of the reasons for which tests of peers are left out."""

import pytest

from tests.peers.stand_ins import NothingOfOurs
from tests.peers.suite import SEVERAL_TARGETS, SPARSE, deliberate

FAILED = pytest.fail.Exception("DID NOT RAISE ValueError")


@pytest.mark.parametrize(
    ("reason", "errors", "others"),
    [
        (deliberate("a"), [AssertionError(), FAILED], [NothingOfOurs(), IndexError(), ValueError()]),
        (
            deliberate("a", ValueError, message="^b"),
            [ValueError("bc")],
            [ValueError("cb"), AssertionError("b"), FAILED],
        ),
        (SPARSE, [TypeError("Sparse data was passed for X")], [TypeError("a"), NothingOfOurs(), FAILED]),
        (SEVERAL_TARGETS, [ValueError("y should be a 1d array")], [ValueError("a"), FAILED]),
    ],
)
def test_a_reason_explains_its_errors_only(reason, errors, others):
    assert all(map(reason.explains, errors))
    assert not any(map(reason.explains, others))

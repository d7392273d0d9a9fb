"""Growing on with other draws."""

import pytest

from tests.estimators.data import digest, make_table, small_forest

X, Y = make_table()


@pytest.mark.parametrize(
    ("before", "after", "n_rows", "drawn"),
    [
        ({"bootstrap": False}, {"bootstrap": True}, 240, "all of 240, 240 of 240"),
        ({}, {"max_samples": 0.5}, 240, "240 of 240, 120 of 240"),
        ({}, {}, 200, "240 of 240, 200 of 200"),
    ],
)
def test_trees_that_drew_otherwise_have_no_common_out_of_bag_score(before, after, n_rows, drawn):
    """Draws are not kept but drawn anew: those of other sizes would call rows unseen that a tree was grown from."""
    forest = small_forest(3, warm_start=True, **before).fit(X, Y)
    forest.set_params(n_estimators=4, **after).fit(X[:n_rows], Y[:n_rows])
    before_refusal = digest(forest)
    with pytest.raises(ValueError, match=f"^warm_start: oob_score=True needs trees that drew alike, not {drawn} rows$"):
        forest.set_params(n_estimators=5, oob_score=True).fit(X[:n_rows], Y[:n_rows])
    assert digest(forest) == before_refusal
    forest.set_params(warm_start=False, n_estimators=40).fit(X[:n_rows], Y[:n_rows])
    assert 0 <= forest.oob_score_ <= 1

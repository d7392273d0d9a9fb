"""Growing on: the trees of one fit, refusals that lose no tree, other draws."""

import numpy as np
import pytest

from tests.estimators.data import assert_same, digest, everything, make_table, small_forest

X, Y = make_table()


@pytest.mark.filterwarnings("ignore:.* they have no out-of-bag probability")
def test_warm_start():
    whole = small_forest(7, oob_score=True, random_state=4)
    forest = small_forest(3, oob_score=True, random_state=4, warm_start=True)
    whole.fit(X, Y)
    first = forest.fit(X, Y).trees_
    forest.predict(X)
    forest.set_params(n_estimators=7).fit(X, Y)
    assert all(kept.feature is tree.feature for kept, tree in zip(first, forest.trees_))
    assert_same(everything(forest, X), everything(whole, X))
    with pytest.raises(
        ValueError, match=r"^warm_start: n_estimators=5 must be at least 7, the number of existing trees$"
    ):
        forest.set_params(n_estimators=5).fit(X, Y)
    assert len(forest) == 7
    state = np.random.RandomState(0)
    forest = small_forest(3, random_state=state, warm_start=True).fit(X, Y)
    big = small_forest(5, random_state=np.random.RandomState(0)).fit(X, Y)
    assert digest(forest.set_params(n_estimators=5).fit(X, Y)) == digest(big)


def test_a_warm_start_without_new_trees():
    forest = small_forest(3, warm_start=True).fit(X, Y)
    before = digest(forest)
    with pytest.warns(
        UserWarning, match="^warm_start: n_estimators=3 trees exist already, no tree is added$"
    ) as caught:
        forest.fit(X, Y)
    assert caught[0].filename == __file__
    assert digest(forest) == before


@pytest.mark.parametrize(
    ("table", "labels", "message"),
    [
        (X[:, :4], Y, "^warm_start: X has 4 features, but the existing trees have 5$"),
        (X, 2 * Y, r"^warm_start: y has the classes \[0, 2\], but the existing trees have \[0, 1\]$"),
        (X, np.arange(240) % 3, r"^warm_start: y has the classes \[0, 1, 2\], but the existing trees have \[0, 1\]$"),
        (X, np.zeros(240), "^y has only one class"),
        (X[:0], Y[:0], "0 sample"),
    ],
)
def test_a_warm_start_that_fails_keeps_all(table, labels, message):
    forest = small_forest(3, warm_start=True).fit(X, Y)
    before = dict(vars(forest), n_estimators=5)
    with pytest.raises(ValueError, match=message):
        forest.set_params(n_estimators=5).fit(table, labels)
    assert vars(forest).keys() == before.keys()
    assert all(vars(forest)[name] is value for name, value in before.items())
    assert digest(forest.fit(X, Y)) == digest(small_forest(5).fit(X, Y))


@pytest.mark.parametrize(
    ("before", "after", "n_rows", "drawn"),
    [
        ({"bootstrap": False}, {"bootstrap": True}, 240, "all of 240 samples, 240 of 240 samples"),
        ({}, {"max_samples": 0.5}, 240, "240 of 240 samples, 120 of 240 samples"),
        ({}, {}, 200, "240 of 240 samples, 200 of 200 samples"),
    ],
)
def test_trees_that_drew_otherwise_have_no_common_out_of_bag_score(before, after, n_rows, drawn):
    """Draws are not kept but drawn anew: those of other sizes would call rows unseen that a tree was grown from."""
    forest = small_forest(3, warm_start=True, **before).fit(X, Y)
    not_calibrated = f"^warm_start: probabilities are not calibrated, because trees .* different ways: {drawn}$"
    with pytest.warns(UserWarning, match=not_calibrated) as caught:
        forest.set_params(n_estimators=4, **after).fit(X[:n_rows], Y[:n_rows])
    assert [warning.filename for warning in caught] == [__file__]
    assert forest.calibration_ is None
    before_refusal = digest(forest)
    with pytest.raises(
        ValueError, match=f"^warm_start: oob_score=True needs the same bootstrap sampling for all trees, not {drawn}$"
    ):
        forest.set_params(n_estimators=5, oob_score=True).fit(X[:n_rows], Y[:n_rows])
    assert digest(forest) == before_refusal
    forest.set_params(oob_score=False, calibration=None).fit(X[:n_rows], Y[:n_rows])
    forest.set_params(warm_start=False, n_estimators=40, oob_score=True).fit(X[:n_rows], Y[:n_rows])
    assert 0 <= forest.oob_score_ <= 1

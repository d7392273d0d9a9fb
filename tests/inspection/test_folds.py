"""Folds of groups, and folds in the order of time."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.model_selection import LeaveOneGroupOut

from aucforest.inspection import compare_criteria
from aucforest.inspection.folds import make_folds, time_folds

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
Y = X[:, 0] + RNG.normal(size=600) > 1


def run(**params):
    return compare_criteria(X, Y, n_estimators=3, metrics=("roc_auc",), verbose=0, **params)


def test_groups_are_not_divided():
    names = np.array([*range(60), *(f"g{k}" for k in range(29)), 2.5], dtype=object)
    groups = names[np.random.default_rng(0).integers(90, size=len(Y))]
    folds, again = (make_folds(X, Y, cv=3, n_repeats=2, groups=groups, random_state=0) for _ in range(2))
    assert len(folds) == 6
    for (train, test), (_, same) in zip(folds, again):
        assert not set(groups[train]) & set(groups[test])
        assert len(train) + len(test) == len(Y)
        assert np.array_equal(test, same)
    assert not np.array_equal(folds[0][1], folds[3][1])
    for repeat in (folds[:3], folds[3:]):
        assert np.array_equal(np.sort(np.concatenate([test for _, test in repeat])), np.arange(len(Y)))
    whole, given = run(groups=groups, cv=3, random_state=0), run(cv=folds[:3], random_state=0)
    assert whole.folds["n_test"].tolist() == given.folds["n_test"].tolist()


def test_a_fit_of_one_tree_for_compilation_does_not_warn():
    """Its samples are drawn without a seed. In about a third of such fits, no positive is out of bag."""
    few, params = np.arange(60) % 10 == 0, {"n_estimators": 30, "metrics": ("roc_auc",), "verbose": 0}
    for _ in range(10):
        compare_criteria(X[:60], few, cv=2, criteria=["stack"], random_state=0, **params)


def test_a_splitter_gets_the_groups():
    groups = np.arange(len(Y)) % 4
    assert run(groups=groups, cv=LeaveOneGroupOut()).folds["n_test"][:, 0].tolist() == np.bincount(groups).tolist()


@given(st.lists(st.integers(0, 30), min_size=2, max_size=80), st.integers(1, 8))
@example([0, 0, 0, 0, 1, 2], 2)
@example([0, 1, 2, 2, 2, 2], 2)
def test_test_rows_are_later_than_training_rows(times, n_folds):
    times, n_times = np.array(times), len(set(times))
    if n_times <= n_folds:
        sentence = f"^{n_folds} folds need at least {n_folds + 1} distinct times, found {n_times}$"
        with pytest.raises(ValueError, match=sentence):
            time_folds(times, n_folds)
        return
    folds = time_folds(times, n_folds)
    assert len(folds) == n_folds
    for train, test in folds:
        assert min(len(train), len(test)) > 0
        assert times[train].max() < times[test].min()
        assert np.array_equal(train, np.sort(train))
    for (train, test), (longer, _) in pairwise([*folds, (np.arange(len(times)), None)]):
        assert np.array_equal(np.sort(np.concatenate((train, test))), longer)


def test_blocks_of_distinct_times_are_of_equal_size():
    folds = time_folds(np.random.default_rng(0).permutation(600), 5)
    assert [(len(train), len(test)) for train, test in folds] == [(100 * k, 100) for k in range(1, 6)]
    months = time_folds(np.repeat(np.arange("2020-01", "2021-01", dtype="M8[M]"), [90, 10] * 6), 3)
    assert [(len(train), len(test)) for train, test in months] == [(190, 110), (300, 190), (490, 110)]

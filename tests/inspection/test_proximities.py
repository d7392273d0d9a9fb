"""Proximities against loops over pairs, and against what the forest itself predicts."""

import numpy as np
import pytest

from aucforest.estimators.out_of_bag import training_rows
from aucforest.inspection import proximity, proximity_neighbors
from tests.estimators.data import make_table, small_forest
from tests.reference import proximity as reference

X, Y = make_table(n_rows=150, n_classes=3, missing=0.1)
OTHERS, _ = make_table(n_rows=60, seed=5, missing=0.1)


def drawn(forest, y, sample_weight=None):
    return training_rows(forest, X, y, sample_weight).counts(range(len(forest)))


@pytest.mark.parametrize("params", [{}, {"max_depth": 2}, {"min_samples_leaf": 10, "bootstrap": False}])
def test_the_share_of_trees_in_which_rows_meet(params):
    forest = small_forest(7, **params).fit(X, Y)
    expected = reference.shared_leaves(forest.apply(X).tolist(), forest.apply(OTHERS).tolist())
    np.testing.assert_allclose(proximity(forest, X, OTHERS), expected, rtol=1e-14)
    among = proximity(forest, X)
    np.testing.assert_array_equal(among, proximity(forest, X, X))
    np.testing.assert_array_equal(among, among.T)
    np.testing.assert_array_equal(among.diagonal(), 1.0)


@pytest.mark.parametrize("weight", [None, np.where(np.arange(150) % 7 == 0, 0.0, 1.0 + np.arange(150) % 3)])
def test_out_of_bag(weight):
    forest = small_forest(12, max_depth=3, max_samples=0.7).fit(X, Y, weight)
    counts = drawn(forest, Y, weight)
    ones = np.ones(len(X)) if weight is None else weight
    expected = reference.out_of_bag(forest.apply(X).tolist(), counts.tolist(), ones.tolist())
    got = proximity(forest, X, oob_labels=Y, sample_weight=weight)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_labels_weighted_by_proximity_are_the_out_of_bag_probabilities():
    forest = small_forest(40, oob_score=True, shrinkage=None, calibration=None).fit(X, Y)
    shares = proximity(forest, X, oob_labels=Y) @ np.eye(3)[Y]
    np.testing.assert_allclose(shares, forest.oob_decision_function_, rtol=1e-12)


def nearest(line, n_neighbors, own):
    """Return the greatest positive entries of a line and their places, the first of equals first."""
    order = sorted((j for j in range(len(line)) if j != own and line[j] > 0), key=lambda j: (-line[j], j))
    return order[:n_neighbors], [line[j] for j in order[:n_neighbors]]


@pytest.mark.parametrize("n_neighbors", [1, 7, 1000])
@pytest.mark.parametrize("case", ["others", "same", "out of bag"])
def test_neighbors_are_the_greatest_of_a_line(case, n_neighbors):
    forest = small_forest(40, min_samples_leaf=4).fit(X, Y)
    others = OTHERS if case == "others" else None
    options = {"oob_labels": Y} if case == "out of bag" else {}
    matrix = proximity(forest, X, others, **options)
    graph = proximity_neighbors(forest, X, others, n_neighbors=n_neighbors, **options)
    assert graph.shape == matrix.shape
    for i, line in enumerate(matrix.tolist()):
        places, values = nearest(line, n_neighbors, own=None if others is not None else i)
        entries = slice(*graph.indptr[i : i + 2])
        # Sums of shares in another order: nearly equal ones may change places.
        np.testing.assert_allclose(graph.data[entries], values, rtol=1e-12)
        if case != "out of bag":
            assert graph.indices[entries].tolist() == places


@pytest.mark.parametrize("n_rows", [1, 255, 256, 257, 1000])
def test_threads_and_blocks_change_nothing(n_rows):
    table = np.tile(X, (7, 1))[:n_rows]
    forest = small_forest(8).fit(X, Y)
    one, two = (proximity_neighbors(forest, table, n_neighbors=3, n_jobs=n_jobs) for n_jobs in (1, 2))
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    dense = proximity(forest, table, n_jobs=2)
    np.testing.assert_array_equal(dense, proximity(forest, table, n_jobs=1))
    places = forest.apply(table)
    np.testing.assert_array_equal(dense[-1], np.mean(places == places[-1], axis=1))


def test_rows_that_all_trees_drew():
    forest = small_forest(2).fit(X, Y)
    seen = (drawn(forest, Y) > 0).all(axis=1)
    sentence = f"{seen.sum()} of 150 samples are not out of bag for any of 2 trees: they have no out-of-bag proximity"
    with pytest.warns(UserWarning, match=sentence):
        matrix = proximity(forest, X, oob_labels=Y)
    np.testing.assert_array_equal(np.isnan(matrix), np.repeat(seen[:, None], 150, axis=1))
    with pytest.warns(UserWarning, match=sentence):
        graph = proximity_neighbors(forest, X, oob_labels=Y)
    np.testing.assert_array_equal(np.diff(graph.indptr) == 0, seen)


def test_a_dense_matrix_has_a_limit(monkeypatch):
    forest = small_forest().fit(X, Y)
    monkeypatch.setattr("aucforest.inspection.proximities._MOST_ENTRIES", 150 * 60 - 1)
    with pytest.raises(ValueError, match=r"150 x 60 proximities .*: use proximity_neighbors for the nearest"):
        proximity(forest, X, OTHERS)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be an integer >= 1, got 0"),
        ({"sample_weight": np.ones(150)}, "sample_weight is only used with oob_labels"),
        ({"Y": OTHERS, "oob_labels": Y}, "pass either Y or oob_labels"),
    ],
)
def test_refusals(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        proximity_neighbors(small_forest().fit(X, Y), X, **options)

"""Sparse matrices give the trees and predictions of the same rows as a dense array, to the last bit."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from aucforest import AUCForestClassifier, AUCTreeClassifier, _memory
from aucforest.inspection import explain, oob_permutation_importance
from aucforest.tables import sparse
from aucforest.tables.sparse import SparseRows

FORMATS = [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array, sp.coo_array]


def make(n_rows=400, n_features=30, dtype=np.float64, density=0.1):
    """Return a sparse matrix with missing values, stored zeros and negative values, the same dense, and labels."""
    random = np.random.default_rng(0)
    X = sp.random(n_rows, n_features, density, random_state=0, format="csr", dtype=np.float64).astype(dtype)
    X.data = np.round(X.data, 2)
    X.data[::17], X.data[::19] = np.nan, 0.0
    X.data[::5] *= -1
    dense = X.toarray()
    y = np.nan_to_num(dense)[:, :8].sum(axis=1) + 0.2 * random.normal(size=n_rows) > 0.3
    return X, dense, y.astype(int)


OPTIONS = [
    {},
    {"max_bins": None},
    {"oob_score": True, "threshold": "gmean", "sampling": "balanced"},
    {"dtype": np.float32},
    {"sample_weight": 1.5 * np.random.default_rng(1).integers(0, 3, 1500)},
]


@pytest.mark.parametrize(
    ("form", "density", "options"),
    [
        *((form, 0.1, {}) for form in FORMATS),
        *((sp.csr_matrix, density, options) for density in (0.1, 0.04) for options in OPTIONS),
    ],
)
def test_a_forest_is_that_of_the_dense_rows(form, density, options):
    """Also where few values are stored, so that only these have codes."""
    options = dict(options)
    X, dense, y = make(1500, 60, options.pop("dtype", np.float64), density)
    assert SparseRows(X).is_very_sparse == (density < 0.1)
    y[:40] = 1 if "threshold" in options else 2
    weight = options.pop("sample_weight", None)
    expected = AUCForestClassifier(20, random_state=0, n_jobs=2, **options).fit(dense, y, weight)
    forest = AUCForestClassifier(20, random_state=0, **options).fit(form(X), y, weight)
    for rows in (slice(None), slice(2)):
        np.testing.assert_array_equal(forest.predict_proba(form(X[rows])), expected.predict_proba(dense[rows]))
        np.testing.assert_array_equal(forest.predict(form(X[rows])), expected.predict(dense[rows]))
    np.testing.assert_array_equal(forest.apply(form(X)), expected.apply(dense))
    assert (forest.decision_path(form(X))[0] != expected.decision_path(dense)[0]).nnz == 0
    assert getattr(forest, "oob_score_", None) == getattr(expected, "oob_score_", None)
    assert forest.threshold_ == expected.threshold_


def test_blocks_do_not_change_the_result(monkeypatch):
    X, dense, y = make()
    expected = AUCForestClassifier(5, random_state=0).fit(dense, y)
    monkeypatch.setattr(sparse, "_BLOCK_CELLS", 1000)
    forest = AUCForestClassifier(5, random_state=0).fit(X, y)
    assert len(list(SparseRows(X).columns(None))) == 15
    np.testing.assert_array_equal(forest.predict_proba(X), expected.predict_proba(dense))


@given(st.data())
@settings(max_examples=20)
def test_unsorted_and_repeated_entries_are_sums(data):
    """The matrix of the caller stays as it is."""
    n = data.draw(st.integers(5, 30))
    entry = st.tuples(st.integers(0, n - 1), st.integers(0, 3), st.integers(-2, 2))
    rows, columns, values = zip(*data.draw(st.lists(entry, min_size=1, max_size=60)))
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=n)))).astype(np.int64)
    order = np.argsort(rows, kind="stable")
    X = sp.csr_matrix((np.array(values)[order], np.array(columns, dtype=np.int64)[order], starts), shape=(n, 4))
    before = X.data.copy(), X.indices.copy()
    y = np.arange(n) % 2
    forest = AUCForestClassifier(3, random_state=0, shrinkage=0.0).fit(X, y)
    np.testing.assert_array_equal(X.data, before[0])
    np.testing.assert_array_equal(X.indices, before[1])
    dense = X.toarray()
    expected = AUCForestClassifier(3, random_state=0, shrinkage=0.0).fit(dense, y)
    np.testing.assert_array_equal(forest.predict_proba(X), expected.predict_proba(dense))


def test_parts_of_an_entry_are_added_as_in_a_dense_array():
    parts = np.array([0.1, 0.7, 0.2, 1e16, 1.0, -1e16, 5.0])
    X = sp.csr_matrix((parts, np.array([1, 1, 1, 0, 0, 0, 1]), np.array([0, 6, 7])), shape=(2, 50))
    rows = SparseRows(X)
    np.testing.assert_array_equal(rows.toarray(), X.toarray())
    assert (rows.matrix.nnz, X.nnz) == (3, 7)


def test_blocks_of_rows_are_dense_one_after_another(monkeypatch):
    X, dense, _ = make()
    monkeypatch.setattr(sparse, "_CACHED_CELLS", 1)
    rows, found = SparseRows(X), np.zeros((300, 30))
    blocks = [(some, block.copy()) for some, block in rows.blocks(slice(50, 350))]
    assert len(blocks) == 10
    for some, block in blocks:
        found[some.start - 50 : some.stop - 50] = block
    np.testing.assert_array_equal(found, dense[50:350])
    np.testing.assert_array_equal(rows.take(np.array([3, 1])).toarray(), dense[[3, 1]])


@pytest.mark.filterwarnings("ignore:.* no out-of-bag probability")
def test_a_fit_and_predictions_take_memory_for_the_stored_values_only():
    random, n_rows, n_features = np.random.default_rng(0), 20_000, 3_000
    X = sp.random(n_rows, n_features, 0.004, random_state=0, format="csr")
    y = (X[:, :400].sum(axis=1).A1 + 0.3 * random.random(n_rows) > 1.1).astype(int)
    stored = X.data.nbytes + X.indices.nbytes
    options = {"max_depth": 3, "random_state": 0, "max_samples": 200, "shrinkage": 0.0, "criterion": "auc"}
    forest = AUCForestClassifier(2, **options).fit(X[:500], y[:500])
    fixed = 240 * n_rows + 200 * n_features  # labels, samples and nodes
    scored = AUCForestClassifier(2, oob_score=True, **options)
    for step in (lambda: forest.fit(X, y), lambda: forest.predict_proba(X), lambda: scored.fit(X, y)):
        tracemalloc.start()
        step()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3 * stored + fixed < n_rows * n_features / 2, (peak, stored, fixed)


def test_inspection_of_sparse_rows():
    X, dense, y = make()
    forest = AUCForestClassifier(50, random_state=0).fit(X, y)
    np.testing.assert_array_equal(explain(forest, X).values, explain(forest, dense).values)
    options = {"n_repeats": 1, "random_state": 0}
    found, expected = (oob_permutation_importance(forest, rows, y, **options) for rows in (X, dense))
    np.testing.assert_array_equal(found.importances, expected.importances)
    encoded = forest.encode(X)
    assert sp.issparse(encoded)
    assert (encoded.dtype, forest.encode(X, dtype="float32").dtype) == (np.float64, np.float32)


def test_pipelines_of_scikit_learn():
    words = ["good fine day", "bad grim night", "fine sun", "grim rain night"] * 25
    y = np.array(["up", "down", "up", "down"] * 25)
    model = make_pipeline(TfidfVectorizer(), AUCForestClassifier(20, random_state=0)).fit(words, y)
    assert np.mean(model.predict(words) == y) == 1.0
    table = pd.DataFrame({"a": [word.split()[0] for word in words], "b": np.arange(100) % 7})
    model = make_pipeline(OneHotEncoder(), AUCForestClassifier(20, random_state=0)).fit(table, y)
    assert np.mean(model.predict(table) == y) == 1.0


def test_sparse_matrices_that_are_refused(monkeypatch):
    X, dense, y = make()
    with pytest.raises(ValueError, match=r"^X is sparse, but categorical features need a dense X or a table"):
        AUCForestClassifier(5, categorical_features=[0]).fit(X, y)
    codes = np.nan_to_num(dense)
    forest = AUCForestClassifier(5, categorical_features=[0]).fit(codes, y)
    with pytest.raises(ValueError, match=r"^X is sparse, but categorical features need a dense X or a table"):
        forest.predict(X)
    with pytest.raises(ValueError, match=r"^X has 29 features, but AUCForestClassifier is expecting 30"):
        AUCForestClassifier(5).fit(X, y).predict(X[:, :29])
    monkeypatch.setattr("aucforest._memory.machine_memory", lambda: 10_000)
    with pytest.raises(ValueError, match=r"400 samples, 30 features .* would take about .* memory"):
        AUCForestClassifier(5).fit(X, y)
    with pytest.raises(ValueError, match=r"^a dense copy of the sparse X, 400 samples and 30 features, would take"):
        SparseRows(X).toarray()


def test_empty_columns_and_whole_numbers():
    X, dense, y = make()
    counts, signs = X.copy(), np.sign(np.nan_to_num(dense)).astype(int)
    counts.data = np.sign(np.nan_to_num(counts.data))
    empty = sp.hstack([sp.csr_matrix((400, 2)), counts.astype(np.int32)]).tocsr()
    forest = AUCForestClassifier(10, random_state=0).fit(empty, y)
    expected = AUCForestClassifier(10, random_state=0).fit(np.column_stack([np.zeros((400, 2), int), signs]), y)
    np.testing.assert_array_equal(forest.predict_proba(empty), expected.predict_proba(empty.toarray()))
    assert AUCForestClassifier(3).fit(empty.astype(bool), y).predict(empty.astype(bool)).shape == (400,)
    for stranger in (sp.coo_array(y), sp.csr_array(y), sp.coo_array(np.zeros((3, 4, 5)))):
        with pytest.raises(ValueError, match=r"^Expected 2D input, but X is a sparse array of the shape \("):
            AUCForestClassifier(3).fit(stranger, y)
    with pytest.raises(ValueError, match=r"^Complex data not supported: X and y must be real$"):
        AUCForestClassifier(3).fit(X.astype(complex), y)


def test_values_beyond_float32_are_kept():
    X, dense, y = make()
    X, dense = X * 1e300, dense * 1e300
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forest = AUCForestClassifier(30, random_state=0).fit(X, y)
    expected = AUCForestClassifier(30, random_state=0).fit(dense, y)
    np.testing.assert_array_equal(forest.predict_proba(X), expected.predict_proba(dense))


@pytest.mark.parametrize("n_features", [3 * 10**8, 2**31 + 10, 2**40])
def test_features_that_do_not_fit_are_refused_before_anything_of_their_number_is_made(n_features, monkeypatch):
    monkeypatch.setattr(_memory, "machine_memory", lambda: 2.0**34)
    X = sp.csr_array(
        (np.ones(200), np.arange(200, dtype=np.int64) * 1000, np.arange(201, dtype=np.int64)), (200, n_features)
    )
    tracemalloc.start()
    with pytest.raises(
        ValueError, match=f"200 samples, {n_features:,} features .* select fewer features, or pass fewer"
    ):
        AUCForestClassifier(5).fit(X, np.arange(200) % 2)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def test_a_tree_is_that_of_the_dense_rows():
    X, dense, y = make()
    tree, expected = (AUCTreeClassifier(random_state=0).fit(rows, y) for rows in (X, dense))
    np.testing.assert_array_equal(tree.predict_proba(X), expected.predict_proba(dense))

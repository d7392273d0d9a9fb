"""Sparse matrices give bit for bit the same trees and predictions as dense arrays."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from aucforest import AUCForestClassifier, _memory
from aucforest.columns import sparse
from aucforest.columns.sparse import SparseRows
from tests.memory import peak_below

FORMATS = [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array, sp.coo_array]


def make(n_rows=400, n_features=30, dtype=np.float64, density=0.1, factor=1):
    """Return a sparse matrix with missing values, stored zeros and negative values, its dense array, and labels."""
    random = np.random.default_rng(0)
    X = sp.random(n_rows, n_features, density, random_state=0, format="csr", dtype=np.float64).astype(dtype)
    X.data = np.round(X.data, 2)
    X.data[::17], X.data[::19] = np.nan, 0.0
    X.data[::5] *= -1
    dense = X.toarray()
    y = np.nan_to_num(dense)[:, :8].sum(axis=1) + 0.2 * random.normal(size=n_rows) > 0.3
    return X * factor, dense * factor, y.astype(int)


OPTIONS = [
    {},
    {"max_bins": None},
    {"oob_score": True, "threshold": "gmean", "sampling": "balanced"},
    {"dtype": np.float32},
    {"factor": 1e300},  # values beyond float32
    {"sample_weight": 1.5 * np.random.default_rng(1).integers(0, 3, 1500)},
]


@pytest.mark.parametrize(("form", "density", "options"), [
    *((form, 0.1, {}) for form in FORMATS),
    *((sp.csr_matrix, density, options) for density in (0.1, 0.04) for options in OPTIONS),
])  # fmt: skip
def test_a_forest_is_that_of_the_dense_rows(form, density, options):
    """If few values are stored, only these have codes."""
    options = dict(options)
    X, dense, y = make(1500, 60, options.pop("dtype", np.float64), density, options.pop("factor", 1))
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


def test_codes_are_sparse_and_of_the_given_type():
    X, _, y = make()
    forest = AUCForestClassifier(5, random_state=0).fit(X, y)
    found = [forest.encode(X), forest.encode(X, dtype="float32")]
    assert [(sp.issparse(codes), codes.dtype) for codes in found] == [(True, np.float64), (True, np.float32)]


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
    """The rounded sum depends on the order, which is that of a dense array. The caller's matrix does not change."""
    n, parts = data.draw(st.integers(5, 30)), st.sampled_from([-2.0, 0.0, 0.1, 0.2, 0.7, 1e16, -1e16])
    entry = st.tuples(st.integers(0, n - 1), st.integers(0, 3), parts)
    rows, columns, values = zip(*data.draw(st.lists(entry, min_size=1, max_size=60)))
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=n)))).astype(np.int64)
    order = np.argsort(rows, kind="stable")
    X = sp.csr_matrix((np.array(values)[order], np.array(columns, dtype=np.int64)[order], starts), shape=(n, 4))
    before, dense = X.copy(), X.toarray()
    assert SparseRows(X).matrix.has_canonical_format
    np.testing.assert_array_equal(SparseRows(X).toarray(), dense)
    forest, expected = (
        AUCForestClassifier(3, random_state=0, shrinkage=0.0).fit(each, np.arange(n) % 2) for each in (X, dense)
    )
    np.testing.assert_array_equal(X.data, before.data)
    np.testing.assert_array_equal(X.indices, before.indices)
    np.testing.assert_array_equal(forest.predict_proba(X), expected.predict_proba(dense))


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
    assert 3 * stored + fixed < n_rows * n_features / 2
    scored = AUCForestClassifier(2, oob_score=True, **options)
    for step in (lambda: forest.fit(X, y), lambda: forest.predict_proba(X), lambda: scored.fit(X, y)):
        with peak_below(3 * stored + fixed):
            step()


def test_sparse_matrices_that_are_refused(monkeypatch):
    X, dense, y = make()
    forest = AUCForestClassifier(5, categorical_features=[0]).fit(np.nan_to_num(dense), y)
    for step in (forest.predict, lambda rows: forest.fit(rows, y)):
        with pytest.raises(ValueError, match=r"^X is sparse, but categorical features need a dense X or a table"):
            step(X)
    with pytest.raises(ValueError, match=r"^X has 29 features, but AUCForestClassifier is expecting 30"):
        AUCForestClassifier(5).fit(X, y).predict(X[:, :29])
    for stranger in (sp.coo_array(y), sp.csr_array(y), sp.coo_array(np.zeros((3, 4, 5)))):
        with pytest.raises(ValueError, match=r"^Expected 2D input, but X is a sparse array of the shape \("):
            AUCForestClassifier(3).fit(stranger, y)
    with pytest.raises(ValueError, match=r"^Complex data not supported: X and y must be real$"):
        AUCForestClassifier(3).fit(X.astype(complex), y)
    monkeypatch.setattr("aucforest._memory.machine_memory", lambda: 10_000)
    with pytest.raises(ValueError, match=r"400 samples, 30 features .* would take about .* memory"):
        AUCForestClassifier(5).fit(X, y)
    with pytest.raises(ValueError, match=r"^a dense copy of the sparse X, 400 samples and 30 features, would take"):
        SparseRows(X).toarray()


def test_empty_columns_and_whole_numbers():
    X, _, y = make()
    X.data = np.sign(np.nan_to_num(X.data))
    empty = sp.hstack([sp.csr_matrix((400, 2)), X.astype(np.int32)]).tocsr()
    for rows in (empty, empty.astype(bool)):
        forest, expected = (AUCForestClassifier(10, random_state=0).fit(each, y) for each in (rows, rows.toarray()))
        np.testing.assert_array_equal(forest.predict_proba(rows), expected.predict_proba(rows.toarray()))


@pytest.mark.parametrize("n_features", [3 * 10**8, 2**31 + 10, 2**40])
def test_features_that_do_not_fit_are_refused_before_anything_of_their_number_is_made(n_features, monkeypatch):
    monkeypatch.setattr(_memory, "machine_memory", lambda: 2.0**34)
    X = sp.csr_array((np.ones(200), 1000 * np.arange(200), np.arange(201)), (200, n_features))
    sentence = f"200 samples, {n_features:,} features .* select fewer features, or pass fewer"
    with peak_below(2**24), pytest.raises(ValueError, match=sentence):
        AUCForestClassifier(5).fit(X, np.arange(200) % 2)

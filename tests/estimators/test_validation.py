"""Sparse matrices give the trees and predictions of the same rows as a dense array, to the last bit."""

import tracemalloc
import warnings
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import aucforest
from aucforest import AUCForestClassifier, AUCTreeClassifier, LinearAUCClassifier, _memory
from aucforest.distributed import fit_out_of_core, predict_out_of_core
from aucforest.estimators._model_files import ModelFormatError
from aucforest.fitting.coding import TIME_BINS
from aucforest.inspection import explain, export_text, forest_summary, oob_permutation_importance
from aucforest.persistence.model_file import write_model
from aucforest.report import report
from aucforest.tables import sparse
from aucforest.tables.sparse import SparseRows

FORMATS = [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array, sp.coo_array]


def make(n_rows=400, n_features=30, dtype=np.float64):
    """Return a sparse matrix with missing values, stored zeros and negative values, the same dense, and labels."""
    random = np.random.default_rng(0)
    X = sp.random(n_rows, n_features, 0.1, random_state=0, format="csr", dtype=np.float64).astype(dtype)
    X.data = np.round(X.data, 2)
    X.data[::17], X.data[::19] = np.nan, 0.0
    X.data[::5] *= -1
    dense = X.toarray()
    y = np.nan_to_num(dense)[:, :8].sum(axis=1) + 0.2 * random.normal(size=n_rows) > 0.3
    return X, dense, y.astype(int)


OPTIONS = {
    "defaults": {},
    "exact": {"max_bins": None},
    "out of bag": {"oob_score": True, "threshold": "gmean", "sampling": "balanced"},
    "float32": {"dtype": np.float32},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("form", FORMATS)
def test_a_forest_is_that_of_the_dense_rows(form, options):
    options = dict(options)
    X, dense, y = make(dtype=options.pop("dtype", np.float64))
    expected = AUCForestClassifier(15, random_state=0, n_jobs=2, **options).fit(dense, y)
    forest = AUCForestClassifier(15, random_state=0, **options).fit(form(X), y)
    for rows in (slice(None), slice(2)):
        np.testing.assert_array_equal(forest.predict_proba(form(X[rows])), expected.predict_proba(dense[rows]))
        np.testing.assert_array_equal(forest.predict(form(X[rows])), expected.predict(dense[rows]))
    np.testing.assert_array_equal(forest.apply(form(X)), expected.apply(dense))
    assert (forest.decision_path(form(X))[0] != expected.decision_path(dense)[0]).nnz == 0
    assert getattr(forest, "oob_score_", None) == getattr(expected, "oob_score_", None)
    assert forest.threshold_ == expected.threshold_


def test_weights_and_rows_without_weight():
    X, dense, y = make()
    weight = 1.5 * np.random.default_rng(1).integers(0, 3, len(y))
    forest, expected = (AUCForestClassifier(15, random_state=0).fit(rows, y, weight) for rows in (X, dense))
    np.testing.assert_array_equal(forest.predict_proba(X), expected.predict_proba(dense))


def test_a_tree_is_that_of_the_dense_rows():
    X, dense, y = make()
    tree, expected = (AUCTreeClassifier(random_state=0).fit(rows, y) for rows in (X, dense))
    np.testing.assert_array_equal(tree.predict_proba(X), expected.predict_proba(dense))


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


def test_inspection_of_sparse_rows():
    X, dense, y = make()
    forest = AUCForestClassifier(50, random_state=0).fit(X, y)
    np.testing.assert_array_equal(explain(forest, X).values, explain(forest, dense).values)
    options = {"n_repeats": 1, "random_state": 0}
    found, expected = (oob_permutation_importance(forest, rows, y, **options) for rows in (X, dense))
    np.testing.assert_array_equal(found.importances, expected.importances)
    encoded = forest.encode(X)
    assert sp.issparse(encoded)
    assert encoded.dtype == np.float32


def test_pipelines_of_scikit_learn():
    words = ["good fine day", "bad grim night", "fine sun", "grim rain night"] * 25
    y = np.array(["up", "down", "up", "down"] * 25)
    model = make_pipeline(TfidfVectorizer(), AUCForestClassifier(20, random_state=0)).fit(words, y)
    assert np.mean(model.predict(words) == y) == 1.0
    table = pd.DataFrame({"a": [word.split()[0] for word in words], "b": np.arange(100) % 7})
    model = make_pipeline(OneHotEncoder(), AUCForestClassifier(20, random_state=0)).fit(table, y)
    assert np.mean(model.predict(table) == y) == 1.0


def test_refusals(monkeypatch):
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
    with pytest.raises(ValueError, match="Expected 2"):
        AUCForestClassifier(3).fit(sp.coo_array(y), y)


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


N_ROWS = 300
NAMES = ["amount", "booked: time", "site", "waited: seconds", "booked: month", "booked: day of week", "booked: hour"]


def make_frame(seed=0):
    """Return a frame with dates, durations and missing values, and labels that depend on the day of the week."""
    random = np.random.default_rng(seed)
    minutes = random.integers(0, 365 * 24 * 60, N_ROWS)
    frame = pd.DataFrame(
        {
            "amount": random.normal(size=N_ROWS),
            "booked": np.datetime64("2024-01-01", "us") + minutes.astype("m8[m]"),
            "site": pd.Categorical(random.choice(list("xyz"), N_ROWS)),
            "waited": random.integers(0, 1000, N_ROWS).astype("m8[s]"),
        }
    )
    y = (frame["booked"].dt.day_of_week >= 5).to_numpy()
    frame.loc[::17, "booked"] = pd.NaT
    return frame, y


X, Y = make_frame()
ARROW = pa.Table.from_pandas(X, preserve_index=False)


def forest_of(table=X, n_estimators=20, **params):
    return AUCForestClassifier(n_estimators, random_state=0, **params).fit(table, Y)


FOREST = forest_of()
PROBA = FOREST.predict_proba(X)


def test_columns_and_features():
    """The names of scikit-learn are those of columns; trees see more features."""
    assert FOREST.n_features_in_ == 4
    assert FOREST.feature_names_in_.tolist() == X.columns.tolist()
    assert FOREST.split_features_.tolist() == NAMES
    assert FOREST.feature_importances_.shape == (7,)
    assert NAMES[int(FOREST.feature_importances_.argmax())] == "booked: day of week"
    assert FOREST[0].predict_proba(X).shape == (N_ROWS, 2)
    assert AUCTreeClassifier().fit(X, Y).split_features_.tolist() == NAMES
    assert FOREST.encode(X).columns.tolist() == NAMES
    assert FOREST.to_sklearn().feature_names_in_.tolist() == NAMES


def test_all_forms_grow_the_same_forest(tmp_path):
    pyarrow.parquet.write_table(ARROW.append_column("y", pa.array(Y)), tmp_path / "rows.parquet")
    others = [
        forest_of(pl.DataFrame(ARROW)),
        forest_of(ARROW),
        forest_of(X.assign(booked=X["booked"].astype(object))),
        fit_out_of_core(AUCForestClassifier(20, random_state=0), tmp_path / "rows.parquet", "y"),
    ]
    for other in others:
        np.testing.assert_array_equal(other.predict_proba(X), PROBA)
        assert other.dates_ == FOREST.dates_
    for rows in (pl.DataFrame(ARROW), ARROW, ARROW.to_pandas(types_mapper=pd.ArrowDtype)):
        np.testing.assert_array_equal(FOREST.predict_proba(rows), PROBA)
    batches = predict_out_of_core(FOREST, tmp_path / "rows.parquet", proba=True)
    np.testing.assert_array_equal(pa.Table.from_batches(batches).to_pandas().to_numpy(), PROBA)


def test_parts_are_as_good_as_columns_made_by_hand():
    """The same values in the same order give the same forest."""
    booked = X["booked"].dt
    by_hand = pd.DataFrame({"month": booked.month, "amount": X["amount"], "weekday": booked.day_of_week})
    dated = forest_of(X[["booked", "amount"]], date_parts=["month", "day of week"])
    np.testing.assert_array_equal(
        dated.predict_proba(X[["booked", "amount"]]), forest_of(by_hand).predict_proba(by_hand)
    )


def test_model_files(tmp_path):
    FOREST.save(tmp_path / "forest")
    loaded = aucforest.load(tmp_path / "forest")
    assert loaded.dates_ == FOREST.dates_
    np.testing.assert_array_equal(loaded.predict_proba(ARROW), PROBA)


@pytest.mark.parametrize(
    ("dates", "sentence"),
    [
        ([[1, ["time"]]], "dates are not of columns"),
        ([[9, ["time"], None]], "there are dates in feature 9, which is none or of another kind"),
        ([[2, ["time"], None]], "there are dates in feature 2, which is none or of another kind"),
        ([[1, ["month", "time"], None]], "the parts of dates are unknown"),
        ([[1, ["time"], "../etc"]], "the zone of dates is unknown"),
    ],
)
def test_hostile_model_files(tmp_path, dates, sentence):
    def write(path, arrays, metadata):
        write_model(path, arrays, metadata | {"dates": dates})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aucforest.estimators._model_files.write_model", write)
        FOREST.save(tmp_path / "forest")
    with pytest.raises(ModelFormatError, match=sentence):
        aucforest.load(tmp_path / "forest")


NUMERIC = AUCForestClassifier(2, random_state=0).fit(X[["amount"]], Y)
DAY = date(2024, 2, 29)


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame({"amount": X["booked"]}),
        pd.DataFrame({"amount": [DAY]}, dtype=object),
        pl.DataFrame({"amount": [DAY]}),
        pa.table({"amount": pa.array([DAY], pa.date32())}),
        pa.table({"amount": pa.array([DAY], pa.date64())}),
        pa.table({"amount": pa.array([5], pa.duration("s"))}),
    ],
)
def test_dates_in_a_numeric_column(rows):
    with pytest.raises(ValueError, match=r"^X: column 'amount' holds dates \(.*\), but was numeric in fit$"):
        NUMERIC.predict_proba(rows)


def test_numbers_in_a_column_of_dates():
    for rows in (X.assign(booked=3.5), pl.DataFrame(ARROW).with_columns(booked=pl.lit(3.5))):
        with pytest.raises(
            ValueError, match=r"^X: column 'booked' had dates in fit, but holds Float64 now: pass dates"
        ):
            FOREST.predict_proba(rows)


def test_dates_can_be_refused():
    with pytest.raises(ValueError, match=r"^X: column 'booked' is not numeric but datetime64\[us\]; encode dates"):
        forest_of(date_parts=None)
    with pytest.raises(ValueError, match=r"'date_parts' .* must be 'auto', a list of 'time', 'year', .* or None"):
        forest_of(date_parts=["week"])
    for table in (X[["booked"]], ARROW.select(["booked"]), pl.DataFrame({"d": [DAY] * N_ROWS})):
        with pytest.raises(
            ValueError, match=r"^X: column '.*' is not numeric but .*; encode dates and times as numbers"
        ):
            LinearAUCClassifier().fit(table, Y)


def test_warm_start_needs_the_same_dates():
    model = forest_of(warm_start=True).set_params(n_estimators=22)
    with pytest.raises(ValueError, match=r"^warm_start: the dates of column 1 differ in kind or zone"):
        model.fit(X.assign(booked=X["booked"].dt.tz_localize("Asia/Tokyo")), Y)
    np.testing.assert_array_equal(model.fit(X, Y).predict_proba(X), forest_of(n_estimators=22).predict_proba(X))


def test_a_monotonic_constraint_is_one_of_the_time():
    rises = AUCForestClassifier(8, monotonic_cst={"booked": 1}, random_state=0)
    X_time = X[["booked"]].assign(noise=X["amount"])
    y = X["booked"].dt.day_of_year.to_numpy() + 40 * X["amount"].to_numpy() > 180
    model = rises.set_params(date_parts=["time"]).fit(X_time, y)
    days = pd.DataFrame({"booked": pd.date_range("2024-01-01", "2024-12-31", 50), "noise": 0.0})
    assert np.all(np.diff(model.predict_proba(days)[:, 1]) >= 0)
    with pytest.raises(ValueError, match=r"^monotonic_cst of column 0 must be 0, because date_parts has no time$"):
        rises.set_params(date_parts=["month"]).fit(X_time, y)


def test_times_have_few_thresholds():
    """Single days cannot be learned, unless every value is asked for."""
    thresholds = {}
    for max_bins in (255, None):
        options = {"date_parts": ["time"], "splitter": "best", "criterion": "gini"}
        forest = forest_of(X[["booked"]], max_bins=max_bins, **options)
        found = np.concatenate([tree.threshold[tree.feature == 0] for tree in forest.trees_])
        thresholds[max_bins] = np.unique(found[np.isfinite(found)])
    assert 16 < len(thresholds[255]) < TIME_BINS
    assert len(thresholds[None]) > 2 * TIME_BINS


def test_an_explicit_category_is_not_expanded():
    model = forest_of(X[["amount", "booked"]], categorical_features=["booked"])
    assert list(model.categories_) == [1]
    assert model.dates_ == {}
    model.predict_proba(X[["amount", "booked"]])


def test_names_of_features():
    explanation = explain(FOREST, X[:40])
    assert list(explanation.feature_names) == NAMES
    reasons = [reason for row in explanation.top(7) for reason in row]
    times = {str(reason.value) for reason in reasons if reason.feature == "booked: time" and reason.value}
    assert times <= {str(moment) for moment in X["booked"].dt.floor("s")}
    assert list(forest_summary(FOREST).feature_names) == NAMES
    assert list(oob_permutation_importance(FOREST, X, Y, n_repeats=1).feature_names) == NAMES
    text = export_text(AUCTreeClassifier(random_state=0, date_parts=["time"]).fit(X[["booked"]], Y))
    assert "|--- booked: time <= 2024-" in text


def test_reports():
    """What they take of columns is the same in every form, see tests/report/test_rows.py."""
    rows = pl.DataFrame(ARROW)
    page = report(FOREST, rows, Y, X_train=rows, y_train=Y, n_repeats=1).html
    assert "booked: day of week" in page
    assert "2024-12-" in page

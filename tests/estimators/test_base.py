"""Data and parameters that the tree and the forest accept or refuse, and fits that fail."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from aucforest import load
from aucforest.estimators import _prediction
from aucforest.fitting import in_memory
from tests.estimators.data import both, digest, make_table, refuse, small_forest
from tests.memory import peak_below

X, Y = make_table(missing=0.1)
ONES = np.ones(len(Y))
NAMES = list("abcde")
ROWS, ROW_LABELS = make_table(n_rows=400)
MANY = np.random.default_rng(0).permutation(np.arange(400) % 100)
LABELS = {
    "bool": ([False, True, True], bool), "int": ([-7, 0, 3], np.int64), "uint8": ([1, 2, 255], np.uint8),
    "float": ([-1.0, 0.0, 2.0], np.float64), "str": (["a", "b", "longer"], np.str_),
    "object": (["a", "b", "longer"], object),
}  # fmt: skip


def with_value(values, at, value):
    values = values.copy()
    values[at] = value
    return values


def frame(**columns):
    return pd.DataFrame(X, columns=NAMES).assign(**columns)


WORDS = ["low", "high"] * (len(X) // 2)

BAD_TABLES = {
    "three dimensions": (X[None], ValueError, "Found array with dim 3, while dim <= 2 is required"),
    "strings": (np.c_[X.astype(object), WORDS], ValueError, "^X: column 5 is not numeric .*'low'.*encode it"),
    "a list of strings": ([["x"]] * len(X), ValueError, "^X: column 0 is not numeric .*'x'"),
    "objects": (np.full((len(X), 1), {}), TypeError, "^X: column 0 has a dict in row 0: the argument"),
    "pandas Series": (frame()["a"], ValueError, r"^X must have two dimensions but is a pandas Series: .* X.to_frame"),
    "polars Series": (pl.Series("a", X[:, 0]), ValueError, "^X must have two dimensions but is a polars Series: "),
    "lazy frame": (pl.LazyFrame(X), TypeError, r"^X is a polars LazyFrame, .*: pass X.collect\(\)$"),
    "duplicate columns": (frame().set_axis(list("abcba"), axis=1), ValueError, "^X has 2 columns named 'a'"),
    "pandas objects": (frame(c=[pd.NA, b"0", {0}] * 80), TypeError, "^X: column 'c' has a set in row 2"),
    "pandas periods": (frame(d=pd.Period("2024", "Y")), TypeError, "^X: column 'd' is not numeric .*'Period'"),
}

NO_ORDER = "^y has labels that cannot be sorted, such as numbers and strings, or a missing label$"
BYTES = "^y has bytes as labels, such as b'(yes|no)': decode them to str$"

BAD_LABELS = {
    "one class": (np.zeros(240), ValueError, "^y has only one class, 0.0; a classifier needs at least 2 classes$"),
    "short": (Y[:-1], ValueError, r"inconsistent numbers of samples: \[240, 239\]"),
    "two columns": (np.c_[Y, Y], ValueError, r"y should be a 1d array, got an array of shape \(240, 2\) instead"),
    "NaN": (with_value(Y.astype(float), 3, np.nan), ValueError, "Input y contains NaN"),
    "None": (np.array(["no", None] * 120, dtype=object), TypeError, NO_ORDER),
    "polars null": (pl.Series(["no", None] * 120), TypeError, NO_ORDER),
    "pandas NA": (pd.Series([0, None] * 120, dtype="Int64"), ValueError, "Input y contains NaN"),
    "mixed": (np.array(["no", 1] * 120, dtype=object), TypeError, NO_ORDER),
    "bytes": (np.where(Y == 1, b"yes", b"no"), TypeError, BYTES),
    "complex": (Y + 1j, ValueError, "^Complex data not supported: X and y must be real$"),
    "none": (None, ValueError, "requires y to be passed, but the target y is None"),
    "many": (np.resize(np.arange(70_000), 140_000), ValueError, "^y has 70000 classes, more than the 65535 supported$"),
}

RANGE = r"^sample_weight times class_weight must be 0, or from 1e-100 to 1e\+100, but is "
GREATEST = r"^sample_weight: the greatest must be from 1e-100 to 1e\+100 \(or all are 0\), but is "

BAD_WEIGHTS = {
    "short": (ONES[:-1], r"sample_weight.shape == \(239,\), expected \(240,\)"),
    "negative": (with_value(ONES, 3, -0.5), "Negative values in data passed to `sample_weight`"),
    "NaN": (with_value(ONES, 3, np.nan), "Input sample_weight contains NaN"),
    "one class": (Y == 1, "^y has only one class, 1; a classifier needs at least 2 classes$"),
    "tiny": (with_value(ONES, 3, 1e-300), RANGE + "1e-300 for a row$"),
    "huge": (with_value(ONES, 3, 1e300), GREATEST + r"1e\+300$"), "all tiny": (1e-120 * ONES, GREATEST + "1e-120$"),
}  # fmt: skip

BAD_PARAMS = [
    ("criterion", "mse", r"must be a str among .*'hellinger'.* Got 'mse' instead"),
    ("max_features", 0, r"an int in the range \[1, inf\).* Got 0 instead"),
    ("max_depth", 0, r"an int in the range \[1, inf\) or None. Got 0 instead"),
    ("min_samples_split", 1, r"an int in the range \[2, inf\).* Got 1 instead"),
    ("min_samples_leaf", 1.0, r"a float in the range \(0.0, 1.0\). Got 1.0 instead"),
    ("min_weight_fraction_leaf", 0.6, r"a float in the range \[0.0, 0.5\]. Got 0.6 instead"),
    ("min_gain", -0.1, r"a float in the range \[0.0, inf\). Got -0.1 instead"),
    ("max_bins", 1, r"an int in the range \[2, 255\] or None. Got 1 instead"),
    ("max_bins", 256, r"an int in the range \[2, 255\] or None. Got 256 instead"),
    ("random_state", "x", "Got 'x' instead"), ("class_weight", "heavy", "Got 'heavy' instead"),
    ("class_weight", {0: 0, 1: 1}, "^class_weight of class 0 must be positive and finite, but is 0.0$"),
    ("class_weight", {0: 1, 1: np.inf}, "^class_weight of class 1 must be positive and finite, but is inf$"),
    ("class_weight", {5: 1}, r"The classes, \[0, 1\], are not in class_weight"),
    ("class_weight", {0: 1e-250, 1: 1}, RANGE + "1e-250 for a row$"),
]  # fmt: skip


def cases(names, named_values):
    return pytest.mark.parametrize(names, named_values.values(), ids=named_values)


@cases("table, error, message", BAD_TABLES)
def test_bad_table(table, error, message):
    refuse(small_forest(), message, table, Y, error=error)


@cases("labels, error, message", BAD_LABELS)
def test_bad_labels(labels, error, message):
    table = X if labels is None or len(labels) < 1000 else np.zeros((len(labels), 1))
    refuse(small_forest(), message, table, labels, error=error)


@cases("weights, message", BAD_WEIGHTS)
def test_bad_weights(weights, message):
    refuse(small_forest(), message, X, Y, sample_weight=weights)


@both
@pytest.mark.parametrize(("name", "value", "message"), BAD_PARAMS)
def test_bad_parameter(make, name, value, message):
    prefix = f"^The '{name}' parameter of .*" if "Got" in message else ""
    refuse(make(**{name: value}), prefix + message, X, Y)


METHODS = ["predict", "predict_proba", "predict_log_proba", "apply", "decision_path"]
FEW = r"^X has 4 features, but AUC\w+Classifier is expecting 5 features as input.$"
BAD_NEW_TABLES = {
    "few columns": (X[:, :4], FEW), "few columns, sparse": (csr_array(X[:, :4]), FEW),
    "no rows": (X[:0], r"0 sample\(s\)"),
    "another name": (frame().rename(columns={"e": "f"}), r"^The feature names should match(.|\n)*- f\n(.|\n)*- e\n"),
    "another order": (frame()[NAMES[::-1]], "must be in the same order as they were in fit"),
    "pandas Series": (frame()["a"], r"^X must have two dimensions but is a pandas Series"),
    "duplicate columns": (frame().rename(columns={"e": "a"}), r"^X has 2 columns named 'a'"),
    "strings": (frame(b=WORDS), r"^X: column 'b' is not numeric"),
    "dates": (frame(b=pd.Timestamp(2024, 2, 29)), r"^X: column 'b' holds dates"),
}  # fmt: skip


@cases("table, message", BAD_NEW_TABLES)
def test_bad_table_at_prediction(table, message):
    model = small_forest().fit(frame() if isinstance(table, pd.DataFrame | pd.Series) else X, Y)
    for method in METHODS:
        with pytest.raises(ValueError, match=message):
            getattr(model, method)(table)


@both
def test_not_fitted(make):
    for method in METHODS:
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            getattr(make(), method)(X)
    assert not hasattr(make(), "feature_importances_")


@both
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_fit_leaves_all_as_it_was(make, error, monkeypatch):
    def fail(*_, **__):
        raise error

    model = make().fit(X, Y)
    before, proba = dict(vars(model)), model.predict_proba(X)
    monkeypatch.setattr(in_memory, "grow_batches", fail)
    with pytest.raises(error):
        model.fit(X[:, :3], Y)
    assert before.items() <= vars(model).items()
    np.testing.assert_array_equal(model.predict_proba(X), proba)
    monkeypatch.undo()
    assert model.fit(X[:, :3], Y).predict(X[:, :3]).shape == Y.shape


@both
def test_a_refit_forgets_the_last(make):
    model = make().fit(frame(), Y)
    model.predict(frame())
    other = X[:, :2] ** 2
    assert not hasattr(model.fit(other, Y > 0), "feature_names_in_")
    np.testing.assert_array_equal(model.predict_proba(other), make().fit(other, Y > 0).predict_proba(other))
    assert model.n_features_in_ == 2
    assert model.classes_.dtype == bool


WIDE = np.zeros((2 * len(X), 2 * X.shape[1]))
WIDE[::2, ::2] = X

NUMBERS = np.nan_to_num(X * 3).clip(0)
SHAPES = {
    "Fortran order": np.asfortranarray(X), "slice": WIDE[::2, ::2], "backwards": X[::-1].copy()[::-1],
    "float32": X.astype(np.float32), "float32 slice": WIDE.astype(np.float32)[::2, ::2],
    "long double": X.astype(np.longdouble), "pandas": frame(), "pandas nullable": frame().astype("Float64"),
    "polars": pl.DataFrame(X, schema=NAMES), "polars null": pl.DataFrame(X, schema=NAMES).fill_nan(None),
    **{str(dtype): NUMBERS.astype(dtype) for dtype in (np.int64, np.uint8, np.float16, bool)},
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_tables_of_every_shape_give_the_same_trees(shape):
    table = SHAPES[shape]
    plain = np.array(table, np.float64, order="C") if isinstance(table, np.ndarray) else X
    expected, model = small_forest().fit(plain, Y), small_forest().fit(table, Y)
    assert digest(model) == digest(expected)
    np.testing.assert_array_equal(model.predict_proba(table), expected.predict_proba(plain))
    np.testing.assert_array_equal(model.apply(table), expected.apply(plain))
    assert list(getattr(model, "feature_names_in_", NAMES)) == NAMES
    assert hasattr(model, "feature_names_in_") == shape.startswith(("pandas", "polars"))


@both
@pytest.mark.parametrize("order", "CF")
def test_float32_is_not_copied(make, order):
    table, model = np.asarray(X, dtype=np.float32, order=order), make()
    assert np.shares_memory(model._validate_rows(table, Y, None).X, table)
    many = np.zeros((200_000, 10), dtype=np.float32, order=order)
    model.fit(np.resize(table, (240, 10)), Y).predict_proba(many[:1])
    with peak_below(many.nbytes):
        model.predict_proba(many)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("box", [np.array, list, pd.Series, pl.Series])
def test_labels_of_every_type(kind, box):
    names, dtype = LABELS[kind]
    codes = make_table(n_classes=3)[1].clip(max=1 if kind == "bool" else 2)
    labels = np.array(names, dtype=dtype)[codes]
    model = small_forest().fit(X, box(labels.tolist() if box is list else labels))
    expected = small_forest().fit(X, codes)
    assert digest(model) == digest(expected)
    assert model.classes_.tolist() == names[: codes.max() + 1]
    assert model.predict(X).tolist() == [names[code] for code in expected.predict(X)]
    assert model.score(X, model.predict(X)) == 1.0


@both
def test_a_table_without_values(make):
    model = make().fit(np.full_like(X, np.nan), Y)
    assert all(tree.n_nodes == 1 for tree in model.trees_)
    np.testing.assert_array_equal(model.feature_importances_, np.zeros(5))


@pytest.mark.filterwarnings("ignore:y has 100 classes")
def test_trees_of_many_classes_store_what_is_not_zero():
    for tree in small_forest(4, shrinkage=2.0).fit(ROWS, MANY).trees_:
        assert isinstance(tree.frequencies, csr_array)
        assert tree.nbytes < tree.value.nbytes / 4
        tree.validate()
    assert isinstance(small_forest(1).fit(ROWS, ROW_LABELS).trees_[0].frequencies, np.ndarray)


def test_predictions_of_some_trees_at_a_time_are_the_same(monkeypatch):
    params = {"shrinkage": 2.0, "oob_score": True, "threshold": "gmean", "sampling": "balanced"}
    forest = small_forest(40, **params).fit(ROWS, ROW_LABELS)
    monkeypatch.setattr(_prediction, "_MOST_PREDICTED", 0)
    monkeypatch.setattr(_prediction, "_PREDICTED_AT_ONCE", forest._n_predicted() // 3)
    parted = small_forest(40, **params).fit(ROWS, ROW_LABELS)
    assert len(list(parted._in_groups())) > 2
    np.testing.assert_array_equal(parted.predict_proba(ROWS), forest.predict_proba(ROWS))
    np.testing.assert_array_equal(parted.oob_decision_function_, forest.oob_decision_function_)
    assert (parted.threshold_, parted.threshold_std_) == (forest.threshold_, forest.threshold_std_)


def test_threads_that_predict_first_at_the_same_time(tmp_path):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(500, 5))
    forest = small_forest(10).fit(table, rng.integers(0, 40, 500))
    expected = forest.predict_proba(table)
    forest.save(tmp_path / "model")
    with ThreadPoolExecutor(4) as threads:
        for _ in range(5):
            model = load(tmp_path / "model")
            for found in threads.map(lambda _, model=model: model.predict_proba(table), range(4)):
                np.testing.assert_array_equal(found, expected)

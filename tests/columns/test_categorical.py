"""Categorical columns: which columns are categorical, their codes, and forests that are fitted to them."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aucforest import AUCForestClassifier, LinearAUCClassifier
from aucforest.columns.categorical import as_table, encode, learn
from tests.estimators.data import both, digest, make_table, refuse, small_forest, small_tree
from tests.memory import peak_below
from tests.reference.tree import walk

X, Y = make_table(missing=0.1)
NAMES = ["ash", "elm", "fir", "oak", "yew"]
KINDS = np.array(NAMES)[np.digitize(X[:, 0], [-1, -0.3, 0.3, 1])].astype(object)
KINDS[::17] = None


def frame(kinds=None):
    """Return a table whose index differs from the numbers of its rows."""
    columns = dict(zip("bcde", X.T[1:]), kind=KINDS if kinds is None else kinds)
    return pd.DataFrame(columns).set_index(np.arange(len(X)) * 3 - 7)


@pytest.mark.parametrize("given", [["kind"], [4], [np.int64(4)], [False] * 4 + [True], np.arange(5) == 4])
def test_names_indices_and_masks_select_the_same_columns(given):
    expected, model = small_tree().fit(frame(), Y), small_tree(categorical_features=given).fit(frame(), Y)
    assert digest(model) == digest(expected)
    if not isinstance(given[0], str):
        table = frame().to_numpy(object)
        assert digest(small_tree(categorical_features=given).fit(table, Y)) == digest(expected)
        np.testing.assert_array_equal(model.apply(frame()), expected.apply(frame()))


@pytest.mark.parametrize(("make", "dtype"), [(small_tree, np.float32), (small_forest, np.int16)])
def test_numeric_columns_can_be_categorical(make, dtype):
    codes = pd.Series(KINDS).map({"ash": 7, "elm": -3, "fir": 40, "oak": 0, "yew": 12}).fillna(99)
    table = np.nan_to_num(np.column_stack([codes, 10 * X[:, 1:]])).astype(dtype)
    model = make(categorical_features=[0]).fit(table, Y)
    assert model.categories_[0].tolist() == [-3, 0, 7, 12, 40, 99]
    assert model.categories_[0].dtype == dtype
    named = pd.DataFrame(table, columns=list("abcde")).astype({"a": object})
    of_names = make(categorical_features=["a"]).fit(named, Y)
    for found in (*(model.predict_proba(table.astype(to)) for to in (float, object)), of_names.predict_proba(named)):
        np.testing.assert_array_equal(found, model.predict_proba(table))


@both
def test_unseen_and_missing_values_go_to_the_missing_side(make):
    model = make().fit(frame(), Y)
    missing, unseen, nan = (model.apply(frame([value] * len(X))) for value in (None, "no such", np.nan))
    np.testing.assert_array_equal(unseen, missing)
    np.testing.assert_array_equal(nan, missing)
    assert np.any(model.apply(frame()) != missing)


@both
def test_decision_paths_with_sets(make):
    model = make().fit(frame(), Y)
    path, first = model.decision_path(frame()), model.trees_[0]
    indicator = path if make is small_tree else path[0]
    assert indicator.shape[0] == len(X)
    for row, codes in enumerate(encode(as_table(frame()), model.categories_)[::7]):
        nodes = indicator[7 * row].indices
        assert sorted(nodes[nodes < first.n_nodes]) == walk(first, codes)


def test_two_categories_are_split_by_a_threshold():
    flags = X[:, 1] > 0
    for values in (np.where(flags, "yes", "no"), flags, np.where(flags, None, "no")):
        model = small_forest().fit(frame(values), Y)
        assert model.categories_.keys() == {4}
        assert all(len(tree.sets) == 0 for tree in model.trees_)
    expected = small_forest().fit(frame(flags.astype(float)), Y)
    assert digest(small_forest().fit(frame(flags), Y)) == digest(expected)
    assert expected.categories_ == {}


def test_members_have_the_categories_of_the_forest():
    forest = small_forest().fit(frame(), Y)
    of_members = np.mean([member.predict_proba(frame()) for member in forest.estimators_], axis=0)
    np.testing.assert_allclose(of_members, forest.predict_proba(frame()))
    assert forest.fit(X, Y).categories_ == {}


def test_categories_of_rows_of_weight_zero_are_ignored():
    numbers = np.repeat(np.arange(300), 3)
    weight = (numbers >= 40).astype(float)
    weight[numbers % 10 == 3] = [1, 0, 0] * 30
    kept, labels = weight > 0, numbers % 2
    for table in (pd.DataFrame({"a": numbers}), pd.DataFrame({"a": numbers.astype(str)})):
        model = small_tree(categorical_features=["a"]).fit(table, labels, weight)
        other = small_tree(categorical_features=["a"]).fit(table[kept], labels[kept])
        assert len(model.categories_[0]) == 264
        np.testing.assert_array_equal(model.categories_[0], other.categories_[0])
        np.testing.assert_array_equal(model.apply(table), other.apply(table))


def test_numeric_columns_beside_categorical_ones():
    columns = {"a": [True, None, False], "b": [1, None, 3], "c": ["x", "y", None], "d": [0.5, None, 2.0]}
    expected = [[1, 1, 0, 0.5], [np.nan, np.nan, 1, np.nan], [0, 3, np.nan, 2]]
    nullable = {"a": "boolean", "b": "Int64", "c": "category", "d": "Float32"}
    pandas, polars = pd.DataFrame(columns), pl.DataFrame(columns)
    for table in (
        pandas.astype(nullable), pandas.convert_dtypes(dtype_backend="pyarrow"), pandas.astype(object),
        polars, polars.to_arrow(), polars.with_columns(pl.col("d").cast(pl.Decimal(9, 1))),
    ):  # fmt: skip
        np.testing.assert_array_equal(learn(as_table(table), [2], None)[0], expected)


def test_warm_start_needs_the_same_categories():
    model = small_forest(n_estimators=3, warm_start=True).fit(frame(), Y)
    model.set_params(n_estimators=6).fit(frame(), Y)
    assert digest(model) == digest(small_forest(n_estimators=6).fit(frame(), Y))
    model.set_params(n_estimators=7)
    with pytest.raises(ValueError, match=r"^warm_start: column 4 has different categories than in the previous fit$"):
        model.fit(frame(pd.Series(KINDS).replace("oak", "ash")), Y)
    np.testing.assert_array_equal(model.categories_[4], NAMES)


def learned(values):
    table = pd.DataFrame({"a": values})
    encoded, categories = learn(as_table(table), [0], None)
    np.testing.assert_array_equal(encode(as_table(table), categories), encoded)
    return categories[0].tolist(), encoded[:, 0]


def test_codes_are_indices_of_sorted_categories():
    categories, codes = learned(["b", None, "a", "c", np.nan, "b"])
    assert categories == ["a", "b", "c"]
    np.testing.assert_array_equal(codes, [1, np.nan, 0, 2, np.nan, 1])
    categories, codes = learned([None, None])
    assert categories == []
    assert np.all(np.isnan(codes))


@pytest.mark.parametrize("text", [False, True])
def test_the_rarest_categories_come_last(text):
    numbers = np.repeat(np.arange(300), np.where(np.arange(300) % 10 == 3, 1, 3))
    values = [f"{number:03}" for number in numbers] if text else numbers
    categories, codes = learned(values)
    assert len(categories) == 300
    # 30 categories occur once. Of the others, which occur three times, the last 16 come after the 254 that splits know.
    rare = (numbers % 10 == 3) | (numbers > 281)
    assert np.array_equal(np.unique(codes[~rare]), np.arange(254))
    assert np.array_equal(np.unique(codes[rare]), np.arange(254, 300))
    assert np.all(np.diff(codes[~rare]) >= 0)


ONE_OF = r"^categorical_features must be column names, indices or a boolean mask, but is "
ADVICE = "add it to categorical_features or encode it as numbers$"
FULL = np.where(KINDS == None, "fir", KINDS)  # noqa: E711
# Values of categorical_features, the last column of the frame (None for a matrix), and the error message.
REFUSALS = [
    (["kind", "x"], KINDS, "^categorical_features has the column name 'x', which X does not have$"),
    (["kind"], None, "^categorical_features has the column name 'kind', but the columns of X have no names$"),
    ([5], FULL, "^categorical_features has the index 5, but X has 5 columns$"),
    ([-1], FULL, "^categorical_features has the index -1, but X has 5 columns$"),
    ([True] * 4, FULL, "^categorical_features is a mask for 4 columns, but X has 5$"),
    (["kind", 1], FULL, rf"{ONE_OF}\['kind', 1\]$"), ([0.5], FULL, rf"{ONE_OF}\[0.5\]$"),
    ("dtype", FULL, "^The 'categorical_features' parameter of .* Got 'dtype' instead"),
    (["b"], FULL, f"^X: column 'kind' is not numeric .*'fir'.*; {ADVICE}"),
    (None, KINDS, f"^X: column 'kind' is not numeric .*; {ADVICE}"),
]  # fmt: skip


@both
@pytest.mark.parametrize(("given", "kinds", "sentence"), REFUSALS)
def test_categorical_features_that_are_refused(make, given, kinds, sentence):
    refuse(make(categorical_features=given), sentence, X if kinds is None else frame(kinds), Y)


def test_values_that_cannot_be_sorted_are_no_categories():
    sentence = "^X: column 'kind' is categorical, but its values cannot be sorted: "
    model = small_tree(categorical_features=["kind"])
    refuse(model, sentence, frame(["a", 1] * (len(X) // 2)), Y, error=TypeError)


@both
def test_an_empty_list_names_no_columns(make):
    numbers = frame().drop(columns="kind")
    expected = make().fit(numbers, Y)
    for given in ([], (), np.array([])):
        model = make(categorical_features=given).fit(numbers, Y)
        assert (digest(model), model.categories_) == (digest(expected), {})


def test_inputs_are_not_changed():
    for table, given in ((frame(), "from_dtype"), (np.nan_to_num(X.round()), [0, 3]), (frame().to_numpy(object), [4])):
        before = table.copy()
        small_tree(categorical_features=given).fit(table, Y).predict(table)
        assert pd.DataFrame(table).equals(pd.DataFrame(before))


def test_numeric_columns_of_frames_need_no_second_copy():
    many = pd.DataFrame(np.zeros((200_000, 10), dtype=np.float32))
    model = small_forest().fit(many[:50], np.arange(50) % 2)
    model.predict_proba(many)  # to compile and import everything before memory is measured
    with peak_below(1.75 * many.to_numpy().nbytes):  # includes the probabilities and the buffers of threads
        model.predict_proba(many)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_with_text_that_is_nearly_all_numbers_get_a_warning(library):
    y = np.arange(60) % 2
    frame = library({"amount": ["unknown", *(f"{i}.5" for i in range(59))], "b": list(range(60))})
    sentence = "X: column 'amount': 1 of 60 values is no number ('unknown'), so that all are read as text"
    with pytest.warns(UserWarning, match=re.escape(sentence)):
        forest = AUCForestClassifier(2, random_state=0).fit(frame, y)
    assert list(forest.categories_) == [0]
    AUCForestClassifier(2, random_state=0, categorical_features=["amount"]).fit(frame, y)
    if library is pd.DataFrame:
        AUCForestClassifier(2).fit(frame.astype({"amount": "category"}), y)


@pytest.mark.parametrize("model", [AUCForestClassifier(2), LinearAUCClassifier()])
def test_a_batch_of_rows_is_refused(model):
    table = pa.table({"a": np.arange(40.0), "b": np.arange(40.0) % 7})
    model.fit(table, np.arange(40) % 2)
    with pytest.raises(TypeError, match=r"pass pyarrow.Table.from_batches\(\[X\]\)"):
        model.predict_proba(table.to_batches()[0])


@pytest.mark.parametrize("cell", [[1, 2], (1.0,), {"a": 1}, {1}, np.array([1, 2])], ids=lambda cell: repr(cell))
def test_a_collection_in_a_cell_is_refused_with_its_column(cell):
    matrix = np.arange(40.0).reshape(20, 2).astype(object)
    matrix[7, 1] = cell
    for table, name in ((pd.DataFrame(matrix, columns=["a", "b"]), "'b'"), (matrix, "1")):
        sentence = rf"^X: column {name} has a {type(cell).__name__} in row 7: the argument must be a table"
        refuse(small_forest(), sentence, table, np.arange(20) % 2, error=TypeError)


@pytest.mark.parametrize("library", [pl.DataFrame, pa.table])
def test_columns_of_collections_are_refused_by_name(library):
    for cells, kind in (([[1, 2]], "List"), ([{"a": 1, "b": 2}], "Struct")):
        table = library({"a": np.arange(20.0), "b": cells * 20})
        refuse(small_forest(), f"^X: column 'b' has the type {kind}", table, np.arange(20) % 2, error=TypeError)

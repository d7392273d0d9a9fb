"""A column gives the same forest and predictions in all types that Arrow, pandas and polars have for its values."""

from functools import cache, partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aucforest
from aucforest.cli._inputs import LabelledColumns, read_for_model, read_training_table
from aucforest.distributed import fit_out_of_core, predict_out_of_core
from tests.persistence.trees import assert_same_trees

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=120)
FEATURE, FLAGS = pd.DataFrame({"x": X}), X > 0.3
Y = np.where(X + RANDOM.normal(size=120) > 0.5, "yes", "no")
TEXT = np.array(["ash", "elm", "fir", "oak"], dtype=object)[np.digitize(X + RANDOM.normal(size=120), [-1, 0, 1])]
MISSING = np.arange(120) % 7 == 3
STRINGS = [pa.string(), pa.large_string(), pa.string_view()]
INDICES = [pa.int8(), pa.uint8(), pa.int64(), pa.uint64()]


def gaps(values):
    return [None if missing else value for value, missing in zip(values, MISSING)]


SOME_NUMBERS = gaps(((10 * X).round().astype(int) + 40).tolist())
SOME_TEXT, SOME_FLAGS = gaps(TEXT), gaps(FLAGS.tolist())


def dictionaries(values, index, type_, in_values=True):
    """Return two chunks with different dictionaries, each with a repeated value. Half of the nulls may be in values."""
    chunks = []
    for part in (values[:50], values[50:]):
        known = sorted({value for value in part if value is not None}, reverse=len(chunks) > 0)
        known += [known[0], *([None] if in_values and None in values else [])]
        indices = [
            None if value is None and (row % 2 or not in_values) else known.index(value)
            for row, value in enumerate(part)
        ]
        chunks.append(pa.DictionaryArray.from_arrays(pa.array(indices, index), pa.array(known, type_)))
    return pa.chunked_array(chunks)


def as_arrow_extension(column):
    return pd.Series(pd.arrays.ArrowExtensionArray(column))


def categories(values):
    """Return the values as categoricals of pandas, unordered and ordered."""
    known = sorted({value for value in values if value is not None}, reverse=True)
    return {
        "pandas category": pd.Series(pd.Categorical(values, categories=known)),
        "pandas ordered": pd.Series(pd.Categorical(values, categories=known, ordered=True)),
    }


def forms_of_text(values):
    forms = categories(values)
    forms["pandas category of strings"] = pd.Series(values, dtype="string").astype("category")
    known = forms["pandas category"].cat.categories
    unused = pd.Categorical(values, categories=[*known[:2], "no such", *known[2:]])
    forms["pandas, an unused category"] = pd.Series(unused)
    for dtype in ("object", "str", "string", "string[python]", "string[pyarrow]"):
        forms[f"pandas {dtype}"] = pd.Series(values, dtype=dtype)
    for dtype in (pl.String, pl.Categorical, pl.Enum(sorted(set(values) - {None}, reverse=True))):
        forms[f"polars {dtype}"] = pl.Series(values, dtype=dtype)
    for type_ in STRINGS:
        forms[f"arrow {type_}"] = pa.chunked_array([pa.array(values[:50], type_), pa.array(values[50:], type_)])
        forms[f"pandas arrow {type_}"] = as_arrow_extension(forms[f"arrow {type_}"])
        forms |= dictionaries_by_index(values, type_)
    return forms | dictionaries_by_index(values, pa.string(), in_values=False)


def dictionaries_by_index(values, type_, in_values=True):
    name = f"{type_}{'' if in_values else ', gaps in indices alone'}"
    forms = {f"arrow {name} by {index}": dictionaries(values, index, type_, in_values) for index in INDICES}
    return forms | {f"pandas {form}": as_arrow_extension(forms[form]) for form in list(forms)[2::3]}


def forms_of_flags(values):
    return {
        **categories(values), "pandas boolean": pd.Series(values, dtype="boolean"),
        "pandas object": pd.Series(values, dtype=object), "pandas arrow": as_arrow_extension(pa.array(values)),
        "polars": pl.Series(values), "arrow": pa.chunked_array([values]), **dictionaries_by_index(values, pa.bool_()),
    }  # fmt: skip


def forms_of_numbers(values):
    forms = {}
    for index in INDICES:
        name, capital = str(index), str(index).title().replace("Ui", "UI")
        forms[f"arrow {name}"] = pa.chunked_array([pa.array(values, name)])
        forms[f"pandas arrow {name}"] = as_arrow_extension(pa.array(values, name))
        forms[f"pandas {name}"] = pd.Series(values, dtype=capital)
        forms[f"polars {name}"] = pl.Series(values, dtype=getattr(pl, capital))
    return forms


def table_of(column, **others):
    make = {pd.Series: pd.DataFrame, pl.Series: pl.DataFrame}.get(type(column), pa.table)
    return make({"x": X, "c": column, **others})


def write_parquet(table, path):
    """Write a table with its library. Return False if Parquet has no such type."""
    try:
        if isinstance(table, pa.Table):
            pq.write_table(table, path, row_group_size=50)
        else:
            (table.to_parquet if isinstance(table, pd.DataFrame) else table.write_parquet)(path)
    except pa.ArrowNotImplementedError:
        return False
    return True


def forest():
    return aucforest.AUCForestClassifier(3, random_state=0)


def forms_of_coded(numbers):
    return categories(numbers) | dictionaries_by_index(numbers, pa.int16())


def named(fit, *kinds):
    """Return all forms by name: the column, its kind, the form to compare with, and a function that fits its forest."""
    return {
        f"{kind}: {name}": (column, kind, first, fitted)
        for kind, first, forms in kinds
        for fitted in [cache(partial(fit, first))]
        for name, column in forms.items()
    }


FEATURES = named(
    lambda column: forest().fit(table_of(column), Y),
    ("text", pd.Series(SOME_TEXT, dtype=object), forms_of_text(SOME_TEXT)),
    ("flags", pd.Series(SOME_FLAGS, dtype="boolean"), forms_of_flags(SOME_FLAGS)),
    ("numbers", pd.Series(SOME_NUMBERS, dtype=float), forms_of_numbers(SOME_NUMBERS)),
    ("coded numbers", pd.Series(pd.Categorical(SOME_NUMBERS)), forms_of_coded(SOME_NUMBERS)),
)
BINS = np.digitize(X, [-1, 0.5])
LABELS = named(
    lambda labels: forest().fit(FEATURE, labels),
    ("text", TEXT, forms_of_text(TEXT.tolist())),
    ("flags", FLAGS, forms_of_flags(FLAGS.tolist())),
    ("numbers", BINS, forms_of_numbers(BINS.tolist()) | forms_of_coded(BINS.tolist())),
)


@pytest.mark.parametrize("name", FEATURES)
def test_every_form_of_a_feature_gives_the_same_forest(name, tmp_path):
    column, kind, first, on_the_first = FEATURES[name]
    expected, table = on_the_first(), table_of(column)
    proba, labelled = expected.predict_proba(table_of(first)), table_of(column, y=Y)
    for model in (expected, forest().fit(table, Y), fit_out_of_core(forest(), labelled, "y")):
        assert_same_trees(model.trees_, expected.trees_)
        np.testing.assert_array_equal(model.predict_proba(table), proba)
        got = pa.Table.from_batches(predict_out_of_core(model, labelled, keep=["c"]))
        np.testing.assert_array_equal(got["probability_yes"], proba[:, 1])
    path = tmp_path / "t.parquet"
    if not write_parquet(labelled, path) or kind == "coded numbers":  # in Parquet, these are numbers
        return
    data = read_training_table(path, LabelledColumns("y"))
    assert_same_trees(forest().fit(data.X, data.y).trees_, expected.trees_)
    np.testing.assert_array_equal(expected.predict_proba(read_for_model(expected, path, LabelledColumns("y")).X), proba)


@pytest.mark.parametrize("name", LABELS)
def test_every_form_of_labels_gives_the_same_forest(name, tmp_path):
    """The types of classes are compared, too, because [False, True] == [0.0, 1.0]."""

    def plain(classes):
        kind = np.asarray(classes).dtype.kind
        return {"u": "i", "U": "O"}.get(kind, kind), classes.tolist()

    column, _, first, on_the_first = LABELS[name]
    expected, table = on_the_first(), table_of(column)
    for fitted in (forest().fit(FEATURE, column), fit_out_of_core(forest(), table, "c")):
        assert plain(fitted.classes_) == plain(expected.classes_)
        assert_same_trees(fitted.trees_, expected.trees_)
    linear = aucforest.LinearAUCClassifier(tol=1.0)
    assert plain(linear.fit(FEATURE, column).classes_) == plain(expected.classes_)
    path = tmp_path / "t.parquet"
    if not write_parquet(table, path):
        return
    training = read_training_table(path, LabelledColumns("c"))
    for labels in (training.classes[training.y], read_for_model(expected, path, LabelledColumns("c")).y):
        assert plain(labels) == plain(first)


@pytest.mark.parametrize("type_", STRINGS)
@pytest.mark.parametrize("in_values", [True, False])
def test_missing_labels_raise(type_, in_values):
    """numpy would convert the nulls of a chunked dictionary to other values."""
    column = dictionaries(SOME_TEXT, pa.uint8(), type_, in_values)
    for y in (column, as_arrow_extension(column), column.chunk(0)):
        with pytest.raises((TypeError, ValueError), match=r"^y has labels that cannot be sorted.* or a missing label$"):
            forest().fit(FEATURE[: len(y)], y)
    with pytest.raises(ValueError, match=r"column 'c' has 17 missing labels, the first in the Table, row 4: write"):
        fit_out_of_core(forest(), table_of(column), "c")


def test_missing_numbers_of_dictionaries():
    """Nulls are NaN even if a dictionary column is not categorical."""
    model, column = forest().set_params(categorical_features=None), pd.Series(SOME_NUMBERS, dtype=float)
    expected = model.fit(table_of(column), Y).predict_proba(table_of(pd.Series(SOME_NUMBERS)))
    table = table_of(dictionaries(SOME_NUMBERS, pa.uint8(), pa.int16()))
    np.testing.assert_array_equal(model.predict_proba(table), expected)
    np.testing.assert_array_equal(model.fit(table, Y).predict_proba(table), expected)

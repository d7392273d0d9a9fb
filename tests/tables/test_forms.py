"""The same column in every form that arrow, pandas and polars have for it gives the same forest and predictions."""

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
Y = np.where(X + RANDOM.normal(size=120) > 0.5, "yes", "no")
TEXT = np.array(["ash", "elm", "fir", "oak"], dtype=object)[np.digitize(X + RANDOM.normal(size=120), [-1, 0, 1])]
NUMBERS = (10 * X).round().astype(int)
MISSING = np.arange(120) % 7 == 3
STRINGS = [pa.string(), pa.large_string(), pa.string_view()]
INDICES = [pa.int8(), pa.uint8(), pa.int64(), pa.uint64()]


def gaps(values):
    return [None if missing else value for value, missing in zip(list(values), MISSING)]


def dictionaries(values, index, type_, in_values=True):
    """Return two chunks whose dictionaries differ, each with a repeated value; half of the gaps may be in values."""
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
    """Return the forms of categories that all frames have."""
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
        **categories(values),
        "pandas boolean": pd.Series(values, dtype="boolean"),
        "pandas object": pd.Series(values, dtype=object),
        "pandas arrow": as_arrow_extension(pa.array(values)),
        "polars": pl.Series(values),
        "arrow": pa.chunked_array([values]),
        **dictionaries_by_index(values, pa.bool_()),
    }


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
    """Write a table as its library does; say whether it can."""
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


def kinds_of_features():
    """Yield what a column is, the form that the others are compared with, and all others."""
    numbers, flags = gaps((NUMBERS + 40).tolist()), gaps((X > 0.3).tolist())
    yield "text", pd.Series(gaps(TEXT), dtype=object), forms_of_text(gaps(TEXT))
    yield "flags", pd.Series(flags, dtype="boolean"), forms_of_flags(flags)
    yield "numbers", pd.Series(numbers, dtype=float), forms_of_numbers(numbers)
    coded = categories(numbers) | dictionaries_by_index(numbers, pa.int16())
    yield "coded numbers", pd.Series(pd.Categorical(numbers)), coded


def named(kinds, fit):
    """Return forms by name, each with what it is and what is fitted, once, on the first form."""
    return {
        f"{kind}: {name}": (column, kind, fitted)
        for kind, first, forms in kinds
        for fitted in [cache(partial(fit, first))]
        for name, column in forms.items()
    }


def forest_and_probabilities(column):
    fitted = forest().fit(table_of(column), Y)
    return fitted, fitted.predict_proba(table_of(column))


FEATURES = named(kinds_of_features(), forest_and_probabilities)


@pytest.mark.parametrize("name", FEATURES)
def test_every_form_of_a_feature_gives_the_same_forest(name, tmp_path):
    column, kind, on_the_first = FEATURES[name]
    expected, proba = on_the_first()
    table = table_of(column)
    fitted = forest().fit(table, Y)
    assert_same_trees(fitted.trees_, expected.trees_)
    for model in (expected, fitted):
        np.testing.assert_array_equal(model.predict_proba(table), proba)
    labelled = table_of(column, y=Y)
    fitted = fit_out_of_core(forest(), labelled, "y")
    assert_same_trees(fitted.trees_, expected.trees_)
    for model in (expected, fitted):
        got = pa.Table.from_batches(predict_out_of_core(model, labelled, keep=["c"]))
        np.testing.assert_array_equal(got["probability_yes"], proba[:, 1])
    path = tmp_path / "t.parquet"
    if not write_parquet(labelled, path) or kind == "coded numbers":  # which are numbers in Parquet
        return
    data = read_training_table(path, LabelledColumns("y"))
    assert_same_trees(forest().fit(data.X, data.y).trees_, expected.trees_)
    np.testing.assert_array_equal(expected.predict_proba(read_for_model(expected, path, LabelledColumns("y")).X), proba)


def kinds_of_labels():
    """Yield what labels are, in all of their forms, after the one that the others are compared with."""
    flags, numbers = X > 0.3, np.digitize(X, [-1, 0.5])
    yield "text", TEXT, forms_of_text(TEXT.tolist())
    yield "flags", flags, forms_of_flags(flags.tolist())
    coded = categories(numbers.tolist()) | dictionaries_by_index(numbers.tolist(), pa.int16())
    yield "numbers", numbers, forms_of_numbers(numbers.tolist()) | coded


LABELS = named(kinds_of_labels(), lambda labels: (labels, forest().fit(pd.DataFrame({"x": X}), labels)))


@pytest.mark.parametrize("name", LABELS)
def test_every_form_of_labels_gives_the_same_forest(name, tmp_path):
    """Types are compared, since [False, True] == [0.0, 1.0]."""

    def plain(classes):
        kind = np.asarray(classes).dtype.kind
        return {"u": "i", "U": "O"}.get(kind, kind), classes.tolist()

    column, _, on_the_first = LABELS[name]
    features, (first, expected) = pd.DataFrame({"x": X}), on_the_first()
    fitted = forest().fit(features, column)
    assert plain(fitted.classes_) == plain(expected.classes_)
    assert_same_trees(fitted.trees_, expected.trees_)
    linear = aucforest.LinearAUCClassifier(tol=1.0)
    assert plain(linear.fit(features, column).classes_) == plain(expected.classes_)
    table = table_of(column)
    fitted = fit_out_of_core(forest(), table, "c")
    assert plain(fitted.classes_) == plain(expected.classes_)
    assert_same_trees(fitted.trees_, expected.trees_)
    path = tmp_path / "t.parquet"
    if not write_parquet(table, path):
        return
    training = read_training_table(path, LabelledColumns("c"))
    for labels in (training.classes[training.y], read_for_model(expected, path, LabelledColumns("c")).y):
        assert plain(labels) == plain(first)


@pytest.mark.parametrize("type_", STRINGS)
@pytest.mark.parametrize("in_values", [True, False])
def test_missing_labels_raise(type_, in_values):
    """numpy converts the nulls of a chunked dictionary to other values."""
    column = dictionaries(gaps(TEXT), pa.uint8(), type_, in_values)
    features = pd.DataFrame({"x": X})
    for y in (column, as_arrow_extension(column), column.chunk(0)):
        with pytest.raises((TypeError, ValueError), match=r"^y has labels that cannot be sorted.* or a missing label$"):
            forest().fit(features[: len(y)], y)
    with pytest.raises(ValueError, match=r"column 'c' has 17 missing labels, the first in the Table, row 4: write"):
        fit_out_of_core(forest(), table_of(column), "c")


def test_missing_numbers_of_dictionaries():
    """They are NaN even if the column is a dictionary and not categorical."""
    numbers = gaps((NUMBERS + 40).tolist())
    model = forest().set_params(categorical_features=None)
    expected = model.fit(table_of(pd.Series(numbers, dtype=float)), Y).predict_proba(table_of(pd.Series(numbers)))
    table = table_of(dictionaries(numbers, pa.uint8(), pa.int16()))
    np.testing.assert_array_equal(model.predict_proba(table), expected)
    np.testing.assert_array_equal(model.fit(table, Y).predict_proba(table), expected)

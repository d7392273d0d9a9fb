"""A forest out of core is, bit for bit, that of the same rows in memory."""

import gc
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from aucforest import AUCForestClassifier, AUCStackingClassifier
from aucforest.distributed import fit_out_of_core, predict_out_of_core
from aucforest.fitting import on_disk, target_rates
from aucforest.metrics import roc_auc_score
from aucforest.tables import files, text_files
from tests.estimators.data import assert_same_fit
from tests.fitting.tables import (
    RATED,
    copy_rows,
    features_and_labels,
    interactions_of,
    make_forest,
    make_many,
    make_rows,
)

TABLE = make_rows()
THREE = make_rows(n_classes=3, seed=1)


@pytest.fixture(autouse=True)
def tiny_batches(monkeypatch):
    monkeypatch.setattr(on_disk, "_BATCH_CELLS", 3500)


def check(table, params, weight=None):
    """Fit in memory and out of core."""
    weights = None if weight is None else table[weight].to_numpy()
    expected = make_forest(**params).fit(*features_and_labels(table), weights)
    drop = [] if weight == "weight" else ["weight"]
    assert_same_fit(fit_out_of_core(make_forest(**params), table, "label", sample_weight=weight, drop=drop), expected)


@pytest.mark.parametrize(
    ("params", "weight"),
    [
        ({}, None),
        ({"sampling": "stratified", "class_weight": "balanced"}, "weight"),
        ({"max_bins": None}, "weight"),
        ({"monotonic_cst": {"double": 1}}, None),
        ({"categorical_features": ["few", "coded", "flag", "text"]}, None),
        ({"threshold": "gmean", "oob_score": True, "n_estimators": 30, "max_samples": 0.5}, "weight"),
        ({"oob_score": "average_precision", "n_estimators": 30, "max_samples": 0.5}, "weight"),
    ],
)
def test_the_forest_is_that_of_memory(params, weight):
    check(THREE if params.get("oob_score") == "average_precision" else TABLE, params, weight)


def fit_both(table, params, weight=None, groups=None, source=None):
    """Fit a forest with target rates in memory, and to a source of the same rows out of core."""
    X, y = features_and_labels(table, ["customer"])
    weights, customers = (None if name is None else table[name].to_numpy() for name in (weight, groups))
    expected = make_forest(**RATED | params).fit(X, y, weights, groups=customers)
    drop = [name for name in ("weight", "customer") if name not in (weight, groups)]
    options = {"sample_weight": weight, "groups": groups, "drop": drop}
    got = fit_out_of_core(make_forest(**RATED | params), table if source is None else source, "label", **options)
    assert_same_fit(got, expected)
    assert np.array_equal(got.predict_proba(X), expected.predict_proba(X))
    return got


@pytest.mark.parametrize(
    ("params", "weight", "groups", "n_classes"),
    [
        ({"oob_score": True}, None, None, 2),
        ({"oob_score": True, "threshold": "f1"}, "weight", "customer", 2),
        ({"oob_score": "average_precision"}, "weight", None, 3),
        ({"oob_score": True, "sampling": "balanced", "class_weight": "balanced"}, "weight", None, 3),
        ({"bootstrap": False, "n_estimators": 6}, "weight", None, 2),
        ({"max_bins": None, "max_samples": 0.4}, None, "customer", 2),
    ],
)
def test_target_rates_are_those_of_memory(params, weight, groups, n_classes):
    forest = fit_both(make_many(n_classes=n_classes), params, weight, groups)
    assert (0, 1) in interactions_of(forest)
    assert "interactions" in forest.encodings_


@pytest.mark.parametrize(("encoding", "n_tables"), [("sets", 0), ("rates", 2), (["sets", "interactions"], 3)])
def test_encodings_are_those_that_are_asked_for(monkeypatch, encoding, n_tables):
    copy_rows(monkeypatch)
    forest = fit_both(make_many(), {"categorical_encoding": encoding, "oob_score": True})
    assert n_tables == (0 if forest.target_rates_ is None else len(forest.target_rates_.tables))


def test_target_rates_of_many_blocks_and_of_some_of_the_rows(monkeypatch):
    """Of the categories whose rows they are chosen from, each has all of its rows there."""
    monkeypatch.setattr(target_rates, "_BLOCK_ROWS", 97)
    monkeypatch.setattr(target_rates, "_SAMPLE_ROWS", 450)
    fit_both(make_many(), {"oob_score": True}, "weight")


def test_target_rates_of_files(tmp_path):
    table = make_many()
    pyarrow.csv.write_csv(table, tmp_path / "rows.csv")
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=77)
    for source in (tmp_path / "rows.csv", tmp_path / "rows.parquet", pl.DataFrame(table), table.to_pandas()):
        fit_both(table, {"oob_score": True, "n_estimators": 20}, "weight", None, source)


def test_a_warm_start_adds_trees_with_the_same_target_rates():
    table = make_many().drop_columns(["customer", "weight"])
    params = RATED | {"categorical_encoding": "interactions", "warm_start": True}
    forest = make_forest(**params | {"n_estimators": 9})
    fit_out_of_core(forest, table, "label")
    fit_out_of_core(forest.set_params(n_estimators=40), table, "label")
    X, y = table.drop_columns("label"), np.array(table["label"].to_pylist())
    assert_same_fit(forest, make_forest(**params).fit(X, y))
    forest.set_params(n_estimators=41, categorical_encoding="sets")
    with pytest.raises(ValueError, match=r"^warm_start: the existing trees read columns of many categories in "):
        fit_out_of_core(forest, table, "label")


@pytest.fixture
def folder(tmp_path):
    """Two files with row groups of odd sizes."""
    pq.write_table(TABLE[:1234], tmp_path / "1.parquet", row_group_size=500)
    pq.write_table(TABLE[1234:], tmp_path / "2.parquet", row_group_size=77)
    return tmp_path


def test_sources(folder):
    expected = make_forest().fit(*features_and_labels(TABLE))
    for source in (folder, [folder / "1.parquet", folder / "2.parquet"], pl.DataFrame(TABLE.drop_columns("coded"))):
        if isinstance(source, pl.DataFrame):
            expected = make_forest().fit(*features_and_labels(TABLE, ["coded"]))
        got = fit_out_of_core(make_forest(), source, "label", drop=["weight"])
        assert_same_fit(got, expected)


def written(table, folder):
    """Write a table as CSV and as Parquet of the types that the CSV shows, with text that breaks lines and gaps."""
    table = table.drop_columns("coded")
    text = pa.array([None if word is None else f'say "{word}",\n' for word in table["text"].to_pylist()])
    table = table.set_column(table.column_names.index("text"), "text", text)
    late = pa.array([*map(str, range(len(table) - 1)), "word"]).dictionary_encode()
    late = late.take(pa.array([*(row % 40 for row in range(len(table) - 1)), len(table) - 1]))
    table = table.append_column("late", late.cast(pa.string()))
    frame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get)
    frame.to_csv(folder / "t.csv", index=False)
    pq.write_table(pyarrow.csv.read_csv(folder / "t.csv", **READ), folder / "t.parquet")
    return folder / "t.csv", folder / "t.parquet"


READ = {
    "parse_options": pyarrow.csv.ParseOptions(newlines_in_values=True),
    "convert_options": pyarrow.csv.ConvertOptions(strings_can_be_null=True),
}


@pytest.mark.filterwarnings("ignore:X. column 'late'. 1 of 1,000 values is no number")
@pytest.mark.parametrize("positive", [None, pytest.param("b", marks=pytest.mark.slow)])
def test_the_forest_of_a_csv_is_that_of_parquet_and_of_memory(monkeypatch, tmp_path, positive):
    """With a column that one word in the last row makes text, quotes around line breaks, and gaps."""
    monkeypatch.setattr(text_files, "rows_of_batch", lambda n_columns: 70)
    comma, parquet = written(THREE[:1000], tmp_path)
    params = {"oob_score": True, "n_estimators": 30, "max_samples": 0.5}
    X, y = features_and_labels(pq.read_table(parquet))
    assert X["late"].type == pa.string()
    expected = make_forest(**params).fit(X, y if positive is None else y == positive)
    options = {"drop": ["weight"], "positive": positive, "stray_text": "text"}
    for source in (comma, parquet):
        got = fit_out_of_core(make_forest(**params), source, "label", **options, folder=tmp_path / source.suffix)
        assert_same_fit(got, expected)
    assert_same_fit(
        fit_out_of_core(make_forest(**params), comma, "label", **options, folder=tmp_path / ".csv"), expected
    )
    tables = [pa.Table.from_batches(predict_out_of_core(expected, source, keep=["few"])) for source in (comma, parquet)]
    assert tables[0].drop_columns("few").equals(tables[1].drop_columns("few"))
    assert tables[0]["few"].type == pa.string()


@pytest.mark.parametrize(("weight", "copied"), [(None, False), ("weight", True)])
def test_whole_groups_are_sampled(monkeypatch, tmp_path, weight, copied):
    numbers = np.random.default_rng(0).integers(0, 200, len(TABLE))
    table = TABLE.append_column("customer", pa.array([f"customer {i}" for i in numbers]))
    X, y = features_and_labels(TABLE)
    params = {"oob_score": True, "threshold": "gmean", "n_estimators": 30}
    weights = None if weight is None else TABLE[weight].to_numpy()
    expected = make_forest(**params).fit(X, y, weights, groups=numbers)
    if copied:
        copy_rows(monkeypatch)
    pq.write_table(table, tmp_path / "rows.parquet")
    drop = [] if weight == "weight" else ["weight"]
    options = {"sample_weight": weight, "groups": "customer", "drop": drop, "folder": tmp_path / "job"}
    assert_same_fit(fit_out_of_core(make_forest(**params), tmp_path / "rows.parquet", "label", **options), expected)


def test_the_spread_of_a_threshold_is_that_of_the_same_rows(monkeypatch):
    monkeypatch.setattr("aucforest.estimators._forest_fit.THRESHOLD_STD_ROWS", 700)
    check(TABLE, {"threshold": "gmean", "n_estimators": 30, "max_samples": 0.5}, "weight")


def test_costs_of_rows_are_a_parameter():
    costs = np.random.default_rng(0).exponential([[0.0, 1.0], [20.0, 0.0]], (len(TABLE), 2, 2))
    X, y = features_and_labels(TABLE)
    expected = make_forest(n_estimators=30, threshold="cost").fit(X, y, cost=costs)
    forest = make_forest(n_estimators=30, threshold={"cost": costs})
    assert_same_fit(fit_out_of_core(forest, TABLE, "label", drop=["weight"]), expected)


def test_groups_that_are_not_groups(tmp_path):
    table = TABLE.drop_columns("weight").append_column("customer", pa.array([None, *["a"] * (len(TABLE) - 1)]))
    pyarrow.csv.write_csv(table.drop_columns("coded").select(["double", "label", "customer"]), tmp_path / "rows.csv")
    for source, match in (
        (table, "the Table, row 1: column 'customer' has no value: every row needs a group"),
        (table[1:], "column 'customer' has only one group, 'a': at least 2 are needed"),
        (tmp_path / "rows.csv", "rows.csv, line 2: column 'customer' has no value"),
    ):
        with pytest.raises(ValueError, match=match):
            fit_out_of_core(make_forest(), source, "label", groups="customer")


def test_a_csv_that_changes_between_readings(monkeypatch, tmp_path):
    comma, _ = written(TABLE, tmp_path)
    plan = on_disk.plan_on_disk

    def change(*arguments, **options):
        os.utime(comma, ns=(0, 0))
        return plan(*arguments, **options)

    monkeypatch.setattr(on_disk, "plan_on_disk", change)
    with pytest.raises(ValueError, match=r"t.csv changed while it was read"):
        fit_out_of_core(make_forest(), comma, "label", drop=["weight", "late"])


@pytest.mark.parametrize(
    ("params", "weight"),
    [({"max_samples": 500}, "weight"), ({"class_weight": "balanced_subsample", "max_bins": None}, None)],
)
def test_trees_grow_from_copies_of_their_rows(monkeypatch, params, weight):
    copy_rows(monkeypatch)
    check(TABLE, {"n_estimators": 4, **params}, weight)


def changed(**columns):
    """Return the table with other columns at the place of the last one."""
    table = TABLE
    for name, values in columns.items():
        table = table.set_column(8, name, values)
    return table


N = len(TABLE)
REFUSED = [
    ({"source": TABLE[:0]}, "the Table has no rows"),
    ({"target": "lable"}, "has no column 'lable'; did you mean 'label'\\?"),
    ({"drop": ["wait"]}, "has no column 'wait'"),
    ({"drop": TABLE.column_names[:-1]}, "has no feature columns besides 'label'"),
    ({"target": "nan"}, "has numbers such as"),
    ({"target": "coded"}, "missing labels, the first in the Table, row"),
    ({"positive": "z"}, "has no label 'z'"),
    ({"sample_weight": "double"}, "column 'double' has the weight"),
    ({"source": changed(weight=pa.array([[1]] * N)), "drop": []}, "column 'weight' has type list<item: int64>"),
    ({"source": changed(weight=pa.array([0.0] * N)), "sample_weight": "weight", "drop": []}, "zero for all"),
    ({"memory_limit": "much"}, "memory_limit must be a number of bytes, such as 2147483648 or '2GiB'"),
    ({"memory_limit": "1kB"}, "memory_limit=1,000 bytes is too small for 3,000 rows of 8 features: in"),
    ({"forest": {"criterion": "ginny"}}, "'criterion' parameter"),
    ({"forest": {"random_state": None}, "folder": "f"}, "needs an integer random_state"),
    ({"folder": "f"}, "folder needs files as source: the Table may be different at the next call"),
    ({"forest": {"threshold": "gmena"}}, "gmena"),
    ({"forest": {"threshold": "cost"}}, "or threshold={'cost': array} if the data are not in memory"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_bad_tables_and_parameters_are_refused(options, sentence, tmp_path):
    forest = make_forest(**options.get("forest", {}))
    arguments = {"source": TABLE, "target": "label", "drop": ["weight"], **options, "forest": forest}
    if "folder" in arguments:
        arguments["folder"] = tmp_path / "f"
    with pytest.raises(ValueError, match=sentence):
        fit_out_of_core(**arguments)
    assert not hasattr(forest, "trees_")
    assert not (tmp_path / "f").exists()


def test_a_source_that_changes(monkeypatch):
    """A query whose rows come and go is noticed in every look."""

    class Query:
        def __init__(self, *tables):
            self.tables = [tables[0], *tables]  # its schema is asked for first

        def __arrow_c_stream__(self, requested_schema=None):
            table = self.tables.pop(0) if len(self.tables) > 1 else self.tables[0]
            return table.__arrow_c_stream__(requested_schema)

    another = TABLE.take(np.random.default_rng(0).permutation(len(TABLE)))
    new = TABLE.set_column(TABLE.column_names.index("label"), "label", pa.array(["new"] * len(TABLE)))
    n_rows, order = r"had .* rows when it was read first, but has", "returned different rows, or in a different order"
    for tables, match in [
        ((TABLE, TABLE[:2000]), n_rows),
        ((TABLE[:2000], TABLE), n_rows),
        ((TABLE, TABLE, TABLE, TABLE[:-1]), n_rows),
        ((TABLE, another), order),
        ((TABLE, TABLE, TABLE, TABLE[1:]), order),
        ((TABLE, TABLE, new), order),
    ]:
        with pytest.raises(ValueError, match=f"the Query {match}"):
            fit_out_of_core(make_forest(), Query(*tables), "label", drop=["weight"])


@pytest.mark.usefixtures("mapped_files_stay")
@pytest.mark.parametrize("copied", [False, True])
def test_no_map_outlives_the_fit(monkeypatch, tmp_path, folder, copied):
    """Nothing is removed while a map of it is open, and the folder of a fit can be removed as soon as it is over."""
    if copied:
        copy_rows(monkeypatch)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gc.disable()
    try:
        for kept in (None, tmp_path / "kept", tmp_path / "kept"):
            fit_out_of_core(make_forest(), folder, "label", drop=["weight"], folder=kept)
            assert str(tmp_path) not in Path("/proc/self/maps").read_text()
        shutil.rmtree(tmp_path / "kept")
    finally:
        gc.enable()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.parquet", "2.parquet"]


def test_verbose_states_the_plan_and_shows_progress(capfd):
    fit_out_of_core(make_forest(verbose=1), TABLE, "label", drop=["weight"], memory_limit="1GiB")
    said = capfd.readouterr().err
    assert "3,000 rows of 8 features: the binned data fit into the limit, 2 threads, up to " in said
    for what in ("rows read", "rows coded", "trees"):
        assert f"{what}: 100%" in said


def test_a_stack_is_fitted_in_memory():
    sentence = "^fit_out_of_core needs an AUCForestClassifier, got AUCStackingClassifier: fit it in memory$"
    with pytest.raises(TypeError, match=sentence):
        fit_out_of_core(AUCStackingClassifier(make_forest()), TABLE, "label")


def test_a_single_name_is_no_list():
    forest, table = make_forest(), pa.table({"a": [0.0, 1.0], "y": [0, 1]})
    with pytest.raises(TypeError, match=r"drop must be a list of column names, such as \['a'\]"):
        fit_out_of_core(forest, table, "y", drop="a")
    with pytest.raises(TypeError, match=r"keep must be a list"):
        predict_out_of_core(forest, table, keep="a")


PREDICTED = make_rows(1000)
NEW = make_rows(1000, seed=7)


@pytest.fixture(scope="module")
def forest():
    return make_forest(threshold="prevalence").fit(*features_and_labels(PREDICTED))


@pytest.fixture(autouse=True)
def batches_of_few_rows(monkeypatch):
    monkeypatch.setattr(files, "_MOST_ROWS", 77)


def test_a_stack_reads_the_columns_of_its_forest():
    stack = AUCStackingClassifier(make_forest(n_estimators=30), threshold="gmean").fit(*features_and_labels(PREDICTED))
    X, _ = features_and_labels(NEW)
    got = pa.Table.from_batches(predict_out_of_core(stack, NEW.select(NEW.column_names[::-1])))
    assert np.array_equal(got["probability_b"], stack.predict_proba(X)[:, 1])
    assert got["prediction"].to_pylist() == stack.predict(X).tolist()


def test_files_are_written_whole_or_not_at_all(forest, tmp_path):
    pq.write_table(NEW, tmp_path / "new.parquet", row_group_size=100)
    assert predict_out_of_core(forest, tmp_path / "new.parquet", out=tmp_path / "out.parquet") == 1000
    expected = pa.Table.from_batches(predict_out_of_core(forest, NEW))
    assert pq.read_table(tmp_path / "out.parquet").equals(expected)
    text = pa.array(["1.5"] * 900 + ["x"] * 100)
    pq.write_table(NEW.set_column(0, "double", text), tmp_path / "new.parquet")
    with pytest.raises(ValueError, match=r"new.parquet, row 901: column 'double' has the value 'x', which is not a"):
        predict_out_of_core(forest, tmp_path / "new.parquet", out=tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.parquet", "out.parquet"]


def test_words_are_words_in_types_that_know_nothing_from_text():
    """A category NA is one in a Parquet or Arrow table, whose missing values are missing."""
    text = pa.array(["NA", "", "x", None] * 25)
    table = pa.table({"text": text, "number": range(100), "y": [1, 0, 0, 1] * 25})
    forest = AUCForestClassifier(5, random_state=0).fit(table.select(["text", "number"]), table["y"].to_numpy())
    got = pa.Table.from_batches(predict_out_of_core(forest, table))
    assert forest.categories_[0].tolist() == ["", "NA", "x"]
    assert np.array_equal(got["probability_1"], forest.predict_proba(table.select(["text", "number"]))[:, 1])


@pytest.mark.parametrize("date_format", [None, "%d.%m.%Y"])
def test_days_of_a_csv_are_the_same_categories_in_every_table(date_format, tmp_path):
    day = np.datetime64("2024-03-25") + np.arange(120) % 10
    frame = pd.DataFrame({"day": day.astype("M8[us]"), "y": np.arange(120) % 10 % 3 > 0})
    path = tmp_path / "days.csv"
    frame.to_csv(path, index=False, date_format=date_format)
    forest = AUCForestClassifier(5, random_state=0, categorical_features=["day"])
    fit_out_of_core(forest, path, "y", date_format=date_format)
    proba = forest.predict_proba(frame[["day"]])[:, 1]
    assert roc_auc_score(frame["y"], proba) == 1.0
    frame.to_parquet(tmp_path / "days.parquet")
    for source in (path, tmp_path / "days.parquet", pl.DataFrame({"day": day})):
        got = pa.Table.from_batches(predict_out_of_core(forest, source, proba=True, date_format=date_format))
        assert np.array_equal(got["probability_True"], proba)


def test_predictions_that_are_refused(forest):
    with pytest.raises(ValueError, match="has no column 'wight'; did you mean 'weight'"):
        predict_out_of_core(forest, NEW, keep=["wight"])
    with pytest.raises(TypeError, match="can be read only once"):
        predict_out_of_core(forest, NEW.to_reader())


@pytest.mark.parametrize("columns", [["double", "nan", "few"], ["float"], ["text", "coded"]])
def test_columns_of_one_kind(columns):
    check(TABLE.select([*columns, "label", "weight"]), {})


def test_warm_start_adds_trees(folder):
    forest = make_forest(n_estimators=3, warm_start=True)
    fit_out_of_core(forest, folder, "label", drop=["weight"])
    fit_out_of_core(forest.set_params(n_estimators=6), folder, "label", drop=["weight"])
    expected = make_forest(warm_start=True).fit(*features_and_labels(TABLE))
    assert_same_fit(forest, expected)

"""A forest that is fitted out of core is bitwise identical to a forest of the same rows in memory."""

import gc
import shutil
import tempfile
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from aucforest import AUCForestClassifier, AUCStackingClassifier
from aucforest.distributed import fit_out_of_core, predict_out_of_core
from aucforest.fitting import integer_categories, on_disk, target_rates
from aucforest.metrics import roc_auc_score
from aucforest.tables import files, text_files
from tests.estimators.data import assert_same_fit
from tests.fitting.tables import (
    RATED,
    copy_rows,
    features_and_labels,
    interactions_of,
    make_accounts,
    make_forest,
    make_many,
    make_rows,
)

TABLE = make_rows()
THREE = make_rows(n_classes=3, seed=1)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(on_disk, "_BATCH_CELLS", 3500)
    monkeypatch.setattr(files, "_MOST_ROWS", 77)


def check(table, params, weight=None, groups=None, source=None, **options):
    """Fit a forest in memory, and to a source of the same rows out of core; return the latter."""
    drop = [name for name in ("weight", "customer") if name in table.column_names]
    X, y = table.drop_columns(["label", *drop]), np.array(table["label"].to_pylist())
    weights, customers = (None if name is None else table[name].to_numpy() for name in (weight, groups))
    expected = make_forest(**params).fit(X, y, weights, groups=customers)
    options |= {"sample_weight": weight, "groups": groups, "drop": [*{*drop} - {weight, groups}]}
    got = fit_out_of_core(make_forest(**params), table if source is None else source, "label", **options)
    assert_same_fit(got, expected)
    np.testing.assert_array_equal(got.predict_proba(X), expected.predict_proba(X))
    return got


@pytest.mark.parametrize(("params", "weight", "copied"), [
    ({}, None, False), ({"sampling": "stratified", "class_weight": "balanced"}, "weight", False),
    ({"max_bins": None}, "weight", False), ({"monotonic_cst": {"double": 1}}, None, False),
    ({"categorical_features": ["few", "coded", "flag", "text"]}, None, False),
    ({"threshold": "gmean", "oob_score": True, "n_estimators": 30, "max_samples": 0.5}, "weight", False),
    ({"oob_score": "average_precision", "n_estimators": 30, "max_samples": 0.5}, "weight", False),
    ({"n_estimators": 4, "max_samples": 500}, "weight", True),
    ({"n_estimators": 4, "class_weight": "balanced_subsample", "max_bins": None}, None, True),
])  # fmt: skip
def test_the_forest_is_that_of_memory(monkeypatch, params, weight, copied):
    if copied:
        copy_rows(monkeypatch)
    check(THREE if params.get("oob_score") == "average_precision" else TABLE, params, weight)


@pytest.mark.parametrize(("params", "weight", "groups", "n_classes"), [
    ({"oob_score": True}, None, None, 2), ({"oob_score": True, "threshold": "f1"}, "weight", "customer", 2),
    ({"oob_score": True, "sampling": "balanced", "class_weight": "balanced"}, "weight", None, 3),
    ({"oob_score": "average_precision"}, "weight", None, 3),
    ({"bootstrap": False, "n_estimators": 6}, "weight", None, 2),
    ({"max_bins": None, "max_samples": 0.4}, None, "customer", 2),
])  # fmt: skip
def test_target_rates_are_those_of_memory(params, weight, groups, n_classes):
    forest = check(make_many(n_classes=n_classes), RATED | params, weight, groups)
    assert (0, 1) in interactions_of(forest)
    assert "interactions" in forest.encodings_


@pytest.mark.parametrize(("encoding", "n_tables"), [("sets", 0), ("rates", 2), (["sets", "interactions"], 3)])
def test_encodings_are_those_that_are_asked_for(monkeypatch, encoding, n_tables):
    copy_rows(monkeypatch)
    forest = check(make_many(), RATED | {"categorical_encoding": encoding, "oob_score": True})
    assert n_tables == (0 if forest.target_rates_ is None else len(forest.target_rates_.tables))


def test_target_rates_of_many_blocks_and_of_some_of_the_rows(monkeypatch, tmp_path):
    """Interactions and smoothing are chosen on a sample of the categories, with all rows of each of them."""
    monkeypatch.setattr(target_rates, "_BLOCK_ROWS", 97)
    monkeypatch.setattr(target_rates, "_SAMPLE_ROWS", 450)
    csv.write_csv(make_many(), tmp_path / "rows.csv")
    check(make_many(), RATED | {"oob_score": True}, "weight", source=tmp_path / "rows.csv")


@pytest.mark.parametrize(("weight", "groups", "n_classes", "most", "with_regions"), [
    (None, None, 2, 150, False), ("weight", None, 3, 150, False), ("weight", "customer", 2, 2**14, True),
])  # fmt: skip
def test_integers_that_are_categories_are_found_as_in_memory(
    monkeypatch, tmp_path, weight, groups, n_classes, most, with_regions
):
    """Also in small batches, of which many have other values, and in a sample of the values."""
    monkeypatch.setattr(integer_categories, "_FIRST_ROWS", 20)
    monkeypatch.setattr(integer_categories, "_MOST_VALUES", most)
    monkeypatch.setattr(integer_categories, "_LEAST_VALUES", 100)
    table = make_accounts(n_classes=n_classes, with_regions=with_regions)
    csv.write_csv(table, tmp_path / "rows.csv")
    for source in (None, tmp_path / "rows.csv", table.to_pandas()):
        forest = check(table, {"oob_score": True, "n_estimators": 40}, weight, groups, source=source)
        assert [table.feature for table in forest.target_rates_.tables] == [3, 4][: 1 + with_regions]
        assert [len(categories) for categories in forest.categories_.values()] == [200, 40][: 1 + with_regions]


@pytest.mark.parametrize(("table", "params"), [
    (TABLE.drop_columns("weight"), {}),
    (make_many().drop_columns(["customer", "weight"]), RATED | {"categorical_encoding": "interactions"}),
], ids=["sets", "rates"])  # fmt: skip
def test_a_warm_start_adds_trees(table, params):
    X, y = table.drop_columns("label"), np.array(table["label"].to_pylist())
    expected = make_forest(**params, warm_start=True).fit(X, y)
    forest = fit_out_of_core(make_forest(**params | {"n_estimators": 5}, warm_start=True), table, "label")
    assert_same_fit(fit_out_of_core(forest.set_params(n_estimators=len(expected)), table, "label"), expected)


@pytest.fixture
def folder(tmp_path):
    pq.write_table(TABLE[:1234], tmp_path / "1.parquet", row_group_size=500)
    pq.write_table(TABLE[1234:], tmp_path / "2.parquet", row_group_size=77)
    return tmp_path


def test_sources(folder):
    for source in (folder, [folder / "1.parquet", folder / "2.parquet"]):
        check(TABLE, {}, source=source)


def written(table, folder):
    """Write a table as CSV and as Parquet of the types that the CSV shows, with text that breaks lines and gaps."""
    table = table.drop_columns("coded")
    text = pa.array([None if word is None else f'say "{word}",\n' for word in table["text"].to_pylist()])
    table = table.set_column(table.column_names.index("text"), "text", text)
    table = table.append_column("late", pa.array([*(str(row % 40) for row in range(len(table) - 1)), "word"]))
    frame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get)
    frame.to_csv(folder / "t.csv", index=False)
    lines, nulls = csv.ParseOptions(newlines_in_values=True), csv.ConvertOptions(strings_can_be_null=True)
    read = csv.read_csv(folder / "t.csv", parse_options=lines, convert_options=nulls)
    pq.write_table(read, folder / "t.parquet")
    return folder / "t.csv", folder / "t.parquet"


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
    for source in (comma, parquet, comma):  # the last fit is in its folder
        got = fit_out_of_core(make_forest(**params), source, "label", **options, folder=tmp_path / source.suffix)
        assert_same_fit(got, expected)
    tables = [predicted(expected, source, keep=["few"]) for source in (comma, parquet)]
    assert tables[0].drop_columns("few").equals(tables[1].drop_columns("few"))
    assert tables[0]["few"].type == pa.string()


@pytest.mark.parametrize(("weight", "copied"), [(None, False), ("weight", True)])
def test_whole_groups_are_sampled(monkeypatch, tmp_path, weight, copied):
    numbers = np.random.default_rng(0).integers(0, 200, len(TABLE))
    table = TABLE.append_column("customer", pa.array([f"customer {i}" for i in numbers]))
    pq.write_table(table, tmp_path / "rows.parquet")
    if copied:
        copy_rows(monkeypatch)
    params = {"oob_score": True, "threshold": "gmean", "n_estimators": 30}
    check(table, params, weight, "customer", tmp_path / "rows.parquet", folder=tmp_path / "job")


def test_the_spread_of_a_threshold_is_that_of_the_same_rows(monkeypatch):
    monkeypatch.setattr("aucforest.estimators._forest_fit.THRESHOLD_STD_ROWS", 700)
    check(TABLE, {"threshold": "gmean", "n_estimators": 30, "max_samples": 0.5}, "weight")


def test_costs_of_rows_are_a_parameter():
    costs = np.random.default_rng(0).exponential([[0.0, 1.0], [20.0, 0.0]], (len(TABLE), 2, 2))
    X, y = features_and_labels(TABLE)
    expected = make_forest(n_estimators=30, threshold="cost").fit(X, y, cost=costs)
    forest = make_forest(n_estimators=30, threshold={"cost": costs})
    assert_same_fit(fit_out_of_core(forest, TABLE, "label", drop=["weight"]), expected)


def grouped(values):
    return {"source": TABLE.append_column("customer", pa.array(values)), "groups": "customer"}


N = len(TABLE)
REFUSED = [
    ({"source": TABLE[:0]}, "the Table has no rows"), ({"drop": ["wait"]}, "has no column 'wait'"),
    ({"positive": "z"}, "has no label 'z'"), ({"sample_weight": "double"}, "column 'double' has the weight"),
    (grouped([None, *["a"] * (N - 1)]), "the Table, row 1: column 'customer' has no value: every row needs a group"),
    (grouped(["a"] * N), "column 'customer' has only one group, 'a': at least 2 are needed"),
    ({"memory_limit": "1kB"}, "memory_limit=1,000 bytes is too small for 3,000 rows of 8 features: in"),
    ({"forest": {"criterion": "ginny"}}, "'criterion' parameter"),
    ({"forest": {"random_state": None}, "folder": "f"}, "needs an integer random_state"),
    ({"folder": "f"}, "folder needs files as source: the Table may be different at the next call"),
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


def test_a_source_that_changes():
    class Query:
        def __init__(self, *tables):
            self.tables = chain(tables[:1], tables, repeat(tables[-1]))  # its schema is asked for first

        def __arrow_c_stream__(self, requested_schema=None):
            return next(self.tables).__arrow_c_stream__(requested_schema)

    another = TABLE.take(np.random.default_rng(0).permutation(N))
    new = TABLE.set_column(TABLE.column_names.index("label"), "label", pa.array(["new"] * N))
    n_rows, order = r"had .* rows when it was read first, but has", "returned different rows, or in a different order"
    for tables, match in [
        ((TABLE, TABLE[:2000]), n_rows), ((TABLE[:2000], TABLE), n_rows),
        ((TABLE, TABLE, TABLE, TABLE[:-1]), n_rows), ((TABLE, another), order), ((TABLE, TABLE, new), order),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=f"the Query {match}"):
            fit_out_of_core(make_forest(), Query(*tables), "label", drop=["weight"])


@pytest.mark.usefixtures("mapped_files_stay")
@pytest.mark.parametrize("copied", [False, True])
def test_no_map_outlives_the_fit(monkeypatch, tmp_path, folder, copied):
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
    assert "3,000 rows of 8 features: the binned data fit into the limit; 2 threads, up to " in said
    for what in ("rows read", "rows coded", "trees"):
        assert f"{what}: 100%" in said


def test_arguments_of_other_types():
    forest = make_forest()
    sentence = "^fit_out_of_core needs an AUCForestClassifier, got AUCStackingClassifier: fit it in memory$"
    with pytest.raises(TypeError, match=sentence):
        fit_out_of_core(AUCStackingClassifier(forest), TABLE, "label")
    with pytest.raises(TypeError, match=r"drop must be a list of column names, such as \['few'\]"):
        fit_out_of_core(forest, TABLE, "label", drop="few")
    with pytest.raises(TypeError, match=r"keep must be a list"):
        predict_out_of_core(forest, TABLE, keep="few")


PREDICTED = make_rows(1000)
NEW = make_rows(1000, seed=7)


@pytest.fixture(scope="module")
def forest():
    return make_forest(threshold="prevalence").fit(*features_and_labels(PREDICTED))


def predicted(*arguments, **options):
    return pa.Table.from_batches(predict_out_of_core(*arguments, **options))


unseen = pytest.mark.filterwarnings("ignore:column 'text'. 82 of 1,000 rows .* have a category")


@unseen
def test_a_stack_reads_the_columns_of_its_forest():
    stack = AUCStackingClassifier(make_forest(n_estimators=30), threshold="gmean").fit(*features_and_labels(PREDICTED))
    X, _ = features_and_labels(NEW)
    got = predicted(stack, NEW.select(NEW.column_names[::-1]))
    assert np.array_equal(got["probability_b"], stack.predict_proba(X)[:, 1])
    assert got["prediction"].to_pylist() == stack.predict(X).tolist()


@unseen
def test_files_are_written_whole_or_not_at_all(forest, tmp_path):
    pq.write_table(NEW, tmp_path / "new.parquet", row_group_size=100)
    assert predict_out_of_core(forest, tmp_path / "new.parquet", out=tmp_path / "out.parquet") == 1000
    expected = predicted(forest, NEW)
    assert pq.read_table(tmp_path / "out.parquet").equals(expected)
    pq.write_table(NEW.set_column(0, "double", pa.array(["1.5"] * 900 + ["x"] * 100)), tmp_path / "new.parquet")
    with pytest.raises(ValueError, match=r"new.parquet, row 901: column 'double' has the value 'x', which is not a"):
        predict_out_of_core(forest, tmp_path / "new.parquet", out=tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.parquet", "out.parquet"]


def test_words_are_words_in_types_that_know_nothing_from_text():
    text = pa.array(["NA", "", "x", None] * 25)
    table = pa.table({"text": text, "number": range(100), "y": [1, 0, 0, 1] * 25})
    forest = AUCForestClassifier(5, random_state=0).fit(table.select(["text", "number"]), table["y"].to_numpy())
    got = predicted(forest, table)
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
        got = predicted(forest, source, proba=True, date_format=date_format)
        assert np.array_equal(got["probability_True"], proba)


@pytest.mark.parametrize("columns", [["double", "nan", "few"], ["float"], ["text", "coded"]])
def test_columns_of_one_kind(columns):
    check(TABLE.select([*columns, "label", "weight"]), {})

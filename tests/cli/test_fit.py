"""`aucforest fit`: the model, the output and the errors."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import aucforest
from aucforest.inspection.folds import LabelledRows, make_folds, run_folds
from aucforest.metrics.confidence import auc_with_interval
from aucforest.tables import text_files
from aucforest.tables.text_files import TextFiles
from tests.cli.data import check_refusal, check_usage, frame_of, json_of, mixed, read_json, run, succeed

TREES = "--target label --out m --threshold gmean --trees 20"  # as those of model.aucforest
FIT = "fit train.csv --target label --out m --drop id,weight"
VISITS = "fit visits.csv --target label --positive yes --out m"


def same_bytes(one="m", other="model.aucforest"):
    return Path(one).read_bytes() == Path(other).read_bytes()


def forest(rows, weight=None, **params):
    """Fit the same forest in Python."""
    forest = aucforest.AUCForestClassifier(20, oob_score=True, random_state=0, **params)
    return forest.fit(frame_of(rows), rows["label"].to_numpy(str), sample_weight=weight)


def test_the_model_is_that_of_python_and_the_figures_are_out_of_bag(files):
    rows, X, loaded = mixed(300, 0), frame_of(mixed(250, 1)), aucforest.load("model.aucforest")
    expected, is_positive = forest(rows, threshold="gmean"), rows["label"].to_numpy() == "yes"
    assert np.array_equal(loaded.predict_proba(X), expected.predict_proba(X))
    assert loaded.threshold_ == expected.threshold_
    assert loaded.feature_names_in_.tolist() == ["width", "colour", "count", "flag"]
    assert set(loaded.categories_) == {1, 3}
    assert loaded.n_jobs is None
    assert not hasattr(loaded, "oob_decision_function_")
    score, auc = expected.oob_decision_function_[:, 1], expected.oob_score_
    seen = np.isfinite(score)
    _, low, high = auc_with_interval(is_positive[seen], score[seen], auc=auc)
    for text in (
        "train.csv, label", f"{auc:.4f}", f"{low:.4f} to {high:.4f}", "300 rows",
        "4 columns, 2 of them categorical; 4 features", "labels: yes where its probability is at least",
    ):  # fmt: skip
        assert text in files.stdout, text
    assert "model: model.aucforest" in files.stderr


def test_a_stack_is_that_of_python(stack):
    loaded, rows, X = aucforest.load(stack.path), mixed(300, 0), frame_of(mixed(250, 1))
    expected = clone(loaded).fit(frame_of(rows), rows["label"].to_numpy(str))
    assert np.array_equal(loaded.predict_proba(X), expected.predict_proba(X))
    assert (loaded.threshold_, loaded.oob_score_) == (expected.threshold_, expected.oob_score_)
    proba, found = expected.oob_decision_function_, pd.read_csv(stack.path.with_name("r.csv"))
    seen = np.isfinite(proba[:, 0])
    np.testing.assert_allclose(found[["probability_no", "probability_yes"]], proba[seen], rtol=1e-12)
    assert found["label"].tolist() == rows["label"][seen].tolist()
    assert (found["prediction"] == "yes").tolist() == (proba[seen, 1] >= expected.threshold_).tolist()
    assert loaded.n_jobs is loaded.forest.n_jobs is None
    for member in (loaded, *loaded.members_.values()):
        assert not hasattr(member, "oob_decision_function_")
        assert getattr(member, "n_jobs", None) is None
    members = stack.figures["members"]
    assert members == dict(zip(expected.members_, expected.weights_.tolist()))
    assert list(members) == ["forest", "residual", "boosted", "linear"]
    assert f"members: {', '.join(f'{name} {weight:.2g}' for name, weight in members.items())}" in stack.said
    assert stack.figures["metrics"]["out of bag"][0]["value"] == pytest.approx(expected.oob_score_)


@pytest.mark.parametrize("prefix", ["", "forest__"], ids=["forest", "stack"])
def test_options_are_parameters(files, prefix):
    options = "--trees 25 --criterion gini --splitter random --max-depth 3 --min-samples-leaf 2 --max-features 0.5"
    options += " --class-weight balanced --shrinkage 4 --seed 3 --threshold argmax --sampling stratified"
    said = succeed(f"{FIT} {options} --model {'stack' if prefix else 'forest'}").stdout
    params = {
        "n_estimators": 25, "criterion": "gini", "splitter": "random", "max_depth": 3, "min_samples_leaf": 2,
        "max_features": 0.5, "class_weight": "balanced", "shrinkage": 4, "random_state": 3, "sampling": "stratified",
    }  # fmt: skip
    model = aucforest.load("m")
    assert {f"{prefix}{name}": value for name, value in params.items()}.items() <= model.get_params().items()
    assert "labels: the most probable class" in said
    assert model.threshold is model.threshold_ is None


def test_weights_and_options_without_a_value(files):
    rows, X = mixed(300, 0), frame_of(mixed(250, 1))
    succeed(f"{FIT} --trees 20 --weight weight --sampling balanced --shrinkage none --max-features log2")
    expected = forest(rows, rows["weight"], sampling="balanced", shrinkage=None, max_features="log2")
    assert np.array_equal(aucforest.load("m").predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize(("model", "folds"), [("forest", 3), ("stack", 2)])
def test_cross_validation_is_that_of_compare_criteria(model, folds):
    """The forest has so few positive rows that an interval must be clipped to the range of its metric."""
    few = mixed(60, 6).assign(label=["yes"] * 6 + ["no"] * 54)
    rows = few if model == "forest" else mixed(300, 0)
    rows.to_csv("train.csv", index=False)
    content = read_json(f"{FIT} --model {model} --trees 30 --validate {folds}")
    assert content["class_counts"] == rows["label"].value_counts().to_dict()
    assert ("members" in content, "time_folds" in content) == (model == "stack", False)
    figures = content["metrics"][f"{folds} folds"]
    metrics = ["roc_auc", "average_precision", "g_mean", "brier", "log_loss"]
    assert [figure["metric"] for figure in figures] == metrics
    comparison = aucforest.inspection.compare_criteria(
        frame_of(rows), rows["label"].to_numpy(str), criteria=["stack" if model == "stack" else "auto"], cv=folds,
        random_state=0, n_estimators=30, metrics=metrics, verbose=0,
    )  # fmt: skip
    expected = [row for row in comparison.summary() if row.criterion != "gini"]
    for figure, row in zip(figures, expected, strict=True):
        assert figure == pytest.approx({"metric": row.metric, "value": row.mean, "low": row.low, "high": row.high})
        assert row.metric == "log_loss" or row.high <= 1


def test_groups_are_never_divided(visits):
    fit = f"{VISITS} --drop date --trees 30 --groups customer"
    content, rows = read_json(f"{fit} --validate 3"), pd.read_csv("visits.csv", dtype=str)
    X, y, groups = rows[["width"]].astype(float), rows["label"].to_numpy(str), rows["customer"].to_numpy(str)
    expected = aucforest.AUCForestClassifier(30, oob_score=True, threshold="prevalence", random_state=0)
    expected.fit(X, y, groups=groups)
    assert np.array_equal(aucforest.load("m").predict_proba(X), expected.predict_proba(X))
    # There is no interval, because that of independent rows would be too narrow.
    assert content["metrics"]["out of bag"] == [
        {"metric": "roc_auc", "value": pytest.approx(expected.oob_score_), "low": None, "high": None}
    ]
    samples, forests = LabelledRows(X, y, None, groups), {"": expected.set_params(oob_score=False)}
    folds = make_folds(X, y, cv=3, groups=groups, random_state=0)
    found = run_folds(forests, samples, folds, ["roc_auc"], np.random.RandomState(0), verbose=0)["roc_auc"].mean()
    assert content["metrics"]["3 folds by customer"][0]["value"] == pytest.approx(found)
    streamed = read_json(f"{fit} --out streamed --folder folder")
    assert same_bytes("streamed", "m")
    assert streamed["metrics"]["out of bag"] == content["metrics"]["out of bag"]
    ungrouped = f"{VISITS} --drop date,customer --trees 30 --folder folder"
    check_refusal(run(ungrouped), "of another fit: groups is 'customer'")


def test_folds_forward_in_time(visits):
    result = succeed(f"{VISITS} --drop customer --trees 10 --validate 2 --time date --json -")
    content = json.loads(result.stdout)
    assert content["n_features"] == 1
    assert len(content["metrics"]["2 folds by date"]) == 5
    assert [(fold["n_train"], fold["n_test"]) for fold in content["time_folds"]] == [(100, 100), (200, 100)]
    assert "2024-01-30 to 2024-02-18" in result.stderr
    succeed(f"{VISITS} --drop customer,date --trees 10 --out plain")
    assert same_bytes("m", "plain")


def test_a_quantity_makes_two_classes():
    labels = np.random.default_rng(0).permutation(121) * 1000 + 7
    mixed(121, 2).assign(label=labels).to_parquet("rows.parquet")
    sentence = (
        "column 'label' has 121 distinct integers in 121 rows, which looks like a quantity, not classes: make two"
        " classes of it with --positive '>=60007', or bin it and write the bins as text"
    )
    for command in ("fit --drop id --out m", "compare --folds 2 --repeats 1"):
        check_refusal(run(f"{command} rows.parquet --target label"), sentence)
        assert Path("m").exists() == command.startswith("compare")
        content = read_json(f"{command} rows.parquet --target label --trees 5 --positive >=60007")
        assert content["class_counts"] == {"not >=60007": 60, ">=60007": 61}
        assert content["data"] == "rows.parquet, label >=60007"
    assert aucforest.load("m").classes_.tolist() == [">=60007", "not >=60007"]
    content = read_json("evaluate m rows.parquet --target label")
    assert np.sum(content["confusion_matrix"], axis=1).tolist() == [61, 60]


def test_few_integers_and_text_are_classes():
    """Integers are classes if they are few (50) or have many rows each (100). Text needs fewer rows."""
    numbers = np.arange(6000)
    for labels in (numbers % 60, numbers[:600] // 12, np.char.add("c", (numbers[:900] % 70).astype(str))):
        pd.DataFrame({"x": numbers[: len(labels)], "y": labels}).to_csv("t.csv", index=False)
        succeed("fit t.csv --target y --out m --trees 1")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_are_trained_out_of_core(kind):
    rows, fit = mixed(300, 0), f"fit rows.{kind} {TREES} --drop id --weight weight"
    rows.to_csv("rows.csv", index=False) if kind == "csv" else rows.to_parquet("rows.parquet")
    whole, expected = run(f"{fit} --out whole --json w.json --validate 2"), json_of("w.json")
    del expected["metrics"]["2 folds"]
    for _ in range(2):
        result = succeed(f"{fit} --json m.json --memory-limit 1GB --folder folder")
        assert same_bytes("m", "whole")
        assert json_of("m.json") == expected
        assert result.stdout.splitlines()[-1] == whole.stdout.splitlines()[-1]
    assert list(Path("folder").glob("trees-*.safetensors"))
    check_refusal(run(f"{fit} --memory-limit 1kB"), "memory_limit=1,000 bytes is too")


def test_costs_are_of_the_positive_class():
    text, thresholds = "alerts=60,cost=1:10", []
    for positive, cost in (("a fraud", [[0, 10], [1, 0]]), ("the fraud", [[0, 1], [10, 0]])):
        mixed(150, 2).replace({"label": {"yes": positive, "no": "ok"}}).to_csv("train.csv", index=False)
        result, model = succeed(f"{FIT} --trees 10 --threshold {text} --validate 2"), aucforest.load("m")
        assert f"{positive} where its probability is at least {model.threshold_:.4g} ({text})" in result.stdout
        assert model.get_params()["threshold"] == {"alerts": 60, "cost": cost}
        thresholds.append(model.threshold_)
    # The order of classes changes the forest a little.
    assert thresholds[0] == pytest.approx(thresholds[1], abs=0.02)


@pytest.mark.parametrize("weight", ["", "--weight weight"], ids=["plain", "weighted"])
@pytest.mark.parametrize("option", ["", "--memory-limit 1GB", "--folder folder"])
def test_a_small_csv_is_read_into_memory(files, monkeypatch, option, weight):
    readings, read = [], TextFiles._read

    def read_and_count(table, columns, schema):
        readings.append(list(columns))
        return read(table, columns, schema)

    monkeypatch.setattr(TextFiles, "_read", read_and_count)
    succeed(f"fit train.csv {TREES} --drop {'id' if weight else 'id,weight'} {option} {weight}")
    roles = ["label", "weight"] if weight else ["label"]
    if option:
        assert len(readings) == len(["labels", "notes", "first batch", "bins", "codes", "out of bag"])
        assert [sum(name in columns for columns in readings) for name in roles] == [1] * len(roles)
    else:
        assert readings == [roles, ["width", "colour", "count", "flag"]]
    assert weight or same_bytes()


def test_standard_input_in_batches_and_a_column_without_a_name(files):
    result = succeed(f"fit - {TREES}", input=mixed(300, 0).drop(columns=["id", "weight"]).to_csv())
    assert "standard input, label" in result.stdout
    assert "Warning: a column without a name" in result.stderr
    assert same_bytes()
    succeed(f"fit - {TREES} --drop id,weight --memory-limit 1GB", input=Path("train.csv").read_bytes())
    assert same_bytes()


def test_wrong_tables_and_columns_are_refused_in_one_line():
    rows = mixed(40, 0)
    frames = {
        "t": rows, "none": rows[:0], "three": rows.assign(label=rows.index % 3),
        "many": pd.DataFrame({"x": range(600), "label": [f"c{row % 70}" for row in range(600)]}),
    }  # fmt: skip
    for name, frame in frames.items():
        frame.to_csv(f"{name}.csv", index=False)
    Path("t.xls").write_text("PK")
    Path("folder").mkdir()
    for arguments, sentence in [
        ("none.csv", "has a header, but no rows"),
        ("t.xls", "the name of a table must end in .csv, .tsv, .txt, .jsonl or .ndjson (or .gz"),
        ("t.csv --weight colour", "column 'colour' has the value '"),
        ("t.csv --positive >=18", "t.csv, line 2: column 'label' has the value 'no', which is not a number"),
        ("t.csv --target width", "not class labels; --positive '>="),
        ("t.csv --drop id --validate 31", "too few for 31 folds"),
        ("three.csv --drop id --threshold cost=1:10", "--threshold with cost is for two classes, but there"),
        ("many.csv", "column 'label' has 70 distinct labels in 600 rows, too many classes to learn: name one label"),
        ("t.csv --out no/m", "the folder no does not exist"),
        ("t.csv --out folder", "is a folder, not a file to write"),
        ("t.csv --out t.csv", "would be overwritten"),
    ]:
        check_refusal(run(f"fit --target label --out m {arguments}"), sentence)
        assert not Path("m").exists()


def test_wrong_calls_exit_with_2(files):
    fit = "fit train.csv --target label"
    check_usage(run(fit), "Missing option '--out'")
    for arguments, sentence in [
        ("--criterion ginny", "'ginny' is not one of 'auto', 'auc', 'gini'"),
        ("--threshold ginny", "argmax or a probability, but is 'ginny'"),
        ("--trees 0", "'--trees'"),
        ("--jobs 0", "must be at least 1, or -1 for all cores, but is 0"),
        ("--memory-limit lots", "must be a number of bytes, such as"),
        ("--max-features many", "must be sqrt, log2 or a number, but is 'many'"),
        ("--shrinkage some", "must be auto or a number, but is 'some'"),
        ("--reference out.txt", "must end in .csv, .parquet, got out.txt"),
        ("--folder f --validate 2", "is for fits without --validate"),
        ("--folder f --model stack", "--folder: is for --model forest: a stack is fitted in memory"),
        ("--memory-limit 1GB --model stack", "--memory-limit: is for --model forest: a stack is fitted"),
        ("--time id", "--time: needs --validate"),
        ("--keep width", "--keep: needs --reference"),
        ("--drop id --trees 2 --drop width", "--drop: is given 2 times: give one list, separated by commas"),
        ("--out -", "--out: must be a file: a model is not written to standard output"),
        ("--validate 2 --time id --groups id", "cannot be combined"),
    ]:
        check_usage(run(f"{fit} --out m {arguments}"), sentence)


both = pytest.mark.parametrize("streams", ["", "--memory-limit 1GB"])


@both
def test_the_reference_has_out_of_bag_predictions_and_columns_of_the_table(files, streams, monkeypatch):
    monkeypatch.setattr(text_files, "rows_of_batch", lambda n_columns: 70)
    rows = mixed(300, 0).assign(day=np.repeat(pd.date_range("2024-01-01", periods=60), 5).astype("M8[s]"))
    rows["label"] = np.where(rows["label"] == "yes", "bad", "good")
    rows.to_csv("train.csv", index=False, date_format="%Y-%m-%d")
    succeed(f"{FIT},day --trees 20 --reference r.parquet --keep width,day,label,colour {streams}")
    found = pd.read_parquet("r.parquet")
    fitted = forest(rows.drop(columns="day"), threshold="prevalence", pos_label="bad")
    names = ["width", "day", "colour", "label", "prediction", "probability_bad", "probability_good"]
    assert found.columns.tolist() == names
    proba = fitted.oob_decision_function_[:, 0]
    seen = np.isfinite(proba)
    expected = rows[seen].reset_index(drop=True)
    np.testing.assert_allclose(found["probability_bad"], proba[seen], rtol=1e-12)
    assert (found["prediction"] == "bad").tolist() == (proba[seen] >= fitted.threshold_).tolist()
    assert found["day"].map(pd.Timestamp).tolist() == expected["day"].tolist()
    for name in ("label", "colour"):
        assert found[name].fillna("").tolist() == expected[name].fillna("").tolist()
    np.testing.assert_array_equal(found["width"], expected["width"])
    found.assign(width=found["width"].fillna(0.0)).to_parquet("n.parquet")
    options = "--score probability_bad --target label --features width --number 2"
    assert read_json(f"estimate n.parquet n.parquet {options}")["estimates"][0]["domain_auc"] is not None


@both
def test_stray_text_in_columns_of_the_reference(streams):
    numbers = [*range(299), "n/k"]
    mixed(300, 0)[["width", "label"]].assign(a=numbers, b=numbers).to_csv("t.csv", index=False)
    fitted = run(f"fit t.csv --target label --out m --drop b --trees 20 --reference r.parquet --keep a,b {streams}")
    for name in "ab":
        assert f"Note: column '{name}': 1 of 300 values is no number ('n/k'), read as missing;" in fitted.stderr
    assert pd.read_parquet("r.parquet", columns=["a", "b"]).dtypes.tolist() == [np.float64, np.float64]


def test_two_columns_of_the_reference_have_no_name_in_common(tmp_path):
    for name in ("prediction", "probability_yes"):
        mixed(100, 0).rename(columns={"label": name}).to_csv("t.csv", index=False)
        fit = f"fit t.csv --target {name} --out m --drop id --reference r.csv"
        check_refusal(run(fit), f"the reference would have two columns named {name!r}: rename that of t.csv")
    check_refusal(run(f"{fit} --keep widht"), "has no column 'widht'; did you mean 'width'")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_the_model_is_there_if_the_reference_cannot_be_written(files):
    result = run(f"fit train.csv {TREES} --drop id,weight --reference {'r' * 240}.csv")  # a name that is too long
    assert result.exit_code == 1
    assert "File name too long" in result.stderr
    assert same_bytes()
    assert result.stdout == files.stdout

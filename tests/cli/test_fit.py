"""`aucforest fit`: the model it writes, the figures it prints, what it refuses."""

import json

import numpy as np
import pandas as pd
import pytest

import aucforest
from aucforest.inspection.folds import Samples, make_folds, run_folds
from aucforest.metrics.confidence import auc_with_interval
from aucforest.tables import text_files
from aucforest.tables.text_files import TextFiles
from tests.cli.data import check_refusal, check_usage, frame_of, mixed, read_json, run, succeed


def forest(rows, **params):
    """Fit the same forest in Python."""
    forest = aucforest.AUCForestClassifier(20, oob_score=True, random_state=0, **params)
    return forest.fit(frame_of(rows), rows["label"].to_numpy(str))


def test_the_model_is_that_of_python(files):
    loaded, expected = aucforest.load(files.model_aucforest), forest(mixed(300, 0), threshold="gmean")
    X = frame_of(mixed(250, 1))
    assert np.array_equal(loaded.predict_proba(X), expected.predict_proba(X))
    assert loaded.threshold_ == expected.threshold_
    assert loaded.feature_names_in_.tolist() == ["width", "colour", "count", "flag"]
    assert set(loaded.categories_) == {1, 3}
    assert loaded.n_jobs is None
    assert not hasattr(loaded, "oob_decision_function_")


def test_the_figures_are_out_of_bag(files):
    rows = mixed(300, 0)
    fitted, is_positive = forest(rows), rows["label"].to_numpy() == "yes"
    score, auc = fitted.oob_decision_function_[:, 1], fitted.oob_score_
    seen = np.isfinite(score)
    _, low, high = auc_with_interval(is_positive[seen], score[seen], auc=auc)
    for text in (
        "train.csv, label",
        f"{auc:.4f}",
        f"{low:.4f} to {high:.4f}",
        "300 rows",
        "4 columns, 2 of them categorical; 4 features",
        "labels: yes where its probability is at least",
    ):
        assert text in files.fitted.stdout, text
    assert f"model: {files.model_aucforest}" in files.fitted.stderr


def stack_of(rows, n_trees=30, **params):
    """Fit the same stack in Python."""
    forest = aucforest.AUCForestClassifier(n_trees, random_state=0, **params)
    stack = aucforest.AUCStackingClassifier(forest, threshold="gmean", oob_score=True)
    return stack.fit(frame_of(rows), rows["label"].to_numpy(str))


def test_a_stack_is_that_of_python(stack):
    loaded, expected, X = aucforest.load(stack.path), stack_of(mixed(300, 0)), frame_of(mixed(250, 1))
    assert np.array_equal(loaded.predict_proba(X), expected.predict_proba(X))
    assert loaded.predict(X).tolist() == expected.predict(X).tolist()
    assert (loaded.threshold_, loaded.oob_score_) == (expected.threshold_, expected.oob_score_)
    assert loaded.n_jobs is loaded.forest.n_jobs is None
    for member in (loaded, *loaded.members_.values()):
        assert not hasattr(member, "oob_decision_function_")
        assert getattr(member, "n_jobs", None) is None
    assert stack.figures["members"] == dict(zip(expected.members_, expected.weights_.tolist()))
    assert list(stack.figures["members"]) == ["forest", "residual", "boosted", "linear"]
    weights = ", ".join(f"{name} {weight:.2g}" for name, weight in stack.figures["members"].items())
    assert f"members: {weights}" in stack.fitted.stdout
    assert stack.figures["metrics"]["out of bag"][0]["value"] == pytest.approx(expected.oob_score_)


def test_options_of_the_forest_are_for_a_stack_too(files, tmp_path):
    arguments = ["--model", "stack", "--drop", "id,weight", "--trees", 25, "--criterion", "gini", "--max-depth", 3]
    arguments += ["--threshold", "gmean", "--shrinkage", 4, "--class-weight", "balanced", "--min-samples-leaf", 2]
    out = ["--out", tmp_path / "m", "--reference", tmp_path / "reference.csv", "--keep", "id"]
    succeed("fit", files.train_csv, "--target", "label", *arguments, *out)
    params = {"criterion": "gini", "max_depth": 3, "class_weight": "balanced", "min_samples_leaf": 2}
    expected, X = stack_of(mixed(300, 0), 25, shrinkage=4, **params), frame_of(mixed(250, 1))
    assert np.array_equal(aucforest.load(tmp_path / "m").predict_proba(X), expected.predict_proba(X))
    # pandas 2.2 rounds what it reads
    reference = pd.read_csv(tmp_path / "reference.csv", dtype={"probability_yes": str})
    proba = expected.oob_decision_function_
    seen = np.isfinite(proba[:, 0])
    assert reference["id"].tolist() == np.flatnonzero(seen).tolist()
    np.testing.assert_array_equal(reference["probability_yes"].astype(float), proba[seen, 1])
    assert reference["prediction"].eq("yes").tolist() == (proba[seen, 1] >= expected.threshold_).tolist()


@pytest.mark.parametrize(
    ("model", "criterion", "trees", "folds"), [("forest", "auto", 10, 3), ("stack", "stack", 30, 2)]
)
def test_cross_validation_is_that_of_compare_criteria(files, tmp_path, model, criterion, trees, folds):
    arguments = ["--model", model, "--drop", "id,weight", "--trees", trees, "--validate", folds]
    content = read_json("fit", files.train_csv, "--target", "label", "--out", tmp_path / "m", *arguments)
    assert content["class_counts"] == {"no": 216, "yes": 84}
    assert ("members" in content, "time_folds" in content) == (model == "stack", False)
    figures = content["metrics"][f"{folds} folds"]
    assert [figure["metric"] for figure in figures] == ["roc_auc", "average_precision", "g_mean", "brier", "log_loss"]
    assert figures[0]["low"] < figures[0]["value"] < figures[0]["high"]
    comparison = aucforest.inspection.compare_criteria(
        frame_of(mixed(300, 0)), mixed(300, 0)["label"].to_numpy(str), criteria=[criterion], cv=folds, random_state=0,
        n_estimators=trees, metrics=["roc_auc"], verbose=0,
    )  # fmt: skip
    assert figures[0]["value"] == pytest.approx(comparison.summary()[0].mean)
    assert figures[0]["high"] == pytest.approx(comparison.summary()[0].high)


def test_groups_are_never_divided(visits, tmp_path):
    """Folds, bootstrap samples and the forests of folds are of whole customers, whose column is no feature."""
    arguments = ["--target", "label", "--positive", "yes", "--drop", "date", "--trees", 30, "--groups", "customer"]
    content = read_json("fit", visits, *arguments, "--out", tmp_path / "m", "--validate", 3)
    rows = pd.read_csv(visits, dtype=str)
    X, y, groups = rows[["width"]].astype(float), rows["label"].to_numpy(str), rows["customer"].to_numpy(str)
    expected = aucforest.AUCForestClassifier(30, oob_score=True, threshold="prevalence", random_state=0)
    expected.fit(X, y, groups=groups)
    loaded = aucforest.load(tmp_path / "m")
    assert np.array_equal(loaded.predict_proba(X), expected.predict_proba(X))
    assert loaded._sample_records == expected._sample_records
    # No interval: that of independent rows would be too narrow.
    assert content["metrics"]["out of bag"] == [
        {"metric": "roc_auc", "value": pytest.approx(expected.oob_score_), "low": None, "high": None}
    ]
    random = np.random.RandomState(0)
    folds = make_folds(X, y, cv=3, groups=groups, random_state=0)
    how = {"folds": folds, "metrics": ["roc_auc"], "random_state": random, "verbose": 0}
    forests = {"": expected.set_params(oob_score=False)}
    found = run_folds(forests, Samples(X, y, None, groups), **how)["roc_auc"].mean()
    assert content["metrics"]["3 folds by customer"][0]["value"] == pytest.approx(found)
    assert found != pytest.approx(run_folds(forests, Samples(X, y, None), **how)["roc_auc"].mean())
    streamed = read_json("fit", visits, *arguments, "--out", tmp_path / "streamed", "--memory-limit", "1GB")
    assert (tmp_path / "streamed").read_bytes() == (tmp_path / "m").read_bytes()
    assert streamed["metrics"]["out of bag"] == content["metrics"]["out of bag"]


def test_groups_belong_to_a_checkpoint_folder_and_a_sampling(visits, tmp_path):
    arguments = ["--target", "label", "--positive", "yes", "--trees", 3, "--folder", tmp_path / "folder"]
    arguments += ["--out", tmp_path / "m", "--drop"]
    succeed("fit", visits, *arguments, "date", "--groups", "customer")
    check_refusal(run("fit", visits, *arguments, "date,customer"), "of another fit: groups is 'customer'")
    check_refusal(run("fit", visits, *arguments, "date", "--groups", "custommer"), "did you mean 'customer'?")
    by_class = run("fit", visits, *arguments, "date", "--groups", "customer", "--sampling", "balanced")
    check_refusal(by_class, "groups need sampling='bootstrap', 'subsample' or 'half-samples', but it is 'balanced'")


def test_folds_forward_in_time(visits, tmp_path):
    arguments = ["--target", "label", "--positive", "yes", "--drop", "customer", "--trees", 10, "--validate", 2]
    result = succeed("fit", visits, *arguments, "--time", "date", "--out", tmp_path / "m", "--json", "-")
    content = json.loads(result.stdout)
    assert content["n_features"] == 1
    assert len(content["metrics"]["2 folds by date"]) == 5
    assert [(fold["n_train"], fold["n_test"]) for fold in content["time_folds"]] == [(100, 100), (200, 100)]
    assert "2024-01-30 to 2024-02-18" in result.stderr
    succeed("fit", visits, *arguments[:-2], "--drop", "customer,date", "--out", tmp_path / "plain")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "plain").read_bytes()


def test_intervals_of_few_rows_stay_in_the_range_of_the_metric(tmp_path):
    rows = mixed(60, 6).assign(label=["yes"] * 6 + ["no"] * 54)
    rows.to_csv(tmp_path / "few.csv", index=False)
    arguments = ["--drop", "id,weight", "--criterion", "auc", "--trees", 10, "--validate", 3]
    content = read_json("fit", tmp_path / "few.csv", "--target", "label", "--out", tmp_path / "m", *arguments)
    *shares, log_loss = content["metrics"]["3 folds"]
    assert all(0 <= figure["low"] < figure["value"] < figure["high"] <= 1 for figure in shares)
    assert 0 < log_loss["low"] < log_loss["value"] < log_loss["high"]


TREE_OPTIONS = ["--splitter", "random", "--max-depth", 4, "--min-samples-leaf", 3, "--max-features", 0.5]
TREE_PARAMS = {"splitter": "random", "max_depth": 4, "min_samples_leaf": 3, "max_features": 0.5}


@pytest.mark.parametrize(
    ("options", "params"),
    [
        (["--weight", "weight", "--sampling", "balanced", "--seed", 3], {"sampling": "balanced", "random_state": 3}),
        (
            [*TREE_OPTIONS, "--class-weight", "balanced", "--shrinkage", "none", "--threshold", "argmax"],
            {**TREE_PARAMS, "class_weight": "balanced", "shrinkage": None},
        ),
    ],
    ids=["weights", "trees"],
)
def test_options_are_parameters_of_the_forest(files, tmp_path, options, params):
    arguments = ["--target", "label", "--out", tmp_path / "m", "--drop", "id,weight", "--trees", 20, *options]
    result = succeed("fit", files.train_csv, *arguments, "--criterion", "gini")
    rows = mixed(300, 0)
    expected = aucforest.AUCForestClassifier(20, criterion="gini", **{"random_state": 0, **params})
    weight = rows["weight"] if "--weight" in options else None
    expected.fit(frame_of(rows), rows["label"].to_numpy(str), sample_weight=weight)
    model, X = aucforest.load(tmp_path / "m"), frame_of(mixed(250, 1))
    assert np.array_equal(model.predict_proba(X), expected.predict_proba(X))
    assert ("labels: the most probable class" in result.stdout) == (model.threshold_ is None) == ("argmax" in options)


def test_a_quantity_makes_two_classes(tmp_path):
    rows = mixed(121, 2)
    rows["label"] = np.random.default_rng(0).permutation(121) * 1000 + 7
    path, out = tmp_path / "rows.parquet", tmp_path / "m"
    rows.to_parquet(path)
    sentence = (
        "column 'label' has 121 distinct integers in 121 rows, which looks like a quantity, not classes: make two"
        " classes of it with --positive '>=60007', or bin it and write the bins as text"
    )
    for command, *options in (
        ("fit", "--drop", "id", "--out", out),
        ("compare", "--folds", 2, "--repeats", 1),
    ):
        arguments = [command, path, "--target", "label", "--trees", 5, *options]
        check_refusal(run(*arguments), sentence)
        assert out.exists() == (command == "compare")
        content = read_json(*arguments, "--positive", ">=60007")
        assert content["class_counts"] == {"not >=60007": 60, ">=60007": 61}
        assert content["data"] == "rows.parquet, label >=60007"
    assert aucforest.load(out).classes_.tolist() == [">=60007", "not >=60007"]
    content = read_json("evaluate", out, path, "--target", "label")
    assert np.sum(content["confusion_matrix"], axis=1).tolist() == [61, 60]


def test_a_quantity_with_decimals_is_refused_with_a_command_line_that_can_be_copied(tmp_path):
    path = tmp_path / "rows.csv"
    pd.DataFrame({"x": np.arange(101.0), "price": 500.25 - np.arange(101)}).to_csv(path, index=False)
    for command in (("fit", path, "--out", tmp_path / "m"), ("compare", path)):
        result = run(*command, "--target", "price")
        advice = "--positive '>=450.25' makes two classes"
        check_refusal(result, f"column 'price' has numbers such as 500.25, not class labels; {advice}")
        result = run(*command, "--target", "price", "--positive", ">nan")
        check_refusal(result, "'>nan' compares with NaN, which no number is above or below")


@pytest.mark.parametrize(
    ("kind", "validate"), [("csv", []), ("parquet", ["--validate", 2])], ids=["out of core", "in memory"]
)
def test_few_integers_and_text_are_classes(tmp_path, kind, validate):
    """Few integers, many rows of each, or text; and 50 of few rows, for which a rule would be wrong too often."""
    numbers = np.arange(6000)
    for labels in (numbers % 60, numbers[:600] // 12, np.char.add("c", (numbers[:900] % 70).astype(str))):
        rows = pd.DataFrame({"x": np.random.default_rng(0).normal(size=len(labels))})
        getattr(rows.assign(y=labels), f"to_{kind}")(tmp_path / f"t.{kind}", index=False)
        arguments = ["--target", "y", "--out", tmp_path / "m", "--trees", 1, *validate]
        succeed("fit", tmp_path / f"t.{kind}", *arguments)


def test_a_comparison_may_be_a_label_and_needs_numbers(tmp_path):
    rows = mixed(120, 2).assign(age=np.where(np.arange(120) % 3 == 0, "<18", ">=18"))
    path, arguments = tmp_path / "rows.csv", ("--out", tmp_path / "m", "--drop", "id", "--trees", 5)
    rows.to_csv(path, index=False)
    result = run("fit", path, "--target", "age", "--positive", ">=18", *arguments)
    assert "<18 40, >=18 80" in result.stdout
    result = run("fit", path, "--target", "label", "--positive", ">=18", *arguments)
    check_refusal(result, "rows.csv, line 2: column 'label' has the value 'no', which is not a number")


def test_an_index_of_pandas_is_no_column(files, tmp_path):
    rows = mixed(300, 0).drop(columns=["id", "weight"])
    rows.set_axis(range(7, 307)).astype({"colour": "category"}).to_parquet(tmp_path / "rows.parquet", index=True)
    arguments = ["--target", "label", "--out", tmp_path / "m", "--threshold", "gmean", "--trees", 20]
    result = succeed("fit", tmp_path / "rows.parquet", *arguments)
    assert "Warning: a column without a name" in result.stderr
    assert (tmp_path / "m").read_bytes() == files.model_aucforest.read_bytes()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_are_trained_out_of_core(tmp_path, kind):
    """The same figures and the same model as by cross-validation, which needs all rows in memory."""
    rows, path = mixed(300, 0), tmp_path / f"rows.{kind}"
    rows.to_csv(path, index=False) if kind == "csv" else rows.to_parquet(path)
    arguments = ["fit", path, "--target", "label", "--drop", "id", "--weight", "weight",
                 "--trees", 20, "--threshold", "gmean"]  # fmt: skip
    whole = run(*arguments, "--out", tmp_path / "whole", "--json", tmp_path / "w.json", "--validate", 2)
    options = ["--memory-limit", "1GB", "--folder", tmp_path / "folder"]
    for _ in range(2):
        result = succeed(*arguments, "--out", tmp_path / "m", "--json", tmp_path / "m.json", *options)
        assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
        contents = [json.loads((tmp_path / name).read_text()) for name in ("w.json", "m.json")]
        contents[0]["metrics"].pop("2 folds")
        assert contents[0] == contents[1]
        assert result.stdout.splitlines()[-1] == whole.stdout.splitlines()[-1]
    assert list((tmp_path / "folder").glob("trees-*.safetensors"))
    check_refusal(run(*arguments, "--out", tmp_path / "m", "--memory-limit", "1kB"), "memory_limit=1,000 bytes is too")


@pytest.mark.parametrize("text", ["recall=0.8", "alerts=60,cost=1:10"])
def test_costs_and_recalls_are_of_the_positive_class(tmp_path, text):
    """In the command line the rarer of two labels is positive, whichever comes first in sorted order."""
    models = []
    for positive in ("a fraud", "the fraud"):
        rows = mixed(150, 2).drop(columns=["id", "weight"]).replace({"label": {"yes": positive, "no": "ok"}})
        rows.to_csv(tmp_path / "rows.csv", index=False)
        arguments = ["--target", "label", "--trees", 10, "--threshold", text, "--validate", 2, "--out", tmp_path / "m"]
        result = succeed("fit", tmp_path / "rows.csv", *arguments)
        models.append(aucforest.load(tmp_path / "m"))
        shown = f"{positive} where its probability is at least {models[-1].threshold_:.4g} ({text})"
        assert shown in result.stdout
    # a forest of the same rows with the classes in another order differs a little
    assert models[0].threshold_ == pytest.approx(models[1].threshold_, abs=0.02)
    costs = [[[0, 10], [1, 0]], [[0, 1], [10, 0]]]  # in the order of the classes
    for model, cost in zip(models, costs, strict=True):
        rule = {"recall": 0.8} if text == "recall=0.8" else {"alerts": 60, "cost": cost}
        assert model.get_params()["threshold"] == rule


@pytest.mark.parametrize("weight", [[], ["--weight", "weight"]], ids=["plain", "weighted"])
@pytest.mark.parametrize("option", [[], ["--memory-limit", "1GB"], ["--folder", "folder"]], ids=" ".join)
def test_a_small_csv_is_read_into_memory(files, tmp_path, monkeypatch, option, weight):
    """Within a limit of memory, or with a folder, the file is read again and again, but for its labels and weights."""
    readings, read = [], TextFiles._read

    def read_and_count(table, columns, schema):
        readings.append(list(columns))
        return read(table, columns, schema)

    monkeypatch.setattr(TextFiles, "_read", read_and_count)
    monkeypatch.chdir(tmp_path)
    arguments = ["--drop", "id" if weight else "id,weight", "--threshold", "gmean", "--trees", 20, *option, *weight]
    succeed("fit", files.train_csv, "--target", "label", "--out", "m", *arguments)
    roles = ["label", "weight"] if weight else ["label"]
    if option:
        assert len(readings) == len(["labels", "notes", "first batch", "bins", "codes", "out of bag"])
        assert [sum(name in columns for columns in readings) for name in roles] == [1] * len(roles)
    else:
        assert readings == [roles, ["width", "colour", "count", "flag"]]
    if not weight:
        assert (tmp_path / "m").read_bytes() == files.model_aucforest.read_bytes()


def test_standard_input_in_batches_and_a_column_without_a_name(files, tmp_path):
    arguments = "--target", "label", "--out", tmp_path / "m", "--threshold", "gmean", "--trees", 20
    text = mixed(300, 0).drop(columns=["id", "weight"]).to_csv()
    result = succeed("fit", "-", *arguments, input=text)
    assert "standard input, label" in result.stdout
    assert "Warning: a column without a name" in result.stderr
    assert (tmp_path / "m").read_bytes() == files.model_aucforest.read_bytes()
    in_batches = "--drop", "id,weight", "--memory-limit", "1GB"
    succeed("fit", "-", *arguments, *in_batches, input=files.train_csv.read_bytes())
    assert (tmp_path / "m").read_bytes() == files.model_aucforest.read_bytes()


def refusals(folder):
    """Return arguments of `fit`, and a part of the error message."""
    rows = mixed(40, 0)
    written = iter(range(100))

    def path(content, suffix="csv"):
        file = folder / f"{next(written)}.{suffix}"
        if isinstance(content, pd.DataFrame):
            content.to_csv(file, index=False) if suffix == "csv" else content.to_parquet(file)
        else:
            file.write_bytes(content)
        return file

    table, three = path(rows), path(rows.assign(label=(rows.index % 3)))
    many = path(pd.DataFrame({"x": range(600), "label": [f"c{row % 70}" for row in range(600)]}))
    text = table.read_text()
    no_id = ("--drop", "id")
    return [
        ((folder / "none.csv",), "there is no file"),
        ((folder,), "some are CSV and others Parquet files"),
        ((path(rows[:0]),), "has a header, but no rows"),
        ((path(rows[:0], "parquet"),), "has no rows"),
        ((path(f"{text}1,2\n{text}".encode()),), "line 42: the header has 7 columns, but the row has 2"),
        ((path(b"PAR1", "parquet"),), "cannot read"),
        ((path(b"PK", "xls"),), "the name of a table must end in .csv, .tsv, .txt, .jsonl or .ndjson (or .gz"),
        ((path(f"{text}{text}".encode()),), "line 42 repeats the header: remove that line"),
        ((table, "--target", "lable"), "has no column 'lable'; did you mean 'label'?"),
        ((table, "--drop", "i"), "has no column 'i'"),
        ((table, "--drop", "id,width,colour,count,flag,weight"), "has no feature columns besides 'label'"),
        ((table, "--weight", "colour"), "column 'colour' has the value '"),
        ((table, "--positive", "yess"), "has no label 'yess'; its labels are 'no', 'yes'"),
        ((path(rows.assign(label="yes")),), "column 'label' has only one class, yes"),
        ((path(rows.assign(label=rows["label"].where(rows.index > 2))),), "has 3 missing labels, the first in "),
        ((table, "--target", "width"), "not class labels; --positive '>="),
        ((path(rows.assign(label=[[1], [2]] * 20), "parquet"),), "not class labels"),
        ((table, *no_id, "--validate", "31"), "too few for 31 folds"),
        ((three, *no_id, "--threshold", "cost=1:10"), "--threshold with cost is for two classes, but there"),
        ((many,), "column 'label' has 70 distinct labels in 600 rows, too many classes to learn: name one label"),
        ((table, "--out", folder / "no" / "m"), f"the folder {folder / 'no'} does not exist"),
        ((table, "--out", folder), "is a folder, not a file to write"),
        ((table, "--out", table), "would be overwritten"),
    ]  # fmt: skip


def test_wrong_tables_and_columns_are_refused_in_one_line(tmp_path):
    for arguments, sentence in refusals(tmp_path):
        defaults = {"--target": "label", "--out": tmp_path / "m"}
        for name, value in defaults.items():
            if name not in arguments:
                arguments = (*arguments, name, value)
        check_refusal(run("fit", *arguments), sentence)
        assert not (tmp_path / "m").exists()


WRONG_CALLS = [
    (["--criterion", "ginny"], "'ginny' is not one of 'auto', 'auc', 'gini'"),
    (["--threshold", "ginny"], "argmax or a probability, but is 'ginny'"),
    (["--trees", "0"], "'--trees'"),
    (["--jobs", "0"], "must be at least 1, or -1 for all cores, but is 0"),
    (["--memory-limit", "lots"], "must be a number of bytes, such as"),
    (["--max-features", "many"], "must be sqrt, log2 or a number, but is 'many'"),
    (["--shrinkage", "some"], "must be auto or a number, but is 'some'"),
    (["--reference", "out.txt"], "must end in .csv, .parquet, got out.txt"),
    (["--folder", "f", "--validate", "2"], "is for fits without --validate"),
    (["--folder", "f", "--model", "stack"], "--folder: is for --model forest: a stack is fitted in memory"),
    (["--memory-limit", "1GB", "--model", "stack"], "--memory-limit: is for --model forest: a stack is fitted"),
    (["--time", "id"], "--time: needs --validate"),
    (["--out", "-"], "--out: must be a file: a model is not written to standard output"),
    (["--reference", "-"], "must end in .csv, .parquet, got -"),
    (["--validate", "2", "--time", "id", "--groups", "id"], "cannot be combined"),
]


def test_wrong_calls_exit_with_2(files):
    fit = "fit", files.train_csv, "--target", "label"
    check_usage(run(*fit), "Missing option '--out'")
    for arguments, sentence in WRONG_CALLS:
        check_usage(run(*fit, "--out", "m", *arguments), sentence)


@pytest.mark.parametrize("streams", [[], ["--memory-limit", "1GB"]])
def test_the_reference_has_out_of_bag_predictions_and_columns_of_the_table(files, tmp_path, streams, monkeypatch):
    """Features and others in the types of the table, for `estimate --features` and `--time`."""
    monkeypatch.setattr(text_files, "rows_of_batch", lambda n_columns: 70)
    rows = mixed(300, 0).assign(day=np.repeat(pd.date_range("2024-01-01", periods=60), 5).astype("M8[s]"))
    rows["label"] = np.where(rows["label"] == "yes", "bad", "good")
    rows.to_csv(tmp_path / "t.csv", index=False, date_format="%Y-%m-%d")
    options = ["--drop", "id,weight,day", "--trees", 20, "--keep", "width,day,label,colour", *streams]
    reference = tmp_path / "r.parquet"
    succeed("fit", tmp_path / "t.csv", "--target", "label", "--out", tmp_path / "m", "--reference", reference, *options)
    found = pd.read_parquet(reference)
    fitted = forest(rows.drop(columns="day"), threshold="prevalence", pos_label="bad")
    names = ["width", "day", "colour", "label", "prediction", "probability_bad", "probability_good"]
    assert found.columns.tolist() == names
    proba = fitted.oob_decision_function_[:, 0]
    seen = np.isfinite(proba)
    expected = rows[seen].reset_index(drop=True)
    np.testing.assert_allclose(found["probability_bad"], proba[seen], rtol=1e-12)
    assert (found["prediction"] == "bad").tolist() == (proba[seen] >= fitted.threshold_).tolist()
    assert found["day"].map(pd.Timestamp).tolist() == expected["day"].tolist()
    assert found["label"].tolist() == expected["label"].tolist()
    assert found["colour"].fillna("").tolist() == expected["colour"].fillna("").tolist()
    np.testing.assert_array_equal(found["width"], expected["width"])
    reference_of_numbers = tmp_path / "numbers.parquet"
    found.assign(width=found["width"].fillna(0.0)).to_parquet(reference_of_numbers)
    names = ("--score", "probability_bad", "--target", "label", "--features", "width", "--number", 2)
    content = read_json("estimate", reference_of_numbers, reference_of_numbers, *names)
    assert content["estimates"][0]["domain_auc"] is not None


@pytest.mark.parametrize("streams", [[], ["--memory-limit", "1GB"]])
def test_stray_text_in_columns_of_the_reference(tmp_path, streams):
    """Features and other columns, in memory and not, are numbers, and it is said."""
    numbers = [*range(299), "n/k"]
    mixed(300, 0)[["width", "label"]].assign(a=numbers, b=numbers).to_csv(tmp_path / "t.csv", index=False)
    options = "--drop", "b", "--trees", 20, "--reference", tmp_path / "r.parquet", "--keep", "a,b", *streams
    fitted = run("fit", tmp_path / "t.csv", "--target", "label", "--out", tmp_path / "m", *options)
    for name in "ab":
        assert f"Note: column '{name}': 1 of 300 values is no number ('n/k'), read as missing;" in fitted.stderr
    assert pd.read_parquet(tmp_path / "r.parquet", columns=["a", "b"]).dtypes.tolist() == [np.float64, np.float64]


def test_two_columns_of_the_reference_have_no_name_in_common(tmp_path):
    """Before the fit; the labels would be lost, or mistaken for predictions by `estimate`."""
    for name in ("prediction", "probability_yes"):
        mixed(100, 0).rename(columns={"label": name}).to_csv(tmp_path / "t.csv", index=False)
        arguments = ["fit", tmp_path / "t.csv", "--target", name, "--out", tmp_path / "m", "--drop", "id"]
        sentence = f"the reference would have two columns named {name!r}: rename that of t.csv"
        check_refusal(run(*arguments, "--reference", tmp_path / "r.csv"), sentence)
    refused = run(*arguments, "--reference", tmp_path / "r.csv", "--keep", "widht")
    check_refusal(refused, "has no column 'widht'; did you mean 'width'")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    check_usage(run(*arguments, "--keep", "width"), "--keep: needs --reference")


def test_the_model_is_there_if_the_reference_cannot_be_written(files, tmp_path):
    """As on a full disk; the name of the file beside the reference is longer than file systems allow."""
    reference = tmp_path / f"{'r' * 240}.csv"
    arguments = ["--drop", "id,weight", "--trees", 20, "--threshold", "gmean", "--reference", reference]
    result = run("fit", files.train_csv, "--target", "label", "--out", tmp_path / "m", *arguments)
    assert result.exit_code == 1
    assert "File name too long" in result.stderr
    assert (tmp_path / "m").read_bytes() == files.model_aucforest.read_bytes()
    assert result.stdout == files.fitted.stdout

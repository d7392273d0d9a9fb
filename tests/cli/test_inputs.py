"""Input of commands: folders, CSV in other encodings, dates, and labels of which the first is positive."""

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, log_loss

import aucforest
from aucforest.inspection import explain
from tests.cli.data import check_refusal, check_usage, json_of, mixed, read_json, run, succeed


def write_folder(name, rows, kind):
    """Write rows into three files of a folder, with a file that is not part of the table."""
    folder = Path(name)
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    for start in range(0, len(rows), 100):
        part, path = rows[start : start + 100], folder / f"part-{start}.{kind}"
        part.to_csv(path, index=False) if kind == "csv" else part.to_parquet(path)


@pytest.mark.parametrize(
    ("kind", "validate"), [("csv", ""), ("parquet", "--validate 2")], ids=["out of core", "in memory"]
)
def test_a_folder_of_files_is_one_table(files, kind, validate):
    write_folder("train", mixed(300, 0), kind)
    write_folder("test", mixed(250, 1), kind)
    options = f"--target label --drop id,weight --threshold gmean --trees 20 {validate}"
    assert "train, label" in succeed(f"fit train {options} --out m").stdout
    assert Path("m").read_bytes() == Path("model.aucforest").read_bytes()
    outputs = []
    for table in ("test", "test.csv"):
        metrics = read_json(f"evaluate m {table} --target label")["metrics"]
        outputs.append((succeed(f"predict m {table} --keep label").stdout, metrics))
    assert outputs[0] == outputs[1]
    if kind == "parquet":
        succeed("report m test --target label --by colour --out page.html")


def test_folders_that_are_no_tables(files):
    write_folder("t", mixed(100, 0), "parquet")
    predict = "predict model.aucforest"
    check_refusal(run(f"{predict} t --out t/p.parquet"), "p.parquet would be in the folder that is read")
    mixed(100, 0).to_csv("t/more.csv", index=False)
    check_refusal(run(f"{predict} t"), "t: some are CSV and others Parquet files")


def test_an_encoding_gives_the_results_of_utf_8():
    rows, written = mixed(200, 0).replace({"colour": {"red": "grün"}}).drop(columns=["id", "weight"]), []
    for encoding in ("utf-8", "cp1252"):
        rows.to_csv("t.csv", index=False, encoding=encoding)
        fit = f"fit t.csv --target label --out m --trees 3 --encoding {encoding}"
        succeed(f"{fit} --reference r.csv --keep colour")
        succeed(f"predict m t.csv --out p.csv --keep colour --encoding {encoding}")
        written.append([Path(name).read_bytes() for name in ("m", "r.csv", "p.csv")])
    assert written[0] == written[1]
    assert "grün".encode() in Path("p.csv").read_bytes()
    rows.to_csv("t.csv", index=False)
    said = succeed(f"{fit} --memory-limit 1GB").stderr
    assert said.count("t.csv is valid UTF-8, but is read as cp1252: leave out --encoding") == 1


GERMAN = "--date-format", "%d.%m.%Y %H:%M"


@pytest.fixture
def tables():
    """train.csv, train.parquet, and other.csv with dates in another format."""
    random = np.random.default_rng(0)
    booked = pd.Series(np.datetime64("2024-01-01", "us") + random.integers(0, 500_000, 200).astype("m8[m]"))
    rows = pd.DataFrame({"booked": booked, "day": booked.dt.date, "amount": random.normal(size=200).round(3)})
    rows["clock"], rows["label"] = booked.dt.time, np.where(booked.dt.day_of_week >= 5, "yes", "no")
    rows.loc[::17, "booked"] = pd.NaT
    rows.to_csv("train.csv", index=False)
    rows.to_parquet("train.parquet", index=False)
    rows.assign(booked=rows["booked"].dt.strftime(GERMAN[1])).to_csv("other.csv", index=False)


def fit(arguments, *options):
    succeed(f"fit --target label --trees 20 --out m {arguments}", *options)
    return aucforest.load("m")


def predict(arguments, *options):
    return succeed(f"predict --proba {arguments}", *options).stdout


NAMES = [
    "booked: time", "day: time", "amount", "clock: seconds", "booked: month", "booked: day of week", "booked: hour",
    "day: month", "day: day of week",
]  # fmt: skip


def test_the_same_dates_in_files_of_every_kind(tables):
    """The features of a column depend on its type, not on the format of the file or on reading in batches."""
    assert fit("train.csv").split_features_.tolist() == NAMES
    Path("m").rename("csv")
    expected = predict("csv train.csv")
    for table, options in (
        ("train.csv --memory-limit 1GB", ()),
        ("train.parquet", ()),
        ("other.csv", GERMAN),
        ("other.csv --memory-limit 1GB", GERMAN),
    ):
        assert fit(table, *options).split_features_.tolist() == NAMES
        assert predict("m train.csv") == expected
    for table, options in (("train.parquet", ()), ("other.csv", GERMAN), ("other.csv", ())):
        assert predict(f"csv {table}", *options) == expected
    succeed("evaluate csv other.csv --target label", *GERMAN)
    succeed("export csv --sklearn m.skops --check other.csv", *GERMAN)
    shown = run("inspect csv").stdout
    assert all(name in shown for name in (*NAMES, "9 features of 4 columns"))
    assert "booked: day of week = " in run("predict csv train.csv --reasons 2").stdout
    assert f",reason_{len(NAMES)}\n" in run("predict csv train.csv --reasons 99").stdout


def test_periods_of_dates_in_another_format(tables):
    """The reference has ISO dates, and the new rows have dates in the format of the CSV."""
    fit("other.csv --reference r.csv --keep booked", *GERMAN)
    rows = pd.read_csv(StringIO(predict("m other.csv", *GERMAN)))
    rows.assign(booked=pd.read_csv("other.csv")["booked"]).dropna().to_csv("new.csv", index=False)
    pd.read_csv("r.csv").dropna().to_csv("r.csv", index=False)
    estimate = "estimate r.csv new.csv --score probability_yes --target label"
    by_quarter = succeed(f"{estimate} --time booked --period Q", *GERMAN).stdout
    assert all(f"2024Q{quarter}" in by_quarter for quarter in range(1, 5))
    sentence = "r.csv: column 'booked' holds dates or durations: leave dates out, because"
    check_refusal(run(f"{estimate} --features booked", *GERMAN), sentence)


def test_options_of_dates(tables):
    model = fit("train.csv --drop clock,day --date-parts", "day of week,year")
    assert model.split_features_.tolist() == ["booked: year", "amount", "booked: day of week"]
    call = "fit train.csv --target label --out n"
    refused = run(f"{call} --date-parts none")
    assert refused.exit_code == 1
    assert "Error: X: column 'booked' is not numeric but timestamp[us]; encode dates and times" in refused.stderr
    sentence = "must be auto, none or some of time, year, month, day, day of week,"
    check_usage(run(f"{call} --date-parts week"), sentence)
    sentence = "must be one of strptime, such as '%d.%m.%Y', but is 'dd.mm."
    check_usage(run(f"{call} --date-format dd.mm.yyyy"), sentence)


def test_labels_that_differ_by_case_and_spaces():
    """The note is printed in a fit, and when other rows are read for a model of one label against the others."""
    labels = ["no", "Yes", "no", "yes ", "no", "no", " Yes", "no"] * 8
    pd.DataFrame({"a": np.random.default_rng(0).normal(size=64).round(3), "label": labels}).to_csv("t.csv", index=False)
    note = "Note: column 'label': 'Yes' (8), 'yes ' (8), ' Yes' (8) differ only by case and spaces and are different"
    for command in ("fit t.csv --trees 30 --out m --positive Yes", "evaluate m t.csv"):
        assert note in succeed(f"{command} --target label").stderr


def make_rows(n=600, seed=0):
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(n, 3)), columns=["a", "b", "c"]).round(3)
    return X.assign(label=np.where(X["a"] + random.normal(size=n) > 1, "bad", "good"))


def fit_rows(options="", rows=None):
    rows = make_rows() if rows is None else rows
    rows.to_csv("train.csv", index=False)
    result = succeed(f"fit train.csv --target label --trees 30 --out m {options}")
    return rows[["a", "b", "c"]], rows["label"], result


@pytest.mark.parametrize("model", ["forest", "stack"])
def test_the_row_that_defined_the_threshold(model):
    """The probability of this row is the threshold, so a rounding error would change its label."""
    X, y, _ = fit_rows(f"--model {model}")
    aucforest.load("m").set_threshold("gmean", X[:100], y[:100], oob=False).save("m")
    succeed("predict m train.csv --out p.parquet")
    found, python = pd.read_parquet("p.parquet"), aucforest.load("m")
    proba = python.predict_proba(X)[:, 0]
    np.testing.assert_array_equal(found["probability_bad"], proba)
    np.testing.assert_array_equal(found["prediction"], python.predict(X))
    assert np.any(proba == python.threshold_)
    np.testing.assert_array_equal(found["prediction"] == "bad", proba >= python.threshold_)


def test_commands_agree_that_the_rarer_label_is_positive():
    """The rarer label is positive even if it is the first of the sorted labels."""
    X, y, fitted = fit_rows("--threshold f1")
    assert "positive class: 'bad', the rarer label" in fitted.stderr
    model = aucforest.load("m")
    rule = f"labels: bad where its probability is at least {model.threshold_:.4g}"
    assert f"{rule} (f1)" in fitted.stdout
    said = run("evaluate m train.csv --target label --json m.json").stdout
    assert "positive class: bad; 600 rows" in said
    assert f"{rule} (the threshold of the model)" in said
    content, proba = json_of("m.json"), model.predict_proba(X)
    metrics = {metric["metric"]: metric["value"] for metric in content["metrics"]}
    assert (content["classes"], content["positive_class"]) == (["bad", "good"], "bad")
    assert metrics["average_precision"] == pytest.approx(average_precision_score(y == "bad", proba[:, 0]))
    assert metrics["log_loss"] == pytest.approx(log_loss(y, proba))
    assert content["at_threshold"]["alerts"] == (model.predict(X) == "bad").sum()
    none = succeed("evaluate m train.csv --target label --threshold 1 --json -")
    assert "\n0 rows are predicted positive: precision nan, recall 0.000\n" in none.stderr
    assert json.loads(none.stdout)["at_threshold"] == {"alerts": 0, "precision": None, "recall": 0}
    succeed("predict m train.csv --reasons 1 --out p.csv")
    predicted = pd.read_csv("p.csv")
    assert predicted.columns.tolist() == ["prediction", "probability_bad", "probability_good", "reason_1"]
    assert predicted["reason_1"].tolist() == [str(row[0]) for row in explain(model, X).of_class("bad").top(1)]
    assert "bad" in run("inspect m").stdout.split("positive class")[1].split("\n")[0]


def test_names_of_labels_are_no_markup():
    fit_rows(rows=make_rows().replace({"label": {"bad": "[/]", "good": "[red]x[/red]"}}))
    said = succeed("evaluate m train.csv --target label").stdout
    assert "[red]x[/red]" in said
    assert "[/]" in said


def test_weights_and_compared_targets_are_numbers_in_any_spelling():
    rows = make_rows().drop(columns="label").assign(w=np.arange(600) % 7 * 1000.5, y=np.arange(600) * 97 % 5000)
    spelled = rows.assign(**{name: [f"{number:,}" for number in rows[name]] for name in "wy"})
    results = []
    for table in (rows, spelled):
        table.to_csv("t.csv", index=False)
        succeed("fit t.csv --target y --positive >=2000 --weight w --trees 20 --out m")
        succeed("evaluate m t.csv --target y --weight w --json e.json")
        results.append((Path("m").read_bytes(), json_of("e.json")["metrics"]))
    assert results[0] == results[1]
    spelled.loc[5, "w"] = "many"
    spelled.to_csv("stray.csv", index=False)
    for command in ("fit --positive >=2000 --out n", "evaluate m"):
        result = run(f"{command} stray.csv --target y --weight w")
        error = "Error: stray.csv, line 7: column 'w' has no weight: 1 of 600 values is no number ('many')"
        assert (result.exit_code, result.stderr.splitlines()[-1]) == (1, error)
        succeed(f"{command} stray.csv --target y --weight w --where", "y <> '485' AND y <> '5'")

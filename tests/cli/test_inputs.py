"""What the commands read: folders of files, CSV in other encodings, and dates."""

import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest

import aucforest
from tests.cli.data import check_refusal, check_usage, mixed, run, succeed


def write_folder(folder, rows, kind):
    """Write rows into three files of a folder, beside files of others."""
    folder.mkdir()
    (folder / "_SUCCESS").write_text("")
    for number, start in enumerate(range(0, len(rows), 100)):
        part = rows[start : start + 100]
        path = folder / f"part-{number}.{kind}"
        part.to_csv(path, index=False) if kind == "csv" else part.to_parquet(path)


@pytest.mark.parametrize(
    ("kind", "validate"), [("csv", []), ("parquet", ["--validate", 2])], ids=["out of core", "in memory"]
)
def test_a_folder_of_files_is_one_table(files, tmp_path, kind, validate):
    train, test, model = tmp_path / "train", tmp_path / "test", tmp_path / "m"
    write_folder(train, mixed(300, 0), kind)
    write_folder(test, mixed(250, 1), kind)
    arguments = ["--target", "label", "--drop", "id,weight", "--threshold", "gmean", "--trees", 20, *validate]
    result = succeed("fit", train, *arguments, "--out", model)
    assert model.read_bytes() == files.model_aucforest.read_bytes()
    assert "train, label" in result.stdout
    outputs = []
    for data in (test, files.test_csv):
        succeed("predict", model, data, "--keep", "label", "--out", tmp_path / "p.csv")
        result = succeed("evaluate", model, data, "--target", "label", "--json", "-")
        outputs.append(((tmp_path / "p.csv").read_bytes(), json.loads(result.stdout)["metrics"]))
    assert outputs[0] == outputs[1]
    if kind == "parquet":
        succeed("report", model, test, "--target", "label", "--by", "colour", "--out", tmp_path / "page.html")


def test_folders_that_are_no_tables(files, tmp_path):
    write_folder(tmp_path / "t", mixed(100, 0), "parquet")
    arguments = ["predict", files.model_aucforest]
    (tmp_path / "empty").mkdir()
    check_refusal(run(*arguments, tmp_path / "empty"), "empty has no tables: .csv, .tsv, .txt, .jsonl")
    within = run(*arguments, tmp_path / "t", "--out", tmp_path / "t" / "p.parquet")
    check_refusal(within, "p.parquet would be in the folder that is read")
    mixed(100, 0).to_csv(tmp_path / "t" / "more.csv", index=False)
    check_refusal(run(*arguments, tmp_path / "t"), "t: some are CSV and others Parquet files")


@pytest.mark.slow
def test_an_encoding_is_read_by_every_command(tmp_path, monkeypatch):
    """The results are those of the same table in UTF-8."""
    monkeypatch.chdir(tmp_path)
    rows = mixed(200, 0).replace({"colour": {"red": "grün"}}).drop(columns=["id", "weight"])
    commands = [
        "fit t.csv --target label --out m --trees 3 --reference r.csv --keep colour",
        "fit t.csv --target label --out m2 --trees 3 --memory-limit 1GB",
        "predict m t.csv --out p.csv --keep colour",
        "evaluate m t.csv --target label --json e.json",
        "export m --sklearn m.skops --check t.csv",
    ]
    others = [
        "report m t.csv --target label --by colour --out page.html",
        "compare t.csv --target label --criteria gini --folds 2 --repeats 1 --trees 2",
    ]
    written = {}
    for encoding in ("utf-8", "cp1252"):
        rows.to_csv("t.csv", index=False, encoding=encoding)
        options = [] if encoding == "utf-8" else ["--encoding", encoding]
        for command in commands + (others if options else []):
            result = succeed(*command.split(), *options)
        written[encoding] = [(tmp_path / name).read_bytes() for name in ("m", "m2", "r.csv", "p.csv", "e.json")]
    assert written["utf-8"] == written["cp1252"]
    assert "grün".encode() in (tmp_path / "p.csv").read_bytes()
    rows.to_csv("u.csv", index=False)
    for command in (commands[1], commands[2]):
        result = succeed(*command.replace("t.csv", "u.csv").split(), "--encoding", "cp1252")
        assert result.stderr.count("u.csv is valid UTF-8, but is read as cp1252: leave out --encoding") == 1
    refused = run("predict", "m", "t.csv")
    check_refusal(refused, "line 3 is not encoded in UTF-8: pass its encoding, such as --encoding cp1252")
    check_usage(run("predict", "m", "t.csv", "--encoding", "cp999"), "the encoding must be one that Python has")


GERMAN = "%d.%m.%Y %H:%M"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """train.csv, train.parquet, and other.csv with dates in another format."""
    folder, random = tmp_path_factory.mktemp("dates"), np.random.default_rng(0)
    booked = pd.Series(np.datetime64("2024-01-01", "us") + random.integers(0, 500_000, 200).astype("m8[m]"))
    rows = pd.DataFrame({"booked": booked, "day": booked.dt.date, "amount": random.normal(size=200).round(3)})
    rows["clock"], rows["label"] = booked.dt.time, np.where(booked.dt.day_of_week >= 5, "yes", "no")
    rows.loc[::17, "booked"] = pd.NaT
    rows.to_csv(folder / "train.csv", index=False)
    rows.to_parquet(folder / "train.parquet", index=False)
    rows.assign(booked=rows["booked"].dt.strftime(GERMAN)).to_csv(folder / "other.csv", index=False)
    return folder


def fit(table, out, *options):
    succeed("fit", table, "--target", "label", "--trees", 20, "--out", out, *options)
    return aucforest.load(out)


def predict(model, table, *options):
    result = succeed("predict", model, table, "--proba", *options)
    return result.stdout


NAMES = [
    "booked: time", "day: time", "amount", "clock: seconds", "booked: month", "booked: day of week", "booked: hour",
    "day: month", "day: day of week",
]  # fmt: skip


def test_the_same_dates_in_files_of_every_kind(tables, tmp_path):
    """The type of a column, not the file, decides what is made of it, and whether it is read in batches."""
    train, format_ = tables / "train.csv", ("--date-format", GERMAN)
    models = [
        fit(train, tmp_path / "csv"),
        fit(train, tmp_path / "batches", "--memory-limit", "1GB"),
        fit(tables / "train.parquet", tmp_path / "parquet"),
        fit(tables / "other.csv", tmp_path / "other", *format_),
        fit(tables / "other.csv", tmp_path / "others", *format_, "--memory-limit", "1GB"),
    ]
    assert [model.split_features_.tolist() for model in models] == 5 * [NAMES]
    expected = predict(tmp_path / "csv", train)
    for model in ("csv", "batches", "parquet", "other", "others"):
        assert predict(tmp_path / model, train) == expected
    assert predict(tmp_path / "csv", tables / "train.parquet") == expected
    assert predict(tmp_path / "csv", tables / "other.csv", *format_) == expected
    assert predict(tmp_path / "csv", tables / "other.csv") == expected
    for table, options in ((train, ()), (tables / "other.csv", format_)):
        succeed("evaluate", tmp_path / "csv", table, "--target", "label", *options)
    shown = run("inspect", tmp_path / "csv").stdout
    assert all(name in shown for name in (*NAMES, "9 features of 4 columns"))
    assert "booked: day of week = " in run("predict", tmp_path / "csv", train, "--reasons", "2").stdout
    assert f",reason_{len(NAMES)}\n" in run("predict", tmp_path / "csv", train, "--reasons", "99").stdout


def test_days_in_another_format_have_no_hour(tables, tmp_path):
    rows = pd.read_csv(tables / "train.csv", usecols=["day", "amount", "label"])
    rows.to_csv(tmp_path / "iso.csv", index=False)
    rows["day"] = pd.to_datetime(rows["day"]).dt.strftime("%d.%m.%Y")
    rows.to_csv(tmp_path / "german.csv", index=False)
    format_ = "--date-format", "%d.%m.%Y"
    expected = fit(tmp_path / "iso.csv", tmp_path / "iso")
    for options in ((), ("--memory-limit", "1GB")):
        model = fit(tmp_path / "german.csv", tmp_path / "german", *format_, *options)
        assert model.split_features_.tolist() == expected.split_features_.tolist() == [*NAMES[1:3], *NAMES[-2:]]
        predicted = predict(tmp_path / "german", tmp_path / "german.csv", *format_)
        assert predicted == predict(tmp_path / "iso", tmp_path / "iso.csv")


def test_periods_of_dates_in_another_format(tables, tmp_path):
    """The reference has ISO dates, the new rows those of the file."""
    arguments = "--target", "label", "--trees", 20, "--out", tmp_path / "m", "--date-format", GERMAN
    keep = "--reference", tmp_path / "r.csv", "--keep", "booked"
    succeed("fit", tables / "other.csv", *arguments, *keep)
    scored = run("predict", tmp_path / "m", tables / "other.csv", "--proba", "--date-format", GERMAN)
    rows = pd.read_csv(StringIO(scored.stdout)).assign(booked=pd.read_csv(tables / "other.csv")["booked"]).dropna()
    rows.to_csv(tmp_path / "new.csv", index=False)
    pd.read_csv(tmp_path / "r.csv").dropna().to_csv(tmp_path / "r.csv", index=False)
    estimate = "estimate", tmp_path / "r.csv", tmp_path / "new.csv", "--score", "probability_yes", "--target", "label"
    by_quarter = succeed(*estimate, "--time", "booked", "--period", "Q", "--date-format", GERMAN)
    assert all(f"2024Q{quarter}" in by_quarter.stdout for quarter in range(1, 5))
    named = run(*estimate, "--features", "booked", "--date-format", GERMAN)
    check_refusal(named, "r.csv: column 'booked' holds dates or durations: leave dates out, because")


def test_zoned_dates_of_any_zone_give_the_same_predictions(tables, tmp_path):
    rows = pd.read_csv(tables / "train.csv", usecols=["booked", "label"], parse_dates=["booked"])
    zoned = rows.assign(booked=rows["booked"].dt.tz_localize("UTC"))
    zoned.to_csv(tmp_path / "zoned.csv", index=False)
    in_tokyo = zoned.assign(booked=zoned["booked"].dt.tz_convert("Asia/Tokyo"))
    in_tokyo.to_parquet(tmp_path / "tokyo.parquet", index=False)
    assert fit(tmp_path / "zoned.csv", tmp_path / "m").dates_[0].zone == "UTC"
    assert predict(tmp_path / "m", tmp_path / "zoned.csv") == predict(tmp_path / "m", tmp_path / "tokyo.parquet")
    assert fit(tmp_path / "tokyo.parquet", tmp_path / "t").dates_[0].zone == "Asia/Tokyo"
    assert predict(tmp_path / "t", tmp_path / "zoned.csv") == predict(tmp_path / "t", tmp_path / "tokyo.parquet")
    check_refusal(run("predict", tmp_path / "m", tables / "train.csv"), "which is not a zoned date; 188 of 188 values")


def test_options_of_dates(tables, tmp_path):
    model = fit(tables / "train.csv", tmp_path / "m", "--date-parts", "day of week,year", "--drop", "clock,day")
    assert model.split_features_.tolist() == ["booked: year", "amount", "booked: day of week"]
    call = "fit", tables / "train.csv", "--target", "label", "--out", tmp_path / "n"
    refused = run(*call, "--date-parts", "none")
    assert refused.exit_code == 1
    assert "Error: X: column 'booked' is not numeric but timestamp[us]; encode dates and times" in refused.stderr
    unknown, no_format = run(*call, "--date-parts", "week"), run(*call, "--date-format", "dd.mm.yyyy")
    check_usage(unknown, "must be auto, none or some of time, year, month, day, day of week,")
    check_usage(no_format, "must be a format of strptime, such as '%d.%m.%Y', but is 'dd.mm.")


def test_exports_agree_on_dates(tables, tmp_path):
    fit(tables / "train.csv", tmp_path / "m")
    outs = "--sklearn", tmp_path / "m.skops", "--onnx", tmp_path / "m.onnx"
    for table, format_ in (("train.csv", ()), ("other.csv", ("--date-format", GERMAN))):
        succeed("export", tmp_path / "m", *outs, "--check", tables / table, *format_)


def test_labels_that_differ_by_case_and_spaces(tmp_path):
    """In memory, in batches, and where one label is positive, also in other rows of that model."""
    labels = ["no", "Yes", "no", "yes ", "no", "no", " Yes", "no"] * 8
    path, model = tmp_path / "t.csv", tmp_path / "m"
    pd.DataFrame({"a": np.random.default_rng(0).normal(size=64).round(3), "label": labels}).to_csv(path, index=False)
    fit, evaluate = ("fit", path, "--trees", 30, "--out", model), ("evaluate", model, path)
    advice = "differ only by case and spaces and are different labels: write what is the same alike"
    for command, counts in (
        (fit, "' Yes' (8), 'Yes' (8), 'yes ' (8)"),
        ((*fit, "--memory-limit", "1GB"), "' Yes' (8), 'Yes' (8), 'yes ' (8)"),
        ((*fit, "--positive", "Yes"), "'Yes' (8), 'yes ' (8), ' Yes' (8)"),
        (evaluate, "'Yes' (8), 'yes ' (8), ' Yes' (8)"),
    ):
        result = succeed(*command, "--target", "label")
        assert f"Note: column 'label': {counts} {advice}" in result.stderr.splitlines()

"""Dates in tables of the command line: those of ISO 8601, and others by `--date-format`."""

from io import StringIO

import numpy as np
import pandas as pd
import pytest

import aucforest
from tests.cli.data import check_refusal, check_usage, run

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
    result = run("fit", table, "--target", "label", "--trees", 20, "--out", out, *options)
    assert result.exit_code == 0, result.output
    return aucforest.load(out)


def predict(model, table, *options):
    result = run("predict", model, table, "--proba", *options)
    assert result.exit_code == 0, result.output
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
    check_refusal(
        run("predict", tmp_path / "csv", tables / "other.csv"),
        "which is not a date such as 2024-12-31 or 2024-12-31 23:59; --date-format (in Python, date_format) gives",
    )
    for table, options in ((train, ()), (tables / "other.csv", format_)):
        assert run("evaluate", tmp_path / "csv", table, "--target", "label", *options).exit_code == 0
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
        assert predict(tmp_path / "german", tmp_path / "german.csv", *format_) == predict(
            tmp_path / "iso", tmp_path / "iso.csv"
        )


def test_periods_of_dates_in_another_format(tables, tmp_path):
    """The reference has ISO dates, the new rows those of the file."""
    arguments = "--target", "label", "--trees", 20, "--out", tmp_path / "m", "--date-format", GERMAN
    keep = "--reference", tmp_path / "r.csv", "--keep", "booked"
    assert run("fit", tables / "other.csv", *arguments, *keep).exit_code == 0
    scored = run("predict", tmp_path / "m", tables / "other.csv", "--proba", "--date-format", GERMAN)
    rows = pd.read_csv(StringIO(scored.stdout)).assign(booked=pd.read_csv(tables / "other.csv")["booked"]).dropna()
    rows.to_csv(tmp_path / "new.csv", index=False)
    pd.read_csv(tmp_path / "r.csv").dropna().to_csv(tmp_path / "r.csv", index=False)
    estimate = "estimate", tmp_path / "r.csv", tmp_path / "new.csv", "--score", "probability_yes", "--target", "label"
    by_quarter = run(*estimate, "--time", "booked", "--period", "Q", "--date-format", GERMAN)
    assert by_quarter.exit_code == 0, by_quarter.output
    assert all(f"2024Q{quarter}" in by_quarter.stdout for quarter in range(1, 5))
    named = run(*estimate, "--features", "booked", "--date-format", GERMAN)
    check_refusal(named, "X: column 'booked' holds dates or durations: leave dates out, because")


def test_zones(tables, tmp_path):
    rows = pd.read_csv(tables / "train.csv", usecols=["booked", "label"], parse_dates=["booked"])
    zoned = rows.assign(booked=rows["booked"].dt.tz_localize("UTC"))
    zoned.to_csv(tmp_path / "zoned.csv", index=False)
    in_tokyo = zoned.assign(booked=zoned["booked"].dt.tz_convert("Asia/Tokyo"))
    in_tokyo.to_parquet(tmp_path / "tokyo.parquet", index=False)
    assert fit(tmp_path / "zoned.csv", tmp_path / "m").dates_[0].zone == "UTC"
    assert predict(tmp_path / "m", tmp_path / "zoned.csv") == predict(tmp_path / "m", tmp_path / "tokyo.parquet")
    assert fit(tmp_path / "tokyo.parquet", tmp_path / "t").dates_[0].zone == "Asia/Tokyo"
    assert predict(tmp_path / "t", tmp_path / "zoned.csv") == predict(tmp_path / "t", tmp_path / "tokyo.parquet")
    check_refusal(run("predict", tmp_path / "m", tables / "train.csv"), "which is not a date with a time zone such as")


def test_options(tables, tmp_path):
    model = fit(tables / "train.csv", tmp_path / "m", "--date-parts", "day of week,year", "--drop", "clock,day")
    assert model.split_features_.tolist() == ["booked: year", "amount", "booked: day of week"]
    refused = run("fit", tables / "train.csv", "--target", "label", "--out", tmp_path / "n", "--date-parts", "none")
    assert refused.exit_code == 1
    assert "Error: X: column 'booked' is not numeric but timestamp[s]; encode dates and times" in refused.stderr
    usual = "fit", tables / "train.csv", "--target", "label", "--out", tmp_path / "n"
    check_usage(
        run(*usual, "--date-parts", "week"), "must be auto, none or some of time, year, month, day, day of week,"
    )
    check_usage(
        run(*usual, "--date-format", "dd.mm.yyyy"), "must be one of strptime, such as '%d.%m.%Y', but is 'dd.mm."
    )


@pytest.mark.parametrize("option", ["--sklearn", "--onnx"])
def test_exports_agree_on_dates(tables, tmp_path, option):
    fit(tables / "train.csv", tmp_path / "m")
    out = tmp_path / ("m.skops" if option == "--sklearn" else "m.onnx")
    for table, format_ in (("train.csv", ()), ("other.csv", ("--date-format", GERMAN))):
        result = run("export", tmp_path / "m", option, out, "--check", tables / table, *format_)
        assert result.exit_code == 0, result.output

"""All commands read messy tables: stray text, dates as text, identifiers, other encodings.

No command ends with a traceback. On standard error, a command writes the notes that are listed for the table (`Messy`),
and no others. To add a table, add it to `TABLES`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html import unescape
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import aucforest
from aucforest.columns.expansion import TextColumn
from aucforest.report import report
from tests.cli.data import check_refusal, run

N_TRAIN, N_TEST = 120, 80
# Lines of standard error that do not depend on the table: written files, the positive class, and alerts.
USUAL = re.compile(r"(model|reference|report|metrics|positive class|alerts|shifts beyond limits): .*|\d+ rows: .*")
# Warnings of `estimate` for so few rows.
TOO_FEW = "the alert limits of roc_auc .* are so wide|no shift could be beyond its limits"


def as_csv(frame, name, encoding="utf-8"):
    frame.to_csv(f"{name}.csv", index=False, encoding=encoding)
    return f"{name}.csv"


def as_folder(frame, name):
    """Write a folder of three Parquet files, and an empty file as Spark writes it."""
    Path(name).mkdir()
    Path(name, "_SUCCESS").touch()
    for number, rows in enumerate((frame[:7], frame[7:50], frame[50:])):
        rows.to_parquet(f"{name}/part-{number}.parquet", index=False)
    return name


@dataclass
class Messy:
    """Training and new rows of a messy table, and the notes of `fit` and of `predict` and other commands.

    A note is the beginning of a line of standard error after "Note: " or "Warning: ".
    """

    tables: list[pd.DataFrame]
    fit: list[str] = field(default_factory=list)
    predict: list[str] = field(default_factory=list)
    fit_options: str = ""
    # How the files are written, and the options of all commands that read them.
    write: Callable[[pd.DataFrame, str], str] = as_csv
    options: dict[str, str] = field(default_factory=dict)
    # The number of columns that are read as dates, and the error of a command without the options.
    n_dates: int = 0
    unread: str | None = None

    def run(self, command):
        given = [(f"--{name.replace('_', '-')}", value) for name, value in self.options.items()]
        return run(command, *chain.from_iterable(given))

    def files(self):
        return [self.write(rows, name) for rows, name in zip(self.tables, ("train", "test"))]


def clean(n, seed):
    random = np.random.default_rng(seed)
    amount, channel = random.lognormal(size=n).round(2), random.choice(["web", "shop", "phone"], size=n)
    y = amount * (1 + (channel == "web")) + random.normal(size=n) > 2.5
    age = random.integers(18, 90, size=n)
    return pd.DataFrame({"amount": amount, "channel": channel, "age": age, "label": np.where(y, "yes", "no")})


def both(*changes, **columns):
    """Return training and new rows. Columns are replaced as by `assign`, then the cells in `changes`."""
    tables = [clean(n, seed).assign(**columns) for n, seed in ((N_TRAIN, 0), (N_TEST, 1))]
    for table, change in zip(tables, changes):
        for (row, column), value in change.items():
            table.loc[row, column] = value
    return tables


def moments(table):
    """Return a time in 2024 for each row; every seventh is missing."""
    found = pd.Timestamp("2024-01-01 00:30") + pd.to_timedelta(table["age"] * 96 + table.index % 24, "h")
    return found.mask(table.index % 7 == 0).astype("M8[s]")


def in_berlin(table):
    return moments(table).dt.tz_localize("Europe/Berlin", ambiguous=True).astype(str).replace("NaT", "")


UNKNOWN = "column 'amount': 1 of 120 values is no number ('unknown')"
SPELLED = "column 'amount': numbers such as '1,234.5' are read as"
AS_TEXT = f"{SPELLED} text, so that each is a category: write 1234.5; {UNKNOWN[17:]}: leave it empty"
OPTION = "--stray-text text (in Python, stray_text='text') reads the column as text"
DATES = "column 'booked': dates such as '1/1/2024' are read as text, so that each is a category; convert"
STRAY = both({(5, "amount"): "unknown", (7, "amount"): "1,234.5"}, {(3, "amount"): "n/k"},
             amount=lambda table: table["amount"].astype(str))  # fmt: skip
N_NEW = (~STRAY[1]["amount"].isin(STRAY[0]["amount"])).sum()

TABLES = {
    "stray text": Messy(
        STRAY,
        [f"{UNKNOWN}, read as missing; {OPTION}", f"{SPELLED} 1234.5"],
        ["column 'amount': 1 of 80 values is no number ('n/k'), read as missing"],
    ),
    "stray text kept": Messy(STRAY, [AS_TEXT], [f"column 'amount': {N_NEW} of 80 rows "], "--stray-text text"),
    # At least a tenth of the values are words, so the column is text, and its numbers are categories.
    "mixed types": Messy(
        both(grade=lambda table: np.where(table.index % 4 == 0, "none", (table["age"] // 10).astype(str)))
    ),
    "dates as text": Messy(
        both(booked=lambda table: [f"{1 + row % 12}/{1 + row % 7}/2024" for row in table.index]), [DATES]
    ),
    "leak": Messy(
        both(outcome=lambda table: np.where(table["label"] == "yes", "paid back", "kept")),
        ["'outcome' alone separates the classes (ROC AUC 1.0000): is it known at prediction time?"],
    ),
    "identifier": Messy(
        both(id=lambda table: [f"{len(table)}-{row:05d}x" for row in table.index]),
        ["column 'id': every value is distinct, as in an identifier; consider --drop id"],
        ["column 'id': 80 of 80 rows (100 %) have a category that training"],
    ),
    "constant and empty": Messy(
        both(site="A", remark=np.nan),
        ["column 'remark': no values, never used in a split", "column 'site': the same value in every row, never used"],
    ),
    "dates with a zone": Messy(
        both(booked=in_berlin),
        ["column 'booked': times have an offset, but no time zone: month, day of week and hour are those of UTC"],
        n_dates=1,
    ),
    "dates of parquet": Messy(  # days, moments and durations in the types of Arrow
        both(
            booked=moments,
            day=lambda table: table["booked"].dt.date.where(table["booked"].notna(), None),
            waited=lambda table: table["booked"] - table["booked"].min(),
            hour=lambda table: table["booked"].dt.time,
        ),
        write=as_folder,
        n_dates=4,
    ),
    # From a spreadsheet of Western Europe, with letters beyond ASCII in a name and in values.
    "another encoding": Messy(
        [t.replace({"web": "groß", "shop": "für €"}).rename(columns={"channel": "größe"}) for t in both()],
        write=lambda frame, name: as_csv(frame, name, "cp1252"),
        options={"encoding": "cp1252"},
        unread="the header is not encoded in UTF-8: pass its encoding, such as --encoding cp1252",
    ),
}
STACKS = [pytest.param(name, "stack", marks=pytest.mark.slow) for name in ("stray text", "dates with a zone")]


def said(result):
    """Check that a command succeeded with notes and usual lines on standard error; return the notes."""
    assert result.exit_code == 0, result.output
    assert "Traceback" not in result.output
    sentences = []
    for line in result.stderr.splitlines():
        kind, _, sentence = line.partition(": ")
        if kind in ("Note", "Warning"):
            sentences.append(sentence.removeprefix("X: "))
        else:
            assert USUAL.fullmatch(line), line
    return sentences


def check_said(result, wanted):
    """Check that a command wrote each of the wanted notes once, in any order, and no others."""
    found = said(result)
    assert len(found) == len(wanted), found
    for sentence in wanted:
        assert sum(line.startswith(sentence) for line in found) == 1, (sentence, found)


@pytest.mark.parametrize(("name", "model"), [*((name, "forest") for name in TABLES), *STACKS])
def test_all_commands(name, model):
    """The notes on a table do not depend on the model."""
    messy = TABLES[name]
    train, test = messy.files()
    fit = f"fit {train} --target label --trees 30 --model {model} {messy.fit_options}"
    check_said(messy.run(f"{fit} --out model --reference reference.csv"), messy.fit)
    if train.endswith(".csv") and model == "forest":
        check_said(messy.run(f"{fit} --out streamed --memory-limit 1GB"), messy.fit)
        assert Path("streamed").read_bytes() == Path("model").read_bytes()
    fitted = aucforest.load("model")
    columns = (fitted if model == "forest" else fitted.members_["forest"]).expanded_.values()
    assert sum(not isinstance(column, TextColumn) for column in columns) == messy.n_dates
    check_said(messy.run(f"evaluate model {test} --target label"), messy.predict)
    check_said(messy.run(f"predict model {test} --out scores.csv"), messy.predict)
    estimated = run("estimate reference.csv scores.csv --target label --score probability_yes --number 3")
    assert all(re.match(TOO_FEW, sentence) for sentence in said(estimated))
    assert pd.read_csv("scores.csv")["probability_yes"].between(0, 1).all()
    said(run("inspect model"))
    if messy.unread is not None:
        check_refusal(run(f"evaluate model {test} --target label"), messy.unread)
        check_refusal(run(f"fit {train} --target label --out n"), messy.unread)


# A page takes longer than all other commands together.
OTHERS = [pytest.param(name, "forest", marks=pytest.mark.slow) for name in TABLES if name != "leak"]


@pytest.mark.parametrize(("name", "model"), [("leak", "forest"), *OTHERS, *STACKS])
def test_pages(name, model):
    """`aucforest report` writes the notes of `evaluate`, and the page has the notes of `fit` on the columns."""
    messy = TABLES[name]
    train, test = messy.files()
    fit = f"fit {train} --target label --trees 30 --model {model} {messy.fit_options}"
    check_said(messy.run(f"{fit} --out model"), messy.fit)
    check_said(messy.run(f"report model {test} --target label --out page.html"), messy.predict)
    html = unescape(Path("page.html").read_text())
    for sentence in messy.fit:
        if re.search("separates|every value|no values|same value", sentence):
            said_there = sentence.partition("; consider")[0]
            assert f"{said_there[0].upper()}{said_there[1:]}" in html, sentence


@pytest.mark.slow
def test_a_page_on_frames_of_polars():
    """The page has every column, and the parts of dates."""
    tables = TABLES["dates of parquet"].tables
    (X, y), (test, y_test) = ((pl.from_pandas(table.drop(columns="label")), table["label"]) for table in tables)
    forest = aucforest.AUCForestClassifier(20, random_state=0).fit(X, y)
    assert forest.target_rates_ is None
    page = unescape(report(forest, test, y_test, X_train=X, y_train=y, n_bootstrap=2, n_repeats=1).html)
    assert all(name in page for name in forest.split_features_)


def test_stray_numbers_in_text_columns_of_parquet_are_noted():
    STRAY[0].assign(site="A").to_parquet("train.parquet")
    fitted = run("fit train.parquet --target label --trees 30 --out model")
    check_said(fitted, [AS_TEXT, "column 'site': the same value in every row"])

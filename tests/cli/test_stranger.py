"""A stranger with messy tables: each goes through all commands and through Python.

No command ends with a traceback, nothing that changes the result is silent, and every sentence on standard error is one
that the table says (`Messy`). To add a table, add a function to `TABLES`.
"""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import aucforest
from aucforest.distributed import fit_out_of_core, predict_out_of_core
from aucforest.inspection import column_notes
from aucforest.monitoring import CBPE, Chunks
from aucforest.report import report
from tests.cli.data import check_refusal, run

N_TRAIN, N_TEST = 120, 80
# What commands always write on standard error: the files that they made, the positive class, and alerts.
USUAL = re.compile(r"(model|reference|report|metrics|positive class|alerts|shifts beyond limits): .*|\d+ rows: .*")
# So few rows may not suffice for alerts.
TOO_FEW = "the alert limits of roc_auc .* are so wide|no shift could be beyond its limits"


@dataclass
class Messy:
    """A messy table, as the text of each value, and the sentences that each command writes on it.

    A sentence is the beginning of a line of standard error after "Note: " or "Warning: ". `refused` are commands that
    end with an error, which is a sentence, too; what needs their result is not tried.
    """

    train: pd.DataFrame
    test: pd.DataFrame
    fit: list[str] = field(default_factory=list)
    predict: list[str] = field(default_factory=list)
    fit_options: list[str] = field(default_factory=list)
    # How the files are written, and the options of all commands that read them, and of `fit_out_of_core`.
    write: Callable[[pd.DataFrame, Path], Path] = lambda frame, path: as_csv(frame, path)
    options: dict[str, str] = field(default_factory=dict)
    # The features as a stranger passes them to `fit` in Python, and what is said of them: a warning or an error.
    in_python: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame
    warning: str | None = None
    error: str | None = None
    # The number of columns that become dates, and what a command without the options says of the file.
    n_dates: int = 0
    unread: str | None = None

    def arguments(self, *others):
        """Return the options of a command that reads one of the files."""
        options = {"target": "label", **self.options}
        return [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", value)] + [*others]

    def files(self, folder):
        """Write the files of a stranger, and return their paths."""
        return [self.write(rows, folder / name) for rows, name in ((self.train, "train"), (self.test, "test"))]


def as_csv(frame, path, encoding="utf-8"):
    """Write a CSV."""
    frame.to_csv(path.with_suffix(".csv"), index=False, encoding=encoding)
    return path.with_suffix(".csv")


def as_folder(frame, path):
    """Write a folder of three Parquet files, and a file beside them that Spark and the like leave."""
    path.mkdir()
    (path / "_SUCCESS").touch()
    for number, rows in enumerate((frame[:7], frame[7:50], frame[50:])):
        rows.to_parquet(path / f"part-{number}.parquet", index=False)
    return path


def clean(n, seed):
    """Return a table without flaws."""
    random = np.random.default_rng(seed)
    amount, channel = random.lognormal(size=n).round(2), random.choice(["web", "shop", "phone"], size=n)
    y = amount * (1 + (channel == "web")) + random.normal(size=n) > 2.5
    return pd.DataFrame({
        "amount": amount,
        "channel": channel,
        "age": random.integers(18, 90, size=n),
        "label": np.where(y, "yes", "no"),
    })  # fmt: skip


def both(**columns):
    """Return the tables of a stranger with some columns replaced by functions of the table."""
    tables = clean(N_TRAIN, 0), clean(N_TEST, 1)
    return [table.assign(**columns) for table in tables]


def as_read(*names):
    """Return the types that pandas reads: columns of numbers with text among them are text."""
    return lambda table: table.assign(**{name: lambda t, name=name: t[name].astype(str) for name in names})


def stray_text():
    train, test = map(as_read("amount"), both())
    train.loc[[5, 7], "amount"] = ["unknown", "1,234.5"]
    test.loc[3, "amount"] = "n/k"
    found = "column 'amount': 1 of 120 values is no number ('unknown')"
    option = "; --stray-text text (in Python, stray_text='text') reads the column as text"
    spelled = "column 'amount': numbers such as '1,234.5' are read as "
    advice = "text, so that each is a category: write 1234.5; 1 of 120 values is no number ('unknown'): leave it empty"
    return Messy(
        train, test, fit=[f"{found}, read as missing{option}", f"{spelled}1234.5"],
        predict=["column 'amount': 1 of 80 values is no number ('n/k'), read as missing"],
        warning=f"{spelled}{advice}",
    )  # fmt: skip


def stray_text_kept():
    table = stray_text()
    table.fit_options = ["--stray-text", "text"]
    table.fit = [table.warning]
    n_new = (~table.test["amount"].isin(table.train["amount"])).sum()
    table.predict = [f"column 'amount': {n_new} of 80 rows "]
    return table


def mixed_types():
    """A tenth and more of the values are words: a column of text, and its numbers are words, too."""

    def codes(table):
        return np.where(table.index % 4 == 0, "none", (table["age"] // 10).astype(str))

    found = both(grade=codes)
    return Messy(
        *found,
        in_python=lambda table: table.assign(grade=[int(x) if x.isdigit() else x for x in table["grade"]]).astype(
            {"grade": object}
        ),
        error="column 'grade' is not numeric (could not convert string to float: 'none'); add it to categorical_feat",
    )


def decimal_comma():
    train, test = both(amount=lambda table: table["amount"].map(lambda value: f"{value:.2f}".replace(".", ",")))
    train.loc[0, "amount"], spelled = "0,10", "column 'amount': numbers such as "
    return Messy(train, test, [f"{spelled}'0,10' are read as 0.10"], [], warning=spelled)


def dates_as_text():
    sentence = "column 'booked': dates such as '1/1/2024' are read as text, so that each is a category; convert"
    train, test = both(booked=lambda table: [f"{1 + row % 12}/{1 + row % 7}/2024" for row in table.index])
    return Messy(train, test, [sentence], [], warning=sentence)


def moments(table):
    """Return a time in 2024 for each row; every seventh is missing."""
    found = pd.Timestamp("2024-01-01 00:30") + pd.to_timedelta(table["age"] * 96 + table.index % 24, "h")
    return found.mask(table.index % 7 == 0).astype("M8[s]")


def with_dates(spell, **more):
    """Return tables with a column of dates, in Python as pandas has them and in the file as they are spelled."""

    def parsed(frame):
        return frame.assign(booked=moments(frame))

    train, test = both(booked=lambda table: spell(moments(table)))
    return Messy(train, test, **{"in_python": parsed, "n_dates": 1, **more})


def dates_with_a_zone():
    def in_berlin(times):
        return times.dt.tz_localize("Europe/Berlin", ambiguous=True)

    return with_dates(
        lambda times: in_berlin(times).astype(str).replace("NaT", ""),
        in_python=lambda frame: frame.assign(booked=in_berlin(moments(frame))),
        fit=["column 'booked': times have an offset, but no time zone: month, day of week and hour are those of UTC"],
    )


def german_dates():
    spelling = "%d.%m.%Y %H:%M"
    return with_dates(lambda times: times.dt.strftime(spelling), options={"date_format": spelling})


def dates_of_parquet():
    """Days, moments and durations in the types of Arrow."""

    def typed(frame):
        times = moments(frame)
        return frame.assign(
            booked=times, day=times.dt.date.where(times.notna(), None), waited=times - times.min(), hour=times.dt.time
        )

    train, test = map(typed, both())
    return Messy(train, test, write=as_folder, n_dates=4)


def dates_and_other_text():
    train, test = both(booked=lambda table: table.index.map(lambda row: f"2024-{1 + row % 12:02d}-{1 + row % 28:02d}"))
    train.loc[[3, 9], "booked"], test.loc[5, "booked"] = ["soon", "n/k"], "later"
    return Messy(
        train, test, ["column 'booked': 2 of 120 values are no dates ('n/k', 'soon'), read as missing"],
        ["column 'booked': 1 of 80 values is no date ('later'), read as missing"], n_dates=1,
        in_python=lambda frame: frame.assign(booked=pd.to_datetime(frame["booked"], errors="coerce")),
    )  # fmt: skip


def another_encoding():
    """From a spreadsheet of Western Europe, with letters beyond ASCII in a name and in values."""
    train, test = (
        table.rename(columns={"channel": "größe"}).replace({"größe": {"web": "groß", "shop": "für €"}})
        for table in both()
    )
    cp1252 = "cp1252"
    return Messy(
        train, test, write=lambda frame, path: as_csv(frame, path, cp1252), options={"encoding": cp1252},
        unread="the header is not encoded in UTF-8: pass its encoding, such as --encoding cp1252",
    )  # fmt: skip


def folder_of_parquet():
    train, test = both()
    test.loc[:7, "channel"] = ["fax", "telex"] * 4
    sentence = "column 'channel': 8 of 80 rows (10 %) have a category that training has not seen ('fax', 'telex')"
    return Messy(train, test, predict=[sentence], write=as_folder)


def leak():
    return Messy(
        *both(outcome=lambda table: np.where(table["label"] == "yes", "paid back", "kept")),
        fit=["'outcome' separates the classes alone (ROC AUC 1.0000): is it known at prediction time?"],
    )


def identifier():
    sentence = "column 'id': every value is distinct, as in an identifier; consider --drop id"
    tables = both(id=lambda table: [f"{len(table)}-{row:05d}x" for row in table.index])
    return Messy(*tables, fit=[sentence], predict=["column 'id': 80 of 80 rows (100 %) have a category that training"])


def constant_and_empty():
    return Messy(
        *both(site="A", remark=np.nan),
        fit=[
            "column 'remark': no values, never used in a split",
            "column 'site': the same value in every row, never used in a split",
        ],
    )


TABLES = [
    stray_text, stray_text_kept, mixed_types, decimal_comma, dates_as_text, leak, identifier,
    constant_and_empty, dates_with_a_zone, german_dates, dates_of_parquet, dates_and_other_text, another_encoding,
    folder_of_parquet,
]  # fmt: skip


def said(result):
    """Return the sentences on standard error of a command, which succeeds; no other lines are there."""
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
    """A command says all that is wanted, in any order, once each, and nothing else."""
    found = said(result)
    assert len(found) == len(wanted), found
    for sentence in wanted:
        assert sum(line.startswith(sentence) for line in found) == 1, (sentence, found)


STACKS = [pytest.param(table, "stack", marks=pytest.mark.slow) for table in (stray_text, dates_with_a_zone)]


@pytest.mark.parametrize(("table", "model"), [*((table, "forest") for table in TABLES), *STACKS])
def test_all_commands(table, model, tmp_path):
    """What is said of a table does not depend on the model."""
    messy, path = table(), {name: tmp_path / name for name in ("model", "scores.csv", "reference.csv")}
    train, test = messy.files(tmp_path)
    to_fit = messy.arguments("--trees", 30, "--model", model, *messy.fit_options)
    fitted = run("fit", train, *to_fit, "--out", path["model"], "--reference", path["reference.csv"])
    check_said(fitted, messy.fit)
    if train.suffix == ".csv" and model == "forest":
        streamed = run("fit", train, *to_fit, "--out", tmp_path / "s", "--memory-limit", "1GB")
        check_said(streamed, messy.fit)
        assert (tmp_path / "s").read_bytes() == path["model"].read_bytes()
    fitted = aucforest.load(path["model"])
    assert len((fitted if model == "forest" else fitted.members_["forest"]).dates_) == messy.n_dates
    check_said(run("evaluate", path["model"], test, *messy.arguments()), messy.predict)
    predict = ["predict", path["model"], test, *messy.arguments()[2:], "--out"]
    check_said(run(*predict, path["scores.csv"]), messy.predict)
    score_options = ["--target", "label", "--score", "probability_yes", "--number", 3]
    estimated = run("estimate", path["reference.csv"], path["scores.csv"], *score_options)
    assert all(re.match(TOO_FEW, sentence) for sentence in said(estimated))
    scores = pd.read_csv(path["scores.csv"])["probability_yes"]
    assert scores.between(0, 1).all()
    said(run("inspect", path["model"]))
    if messy.unread is not None:
        check_refusal(run("evaluate", path["model"], test, "--target", "label"), messy.unread)
        check_refusal(run("fit", train, "--target", "label", "--out", tmp_path / "n"), messy.unread)
    if train.suffix != ".csv" or messy.options:
        forest = fit_out_of_core(aucforest.AUCForestClassifier(5, random_state=0), train, "label", **messy.options)
        batches = list(predict_out_of_core(forest, test, **messy.options))
        assert sum(batch.num_rows for batch in batches) == N_TEST
        assert len(forest.dates_) == messy.n_dates


@pytest.mark.parametrize(
    "table", [stray_text, mixed_types, dates_as_text, dates_of_parquet, folder_of_parquet], ids=lambda t: t.__name__
)
def test_forests_in_python_take_messy_tables(table):
    """As pandas and polars frames: a warning or an error names what is not right, all else is predicted."""
    messy = table()
    X, y = messy.in_python(messy.train.drop(columns="label")), messy.train["label"].to_numpy()
    test = messy.in_python(messy.test.drop(columns="label"))
    forest = aucforest.AUCForestClassifier(20, oob_score=True, random_state=0)
    if messy.error is not None:
        with pytest.raises(ValueError, match=re.escape(messy.error)):
            forest.fit(X, y)
        return
    forms = [lambda frame: frame, pl.from_pandas, lambda frame: pa.Table.from_pandas(frame, preserve_index=False)]
    probabilities = []
    for form in forms:
        if messy.warning is None:
            forest.fit(form(X), y)
        else:
            with pytest.warns(UserWarning, match=re.escape(messy.warning)):
                forest.fit(form(X), y)
        probabilities.append(forest.predict_proba(form(test)))
        notes = column_notes(form(test), model=forest)
        assert all(any(note.startswith(said) for note in notes) for said in messy.predict if "category" in said)
    assert np.array_equal(probabilities[0], probabilities[1])
    assert np.array_equal(probabilities[0], probabilities[2])
    assert len(forest.dates_) == messy.n_dates
    if messy.n_dates > 0:
        with pytest.raises(TypeError, match=r"^X: column '.*' holds dates or durations: leave dates out, because"):
            CBPE.from_forest(forest, y, X)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", TOO_FEW, UserWarning)
        monitor = CBPE.from_forest(forest, y, random_state=0)
    (row,) = monitor.estimate(probabilities[0], chunks=Chunks.by_number(1)).estimates
    assert row.low <= row.estimate <= row.high


# A page takes longer than all other commands together.
OTHERS = [pytest.param(table, "forest", marks=pytest.mark.slow) for table in TABLES if table != leak]


@pytest.mark.parametrize(("table", "model"), [(leak, "forest"), *OTHERS, *STACKS])
def test_pages(table, model, tmp_path):
    """`aucforest report` says what `evaluate` says, and the page has what `fit` says of the columns."""
    messy = table()
    train, test = messy.files(tmp_path)
    to_fit = messy.arguments("--trees", 30, "--model", model, *messy.fit_options, "--out", tmp_path / "model")
    check_said(run("fit", train, *to_fit), messy.fit)
    to_report = messy.arguments("--out", tmp_path / "page.html")
    check_said(run("report", tmp_path / "model", test, *to_report), messy.predict)
    html = unescape((tmp_path / "page.html").read_text())
    of_columns = [sentence for sentence in messy.fit if "separates" in sentence or "value" in sentence.split(": ")[1]]
    for sentence in of_columns:
        if " no number" not in sentence and " no date" not in sentence:
            said_there = sentence.partition("; consider")[0]
            assert f"{said_there[0].upper()}{said_there[1:]}" in html, sentence


@pytest.mark.slow
@pytest.mark.parametrize("table", [leak, german_dates, dates_of_parquet], ids=lambda table: table.__name__)
def test_pages_in_python(table):
    """A page on a polars frame, and on that of pandas, has every column, and parts of dates."""
    messy = table()
    X, test = (messy.in_python(rows.drop(columns="label")) for rows in (messy.train, messy.test))
    forest = aucforest.AUCForestClassifier(20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # test_forests_in_python_take_messy_tables reads them
        forest.fit(X, messy.train["label"].to_numpy())
    labels, new = messy.train["label"].to_numpy(), messy.test["label"].to_numpy()
    for form in (pl.from_pandas, lambda frame: frame):
        options = {"X_train": form(X), "y_train": labels, "n_bootstrap": 2, "n_repeats": 1}
        page = unescape(report(forest, form(test), new, **options).html)
        n_rates = 0 if forest.target_rates_ is None else forest.target_rates_.n_features
        # rates count with the column that they are made of
        assert all(name in page for name in forest.split_features_[: len(forest.split_features_) - n_rates])


def test_stray_text_does_not_change_the_forest_of_missing_values(tmp_path):
    """What is read as missing is missing: the same forest as if a careful person had emptied these cells."""
    messy = stray_text()
    messy.train.loc[7, "amount"] = "n/k"
    messy.train.to_csv(tmp_path / "messy.csv", index=False)
    careful = messy.train.assign(amount=pd.to_numeric(messy.train["amount"], errors="coerce"))
    careful.to_csv(tmp_path / "careful.csv", index=False)
    for name in ("messy", "careful"):
        run("fit", tmp_path / f"{name}.csv", "--target", "label", "--trees", 10, "--out", tmp_path / name)
    assert (tmp_path / "messy").read_bytes() == (tmp_path / "careful").read_bytes()
    with pytest.warns(UserWarning, match="column 'amount': 2 of 120 values are no numbers .*, read as missing"):
        forest = fit_out_of_core(aucforest.AUCForestClassifier(10, random_state=0), tmp_path / "messy.csv", "label")
    assert list(forest.categories_) == [1]


def test_parquet_keeps_its_types_and_says_what_they_hide(tmp_path):
    messy = stray_text()
    messy.train.assign(site="A").to_parquet(tmp_path / "train.parquet")
    fitted = run("fit", tmp_path / "train.parquet", "--target", "label", "--trees", 30, "--out", tmp_path / "model")
    check_said(fitted, [messy.warning, "column 'site': the same value in every row"])


def test_evaluating_the_training_file_says_so(tmp_path):
    """The rows in their order are recognized; in another order they are far better than those out of bag."""
    train = clean(N_TRAIN, 0).assign(label=np.random.default_rng(0).permutation(["yes", "no"] * (N_TRAIN // 2)))
    train.to_csv(tmp_path / "train.csv", index=False)
    train.sample(frac=1.0, random_state=0).to_csv(tmp_path / "shuffled.csv", index=False)
    run("fit", tmp_path / "train.csv", "--target", "label", "--trees", 30, "--out", tmp_path / "model")
    model = aucforest.load(tmp_path / "model")
    sentence = "these are the rows that the model was trained on, so that all metrics are too good: the ROC AUC of"
    evaluated = run("evaluate", tmp_path / "model", tmp_path / "train.csv", "--target", "label")
    check_said(evaluated, [f"{sentence} out-of-bag rows is {model.oob_score_:.4f}"])
    shuffled = run("evaluate", tmp_path / "model", tmp_path / "shuffled.csv", "--target", "label")
    assert re.match("The ROC AUC of these rows, .*, exceeds that of the out-of-bag rows", said(shuffled)[0])


def test_too_much_text_in_a_column_of_numbers_is_an_error(tmp_path):
    """It is another column, or another format: prediction does not go on as if all were missing."""
    train, test = both()
    train.to_csv(tmp_path / "train.csv", index=False)
    test.assign(amount=lambda table: table["amount"].map("about {}".format)).to_csv(tmp_path / "test.csv", index=False)
    run("fit", tmp_path / "train.csv", "--target", "label", "--trees", 5, "--out", tmp_path / "model")
    result = run("predict", tmp_path / "model", tmp_path / "test.csv", "--out", tmp_path / "scores.csv")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: test.csv, line 2: column 'amount' has the value 'about ")
    assert "which is not a number; 80 of 80 values are no numbers" in line
    assert not (tmp_path / "scores.csv").exists()

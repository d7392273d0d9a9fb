"""The command line: what it prints, writes and refuses."""

import json
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from aucforest.cli.app import app
from aucforest.cli.compare import _table

mpl.use("Agg")
FAST = ("--trees", "3", "--folds", "2", "--repeats", "1")


def run(*arguments):
    """Call `aucforest compare` in this process."""
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


@pytest.fixture
def table(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({
        "width": random.normal(size=60),
        "height": random.normal(size=60),
        "count": random.integers(0, 9, size=60),
        "kind": np.repeat(["good", "bad", "ugly"], 20),
        "grade": np.repeat([1, 2], 30),
    })  # fmt: skip
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


def edited(table, column, values):
    """Write a copy of the table with one column replaced."""
    path = table.with_name("edited.csv")
    pd.read_csv(table).assign(**{column: values}).to_csv(path, index=False)
    return path


def test_without_a_file_the_old_abalone_are_compared():
    result = run(*FAST)
    assert result.exit_code == 0, result.output
    for text in (
        "abalone, rings >= 18",
        "auc",
        "gini",
        "ROC AUC",
        "nodes per tree",
        "p = ",
        "Means of 2 folds",
    ):
        assert text in result.output


def test_figures_and_picture_are_written(table, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    arguments = ["--criteria", "auc,entropy", "--json", out / "a.json", "--plot", out / "a.png"]
    numeric = edited(table, "kind", range(60))
    result = run(numeric, "--target", "grade", *FAST, *arguments)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == ["a.json", "a.png"]
    assert (out / "a.png").read_bytes().startswith(b"\x89PNG")
    content = json.loads((out / "a.json").read_text())
    assert content["data"] == "edited.csv, grade"
    assert (content["n_samples"], content["n_features"]) == (60, 4)
    assert content["class_counts"] == {"1": 30, "2": 30}
    assert {row["criterion"] for row in content["summary"]} == {"auc", "entropy", "gini"}
    assert len(content["folds"]) == 2 * 3
    auc = [fit["roc_auc"] for fit in content["folds"] if fit["criterion"] == "auc"]
    assert content["summary"][0]["mean"] == pytest.approx(np.mean(auc))


def test_parquet_holds_the_same_figures(table, tmp_path):
    numeric = edited(table, "kind", range(60))
    parquet = tmp_path / "table.parquet"
    frame = pd.read_csv(numeric)
    frame.loc[0, "width"] = np.nan
    frame.convert_dtypes().to_parquet(parquet)
    frame.to_csv(numeric, index=False)
    figures = []
    for path in (numeric, parquet):
        assert np.argwhere(_table(path, "grade", None).X.isna().to_numpy()).tolist() == [[0, 0]]
        result = run(path, "--target", "grade", *FAST, "--json", tmp_path / "a.json")
        assert result.exit_code == 0, result.output
        content = json.loads((tmp_path / "a.json").read_text())
        figures.append([row["mean"] for row in content["summary"] if row["metric"] != "fit_seconds"])
    assert figures[0] == figures[1]


def test_text_is_compared_on_as_categories(table, tmp_path):
    means = []
    for kinds in (["good", "bad", "ugly"], ["c", "a", "q"]):
        path = edited(table, "kind", np.repeat(kinds, 20))
        result = run(path, "--target", "grade", *FAST, "--json", tmp_path / "a.json")
        assert result.exit_code == 0, result.output
        content = json.loads((tmp_path / "a.json").read_text())
        assert content["n_features"] == 4
        means.append([row["mean"] for row in content["summary"] if row["metric"] != "fit_seconds"])
    assert means[0] == means[1]


def test_one_label_against_the_others(table, tmp_path):
    numeric = table.with_name("numbers.csv")
    pd.read_csv(table).drop(columns="grade").to_csv(numeric, index=False)
    result = run(numeric, "--target", "kind", "--positive", "ugly", *FAST, "--json", tmp_path / "a.json")
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "a.json").read_text())["class_counts"] == {"False": 40, "True": 20}
    several = run(numeric, "--target", "kind", *FAST)
    assert "numbers.csv, kind" in several.output


def refusals(table, tmp_path):
    """Return arguments and the sentence that they deserve."""
    numeric = edited(table, "kind", range(60))
    garbage = tmp_path / "garbage.parquet"
    garbage.write_bytes(b"not a table")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    missing = tmp_path / "missing.csv"
    grade = ("--target", "grade")
    names = ("one", "unlabelled", "headless", "rowless")
    one_class, unlabelled, headless, rowless = (tmp_path / f"{name}.csv" for name in names)
    frame = pd.read_csv(numeric)
    frame.assign(grade=1).to_csv(one_class, index=False)
    frame.assign(grade=frame["grade"].where(frame.index > 2)).to_csv(unlabelled, index=False)
    frame[["grade"]].to_csv(headless, index=False)
    frame[:0].to_csv(rowless, index=False)
    dated = tmp_path / "dated.parquet"
    frame.assign(day=pd.Timestamp("2024-02-29")).to_parquet(dated)
    lists = tmp_path / "lists.parquet"
    frame.assign(grade=[[1], [2]] * 30).to_parquet(lists)
    return [
        ((missing, *grade), f"there is no file {missing}"),
        ((empty, *grade), f"cannot read {empty}: No columns to parse from file"),
        ((garbage, *grade), f"cannot read {garbage}: "),
        ((tmp_path / "table.xlsx", *grade), "FILE must end in .csv or .parquet, got table.xlsx"),
        ((table,), "--target must name the column of class labels"),
        (grade, "--target and --positive need a FILE"),
        (("--positive", "old"), "--target and --positive need a FILE"),
        ((table, "--target", "grad"), "table.csv has no column 'grad'; did you mean 'grade'?"),
        ((dated, *grade), "X: column 'day' is not numeric but datetime64"),
        ((one_class, *grade), "column 'grade' has one class only: 1"),
        ((unlabelled, *grade), "column 'grade' has 3 missing labels"),
        ((headless, *grade), "headless.csv has no rows, or no column besides 'grade'"),
        ((lists, *grade), "unhashable"),
        ((rowless, *grade), "rowless.csv has no rows, or no column besides 'grade'"),
        ((table, "--target", "kind", "--positive", "uggly"), "no label 'uggly'; did you mean 'ugly'?"),
        ((numeric, *grade, "--criteria", "auc,ginny"), "ginny"),
        ((numeric, *grade, "--folds", "31"), "class 1 has 30 rows, too few for 31 folds"),
        ((numeric, *grade, "--plot", "a.txt"), "--plot must end in .png, .svg, .pdf, got a.txt"),
        (
            (numeric, *grade, "--json", tmp_path / "no" / "a.json"),
            f"the folder {tmp_path / 'no'} does not exist",
        ),
        ((numeric, *grade, "--json", tmp_path), f"{tmp_path} is a folder"),
    ]


def test_refusals_are_one_line_and_exit_with_2(table, tmp_path):
    for arguments, sentence in refusals(table, tmp_path):
        result = run(*arguments)
        assert result.exit_code == 2, (arguments, result.output)
        (line,) = result.stderr.splitlines()
        assert line.startswith("Error: "), line
        assert sentence in line, (line, sentence)


def test_a_column_of_numbers_and_words_is_read_as_a_whole(tmp_path):
    """Past some hundred thousand rows pandas would read it in parts, each of a type of its own."""
    path = tmp_path / "long.csv"
    pd.DataFrame({"a": np.arange(600_000) % 7, "kind": ["0", "1"] * 299_998 + ["other"] * 4}).to_csv(path, index=False)
    assert np.unique(_table(path, "kind", None).y).tolist() == ["0", "1", "other"]


def test_the_module_runs_as_a_command(tmp_path):
    command = [sys.executable, "-m", "aucforest", "compare", *FAST, "--json", tmp_path / "a.json"]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert "abalone" in finished.stdout
    assert json.loads((tmp_path / "a.json").read_text())["n_samples"] == 4177


def test_a_missing_extra_is_named():
    program = "import sys; sys.modules['typer'] = None; from aucforest.__main__ import main; main()"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert finished.returncode == 1
    assert finished.stderr == "the command line needs typer: pip install aucforest[cli]\n"

"""The command line: what it prints, writes and refuses."""

import json
from functools import partial

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from aucforest.inspection import compare_criteria
from tests.cli import data
from tests.cli.data import check_refusal, check_usage

mpl.use("Agg")
FAST = ("--trees", "3", "--folds", "2", "--repeats", "1")


run, succeed, read_json = (partial(call, "compare") for call in (data.run, data.succeed, data.read_json))


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


def test_without_a_file_the_old_abalone_are_compared(tmp_path):
    result = succeed(*FAST, "--json", tmp_path / "a.json")
    for text in (
        "abalone, rings >= 18",
        "auto",
        "auc",
        "gini",
        "ROC AUC",
        "nodes per tree",
        "p = ",
        "Means of 2 folds",
    ):
        assert text in result.output
    assert json.loads((tmp_path / "a.json").read_text())["n_samples"] == 4177


def test_figures_and_picture_are_written(table, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    arguments = ["--criteria", "auc,entropy", "--json", out / "a.json", "--plot", out / "a.png"]
    numeric = edited(table, "kind", range(60))
    result = succeed(numeric, "--target", "grade", *FAST, *arguments)
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
    # The verdict comes first, and what forests cost after what they are worth.
    words = " ".join(result.stdout.split())
    assert words.startswith(content["verdict"])
    assert " ranks significantly better than gini on these folds" in content["verdict"]
    assert words.index(" log loss ") < words.index("fit time and sizes of trees") < words.index("nodes per tree")
    scores, costs = result.stdout.split("fit time and sizes of trees")
    assert scores.count("p = ") + scores.count("p < 0.001") >= 10
    assert costs.count("p = ") + costs.count("p < 0.001") == 0
    assert costs.strip().endswith("Means of 2 folds with 95 % intervals.")


@pytest.mark.parametrize(
    ("options", "params"),
    [
        ([], {}),
        (["--splitter", "random"], {"splitter": "random"}),
        (["--criteria", "auto,stack", "--trees", "30"], {"criteria": ["auto", "stack"], "n_estimators": 30}),
    ],
    ids=["default", "splitter", "stack"],
)
def test_the_command_line_is_the_function(table, tmp_path, options, params):
    """The defaults of both are the same but for trees and repeats."""
    content = read_json(table, "--target", "grade", "--drop", "kind", *FAST, *options)
    frame, params = pd.read_csv(table), {"n_estimators": 3, **params}
    X = frame[["width", "height", "count"]]
    expected = compare_criteria(X, frame["grade"], cv=2, random_state=0, verbose=0, **params)
    found = [(row["criterion"], row["metric"], row["mean"]) for row in content["summary"]]
    without_time = [row[:3] for row in expected.summary() if row.metric != "fit_seconds"]
    assert [row for row in found if row[1] != "fit_seconds"] == [
        (*names, pytest.approx(v)) for *names, v in without_time
    ]


def test_folds_that_are_all_equal_have_no_interval(table, tmp_path):
    numeric = edited(table, "kind", np.repeat([0.0, 1.0], 30))
    result = succeed(numeric, "--target", "grade", "--trees", 20, *FAST[2:], "--json", tmp_path / "a.json")
    first = json.loads((tmp_path / "a.json").read_text())["summary"][0]
    assert (first["mean"], first["low"], first["high"], first["pvalue"]) == (1.0, None, None, 1.0)
    (line,) = (line for line in result.stdout.splitlines() if line.strip().startswith("ROC AUC"))
    assert line.split() == ["ROC", "AUC", "1.0000", "1.0000", "1.0000"]


def test_text_is_compared_on_as_categories(table, tmp_path):
    means = []
    for kinds in (["good", "bad", "ugly"], ["c", "a", "q"]):
        path = edited(table, "kind", np.repeat(kinds, 20))
        content = read_json(path, "--target", "grade", *FAST)
        assert content["n_features"] == 4
        means.append([row["mean"] for row in content["summary"] if row["metric"] != "fit_seconds"])
    assert means[0] == means[1]


def test_one_label_against_the_others(table, tmp_path):
    numeric = table.with_name("numbers.csv")
    pd.read_csv(table).drop(columns="grade").to_csv(numeric, index=False)
    content = read_json(numeric, "--target", "kind", "--positive", "ugly", *FAST)
    assert content["class_counts"] == {"not ugly": 40, "ugly": 20}
    several = succeed(numeric, "--target", "kind", *FAST, "--json", "-")
    assert json.loads(several.stdout)["data"] == "numbers.csv, kind"  # standard output has nothing else
    assert "ROC AUC" in several.stderr


def test_columns_that_are_dropped_weights_and_semicolons(table, tmp_path):
    """As with a table that lacks the columns; weights are not features, and change the metrics."""
    frame = pd.read_csv(table).assign(weight=np.linspace(0.5, 2.0, 60), noise=range(60))
    wide, narrow = tmp_path / "wide.csv", tmp_path / "narrow.csv"
    frame.to_csv(wide, index=False, sep=";")
    frame.drop(columns=["noise", "weight", "kind"]).to_csv(narrow, index=False)
    found = []
    for path, *options in (
        (narrow,),
        (wide, "--drop", "noise,weight,kind", "--separator", ";"),
        (wide, "--drop", "noise,kind", "--weight", "weight", "--separator", ";"),
    ):
        content = read_json(path, "--target", "grade", *FAST, *options)
        assert content["n_features"] == 3
        found.append([row["mean"] for row in content["summary"] if row["metric"] != "fit_seconds"])
    assert found[0] == found[1] != found[2]


def test_wrong_files_and_columns_are_refused_in_one_line(table, tmp_path):
    for arguments, sentence in (
        (("--target", "grade", "--drop", "widht"), "no column 'widht'; did you mean 'width'?"),
        (("--target", "grade", "--folds", "31"), "has 30 samples, too few for 31 folds"),
        (("--target", "grade", "--json", tmp_path), "is a folder"),
    ):
        check_refusal(run(table, *arguments), sentence)


def test_wrong_calls_exit_with_2(table):
    check_usage(run(table), "--target: must name the column of class labels")
    for option in ("--target", "--positive", "--weight", "--drop", "--groups", "--time"):
        sentence = "--target, --positive, --weight, --drop, --groups and --time need a FILE"
        check_usage(run(option, "grade"), sentence)
    both = run(table, "--target", "grade", "--groups", "kind", "--time", "count")
    check_usage(both, "--time: cannot be combined with --groups")
    repeated = run(table, "--target", "grade", "--time", "count", "--repeats", "2")
    check_usage(repeated, "--repeats: folds by time cannot be repeated")
    unknown = run(table, "--target", "grade", "--criteria", "auc,ginny")
    check_usage(unknown, "'ginny' is not among auto, stack, auc, ")
    check_usage(unknown, "did you mean 'gini'?")
    check_usage(run(table, "--target", "grade", "--splitter", "worst"), "'worst' is not one of")
    check_usage(run(table, "--target", "grade", "--plot", "a.txt"), "must end in .png, .svg, .pdf, got a.txt")

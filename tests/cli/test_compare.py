"""`aucforest compare`: its output, its files and its errors."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from aucforest.inspection import compare_criteria
from tests.cli.data import check_refusal, check_usage, json_of, read_json, run, succeed

mpl.use("Agg")
COMPARE = "compare table.csv --target grade --folds 2 --repeats 1 --trees 3"


def means(content):
    return [row["mean"] for row in content["summary"] if row["metric"] != "fit_seconds"]


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({
        "width": random.normal(size=60), "height": random.normal(size=60), "count": random.integers(0, 9, size=60),
        "kind": np.repeat(["good", "bad", "ugly"], 20), "grade": np.repeat([1, 2], 30),
    })  # fmt: skip
    frame.to_csv("table.csv", index=False)
    return frame


def test_without_a_file_the_old_abalone_are_compared():
    said = succeed("compare --trees 3 --folds 2 --repeats 1 --json a.json").output
    words = ("auto", "auc", "gini", "ROC AUC", "nodes per tree", "p = ", "Means of 2 folds")
    assert all(text in said for text in ("abalone, rings >= 18", *words))
    assert json_of("a.json")["n_samples"] == 4177


def test_figures_and_picture_are_written(table, tmp_path):
    table.assign(kind=range(60)).to_csv("table.csv", index=False)
    result = succeed(f"{COMPARE} --criteria auc,entropy --json a.json --plot a.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.png", "table.csv"]
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    content = json_of("a.json")
    assert content["data"] == "table.csv, grade"
    assert (content["n_samples"], content["n_features"]) == (60, 4)
    assert content["class_counts"] == {"1": 30, "2": 30}
    assert len(content["folds"]) == 2 * 3
    # The verdict comes first, and the cost of forests last.
    words = " ".join(result.stdout.split())
    assert words.startswith(content["verdict"])
    assert " ranks significantly better than gini on these folds" in content["verdict"]
    assert words.index(" log loss ") < words.index("fit time and sizes of trees") < words.index("nodes per tree")
    scores, costs = result.stdout.split("fit time and sizes of trees")
    assert scores.count("p = ") + scores.count("p < 0.001") >= 10
    assert costs.count("p = ") + costs.count("p < 0.001") == 0
    assert costs.strip().endswith("Means of 2 folds with 95 % intervals.")


@pytest.mark.parametrize(("options", "params"), [
    ("", {}), ("--splitter random", {"splitter": "random"}),
    ("--criteria auto,stack --trees 30", {"criteria": ["auto", "stack"], "n_estimators": 30}),
])  # fmt: skip
def test_results_are_those_of_compare_criteria(table, options, params):
    content, X = read_json(f"{COMPARE} {options}"), table.drop(columns="grade").astype({"kind": "category"})
    params = {"n_estimators": 3, **params}
    expected = compare_criteria(X, table["grade"], cv=2, random_state=0, verbose=0, **params).summary()
    names = [(row["criterion"], row["metric"]) for row in content["summary"]]
    assert names == [(row.criterion, row.metric) for row in expected]
    assert means(content) == pytest.approx([row.mean for row in expected if row.metric != "fit_seconds"])


def test_folds_that_are_all_equal_have_no_interval(table):
    table.assign(kind=np.repeat([0.0, 1.0], 30)).to_csv("table.csv", index=False)
    result, first = succeed(f"{COMPARE} --trees 20 --json a.json"), json_of("a.json")["summary"][0]
    assert (first["mean"], first["low"], first["high"], first["pvalue"]) == (1.0, None, None, 1.0)
    (line,) = (line for line in result.stdout.splitlines() if line.strip().startswith("ROC AUC"))
    assert line.split() == ["ROC", "AUC", "1.0000", "1.0000", "1.0000"]


def test_one_label_against_the_others(table):
    compare = f"{COMPARE} --target kind --drop grade"
    assert read_json(f"{compare} --positive ugly")["class_counts"] == {"not ugly": 40, "ugly": 20}
    assert read_json(compare)["data"] == "table.csv, kind"  # standard output has only JSON
    assert "ROC AUC" in succeed(f"{compare} --json -").stderr


def test_columns_that_are_dropped_weights_and_semicolons(table):
    table.drop(columns="kind").to_csv("table.csv", index=False)
    table.assign(weight=np.linspace(0.5, 2.0, 60), noise=range(60)).to_csv("wide.csv", index=False, sep=";")
    wide = f"{COMPARE} --separator ; --drop noise,kind".replace("table.csv", "wide.csv")
    contents = [read_json(command) for command in (COMPARE, f"{wide},weight", f"{wide} --weight weight")]
    assert [content["n_features"] for content in contents] == [3, 3, 3]
    plain, dropped, weighted = map(means, contents)
    assert plain == dropped != weighted


def test_wrong_columns_and_calls_are_refused(table):
    check_refusal(run(f"{COMPARE} --json ."), "is a folder")
    check_usage(run("compare table.csv"), "--target: must name the column of class labels")
    for option in ("--target", "--positive", "--weight", "--drop", "--groups", "--time"):
        check_usage(run(f"compare {option} grade"), "--categorical, --groups and --time need a FILE")
    for options, sentence in (
        ("--groups kind --time count", "--time: cannot be combined with --groups"),
        ("--time count --repeats 2", "--repeats: folds by time cannot be repeated"),
        ("--criteria auc,ginny", "'ginny' is not among auto, stack, auc, "),
        ("--criteria auc,ginny", "did you mean 'gini'?"),
        ("--splitter worst", "'worst' is not one of"),
        ("--plot a.txt", "must end in .png, .svg, .pdf, got a.txt"),
    ):
        check_usage(run(f"{COMPARE} {options}"), sentence)

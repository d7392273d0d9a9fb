"""Models whose positive label comes first in sorted order."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import average_precision_score, log_loss

import aucforest
from aucforest.inspection import explain
from aucforest.metrics import recall_at_k
from tests.cli.data import run, succeed


def make_rows(n=600, seed=0):
    """Return rows of which about a quarter are bad."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(n, 3)), columns=["a", "b", "c"]).round(3)
    return X.assign(label=np.where(X["a"] + random.normal(size=n) > 1, "bad", "good"))


def fit(folder, *options, rows=None):
    """Fit by the command line; return the rows and the model file."""
    rows, train, model = make_rows() if rows is None else rows, folder / "train.csv", folder / "m.aucforest"
    rows.to_csv(train, index=False)
    succeed("fit", train, "--target", "label", "--trees", 30, "--out", model, *options)
    return rows, model


@pytest.mark.parametrize("model", ["forest", "stack"])
def test_the_row_that_defined_the_threshold(tmp_path, model):
    """Its probability is the threshold, so that a rounding error would change its label."""
    rows, file = fit(tmp_path, "--model", model)
    X, y = rows[["a", "b", "c"]], rows["label"]
    for start in range(0, 300, 100):
        some, python = slice(start, start + 100), aucforest.load(file)
        python.set_threshold("gmean", X[some], y[some], oob=False).save(file)
        succeed("predict", file, tmp_path / "train.csv", "--out", tmp_path / "p.parquet")
        found, python = pd.read_parquet(tmp_path / "p.parquet"), aucforest.load(file)
        proba = python.predict_proba(X)[:, 0]
        np.testing.assert_array_equal(found["probability_bad"], proba)
        np.testing.assert_array_equal(found["prediction"], python.predict(X))
        assert np.any(proba == python.threshold_)
        np.testing.assert_array_equal(found["prediction"] == "bad", proba >= python.threshold_)


@pytest.mark.parametrize("sampling", ["bootstrap", "stratified"])
def test_both_fit_the_same_forest(tmp_path, sampling):
    rows, file = fit(tmp_path, "--sampling", sampling, "--threshold", "f1", "--max-depth", 4)
    X, y, shell = rows[["a", "b", "c"]], rows["label"], aucforest.load(file)
    assert (shell.classes_.tolist(), shell.pos_label, shell.pos_label_) == (["bad", "good"], "bad", "bad")
    python = clone(shell).fit(X, y)
    np.testing.assert_array_equal(python.predict_proba(X), shell.predict_proba(X))
    assert python.threshold_ == shell.threshold_
    shell.set_params(warm_start=True, n_estimators=40).fit(X, y)
    np.testing.assert_array_equal(shell.predict_proba(X), clone(shell).fit(X, y).predict_proba(X))
    assert len(shell) == 40
    assert shell.pos_label_ == "bad"


def test_commands_agree_that_the_rarer_label_is_positive(tmp_path):
    """Though it comes first in sorted order."""
    rows, file = make_rows(), tmp_path / "m.aucforest"
    train = tmp_path / "train.csv"
    rows.to_csv(train, index=False)
    fitted = succeed("fit", train, "--target", "label", "--trees", 30, "--out", file, "--threshold", "f1")
    assert "positive class: 'bad', the rarer label" in fitted.stderr
    model, X, is_bad = aucforest.load(file), rows[["a", "b", "c"]], rows["label"] == "bad"
    rule = f"labels: bad where its probability is at least {model.threshold_:.4g}"
    assert f"{rule} (f1)" in fitted.stdout
    result = run("evaluate", file, train, "--target", "label", "--json", tmp_path / "m.json")
    assert "positive class: bad; 600 rows" in result.stdout
    assert f"{rule} (the threshold of the model)" in result.stdout
    content, proba = json.loads((tmp_path / "m.json").read_text()), model.predict_proba(X)
    metrics = {metric["metric"]: metric["value"] for metric in content["metrics"]}
    assert (content["classes"], content["positive_class"]) == (["bad", "good"], "bad")
    assert metrics["average_precision"] == pytest.approx(average_precision_score(is_bad, proba[:, 0]))
    assert metrics["log_loss"] == pytest.approx(log_loss(rows["label"], proba))
    assert metrics["recall_at_0.01"] == pytest.approx(recall_at_k(is_bad, proba[:, 0], 0.01))
    succeed("predict", file, train, "--reasons", 1, "--out", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv")
    assert predicted.columns.tolist() == ["prediction", "probability_bad", "probability_good", "reason_1"]
    assert predicted["reason_1"].tolist() == [str(row[0]) for row in explain(model, X).of_class("bad").top(1)]
    assert "bad" in run("inspect", file).stdout.split("positive class")[1].split("\n")[0]


def test_names_of_labels_are_no_markup(tmp_path):
    rows = make_rows().replace({"label": {"bad": "[/]", "good": "[red]x[/red]"}})
    _, file = fit(tmp_path, rows=rows)
    result = succeed("evaluate", file, tmp_path / "train.csv", "--target", "label")
    assert "[red]x[/red]" in result.stdout
    assert "[/]" in result.stdout


def test_weights_and_compared_targets_are_numbers_in_any_spelling(tmp_path):
    rows = make_rows().drop(columns="label").assign(w=np.arange(600) % 7 * 1000.5, y=np.arange(600) * 97 % 5000)
    spelled = rows.assign(**{name: [f"{number:,}" for number in rows[name]] for name in "wy"})
    named = ["--target", "y", "--positive", ">=2000", "--weight", "w"]
    for name, table in (("plain", rows), ("spelled", spelled)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        succeed("fit", tmp_path / f"{name}.csv", "--trees", 20, "--out", tmp_path / f"{name}.model", *named)
    assert (tmp_path / "plain.model").read_bytes() == (tmp_path / "spelled.model").read_bytes()
    model, named = tmp_path / "plain.model", ["--target", "y", "--weight", "w"]
    results = []
    for name in ("plain", "spelled"):
        succeed("evaluate", model, tmp_path / f"{name}.csv", *named, "--json", tmp_path / name)
        results.append(json.loads((tmp_path / name).read_text())["metrics"])
    assert results[0] == results[1]
    spelled.loc[5, "w"] = "many"
    spelled.to_csv(tmp_path / "stray.csv", index=False)
    for command in (["fit", "--positive", ">=2000", "--out", tmp_path / "m"], ["evaluate", model]):
        result = run(*command, tmp_path / "stray.csv", *named)
        error = "Error: stray.csv, line 7: column 'w' has no weight: 1 of 600 values is no number ('many')"
        assert (result.exit_code, result.stderr.splitlines()[-1]) == (1, error)
        result = run(*command, tmp_path / "stray.csv", *named, "--where", "y <> '485' AND y <> '5'")
        assert result.exit_code == 0, result.stderr

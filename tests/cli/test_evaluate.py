"""`aucforest evaluate`: the figures of the metrics, at the threshold of the model."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss

import aucforest
from aucforest.metrics import auc_confidence_interval, average_precision_score, hand_till_score
from tests.cli.data import check_refusal, mixed, run
from tests.cli.test_predict import frame_of


@pytest.mark.parametrize("source", ["test_csv", "test_parquet"])
def test_the_figures_are_those_of_the_metrics(files, source):
    result = run("evaluate", files.model_aucforest, getattr(files, source), "--target", "label", "--json", "-")
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    model, rows = aucforest.load(files.model_aucforest), mixed(250, 1)
    y, X = rows["label"].to_numpy(str), frame_of(rows)
    score = model.predict_proba(X)[:, 1]
    matrix = confusion_matrix(y, model.predict(X))
    recalls = np.diag(matrix) / matrix.sum(axis=1)
    expected = {
        "average_precision": average_precision_score(y == "yes", score),
        "g_mean": np.sqrt(recalls.prod()),
        "brier": brier_score_loss(y == "yes", score),
        "log_loss": log_loss(y, model.predict_proba(X)),
    }
    auc, *rest = content["figures"]
    assert (auc["value"], auc["low"], auc["high"]) == pytest.approx(auc_confidence_interval(y == "yes", score))
    assert {figure["metric"]: figure["value"] for figure in rest} == pytest.approx(expected)
    assert all(figure["low"] is None for figure in rest)
    assert content["confusion_matrix"] == matrix.tolist()
    assert content["threshold"] == model.threshold_
    assert content["n_samples"] == 250
    for text in (f"{auc['value']:.4f}", f"{auc['low']:.4f} to {auc['high']:.4f}", "positive: yes; 250 rows", "G-mean"):
        assert text in result.stderr


def test_weights_and_a_label_against_the_others(tmp_path):
    rows = mixed(150, 2).assign(label=np.tile([1, 2, 3], 50))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["--target", "label", "--positive", "3"]
    fitted = run(
        "fit", tmp_path / "rows.csv", *arguments, "--drop", "id,weight", "--out", tmp_path / "m", "--trees", 10
    )
    assert fitted.exit_code == 0, fitted.output
    result = run("evaluate", tmp_path / "m", tmp_path / "rows.csv", *arguments, "--weight", "weight", "--json", "-")
    assert result.exit_code == 0, result.output
    score = aucforest.load(tmp_path / "m").predict_proba(frame_of(rows))[:, 1]
    expected = auc_confidence_interval(rows["label"] == 3, score, sample_weight=rows["weight"])
    auc = json.loads(result.stdout)["figures"][0]
    assert (auc["value"], auc["low"], auc["high"]) == pytest.approx(expected)
    without = run("evaluate", tmp_path / "m", tmp_path / "rows.csv", "--target", "label")
    advice = "; if the model was fitted with --positive, give it here, too"
    check_refusal(without, "column 'label' holds '2', not true or false" + advice)
    rows.to_parquet(tmp_path / "rows.parquet")
    without = run(
        "report", tmp_path / "m", tmp_path / "rows.parquet", "--target", "label", "--out", tmp_path / "r.html"
    )
    check_refusal(without, "column 'label' holds int64, but the model wants true or false" + advice)


def test_more_classes_have_no_interval(tmp_path):
    rows = mixed(150, 2).assign(label=np.tile([1.0, 2.0, 3.0], 50))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    run("fit", tmp_path / "rows.csv", "--target", "label", "--drop", "id", "--out", tmp_path / "m", "--trees", 10)
    result = run("evaluate", tmp_path / "m", tmp_path / "rows.csv", "--target", "label", "--json", tmp_path / "f.json")
    assert result.exit_code == 0, result.output
    model = aucforest.load(tmp_path / "m")
    X = frame_of(rows).assign(weight=rows["weight"])
    auc = json.loads((tmp_path / "f.json").read_text())["figures"][0]
    assert auc["value"] == hand_till_score(rows["label"], model.predict_proba(X))
    assert auc["low"] is None
    assert "positive" not in result.stdout


def test_refusals_are_one_line_and_exit_with_1(files, tmp_path):
    rows = pd.read_csv(files.test_csv)
    changed = {
        "maybe": rows.assign(label=rows["label"].where(rows.index != 4, "maybe")),
        "gaps": rows.assign(label=rows["label"].where(rows.index > 2)),
        "one": rows.assign(label="no"),
        "none": rows[:0],
        "lacking": rows.drop(columns="flag"),
    }
    for name, content in changed.items():
        content.to_csv(tmp_path / f"{name}.csv", index=False)
    sentences = {
        "maybe": "maybe.csv, line 6: column 'label' has the label 'maybe', but the classes of the model are no, yes",
        "gaps": "column 'label' has 3 missing labels, the first: gaps.csv, line 2",
        "one": "column 'label' has one class only: no",
        "none": "none.csv has a header, but no rows",
        "lacking": "lacks columns that the model was fitted on: 'flag'",
    }
    for name, sentence in sentences.items():
        check_refusal(run("evaluate", files.model_aucforest, tmp_path / f"{name}.csv", "--target", "label"), sentence)
    arguments = [files.model_aucforest, files.test_csv, "--target"]
    check_refusal(run("evaluate", *arguments, "lable"), "no column 'lable'; did you mean 'label'?")
    check_refusal(run("evaluate", *arguments, "label", "--positive", "yes"), "this one's classes are no, yes")
    check_refusal(run("evaluate", *arguments, "label", "--json", files.test_csv), "would be overwritten")

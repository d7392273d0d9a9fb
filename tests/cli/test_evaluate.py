"""`aucforest evaluate`: the metrics, at the threshold of the model."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss

import aucforest
from aucforest.metrics import (
    auc_confidence_interval,
    average_precision_score,
    group_rates,
    hand_till_score,
    metrics_at_k,
    roc_auc_score,
)
from tests.cli.data import check_refusal, check_usage, frame_of, mixed, read_json, run, succeed
from tests.cli.test_fit import forest


@pytest.mark.parametrize("source", ["test_csv", "test_parquet"])
def test_the_figures_are_those_of_the_metrics(files, source):
    result = succeed("evaluate", files.model_aucforest, getattr(files, source), "--target", "label", "--json", "-")
    content = json.loads(result.stdout)
    model, rows = aucforest.load(files.model_aucforest), mixed(250, 1)
    is_positive, X = (rows["label"] == "yes").to_numpy(), frame_of(rows)
    score, matrix = model.predict_proba(X)[:, 1], confusion_matrix(rows["label"], model.predict(X))
    found = {figure["metric"]: (figure["value"], figure["low"], figure["high"]) for figure in content["metrics"]}
    without_interval = {
        "average_precision": average_precision_score(is_positive, score),
        "g_mean": np.sqrt((np.diag(matrix) / matrix.sum(axis=1)).prod()),
        "brier": brier_score_loss(is_positive, score),
        "log_loss": log_loss(is_positive, score),
    }
    top = metrics_at_k(is_positive, score, 0.01)
    expected = {
        "roc_auc": auc_confidence_interval(is_positive, score),
        **{name: (value, None, None) for name, value in without_interval.items()},
        **{f"{name}_at_0.01": getattr(top, name) for name in ("precision", "recall", "lift")},
    }
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name] == pytest.approx(tuple(values)), name
    assert content["confusion_matrix"] == matrix.tolist()
    assert content["threshold"] == model.threshold_
    assert content["n_samples"] == 250
    auc, low, high = found["roc_auc"]
    of_top = ("precision at 1 %", "recall at 1 %", "lift at 1 %")
    for text in (f"{auc:.4f}", f"{low:.4f} to {high:.4f}", "positive class: yes; 250 rows", "G-mean", *of_top):
        assert text in result.stderr


def test_a_stack_is_evaluated_at_its_threshold(files, stack):
    result = succeed("evaluate", stack.path, files.test_csv, "--target", "label", "--json", "-")
    model, rows, content = aucforest.load(stack.path), mixed(250, 1), json.loads(result.stdout)
    score = model.predict_proba(frame_of(rows))[:, 1]
    assert content["metrics"][0]["value"] == pytest.approx(roc_auc_score(rows["label"] == "yes", score))
    assert content["threshold"] == model.threshold_
    assert sum(content["confusion_matrix"][1]) == (rows["label"] == "yes").sum()
    assert "(the threshold of the model)" in result.stderr
    result = run("evaluate", stack.path, files.train_csv, "--target", "label")
    known = f"so that all metrics are too good: the ROC AUC of out-of-bag rows is {model.oob_score_:.4f}"
    assert f"these are the rows that the model was trained on, {known}" in result.stderr


def test_alerts_are_a_number_or_a_proportion(files):
    arguments = ["evaluate", files.model_aucforest, files.test_csv, "--target", "label", "--alerts"]
    by_number, by_proportion = (read_json(*arguments, k)["metrics"][5:] for k in ("50", "0.2"))
    assert [figure["metric"] for figure in by_number] == ["precision_at_50", "recall_at_50", "lift_at_50"]
    for one, other in zip(by_number, by_proportion, strict=True):
        assert one["value"] == pytest.approx(other["value"])
        assert one["low"] < one["value"] < one["high"]
    for k in ("0", "1.5", "-1", "many"):
        check_usage(run(*arguments, k), "must be a proportion of the rows, such as 0.01, or a number from 1 on")
    check_refusal(run(*arguments, "251"), "--alerts 251 is more than the 250 rows of test.csv")
    weighted = run(*arguments, "300", "--weight", "weight")
    total = f"{mixed(250, 1)['weight'].sum():g}"
    check_refusal(weighted, f"--alerts 300 is more than {total}, the weight of the 250 rows of test.csv")


def test_weights_and_a_label_against_the_others(tmp_path):
    rows = mixed(150, 2).assign(label=np.tile([1, 2, 3], 50))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["--target", "label", "--positive", "3"]
    succeed("fit", tmp_path / "rows.csv", *arguments, "--drop", "id,weight", "--out", tmp_path / "m", "--trees", 10)
    content = read_json("evaluate", tmp_path / "m", tmp_path / "rows.csv", *arguments, "--weight", "weight")
    model = aucforest.load(tmp_path / "m")
    # scikit-learn takes classes to be sorted
    assert model.classes_.tolist() == ["3", "not 3"]
    score = model.predict_proba(frame_of(rows))[:, 0]
    expected = auc_confidence_interval(rows["label"] == 3, score, sample_weight=rows["weight"])
    auc = content["metrics"][0]
    assert (auc["value"], auc["low"], auc["high"]) == pytest.approx(expected)
    rows.to_parquet(tmp_path / "rows.parquet")
    for kind in ("csv", "parquet"):
        # the model knows its positive label
        without = run("evaluate", tmp_path / "m", tmp_path / f"rows.{kind}", "--target", "label", "--weight", "weight")
        assert f"{auc['value']:.4f}" in without.output, without.output
        assert "positive class: 3; 150 rows" in without.output


def test_a_model_of_booleans_takes_a_positive_label(tmp_path):
    rows = mixed(150, 2).drop(columns=["id", "weight"])
    forest = aucforest.AUCForestClassifier(10, random_state=0).fit(frame_of(mixed(150, 2)), rows["label"] == "yes")
    forest.save(tmp_path / "m")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["evaluate", tmp_path / "m", tmp_path / "rows.csv", "--target", "label"]
    advice = "; if the model was fitted with a positive label, pass --positive"
    check_refusal(run(*arguments), "column 'label' has the value 'no', which is not a boolean" + advice)
    succeed(*arguments, "--positive", "yes")


@pytest.mark.parametrize(
    ("text", "rule", "shown"),
    [
        (None, "prevalence", "(prevalence)\n"),
        ("0.3", 0.3, "at least 0.3\n"),
        ("argmax", None, "the most probable class\n"),
        ("recall=0.8", {"recall": 0.8}, "(recall=0.8, chosen on these rows)\n"),
        (
            "alerts=20,cost=1:10",
            {"alerts": 20, "cost": [[0, 1], [10, 0]]},
            "(alerts=20,cost=1:10, chosen on these rows)\n",
        ),
    ],
)
def test_a_rule_chooses_the_threshold_on_the_rows(files, tmp_path, text, rule, shown):
    """By default prevalence where the model has no threshold."""
    model, X, y = forest(mixed(300, 0)), frame_of(mixed(250, 1)), mixed(250, 1)["label"].to_numpy(str)
    model.save(tmp_path / "m")
    options = [] if text is None else ["--threshold", text]
    result = succeed("evaluate", tmp_path / "m", files.test_csv, "--target", "label", *options, "--json", "-")
    assert shown in result.stderr
    model.set_threshold(rule, X, y, oob=False)
    content = json.loads(result.stdout)
    assert content["threshold"] == model.threshold_
    assert content["confusion_matrix"] == confusion_matrix(y, model.predict(X)).tolist()


def test_rates_by_columns_that_need_not_be_features(files, tmp_path):
    rows = mixed(250, 1)
    rows["region"] = np.array(["north", "south", "south", None], dtype=object)[np.arange(250) % 4]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    arguments = [files.model_aucforest, tmp_path / "rows.csv", "--target", "label", "--weight", "weight"]
    result = succeed("evaluate", *arguments, "--by", "region,colour", "--json", tmp_path / "e.json")
    model, X = aucforest.load(files.model_aucforest), frame_of(rows)
    y, region = rows["label"].to_numpy(str), rows["region"].fillna("missing").to_numpy(str)
    proba = model.predict_proba(X)[:, 1]
    expected = group_rates(y, model.predict(X), region, y_proba=proba, sample_weight=rows["weight"])
    groups = json.loads((tmp_path / "e.json").read_text())["groups"]
    assert list(groups) == ["region", "colour"]
    assert groups["region"]["reference"] == expected.reference == "south"
    found = {(rate["group"], rate["metric"]): rate for rate in groups["region"]["rates"]}
    assert len(found) == len(expected.rates) == 12
    for rate in expected.rates:
        assert found[rate.group, rate.metric] == pytest.approx(rate._asdict())
    said = " ".join(result.stdout.split())
    assert expected.verdict() in said
    assert "by region, with 95 % intervals" in said
    narrow = run("evaluate", *arguments, "--by", "region", columns=80).stdout
    assert re.search(r"\bregion +rows +positive +rate +recall +rate +calibration\b", narrow), narrow
    check_refusal(run("evaluate", *arguments, "--by", "place"), "no column 'place'")
    check_usage(run("evaluate", *arguments, "--by", "region,label"), "--by: cannot be the target, 'label'")


def test_more_classes_have_no_interval(tmp_path):
    rows, model = mixed(150, 2).assign(label=np.tile([1.0, 2.0, 3.0], 50)), tmp_path / "m"
    rows.to_csv(tmp_path / "rows.csv", index=False)
    arguments = [tmp_path / "rows.csv", "--target", "label"]
    content = read_json("fit", *arguments, "--drop", "id", "--out", model, "--trees", 30)
    result = succeed("evaluate", model, *arguments, "--json", tmp_path / "f.json")
    forest, X = aucforest.load(model), frame_of(rows).assign(weight=rows["weight"])
    assert forest.classes_.tolist() == [1, 2, 3]
    auc = json.loads((tmp_path / "f.json").read_text())["metrics"][0]
    auc_of_fit = content["metrics"]["out of bag"][0]
    assert (auc["value"], auc["low"]) == (hand_till_score(rows["label"], forest.predict_proba(X)), None)
    assert (auc_of_fit["value"], auc_of_fit["low"]) == (forest.oob_score_, None)
    assert "positive" not in result.stdout
    check_refusal(run("evaluate", model, *arguments, "--by", "colour"), "--by is for two classes, but the model has 3")


def test_labels_in_another_spelling_are_those_of_the_fit(files, tmp_path):
    rows, other = pd.read_csv(files.test_csv), tmp_path / "t.csv"
    rows.assign(label=rows["label"].map({"no": " No", "yes": "YES"})).to_csv(other, index=False)
    arguments = ["--target", "label", "--json"]
    succeed("evaluate", files.model_aucforest, files.test_csv, *arguments, tmp_path / "a.json")
    result = succeed("evaluate", files.model_aucforest, other, *arguments, tmp_path / "b.json")
    for label, known in ((" No", "no"), ("YES", "yes")):
        assert f"column 'label': the label {label!r} is read as {known!r}, as it is spelled in fit\n" in result.stderr
    expected, found = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json"))
    assert found["metrics"] == expected["metrics"]


def test_labels_that_fit_two_classes_are_refused(tmp_path):
    rows = pd.DataFrame({"x": np.arange(60.0), "label": ["a", "A", "b"] * 20})
    rows.to_csv(tmp_path / "t.csv", index=False)
    succeed("fit", tmp_path / "t.csv", "--target", "label", "--trees", 3, "--out", tmp_path / "m")
    rows.assign(label=rows["label"].replace("b", "B")).to_csv(tmp_path / "t.csv", index=False)
    result = run("evaluate", tmp_path / "m", tmp_path / "t.csv", "--target", "label")
    check_refusal(result, "has the label 'B', but the classes of the model are 'A', 'a', 'b'")


def test_wrong_labels_and_columns_are_refused_in_one_line(files, tmp_path):
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
        "maybe": "line 6: column 'label' has the label 'maybe', but the classes of the model are 'no', 'yes'",
        "gaps": "column 'label' has 3 missing labels, the first in gaps.csv, line 2",
        "one": "column 'label' has only one class, 'no'",
        "none": "none.csv has a header, but no rows",
        "lacking": "lacks feature columns seen in fit: 'flag'",
    }
    for name, sentence in sentences.items():
        check_refusal(run("evaluate", files.model_aucforest, tmp_path / f"{name}.csv", "--target", "label"), sentence)
    arguments = [files.model_aucforest, files.test_csv, "--target"]
    check_refusal(run("evaluate", *arguments, "lable"), "no column 'lable'; did you mean 'label'?")
    succeed("evaluate", *arguments, "label", "--positive", "yes")
    sentence = "--positive must be the model's, but is 'no'; its classes are 'no', 'yes'"
    check_refusal(run("evaluate", *arguments, "label", "--positive", "no"), sentence)
    check_refusal(run("evaluate", *arguments, "label", "--json", files.test_csv), "would be overwritten")

"""`aucforest evaluate`: the metrics, at the threshold of the model."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss

import aucforest
from aucforest import metrics
from tests.cli.data import check_refusal, check_usage, frame_of, json_of, mixed, read_json, run, succeed
from tests.cli.test_fit import forest

EVALUATE = "evaluate model.aucforest test.csv --target label"


def test_the_figures_are_those_of_the_metrics(files):
    result = succeed(f"{EVALUATE} --json -")
    content, model, rows = json.loads(result.stdout), aucforest.load("model.aucforest"), mixed(250, 1)
    is_positive, X = (rows["label"] == "yes").to_numpy(), frame_of(rows)
    score, matrix = model.predict_proba(X)[:, 1], confusion_matrix(rows["label"], model.predict(X))
    found = {figure["metric"]: (figure["value"], figure["low"], figure["high"]) for figure in content["metrics"]}
    top = metrics.metrics_at_k(is_positive, score, 0.01)
    expected = {
        "roc_auc": metrics.auc_confidence_interval(is_positive, score),
        "average_precision": (metrics.average_precision_score(is_positive, score), None, None),
        "g_mean": (np.sqrt((np.diag(matrix) / matrix.sum(axis=1)).prod()), None, None),
        "brier": (brier_score_loss(is_positive, score), None, None),
        "log_loss": (log_loss(is_positive, score), None, None),
        **{f"{name}_at_0.01": getattr(top, name) for name in ("precision", "recall", "lift")},
    }
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name] == pytest.approx(tuple(values)), name
    assert content["confusion_matrix"] == matrix.tolist()
    assert (content["threshold"], content["n_samples"]) == (model.threshold_, 250)
    at_threshold = "{alerts:g} rows are predicted positive: precision {precision:.3f}, recall {recall:.3f}\n"
    assert at_threshold.format(**content["at_threshold"]) in result.stderr
    auc, low, high = found["roc_auc"]
    of_top = ("precision at 1 %", "recall at 1 %", "lift at 1 %")
    for text in (f"{auc:.4f}", f"{low:.4f} to {high:.4f}", "positive class: yes; 250 rows", "G-mean", *of_top):
        assert text in result.stderr


def test_a_stack_is_evaluated_at_its_threshold(stack):
    result = succeed("evaluate stack.aucforest test.csv --target label --json -")
    model, rows, content = aucforest.load("stack.aucforest"), mixed(250, 1), json.loads(result.stdout)
    score = model.predict_proba(frame_of(rows))[:, 1]
    assert content["metrics"][0]["value"] == pytest.approx(metrics.roc_auc_score(rows["label"] == "yes", score))
    assert content["threshold"] == model.threshold_
    assert sum(content["confusion_matrix"][1]) == (rows["label"] == "yes").sum()
    assert "(the threshold of the model)" in result.stderr
    known = f"so that all metrics are too good: the ROC AUC of out-of-bag rows is {model.oob_score_:.4f}"
    said = run("evaluate stack.aucforest train.csv --target label").stderr
    assert f"these are the rows that the model was trained on, {known}" in said


def test_alerts_are_a_number_or_a_proportion(files):
    by_number, by_proportion = (read_json(f"{EVALUATE} --alerts {k}")["metrics"][5:] for k in ("50", "0.2"))
    assert [figure["metric"] for figure in by_number] == ["precision_at_50", "recall_at_50", "lift_at_50"]
    for one, other in zip(by_number, by_proportion, strict=True):
        assert one["value"] == pytest.approx(other["value"])
        assert one["low"] < one["value"] < one["high"]
    for k in ("0", "many"):
        check_usage(run(f"{EVALUATE} --alerts {k}"), "must be a proportion of the rows, such as 0.01, or a number from")
    check_refusal(run(f"{EVALUATE} --alerts 251"), "--alerts 251 is more than the 250 rows of test.csv")
    total = f"{mixed(250, 1)['weight'].sum():g}"
    sentence = f"--alerts 300 is more than {total}, the weight of the 250 rows of test.csv"
    check_refusal(run(f"{EVALUATE} --alerts 300 --weight weight"), sentence)


def test_weights_and_a_label_against_the_others():
    rows = mixed(150, 2).assign(label=np.tile([1, 2, 3], 50))
    rows.to_csv("rows.csv", index=False)
    rows.to_parquet("rows.parquet")
    succeed("fit rows.csv --target label --positive 3 --drop id,weight --out m --trees 10")
    auc = read_json("evaluate m rows.csv --target label --positive 3 --weight weight")["metrics"][0]
    model = aucforest.load("m")
    # scikit-learn needs sorted classes.
    assert model.classes_.tolist() == ["3", "not 3"]
    score = model.predict_proba(frame_of(rows))[:, 0]
    expected = metrics.auc_confidence_interval(rows["label"] == 3, score, sample_weight=rows["weight"])
    assert (auc["value"], auc["low"], auc["high"]) == pytest.approx(expected)
    for kind in ("csv", "parquet"):  # the model knows its positive label
        without = run(f"evaluate m rows.{kind} --target label --weight weight").output
        assert f"{auc['value']:.4f}" in without, without
        assert "positive class: 3; 150 rows" in without


def test_a_model_of_booleans_takes_a_positive_label():
    rows = mixed(150, 2)
    aucforest.AUCForestClassifier(10, random_state=0).fit(frame_of(rows), rows["label"] == "yes").save("m")
    rows.to_csv("rows.csv", index=False)
    advice = "; if the model was fitted with a positive label, pass --positive"
    sentence = "column 'label' has the value 'no', which is not a boolean" + advice
    check_refusal(run("evaluate m rows.csv --target label"), sentence)
    succeed("evaluate m rows.csv --target label --positive yes")
    rows.assign(label=rows["label"] == "yes").to_parquet("rows.parquet")
    succeed("fit rows.parquet --target label --positive True --out m --trees 2")
    assert "positive class: true; " in succeed("evaluate m rows.parquet --target label --positive TRUE").stdout


@pytest.mark.parametrize(("text", "rule", "shown"), [
    (None, "prevalence", "(prevalence)\n"),  # the default, if the model has no threshold
    ("0.3", 0.3, "at least 0.3\n"),
    ("argmax", None, "the most probable class\n"),
    ("recall=0.8", {"recall": 0.8}, "(recall=0.8, chosen on these rows)\n"),
    ("alerts=20,cost=1:10", {"alerts": 20, "cost": [[0, 1], [10, 0]]}, "cost=1:10, chosen on these rows)\n"),
])  # fmt: skip
def test_a_rule_chooses_the_threshold_on_the_rows(files, text, rule, shown):
    model, X, y = forest(mixed(300, 0)), frame_of(mixed(250, 1)), mixed(250, 1)["label"].to_numpy(str)
    model.save("m")
    result = succeed(f"evaluate m test.csv --target label {'' if text is None else f'--threshold {text}'} --json -")
    assert shown in result.stderr
    model.set_threshold(rule, X, y, oob=False)
    content = json.loads(result.stdout)
    assert content["threshold"] == model.threshold_
    assert content["confusion_matrix"] == confusion_matrix(y, model.predict(X)).tolist()


def test_rates_by_columns_that_need_not_be_features(files):
    rows = mixed(250, 1)
    rows["region"] = np.array(["north", "south", "south", None], dtype=object)[np.arange(250) % 4]
    rows.to_csv("test.csv", index=False)
    result = succeed(f"{EVALUATE} --weight weight --by region,colour --json e.json")
    model, X = aucforest.load("model.aucforest"), frame_of(rows)
    y, region = rows["label"].to_numpy(str), rows["region"].fillna("missing").to_numpy(str)
    proba = model.predict_proba(X)[:, 1]
    expected = metrics.group_rates(y, model.predict(X), region, y_proba=proba, sample_weight=rows["weight"])
    groups = json_of("e.json")["groups"]
    assert list(groups) == ["region", "colour"]
    assert groups["region"]["reference"] == expected.reference == "south"
    found = {(rate["group"], rate["metric"]): rate for rate in groups["region"]["rates"]}
    assert len(found) == len(expected.rates) == 12
    for rate in expected.rates:
        assert found[rate.group, rate.metric] == pytest.approx(rate._asdict())
    said = " ".join(result.stdout.split())
    assert expected.verdict() in said
    assert "by region, with 95 % intervals" in said
    narrow = run(f"{EVALUATE} --by region", columns=80).stdout
    assert re.search(r"\bregion +rows +positive +rate +recall +rate +calibration\b", narrow), narrow
    check_refusal(run(f"{EVALUATE} --by place"), "no column 'place'")
    check_usage(run(f"{EVALUATE} --by region,label"), "--by: cannot be the target, 'label'")


def test_more_classes_have_no_interval():
    rows = mixed(150, 2).assign(label=np.tile([1.0, 2.0, 3.0], 50))
    rows.to_csv("rows.csv", index=False)
    of_fit = read_json("fit rows.csv --target label --drop id --out m --trees 30")["metrics"]["out of bag"][0]
    result = succeed("evaluate m rows.csv --target label --json f.json")
    forest, X = aucforest.load("m"), frame_of(rows).assign(weight=rows["weight"])
    assert forest.classes_.tolist() == [1, 2, 3]
    auc = json_of("f.json")["metrics"][0]
    assert (auc["value"], auc["low"]) == (metrics.hand_till_score(rows["label"], forest.predict_proba(X)), None)
    assert (of_fit["value"], of_fit["low"]) == (forest.oob_score_, None)
    assert "positive" not in result.stdout
    assert "at_threshold" not in json_of("f.json")
    sentence = "--by is for two classes, but the model has 3"
    check_refusal(run("evaluate m rows.csv --target label --by colour"), sentence)


def test_labels_in_another_spelling_are_those_of_the_fit(files):
    succeed(f"{EVALUATE} --json a.json")
    pd.read_csv("test.csv").replace({"label": {"no": " No", "yes": "YES"}}).to_csv("test.csv", index=False)
    result = succeed(f"{EVALUATE} --json b.json")
    for label, known in ((" No", "no"), ("YES", "yes")):
        assert f"column 'label': the label {label!r} is read as {known!r}, as it is spelled in fit\n" in result.stderr
    assert json_of("a.json")["metrics"] == json_of("b.json")["metrics"]


def test_labels_that_fit_two_classes_are_refused():
    rows = pd.DataFrame({"x": np.arange(60.0), "label": ["a", "A", "b"] * 20})
    rows.to_csv("t.csv", index=False)
    succeed("fit t.csv --target label --trees 3 --out m")
    rows.replace({"label": {"b": "B"}}).to_csv("t.csv", index=False)
    sentence = "has the label 'B', but the classes of the model are 'A', 'a', 'b'"
    check_refusal(run("evaluate m t.csv --target label"), sentence)
    check_refusal(run("evaluate m t.csv --target label --positive a"), "--positive is for models of two classes")


def test_wrong_labels_and_columns_are_refused_in_one_line(files):
    rows = pd.read_csv("test.csv")
    succeed(f"{EVALUATE} --positive yes")
    for options, sentence in (
        ("--positive no", "--positive must be the model's positive label, but is 'no'; its classes are 'no', 'yes'"),
        ("--json test.csv", "would be overwritten"),
    ):
        check_refusal(run(f"{EVALUATE} {options}"), sentence)
    classes = "but the classes of the model are 'no', 'yes'"
    for content, sentence in (
        (rows.replace({"label": {"yes": "maybe"}}), f"column 'label' has the label 'maybe', {classes}"),
        (rows.assign(label=rows["label"].where(rows.index > 2)), "3 missing labels, the first in test.csv, line 2"),
        (rows.assign(label="no"), "column 'label' has only one class, 'no'"),
        (rows[:0], "test.csv has a header, but no rows"),
    ):
        content.to_csv("test.csv", index=False)
        check_refusal(run(EVALUATE), sentence)

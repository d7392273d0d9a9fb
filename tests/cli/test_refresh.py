"""``aucforest refresh``."""

import json

import numpy as np
import pandas as pd
import pytest

import aucforest
from tests.cli.data import check_refusal, check_usage, mixed, read_json, run, succeed


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model, and a table of rows that it has not seen."""
    folder = tmp_path_factory.mktemp("refresh")
    mixed(200).to_csv(folder / "old.csv", index=False)
    rows = mixed(300, 1)
    rows.loc[:99, "colour"] = "new"
    rows.to_csv(folder / "new.csv", index=False)
    succeed("fit", folder / "old.csv", "--target", "label", "--out", folder / "old", "--trees", 20, "--drop", "id")
    return folder


@pytest.mark.parametrize("weight", [[], ["--weight", "weight"]], ids=["alike", "weighted"])
def test_a_model_is_refreshed(files, tmp_path, weight):
    out, content = tmp_path / "new", tmp_path / "refresh.json"
    call = ["refresh", files / "old", files / "new.csv", "--target", "label", "--out", out, "--json", content]
    result = succeed(*call, *weight)
    assert "than the old one on the new rows: ROC AUC out of bag" in " ".join(result.stdout.split())
    assert "has not seen" not in result.stderr  # the refreshed model knows the new category
    told, model = json.loads(content.read_text()), aucforest.load(out)
    assert f"labels: yes where its probability is at least {model.threshold_:.4g}" in result.stdout
    assert told["threshold"] == model.threshold_
    assert told["old_weight"] == told["members"]["old"] == model.weights_[0]
    assert told["roc_auc"]["low"] < told["roc_auc"]["new"] - told["roc_auc"]["old"] < told["roc_auc"]["high"]
    assert "new" in model.categories_[1]
    assert not hasattr(model, "oob_decision_function_")
    assert model.members_["old"].n_jobs is None
    both = pd.concat((mixed(200), mixed(300, 1).assign(colour="new"))).iloc[[0, 1, -1]]
    both.assign(colour=["green, dark", "other", "new"]).to_csv(tmp_path / "both.csv", index=False)
    predicted = succeed("predict", out, tmp_path / "both.csv", "--out", tmp_path / "p.csv")
    assert "1 of 3 rows (33 %) have a category that training has not seen ('other')" in predicted.stderr
    succeed("evaluate", out, files / "new.csv", "--target", "label")


def test_groups_are_those_of_a_column(files, tmp_path):
    rows = mixed(300, 1).assign(customer=[f"c{row // 3}" for row in range(300)])
    rows.to_csv(tmp_path / "new.csv", index=False)
    call = ["refresh", files / "old", tmp_path / "new.csv", "--target", "label", "--out", tmp_path / "new"]
    content = read_json(*call, "--groups", "customer")
    X = rows.drop(columns=["id", "label", "customer"])
    X = X.astype({"colour": "category", "width": float, "count": float})
    expected = aucforest.refresh(aucforest.load(files / "old"), X, rows["label"], groups=rows["customer"])
    assert content["roc_auc"] == expected.roc_auc._asdict()
    assert content["roc_auc"] != read_json(*call)["roc_auc"]
    rows["customer"] = rows["customer"].where(rows.index != 7)
    rows.to_csv(tmp_path / "new.csv", index=False)
    check_refusal(run(*call, "--groups", "customer"), "'customer' has no value: every row needs a group")


def test_the_reference_is_that_of_the_refreshed_model(files, tmp_path):
    out, reference = tmp_path / "new", tmp_path / "reference.csv"
    call = ["refresh", files / "old", files / "new.csv", "--target", "label", "--out", out]
    assert f"reference: {reference}" in succeed(*call, "--reference", reference).stderr
    rows, model = pd.read_csv(reference), aucforest.load(out)
    assert rows.columns.tolist() == ["label", "prediction", "probability_no", "probability_yes"]
    assert rows["label"].tolist() == mixed(300, 1)["label"].tolist()
    at_threshold = np.where(rows["probability_yes"] >= model.threshold_, "yes", "no")
    assert rows["prediction"].tolist() == at_threshold.tolist()
    (tmp_path / "x.csv").write_text((files / "new.csv").read_text().replace("label", "prediction"))
    call = ["refresh", files / "old", tmp_path / "x.csv", "--target", "prediction", "--out", out]
    check_refusal(run(*call, "--reference", reference), "would have two columns named 'prediction'")


def test_rows_of_the_old_model_in_another_order_are_noted(files, tmp_path):
    mixed(200).sample(frac=1, random_state=0).to_csv(tmp_path / "shuffled.csv", index=False)
    arguments = [tmp_path / "shuffled.csv", "--target", "label", "--out", tmp_path / "new"]
    result = succeed("refresh", files / "old", *arguments)
    assert "Check that the model was not trained on these rows." in result.stderr


def test_three_classes_and_a_fixed_threshold(files, tmp_path):
    three = mixed(300, 1).assign(label=lambda rows: np.where(rows["weight"] > 1.2, "perhaps", rows["label"]))
    for name, rows in {"a": three[:150], "b": three[150:]}.items():
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    out, options = tmp_path / "three", ["--target", "label", "--out"]
    succeed("fit", tmp_path / "a.csv", *options, out, "--trees", 20, "--drop", "id,weight")
    said = succeed("refresh", out, tmp_path / "b.csv", *options, tmp_path / "new").stdout
    assert "labels: by the rule of the old model\n" in said
    fixed = ["--trees", 20, "--drop", "id", "--threshold", 0.3]
    succeed("fit", files / "old.csv", *options, tmp_path / "fixed", *fixed)
    said = succeed("refresh", tmp_path / "fixed", files / "new.csv", *options, tmp_path / "new").stdout
    assert "labels: yes where its probability is at least 0.3\n" in said


def test_one_column_may_have_several_roles(files, tmp_path):
    call = ["refresh", files / "old", files / "new.csv", "--target", "label", "--out", tmp_path / "new"]
    succeed(*call, "--weight", "weight", "--groups", "weight")


def test_known_rows_few_rows_and_wrong_outputs_are_refused(files, tmp_path):
    few = tmp_path / "few.csv"
    mixed(12, 3).to_csv(few, index=False)
    for data, out, sentence in (
        (files / "old.csv", tmp_path / "new", "pass new ones"),
        (few, tmp_path / "new", "but a refresh needs 10 of every class"),
        (files / "new.csv", files / "old", "overwritten"),
    ):
        check_refusal(run("refresh", files / "old", data, "--target", "label", "--out", out), sentence)
    check_usage(run("refresh", files / "old", files / "new.csv", "--target", "label", "--out", "-"), "must be a file")
    assert list(tmp_path.iterdir()) == [few]


def test_the_prevalence_is_that_of_the_option(files, tmp_path):
    """In predictions, in metrics, and in exports, whose --check compares with it."""
    model, proba, data = aucforest.load(files / "old"), [], [files / "old", files / "new.csv"]
    for options in ([], ["--prevalence", "0.02"]):
        succeed("predict", *data, "--proba", "--out", tmp_path / "p.csv", *options)
        proba.append(pd.read_csv(tmp_path / "p.csv")["probability_yes"])
    before, after = proba
    ratio = 0.02 / 0.98 * (1 - model.class_prior_[1]) / model.class_prior_[1]
    np.testing.assert_allclose(after / (1 - after), ratio * before / (1 - before), rtol=1e-6)
    content = read_json("evaluate", *data, "--target", "label", "--prevalence", 0.02)
    metrics = {metric["metric"]: metric["value"] for metric in content["metrics"]}
    is_positive = mixed(300, 1)["label"] == "yes"
    assert metrics["brier"] == pytest.approx(np.mean((after - is_positive) ** 2))
    onnx = ["--onnx", tmp_path / "m.onnx", "--check", files / "new.csv", "--prevalence", 0.02]
    succeed("export", files / "old", *onnx)
    check_refusal(run("predict", *data, "--prevalence", "2"), "must be a number between 0 and 1")

"""`aucforest refresh`: the model, the reference, the output and the errors. Also `--prevalence` of other commands."""

from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import aucforest
from tests.cli.data import check_refusal, check_usage, json_of, mixed, read_json, run, succeed

REFRESH = "refresh old new.csv --target label --out new"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder, rows = tmp_path_factory.mktemp("refresh"), mixed(300, 1)
    rows.loc[:99, "colour"] = "new"
    with chdir(folder):
        mixed(200).to_csv("old.csv", index=False)
        rows.to_csv("new.csv", index=False)
        return folder, succeed("fit old.csv --target label --out old --trees 20 --drop id")


@pytest.mark.parametrize("weight", ["", "--weight weight"], ids=["alike", "weighted"])
def test_a_model_is_refreshed(files, weight):
    result = succeed(f"{REFRESH} --json refresh.json {weight}")
    assert "than the old one on the new rows: ROC AUC out of bag" in " ".join(result.stdout.split())
    assert "has not seen" not in result.stderr  # the refreshed model knows the new category
    told, model = json_of("refresh.json"), aucforest.load("new")
    assert f"labels: yes where its probability is at least {model.threshold_:.4g}" in result.stdout
    assert told["threshold"] == model.threshold_
    assert told["old_weight"] == told["members"]["old"] == model.weights_[0]
    assert told["roc_auc"]["low"] < told["roc_auc"]["new"] - told["roc_auc"]["old"] < told["roc_auc"]["high"]
    assert "new" in model.categories_[1]
    assert not hasattr(model, "oob_decision_function_")
    assert model.members_["old"].n_jobs is None
    mixed(3).assign(colour=["green, dark", "other", "new"]).to_csv("both.csv", index=False)
    said = succeed("predict new both.csv --out p.csv").stderr
    assert "1 of 3 rows (33 %) have a category that training has not seen ('other')" in said
    succeed("evaluate new new.csv --target label")


def test_groups_are_those_of_a_column(files):
    rows = mixed(300, 1).assign(customer=[f"c{row // 3}" for row in range(300)])
    rows.to_csv("new.csv", index=False)
    found = read_json(f"{REFRESH} --groups customer")["roc_auc"]
    X = rows.drop(columns=["id", "label", "customer"])
    X = X.astype({"colour": "category", "width": float, "count": float})
    expected = aucforest.refresh(aucforest.load("old"), X, rows["label"], groups=rows["customer"])
    assert found == expected.roc_auc._asdict() != read_json(REFRESH)["roc_auc"]
    succeed(f"{REFRESH} --weight weight --groups weight")  # one column may have several roles


def test_the_reference_is_that_of_the_refreshed_model(files):
    assert "reference: reference.csv" in succeed(f"{REFRESH} --reference reference.csv").stderr
    rows, model = pd.read_csv("reference.csv"), aucforest.load("new")
    assert rows.columns.tolist() == ["label", "prediction", "probability_no", "probability_yes"]
    assert rows["label"].tolist() == mixed(300, 1)["label"].tolist()
    at_threshold = np.where(rows["probability_yes"] >= model.threshold_, "yes", "no")
    assert rows["prediction"].tolist() == at_threshold.tolist()
    Path("new.csv").write_text(Path("new.csv").read_text().replace("label", "prediction"))
    refused = run(f"{REFRESH} --target prediction --reference reference.csv")
    check_refusal(refused, "would have two columns named 'prediction'")


def test_rows_of_the_old_model_in_another_order_are_noted(files):
    mixed(200).sample(frac=1, random_state=0).to_csv("new.csv", index=False)
    assert "Check that the model was not trained on these rows." in succeed(REFRESH).stderr


def test_three_classes_and_a_fixed_threshold(files):
    three = mixed(300, 1).assign(label=lambda rows: np.where(rows["weight"] > 1.2, "perhaps", rows["label"]))
    three[:150].to_csv("a.csv", index=False)
    three[150:].to_csv("b.csv", index=False)
    for table, options, new, said in (
        ("a.csv", "--drop id,weight", "b.csv", "by the rule of the old model"),
        ("old.csv", "--drop id --threshold 0.3", "new.csv", "yes where its probability is at least 0.3"),
    ):
        succeed(f"fit {table} --target label --out old --trees 20 {options}")
        assert f"labels: {said}\n" in succeed(f"refresh old {new} --target label --out new").stdout


def test_known_rows_and_wrong_outputs_are_refused(files):
    check_refusal(run("refresh old old.csv --target label --out new"), "pass new ones")
    check_refusal(run(f"{REFRESH} --out old"), "overwritten")
    check_usage(run(f"{REFRESH} --out -"), "must be a file")
    assert not Path("new").exists()


def test_the_prevalence_is_that_of_the_option(files):
    prior, odds = aucforest.load("old").class_prior_[1], []
    for option in ("", "--prevalence 0.02"):
        succeed(f"predict old new.csv --proba --out p.csv {option}")
        proba = pd.read_csv("p.csv")["probability_yes"]
        odds.append(proba / (1 - proba))
    np.testing.assert_allclose(odds[1], 0.02 / 0.98 * (1 - prior) / prior * odds[0], rtol=1e-6)
    metrics = read_json("evaluate old new.csv --target label --prevalence 0.02")["metrics"]
    (brier,) = (metric["value"] for metric in metrics if metric["metric"] == "brier")
    assert brier == pytest.approx(np.mean((proba - (mixed(300, 1)["label"] == "yes")) ** 2))
    succeed("export old --onnx m.onnx --check new.csv --prevalence 0.02")
    check_refusal(run("predict old new.csv --prevalence 2"), "must be a number between 0 and 1")
    succeed("fit old.csv --target label --out old --trees 5 --drop id --threshold f1")
    said = succeed("evaluate old new.csv --target label --prevalence 0.02").output
    assert 0 <= said.find("Note: threshold='f1' was tuned for other class frequencies") < said.find("ROC AUC")

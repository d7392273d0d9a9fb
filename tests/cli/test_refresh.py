"""``aucforest refresh``."""

import json

import numpy as np
import pytest

import aucforest
from tests.cli.data import check_refusal, check_usage, mixed, run, succeed


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
    assert "category that training has not seen ('new')" in result.stderr
    told, model = json.loads(content.read_text()), aucforest.load(out)
    assert told["old_weight"] == told["members"]["old"] == model.weights_[0]
    assert told["roc_auc"]["low"] < told["roc_auc"]["new"] - told["roc_auc"]["old"] < told["roc_auc"]["high"]
    assert "new" in model.categories_[1]
    assert not hasattr(model, "oob_decision_function_")
    assert model.members_["old"].n_jobs is None
    succeed("predict", out, files / "new.csv", "--out", tmp_path / "p.csv")
    succeed("evaluate", out, files / "new.csv", "--target", "label")


def test_groups_are_those_of_a_column(files, tmp_path):
    rows = mixed(300, 1).assign(customer=[f"c{row // 3}" for row in range(300)])
    rows.to_csv(tmp_path / "new.csv", index=False)
    call = [
        "refresh",
        files / "old",
        tmp_path / "new.csv",
        "--target",
        "label",
        "--out",
        tmp_path / "new",
        "--json",
        "-",
    ]
    content = json.loads(succeed(*call, "--groups", "customer").stdout)
    X = rows.drop(columns=["id", "label", "customer"])
    X = X.astype({"colour": "category", "width": float, "count": float})
    expected = aucforest.refresh(aucforest.load(files / "old"), X, rows["label"], groups=rows["customer"])
    assert content["roc_auc"] == expected.roc_auc._asdict()
    assert content["roc_auc"] != json.loads(succeed(*call).stdout)["roc_auc"]
    rows["customer"] = rows["customer"].where(rows.index != 7)
    rows.to_csv(tmp_path / "new.csv", index=False)
    check_refusal(run(*call, "--groups", "customer"), "'customer' has no value: every row needs a group")


def test_refusals(files, tmp_path):
    call = ["--target", "label", "--out", tmp_path / "new"]
    check_refusal(run("refresh", files / "old", files / "old.csv", *call), "pass new ones")
    few = mixed(12, 3)
    few.to_csv(tmp_path / "few.csv", index=False)
    check_refusal(run("refresh", files / "old", tmp_path / "few.csv", *call), "but a refresh needs 10 of every class")
    check_usage(run("refresh", files / "old", files / "new.csv", "--target", "label", "--out", "-"), "must be a file")
    check_refusal(
        run("refresh", files / "old", files / "new.csv", "--target", "label", "--out", files / "old"), "overwritten"
    )
    assert list(tmp_path.iterdir()) == [tmp_path / "few.csv"]


def test_the_prevalence_of_predictions(files, tmp_path):
    """Is that of the option; the same for exports, whose --check compares with it."""
    model, columns = aucforest.load(files / "old"), []
    for options in ([], ["--prevalence", "0.02"]):
        succeed("predict", files / "old", files / "new.csv", "--proba", "--out", tmp_path / "p.csv", *options)
        columns.append(np.genfromtxt(tmp_path / "p.csv", delimiter=",", names=True, usecols=("probability_yes",)))
    before, after = (column["probability_yes"] for column in columns)
    ratio = 0.02 / 0.98 * (1 - model.class_prior_[1]) / model.class_prior_[1]
    np.testing.assert_allclose(after / (1 - after), ratio * before / (1 - before), rtol=1e-6)
    told = succeed(
        "evaluate", files / "old", files / "new.csv", "--target", "label", "--prevalence", 0.02, "--json", "-"
    )
    metrics = {metric["metric"]: metric["value"] for metric in json.loads(told.stdout)["metrics"]}
    is_positive = mixed(300, 1)["label"] == "yes"
    assert metrics["brier"] == pytest.approx(np.mean((after - is_positive) ** 2))
    onnx = ["export", files / "old", "--onnx", tmp_path / "m.onnx", "--check", files / "new.csv", "--prevalence", 0.02]
    succeed(*onnx)
    check_refusal(
        run("predict", files / "old", files / "new.csv", "--prevalence", "2"), "must be a number between 0 and 1"
    )

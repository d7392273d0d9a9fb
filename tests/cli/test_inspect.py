"""`aucforest inspect`: the properties of a model as text and JSON, and the rules of a tree."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import aucforest
from aucforest.inspection import export_text, forest_summary
from tests.cli.data import check_refusal, check_usage, json_of, run, succeed
from tests.estimators.data import make_table, small_forest
from tests.memory import peak_below
from tests.tree.chains import make_chain


def test_the_facts_are_printed_with_the_kind_of_importance(files):
    words, model = " ".join(succeed("inspect model.aucforest").stdout.split()), aucforest.load("model.aucforest")
    intercepts = model.calibration_.intercepts
    for text in (
        """categorical: '1', 'blu"e', 'green, dark', 'red\'""",
        "['no', 'yes']",
        f"{model.threshold_:.4g}",
        f"intercepts=[{intercepts[0]:.4g}, {intercepts[1]:.4g}]",
        "; ".join(f"{', '.join(name)}={n}" for name, n in Counter(model.variants_).most_common(2)),
        "feature kind importance by impurity",
        "importance by impurity: the share of the gain of all splits on the training rows, which favours",
    ):
        assert text in words, text
    assert words.endswith('"aucforest report" with --train has the importance by permutation of out-of-bag rows')


def test_the_json_has_the_attributes_of_the_model(files):
    assert run("inspect model.aucforest --json a.json").stderr == "JSON: a.json\n"
    content, model = json_of("a.json"), aucforest.load("model.aucforest")
    trees, summary = content["trees"], forest_summary(model)
    assert (trees["number"], trees["max_depth"]) == (20, summary.max_depth.max())
    assert trees["mean_nodes"] == pytest.approx(summary.n_nodes.mean())
    assert content["parameters"]["threshold"] == "gmean"
    assert content["variants"] == Counter(map(", ".join, model.variants_))
    assert content["fitted_threshold"] == model.threshold_
    assert content["fitted_shrinkage"] == model.shrinkage_
    assert content["fitted_calibration"]["slope"] == model.calibration_.slope
    assert content["classes"] == ["no", "yes"]
    assert content["format_version"] >= 1
    assert "encodings" not in content
    assert content["file_bytes"] == Path("model.aucforest").stat().st_size
    assert [(feature["name"], feature["categories"]) for feature in content["features"]] == [
        ("width", None), ("colour", ["1", 'blu"e', "green, dark", "red"]), ("count", None), ("flag", [False, True]),
    ]  # fmt: skip
    importances = [feature["impurity_importance"] for feature in content["features"]]
    assert importances == pytest.approx(model.split_importances_.tolist())


def test_a_stack_shows_its_members_and_the_trees_of_its_forest(stack):
    result = succeed("inspect stack.aucforest --json -")
    content, model = json.loads(result.stdout), aucforest.load("stack.aucforest")
    forest = model.members_["forest"]
    assert content["model"] == "AUCStackingClassifier"
    assert content["members"] == dict(zip(model.members_, model.weights_.tolist()))
    assert content["parameters"]["forest__n_estimators"] == content["trees"]["number"] == 30
    assert (content["fitted_threshold"], content["fitted_oob_score"]) == (model.threshold_, model.oob_score_)
    assert [each["impurity_importance"] for each in content["features"]] == forest.split_importances_.tolist()
    assert [each["kind"] for each in content["features"]] == ["numeric", "categorical", "numeric", "categorical"]
    assert "importances are those of the stack's forest" in result.stderr
    assert content["fitted_calibration_of_forest"]["slope"] == forest.calibration_.slope
    result = run("inspect stack.aucforest --text 3")
    assert result.stdout == export_text(forest.estimators_[3], decimals=3, show_proba=True) + "\n"
    assert result.stderr.startswith("Note: the tree is of the stack's forest, ")


def test_a_tree_as_text(files):
    said, tree = run("inspect model.aucforest --text 3").stdout, aucforest.load("model.aucforest").estimators_[3]
    assert said == export_text(tree, decimals=3, show_proba=True) + "\n"
    assert "|--- probabilities: [no 0." in said
    check_refusal(run("inspect model.aucforest --text 20"), "the model has no tree 20: its 20 trees are 0 to 19")
    check_usage(run("inspect model.aucforest --text 0 --json -"), "--json: cannot be combined with --text")
    check_refusal(run("inspect model.aucforest --json model.aucforest"), "would be overwritten")


def test_linear_models_trees_and_many_features_are_inspected():
    X = np.random.default_rng(0).normal(size=(80, 30))
    y = X[:, 4] > 0
    aucforest.LinearAUCClassifier().fit(X, y).save("linear")
    assert "LinearAUCClassifier" in succeed("inspect linear").stdout
    check_refusal(run("inspect linear --text 0"), "LinearAUCClassifier")
    aucforest.AUCTreeClassifier(max_depth=1).fit(X, y).save("tree")
    said = run("inspect tree").stdout
    assert "and 5 features of less importance" in " ".join(said.split())
    assert "feature_4 " in said
    assert run("inspect tree --text 0").stdout.startswith("|--- feature_4 <= ")


def test_features_that_are_only_claimed_take_little_memory():
    forest, n_features = small_forest(1).fit(*make_table()), 2**19
    forest.trees_, forest.n_features_in_ = [make_chain(2, n_features=n_features)], n_features
    forest.save("model")
    with peak_below(10 * 8 * n_features):
        said = run("inspect model").stdout
    assert f"feature_{n_features - 1}" in said
    assert f"and {n_features - 25} features of less importance" in " ".join(said.split())

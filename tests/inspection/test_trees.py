"""Text of trees: every line is checked by following it."""

import re

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree import export_text as scikit_learn_text

from aucforest.inspection import export_text
from tests.estimators.data import make_table, small_forest, small_tree
from tests.tree.chains import make_chain

X, Y = make_table(n_rows=300, n_classes=3, missing=0.15)


def holds(condition, row):
    """Say whether what a line tells of a feature is true of a row."""
    number = int(re.search(r"feature_(\d+)", condition)[1])
    value = row[number]
    if condition.endswith("is missing"):
        return np.isnan(value)
    if condition.endswith("is not missing"):
        return not np.isnan(value)
    if np.isnan(value):
        return condition.endswith("or missing")
    sign, threshold = re.search(r"(<=|>) (\S+)", condition).groups()
    return value <= float(threshold) if sign == "<=" else value > float(threshold)


def follow(text, row):
    """Return the class that the lines lead to."""
    depth = 0
    for line in text.splitlines():
        bars, content = line.split("|--- ")
        if len(bars) // 4 != depth:
            continue
        if content.startswith("class: "):
            return content.removeprefix("class: ")
        depth += holds(content, row)
    raise AssertionError("no line fits")


def test_the_text_predicts_as_the_tree_does():
    tree = small_tree().fit(X, Y)
    text = export_text(tree, max_depth=100, decimals=17)
    assert "missing" in text
    assert [follow(text, row) for row in X] == [str(label) for label in tree.predict(X)]


def test_trees_of_a_forest_follow_each_other():
    forest = small_forest(3, max_depth=2).fit(X, Y)
    texts = export_text(forest).split("\n\n")
    assert texts == [f"tree {i}\n{export_text(tree)}" for i, tree in enumerate(forest.estimators_)]


def test_the_layout_is_that_of_scikit_learn():
    """The same cuts of the same rows; there missing values are not told, and > has two blanks."""
    table, labels = make_table(n_rows=60)
    theirs = DecisionTreeClassifier(max_features=1, max_depth=1, random_state=0).fit(table[:, :1], labels)
    ours = small_tree(criterion="gini", max_depth=1).fit(table[:, :1], labels)
    for options in ({}, {"show_weights": True, "decimals": 3}, {"class_names": ["no", "yes"]}):
        text = export_text(ours, **options).replace(" or missing", "").replace(" > ", " >  ")
        assert text + "\n" == scikit_learn_text(theirs, **options)
    assert export_text(ours, max_depth=0) == "|--- truncated branch of depth 1"


def test_what_lies_below_is_named_by_its_depth():
    tree = small_tree().fit(X, Y)
    text = export_text(tree, max_depth=2)
    depths = [int(depth) for depth in re.findall("branch of depth (.*)", text)]
    assert max(depths) == tree.tree_.max_depth - 2
    assert all(len(line.split("|--- ")[0]) // 4 <= 2 for line in text.splitlines())
    assert "truncated" not in export_text(tree, max_depth=tree.tree_.max_depth)


def test_probabilities_are_those_that_the_tree_predicts():
    """Shrunk ones, in the order of the classes."""
    tree = small_forest(1, shrinkage=5.0).fit(X, Y).estimators_[0]
    text = export_text(tree, max_depth=100, decimals=6, show_proba=True)
    listed = re.findall(r"probabilities: \[(.*)\] class: (.*)", text)
    leaves = [[item.split() for item in part.split(", ")] for part, _ in listed]
    assert all([name for name, _ in leaf] == list(map(str, tree.classes_)) for leaf in leaves)
    told = {tuple(float(number) for _, number in leaf) for leaf in leaves}
    predicted = {tuple(row) for row in tree.predict_proba(X).round(6).tolist()}
    assert predicted <= told
    assert 1.0 not in np.array(sorted(told))
    both = export_text(tree, show_proba=True, show_weights=True, class_names=["x", "y", "z"])
    assert re.search(r"weights: \[.*\] probabilities: \[x \S+, y \S+, z \S+\] class: [xyz]$", both, re.MULTILINE)


def test_categories_are_quoted():
    """A comma in a name parts no names, and digits that are text look it."""
    column = np.array([["web, de"], ["1"], ["shop"]] * 10, dtype=object)
    tree = small_tree(categorical_features=[0], max_features=1).fit(column, [0, 0, 1] * 10)
    text = export_text(tree, feature_names=["kind"])
    assert "|--- kind in {'shop'}" in text or "|--- kind in {'1', 'web, de'}" in text


def test_a_tree_without_a_cut():
    tree = small_tree().fit(np.zeros((4, 1)), ["b", "a", "c", "c"])
    assert export_text(tree) == "|--- class: c"
    assert export_text(tree, show_weights=True, decimals=0) == "|--- weights: [1, 1, 2] class: c"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"feature_names": ["a"]}, "feature_names has 1 names, but the model has 5 features"),
        ({"class_names": ["a"]}, "class_names has 1 names, but the model has 3 classes"),
        ({"max_depth": -1}, "max_depth must be an integer >= 0, got -1"),
        ({"decimals": 1.5}, "decimals must be an integer >= 0, got 1.5"),
    ],
)
def test_refusals(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        export_text(small_tree().fit(X, Y), **options)


def test_a_text_that_is_too_long_is_refused():
    """The text of a chain grows with the square of its nodes."""
    with pytest.raises(ValueError, match=r"^the report has more than 268435456 characters: lower max_depth"):
        export_text(make_chain(50_000), max_depth=10**6)
    assert len(export_text(make_chain(1000), max_depth=10**6).splitlines()) == 3001
    # in time in proportion to the nodes: with the square of them it would take far too long
    assert "truncated branch of depth 199990" in export_text(make_chain(200_000))

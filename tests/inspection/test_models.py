import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError

from aucforest import AUCForestClassifier, AUCStackingClassifier
from aucforest.inspection import export_text, forest_summary
from aucforest.inspection.models import (
    SplitFormat,
    category_names_of,
    check_forest,
    class_names_of,
    feature_names_of,
    forest_of,
    trees_of,
)
from tests.estimators.data import make_table, small_forest, small_tree, walk

X, Y = make_table(missing=0.1)


def test_trees_and_forests_of_models():
    forest, stack = small_forest(20).fit(X, Y), AUCStackingClassifier(small_forest(20)).fit(X, Y)
    tree = small_tree().fit(X, Y)
    assert (forest_of(forest), forest_of(stack), forest_of(tree)) == (forest, stack.members_["forest"], None)
    assert trees_of(tree) == trees_of(tree.tree_) == [tree.tree_]
    for read in (trees_of, check_forest):
        with pytest.raises(TypeError, match=r"got AUCStackingClassifier: pass its forest, stack\.members_"):
            read(stack)


def test_names_are_given_or_seen_in_fit_or_numbers():
    frame = pd.DataFrame(X, columns=list("abcde"))
    named, plain = small_tree().fit(frame, np.where(Y == 1, "yes", "no")), small_tree().fit(X, Y)
    assert feature_names_of(named, 5) == list("abcde")
    for model in (plain, plain.tree_):
        names = feature_names_of(model, 5)
        assert list(names) == [f"feature_{i}" for i in range(5)]
        assert (names[-1], names[1:3]) == ("feature_4", ["feature_1", "feature_2"])
    assert feature_names_of(named, 5, list("vwxyz")) == list("vwxyz")
    assert class_names_of(named, 2) == ["no", "yes"]
    assert class_names_of(named.tree_, 2) == ["0", "1"]
    assert class_names_of(named, 2, ["-", "+"]) == ["-", "+"]


def make_kinds(n_kinds=6):
    """Return a column of text with missing values, and labels that depend on its categories."""
    rng = np.random.default_rng(0)
    codes = rng.integers(n_kinds, size=400)
    kinds = np.array([f"k{i:03}" for i in range(n_kinds)], dtype=object)[codes]
    return np.where(rng.random(400) < 0.1, None, kinds)[:, None], (codes % 2 == 0).astype(int)


def is_true(condition, value):
    """Return whether a condition on categories is true of a value."""
    members = re.search(r"\{(.*)\}", condition)[1].split(", ")
    return (repr(value) in members) != ("not in" in condition)


@pytest.mark.parametrize("n_kinds", [2, 3, 6, 300])
@pytest.mark.parametrize("seed", range(3))
def test_conditions_of_categories_are_true_where_the_tree_goes(n_kinds, seed):
    """Also for an unseen category and missing values."""
    column, labels = make_kinds(n_kinds)
    model = small_tree(random_state=seed, max_features=1, categorical_features=[0]).fit(column, labels)
    split_format, tree = SplitFormat(["kind"], category_names_of(model, quoted=True), (), 1), model.tree_
    values = [*model.categories_[0], "new", None]
    for value, row in zip(values, model._validate_X(np.array(values, dtype=object)[:, None], reset=False)):
        for node, child in pairwise(walk(tree, row)):
            if tree.threshold[node] != np.inf:
                left, right = (is_true(side, value) for side in split_format.conditions(tree, node))
                assert [left, right] == [child == tree.left_child[node], child != tree.left_child[node]]


def test_the_number_of_listed_categories_can_be_limited():
    column, labels = make_kinds()
    tree = small_tree(categorical_features=[0], max_features=1).fit(column, labels).tree_
    full, short = (SplitFormat(["kind"], {}, (), 1, most).conditions(tree, 0) for most in (None, 1))
    assert sorted(re.findall(r"\d+", min(full, key=len))) in (["0", "2", "4"], ["1", "3", "5"])
    assert all(re.search(r"\{\d, \.\.\.\}", side) for side in short)


def test_other_models_are_refused():
    for show in (forest_summary, export_text):
        with pytest.raises(TypeError, match=r"expected an AUCForestClassifier, .*, got RandomForestClassifier"):
            show(RandomForestClassifier())
        with pytest.raises(NotFittedError, match="not fitted"):
            show(AUCForestClassifier())

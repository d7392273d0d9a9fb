import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError

from aucforest import AUCForestClassifier
from aucforest.inspection import export_text, forest_summary
from aucforest.inspection._models import check_forest, class_names_of, conditions, feature_names_of, trees_of
from tests.estimators.data import make_table, small_forest, small_tree

X, Y = make_table(missing=0.1)


def test_a_tree_a_forest_and_a_bare_tree():
    forest, tree = small_forest().fit(X, Y), small_tree().fit(X, Y)
    assert trees_of(forest) is forest.trees_
    assert trees_of(tree) == trees_of(tree.tree_) == [tree.tree_]
    assert check_forest(forest) is forest


def test_names_come_from_the_call_the_fit_or_numbers():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    named, plain = small_tree().fit(frame, np.where(Y == 1, "yes", "no")), small_tree().fit(X, Y)
    assert feature_names_of(named, 5) == list("abcde")
    assert feature_names_of(plain, 5) == feature_names_of(plain.tree_, 5) == [f"feature_{i}" for i in range(5)]
    assert feature_names_of(named, 5, list("vwxyz")) == list("vwxyz")
    assert class_names_of(named, 2) == ["no", "yes"]
    assert class_names_of(named.tree_, 2) == ["0", "1"]
    assert class_names_of(named, 2, ["-", "+"]) == ["-", "+"]


@pytest.mark.parametrize("missing_left", [False, True])
def test_conditions_tell_where_missing_values_go(missing_left):
    x = np.array([[1.0], [1.0], [2.0], [np.nan]])
    tree = small_tree().fit(x, [0, 0, 1, 0 if missing_left else 1]).tree_
    left, right = conditions(tree, 0, ["age"], 1)
    assert (left, right) == (
        ("age <= 1.5 or missing", "age > 1.5") if missing_left else ("age <= 1.5", "age > 1.5 or missing")
    )


def test_a_cut_that_parts_missing_values_alone():
    tree = small_tree().fit([[1.0], [2.0], [np.nan]], [0, 0, 1]).tree_
    assert tree.threshold[0] == np.inf
    assert conditions(tree, 0, ["age"], 1) == ("age is not missing", "age is missing")


@pytest.mark.parametrize(
    ("model", "error", "sentence"),
    [
        (RandomForestClassifier(), TypeError, "expected an AUCForestClassifier, .*, got RandomForestClassifier"),
        (AUCForestClassifier(), NotFittedError, "not fitted"),
    ],
)
def test_refusals(model, error, sentence):
    with pytest.raises(error, match=sentence):
        forest_summary(model)
    with pytest.raises(error, match=sentence):
        export_text(model)


def test_only_forests_are_forests():
    with pytest.raises(TypeError, match="forest must be an AUCForestClassifier, got AUCTreeClassifier"):
        check_forest(small_tree().fit(X, Y))

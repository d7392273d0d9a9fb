import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError

from aucforest import AUCForestClassifier, AUCStackingClassifier
from aucforest.inspection import export_text, forest_summary
from aucforest.inspection.models import check_forest, forest_of, trees_of
from tests.estimators.data import make_table, small_forest, small_tree

X, Y = make_table(missing=0.1)


def test_trees_and_forests_of_models():
    forest, stack = small_forest(20).fit(X, Y), AUCStackingClassifier(small_forest(20)).fit(X, Y)
    tree = small_tree().fit(X, Y)
    assert (forest_of(forest), forest_of(stack), forest_of(tree)) == (forest, stack.members_["forest"], None)
    assert trees_of(tree) == trees_of(tree.tree_) == [tree.tree_]
    for read in (trees_of, check_forest):
        with pytest.raises(TypeError, match=r"got AUCStackingClassifier: pass its forest, stack\.members_"):
            read(stack)


def test_other_models_are_refused():
    for show in (forest_summary, export_text):
        with pytest.raises(TypeError, match=r"expected an AUCForestClassifier, .*, got RandomForestClassifier"):
            show(RandomForestClassifier())
        with pytest.raises(NotFittedError, match="not fitted"):
            show(AUCForestClassifier())

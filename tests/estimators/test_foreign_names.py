"""Parameters of other libraries are told by their names here."""

import pytest

from aucforest import AUCForestClassifier
from aucforest.estimators import _foreign_names
from tests.estimators.data import both, small_forest, small_tree

FOREIGN = {
    "min_impurity_decrease": "use min_gain, see its documentation",
    "num_leaves": "use max_leaf_nodes, see its documentation",
    "ccp_alpha": "trees are not pruned, but max_depth, max_leaf_nodes and min_samples_leaf limit their size",
    "learning_rate": "trees are not boosted, but grown independently of each other",
}


@both
@pytest.mark.parametrize("name", FOREIGN)
def test_parameters_of_other_libraries_are_told_by_their_names_here(make, name):
    model = make()
    sentence = f"^{type(model).__name__} has no parameter '{name}': {FOREIGN[name]}$"
    with pytest.raises(TypeError, match=sentence):
        make(**{name: 1})
    with pytest.raises(ValueError, match=sentence):
        model.set_params(max_depth=3, **{name: 1})
    assert model.max_depth is None


def test_only_parameters_that_there_are_are_told():
    with pytest.raises(TypeError, match=r"^AUCForestClassifier has no parameter 'n_trees': use n_estimators"):
        small_forest(n_trees=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_trees'"):
        small_tree(n_trees=3)
    with pytest.raises(ValueError, match=r"^Invalid parameter 'n_trees' for estimator AUCTreeClassifier"):
        small_tree().set_params(n_trees=3)

    class Seeded(AUCForestClassifier):
        def __init__(self, seed=0):
            super().__init__(random_state=seed)
            self.seed = seed

    assert Seeded(seed=3).set_params(seed=4).seed == 4
    ours = set(AUCForestClassifier().get_params())
    assert set(_foreign_names._FOREIGN_NAMES) <= ours
    assert not ours & {*_foreign_names._COUNTERPARTS, *_foreign_names._WITHOUT_COUNTERPART}

"""Stacks in model files: stacks of all members are restored to the last bit, and damaged files are refused."""

import copy

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import aucforest
from aucforest import AUCStackingClassifier
from tests.persistence.trees import change_bytes

from .data import assert_same, make_table, own_auc, small_forest
from .stacks import DATA, fitted
from .test_model_files import array, assert_same_predictions, at, check_refused, check_works, read, saved, without


def assert_comes_back(stack, X, folder):
    loaded = saved(stack, folder)
    assert_same(stack, loaded)
    assert_same_predictions(stack, loaded, X)
    content = (folder / "model").read_bytes()
    loaded.save(folder / "model")
    assert (folder / "model").read_bytes() == content


@pytest.mark.parametrize("name", DATA)
def test_a_stack_comes_back_to_the_last_bit(name, tmp_path):
    assert_comes_back(*fitted(name), tmp_path)


@pytest.mark.parametrize("names", [["linear"], ["residual"], ["boosted"], ["linear", "residual", "boosted"]], ids=str)
def test_members_that_are_left_out(names, tmp_path):
    """Also after a second fit: the first stack had boosted trees with a scale, which must not be in the file."""
    (X, y), params = make_table(), {name: None if name == "linear" else False for name in names}
    stack = AUCStackingClassifier(small_forest(30)).fit(X, y).set_params(**params).fit(X, y)
    stack.weights_[-1] = 0.0
    assert_comes_back(stack, X, tmp_path)


def test_parameters_come_back(tmp_path):
    stack, X = fitted("two classes")
    forest = small_forest(7, max_depth=3, monotonic_cst={"a": 1})
    changed = copy.copy(stack).set_params(forest=forest, linear=None, residual=False, penalty=2.5, n_jobs=2)
    assert_comes_back(changed, X, tmp_path)
    assert saved(copy.copy(stack).set_params(forest=None), tmp_path).forest is None
    forest.threshold = {"cost": np.ones((5, 2, 2))}  # of training rows, which are not stored
    assert saved(changed, tmp_path).forest.threshold == "cost"


def test_parameters_that_are_no_plain_values_are_left_out_with_a_warning(tmp_path):
    stack, X = fitted("two classes")
    changed = copy.copy(stack).set_params(forest=small_forest(criterion=own_auc), penalty=0.5)
    with pytest.warns(UserWarning, match=r"^forest__criterion=.* cannot be stored: set it again") as warned:
        changed.save(tmp_path / "model")
    assert len(warned) == 1
    loaded = aucforest.load(tmp_path / "model")
    assert (loaded.forest.criterion, loaded.forest.n_estimators, loaded.penalty) == (None, 6, 0.5)
    assert_same_predictions(stack, loaded, X)


def test_a_foreign_member_is_refused(tmp_path):
    X, y = make_table()
    stack = AUCStackingClassifier(small_forest(30), linear=LogisticRegression()).fit(X, y)
    with pytest.raises(TypeError, match=r'^linear: a LogisticRegression cannot be saved: use linear="auto", or pickle'):
        stack.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_the_positive_class_is_stored(tmp_path):
    X, y = make_table()
    stack = AUCStackingClassifier(small_forest(30), pos_label=0, threshold="gmean").fit(X, y)
    loaded = saved(stack, tmp_path)
    assert loaded.pos_label_ == loaded.members_["forest"].pos_label_ == 0
    np.testing.assert_array_equal(loaded.predict(X) == 0, stack.predict_proba(X)[:, 0] >= stack.threshold_)


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    path, found = tmp_path_factory.mktemp("stacks") / "model", {}
    for name in ("categories", "three classes", "sparse"):
        fitted(name)[0].save(path)
        found[name] = read(path)
    return found


def changed(name, change):
    return lambda arrays, metadata: arrays.update({name: change(arrays[name].copy())})


def put(value):
    """Return a function that changes the first value of an array."""
    return lambda values: np.concatenate(([value], values.ravel()[1:])).astype(values.dtype).reshape(values.shape)


HOSTILE = {
    "categories of residuals": (at("residual", "categories", 0, 1, "values", 0, put="u"), "different categories"),
    "dates of residuals": (at("residual", "dates", put=[[0, ["time"], None]]), "different features"),
    "no residual": (without("residual"), "coef_ must be float64 of shape"),
    "another class within": (at("forest", "estimator", put="AUCTreeClassifier"), "estimator must be one of AUCForest"),
    "unknown parameter": (at("parameters", "forest__depth", put=1), "AUCForestClassifier has no parameter 'depth'"),
    "from before boosted trees": (
        lambda _, metadata: metadata["parameters"].pop("boosted"),
        "the file is from before stacks had boosted trees: fit the stack again$",
    ),
    "numbers left out": (at("left_out", put=[5]), "each item of left_out must be str"),
    "no scale": (without("boosted_scale"), "only one of boosted_scale and the member"),
    "a NaN scale": (array("boosted_scale", np.nan), "boosted_scale has invalid values"),
    "a giant scale": (array("boosted_scale", 1e200), "boosted_scale has invalid values"),
    "other classes": (at("residual", "classes", "values", put=[0, 7]), "classes_ of the stack and"),
    "other names": (at("residual", "feature_names", "values", put=list("abcd")), "feature_names_in_ of the stack and"),
    "negative weight": (changed("coef_", put(-1.0)), "coef_ has invalid values"),
    "giant weight": (changed("coef_", put(1e305)), "coef_ has invalid values"),
    "NaN intercept": (changed("intercept_", put(np.nan)), "intercept_ has invalid values"),
    "infinite centre": (changed("linear/centre_", put(np.inf)), "centre_ has invalid values"),
    "scale of 0": (changed("linear/scale_", put(0.0)), "scale_ has invalid values"),
    "a great knot": (changed("linear/knots_", put(-6.0)), "knots_ has invalid values"),
    "a knot too few": (changed("linear/knots_", lambda knots: knots[1:]), "knots_ must be float64 of shape"),
    "knots beyond": (changed("linear/knot_places_", put(2)), "knot_places_ has invalid values"),
    "missing beyond": (changed("linear/missing_", put(4)), "missing_ has invalid values"),
    "codes of numbers": (changed("linear/code_features_", put(0)), "codes_ has invalid values"),
    "an unknown code": (changed("linear/codes_", put(5.0)), "codes_ has invalid values"),
    "a code twice": (changed("linear/codes_", lambda codes: codes[[0, 0, *range(2, len(codes))]]), "codes_ has inv"),
    "penalty of 0": (changed("linear/penalties_", put(0.0)), "penalties_ has invalid values"),
    "a penalty too few": (changed("linear/penalties_", lambda values: values[1:]), "penalties_ must be float64"),
    "coefficients of three": (changed("linear/coef_", lambda coef: np.vstack((coef,) * 3)), "coef_ must be float64"),
    "NaN coefficient": (changed("linear/coef_", put(np.nan)), "coef_ has invalid values"),
    "infinite intercept": (changed("linear/intercept_", put(np.inf)), "intercept_ has invalid values"),
    "sparse with categories": (at("linear", "is_sparse", put=True), "of a sparse matrix has columns other than"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_stacks_are_refused(name, contents, tmp_path):
    check_refused(contents["categories"], *HOSTILE[name], tmp_path)


def test_a_scale_without_boosted_trees_is_refused(contents, tmp_path):
    check_refused(contents["sparse"], array("boosted_scale", 2.0), "only one of boosted_scale and the member", tmp_path)


# Changed arrays of forests are tested in test_model_files.py.
FORESTS = "forest/", "residual/", "boosted/"


@pytest.mark.parametrize("name", ["categories", pytest.param("three classes", marks=pytest.mark.slow)])
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_is_refused_or_makes_a_stack_that_works(name, contents, tmp_path, data):
    arrays, metadata = copy.deepcopy(contents[name])
    names = sorted(name for name in arrays if arrays[name].size and not name.startswith(FORESTS))
    change_bytes(arrays, data, names)
    check_works(arrays, metadata, fitted(name)[1], tmp_path)

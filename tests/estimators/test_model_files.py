import copy
import json
import operator
import pickle
import sys
from functools import reduce
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from sklearn.exceptions import NotFittedError

import aucforest
from aucforest import AUCTreeClassifier, LinearAUCClassifier, ModelFormatError
from aucforest._compile import Compiled
from aucforest.inspection import oob_permutation_importance
from aucforest.persistence.model_file import write_model
from tests.cli.data import run
from tests.estimators.data import assert_same, make_table, own_auc, small_forest, small_tree
from tests.persistence.trees import change_bytes

DATA = Path(__file__).parents[1] / "data"
X, Y = make_table()
OTHERS = "three", "tree", "linear"  # models besides a forest of two classes


def make_frame(n_rows=240, seed=0):
    """Return a frame with categories of two kinds, missing values in all columns, and a label."""
    X, y = make_table(n_rows, 2, seed=seed, missing=0.1)
    rng = np.random.default_rng(seed)
    letter = np.where(np.arange(n_rows) % 7 == 0, None, rng.choice(list("vwxyz"), n_rows))
    code = rng.choice([3, 5, 8, 13], n_rows)
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "letter": pd.Categorical(letter), "code": code}), y


def assert_same_predictions(one, other, X):
    assert one.predict_proba(X).tobytes() == other.predict_proba(X).tobytes()
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def saved(model, folder):
    model.save(folder / "model")
    return aucforest.load(folder / "model")


def test_a_model_is_not_tied_to_its_file(tmp_path):
    forest = small_forest().fit(X, Y)
    loaded = saved(forest, tmp_path)
    with open(tmp_path / "model", "r+b") as file:
        file.write(bytes(file.seek(0, 2)))
        file.truncate(0)
    assert_same_predictions(forest, loaded, X)


def test_parameters_that_are_no_plain_values_are_left_out_with_a_warning(tmp_path):
    forest = small_forest(random_state=np.random.RandomState(0)).fit(X, Y).set_params(criterion=own_auc)
    with pytest.warns(UserWarning, match="cannot be stored: set it again") as warned:
        forest.save(tmp_path / "model")
    assert [str(warning.message).split("=")[0] for warning in warned] == ["criterion", "random_state"]
    assert {warning.filename for warning in warned} == {__file__}
    loaded = aucforest.load(tmp_path / "model")
    assert_same_predictions(forest, loaded, X)
    with pytest.raises(ValueError, match="'criterion' parameter"):
        loaded.fit(X, Y)


def test_a_name_of_another_format_gets_a_word(tmp_path):
    model = small_tree().fit(X, Y)
    with pytest.warns(UserWarning, match=r"^m.pkl is not a pickle, despite its name: load it by aucforest.load$"):
        model.save(tmp_path / "m.pkl")
    model.save(tmp_path / "pkl")


def test_parameters_come_back(tmp_path):
    parameters = {
        "max_features": np.float64(0.5), "max_depth": np.int64(4), "monotonic_cst": {"x0": 1, "x3": -1},
        "sampling": {"no": 0.5}, "class_weight": {np.str_("yes"): 3}, "shrinkage": np.float32(2.5),
        "threshold": {"cost": np.array([[0, 1], [5, 0]])}, "oob_score": "balanced_accuracy", "n_jobs": 2,
        "categorical_features": [False] * 5, "warm_start": np.True_, "random_state": 11, "verbose": 0,
    }  # fmt: skip
    loaded = saved(small_forest().fit(X, Y).set_params(**parameters), tmp_path).get_params()
    assert {name: loaded[name] for name in parameters} == parameters | {"threshold": {"cost": [[0, 1], [5, 0]]}}


def test_a_subclass_and_an_unfitted_model_are_refused(tmp_path):
    class Own(AUCTreeClassifier):
        pass

    with pytest.raises(NotFittedError, match="not fitted"):
        Own().save(tmp_path / "model")
    with pytest.raises(TypeError, match="Own cannot be saved"):
        Own().fit(X, Y).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_files_of_version_1_load():
    known = json.loads((DATA / "model_v1.json").read_text())
    X, forest = np.array(known["rows"], dtype=np.float64), aucforest.load(DATA / "model_v1.safetensors")
    assert forest.predict(X).tolist() == known["predict"]
    np.testing.assert_array_equal(forest.apply(X), known["apply"])
    # logarithms and exponentials differ from machine to machine
    np.testing.assert_allclose(forest.predict_proba(X), known["predict_proba"], rtol=1e-13)


def test_a_loaded_model_is_pickled_and_fitted_again(tmp_path):
    forest = small_forest().fit(X, Y)
    assert_same(forest, pickle.loads(pickle.dumps(saved(forest, tmp_path))))
    used = saved(forest, tmp_path)
    used.predict(X)
    assert_same(forest, pickle.loads(pickle.dumps(used)))
    assert len(pickle.dumps(used)) <= 1.01 * len(pickle.dumps(forest))
    with pytest.raises(ValueError, match="only one class"):
        used.fit(X, np.zeros(len(X)))
    assert_same(forest, used)
    assert_same(forest, saved(forest, tmp_path).fit(X, Y))


@pytest.mark.parametrize("model", [small_forest(oob_score=True, n_estimators=20), small_tree(), LinearAUCClassifier()])
def test_pickle_and_skops(model):
    frame, y = make_frame()
    frame = frame.drop(columns="letter").fillna(0.0) if isinstance(model, LinearAUCClassifier) else frame
    assert_same(model.fit(frame, y), pickle.loads(pickle.dumps(model)))
    content = skops.io.dumps(model)
    trusted = skops.io.get_untrusted_types(data=content)
    assert all(name.startswith("aucforest.") for name in trusted)
    loaded = skops.io.loads(content, trusted=trusted)
    assert_same(model, loaded)
    assert_same_predictions(model, loaded, frame)


def n_compiled():
    """Return the number of compiled variants of all kernels."""
    modules = [module for name, module in sys.modules.items() if name.startswith("aucforest")]
    parts = {part for module in modules for part in vars(module).values() if isinstance(part, Compiled)}
    return sum(len(part.signatures) for part in parts if "dispatcher" in vars(part) and hasattr(part, "signatures"))


def test_copies_are_used_alike_and_nothing_is_compiled_anew_for_them(tmp_path):
    frame, y = make_frame()
    forest, n_known = small_forest(20, oob_score=True).fit(frame, y), []
    for model in (forest, copy.deepcopy(forest), pickle.loads(pickle.dumps(forest)), saved(forest, tmp_path)):
        model.predict(frame)
        model.decision_path(frame)
        model.set_threshold("f1", frame, y)
        model.set_params(warm_start=True, n_estimators=24).fit(frame, y)
        assert_same(forest, model)
        n_known.append(n_compiled())
    assert n_known == [n_known[0]] * 4
    assert n_known[0] > 20


def read(path):
    with safe_open(path, framework="numpy") as file:
        text = file.metadata()["aucforest"]
        return file.get_tensors(), json.loads(text.split(" ", 2)[2])


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    folder, (frame, y), (X, three) = tmp_path_factory.mktemp("models"), make_frame(), make_table(n_classes=3)
    models = {
        "forest": small_forest(20, sampling="balanced", oob_score=True, threshold="gmean").fit(frame, y),
        "three": small_forest(threshold="prevalence").fit(X, three),
        "tree": small_tree().fit(frame, y),
        "linear": LinearAUCClassifier().fit(X, three),
    }
    for name, model in models.items():
        model.save(folder / name)
    found = {name: read(folder / name) for name in models}
    for name, content in found.items():  # unchanged content is accepted
        write_model(folder / "again", *content)
        assert_same(models[name], aucforest.load(folder / "again"))
    found["forest"][1]["text_formats"] = {"a": {"decimal": ","}}
    return found


@pytest.mark.parametrize("name", ["forest", *OTHERS])
def test_damaged_metadata_are_refused_by_a_sentence(name, contents, tmp_path):
    check_metadata(contents[name], tmp_path)


def places(metadata, *keys):
    """Yield the keys of each item of nested metadata, but of the first two items of lists only."""
    is_dict, is_list = isinstance(metadata, dict), isinstance(metadata, list)
    for key, item in metadata.items() if is_dict else enumerate(metadata[:2] if is_list else ()):
        yield *keys, key
        yield from places(item, *keys, key)


def check_metadata(content, folder, but=""):
    """Load files in which an item of the metadata is missing or has another type; errors must be from the package."""
    for *outer, key in (keys for keys in places(content[1]) if keys[0] != but):
        for value in ("missing", None, -1, 2**80, "x", [], [5], [[]], {}, {"x": 5}):
            arrays, metadata = copy.deepcopy(content)
            item = reduce(operator.getitem, outer, metadata)
            item[key] = value
            if value == "missing":
                del item[key]
            write_model(folder / "model", arrays, metadata)
            try:
                aucforest.load(folder / "model")
            except ModelFormatError as error:
                is_own = isinstance(error.__cause__, ModelFormatError) or " parameter of " in str(error)
                assert is_own, (*outer, key, value)


def at(*keys, put):
    return lambda arrays, metadata: operator.setitem(reduce(operator.getitem, keys[:-1], metadata), keys[-1], put)


def without(name):
    return lambda *parts: [part.pop(name, None) for part in parts]


def array(name, value):
    return lambda arrays, metadata: arrays.update({name: np.array(value)})


LABELS = {"kind": "object", "length": 0, "values": []}
HOSTILE = {
    "unknown estimator": ("tree", at("estimator", put="AUCTree"), "estimator must be one of .*, but is 'AUCTree'"),
    "unknown array": ("tree", array("extra", 1.0), "extra is unknown"),
    "unknown parameter": ("tree", at("parameters", "depth", put=1), "AUCTreeClassifier has no parameter 'depth'"),
    "parameter left out": ("tree", at("left_out", put=["trees_"]), "no parameter 'trees_'"),
    "absurd number": ("forest", at("parameters", "n_estimators", put=-5), "'n_estimators' parameter"),
    "no features": ("tree", at("n_features", put=0), "n_features is 0"),
    "one class": ("tree", at("classes", "values", put=[1]), "there are 1 classes"),
    "equal classes": ("tree", at("classes", "values", put=[1, 1]), "the classes are not sorted"),
    "classes without order": ("tree", at("classes", put={**LABELS, "values": ["a", 1]}), "some classes are strings"),
    "more classes": ("tree", at("classes", "values", put=[0, 1, 2]), "tree.total must be"),
    "too many classes": ("tree", at("classes", "values", put=list(range(2**16))), "there are 65536 classes"),
    "a name too few": ("tree", at("feature_names", "values", put=["a", "b", "c"]), "feature_names are not 4 strings"),
    "categories beyond": ("tree", at("categories", put=[[4, LABELS]]), "categories of feature 4"),
    "categories before": ("tree", at("categories", put=[[-1, LABELS]]), "categories of feature -1"),
    "categories forgotten": ("tree", at("categories", put=[]), "a categorical split is on a numeric feature"),
    "of 0.1": ("forest", without("variants"), "written by aucforest before 0.2: load and save it with aucforest 0.2"),
    "negative seed": ("forest", at("seed", put=-1), "seed is -1"),
    "drawn anyhow": ("forest", at("drawn", put=[[10, [1], 1, ""]]), "drawn is invalid"),
    "drawn negative": ("forest", at("drawn", put=[[10, [-1], True, ""]]), "drawn is invalid"),
    "NaN priors": ("forest", array("class_prior_", [np.nan, 1.0]), "class_prior_ has invalid values"),
    "priors that sum to 2": ("forest", array("class_prior_", [1.0, 1.0]), "class_prior_ has invalid values"),
    "NaN shrinkage": ("forest", array("shrinkage_", np.nan), "shrinkage_ has invalid values"),
    "a threshold of 2": ("forest", array("threshold_", 2.0), "threshold_ has invalid values"),
    "a negative threshold": ("forest", array("threshold_", -np.inf), "threshold_ has invalid values"),
    "a number for three": ("three", array("threshold_", 0.5), "threshold_ has invalid values"),
    "costs of two": ("three", array("threshold_", np.ones((2, 2))), "threshold_ has invalid values"),
    "a probability of 2": ("forest", lambda arrays, _: arrays["oob_decision_function_"].fill(2.0), "function_ has inv"),
    "probabilities of one": ("forest", array("oob_decision_function_", np.ones((5, 1))), "oob_decision_function_ must"),
    "no slope": ("forest", array("calibration", [0.0, 0.1, 9.0, 0.0, 0.0]), "calibration has invalid values"),
    "NaN intercept": ("forest", array("calibration", [1.0, 0.1, 9.0, 0.0, np.nan]), "calibration has invalid"),
    "no class left": ("forest", array("calibration", [1.0, 0.1, 9.0, -np.inf, -np.inf]), "calibration has invalid"),
    "a negative error": ("forest", array("calibration", [1.0, -0.1, 9.0, 0.0, 0.0]), "calibration has invalid"),
    "a loss too few": ("linear", array("loss_curve_", [0.5]), "loss_curve_ must be"),
    "NaN coefficients": ("linear", lambda arrays, _: arrays["coef_"].fill(np.nan), "coef_ has invalid values"),
    "coefficients of two": ("linear", lambda arrays, _: arrays.update(coef_=arrays["coef_"][:1]), "coef_ must be"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_models_are_refused(name, contents, tmp_path):
    check_refused(contents[HOSTILE[name][0]], *HOSTILE[name][1:], tmp_path)


def check_refused(content, change, message, folder):
    """Assert that a file with changed content is refused, with the name of the file in the message."""
    arrays, metadata = copy.deepcopy(content)
    change(arrays, metadata)
    write_model(folder / "model", arrays, metadata)
    with pytest.raises(ModelFormatError, match=message) as refused:
        aucforest.load(folder / "model")
    assert str(refused.value).startswith(str(folder / "model"))


def test_two_trees_are_no_tree(contents, tmp_path):
    trees = {name: array for name, array in contents["three"][0].items() if name.startswith("tree.")}
    own = {name: contents["three"][1][name] for name in ("classes", "n_features", "categories")}
    metadata = {name: value for name, value in contents["tree"][1].items() if name != "feature_names"} | own
    check_refused((trees, metadata), lambda *_: None, "AUCTreeClassifier has 6 trees instead of one", tmp_path)


def test_deep_parameters_are_refused(contents, tmp_path, monkeypatch):
    arrays, metadata = contents["tree"]
    text = json.dumps(metadata).replace('"monotonic_cst": null', '"monotonic_cst": ' + "[" * 900 + "]" * 900)
    monkeypatch.setattr("aucforest.persistence.model_file.json.dumps", lambda *_, **__: text)
    write_model(tmp_path / "model", arrays, {})
    with pytest.raises(ModelFormatError, match="recursion"):
        aucforest.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["forest", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_is_refused_or_makes_a_model_that_works(name, contents, tmp_path, data):
    arrays, metadata = copy.deepcopy(contents[name])
    change_bytes(arrays, data)
    check_works(arrays, metadata, make_frame()[0] if name in ("forest", "tree") else X, tmp_path)


def check_works(arrays, metadata, table, folder):
    """Assert that a file with changed arrays is refused, or that its model predicts and can be saved."""
    write_model(folder / "model", arrays, metadata)
    try:
        model = aucforest.load(folder / "model")
    except ModelFormatError:
        return
    with np.errstate(over="ignore"):
        proba = model.predict_proba(table)
        assert_same_predictions(model, saved(model, folder), table)
    assert np.all((proba >= 0.0) & (proba <= 1.0 + 1e-9))


def test_linear_classifiers_of_two_solvers_load(tmp_path):
    model = LinearAUCClassifier().fit(X, Y)
    model.save(tmp_path / "model")
    arrays, metadata = read(tmp_path / "model")
    metadata["parameters"] |= {"solver": "sga", "n_pairs": 500, "learning_rate": 0.5, "decay": 1e-4, "random_state": 0}
    write_model(tmp_path / "model", arrays, metadata)
    assert_same(model, aucforest.load(tmp_path / "model"))


# Files that the command line wrote when it had two classes in reverse order if the first one was positive.


@pytest.fixture(scope="module")
def known():
    """Return rows, and the predictions of the command line when it wrote the models."""
    return json.loads((DATA / "positive_first.json").read_text())


def test_older_files_predict_as_they_did(known, tmp_path):
    X, expected, file = pd.DataFrame(known["rows"]), known["forest"], DATA / "positive_first_forest.safetensors"
    for _ in range(2):  # and again after a save
        model = aucforest.load(file)
        assert model.classes_.tolist() == ["bad", "good"]
        assert (model.pos_label, model.pos_label_, model.threshold_) == ("bad", "bad", expected["threshold"])
        proba = model.predict_proba(X)
        # logarithms and exponentials differ from machine to machine
        np.testing.assert_allclose(proba.T, [expected["probability_bad"], expected["probability_good"]], rtol=1e-15)
        np.testing.assert_array_equal(model.predict(X), expected["prediction"])
        assert np.any(proba[:, 0] == model.threshold_)
        model.save(file := tmp_path / "again.safetensors")
    X.to_parquet(tmp_path / "rows.parquet")
    result = run("predict", file, tmp_path / "rows.parquet", "--out", tmp_path / "p.parquet")
    assert result.exit_code == 0, result.output
    columns = ["prediction", "probability_bad", "probability_good"]
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "p.parquet"), pd.DataFrame(expected)[columns])


def test_samples_of_older_files_cannot_be_taken_again(known):
    """In older versions, the samples of a tree were drawn from other random numbers."""
    forest, X = aucforest.load(DATA / "positive_first_forest.safetensors"), pd.DataFrame(known["rows"])
    with pytest.raises(ValueError, match=r"with aucforest 0\.2, and aucforest 0\.3 may take different ones"):
        oob_permutation_importance(forest, X, known["label"])


def test_costs_of_older_files_are_in_the_order_of_the_classes(tmp_path):
    arrays, metadata = read(DATA / "positive_first_forest.safetensors")
    metadata["parameters"]["threshold"] = {"pairs": [["cost", [[0, 1], [10, 0]]]]}
    write_model(tmp_path / "m.safetensors", arrays, metadata)
    assert aucforest.load(tmp_path / "m.safetensors").threshold == {"cost": [[0, 10], [1, 0]]}


@pytest.mark.parametrize("name", ["tree.total", "class_prior_", "drawn", "calibration"])
def test_damaged_older_files_are_refused(tmp_path, name):
    arrays, metadata = read(DATA / "positive_first_forest.safetensors")
    for items, value in ((arrays, np.float64(1.0)), (metadata, [1])):
        if name in items:
            items[name] = value
    check_refused((arrays, metadata), lambda *_: None, "model: ", tmp_path)

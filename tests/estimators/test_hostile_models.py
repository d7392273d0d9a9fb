"""Files with a right checksum that say what no fit would leave: they are refused, or make a model that works."""

import copy
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

import aucforest
from aucforest import LinearAUCClassifier, ModelFormatError
from aucforest.persistence.model_file import write_model

from .data import make_table, small_forest, small_tree
from .test_model_files import assert_same_predictions, make_frame


def read(path):
    """Return the arrays and the metadata of a model file."""
    with safe_open(path, framework="numpy") as file:
        text = file.metadata()["aucforest"]
        return file.get_tensors(), json.loads(text.split(" ", 2)[2])


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Return the contents of files of some models by name."""
    folder, (frame, y), (X, three) = tmp_path_factory.mktemp("models"), make_frame(), make_table(n_classes=3)
    models = {
        "forest": small_forest(20, sampling="balanced", oob_score=True, threshold="gmean").fit(frame, y),
        "three": small_forest(threshold="prevalence").fit(X, three),
        "tree": small_tree().fit(frame, y),
        "linear": LinearAUCClassifier().fit(X, three),
    }
    for name, model in models.items():
        model.save(folder / name)
    return {name: read(folder / name) for name in models}


def at(*keys, put):
    """Return what puts a value into metadata."""

    def change(arrays, metadata):
        *path, last = keys
        for key in path:
            metadata = metadata[key]
        metadata[last] = put

    return change


def array(name, value):
    """Return what replaces an array."""
    return lambda arrays, metadata: arrays.update({name: np.array(value)})


LABELS, NO_LABELS = {"kind": "object", "length": 0}, {"kind": "object", "length": 0, "values": []}
NUMBERS = {"kind": "int8", "length": 0, "values": [1, 2, 3, 4]}
HOSTILE = {
    "unknown estimator": ("tree", at("estimator", put="AUCTree"), "estimator must be one of .*, but is 'AUCTree'"),
    "code for an estimator": ("tree", at("estimator", put="os.system"), "estimator must be one of"),
    "no estimator": ("tree", lambda arrays, metadata: metadata.pop("estimator"), "estimator is missing"),
    "another estimator": ("tree", at("estimator", put="LinearAUCClassifier"), "has no parameter"),
    "unknown metadata": ("tree", at("extra", put=1), "extra is unknown"),
    "unknown array": ("tree", array("extra", 1.0), "extra is unknown"),
    "unknown parameter": ("tree", at("parameters", "depth", put=1), "AUCTreeClassifier has no parameter 'depth'"),
    "private parameter": ("tree", at("parameters", "__class__", put=1), "no parameter '__class__'"),
    "parameter left out": ("tree", at("left_out", put=["trees_"]), "no parameter 'trees_'"),
    "left out a list": ("tree", at("left_out", put=[[]]), "unhashable"),
    "absurd number": ("forest", at("parameters", "n_estimators", put=-5), "'n_estimators' parameter"),
    "absurd type": ("forest", at("parameters", "max_depth", put="deep"), "'max_depth' parameter"),
    "absurd threshold": ("forest", at("parameters", "threshold", put=2.0), "'threshold' parameter"),
    "unknown criterion": ("forest", at("parameters", "criterion", put="own"), "'criterion' parameter"),
    "unknown scorer": ("forest", at("parameters", "oob_score", put="own"), "'oob_score' parameter"),
    "nested parameter": ("forest", at("parameters", "n_jobs", put={"pairs": [[{}, 1]]}), "invalid encoding"),
    "parameters a list": ("forest", at("parameters", put=[]), "parameters must be dict"),
    "no features": ("tree", at("n_features", put=0), "n_features is 0"),
    "giant features": ("tree", at("n_features", put=2**62), "n_features is"),
    "fewer features": ("three", at("n_features", put=3), "a feature is not in"),
    "features a bool": ("tree", at("n_features", put=True), "n_features must be int"),
    "one class": ("tree", at("classes", "values", put=[1]), "there are 1 classes"),
    "falling classes": ("tree", at("classes", "values", put=[1, 0]), "the classes are not sorted"),
    "equal classes": ("tree", at("classes", "values", put=[1, 1]), "the classes are not sorted"),
    "classes without order": ("tree", at("classes", put={**LABELS, "values": ["a", 1]}), "'<' not supported"),
    "more classes": ("tree", at("classes", "values", put=[0, 1, 2]), "tree.total must be"),
    "too many classes": ("tree", at("classes", "values", put=list(range(2**16))), "there are 65536 classes"),
    "a name too few": ("tree", at("feature_names", "values", put=["a", "b", "c"]), "feature_names are not 4 strings"),
    "numbers for names": ("tree", at("feature_names", "values", put=[1, 2, 3, 4]), "feature_names are not 4 strings"),
    "numbers of names": ("tree", at("feature_names", put=NUMBERS), "feature_names are not 4 strings"),
    "categories a number": ("tree", at("categories", put=[1]), "categories are not in pairs"),
    "categories of text": ("tree", at("categories", put=[["2", NO_LABELS]]), "categories are not in pairs"),
    "categories beyond": ("tree", at("categories", put=[[4, NO_LABELS]]), "categories of feature 4"),
    "categories before": ("tree", at("categories", put=[[-1, NO_LABELS]]), "categories of feature -1"),
    "categories forgotten": ("tree", at("categories", put=[]), "a categorical split is on a numeric feature"),
    "seed a float": ("forest", at("seed", put=0.5), "seed must be int"),
    "negative seed": ("forest", at("seed", put=-1), "seed is -1"),
    "giant seed": ("forest", at("seed", put=2**63), "seed is"),
    "drawn a number": ("forest", at("drawn", put=[1]), "drawn is invalid"),
    "drawn texts": ("forest", at("drawn", put=[["a", [], True]]), "drawn has invalid numbers of rows"),
    "drawn negative": ("forest", at("drawn", put=[[10, [-1], True]]), "drawn has invalid numbers of rows"),
    "drawn anyhow": ("forest", at("drawn", put=[[10, [1], 1]]), "drawn does not say whether"),
    "NaN priors": ("forest", array("class_prior_", [np.nan, 1.0]), "class_prior_ are not class frequencies"),
    "negative prior": ("forest", array("class_prior_", [-1.0, 2.0]), "class_prior_ are not class frequencies"),
    "one prior": ("forest", array("class_prior_", [1.0]), "class_prior_ must be"),
    "priors that sum to 2": ("forest", array("class_prior_", [1.0, 1.0]), "class_prior_ are not class frequencies"),
    "infinite shrinkage": ("forest", array("shrinkage_", np.inf), "shrinkage_ is inf"),
    "NaN shrinkage": ("forest", array("shrinkage_", np.nan), "shrinkage_ is nan"),
    "NaN threshold": ("forest", array("threshold_", np.nan), "threshold_ is nan"),
    "a threshold of 2": ("forest", array("threshold_", 2.0), "threshold_ is 2.0"),
    "a negative threshold": ("forest", array("threshold_", -np.inf), "threshold_ is -inf"),
    "shares of two": ("forest", array("threshold_", [0.5, 0.5]), "threshold_ does not fit the classes"),
    "a number for three": ("three", array("threshold_", 0.5), "threshold_ does not fit the classes"),
    "infinite shares": ("three", array("threshold_", [0.5, 0.5, np.inf]), "threshold_ is not finite"),
    "costs of two": ("three", array("threshold_", np.ones((2, 2))), "threshold_ does not fit the classes"),
    "whole threshold": ("forest", array("threshold_", 1), "threshold_ must be float64"),
    "a probability of 2": ("forest", lambda arrays, _: arrays["oob_decision_function_"].fill(2.0), "not probabilities"),
    "a negative one": ("forest", lambda arrays, _: arrays["oob_decision_function_"].fill(-1.0), "not probabilities"),
    "probabilities of one": ("forest", array("oob_decision_function_", np.ones((5, 1))), "oob_decision_function_ must"),
    "scores": ("forest", array("oob_score_", [0.5]), "oob_score_ must be"),
    "no slope": ("forest", array("calibration", [0.0, 0.1, 9.0, 0.0, 0.0]), "the slope of the calibration"),
    "NaN slope": ("forest", array("calibration", [np.nan, 0.1, 9.0, 0.0, 0.0]), "the slope of the calibration"),
    "NaN intercept": ("forest", array("calibration", [1.0, 0.1, 9.0, 0.0, np.nan]), "calibration is not finite"),
    "infinite intercept": ("forest", array("calibration", [1.0, 0.1, 9.0, 0.0, np.inf]), "calibration is not finite"),
    "no class left": ("forest", array("calibration", [1.0, 0.1, 9.0, -np.inf, -np.inf]), "calibration is not finite"),
    "a negative error": ("forest", array("calibration", [1.0, -0.1, 9.0, 0.0, 0.0]), "the evidence of the calibration"),
    "NaN samples": ("forest", array("calibration", [1.0, 0.1, np.nan, 0.0, 0.0]), "the evidence of the calibration"),
    "no trees": ("tree", lambda arrays, _: arrays.pop("tree.feature"), "the array tree.feature is missing"),
    "a cycle": ("tree", lambda arrays, _: arrays["tree.pair"].fill(0), "does not come after its parent"),
    "a loss too few": ("linear", array("loss_curve_", [0.5]), "n_iter_ does not fit"),
    "negative iterations": ("linear", array("n_iter_", [-1, 1, 0]), "n_iter_ does not fit the losses"),
    "NaN coefficients": ("linear", lambda arrays, _: arrays["coef_"].fill(np.nan), "coef_ is not finite"),
    "infinite intercepts": ("linear", lambda arrays, _: arrays["intercept_"].fill(np.inf), "coef_ is not finite"),
    "coefficients of two": ("linear", lambda arrays, _: arrays.update(coef_=arrays["coef_"][:1]), "coef_ must be"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_models_are_refused(name, contents, tmp_path):
    model, change, message = HOSTILE[name]
    arrays, metadata = copy.deepcopy(contents[model])
    change(arrays, metadata)
    write_model(tmp_path / "model", arrays, metadata)
    with pytest.raises(ModelFormatError, match=message) as refused:
        aucforest.load(tmp_path / "model")
    assert str(refused.value).startswith(str(tmp_path / "model"))


def test_nothing_is_wrong_without_a_change(contents, tmp_path):
    for arrays, metadata in contents.values():
        write_model(tmp_path / "model", arrays, metadata)
        aucforest.load(tmp_path / "model")


def test_two_trees_are_no_tree(contents, tmp_path):
    (arrays, _), (_, metadata) = contents["three"], contents["tree"]
    metadata = {**metadata, "classes": contents["three"][1]["classes"], "n_features": 5, "categories": []}
    del metadata["feature_names"]
    trees = {name: array for name, array in arrays.items() if name.startswith("tree.")}
    write_model(tmp_path / "model", trees, metadata)
    with pytest.raises(ModelFormatError, match="AUCTreeClassifier has 6 trees instead of one"):
        aucforest.load(tmp_path / "model")


@pytest.mark.parametrize("depth", [300, 900, 5000, 10**5])
def test_deep_parameters_are_refused(depth, contents, tmp_path, monkeypatch):
    arrays, metadata = copy.deepcopy(contents["tree"])
    metadata["parameters"]["monotonic_cst"] = 12345
    text = json.dumps(metadata).replace("12345", "[" * depth + "]" * depth)
    monkeypatch.setattr("aucforest.persistence.model_file.json.dumps", lambda *_, **__: text)
    write_model(tmp_path / "model", arrays, {})
    try:
        aucforest.load(tmp_path / "model")
    except ModelFormatError:
        return
    assert depth == 300  # a list of lists is an array-like, and is refused by the next fit


@pytest.mark.parametrize("name", ["forest", "three", "tree", "linear"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_change_is_refused_or_makes_a_model_that_works(name, contents, tmp_path, data):
    arrays, metadata = copy.deepcopy(contents[name])
    for _ in range(data.draw(st.integers(1, 3))):
        changed = data.draw(st.sampled_from(sorted(name for name in arrays if arrays[name].size)))
        content = bytearray(arrays[changed].tobytes())
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        arrays[changed] = np.frombuffer(content, dtype=arrays[changed].dtype).reshape(arrays[changed].shape)
    write_model(tmp_path / "model", arrays, metadata)
    try:
        model = aucforest.load(tmp_path / "model")
    except ModelFormatError:
        return
    table = make_frame()[0] if name in ("forest", "tree") else make_table()[0]
    with np.errstate(over="ignore"):
        proba = model.predict_proba(table)
    assert np.all((proba >= 0.0) & (proba <= 1.0 + 1e-9))
    model.save(tmp_path / "again")
    with np.errstate(over="ignore"):
        assert_same_predictions(model, aucforest.load(tmp_path / "again"), table)


@pytest.mark.parametrize("name", ["forest", "three", "tree", "linear"])
def test_truncated_models_are_refused(name, contents, tmp_path):
    path = tmp_path / "model"
    write_model(path, *contents[name])
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFormatError):
            aucforest.load(path)


def test_flipped_bits_are_refused(contents, tmp_path):
    path = tmp_path / "model"
    write_model(path, *contents["forest"])
    content, rng = path.read_bytes(), np.random.default_rng(0)
    start = 8 + int.from_bytes(content[:8], "little")
    for place in rng.integers(start, len(content), 300).tolist():
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        with pytest.raises(ModelFormatError, match="the file is damaged"):
            aucforest.load(path)

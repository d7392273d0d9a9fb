"""Explanations against shap on exported trees, and against all subsets of features."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from scipy.special import logit
from sklearn.exceptions import NotFittedError

from aucforest import AUCStackingClassifier, LinearAUCClassifier
from aucforest.inspection import Reason, explain
from tests.estimators.data import make_table, small_forest, small_tree
from tests.estimators.stacks import fitted

X, Y = make_table(missing=0.1)
NEW, _ = make_table(60, seed=1, missing=0.1)


def make_frame(n_rows=300, n_towns=5):
    table, y = make_table(n_rows, 2, missing=0.1)
    rng, frame = np.random.default_rng(1), pd.DataFrame({"a": table[:, 0], "b": table[:, 1]})
    frame["town"] = rng.integers(0, n_towns, n_rows).astype(str)
    frame.loc[rng.random(n_rows) < 0.1, "town"] = None
    return frame, y ^ (frame["town"].isin(["1", "3"]).to_numpy() & (rng.random(n_rows) < 0.8))


MODELS = {
    "mixed": lambda: small_forest(20, calibration=None).fit(X, Y),
    "shrunk": lambda: small_forest(shrinkage=30.0).fit(X, Y),
    "unshrunk": lambda: small_forest(shrinkage=None, bootstrap=False).fit(X, Y),
    "weighted": lambda: small_forest(class_weight="balanced").fit(X, Y, np.linspace(0, 3, len(X))),
    "deep": lambda: small_forest(max_features=1).fit(*make_table(3000)),
    "many classes": lambda: small_forest().fit(*make_table(400, n_classes=5)),
    "single leaves": lambda: small_forest(min_samples_leaf=200).fit(X, Y), "a tree": lambda: small_tree().fit(X, Y),
    "balanced": lambda: small_forest(20, sampling="balanced").fit(X, Y * (np.arange(len(X)) % 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_values_equal_those_of_shap(name):
    shap, model = pytest.importorskip("shap"), MODELS[name]()
    exported = model.to_sklearn()
    explainer = shap.TreeExplainer(exported.estimator if name == "balanced" else exported)
    expected, base = explainer.shap_values(NEW.astype(np.float32)), explainer.expected_value
    found = explain(model, NEW, scale="probability")
    if len(model.classes_) == 2:
        expected, base = expected[..., 1], base[1]
    assert found.values.shape == expected.shape
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.base_values, np.broadcast_to(base, found.base_values.shape), rtol=0, atol=1e-9)


def test_probabilities_are_explained_before_calibration():
    forest = MODELS["balanced"]()
    found = explain(forest, NEW, scale="probability")
    before = np.mean([tree.predict_proba(NEW)[:, 1] for tree in forest.estimators_], axis=0)
    np.testing.assert_allclose(found.predictions, before, rtol=0, atol=1e-12)
    assert np.abs(found.predictions - forest.predict_proba(NEW)[:, 1]).max() > 0.1
    chosen = found.of_class(0)
    assert chosen.target == "mean probability of the trees of 0"
    np.testing.assert_allclose(chosen.predictions, 1 - before, rtol=0, atol=1e-12)
    np.testing.assert_allclose(chosen.probabilities, forest.predict_proba(NEW)[:, 0], rtol=0, atol=1e-15)


@pytest.mark.parametrize(("n_rows", "n_classes"), [(1, 3), (128, 2), (700, 3)])
def test_values_do_not_depend_on_threads_and_blocks(n_rows, n_classes):
    forest = small_forest(40).fit(*make_table(400, n_classes=n_classes))
    rows = np.tile(NEW, (12, 1))[:n_rows]
    one, two = (explain(forest, rows, n_jobs=n_jobs).values for n_jobs in (1, 2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one[-1], explain(forest, rows[-1:]).values[0])


def test_explanations_of_one_class():
    forest = MODELS["many classes"]()
    found = explain(forest, NEW)
    chosen = found.of_class(forest.predict(NEW))
    np.testing.assert_allclose(chosen.predictions, logit(chosen.probabilities), atol=1e-9)
    np.testing.assert_array_equal(chosen.probabilities, forest.predict_proba(NEW).max(axis=1))
    np.testing.assert_array_equal(found.of_class(3).values, found.values[..., 3])
    two = explain(MODELS["mixed"](), NEW)
    first = two.of_class(0)
    assert (two.target, first.target) == ("log odds of 1", "log odds of 0")
    np.testing.assert_array_equal(first.values, -two.values)
    np.testing.assert_allclose(first.predictions, -two.predictions, atol=1e-12)
    with pytest.raises(ValueError, match=r"^label has the label 7, which is not in labels$"):
        found.of_class(7)
    with pytest.raises(ValueError, match="a class was chosen before: the values add up to the log odds of 0"):
        first.of_class(0)
    for method in (found.top, found.plot, found.to_frame):
        with pytest.raises(ValueError, match=r"^the explanation is of 5 classes: choose one by of_class\(label\)$"):
            method()


def test_reasons_are_the_features_of_greatest_value():
    frame, y = make_frame()
    rows = frame[:40].copy()
    rows.loc[0, "town"], rows.loc[1, "a"] = "2", np.nan
    found = explain(small_forest(10).fit(frame, y), rows)
    for row, reasons in enumerate(found.top(2)):
        sizes = [abs(reason.contribution) for reason in reasons]
        assert sizes == sorted(np.abs(found.values[row]), reverse=True)[:2]
    by_name = [{reason.feature: reason for reason in reasons} for reasons in found.top(9)]
    assert by_name[0]["town"] == Reason("town", "2", found.values[0, 2])
    assert [by_name[1]["a"].value, by_name[2]["a"].value] == [None, rows["a"][2]]
    assert str(Reason("income", 1200.0, -0.0312)) == "income = 1200 (-0.031)"
    assert str(Reason("town", "York", 0.5)) == "town = York (+0.5)"
    assert str(Reason("town", None, 0.5)) == "town missing (+0.5)"
    assert explain(MODELS["single leaves"](), NEW[:2]).top() == [[], []]


def test_reasons_name_the_rarest_of_many_categories():
    frame, y = make_frame(4000, 300)
    forest = small_forest(4).fit(frame, y)
    towns = [str(forest.categories_[2][k]) for k in (-1, 0)]
    for town, reasons in zip(towns, explain(forest, pd.DataFrame({"a": 0.0, "b": 0.0, "town": towns})).top(3)):
        assert {reason.value for reason in reasons if reason.feature == "town"} <= {town}


def test_frames_and_selected_rows():
    frame, y = make_frame()
    found = explain(small_forest().fit(frame, y), frame[:9])
    pd.testing.assert_frame_equal(found.to_frame(), pd.DataFrame(found.values, columns=["a", "b", "town"]))
    for rows in (3, -6, slice(3, 4), np.arange(9) == 3, [3]):
        for name in ("values", "data", "base_values", "probabilities"):
            np.testing.assert_array_equal(getattr(found[rows], name), getattr(found, name)[3:4])


def test_bars_of_one_row():
    whole = explain(MODELS["mixed"](), NEW)
    with pytest.raises(ValueError, match="no rows to draw"):
        whole[:0].plot()
    found = whole[4]
    display = found.plot(max_features=2)
    widths = [bar.get_width() for bar in display.bars_]
    assert widths[:2] == [reason.contribution for reason in found.top(2)[0]]
    np.testing.assert_allclose(sum(widths), found.values.sum(), rtol=1e-12)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == [*(reason.condition for reason in found.top(2)[0]), "3 others"]
    before, after = display.ax_.get_xlabel().split("\n")
    assert before.startswith(f"log odds of 1: {found.predictions[0]:.3g}, from ")
    assert after == f"(predicted probability: {found.probabilities[0]:.3g})"
    assert len(found.plot(max_features=5).bars_) == 5


def test_dots_of_many_rows():
    frame, y = make_frame()
    found, axes = explain(small_forest().fit(frame, y), frame), pyplot.subplots()[1]
    display = found.plot(axes, max_features=3)
    assert display.ax_ is axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert sorted(names) == ["a", "b", "town"]
    for name, points in zip(names, display.points_):
        j = found.feature_names.index(name)
        np.testing.assert_array_equal(np.sort(points.get_offsets()[:, 0]), np.sort(found.values[:, j]))
        is_grey = np.all(points.get_facecolor() == 0.6, axis=1)
        assert np.count_nonzero(is_grey) == (len(frame) if name == "town" else frame[name].isna().sum())
    assert np.abs(found.values).mean(axis=0).argmax() == found.feature_names.index(names[0])


def test_invalid_arguments_are_refused_and_progress_is_shown(capsys):
    forest, kinds = MODELS["mixed"](), "an AUCForestClassifier, an AUCTreeClassifier or an AUCStackingClassifier"
    with pytest.raises(TypeError, match=f"^explain needs {kinds}, got LinearAUCClassifier$"):
        explain(LinearAUCClassifier(), X)
    for model in (small_forest(), AUCStackingClassifier()):
        with pytest.raises(NotFittedError):
            explain(model, X)
    found = explain(forest, NEW)
    for call, sentence in (
        (lambda: explain(forest, X, scale="logit"), r"^scale must be one of 'log_odds', 'probability', got 'logit'$"),
        (lambda: explain(forest, X[:, :4]), "X has 4 features, but AUCForestClassifier is expecting 5 features"),
        (lambda: found.top(0), r"^k must be an integer >= 1, got 0$"),
        (lambda: found.plot(max_features=0), r"^max_features must be an integer >= 1, got 0$"),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
    assert capsys.readouterr().err == ""
    explain(forest, NEW, verbose=1)
    assert "20/20" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "n_bytes", "n_classes"), [("forest", 40 * 5, 5), ("stack", 104, 2)])
def test_values_that_take_too_much_memory_are_refused_at_once(kind, n_bytes, n_classes, monkeypatch):
    model = MODELS["many classes"]() if kind == "forest" else fitted("two classes")[0]
    enough = 2 * n_bytes * 60 * 5
    monkeypatch.setattr("aucforest._memory.machine_memory", lambda: enough)
    explain(model, NEW)
    monkeypatch.setattr("aucforest._memory.machine_memory", lambda: enough - 1)
    monkeypatch.setattr("aucforest.inspection.explanation._mean_of_trees", None)
    sentence = f"^Shapley values of 60 rows, 5 features and {n_classes} classes would take .*: explain"
    with pytest.raises(ValueError, match=sentence):
        explain(model, NEW)

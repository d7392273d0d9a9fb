import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from aucforest.metrics import (
    GainsDisplay,
    RocCurveDisplay,
    auc_confidence_interval,
    compare_auc,
    gains_curve,
    recall_at_k,
    roc_confidence_band,
    roc_curve,
)

matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def rows():
    """Return three features, and labels that depend on the first one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, np.where(X[:, 0] + rng.normal(size=300) > 0, "yes", "no")


def test_roc_curve_of_one_model(rows):
    X, y = rows
    display = RocCurveDisplay.from_predictions(y, X[:, 0], name="first")
    entry = display.entries["first"]
    np.testing.assert_array_equal(display.lines_[0].get_xydata(), np.column_stack(roc_curve(y, X[:, 0])[:2]))
    auc, low, high = auc_confidence_interval(y, X[:, 0])
    assert entry.interval == (auc, low, high)
    assert display.lines_[0].get_label() == f"first: AUC {auc:.3f} [{low:.3f}, {high:.3f}]"
    np.testing.assert_array_equal(entry.band.low, roc_confidence_band(y, X[:, 0]).low)
    assert len(display.ax_.collections) == 1
    assert display.figure_ is display.ax_.figure


def test_roc_curves_of_several_models_and_their_paired_test(rows):
    X, y = rows
    _, ax = pyplot.subplots()
    display = RocCurveDisplay.from_predictions(
        y, {"a": X[:, 0], "b": X[:, 0] + X[:, 1]}, band="bootstrap", n_bootstrap=20, random_state=1, level=0.8, ax=ax
    )
    assert display.ax_ is ax
    assert display.entries["a"].comparison is None
    expected = compare_auc(y, X[:, 0] + X[:, 1], X[:, 0], level=0.8)
    assert display.entries["b"].comparison == expected
    assert f"{expected.difference:+.3f} (p = {expected.pvalue:.2g})" in display.lines_[1].get_label()
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == [line.get_label() for line in display.lines_]
    band = roc_confidence_band(y, X[:, 0], method="bootstrap", n_bootstrap=20, random_state=1, level=0.8)
    np.testing.assert_array_equal(display.entries["a"].band.high, band.high)


def test_roc_curves_of_classifiers(rows):
    X, y = rows
    models = {"logistic": LogisticRegression().fit(X, y), "ridge": RidgeClassifier().fit(X, y)}
    display = RocCurveDisplay.from_estimator(models, X, y, band=None)
    assert list(display.entries) == ["logistic", "ridge"]
    fpr, tpr, _ = roc_curve(y, models["ridge"].decision_function(X), pos_label="yes")
    np.testing.assert_array_equal(display.entries["ridge"].fpr, fpr)
    np.testing.assert_array_equal(display.entries["ridge"].tpr, tpr)
    fpr, _, _ = roc_curve(y, models["logistic"].predict_proba(X)[:, 1], pos_label="yes")
    np.testing.assert_array_equal(display.entries["logistic"].fpr, fpr)
    assert len(display.ax_.collections) == 0
    single = RocCurveDisplay.from_estimator(models["logistic"], X, y, band=None)
    assert list(single.entries) == ["LogisticRegression"]
    assert single.entries["LogisticRegression"].interval == display.entries["logistic"].interval


def test_invalid_scores_and_classifiers(rows):
    X, y = rows
    three, other = LogisticRegression().fit(X, np.arange(300) % 3), LogisticRegression().fit(X, y == "no")
    logistic, narrow = LogisticRegression().fit(X, y), LogisticRegression().fit(X, y)
    narrow.predict_proba = lambda X: np.ones((300, 1))
    for classifiers, labels, sentence in [
        (three, y, "2 classes, but has 3"),
        ({"a": logistic, "b": other}, y, "the same two classes"),
        (logistic, np.where(X[:, 1] > 1, "perhaps", y), "the label 'perhaps', which is not in labels"),
        (narrow, y, r"^LogisticRegression: predict_proba returned the shape \(300, 1\), but must"),
        ({}, y, "an empty mapping of classifiers"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            RocCurveDisplay.from_estimator(classifiers, X, labels)
    with pytest.raises(ValueError, match="empty mapping"):
        RocCurveDisplay.from_predictions(y, {})
    with pytest.raises(ValueError, match="kind must be one of 'gains', 'lift', but is 'loss'"):
        GainsDisplay.from_predictions(y, X[:, 0], kind="loss")


def test_gains_of_several_models(rows):
    X, y = rows
    display = GainsDisplay.from_predictions(y, {"a": X[:, 0], "b": X[:, 1]}, pos_label="yes")
    np.testing.assert_array_equal(
        display.lines_[1].get_xydata(), np.column_stack(gains_curve(y, X[:, 1], pos_label="yes")[:2])
    )
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["a", "b", "best possible", "random order"]
    assert display.prevalence == pytest.approx(np.mean(y == "yes"))
    assert display.ax_.get_ylabel() == "Recall"


def test_lift_is_recall_by_the_proportion(rows):
    X, y = rows
    _, ax = pyplot.subplots()
    display = GainsDisplay.from_predictions(y, X[:, 0], kind="lift", pos_label="yes", ax=ax)
    assert display.ax_ is ax
    curve, best, random = (line.get_xydata() for line in ax.get_lines())
    for proportion, lift in curve[::20]:
        assert lift == pytest.approx(recall_at_k(y, X[:, 0], float(proportion), pos_label="yes") / proportion)
    np.testing.assert_allclose(best[:, 1], np.minimum(1.0 / np.mean(y == "yes"), 1.0 / best[:, 0]))
    np.testing.assert_allclose(random[:, 1], 1.0)
    assert best[0, 0] == random[0, 0] == pytest.approx(1 / 300)


def test_from_estimator_takes_its_second_class(rows):
    X, y = rows
    model = LogisticRegression().fit(X, y)
    display = GainsDisplay.from_estimator(model, X, y)
    gain = gains_curve(y, model.predict_proba(X)[:, 1], pos_label="yes")[1]
    np.testing.assert_array_equal(display.curves["LogisticRegression"][1], gain)


def test_the_positive_label_is_that_of_the_classifiers(rows):
    X, y = rows
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"^pos_label must be 'yes', as in the classifiers, but is 'no'$"):
        GainsDisplay.from_estimator(model, X, y, pos_label="no")
    display = GainsDisplay.from_estimator(model, X, y, pos_label="yes", sample_weight=np.ones(300))
    assert display.prevalence == pytest.approx(np.mean(y == "yes"))
    model.pos_label_ = "no"
    mirrored = GainsDisplay.from_estimator(model, X, y, pos_label="no")
    assert mirrored.prevalence == pytest.approx(np.mean(y == "no"))
    proportion, gain = mirrored.curves["LogisticRegression"]
    assert np.all(gain >= proportion - 0.05)

import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from aucforest.metrics import GainsDisplay, gains_curve, recall_at_k

matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, np.where(X[:, 0] + rng.normal(size=300) > 1, "fraud", "clean")


def test_gains_of_several_models(rows):
    X, y = rows
    display = GainsDisplay.from_predictions(y, {"a": X[:, 0], "b": X[:, 1]}, pos_label="fraud")
    np.testing.assert_array_equal(
        display.lines_[1].get_xydata(), np.column_stack(gains_curve(y, X[:, 1], pos_label="fraud")[:2])
    )
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["a", "b", "best possible", "random order"]
    assert display.prevalence == pytest.approx(np.mean(y == "fraud"))
    assert display.ax_.get_ylabel() == "Recall"


def test_lift_is_recall_by_the_proportion(rows):
    X, y = rows
    _, ax = pyplot.subplots()
    display = GainsDisplay.from_predictions(y, X[:, 0], kind="lift", pos_label="fraud", ax=ax)
    assert display.ax_ is ax
    for proportion, lift in display.lines_[0].get_xydata()[::20]:
        assert lift == pytest.approx(recall_at_k(y, X[:, 0], float(proportion), pos_label="fraud") / proportion)


def test_lift_of_the_best_and_of_a_random_order(rows):
    X, y = rows
    ax = GainsDisplay.from_predictions(y, X[:, 0], kind="lift", pos_label="fraud").ax_
    _, best, random = (line.get_xydata() for line in ax.get_lines())
    share = np.mean(y == "fraud")
    np.testing.assert_allclose(best[:, 1], np.minimum(1.0 / share, 1.0 / best[:, 0]))
    np.testing.assert_allclose(random[:, 1], 1.0)
    assert best[0, 0] == random[0, 0] == pytest.approx(1 / 300)


def test_from_estimator_takes_its_second_class(rows):
    X, y = rows
    model = LogisticRegression().fit(X, y)
    display = GainsDisplay.from_estimator(model, X, y)
    gain = gains_curve(y, model.predict_proba(X)[:, 1], pos_label="fraud")[1]
    np.testing.assert_array_equal(display.curves["LogisticRegression"][1], gain)


def test_bad_options(rows):
    X, y = rows
    with pytest.raises(ValueError, match="kind must be one of 'gains', 'lift', but is 'loss'"):
        GainsDisplay.from_predictions(y, X[:, 0], kind="loss")
    with pytest.raises(ValueError, match="y_score is an empty mapping"):
        GainsDisplay.from_predictions(y, {})


def test_labels_and_classes_that_do_not_fit(rows):
    X, y = rows
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"^y_true has the label 'odd', which is not in labels$"):
        GainsDisplay.from_estimator(model, X, np.where(y == "clean", "odd", y))
    others = {"a": model, "b": LogisticRegression().fit(X, y == "fraud")}
    with pytest.raises(ValueError, match=r"^the classifiers must have the same two classes, but have "):
        GainsDisplay.from_estimator(others, X, y)
    with pytest.raises(ValueError, match=r"^pos_label must be 'fraud', as in the classifiers, but is 'clean'$"):
        GainsDisplay.from_estimator(model, X, y, pos_label="clean")
    with pytest.raises(ValueError, match=r"^estimator is an empty mapping of classifiers$"):
        GainsDisplay.from_estimator({}, X, y)
    display = GainsDisplay.from_estimator(model, X, y, pos_label="fraud", sample_weight=np.ones(300))
    assert display.prevalence == pytest.approx(np.mean(y == "fraud"))
    model.pos_label_ = "clean"
    mirrored = GainsDisplay.from_estimator(model, X, y, pos_label="clean")
    assert mirrored.prevalence == pytest.approx(np.mean(y == "clean"))
    proportion, gain = mirrored.curves["LogisticRegression"]
    assert np.all(gain >= proportion - 0.05)

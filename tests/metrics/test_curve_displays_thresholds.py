import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, f1_score, precision_score, recall_score

from aucforest.inspection import ThresholdCurveDisplay
from tests.estimators.data import make_table, small_forest

matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

X, Y3 = make_table(n_rows=200, n_classes=3)
Y = Y3 > 0
SCORE = (X[:, 0] + X[:, 1]).round(1)
WEIGHT = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_the_curves_are_scikit_learns_metrics_at_every_threshold(weight):
    y, score, weight = Y[:30], SCORE[:30], None if weight is None else weight[:30]
    display = ThresholdCurveDisplay.from_predictions(y, score, cost=[[-2, 1], [5, 0.5]], sample_weight=weight)
    np.testing.assert_array_equal(display.thresholds, np.unique(score))
    rows = []
    for threshold in display.thresholds:
        arguments = (y, threshold <= score)
        recall = recall_score(*arguments, sample_weight=weight)
        specificity = recall_score(*arguments, pos_label=False, sample_weight=weight)
        rest = [metric(*arguments, sample_weight=weight) for metric in (precision_score, f1_score)]
        tn, fp, fn, tp = confusion_matrix(*arguments, sample_weight=weight, normalize="all").ravel()
        rows.append(
            [rest[0], recall, specificity, np.sqrt(recall * specificity), rest[1], fp + 5.0 * fn - 2.0 * tn + 0.5 * tp]
        )
    np.testing.assert_allclose([*display.curves.values(), display.cost], np.transpose(rows), rtol=1e-12, atol=1e-15)
    assert list(display.curves) == ["precision", "recall", "specificity", "G-mean", "F1"]


def test_curves_cost_and_mark_are_drawn():
    ax = pyplot.subplots()[1]
    display = ThresholdCurveDisplay.from_predictions(Y, SCORE, threshold=0.5, cost=[[0, 1], [2, 0]], ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert [*display.curves, "cost"] == list(display.lines_)
    for name, line in display.lines_.items():
        np.testing.assert_array_equal(line.get_xdata(), display.thresholds)
        np.testing.assert_array_equal(line.get_ydata(), display.cost if name == "cost" else display.curves[name])
        assert line.get_drawstyle() == "steps-pre"
    assert display.lines_["cost"].axes is display.cost_ax_
    assert list(display.mark_.get_xdata()) == [0.5, 0.5]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [*display.lines_, "threshold 0.5"]


def test_from_a_forest_its_threshold_is_marked():
    forest = small_forest(threshold="f1").fit(X, Y)
    display = ThresholdCurveDisplay.from_estimator(forest, X, Y)
    assert display.threshold == forest.threshold_
    again = ThresholdCurveDisplay.from_predictions(Y, forest.predict_proba(X)[:, 1])
    np.testing.assert_array_equal(display.curves["F1"], again.curves["F1"])
    assert ThresholdCurveDisplay.from_estimator(forest, X, Y, threshold=0.25).threshold == 0.25
    forest = small_forest(threshold="f1", pos_label=0).fit(X, Y)
    display = ThresholdCurveDisplay.from_estimator(forest, X, Y)
    again = ThresholdCurveDisplay.from_predictions(Y == 0, forest.predict_proba(X)[:, 0])
    np.testing.assert_array_equal(display.curves["F1"], again.curves["F1"])


def test_from_any_classifier_of_two_classes():
    labels = np.where(Y, "b", "a")
    display = ThresholdCurveDisplay.from_estimator(LogisticRegression().fit(X, labels), X, labels)
    assert (display.cost_ax_, display.mark_, list(display.lines_)) == (None, None, list(display.curves))
    with pytest.raises(ValueError, match="the classifier must have 2 classes, but has 3"):
        ThresholdCurveDisplay.from_estimator(LogisticRegression().fit(X, Y3), X, Y3)


@pytest.mark.parametrize(
    ("y_true", "options", "sentence"),
    [
        ([1, 1], {}, "y_true must have two classes with positive total weight"),
        ([0, 1], {"sample_weight": [0, 1]}, "y_true must have two classes with positive total weight"),
        ([0, 1], {"cost": (1, 2)}, "cost must be a 2 x 2 matrix of finite numbers.*pass"),
        ([0, 1, 1], {}, "y_true has 3 samples, but y_score has 2"),
    ],
)
def test_invalid_labels_weights_and_costs(y_true, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        ThresholdCurveDisplay.from_predictions(y_true, [0.1, 0.2], **options)

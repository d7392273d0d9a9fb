import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import confusion_matrix

from aucforest.inspection import ThresholdCurveDisplay
from aucforest.metrics import GainsDisplay, RocCurveDisplay, gains_curve, recall_at_k, roc_curve
from aucforest.metrics.confidence import auc_confidence_interval, compare_auc, roc_confidence_band
from tests.estimators.data import make_table, small_forest

matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(300, 3))
Y = np.where(X[:, 0] + GENERATOR.normal(size=300) > 0, "yes", "no")


def test_roc_curve_of_one_model():
    display = RocCurveDisplay.from_predictions(Y, X[:, 0], name="first")
    entry, (line, *_) = display.entries["first"], display.lines_
    np.testing.assert_array_equal(line.get_xydata(), np.column_stack(roc_curve(Y, X[:, 0])[:2]))
    assert entry.interval == auc_confidence_interval(Y, X[:, 0])
    assert line.get_label() == "first: AUC {:.3f} [{:.3f}, {:.3f}]".format(*entry.interval)
    np.testing.assert_array_equal(entry.band.low, roc_confidence_band(Y, X[:, 0]).low)
    assert len(display.ax_.collections) == 1
    assert display.figure_ is display.ax_.figure


def test_roc_curves_of_several_models_and_their_paired_test():
    ax, scores = pyplot.subplots()[1], {"a": X[:, 0], "b": X[:, 0] + X[:, 1]}
    display = RocCurveDisplay.from_predictions(Y, scores, level=0.8, ax=ax)
    assert display.ax_ is ax
    assert display.entries["a"].comparison is None
    expected = compare_auc(Y, scores["b"], scores["a"], level=0.8)
    assert display.entries["b"].comparison == expected
    assert f"{expected.difference:+.3f} (p = {expected.pvalue:.2g})" in display.lines_[1].get_label()
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == [line.get_label() for line in display.lines_]
    band = roc_confidence_band(Y, X[:, 0], level=0.8)
    np.testing.assert_array_equal(display.entries["a"].band.high, band.high)


def test_roc_curves_of_classifiers():
    models = {"logistic": LogisticRegression().fit(X, Y), "ridge": RidgeClassifier().fit(X, Y)}
    display = RocCurveDisplay.from_estimator(models, X, Y, band=None)
    scores = {"logistic": models["logistic"].predict_proba(X)[:, 1], "ridge": models["ridge"].decision_function(X)}
    assert list(display.entries) == list(scores)
    for name, entry in display.entries.items():
        np.testing.assert_array_equal([entry.fpr, entry.tpr], roc_curve(Y, scores[name], pos_label="yes")[:2])
    assert len(display.ax_.collections) == 0
    single = RocCurveDisplay.from_estimator(models["logistic"], X, Y, band=None)
    assert list(single.entries) == ["LogisticRegression"]
    assert single.entries["LogisticRegression"].interval == display.entries["logistic"].interval


def test_invalid_scores_and_classifiers():
    three, other = LogisticRegression().fit(X, np.arange(300) % 3), LogisticRegression().fit(X, Y == "no")
    logistic, narrow = LogisticRegression().fit(X, Y), LogisticRegression().fit(X, Y)
    narrow.predict_proba = lambda X: np.ones((300, 1))
    for classifiers, labels, sentence in [
        (three, Y, "2 classes, but has 3"),
        (narrow, Y, r"^LogisticRegression: predict_proba returned the shape \(300, 1\), but must"),
        ({"a": logistic, "b": other}, Y, "the same two classes"),
        (logistic, np.where(X[:, 1] > 1, "perhaps", Y), "the label 'perhaps', which is not in labels"),
        (logistic, Y[:9], "^y_true has 9 samples, but X has 300$"),
        ({}, Y, "an empty mapping of classifiers"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            RocCurveDisplay.from_estimator(classifiers, X, labels)
    with pytest.raises(ValueError, match="empty mapping"):
        RocCurveDisplay.from_predictions(Y, {})
    with pytest.raises(ValueError, match=r"^band must be one of 'simultaneous', None, but is 'bootstrap'$"):
        RocCurveDisplay.from_predictions(Y, X[:, 0], band="bootstrap")
    with pytest.raises(ValueError, match="kind must be one of 'gains', 'lift', but is 'loss'"):
        GainsDisplay.from_predictions(Y, X[:, 0], kind="loss")


def test_gains_of_several_models():
    display = GainsDisplay.from_predictions(Y, {"a": X[:, 0], "b": X[:, 1]}, pos_label="yes")
    expected = np.column_stack(gains_curve(Y, X[:, 1], pos_label="yes")[:2])
    np.testing.assert_array_equal(display.lines_[1].get_xydata(), expected)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["a", "b", "best possible", "random order"]
    assert display.prevalence == pytest.approx(np.mean(Y == "yes"))
    assert display.ax_.get_ylabel() == "Recall"


def test_lift_is_recall_by_the_proportion():
    ax = pyplot.subplots()[1]
    assert GainsDisplay.from_predictions(Y, X[:, 0], kind="lift", pos_label="yes", ax=ax).ax_ is ax
    curve, best, random = (line.get_xydata() for line in ax.get_lines())
    for proportion, lift in curve[::20]:
        assert lift == pytest.approx(recall_at_k(Y, X[:, 0], float(proportion), pos_label="yes") / proportion)
    np.testing.assert_allclose(best[:, 1], np.minimum(1.0 / np.mean(Y == "yes"), 1.0 / best[:, 0]))
    np.testing.assert_allclose(random[:, 1], 1.0)
    assert best[0, 0] == random[0, 0] == pytest.approx(1 / 300)


def test_the_positive_label_is_that_of_the_classifiers():
    model, ridge = LogisticRegression().fit(X, Y), RidgeClassifier().fit(X, Y)
    with pytest.raises(ValueError, match=r"^pos_label must be 'yes', as in the classifiers, but is 'no'$"):
        GainsDisplay.from_estimator(model, X, Y, pos_label="no")
    for column, label in ((1, "yes"), (0, "no")):
        model.pos_label_ = ridge.pos_label_ = label
        display = GainsDisplay.from_estimator(model, X, Y, pos_label=label, sample_weight=np.ones(300))
        assert display.prevalence == pytest.approx(np.mean(label == Y))
        expected = gains_curve(Y, model.predict_proba(X)[:, column], pos_label=label)[:2]
        np.testing.assert_array_equal(display.curves["LogisticRegression"], expected)
        (entry,) = RocCurveDisplay.from_estimator(ridge, X, Y, band=None).entries.values()
        assert entry.interval == auc_confidence_interval(label == Y, (2 * column - 1) * ridge.decision_function(X))


TABLE, Y3 = make_table(n_rows=200, n_classes=3)
POSITIVE = Y3 > 0
SCORE = (TABLE[:, 0] + TABLE[:, 1]).round(1)
WEIGHT = np.random.default_rng(0).integers(1, 4, len(TABLE)).astype(float)


@pytest.mark.parametrize("weight", [None, WEIGHT[:30]])
def test_the_curves_are_those_of_scikit_learns_confusion_matrix_at_every_threshold(weight):
    y, score, rows = POSITIVE[:30], SCORE[:30], []
    display = ThresholdCurveDisplay.from_predictions(y, score, cost=[[-2, 1], [5, 0.5]], sample_weight=weight)
    np.testing.assert_array_equal(display.thresholds, np.unique(score))
    for threshold in display.thresholds:
        tn, fp, fn, tp = confusion_matrix(y, threshold <= score, sample_weight=weight, normalize="all").ravel()
        precision, recall, specificity = tp / (tp + fp), tp / (tp + fn), tn / (tn + fp)
        f1, cost = 2.0 * tp / (2.0 * tp + fp + fn), fp + 5.0 * fn - 2.0 * tn + 0.5 * tp
        rows.append([precision, recall, specificity, np.sqrt(recall * specificity), f1, cost])
    np.testing.assert_allclose([*display.curves.values(), display.cost], np.transpose(rows), rtol=1e-12, atol=1e-15)
    assert list(display.curves) == ["precision", "recall", "specificity", "G-mean", "F1"]


def test_curves_cost_and_mark_are_drawn():
    ax = pyplot.subplots()[1]
    display = ThresholdCurveDisplay.from_predictions(POSITIVE, SCORE, threshold=0.5, cost=[[0, 1], [2, 0]], ax=ax)
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


@pytest.mark.parametrize("pos_label", [1, 0])
def test_from_a_forest_its_threshold_is_marked(pos_label):
    forest = small_forest(threshold="f1", pos_label=pos_label).fit(TABLE, POSITIVE)
    display = ThresholdCurveDisplay.from_estimator(forest, TABLE, POSITIVE)
    assert display.threshold == forest.threshold_
    again = ThresholdCurveDisplay.from_predictions(pos_label == POSITIVE, forest.predict_proba(TABLE)[:, pos_label])
    np.testing.assert_array_equal(display.curves["F1"], again.curves["F1"])
    assert ThresholdCurveDisplay.from_estimator(forest, TABLE, POSITIVE, threshold=0.25).threshold == 0.25


@pytest.mark.parametrize(("y_true", "options", "sentence"), [
    ([1, 1], {}, "y_true must have two classes with positive total weight"),
    ([0, 1], {"sample_weight": [0, 1]}, "y_true must have two classes with positive total weight"),
    ([0, 1], {"cost": (1, 2)}, "cost must be a 2 x 2 matrix of finite numbers.*pass"),
])  # fmt: skip
def test_invalid_labels_weights_and_costs(y_true, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        ThresholdCurveDisplay.from_predictions(y_true, [0.1, 0.2], **options)

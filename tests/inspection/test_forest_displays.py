import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.metrics import roc_auc_score

from aucforest import AUCForestClassifier
from aucforest.estimators.out_of_bag import training_rows
from aucforest.inspection import MixtureDisplay, OOBCurveDisplay
from tests.estimators.data import make_table, small_forest, small_tree

X, Y3 = make_table(n_rows=300, n_classes=3)
Y = Y3 > 0


def test_points_are_scores_of_forests_of_fewer_trees():
    fixed = {"random_state": 3, "shrinkage": 5.0, "oob_score": True}
    forest = AUCForestClassifier(40, **fixed).fit(X, Y)
    display = OOBCurveDisplay.from_estimator(forest, X, Y, n_points=3)
    assert display.n_trees.tolist() == [1, 6, 40]
    with pytest.warns(UserWarning, match="samples are in the training sample of every one of the 6 trees"):
        small = AUCForestClassifier(6, **fixed).fit(X, Y)
    # The order of summation differs.
    np.testing.assert_allclose(display.scores[1:], [small.oob_score_, forest.oob_score_], rtol=1e-12)
    unseen = training_rows(forest, X, Y, None).counts(range(1))[:, 0] == 0
    expected = roc_auc_score(Y[unseen], forest.estimators_[0].predict_proba(X[unseen])[:, 1])
    assert display.scores[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "balanced_accuracy"])
def test_curves_of_other_scores_with_weights(scoring):
    weight, ax = np.random.default_rng(0).integers(0, 3, len(X)).astype(float), pyplot.subplots()[1]
    forest = AUCForestClassifier(60, random_state=0, oob_score=scoring).fit(X, Y3, sample_weight=weight)
    options = {"scoring": scoring, "sample_weight": weight, "n_points": 2, "ax": ax}
    display = OOBCurveDisplay.from_estimator(forest, X, Y3, **options)
    assert display.scores[-1] == pytest.approx(forest.oob_score_, rel=1e-12)
    assert display.ax_ is ax
    assert display.line_.get_xydata().tolist() == [[1, display.scores[0]], [60, display.scores[1]]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("number of trees", f"out-of-bag {scoring}")


@pytest.mark.parametrize(("model", "options", "sentence"), [
    (small_forest(), {"n_points": 1}, "n_points must be an integer >= 2, got 1"),
    (small_tree(), {}, "forest must be an AUCForestClassifier, got AUCTreeClassifier"),
])  # fmt: skip
def test_curves_of_other_models_or_data_are_refused(model, options, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        OOBCurveDisplay.from_estimator(model.fit(X, Y), **{"X": X, "y": Y, **options})


def test_a_bar_for_each_variant():
    forest = small_forest(50, criterion=["auc", "gini"]).fit(X, Y)
    display = MixtureDisplay.from_estimator(forest)
    assert display.names == ["auc, best", "gini, best", "auc, random", "gini, random"]
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], forest.mixture_["n_trees"] / 50)
    np.testing.assert_allclose(display.figure_.get_size_inches(), [6.4, 0.8 + 4 * 0.32])
    score, error = (forest.mixture_[name][0] for name in ("oob_score", "oob_score_std"))
    assert display.ax_.texts[0].get_text() == f"{score:.3f} ± {error:.3f}"
    axes = pyplot.subplots()[1]  # without scores there are no labels
    assert MixtureDisplay.from_estimator(small_forest(16, bootstrap=False).fit(X, Y), ax=axes).ax_ is axes
    assert [text.get_text() for text in axes.texts] == [""] * 8


def test_models_without_a_mixture_are_refused():
    with pytest.raises(ValueError, match="not mixed: criterion='gini', splitter='auto'"):
        MixtureDisplay.from_estimator(small_forest(criterion="gini").fit(X, Y))
    with pytest.raises(TypeError, match="AUCTreeClassifier"):
        MixtureDisplay.from_estimator(small_tree().fit(X, Y))

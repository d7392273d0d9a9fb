import matplotlib
import numpy as np
import pytest

from aucforest.inspection import MixtureDisplay
from tests.estimators.data import make_table, small_forest, small_tree

matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

X, Y = make_table(n_rows=200)


def test_a_bar_for_each_variant():
    forest = small_forest(50, criterion=["auc", "gini"]).fit(X, Y)
    display = MixtureDisplay.from_estimator(forest)
    assert display.names == ["auc, best", "gini, best", "auc, random", "gini, random"]
    widths = [bar.get_width() for bar in display.bars_]
    assert sum(widths) == pytest.approx(1.0)
    np.testing.assert_allclose(widths, forest.mixture_["n_trees"] / 50)
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts[0] == f"{forest.mixture_['oob_score'][0]:.3f} ± {forest.mixture_['oob_score_std'][0]:.3f}"


def test_variants_without_scores_have_none_drawn():
    axes = pyplot.subplots()[1]
    display = MixtureDisplay.from_estimator(small_forest(16, bootstrap=False).fit(X, Y), ax=axes)
    assert display.ax_ is axes
    assert [text.get_text() for text in axes.texts] == [""] * 8


def test_what_has_no_mixture():
    with pytest.raises(ValueError, match="not mixed: criterion='gini', splitter='auto'"):
        MixtureDisplay.from_estimator(small_forest(criterion="gini").fit(X, Y))
    with pytest.raises(TypeError, match="AUCTreeClassifier"):
        MixtureDisplay.from_estimator(small_tree().fit(X, Y))

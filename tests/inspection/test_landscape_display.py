import sys

import matplotlib
import numpy as np
import pytest

from aucforest import AUCTreeClassifier
from aucforest.inspection import CriterionLandscapeDisplay
from tests.estimators.data import make_table
from tests.reference import tree as reference

matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

NAMES = list(reference.GAINS)
TABLE, Y3 = make_table(n_rows=200, n_classes=3)
X = TABLE[:, 0].round(1)
Y = Y3 > 0


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


@pytest.mark.parametrize("y", [Y, Y3])
def test_every_cut_is_scored_as_the_definition_says(y):
    display = CriterionLandscapeDisplay.from_data(X, y, criteria=NAMES)
    values = np.unique(X)
    np.testing.assert_allclose(display.thresholds, (values[1:] + values[:-1]) / 2, rtol=1e-15)
    for cut, threshold in enumerate(display.thresholds):
        left, right = ([np.sum((y == k) & side) for k in np.unique(y)] for side in (threshold >= X, threshold < X))
        for name in NAMES:
            assert display.gains[name][cut] == pytest.approx(float(reference.GAINS[name](left, right)), rel=1e-12)
        np.testing.assert_allclose(display.right[cut], np.divide(right, np.add(left, right)), rtol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_the_best_cut_is_that_of_a_tree(name):
    display = CriterionLandscapeDisplay.from_data(X, Y, criteria=[name])
    stump = AUCTreeClassifier(criterion=name, max_depth=1, max_bins=None).fit(X[:, None], Y).tree_
    assert display.thresholds[display.best[name]] == stump.threshold[0]


def test_what_is_drawn():
    ax = pyplot.subplots()[1]
    y = np.where(Y, "yes", "no")
    display = CriterionLandscapeDisplay.from_data(X, y, criteria=["gini"], feature_name="width", ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    line, mark = ax.lines
    assert line is display.lines_["gini"]
    assert mark is display.marks_["gini"]
    np.testing.assert_array_equal(line.get_xdata(), display.thresholds)
    np.testing.assert_allclose(line.get_ydata(), display.gains["gini"] / display.gains["gini"].max())
    best = display.thresholds[display.best["gini"]]
    assert list(mark.get_xdata()) == [best, best]
    shares = f"{np.mean(X[~Y] > best):.0%} of no, {np.mean(X[Y] > best):.0%} of yes"
    assert line.get_label() == f"gini: best split sends {shares} right"
    assert ax.get_xlabel() == "threshold of width"


def test_a_criterion_of_ones_own():
    def distance(left, node):
        return abs(left[0] / node[0] - left[1] / node[1])

    display = CriterionLandscapeDisplay.from_data(X, Y, criteria=["auc", distance])
    np.testing.assert_allclose(display.gains["distance()"], 2 * display.gains["auc"], rtol=1e-12)


def test_a_feature_that_separates_nothing_is_drawn():
    display = CriterionLandscapeDisplay.from_data([0, 0, 1, 1], [0, 1, 0, 1])
    assert display.lines_["auc"].get_ydata().tolist() == [0.0]


@pytest.mark.parametrize(
    ("x", "y", "options", "sentence"),
    [
        ([1.0, np.nan, np.inf], [0, 1, 1], {}, "x has 2 missing or infinite values: remove these samples"),
        ([1.0, 1.0], [0, 1], {}, "x is constant and cannot be split: all 2 values are 1"),
        ([1.0, 2.0], [0, 1, 1], {}, "x has 2 samples, but y has 3"),
        ([1.0, 2.0], [1, 1], {}, "y has only one class, 1: at least 2 are needed"),
        ([1.0, 2.0], [0, 1], {"criteria": ["auc", "mse"]}, "criteria must be among .*, got 'mse'"),
        ([1.0, 2.0], [0, 1], {"criteria": "auc"}, "criteria must be a non-empty list of names, got 'auc'"),
    ],
)
def test_refusals(x, y, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        CriterionLandscapeDisplay.from_data(x, y, **options)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"plotting needs matplotlib: pip install aucforest\[plot\]"):
        CriterionLandscapeDisplay.from_data(X, Y)

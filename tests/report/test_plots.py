"""Plots: labels stay within the figure, and their letters are kept, even if no font has them."""

import re
import warnings

import numpy as np
import pytest

from aucforest.inspection import PermutationImportance
from aucforest.report import plots
from aucforest.report.data import read_training
from aucforest.report.importance import Dependence
from aucforest.report.rows import score_rows
from tests.estimators.data import make_table, small_forest

LONG = [f"a measurement of the sensor number {k} of the machine in the hall" for k in range(3)]


def importance_of_long_names():
    steps = np.array([[0.3], [0.2], [-0.1]])
    return plots.importance_plot(PermutationImportance(steps, np.ones(3), 0.7, 200, "roc_auc", tuple(LONG), 20))


def dependence_on_long_names():
    dependence = Dependence(LONG[0], LONG, np.array([[0.1], [0.2], [0.3]]), None)
    return plots.dependence_plot(dependence, {"yes": 0}, (0.0, 1.0), "mean probability")


def mixture():
    return plots.mixture_plot(small_forest(16).fit(*make_table(n_rows=200)))


@pytest.mark.parametrize("draw", [mixture, importance_of_long_names, dependence_on_long_names])
def test_no_label_reaches_beyond_its_figure(draw):
    with plots.drawing():
        figure = draw()
        figure.draw_without_rendering()
        drawn = figure.get_tightbbox()
    assert drawn.x0 >= -0.02
    assert drawn.x1 <= figure.get_figwidth() + 0.02


def test_long_names_are_told_apart():
    for figure in (importance_of_long_names(), dependence_on_long_names()):
        assert len({label.get_text() for label in figure.axes[0].get_yticklabels()}) == 3
    assert importance_of_long_names().axes[0].get_xlim() == (-1.0, 1.0)


def test_letters_of_other_scripts_stay_text():
    with plots.drawing(), warnings.catch_warnings():
        warnings.simplefilter("error")  # such as one that the font lacks letters
        figure, axes = plots._panels(3, 2)
        axes.barh(["東京", "Łódź", "a\x01b"], [1.0, 2.0, 3.0], label="大阪")
        axes.set_title("東京")
        axes.legend()
        drawn = plots.picture(figure, "bars", "Bars by city.")
    assert drawn.caption == "Bars by city."
    assert 'aria-label="Bars by city."' in drawn.svg
    texts = re.findall(r"<text .*?>(.*?)</text>", drawn.svg)
    assert texts.count("東京") == 2  # a tick and the title
    assert {"大阪", "Łódź", "a\N{REPLACEMENT CHARACTER}b"} < set(texts)  # control characters are replaced


@pytest.mark.parametrize("kind", ["roc", "gains", "reliability"])
def test_each_model_has_a_line_of_its_own_with_its_name(kind):
    X, y = make_table(n_rows=200)
    names = ["_forest", "$x$", LONG[0], LONG[1]]
    scored = {name: score_rows(small_forest(2 + i).fit(X, y), X, y, None, name) for i, name in enumerate(names)}
    with plots.drawing():
        (axes,) = plots.models_plot(scored, 1, kind).axes
    lines, dots = axes.get_lines()[1::2], axes.get_lines()[2::2]
    assert len(lines) == len({line.get_color() for line in lines}) == len({str(line._dash_pattern) for line in lines})
    for text, line, dot, name in zip(axes.texts, lines, dots, names):
        assert text.get_color() == line.get_color() == dot.get_color()
        assert text.get_text()[:6] == name[:6] or name in LONG
        assert text.xy == (dot.get_xdata()[0], dot.get_ydata()[0])
        assert np.interp(text.xy[0], *line.get_data()) == pytest.approx(text.xy[1])
    assert len({text.get_text() for text in axes.texts}) == 4


def test_numbers_of_trees_without_an_out_of_bag_row_of_a_class_are_not_drawn():
    X, _ = make_table(n_rows=200)
    for n_positives, n_drawn, weights in ((100, 7, np.arange(200.0) + 1.0), (2, 4, None)):
        y = (np.arange(200) < n_positives).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            forest = small_forest(8, oob_score=True, random_state=8).fit(X, y, weights)
        (line,) = plots.trees_plot(forest, read_training(forest, X, y, weights)).axes[0].get_lines()
        n_trees, scores = line.get_data()
        assert np.count_nonzero(np.isfinite(scores)) == n_drawn
        assert (n_trees[-1], scores[-1]) == (8, forest.oob_score_)

"""Pictures: names keep their letters, whatever fonts there are."""

import re
import warnings

import numpy as np
import pytest

from aucforest.inspection import PermutationImportance
from aucforest.report import plots
from aucforest.report.importance import Dependence
from tests.estimators.data import make_table, small_forest

LONG = [f"a measurement of the sensor number {k} of the machine in the hall" for k in range(3)]


def importance_of_long_names():
    steps = np.array([[0.3], [0.2], [-0.1]])
    return plots.importance_plot(PermutationImportance(steps, np.ones(3), 0.7, 200, "roc_auc", tuple(LONG), 20))


def dependence_on_long_names():
    dependence = Dependence(LONG[0], LONG, np.array([[0.1], [0.2], [0.3]]), None)
    return plots.dependence_plot(dependence, {"yes": 0}, (0.0, 1.0), "mean probability")


@pytest.mark.parametrize(
    "draw",
    [lambda: plots.mixture_plot(small_forest(16).fit(*make_table(n_rows=200))), importance_of_long_names,
     dependence_on_long_names],
    ids=["mixture", "importance", "dependence"],
)  # fmt: skip
def test_no_label_reaches_beyond_its_figure(draw):
    with plots.drawing():
        figure = draw()
        figure.draw_without_rendering()
        drawn = figure.get_tightbbox()
    assert drawn.x0 >= -0.02
    assert drawn.x1 <= figure.get_figwidth() + 0.02


def test_long_names_are_told_apart():
    for figure in (importance_of_long_names(), dependence_on_long_names()):
        labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert len(set(labels)) == 3
    assert importance_of_long_names().axes[0].get_xlim() == (-1.0, 1.0)


def test_letters_of_other_scripts_stay_text():
    with plots.drawing(), warnings.catch_warnings():
        warnings.simplefilter("error")  # of letters that the font does not have
        figure, axes = plots._panels(3, 2)
        axes.barh(["東京", "Łódź"], [1.0, 2.0], label="大阪")
        axes.set_title("東京")
        axes.legend()
        drawn = plots.picture(figure, "bars", "Bars by city.")
    assert drawn.caption == "Bars by city."
    assert 'aria-label="Bars by city."' in drawn.svg
    texts = re.findall(r"<text .*?>(.*?)</text>", drawn.svg)
    assert texts.count("東京") == 2  # a tick and the title
    assert {"大阪", "Łódź"} < set(texts)


def test_control_characters_of_names_are_replaced():
    with plots.drawing():
        figure, ax = plots._panels(3, 2)
        ax.bar(["a\x01b"], [1.0])
        svg = plots.as_svg(figure, "bars", "bars")
    assert "a\N{REPLACEMENT CHARACTER}b" in svg

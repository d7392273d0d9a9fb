"""Pictures: names keep their letters, whatever fonts there are."""

import re
import warnings

from aucforest.report import plots


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

"""Pictures: text that the font of the page lacks is in another font of the machine, or numbered and listed."""

import re
import warnings

import matplotlib as mpl
import pytest
from fontTools.ttLib import TTFont
from matplotlib import font_manager

from aucforest.report import plots


@pytest.fixture
def _fonts(monkeypatch):
    """Forget the fonts that a test adds, and show only those of matplotlib, whatever the machine has."""
    own = [entry for entry in font_manager.fontManager.ttflist if entry.fname.startswith(mpl.get_data_path())]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    plots._has.cache_clear(), plots._families_with.cache_clear()
    yield
    plots._has.cache_clear(), plots._families_with.cache_clear()


def picture():
    """Return a picture with letters that DejaVu lacks in a title, a legend and ticks; missing glyphs are errors."""
    with plots.drawing(), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure, axes = plots._panels(3, 2)
        axes.barh(["東京", "Łódź"], [1.0, 2.0], label="大阪")
        axes.set_yticks([0, 1], ["東京", "Łódź"])
        axes.set_title("東京")
        axes.legend()
        return plots.picture(figure, "bars", "Bars by city.")


@pytest.mark.usefixtures("_fonts")
def test_text_without_a_font_is_numbered_and_listed():
    drawn = picture()
    assert drawn.caption == "Bars by city. In this picture: [1] 東京; [2] 大阪."
    assert f'aria-label="{drawn.caption}"' in drawn.svg
    texts = re.findall(r"<text .*?>(.*?)</text>", drawn.svg)
    assert texts.count("[1]") == 2  # a tick and the title
    assert {"[2]", "Łódź"} < set(texts)


@pytest.mark.usefixtures("_fonts")
def test_a_font_of_the_machine_is_taken(tmp_path):
    font = TTFont(font_manager.findfont("DejaVu Sans"))
    for table in font["cmap"].tables:
        table.cmap = {ord(letter): "A" for letter in "東京大阪"}
    for record in font["name"].names:
        record.string = "Test Script"
    font.save(tmp_path / "script.ttf")
    font_manager.fontManager.addfont(tmp_path / "script.ttf")
    drawn = picture()
    assert drawn.caption == "Bars by city."
    assert drawn.svg.count("'DejaVu Sans', 'Test Script'") == 3
    assert {"東京", "大阪", "Łódź"} < set(re.findall(r"<text .*?>(.*?)</text>", drawn.svg))


def test_control_characters_of_names_are_replaced():
    with plots.drawing(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a letter that the font does not have
        figure, ax = plots._panels(3, 2)
        ax.bar(["a\x01b"], [1.0])
        svg = plots.as_svg(figure, "bars", "bars")
    assert "a\N{REPLACEMENT CHARACTER}b" in svg

"""Text that the font of the page lacks is in another font of the machine, or numbered and listed below the picture."""

import re
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from fontTools.ttLib import TTFont
from matplotlib import font_manager

from aucforest.report import glyphs, plots, report
from tests.estimators.data import small_forest


@pytest.fixture
def _fonts(monkeypatch):
    """Forget the fonts that a test adds, and show only those of matplotlib, whatever the machine has."""
    own = [entry for entry in font_manager.fontManager.ttflist if entry.fname.startswith(mpl.get_data_path())]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    glyphs._has.cache_clear(), glyphs._families_with.cache_clear()
    yield
    glyphs._has.cache_clear(), glyphs._families_with.cache_clear()


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


@pytest.mark.usefixtures("_fonts")
def test_a_page_in_another_script():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"金額": rng.normal(size=200), "都市": rng.choice(["東京", "大阪"], 200)})
    y = np.where(X["金額"] > 0.5, "解約", "継続")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Glyph")
        page = report(small_forest().fit(X, y), X, y, n_bootstrap=2, n_repeats=1, random_state=0).html
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert not any(re.search(r"<text [^>]*>[^<]*[東大金解]", each) for each in pictures)
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert sum("[1] 金額" in caption for caption in captions) >= 1
    assert any("東京" in caption and "大阪" in caption for caption in captions)

"""The form of numbers, and a page that is well made whatever the names are."""

import re

import numpy as np
import pytest

from aucforest.report import report
from aucforest.report.page import interval, number, percent, signed
from tests.estimators.data import small_forest
from tests.report.pages import QUICK, TEST, TRAIN, Page, X, Y


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1.0, "1"), (0.88412, "0.884"), (0.00751, "0.0075"), (-8.26e-5, "−0.000083"), (12.365, "12.37"),
     (3.9e-5, "0.000039"), (1e-7, "1.0 × 10⁻⁷"), (-2.5e-12, "−2.5 × 10⁻¹²"),
     (1234.56, "1,235"), (-2.0, "−2"), (float("nan"), "–"), (float("inf"), "∞"), (-float("inf"), "−∞")],
)  # fmt: skip
def test_numbers_are_printed_to_a_few_digits_and_without_exponents(value, text):
    assert number(value) == text


def test_shares_and_differences():
    assert [percent(share) for share in (0.0, 1.0, 0.5, 0.0321, 0.00044)] == [
        "0.0 %", "100.0 %", "50.0 %", "3.2 %", "0.044 %",
    ]  # fmt: skip
    assert interval(-0.25, 0.75, signed) == "−0.250 to +0.750"
    assert interval(float("nan"), float("nan"), signed) == "–"


def test_names_of_strangers_are_text():
    """Classes and title are code; missing values are counted."""
    x = X.copy()
    x[300:350, 2] = np.nan
    classes = np.array(["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)> & $x_{$"])
    model = small_forest().fit(x[TRAIN], classes[Y[TRAIN]])
    html = report(model, x[TEST], classes[Y[TEST]], title="<i>t</i>", **QUICK).html
    page = Page(html)
    assert page.headings[0] == "<i>t</i>"
    assert {tag for tag, _ in page.tags} & {"img", "i"} == set()
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 2
    assert html.count("</script>") == 2
    assert [cells[2] for cells in page.tables["The 5 columns"][1:]] == ["0.0 %", "0.0 %", "25.0 %", "0.0 %", "0.0 %"]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_page_is_well_made(n_classes, forest_page, page_of_three):
    html = (forest_page if n_classes == 2 else page_of_three).html
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    targets = re.findall(r'(?:href="|url\()#([^")]+)', html)
    assert set(targets) <= set(page.ids)
    assert all(len(alt) > 20 for alt in page.alts)
    assert [tag for tag, _ in page.tags if tag in ("h1", "main", "nav", "header", "footer")] == [
        "header", "h1", "nav", "main", "footer",
    ]  # fmt: skip
    labelled = {attributes["for"] for tag, attributes in page.tags if tag == "label"}
    assert {attributes["id"] for tag, attributes in page.tags if tag == "input"} == labelled
    assert not re.search(r'(?:src|href)="(?!#|data:)', html)
    assert len(html.encode()) < 1e6

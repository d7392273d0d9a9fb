"""Numbers and names as text, and the HTML of pages."""

import re

import numpy as np
import pytest

from aucforest.report import report
from aucforest.report.page import estimate, number, numbers, percent, shorten, shortened, signed
from tests.estimators.data import small_forest
from tests.report.pages import BARE, TEST, TRAIN, Page, X, Y


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1.0, "1"), (0.88412, "0.884"), (0.00751, "0.0075"), (-8.26e-4, "−0.00083"), (12.365, "12.37"),
     (-8.5e-6, "−8.5 × 10⁻⁶"), (1e-7, "1.0 × 10⁻⁷"), (-2.5e-12, "−2.5 × 10⁻¹²"),
     (1234.56, "1,235"), (-2.0, "−2"), (float("nan"), "–"), (float("inf"), "∞"), (-float("inf"), "−∞")],
)  # fmt: skip
def test_numbers_are_printed_to_a_few_digits(value, text):
    assert number(value) == text


def test_percentages_have_more_digits_near_both_ends():
    assert [percent(share) for share in (0.0, 1.0, 0.5, 0.0321, 0.00044, 0.97, 0.99956)] == [
        "0.0 %", "100.0 %", "50.0 %", "3.2 %", "0.044 %", "97.0 %", "99.956 %",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "cells"),
    [((0.25, -0.25, 0.75, signed), ["+0.250", "−0.250 to +0.750"]),
     ((8.5e-6, -0.0046, 0.0047, signed), ["0.0000", "−0.0046 to +0.0047"]),
     ((-8.5e-6, -0.0046, 0.0047, signed), ["0.0000", "−0.0046 to +0.0047"]),
     ((0.93121, 0.93082, 0.93160, number), ["0.93121", "0.93082 to 0.93160"]),
     ((0.998, 0.9, 1.0, number), ["0.998", "0.900 to 1.000"]),
     ((8.5e-6, 8e-6, 9e-6, signed), ["+8.5 × 10⁻⁶", "+8.0 × 10⁻⁶ to +9.0 × 10⁻⁶"]),
     ((0.0052, 0.00077, 0.006, percent), ["0.52 %", "0.08 % to 0.60 %"]),
     ((0.6, 0.234, 0.881, percent), ["60.0 %", "23.4 % to 88.1 %"]),
     ((0.5, float("nan"), float("nan"), number), ["0.500", "–"]), ((1.0, 1.0, 1.0, number), ["1", "1 to 1"]),
     ((0.1, 0.0, 0.2, signed, 0.004), ["+0.1000", "0.0000 to +0.2000"])],
)  # fmt: skip
def test_estimates_have_the_digits_of_their_intervals_or_of_a_given_width(arguments, cells):
    assert estimate(*arguments) == cells


def test_different_numbers_look_different():
    assert numbers([0.12341, 0.12342, 5.0]) == ["0.12341", "0.12342", "5"]
    assert numbers([1.0, 0.25]) == ["1", "0.250"]


def test_shortened_names_are_distinct():
    assert shortened("measurement_1_in_the_hall", 12) == "measur…_hall"
    names = [f"measurement_{k}_in_the_hall" for k in range(20)]
    short = shorten(names, 16)
    assert max(map(len, short)) == 16
    assert len(set(short)) == 20
    assert shorten(names, 99) == names
    assert shorten([f"{'a' * 40}{k}{'b' * 40}" for k in "cd"], 9) == ["…aaacbbb…", "…aaadbbb…"]
    assert shorten([*(f"{'a' * 40}{k}{'b' * 40}" for k in "cd"), "x"], 9) == ["…aaacbbb…", "…aaadbbb…", "x"]
    assert shorten(["a" * 40, "b" * 40, "c"], 9) == ["aaaa…aaaa", "bbbb…bbbb", "c"]


def test_names_are_escaped():
    classes = np.array(["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)> & $x_{$"])
    model = small_forest().fit(X[TRAIN], classes[Y[TRAIN]])
    html = report(model, X[TEST], classes[Y[TEST]], title="<i>t</i>", **BARE).html
    page = Page(html)
    assert page.headings[0] == "<i>t</i>"
    assert {tag for tag, _ in page.tags} & {"img", "i"} == set()
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 2
    assert html.count("</script>") == 2


@pytest.mark.parametrize("n_classes", [2, 3])
def test_ids_links_and_labels_of_the_page(n_classes, forest_page, page_of_three):
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

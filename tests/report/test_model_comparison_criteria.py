"""Pages on a comparison of split criteria."""

import numpy as np
import pytest

from aucforest.inspection import compare_criteria
from aucforest.report import report
from tests.report.pages import Page, X, Y, figures, printed


@pytest.fixture(scope="module")
def comparison():
    options = {"cv": 3, "metrics": ["roc_auc", "fit_seconds", "brier"], "n_estimators": 5}
    return compare_criteria(X, Y, criteria=["auc", "gini"], verbose=0, random_state=0, **options)


def test_a_comparison_is_shown_with_its_tests(comparison, tmp_path):
    page = report(comparison, title="Criteria")
    with pytest.raises(ValueError, match=r"^the report of a comparison takes no rows"):
        report(comparison, X, Y)
    with pytest.raises(OSError, match="nowhere"):
        page.save(tmp_path / "nowhere" / "page.html")
    assert list(tmp_path.iterdir()) == []
    page.save(tmp_path / "page.html")
    shown = Page((tmp_path / "page.html").read_text())
    assert shown.headings == ["Criteria", "At a glance", "Metrics", "Fit time and sizes of trees"]
    assert comparison.verdict() in (tmp_path / "page.html").read_text()
    first = comparison.summary()[0]
    cells = figures(shown, "ROC AUC (more is better)")["auc"]
    assert printed(cells[0]) == pytest.approx(first.mean, abs=5e-4)
    assert printed(cells[2]) == pytest.approx(first.difference, abs=5e-4)
    assert cells[4] == first.pvalue_text.removeprefix("p = ").removeprefix("p ")
    assert figures(shown, "Brier score (less is better)")["gini"][2:] == ["–", "–", "–"]
    assert shown.tables["fit time in seconds (less is better)"][0][-1] == "95 % interval"  # without p-values


def test_a_comparison_with_a_stack_says_what_it_compares():
    how = {"cv": 2, "metrics": ["roc_auc"], "n_estimators": 25, "verbose": 0, "random_state": 0}
    page = report(compare_criteria(X, Y, criteria=["stack"], **how)).html
    assert "Forests that differ only in the split criterion, and a stack of a forest, on the same 2 folds" in page


def test_criteria_that_are_equal_on_every_fold_have_no_intervals():
    x = np.linspace(-1, 1, 60)[:, None]
    comparison = compare_criteria(
        x, x[:, 0] > 0, criteria=["auc"], cv=3, metrics=["roc_auc"], n_estimators=10, verbose=0, random_state=0
    )
    page = Page(report(comparison).html)
    assert figures(page, "ROC AUC (more is better)") == {"auc": ["1", "–", "0", "–", "1"], "gini": ["1", *"––––"]}

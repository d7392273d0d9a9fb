"""The sections of a report on a comparison of split criteria."""

from aucforest._optional import import_optional
from aucforest.inspection.comparison import BASELINE, ComparisonRow, CriteriaComparison
from aucforest.inspection.scoring import METRICS
from aucforest.report.page import Section, Table, interval, number, signed, signed_interval
from aucforest.report.plots import picture


def comparison_sections(comparison: CriteriaComparison) -> list[Section]:
    """Return the picture, and a table a metric."""
    pyplot = import_optional("matplotlib.pyplot", purpose="a report", extra="report")
    figure = comparison.plot()
    caption = "Every fold as a faint dot, the means and their 95 % intervals; an arrow says which end is better."
    drawn = picture(figure, "criteria", caption)
    pyplot.close(figure)
    rows = comparison.summary()
    tables = [_table(metric, [row for row in rows if row.metric == metric]) for metric in comparison.metrics]
    lead = (
        f"Forests that differ in nothing but the split criterion, on the same {len(comparison.folds)} folds; "
        f"differences are from {BASELINE}, tested by Nadeau and Bengio's corrected resampled t-test, not adjusted for "
        "the number of comparisons."
    )
    return [
        Section("picture", "At a glance", lead, [drawn], []),
        Section("figures", "Figures", "Means over folds with 95 % intervals.", [], tables),
    ]


def comparison_facts(comparison: CriteriaComparison) -> list[tuple[str, str]]:
    """Return what stands below the title."""
    n_train, n_test = (round(float(comparison.folds[name].mean())) for name in ("n_train", "n_test"))
    return [
        ("Criteria", ", ".join(comparison.criteria)),
        ("Folds", str(len(comparison.folds))),
        ("Rows a fold", f"{n_train:,} for training, {n_test:,} for testing"),
    ]


def _table(metric: str, rows: list[ComparisonRow]) -> Table:
    """Return the figures of a metric, a row a criterion."""
    better = "more" if METRICS[metric].higher_is_better else "less"
    body = []
    for row in rows:
        is_baseline = row.criterion == BASELINE
        body.append([
            row.criterion, number(row.mean), interval(row.low, row.high),
            "–" if is_baseline else signed(row.difference),
            "–" if is_baseline else signed_interval(row.difference_low, row.difference_high),
            row.pvalue_text.removeprefix("p ").removeprefix("= ") or "–",
        ])  # fmt: skip
    columns = ["criterion", "mean", "95 % interval", f"difference from {BASELINE}", "95 % interval", "p"]
    return Table(f"{METRICS[metric].title} ({better} is better)", columns, body, "lrrrrr")

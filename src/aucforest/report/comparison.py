"""The sections of a report on a comparison of split criteria."""

from aucforest._optional import import_optional
from aucforest.inspection.comparison import BASELINE, STACK, ComparisonRow, CriteriaComparison
from aucforest.inspection.scoring import find_metric
from aucforest.report import plots
from aucforest.report.page import Section, Table, interval, number, signed


def comparison_sections(comparison: CriteriaComparison) -> list[Section]:
    """Return the sections: a plot, and a table for each metric."""
    pyplot = import_optional("matplotlib.pyplot", purpose="a report", extra="report")
    figure = comparison.plot()
    caption = (
        f"Differences from {BASELINE} on each fold, and their means with 95 % intervals. Arrows point to better values."
    )
    drawn = plots.picture(figure, "criteria", caption)
    pyplot.close(figure)
    rows, means = comparison.summary(), "Means over folds with 95 % intervals."
    tables = {
        metric: _criteria_table(metric, [row for row in rows if row.metric == metric]) for metric in comparison.metrics
    }
    stack = " and a stack of a forest," if STACK in comparison.criteria else ""
    lead = (
        f"Forests that differ only in the split criterion,{stack} on the same {len(comparison.folds)} folds; "
        f"differences are from {BASELINE}, tested by Nadeau and Bengio's corrected resampled t-test, with p-values "
        "adjusted for the number of criteria by Holm's method."
    )
    of_quality = [tables.pop(metric) for metric in comparison.metrics_of_quality]
    if of_quality:
        lead = f"{comparison.verdict()} {lead}"
    sections = [Section("picture", "At a glance", lead, [drawn], [])]
    for place, heading, some in (
        ("metrics", "Metrics", of_quality),
        ("costs", "Fit time and sizes of trees", list(tables.values())),
    ):
        if some:
            sections.append(Section(place, heading, means, [], some))
    return sections


def comparison_facts(comparison: CriteriaComparison) -> dict[str, str]:
    """Return the subtitle."""
    n_train, n_test = (round(float(comparison.folds[name].mean())) for name in ("n_train", "n_test"))
    return {
        "Criteria": ", ".join(comparison.criteria),
        "Folds": str(len(comparison.folds)),
        "Rows per fold": f"{n_train:,} for training, {n_test:,} for testing",
    }


def _criteria_table(metric: str, rows: list[ComparisonRow]) -> Table:
    """Return the means of a metric by criterion."""
    better = "more" if find_metric(metric).higher_is_better else "less"
    body = []
    for row in rows:
        difference, pvalue = ["–", "–"], row.pvalue_text.removeprefix("p ").removeprefix("= ") or "–"
        if row.criterion != BASELINE:
            difference = [signed(row.difference), interval(row.difference_low, row.difference_high, signed)]
        body.append([row.criterion, number(row.mean), interval(row.low, row.high), *difference, pvalue])
    columns = ["criterion", "mean", "95 % interval", f"difference from {BASELINE}", "95 % interval", "p"]
    return Table(f"{find_metric(metric).title} ({better} is better)", columns, body, "lrrrrr")

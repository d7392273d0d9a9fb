"""The sections on a comparison of split criteria."""

from aucforest._optional import import_optional
from aucforest.inspection.comparison import BASELINE, STACK, ComparisonRow, CriteriaComparison
from aucforest.inspection.scoring import find_metric
from aucforest.report.page import Section, Table, estimate, signed
from aucforest.report.plots import picture


def criteria_sections(comparison: CriteriaComparison) -> list[Section]:
    """Return the sections of the page: a plot, and a table for each metric."""
    pyplot = import_optional("matplotlib.pyplot", purpose="a report", extra="report")
    figure = comparison.plot()
    caption = (
        f"Differences from {BASELINE} on each fold, and their means with 95 % intervals. Arrows point to better values."
    )
    drawn = picture(figure, "criteria", caption)
    pyplot.close(figure)
    quality, costs = list[Table](), list[Table]()
    for metric in comparison.metrics:
        rows = [row for row in comparison.summary() if row.metric == metric]
        tables = quality if metric in comparison.metrics_of_quality else costs
        tables.append(differences_table(metric, rows, "criterion", BASELINE))
    stack = " and a stack of a forest," if STACK in comparison.criteria else ""
    lead = (
        f"Forests that differ only in the split criterion,{stack} on the same {len(comparison.folds)} folds; "
        f"differences are from {BASELINE}, tested by Nadeau and Bengio's corrected resampled t-test, with p-values "
        "adjusted for the number of criteria by Holm's method."
    )
    if quality:
        lead = f"{comparison.verdict()} {lead}"
    means = "Means over folds with 95 % intervals."
    sections = [Section("picture", "At a glance", lead, [drawn])]
    if quality:
        sections.append(Section("metrics", "Metrics", means, tables=quality))
    if costs:
        sections.append(Section("costs", "Fit time and sizes of trees", means, tables=costs))
    return sections


def criteria_facts(comparison: CriteriaComparison) -> dict[str, str]:
    """Return the facts of the subtitle: criteria, number of folds, and rows per fold."""
    n_train, n_test = (round(float(comparison.folds[name].mean())) for name in ("n_train", "n_test"))
    return {
        "Criteria": ", ".join(comparison.criteria),
        "Folds": str(len(comparison.folds)),
        "Rows per fold": f"{n_train:,} for training, {n_test:,} for testing",
    }


def differences_table(metric: str, rows: list[ComparisonRow], of: str, baseline: str) -> Table:
    """Return a table of a metric by criterion or model, and of the differences from a baseline."""
    found, value = find_metric(metric), "mean" if of == "criterion" else "value"
    columns = [of, value, "95 % interval", f"difference from {baseline}", "95 % interval", "p"]
    columns = columns[:-1] if found.of == "cost" else columns
    body = []
    for row in rows:
        difference, pvalue = ["–", "–"], "–"
        if row.criterion != baseline:
            difference = estimate(row.difference, row.difference_low, row.difference_high, signed)
            pvalue = "< 0.001" if row.adjusted_pvalue < 0.001 else f"{row.adjusted_pvalue:.2g}".replace("nan", "–")
        cells = [row.criterion, *estimate(row.mean, row.low, row.high), *difference, pvalue]
        body.append(cells[: len(columns)])
    return Table(f"{found.title} ({'more' if found.higher_is_better else 'less'} is better)", columns, body)

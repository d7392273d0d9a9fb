"""The sections on a comparison of split criteria."""

from aucforest._optional import import_optional
from aucforest.inspection.comparison import BASELINE, STACK, ComparisonRow, CriteriaComparison
from aucforest.inspection.scoring import find_metric
from aucforest.report.page import Section, Table, estimate, signed
from aucforest.report.plots import picture


def criteria_sections(comparison: CriteriaComparison) -> list[Section]:
    """Return the sections: a plot, and a table for each metric."""
    pyplot = import_optional("matplotlib.pyplot", purpose="a report", extra="report")
    figure = comparison.plot()
    caption = (
        f"Differences from {BASELINE} on each fold, and their means with 95 % intervals. Arrows point to better values."
    )
    drawn = picture(figure, "criteria", caption)
    pyplot.close(figure)
    tables = dict[str, Table]()
    for metric in comparison.metrics:
        rows = [row for row in comparison.summary() if row.metric == metric]
        tables[metric] = differences_table(metric, rows, "criterion", BASELINE)
    stack = " and a stack of a forest," if STACK in comparison.criteria else ""
    lead = (
        f"Forests that differ only in the split criterion,{stack} on the same {len(comparison.folds)} folds; "
        f"differences are from {BASELINE}, tested by Nadeau and Bengio's corrected resampled t-test, with p-values "
        "adjusted for the number of criteria by Holm's method."
    )
    of_quality = [tables.pop(metric) for metric in comparison.metrics_of_quality]
    if of_quality:
        lead = f"{comparison.verdict()} {lead}"
    means = "Means over folds with 95 % intervals."
    sections = [
        Section("picture", "At a glance", lead, [drawn], []),
        Section("metrics", "Metrics", means, [], of_quality),
        Section("costs", "Fit time and sizes of trees", means, [], list(tables.values())),
    ]
    return [section for section in sections if section.plots or section.tables]


def criteria_facts(comparison: CriteriaComparison) -> dict[str, str]:
    """Return the subtitle."""
    n_train, n_test = (round(float(comparison.folds[name].mean())) for name in ("n_train", "n_test"))
    return {
        "Criteria": ", ".join(comparison.criteria),
        "Folds": str(len(comparison.folds)),
        "Rows per fold": f"{n_train:,} for training, {n_test:,} for testing",
    }


def differences_table(metric: str, rows: list[ComparisonRow], of: str, baseline: str) -> Table:
    """Return the means of a metric by criterion or model, and the differences from a baseline."""
    body, is_tested = [], find_metric(metric).of != "cost"
    for row in rows:
        difference, pvalue = ["–", "–"], "–"
        if row.criterion != baseline:
            difference = estimate(row.difference, row.difference_low, row.difference_high, signed)
            pvalue = "< 0.001" if row.adjusted_pvalue < 0.001 else f"{row.adjusted_pvalue:.2g}".replace("nan", "–")
        cells = [row.criterion, *estimate(row.mean, row.low, row.high), *difference, pvalue]
        body.append(cells if is_tested else cells[:-1])
    columns = [of, "mean" if of == "criterion" else "value", "95 % interval", f"difference from {baseline}"]
    columns += ["95 % interval", "p"][: 1 + is_tested]
    better = "more" if find_metric(metric).higher_is_better else "less"
    return Table(f"{find_metric(metric).title} ({better} is better)", columns, body, "lrrrrr"[: len(columns)])

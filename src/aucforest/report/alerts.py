"""The section on alerts: precision, recall and lift among the rows with the highest scores."""

from collections.abc import Iterable

from aucforest.metrics import MetricsAtK, metrics_at_k
from aucforest.report import plots
from aucforest.report.page import Section, Table, interval, number, percent
from aucforest.report.rows import ScoredRows

_PER_1000 = (1, 2, 5, 10, 20, 50, 100, 200, 500)


def top_rows(rows: ScoredRows, k: int, level: float) -> MetricsAtK:
    """Return the metrics of the k rows with the highest scores; with weights, of the same proportion of the weight."""
    scored = rows.labels == 1, rows.scores[:, 1]
    return metrics_at_k(*scored, k / rows.labels.size, level=level, sample_weight=rows.sample_weight)


def alert_depths(n_rows: int, per_1000: Iterable[int] = _PER_1000) -> dict[int, int]:
    """Return pairs of alerts per 1,000 rows and the corresponding number of rows, if it is at least one."""
    return {each: round(n_rows * each / 1000) for each in per_1000 if n_rows * each >= 1000}


def alerts_section(rows: ScoredRows, level: float) -> Section:
    """Return cumulative gains, lift, and a table by the number of alerts."""
    positive, of = rows.classes[1], rows.of_classes[1]
    body = []
    for per_1000, k in alert_depths(rows.labels.size).items():
        found = top_rows(rows, k, level)
        cells = [f"{k:,}"]
        for value, low, high in (found.precision, found.recall):
            cells += [percent(value), interval(low, high, percent)]
        body.append([f"{per_1000}", *cells, f"{found.lift[0]:.1f}", number(found.threshold)])
    sure = "95 % interval"
    columns = ["alerts per 1,000 rows", "k", "precision at k", sure, "recall at k", sure, "lift", "lowest score"]
    table = Table("The k rows with the highest scores", columns, body, "lrrrrrrr")
    gains = f"Cumulative gains: the proportion of all rows {of} found among the rows with the highest scores."
    lift = f"Lift: how many times more frequent rows {of} are among those with the highest scores than among all."
    drawn = [
        plots.picture(
            plots.gains_plot(rows), "gains", f"{gains} The dot is the threshold chosen below.", cursor="point"
        ),
        plots.picture(plots.lift_plot(rows), "lift", lift),
    ]
    lead = f"What is found if only the rows with the highest scores are alerted on; {positive} is the positive class."
    return Section("alerts", "Alerts", lead, drawn, [table] if body else [])

"""What the rows with the highest scores hold: precision at k, recall and lift by the number of alerts."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from aucforest.metrics.intervals import normal_quantile, score_interval
from aucforest.report import plots
from aucforest.report.metrics import cumulate_class
from aucforest.report.page import Section, Table, interval, number, percent
from aucforest.report.rows import ScoredRows

_PER_1000 = (1, 2, 5, 10, 20, 50, 100, 200, 500)


class Alerts(NamedTuple):
    """The k rows with the highest scores: how pure they are, and what proportion of all positives they hold."""

    k: int
    precision: float
    low: float
    high: float
    recall: float
    lift: float
    score: float  # the lowest of them


def count_alerts(rows: ScoredRows, k: int, level: float) -> Alerts:
    """Count the k rows with the highest scores; of rows with equal scores the mean over all orders is taken.

    Given the scores, labels are independent, so Wilson's interval is right for precision at k, if a little wide.
    """
    proportion = k / rows.labels.size
    cumulated = cumulate_class(rows, 1)
    alerted = cumulated.tps + cumulated.fps
    weight = proportion * alerted[-1]
    found = float(np.interp(weight, alerted, cumulated.tps))
    precision, recall = found / weight, found / cumulated.tps[-1]
    dispersion = float(np.square(rows.weights).sum() / alerted[-1] ** 2) / proportion
    bounds = score_interval(precision, dispersion, normal_quantile(level))
    score = float(cumulated.thresholds[np.searchsorted(alerted, weight * (1.0 - 1e-12))])
    return Alerts(k, precision, *bounds, recall, recall / proportion, score)


def alert_depths(n_rows: int, per_1000: Iterable[int] = _PER_1000) -> dict[int, int]:
    """Return numbers of alerts per 1,000 rows, and how many of the rows these are, where that is one or more."""
    return {each: round(n_rows * each / 1000) for each in per_1000 if n_rows * each >= 1000}


def alerts_section(rows: ScoredRows, level: float) -> Section:
    """Return cumulative gains, lift, and a table by the number of alerts."""
    positive = rows.classes[1]
    body = []
    for per_1000, k in alert_depths(rows.labels.size).items():
        found = count_alerts(rows, k, level)
        bounds = interval(found.low, found.high, percent)
        cells = f"{k:,}", percent(found.precision), bounds, percent(found.recall), f"{found.lift:.1f}"
        body.append([f"{per_1000}", *cells, number(found.score)])
    columns = ["alerts per 1,000 rows", "k", "precision at k", "95 % interval", "recall", "lift", "lowest score"]
    table = Table("The k rows with the highest scores", columns, body, "lrrrrrr")
    gains = f"Cumulative gains: the proportion of all {positive} rows found among the rows with the highest scores."
    lift = f"Lift: how many times more frequent {positive} is among the rows with the highest scores than among all."
    drawn = [
        plots.picture(
            plots.gains_plot(rows), "gains", f"{gains} The dot is the threshold chosen below.", cursor="point"
        ),
        plots.picture(plots.lift_plot(rows), "lift", lift),
    ]
    lead = f"What is found if only the rows with the highest scores are alerted on; {positive} is the positive class."
    return Section("alerts", "Alerts", lead, drawn, [table] if body else [])

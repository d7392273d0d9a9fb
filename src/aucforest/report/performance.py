"""The sections on performance, as text, tables and plots: summary, limits, curves, alerts, thresholds, subgroups."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.columns.categorical import names_of
from aucforest.inspection import PermutationImportance
from aucforest.metrics import GroupRates, MetricsAtK, average_precision_score, metrics_at_k, roc_confidence_band
from aucforest.metrics.confidence import auc_with_interval
from aucforest.metrics.group_rates import PredictedRows, compare_groups, rate_estimate
from aucforest.metrics.intervals import normal_quantile, tails
from aucforest.metrics.thresholds import error_costs
from aucforest.metrics.validation import are_missing, positive_last
from aucforest.report import plots
from aucforest.report.data import as_array, as_numbers, column_arrays
from aucforest.report.importance import columns_in_order
from aucforest.report.metrics import LEVEL, compute_metrics, find_thresholds, reliability, top_proportion
from aucforest.report.page import Section, Table, estimate, number, numbers, percent, shorten, signed
from aucforest.report.rows import FloatArray, ScoredRows

_INTERVAL = "95 % interval"
_PER_1000 = (1, 2, 5, 10, 20, 50, 100, 200, 500)  # the table of alerts has these numbers of alerts per 1,000 rows
_MOST_GROUPS = 10  # maximum number of groups of a column
_MOST_GROUPED = 2  # maximum number of grouping columns if none are given
_MOST_LETTERS = 40  # maximum length of the name of a group
_LEAST = 10  # minimum number of rows of a class for its metrics in a group

Groups = dict[str, NDArray[Any]]  # grouping columns by name; see `_group_masks` for the groups


def summary_section(rows: ScoredRows, resamples: dict[str, FloatArray]) -> Section:
    """Return the section with a summary in plain words, and the metrics of the model and of a model without skill."""
    metrics = compute_metrics(rows, resamples)
    auc = metrics[0]
    delong = "The interval of the ROC AUC is a score interval with DeLong's variance, the others are"
    value, interval = estimate(auc.value, auc.low, auc.high)
    confidence = "" if np.isnan(auc.low) else f", with 95 % confidence {interval}"
    points = [
        f"ROC AUC {value}{confidence}; a model without skill has 0.5. "
        f"{delong if len(rows.classes) == 2 else 'Intervals are'} percentiles of {len(resamples['g_mean'])} stratified "
        "bootstrap samples."
    ]
    if rows.sample_weight is not None:
        points.append("Rows count by their weights.")
    body = [
        [metric.name, *estimate(metric.value, metric.low, metric.high), number(metric.no_skill), metric.meaning]
        for metric in metrics
    ]
    columns = ["metric", "model", _INTERVAL, "no skill", "meaning"]
    caption = "Metrics on these rows, beside those of a model that only knows the class frequencies"
    tables = [Table(caption, columns, body, "lrrrl")]
    if len(rows.classes) > 2:
        tables.append(_by_class(rows))
        body = [[name, *map(number, cells)] for name, cells in zip(rows.classes, rows.confusion)]
        columns = ["true class", *(f"predicted {name}" for name in rows.classes)]
        tables.append(Table("Confusion matrix of the labels that the model predicts", columns, body))
    return Section("summary", "Summary", _headline(rows, auc.value), tables=tables, points=points)


def _headline(rows: ScoredRows, auc: float) -> str:
    """Return a summary in plain words of the ROC AUC and of the labels that the model predicts."""
    matrix, totals = rows.confusion, rows.totals
    if len(rows.classes) > 2:
        return (
            f"The model ranks {percent(auc)} of all pairs of rows of two classes rightly; guessing: 50 %. The class "
            f"that it predicts is right for {percent(float(np.trace(matrix) / totals.sum()))} of the rows."
        )
    label, phrase = rows.classes[1], rows.row_phrases[1]
    text = (
        f"A row {phrase} has a higher score than another row in {percent(auc)} of all such pairs (ROC AUC); guessing "
        "gives 50 %."
    )
    per_1000 = round(1000 * top_proportion(rows))
    if k := alert_counts(rows.labels.size).get(per_1000):
        top = metrics_of_top(rows, k)
        text += (
            f" Of the {per_1000 // 10} % of rows with the highest scores, {percent(top.precision[0])} are {phrase}, "
            f"against {percent(float(rows.frequencies[1]))} of all rows; they hold {percent(top.recall[0])} of all "
            f"rows {phrase}."
        )
    positive = float(matrix[:, 1].sum())
    text += f" The model predicts {label} for {percent(positive / float(totals.sum()))} of the rows"
    if not positive:
        return f"{text}."
    precision, recall = percent(float(matrix[1, 1]) / positive), percent(float(matrix[1, 1] / totals[1]))
    return f"{text}: this is right for {precision} of them, and finds {recall} of all rows {phrase}."


def use_section(rows: ScoredRows, intended_use: str | None, overlap: str, has_groups: bool) -> Section:
    """Return the section on intended use and limits; `overlap` says whether the rows are training rows."""
    points = [
        f"Intended use: {intended_use or 'not stated by the author of this page.'}",
        f"All metrics are estimates from {rows.labels.size:,} rows. They hold for new rows that come from the same "
        "source. Where class frequencies change, so do precision, lift and calibration.",
        overlap,
        "Feature importance and partial dependence describe the model. They do not show causes.",
    ]
    if rows.sample_weight is None and (few := rows.totals[rows.present].min()) < 100:
        points.insert(2, f"The rarest class has {few:.0f} rows only, so its metrics are uncertain: see the intervals.")
    if not rows.is_probability:
        points.append("The scores are no probabilities; only their order and the threshold mean something.")
    if not has_groups:
        points.append("Performance in subgroups was not evaluated.")
    lead = "What the model is for, and what this page does not say."
    return Section("use", "Intended use and limits", lead, points=points)


def _by_class(rows: ScoredRows) -> Table:
    confusion, body = rows.confusion, []
    n_predicted = confusion.sum(axis=0)
    for k in rows.present:
        is_class, score = rows.labels == k, rows.scores[:, k]
        auc, low, high = auc_with_interval(is_class, score, rows.sample_weight)
        area, hit = average_precision_score(is_class, score, sample_weight=rows.sample_weight), confusion[k, k]
        recall, precision = float(hit / rows.totals[k]), float(hit / n_predicted[k]) if n_predicted[k] else np.nan
        cells = [rows.classes[k], percent(float(rows.frequencies[k])), *estimate(auc, low, high)]
        body.append([*cells, number(area), number(recall), number(precision)])
    columns = ["class", "frequency", "ROC AUC", _INTERVAL, "average precision", "recall", "precision"]
    return Table("Each class against all others", columns, body)


def ranking_section(rows: ScoredRows, resamples: dict[str, FloatArray]) -> Section:
    """Return the section on ROC and precision-recall curves."""
    classes, is_binary = plots.drawn_classes(rows), len(rows.classes) == 2
    subject = rows.classes[1] if is_binary else "each class against all others"
    captions = [
        f"ROC curve of {subject}: true positive rate (recall) against false positive rate.",
        f"Precision-recall curve of {subject}: precision against recall, over all thresholds.",
    ]
    roc_band = precision_band = None
    if is_binary:
        precision_band = np.quantile(resamples["precision"], tails(LEVEL), axis=0)
        captions[1] += " The band covers the precision at any one recall with 95 % confidence."
        if rows.sample_weight is None:
            roc_band = roc_confidence_band(rows.labels == 1, rows.scores[:, 1], level=LEVEL)
            captions[0] += (
                " The band covers the whole true curve with 95 % confidence. In the corners, where the curve "
                "ends, it has no limit because there are too few rows."
            )
        captions = [f"{caption} The dot is at the threshold that is chosen below." for caption in captions]
    lead = "How well the scores rank the rows, at all thresholds."
    if not is_binary and len(classes) < len(rows.present):
        lead += f" The {len(classes)} most frequent classes are drawn."
    cursor = "point" if is_binary else None
    roc, pr = plots.roc_plot(rows, classes, roc_band), plots.precision_recall_plot(rows, classes, precision_band)
    drawn = [plots.picture(roc, "roc", captions[0], cursor=cursor), plots.picture(pr, "pr", captions[1], cursor=cursor)]
    return Section("ranking", "Ranking", lead, drawn)


def metrics_of_top(rows: ScoredRows, k: int) -> MetricsAtK:
    """Return metrics of the k rows with the highest scores; with weights, these have k / n_rows of the total weight."""
    proportion = k / rows.labels.size
    return metrics_at_k(rows.labels == 1, rows.scores[:, 1], proportion, level=LEVEL, sample_weight=rows.sample_weight)


def alert_counts(n_rows: int) -> dict[int, int]:
    """Return a mapping from alerts per 1,000 rows to the number of alerts, without numbers below one."""
    return {rate: round(n_rows * rate / 1000) for rate in _PER_1000 if n_rows * rate >= 1000}


def alerts_section(rows: ScoredRows) -> Section:
    """Return the section on cumulative gains, and precision, recall and lift by the number of alerts."""
    positive, phrase = rows.classes[1], rows.row_phrases[1]
    body = []
    for per_1000, k in alert_counts(rows.labels.size).items():
        top = metrics_of_top(rows, k)
        cells = [*estimate(*top.precision, percent), *estimate(*top.recall, percent)]
        body.append([f"{per_1000}", f"{k:,}", *cells, f"{top.lift[0]:.1f}", number(top.threshold)])
    columns = ["alerts per 1,000 rows", "k", "precision at k", _INTERVAL, "recall at k", _INTERVAL]
    table = Table("The k rows with the highest scores", [*columns, "lift", "lowest score"], body)
    gains = (
        f"Cumulative gains: the proportion of all rows {phrase} found among the rows with the highest scores. The dot "
        "is the threshold chosen below."
    )
    drawn = [plots.picture(plots.gains_plot(rows), "gains", gains, cursor="point")]
    lead = f"What is found if only the rows with the highest scores are alerted on; {positive} is the positive class."
    return Section("alerts", "Alerts", lead, drawn, [table] if body else ())


def calibration_section(rows: ScoredRows) -> Section:
    """Return the section on calibration."""
    classes, is_binary = plots.drawn_classes(rows), len(rows.classes) == 2
    bins = {rows.classes[k]: reliability(rows, k) for k in classes}
    caption = "Observed frequencies against mean predicted probabilities; on the diagonal they agree."
    if is_binary:
        caption += (
            " Whiskers are 95 % intervals. The proportions of both classes that fall into a bin have about the same "
            "sum in all bins."
        )
    drawn = [plots.picture(plots.reliability_plot(bins), "reliability", caption)]
    tables = []
    if is_binary:
        caption = f"Distribution of the predicted probability of {rows.classes[1]}, for the rows of each class."
        drawn.append(plots.picture(plots.score_plot(rows), "scores", caption))
        body = [
            [f"{number(bin_.least)} to {number(bin_.most)}", f"{bin_.n_rows:,}", number(bin_.mean),
             *estimate(bin_.observed, bin_.low, bin_.high)]
            for bin_ in bins[rows.classes[1]]
        ]  # fmt: skip
        columns = ["probability", "rows", "mean probability", "observed frequency", _INTERVAL]
        tables.append(Table("The bins of the calibration curve", columns, body))
    mean = np.average(rows.scores[:, classes], axis=0, weights=rows.weights)
    k = int(np.argmax(np.abs(mean - rows.frequencies[classes])))
    name, frequency = rows.classes[classes[k]], float(rows.frequencies[classes[k]])
    lead = (
        f"Whether predicted probabilities agree with observed frequencies. The mean probability of {name} is "
        f"{percent(float(mean[k]))}, its frequency {percent(frequency)}."
    )
    calibration = getattr(rows.model, "calibration_", None)
    if calibration is not None and calibration.n_samples > 0:
        lead += (
            f" The forest multiplies its log odds by a slope of {number(calibration.slope)} (standard error "
            f"{number(calibration.slope_std)}), fitted to {calibration.n_samples:,} out-of-bag samples."
        )
    return Section("calibration", "Calibration", lead, drawn, tables)


def threshold_section(rows: ScoredRows, cost: FloatArray | None) -> Section:
    """Return the section with the threshold explorer; `cost` has the classes in the order of the model."""
    thresholds, order = find_thresholds(rows), positive_last(rows.model)
    negative, positive = rows.classes
    alt = f"Recall, specificity, precision, G-mean and F1 of {positive} at each of {thresholds.tp.size} thresholds."
    model_sentence = "The labels that the model predicts follow no single threshold."
    if thresholds.model_threshold is not None:
        model_sentence = f"The model's own threshold is {number(thresholds.model_threshold)}."
    explorer = {
        "svg": plots.picture(plots.thresholds_plot(thresholds), "cuts", alt, cursor="line").svg,
        "data": {  # for the script of the page
            "thresholds": [*thresholds.thresholds[:-1].tolist(), None],  # in place of infinity
            "tp": thresholds.tp.tolist(),
            "fp": thresholds.fp.tolist(),
            "own": thresholds.model_index,
            "cost": None if cost is None else list(error_costs(cost[np.ix_(order, order)])),
        },
        "start": thresholds.start,
        "model_sentence": model_sentence,
        "aims": _aims(rows.model),
        "negative": negative,
        "positive": positive,
        "of_positive": rows.row_phrases[1],
    }
    lead = f"Metrics{' and alerts' if cost is None else ', alerts and costs'} at any threshold, on these rows."
    return Section("thresholds", "Thresholds", lead, explorer=explorer)


def _aims(model: Any) -> dict[str, float]:
    """Return the initial values in the explorer: maximum alerts per 1,000 rows, minimum precision and recall."""
    rule, aims = getattr(model, "threshold", None), {"alerts": 10.0, "precision": 0.5, "recall": 0.8}
    for name, bound in rule.items() if isinstance(rule, dict) else ():
        if name in aims and isinstance(bound, float):  # an integer counts alerts in the training rows
            aims[name] = 1000.0 * bound if name == "alerts" else bound
    return aims


def read_grouping_columns(by: Any, rows: ScoredRows, sample_weight: ArrayLike | None) -> Groups | None:
    """Return the grouping columns, given by name or as arrays, without rows of weight 0; None if `by` is None."""
    if by is None:
        return None
    by = [by] if isinstance(by, str) else by
    if not (isinstance(by, Mapping) or hasattr(by, "columns")):
        columns = column_arrays(rows.X)
        for name in by:
            if name not in columns:
                raise ValueError(f"by names {name!r}, which is no column of X_test")
        return {name: columns[name] for name in by}
    groups = {str(name): as_array(by[name]) for name in names_of(by) or by}
    kept = np.ones(rows.labels.size, np.bool_) if sample_weight is None else np.asarray(sample_weight) != 0.0
    for name, values in groups.items():
        if len(values) != len(kept):
            raise ValueError(f"by has {len(values)} values of {name!r}, but y_test has {len(kept)} rows")
    return {name: values[kept] for name, values in groups.items()}


def default_groups(rows: ScoredRows, importance: PermutationImportance | None) -> Groups:
    """Return the most important columns with few categories or, without importances, the first such columns."""
    columns, groups = list(column_arrays(rows.X).items()), Groups()
    if importance is not None and columns:
        columns = [columns[j] for j in columns_in_order(importance, rows.model, len(columns))]
    for name, values in columns:
        is_number = values.dtype.kind not in "Mm" and as_numbers(values) is not None
        if not is_number and 2 <= len({str(value) for value in values.tolist()}) <= _MOST_GROUPS:
            groups[name] = values
        if len(groups) == _MOST_GROUPED:
            break
    return groups


def subgroups_section(rows: ScoredRows, groups: Groups) -> Section:
    """Return the section with tables of metrics, and of differences, for each grouping column."""
    lead = (
        "Performance in parts of the rows. Where intervals of two groups overlap widely, these rows do not tell their "
        "performance apart."
    )
    if len(rows.classes) > 2:
        return Section("subgroups", "Subgroups", lead, tables=[_accuracies(rows, *item) for item in groups.items()])
    lead += f" The ROC AUC is not given for fewer than {_LEAST} rows of a class; rates are those of predicted labels."
    if rows.is_probability:
        lead += (
            f" Calibration is the mean predicted probability of {rows.classes[1]} minus its frequency in the group: "
            "above 0, probabilities are too high."
        )
    tables, points = [], []
    proba = rows.scores[:, 1] if rows.is_probability else None
    for name, values in groups.items():
        rates = rates_by(values, rows.labels == 1, rows.predicted == 1, proba, rows.sample_weight)
        tables += _rate_tables(rows, name, values, rates)
        points.append(f"By {name}: {rates.verdict()}")
    return Section("subgroups", "Subgroups", lead, tables=tables, points=points)


def rates_by(
    values: NDArray[Any],
    positive: NDArray[np.bool_],
    selected: NDArray[np.bool_],
    proba: FloatArray | None,
    weights: FloatArray | None,
) -> GroupRates:
    """Return the rates of the groups of a column by `compare_groups`; see `_group_masks` for the groups."""
    names, masks = zip(*_group_masks(values))
    rows = PredictedRows(positive, selected, proba, weights)
    return compare_groups(list(names), np.argmax(masks, axis=0), rows, level=LEVEL)


def _accuracies(rows: ScoredRows, name: str, values: NDArray[Any]) -> Table:
    is_right, body = rows.predicted == rows.labels, []
    for group, inside in _group_masks(values):
        n_rows, cells = np.count_nonzero(inside), ["too few", "–"]
        if n_rows >= _LEAST:
            accuracy = rate_estimate(is_right[inside], rows.weights[inside])
            cells = estimate(*accuracy.interval(normal_quantile(LEVEL)), percent)
        body.append([group, f"{n_rows:,}", *cells])
    return Table(f"Performance by {name}", [name, "rows", "accuracy", _INTERVAL], body)


def _rate_tables(rows: ScoredRows, name: str, values: NDArray[Any], rates: GroupRates) -> list[Table]:
    body, differences = dict[str, list[str]](), dict[str, list[str]]()
    positive, titles = rows.labels == 1, list(dict.fromkeys(rate.title for rate in rates.rates))
    for group, inside in _group_masks(values):
        n_positive, n_rows, auc = np.count_nonzero(positive[inside]), np.count_nonzero(inside), "too few"
        if min(n_positive, n_rows - n_positive) >= _LEAST:
            weights = None if rows.sample_weight is None else rows.sample_weight[inside]
            auc = _in_one_cell(*auc_with_interval(positive[inside], rows.scores[inside, 1], weights))
        body[group] = [group, f"{n_rows:,}", f"{n_positive:,} ({percent(n_positive / n_rows)})", auc]
    for rate in rates.rates:
        body[rate.group].append(_in_one_cell(rate.value, rate.low, rate.high))
        if rate.group != rates.reference:
            cell = _in_one_cell(rate.difference, rate.difference_low, rate.difference_high, signed)
            differences.setdefault(rate.group, [rate.group]).append(f"{cell}{' *' if rate.differs else ''}")
    columns = [name, "rows", f"rows {rows.row_phrases[1]}", "ROC AUC", *titles]
    caption = f"Differences from {rates.reference}; a star marks those whose simultaneous intervals exclude 0"
    tables = [Table(f"Performance by {name}", columns, list(body.values()))]
    return [*tables, Table(caption, [name, *titles], list(differences.values()))] if differences else tables


def _in_one_cell(*arguments: Any) -> str:
    value, interval = estimate(*arguments)
    return value if interval == "–" else f"{value} ({interval})"


def _group_masks(values: NDArray[Any]) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return the names and masks of the groups of a column: quartiles or frequent values, and missing values."""
    numeric, missing = as_numbers(values), are_missing(values)
    if numeric is None or (values.dtype == object and np.unique(numeric[0][~missing]).size <= _MOST_GROUPS):
        texts = [str(value) for value in values.tolist()]
        counts = Counter(text for text, is_none in zip(texts, missing) if not is_none)
        chosen = [text for text, _ in counts.most_common(_MOST_GROUPS)]
        index_of = {text: index for index, text in enumerate(chosen)}
        indices = np.array([index_of.get(text, len(chosen)) for text in texts])
        names = [*shorten(chosen, _MOST_LETTERS), "all others"]
    else:
        ends, names = _numeric_groups(numeric[0][~missing], numeric[1])
        indices = np.searchsorted(ends, numeric[0])
    indices[missing] = len(names)
    names = [*names, "missing"]  # a category can have this name, too, so names are made distinct
    names = [name if names.index(name) == index else f"{name} ({index + 1})" for index, name in enumerate(names)]
    return [(name, indices == index) for index, name in enumerate(names) if np.any(indices == index)]


def _numeric_groups(values: FloatArray, format_value: Callable[[float], str]) -> tuple[FloatArray, list[str]]:
    """Return the upper ends and the names of groups. The ends are the distinct values or, if many, the quartiles."""
    ends, is_number = np.unique(values), format_value is number
    if is_many := ends.size > _MOST_GROUPS:  # quartiles of dates are not interpolated
        ends = np.unique(np.quantile(values, [0.25, 0.5, 0.75], method="linear" if is_number else "lower"))
    names = numbers(ends.tolist()) if is_number else list(map(format_value, ends.tolist()))
    if is_many:
        names = [*(f"to {name}" for name in names), f"{'above' if is_number else 'after'} {names[-1]}"]
    return ends, names

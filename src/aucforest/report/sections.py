"""The sections of a report on the performance of a model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.metrics import average_precision_score, roc_confidence_band
from aucforest.report import plots
from aucforest.report.alerts import alert_depths, top_rows
from aucforest.report.data import class_table, column_table, describe_columns
from aucforest.report.explorer import find_thresholds
from aucforest.report.metrics import Resamples, auc_interval, reliability, summarize
from aucforest.report.page import Section, Table, interval, number, percent
from aucforest.report.rows import ScoredRows
from aucforest.tables.notes import suspicious_columns

LEVEL = 0.95
_MOST_CURVES = 10
_METRICS = [
    ("recall", "recall (sensitivity)"), ("specificity", "specificity"), ("precision", "precision"),
    ("gmean", "G-mean"), ("f1", "F1"), ("called", "proportion predicted positive"), ("cost", "cost, total"),
    ("cost-row", "cost per row"),
]  # fmt: skip


def summary_section(rows: ScoredRows, resamples: Resamples) -> Section:
    """Return the section on scores, compared with those of a model without skill."""
    scores = summarize(rows, resamples, LEVEL)
    auc = scores[0]
    sources = "Intervals are"
    if len(rows.classes) == 2:
        sources = "The interval of the ROC AUC is a score interval with DeLong's variance, the others are"
    sure = "" if np.isnan(auc.low) else f", with 95 % confidence {interval(auc.low, auc.high)}"
    points = [
        f"ROC AUC {number(auc.value)}{sure}; a model without skill has 0.5. {sources} percentiles of "
        f"{resamples.n_draws} stratified bootstrap samples."
    ]
    if rows.sample_weight is not None:
        points.append("Rows count by their weights.")
    body = [
        [each.name, number(each.value), interval(each.low, each.high), number(each.no_skill), each.meaning]
        for each in scores
    ]
    columns = ["metric", "model", "95 % interval", "no skill", "meaning"]
    caption = "Metrics on these rows, beside a model that only knows the class frequencies"
    tables = [Table(caption, columns, body, "lrrrl")]
    if len(rows.classes) > 2:
        tables.append(_by_class(rows))
        tables.append(_confusion(rows))
    return Section("summary", "Summary", _headline(rows, auc.value), [], tables, points=points)


def _headline(rows: ScoredRows, auc: float) -> str:
    """Return the headline for readers who do not know the metrics."""
    hits, totals = rows.confusion(), rows.totals
    correct = f"The class that it predicts is right for {percent(float(np.trace(hits) / totals.sum()))} of the rows"
    if len(rows.classes) > 2:
        return f"The model ranks {percent(auc)} of all pairs of rows of two classes rightly; guessing: 50 %. {correct}."
    label, of, frequency = rows.classes[1], rows.of_classes[1], float(rows.frequencies[1])
    text = (
        f"A row {of} has a higher score than another row in {percent(auc)} of all such pairs (ROC AUC); guessing gives "
        "50 %."
    )
    depths = alert_depths(rows.labels.size, [10 if frequency < 0.05 and rows.labels.size >= 1000 else 100])
    for per_1000, k in depths.items():
        top = top_rows(rows, k, LEVEL)
        precision, recall = percent(top.precision[0]), percent(top.recall[0])
        text += (
            f" Of the {per_1000 // 10} % of rows with the highest scores, {precision} are {of}, against "
            f"{percent(frequency)} of all rows; they hold {recall} of all rows {of}."
        )
    positive = float(hits[:, 1].sum())
    text += f" The model predicts {label} for {percent(positive / float(totals.sum()))} of the rows"
    if not positive:
        return f"{text}."
    precision, recall = percent(float(hits[1, 1]) / positive), percent(float(hits[1, 1] / totals[1]))
    return f"{text}: this is right for {precision} of them, and finds {recall} of all rows {of}."


def use_section(rows: ScoredRows, intended_use: str | None, seen: str, has_groups: bool) -> Section:
    """Return the section on the intended use, if it is known, and on the limits of the metrics."""
    few = float(rows.totals[rows.present].min())
    points = [
        f"Intended use: {intended_use or 'not stated by the author of this page.'}",
        f"All metrics are estimates from {rows.labels.size:,} rows. They hold for new rows that come from the same "
        "source. Where class frequencies change, so do precision, lift and calibration.",
        seen,
        "Feature importance and partial dependence describe the model. They do not show causes.",
    ]
    if rows.sample_weight is None and few < 100:
        points.insert(2, f"The rarest class has {few:.0f} rows only, so its metrics are uncertain: see the intervals.")
    if not rows.is_probability:
        points.append("The scores are no probabilities; only their order and the threshold mean something.")
    if not has_groups:
        points.append("Performance in subgroups was not evaluated.")
    lead = "What the model is for, and what this page does not say."
    return Section("use", "Intended use and limits", lead, [], [], points=points)


def _by_class(rows: ScoredRows) -> Table:
    """Return a table of the scores of each class against the rest."""
    confusion, body = rows.confusion(), []
    called = confusion.sum(axis=0)
    for k in rows.present:
        is_class, score = rows.labels == k, rows.scores[:, k]
        auc, low, high = auc_interval(is_class, score, rows.sample_weight, LEVEL)
        area, hit = average_precision_score(is_class, score, sample_weight=rows.sample_weight), confusion[k, k]
        shown = number(auc), interval(low, high), number(area), number(float(hit / rows.totals[k]))
        precision = number(float(hit / called[k]) if called[k] else np.nan)
        body.append([rows.classes[k], percent(float(rows.frequencies[k])), *shown, precision])
    columns = ["class", "frequency", "ROC AUC", "95 % interval", "average precision", "recall", "precision"]
    return Table("Each class against all others", columns, body, "lrrrrrr")


def _confusion(rows: ScoredRows) -> Table:
    """Return the section on the confusion matrix of the predicted labels."""
    body = [[rows.classes[k], *(number(cell) for cell in cells)] for k, cells in enumerate(rows.confusion())]
    columns = ["true class", *(f"predicted {name}" for name in rows.classes)]
    return Table("Confusion matrix of the labels that the model predicts", columns, body, "l" + "r" * len(rows.classes))


def drawn_classes(rows: ScoredRows) -> list[int]:
    """Return the classes with curves: the second of two classes, or the most frequent ones."""
    if len(rows.classes) == 2:
        return [1]
    frequent = np.argsort(-rows.totals, kind="stable")[:_MOST_CURVES]
    return sorted(set(frequent.tolist()) & set(rows.present))


def ranking_section(rows: ScoredRows, resamples: Resamples) -> Section:
    """Return the section on ROC and precision-recall curves."""
    classes, two = drawn_classes(rows), len(rows.classes) == 2
    of = rows.classes[1] if two else "each class against all others"
    captions = [
        f"ROC curve of {of}: true positive rate (recall) against false positive rate.",
        f"Precision-recall curve of {of}: precision against recall, over all thresholds.",
    ]
    roc_band = precision_band = None
    if two:
        precision_band = resamples.precision_band(LEVEL)
        captions[1] += " The band covers the precision at any one recall with 95 % confidence."
        if rows.sample_weight is None:
            roc_band = roc_confidence_band(rows.labels == 1, rows.scores[:, 1], level=LEVEL)
            captions[0] += (
                " The band covers the whole true curve with 95 % confidence. In the corners, where the curve "
                "ends, it has no limit because there are too few rows."
            )
        captions = [f"{caption} The dot is at the threshold that is chosen below." for caption in captions]
    cursor = "point" if two else None
    lead = "How well the scores rank the rows, at all thresholds."
    if not two and len(classes) < len(rows.present):
        lead += f" The {len(classes)} most frequent classes are drawn."
    drawn = [
        plots.picture(plots.roc_plot(rows, classes, roc_band), "roc", captions[0], cursor=cursor),
        plots.picture(plots.precision_recall_plot(rows, classes, precision_band), "pr", captions[1], cursor=cursor),
    ]
    return Section("ranking", "Ranking", lead, drawn, [])


def calibration_section(rows: ScoredRows) -> Section:
    """Return the section on calibration."""
    classes, two = drawn_classes(rows), len(rows.classes) == 2
    bins = {rows.classes[k]: reliability(rows, k, LEVEL) for k in classes}
    caption = "Observed frequencies against mean predicted probabilities; on the diagonal they agree."
    if two:
        caption += " Whiskers are 95 % intervals. Each bin holds about the same proportion of each class."
    drawn = [plots.picture(plots.reliability_plot(bins), "reliability", caption)]
    tables = []
    if two:
        caption = "Distribution of the predicted probabilities of each class."
        drawn.append(plots.picture(plots.score_plot(rows), "scores", caption))
        body = [
            [f"{number(each.least)} to {number(each.most)}", f"{each.n_rows:,}", number(each.mean),
             number(each.observed), interval(each.low, each.high)]
            for each in bins[rows.classes[1]]
        ]  # fmt: skip
        columns = ["probability", "rows", "mean probability", "observed frequency", "95 % interval"]
        tables.append(Table("The bins of the calibration curve", columns, body, "lrrrr"))
    mean = np.average(rows.scores[:, classes], axis=0, weights=rows.weights)
    k = int(np.argmax(np.abs(mean - rows.frequencies[classes])))
    name, share = rows.classes[classes[k]], float(rows.frequencies[classes[k]])
    lead = (
        f"Whether predicted probabilities agree with observed frequencies. The mean probability of {name} is "
        f"{percent(float(mean[k]))}, its frequency {percent(share)}."
    )
    calibration = getattr(rows.model, "calibration_", None)
    if calibration is not None and calibration.n_samples > 0:
        lead += (
            f" The forest multiplies its log odds by a slope of {number(calibration.slope)} (standard error "
            f"{number(calibration.slope_std)}), fitted to {calibration.n_samples:,} out-of-bag samples."
        )
    return Section("calibration", "Calibration", lead, drawn, tables)


def threshold_section(rows: ScoredRows, cost: NDArray[np.float64]) -> Section:
    """Return the section with the threshold explorer."""
    found = find_thresholds(rows)
    negative, positive = rows.classes
    alt = f"Recall, specificity, precision, G-mean and F1 of {positive} at each of {found.tp.size} thresholds."
    if found.own_threshold is None:
        own_sentence = "The labels that the model predicts follow no single threshold."
    else:
        own_sentence = f"The model's own threshold is {number(found.own_threshold)}."
    explorer = {
        "svg": plots.as_svg(plots.thresholds_plot(found), "cuts", alt, cursor="line"),
        "data": found.as_json(cost),
        "start": found.best_g_mean if found.own is None else found.own,
        "own_sentence": own_sentence,
        "negative": negative,
        "positive": positive,
        "of_positive": rows.of_classes[1],
        "metrics": _METRICS,
    }
    lead = "Metrics and costs at any threshold, on these rows."
    return Section("thresholds", "Thresholds", lead, [], [], explorer)


def data_section(rows: ScoredRows, training: tuple[NDArray[Any], NDArray[Any] | None] | None) -> Section:
    """Return the section on the data; `training` has the labels and weights of the training data."""
    tables = [class_table("Classes of the rows of this report", rows.classes, rows.labels, rows.sample_weight)]
    if training is not None:
        tables.append(class_table("Classes of the training rows", rows.classes, *training))
    columns, notes = describe_columns(rows.X), list[str]()
    if columns:
        tables.append(column_table(columns))
        found = suspicious_columns(rows.X, rows.labels)
        notes = [f"{note[0].upper()}{note[1:]}{'' if note.endswith('?') else '.'}" for note in found]
    lead = f"The {rows.labels.size:,} rows that the model was evaluated on."
    return Section("data", "Data", lead, [], tables, points=notes)

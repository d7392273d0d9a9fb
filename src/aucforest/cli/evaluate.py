"""``aucforest evaluate``: the performance of a model on labeled rows."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.metrics import confusion_matrix

from aucforest.cli._inputs import Labelled, read_for_model, read_model, say
from aucforest.cli._options import Data, Jobs, JsonOut, Model, PositiveOfModel, Target, Weight, takes_read_options
from aucforest.cli._outputs import (
    QUALITY,
    MetricValue,
    check_outputs,
    console,
    count_rows,
    describe_threshold,
    metrics_table,
    positive_class,
    probability,
    rich_table,
    write_json,
)
from aucforest.inspection.scoring import METRICS, FittedFold
from aucforest.metrics import auc_confidence_interval, metrics_at_k
from aucforest.metrics.at_k import find_at_k, parse_number
from aucforest.metrics.validation import positive_last
from aucforest.report.data import trained_on
from aucforest.tables.predictions import labels_of
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions


def _check_alerts(alerts: str) -> str:
    """Refuse what is neither a number of rows nor a proportion of them as a wrong call."""
    try:
        if find_at_k(f"precision_at_{alerts}") is not None:
            return alerts
    except ValueError:
        pass
    raise typer.BadParameter(f"must be a proportion of the rows, such as 0.01, or a number from 1 on, but is {alerts}")


@takes_read_options(for_model=True)
def evaluate(
    model: Model,
    data: Data,
    target: Target,
    positive: PositiveOfModel = None,
    weight: Weight = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="How probabilities become labels: prevalence, argmax or a probability; by default the threshold of the"
            " model, or prevalence where it has none.",
        ),
    ] = None,
    alerts: Annotated[
        str,
        typer.Option(
            metavar="K",
            callback=_check_alerts,
            help="How many rows are alerted on, those with the highest scores, for precision, recall and lift: a"
            " proportion such as 0.01, or a number such as 100. For two classes.",
        ),
    ] = "0.01",
    read_options: ReadOptions = DEFAULT_OPTIONS,
    json_out: JsonOut = None,
    jobs: Jobs = -1,
) -> None:
    """Evaluate a model on labelled rows that it was not fitted on.

    For two classes the ROC AUC, and precision, recall and lift of the rows with the highest scores, have confidence
    intervals. G-mean and the confusion matrix depend on the threshold. Standard error says if the model was probably
    trained on these rows, and how many have categories that it was not.

    Example: aucforest evaluate model.aucforest test.csv --target label --json metrics.json
    """
    check_outputs(json_out, inputs=[model, data])
    forest = read_model(model, jobs)
    rule = _set_threshold(forest, threshold)
    rows = read_for_model(forest, data, target, positive, weight, read_options)
    fold = FittedFold(forest, float("nan"), rows.X, rows.y, rows.weight)
    metrics = [MetricValue(metric, METRICS[metric].measure(fold)) for metric in QUALITY]
    if len(forest.classes_) == 2:
        column = positive_last(forest)[-1]
        is_positive, score = fold.is_class[:, column], fold.proba[:, column]
        metrics[0] = MetricValue("roc_auc", *auc_confidence_interval(is_positive, score, sample_weight=rows.weight))
        _check_number_of_alerts(alerts, rows, data)
        top = metrics_at_k(is_positive, score, parse_number(alerts), sample_weight=rows.weight)
        metrics += [MetricValue(f"{name}_at_{alerts}", *getattr(top, name)) for name in ("precision", "recall", "lift")]
    if (note := trained_on(forest, rows.X, rows.y, rows.weight, fold.proba)) is not None:
        say([note])
    labels = labels_of(forest, rows.X, fold.proba)
    matrix = confusion_matrix(rows.y, labels, labels=forest.classes_, sample_weight=rows.weight)
    classes = list(map(str, forest.classes_.tolist()))
    to = console(json_out)
    to.print(metrics_table(rows.title, {model.name: metrics}))
    to.print(count_rows(forest, len(rows.y)), markup=False, highlight=False)
    to.print(f"{describe_threshold(forest, rule)}\n", markup=False, highlight=False)
    cells = [[name, *(f"{count:,}" for count in counts)] for name, counts in zip(classes, matrix.tolist())]
    headings = ["", *(f">{name}" for name in classes)]
    to.print(rich_table("confusion matrix (rows: true classes)", headings, cells, min_width=40))
    content = {
        "data": rows.title,
        "model": model.name,
        "n_samples": len(rows.y),
        "classes": classes,
        "positive_class": positive_class(forest) or None,
        "metrics": [metric._asdict() for metric in metrics],
        "threshold": np.asarray(getattr(forest, "threshold_", None)).tolist(),
        "confusion_matrix": matrix.tolist(),
    }
    write_json(json_out, content)


def _check_number_of_alerts(alerts: str, rows: Labelled, data: Path) -> None:
    """Raise ValueError if there are fewer rows, or less weight, than a number of alerts."""
    total = len(rows.y) if rows.weight is None else float(rows.weight.sum())
    if parse_number(alerts) > max(total, 1):
        weight = "" if rows.weight is None else f"{total:g}, the weight of "
        raise ValueError(f"--alerts {alerts} is more than {weight}the {len(rows.y):,} rows of {data.name}")


def _set_threshold(model: Any, threshold: str | None) -> str:
    """Set the threshold of a model if it has one, and return a description of it."""
    if threshold is None and getattr(model, "threshold_", None) is not None:
        return "the threshold of the model"
    if not hasattr(model, "set_threshold"):
        if threshold is not None:
            raise ValueError(f"--threshold is for forests, but the model is a {type(model).__name__}")
        return "the most probable class"
    rule = threshold or "prevalence"
    if rule not in ("prevalence", "argmax"):
        model.set_threshold(probability("--threshold", rule, "prevalence", "argmax"))
    else:
        model.set_threshold(None if rule == "argmax" else rule)
    return rule

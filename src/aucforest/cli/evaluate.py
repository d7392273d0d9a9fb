"""``aucforest evaluate``: the performance of a model on labelled rows."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text
from sklearn.metrics import confusion_matrix

from aucforest.cli import _options, _outputs
from aucforest.cli._inputs import Labelled, LabelledColumns, echo_notes, load_model, read_for_model, read_subgroups
from aucforest.cli._options import RULE_HELP, parse_rule, rule_for, takes_read_options, validator
from aucforest.cli._outputs import NARROW, QUALITY, MetricValue
from aucforest.estimators.threshold_rules import RULES, is_tuned
from aucforest.inspection.scoring import METRICS, FittedFold
from aucforest.metrics import GroupRates, auc_confidence_interval, metrics_at_k
from aucforest.metrics.at_k import find_at_k, parse_number
from aucforest.metrics.validation import positive_last
from aucforest.report.data import as_array, training_rows_warning
from aucforest.report.performance import rates_by
from aucforest.tables.predictions import labels_of
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions


def _check_alerts(alerts: str) -> None:
    with suppress(ValueError):
        if find_at_k(f"precision_at_{alerts}") is not None:
            return
    raise ValueError(f"must be a proportion of the rows, such as 0.01, or a number from 1 on, but is {alerts}")


@takes_read_options(for_model=True)
def evaluate(
    model: _options.Model,
    data: _options.Data,
    target: _options.TargetColumn,
    positive: _options.PositiveOfModel = None,
    weight: _options.Weight = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help=f"{RULE_HELP} By default the threshold of the model, or the rule prevalence if it has none. gmean,"
            " youden, f1 and the rules with = are tuned on these rows, so that metrics at the threshold are slightly"
            " optimistic.",
        ),
    ] = None,
    alerts: Annotated[
        str,
        typer.Option(
            metavar="K",
            callback=validator(_check_alerts),
            help="Proportion or number of rows with the highest scores, such as 0.01 or 100, for which precision,"
            " recall and lift are computed. For two classes.",
        ),
    ] = "0.01",
    by: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Columns of DATA that define groups; they need not be features. Selection rate, recall, false positive"
            " rate and calibration of each group have intervals. For two classes.",
        ),
    ] = None,
    prevalence: _options.Prevalence = None,
    read_options: ReadOptions = DEFAULT_OPTIONS,
    json_out: _options.JsonOut = None,
    jobs: _options.Jobs = -1,
) -> None:
    """Evaluate a model on labelled rows that it was not fitted on.

    For two classes the ROC AUC, and precision, recall and lift of the rows with the highest scores, have confidence
    intervals. G-mean and the confusion matrix depend on the threshold. Notes say if the model was probably trained on
    these rows, and how many rows have categories that the training data did not have.

    Example: aucforest evaluate model.aucforest test.csv --target label --json metrics.json
    """
    _outputs.check_outputs(json_out, inputs=[model, data])
    forest = load_model(model, jobs, prevalence)
    rule = _check_rule(forest, threshold)
    if by is not None and len(forest.classes_) > 2:
        raise ValueError(f"--by is for two classes, but the model has {len(forest.classes_)}")
    columns = {} if by is None else dict(read_subgroups(data, by, target, read_options).items())
    rows = read_for_model(forest, data, LabelledColumns(target, positive, weight), read_options)
    rule_text = _set_threshold(forest, threshold, rule, rows)
    fold = FittedFold(forest, float("nan"), rows.X, rows.y, rows.weight)
    metrics = [MetricValue(metric, METRICS[metric].measure(fold)) for metric in QUALITY]
    if len(forest.classes_) == 2:
        column = positive_last(forest)[-1]
        is_positive, score = fold.is_class[:, column], fold.proba[:, column]
        metrics[0] = MetricValue("roc_auc", *auc_confidence_interval(is_positive, score, sample_weight=rows.weight))
        _check_number_of_alerts(alerts, rows, data)
        top = metrics_at_k(is_positive, score, parse_number(alerts), sample_weight=rows.weight)
        metrics += [MetricValue(f"{name}_at_{alerts}", *getattr(top, name)) for name in ("precision", "recall", "lift")]
    if (note := training_rows_warning(forest, rows.X, rows.y, rows.weight, fold.proba)) is not None:
        echo_notes([note])
    labels = labels_of(forest, rows.X, fold.proba)
    matrix = confusion_matrix(rows.y, labels, labels=forest.classes_, sample_weight=rows.weight)
    classes = list(map(str, forest.classes_.tolist()))
    console = _outputs.make_console(json_out)
    console.print(_outputs.metrics_table(rows.title, {model.name: metrics}))
    lines = [_outputs.describe_rows(forest, len(rows.y)), _outputs.describe_threshold(forest, rule_text)]
    if at_threshold := _at_threshold(forest, matrix):
        sentence = "{alerts:,g} rows are predicted positive: precision {precision:.3f}, recall {recall:.3f}"
        lines.append(sentence.format_map(at_threshold))
    console.print(Text("\n".join([*lines, ""])))
    cells = [[name, *(f"{count:,}" for count in counts)] for name, counts in zip(classes, matrix.tolist())]
    headings = ["", *(f">{name}" for name in classes)]
    rates_of = {name: _rates(forest, rows, values, labels, fold.proba) for name, values in columns.items()}
    console.print(_outputs.rich_table("confusion matrix (rows: true classes)", headings, cells, min_width=40))
    for name, rates in rates_of.items():
        console.print(_rates_table(name, rates))
        console.print(Text(f"{rates.verdict()}\n"))
    content = {
        "data": rows.title,
        "model": model.name,
        "n_samples": len(rows.y),
        "classes": classes,
        "positive_class": _outputs.positive_class(forest) or None,
        "metrics": [metric._asdict() for metric in metrics],
        "threshold": np.asarray(getattr(forest, "threshold_", None)).tolist(),
        "confusion_matrix": matrix.tolist(),
    }
    by_group = {
        name: {"reference": rates.reference, "rates": [rate._asdict() for rate in rates.rates]}
        for name, rates in rates_of.items()
    }
    _outputs.write_json(json_out, content, optional={"at_threshold": at_threshold, "groups": by_group})


def _at_threshold(model: Any, matrix: Any) -> dict[str, float]:
    """Return the number of predicted positives, precision and recall; {} for more than two classes."""
    if len(matrix) > 2:
        return {}
    positive = positive_last(model)[-1]
    n_alerts, tp, n_positive = matrix[:, positive].sum(), matrix[positive, positive], matrix[positive].sum()
    return {
        "alerts": float(n_alerts),
        "precision": float(tp / n_alerts) if n_alerts else float("nan"),
        "recall": float(tp / n_positive) if n_positive else float("nan"),
    }


def _rates(model: Any, rows: Labelled, values: Any, labels: Any, proba: Any) -> GroupRates:
    column = positive_last(model)[-1]
    positive, selected = (classes == model.classes_[column] for classes in (rows.y, labels))
    return rates_by(as_array(values), positive, selected, proba[:, column], rows.weight)


def _rates_table(name: str, rates: GroupRates) -> Any:
    cells: dict[str, list[str]] = {}
    for rate in rates.rates:
        row = cells.setdefault(rate.group, [rate.group, f"{rate.n_rows:,}", f"{rate.n_positive:,}"])
        row.append("" if np.isnan(rate.value) else f"{rate.value:.3f}\n{rate.low:.3f} to {rate.high:.3f}")
    headings = ["rows", "positive", *dict.fromkeys(rate.title for rate in rates.rates)]
    title = f"by {name}, with 95 % intervals"
    table = _outputs.rich_table(title, [name, *(f">{heading}" for heading in headings)], cells.values(), **NARROW)
    for column, heading in zip(table.columns[1:], headings):
        column.min_width = max(map(len, heading.split()))  # in a narrow console, only names are broken
    return table


def _check_number_of_alerts(alerts: str, rows: Labelled, data: Path) -> None:
    """Raise ValueError if --alerts exceeds the number, or the weight, of all rows."""
    total = len(rows.y) if rows.weight is None else float(rows.weight.sum())
    if parse_number(alerts) > max(total, 1):
        weight = "" if rows.weight is None else f"{total:g}, the weight of "
        raise ValueError(f"--alerts {alerts} is more than {weight}the {len(rows.y):,} rows of {data.name}")


def _check_rule(model: Any, threshold: str | None) -> Any:
    """Return the threshold rule; raise ValueError if --threshold is given for a model that cannot have a threshold."""
    if threshold is not None and not hasattr(model, "set_threshold"):
        raise ValueError(f"--threshold is for forests and stacks, but the model is a {type(model).__name__}")
    return rule_for(parse_rule(threshold or RULES[0]), len(model.classes_), positive_last(model)[-1])


def _set_threshold(model: Any, threshold: str | None, rule: Any, rows: Labelled) -> str:
    """Set the threshold of the model, if it can have one, and return a description of the rule.

    A rule that needs labelled rows is tuned on these rows. A fitted threshold is kept if no rule is given.
    """
    if threshold is None and getattr(model, "threshold_", None) is not None:
        return "the threshold of the model"
    if not hasattr(model, "set_threshold"):
        return "the most probable class"
    model.set_threshold(rule, rows.X, rows.y, rows.weight, oob=False)
    chosen = ", chosen on these rows" if is_tuned(rule, len(model.classes_)) else ""
    return f"{threshold or RULES[0]}{chosen}"

"""``aucforest estimate``: estimate performance without labels."""

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import typer
from rich.table import Table
from rich.text import Text

from aucforest._caller import warn
from aucforest._files import write_whole
from aucforest.cli import _outputs
from aucforest.cli._inputs import echo_notes, open_table, read_columns
from aucforest.cli._options import TABLE_HELP, JsonOut, PlotOut, TargetColumn, names_in, takes_read_options, validator
from aucforest.cli._outputs import NARROW, PICTURES
from aucforest.monitoring import CBPE, CBPEResult, Chunks
from aucforest.monitoring.metrics import AT_K, COSTS, NAMES, proportion_at_k
from aucforest.monitoring.shift import measures_beyond_limits
from aucforest.tables.copies import STANDARD
from aucforest.tables.kinds import nearest
from aucforest.tables.labels import check_has_rows, typed_labels
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions
from aucforest.tables.sources import stray_notes

ALERT = 3  # the exit code of --fail-on-alert
_METRICS = tuple(name for name in NAMES if name not in COSTS)  # there is no option for a cost matrix
_SCORE_METRICS = ("roc_auc", "average_precision")  # metrics that only need scores
_PROBABILITY = "probability_"  # the names of columns of probabilities begin with this
_YES_OR_NO = {True: "yes", False: "no", None: ""}


def _check_metrics(metrics: str) -> None:
    for name in names_in(metrics):
        if name not in _METRICS and proportion_at_k(name) is None:
            raise ValueError(f"{name!r} is not among {', '.join((*_METRICS, *AT_K))}{nearest(name, _METRICS)}")


@takes_read_options()
def estimate(
    reference: Annotated[
        Path,
        typer.Argument(
            metavar="REFERENCE",
            help="Labelled rows with scores of a model that was not trained on them, such as the file that"
            f" 'aucforest fit --reference' writes. {TABLE_HELP}",
        ),
    ],
    new: Annotated[
        Path, typer.Argument(metavar="NEW", help="Scored rows to estimate the performance on; labels are optional.")
    ],
    score: Annotated[
        str,
        typer.Option(
            help="The column of scores of the positive class, such as probability_yes. For more than two classes, a"
            " column for each class.",
            metavar="A[,B,...]",
        ),
    ],
    target: TargetColumn,
    labels: Annotated[
        str | None,
        typer.Option(
            help="Classes in the order of the scores; of two classes, the last is positive. Default: the classes in the"
            " names of the columns, such as yes in probability_yes, or else all labels, sorted.",
            metavar="A,B[,...]",
        ),
    ] = None,
    prediction: Annotated[
        str | None,
        typer.Option(
            help="The column of predicted labels, for all metrics other than roc_auc, average_precision, precision_at_K"
            " and recall_at_K.",
            metavar="COLUMN",
        ),
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Columns, numeric or text, to test for covariate shift.", metavar="A,B")
    ] = None,
    metrics: Annotated[
        str,
        typer.Option(
            help=f"Metrics to estimate: {', '.join(_METRICS)}; precision_at_K and recall_at_K, where K is the"
            " proportion of rows with the highest scores, such as 0.01.",
            metavar="A,B",
            callback=validator(_check_metrics),
        ),
    ] = "roc_auc",
    size: Annotated[int | None, typer.Option(help="Number of rows of a chunk.")] = None,
    number: Annotated[
        int | None, typer.Option(help="Number of chunks; 10 by default, unless there is --size or --time.")
    ] = None,
    period: Annotated[
        Literal["h", "D", "W", "M", "Q", "Y"] | None,
        typer.Option(help="Period of a chunk: hour, day, week, month, quarter or year; needs --time."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column of dates: chunks are periods, months unless --period is given. A reference without the"
            " column is divided into 10 chunks.",
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows without a score or reference label.")
    ] = False,
    fail_on_alert: Annotated[
        bool,
        typer.Option(
            "--fail-on-alert",
            help=f"Exit with code {ALERT} if there is an alert, and with 1 if alerts are undefined, because the"
            " reference is too small for limits.",
        ),
    ] = False,
    read_options: ReadOptions = DEFAULT_OPTIONS,
    json_out: JsonOut = None,
    csv_out: Annotated[
        Path | None, typer.Option("--csv", metavar="OUT", help="CSV file for the table; - is standard output.")
    ] = None,
    plot_out: PlotOut = None,
) -> None:
    """Estimate the performance of a model on unlabelled rows, chunk by chunk, with intervals and alerts.

    There is an alert if an estimate is more than three standard deviations from the mean of the reference chunks, or if
    it may not be valid, because the scores or features of its chunk have shifted more than those of reference chunks.

    Example: aucforest estimate reference.csv new.csv --score probability_yes --target label --size 1000
    """
    _outputs.check_suffix("--plot", plot_out, PICTURES)
    if json_out == csv_out == STANDARD:
        raise typer.BadParameter("cannot be standard output, because --json is written to it", param_hint="--csv")
    _outputs.check_outputs(json_out, csv_out, plot_out, inputs=[reference, new])
    if period is not None and time is None:
        raise typer.BadParameter("needs --time", param_hint="--period")
    if sum(given is not None for given in (size, number, time)) > 1:
        raise typer.BadParameter("chunks are made by one of --size, --number and --time")
    label_metrics = [name for name in names_in(metrics) if name not in _SCORE_METRICS and proportion_at_k(name) is None]
    if label_metrics and prediction is None:
        raise typer.BadParameter(
            f"must name the column of predicted labels, which {', '.join(label_metrics)} needs",
            param_hint="--prediction",
        )
    columns = {"y_score": names_in(score), "y_true": [target], "y_pred": names_in(prediction)}
    columns |= {"X": names_in(features), "time": names_in(time)}
    reference_frame = _read(reference, columns, read_options, time or "")
    as_text = [name for name in columns["X"] if not pd.api.types.is_numeric_dtype(reference_frame[name])]
    frame = _read(new, columns, read_options, target, as_text)
    has_labels = target in frame and frame[target].notna().any()
    classes = _class_names(columns["y_score"], reference_frame[target]) if labels is None else names_in(labels)
    reference_columns = columns if time in reference_frame else columns | {"time": []}
    reference_rows = _arguments(reference_frame, reference_columns, classes)
    new_rows = _arguments(frame, columns if has_labels else columns | {"y_true": []}, classes)
    times = reference_rows.pop("time"), new_rows.pop("time")
    if time is not None:  # a reference without the column of times is divided into equal chunks
        chunks = [_periods(file, columns, t, period or "M") for file, t in zip((reference, new), times)]
    else:
        chunks = 2 * [Chunks.by_number(10 if number is None else number) if size is None else Chunks.by_size(size)]
    on_nan: Literal["drop", "raise"] = "drop" if drop_missing else "raise"
    cbpe = CBPE(names_in(metrics), level=level, labels=classes, on_nan=on_nan)
    with _messages_about(reference, columns):
        cbpe.fit(**reference_rows, chunks=chunks[0])
    with _messages_about(new, columns):
        result = cbpe.estimate(**new_rows, chunks=chunks[1])
    _outputs.make_console(STANDARD if STANDARD in (json_out, csv_out) else None).print(
        _as_table(f"{new.name}, estimated from {reference.name}", result)
    )
    _outputs.write_json(json_out, {"metrics": result.metrics, "estimates": result.records()})
    if csv_out == STANDARD:
        typer.echo(result.to_frame().to_csv(index=False), nl=False)
    elif csv_out is not None:
        write_whole(csv_out, result.to_frame().to_csv(index=False).encode())
        typer.echo(f"table: {csv_out}", err=True)
    if plot_out is not None:
        _outputs.write_picture(plot_out, result.plot().figure_)
    alerts = [row.alert for row in result.estimates]
    if True in alerts:
        typer.echo(f"alerts: {alerts.count(True)} of {len(alerts)} estimates", err=True)
        _report_shifts(result)
        if fail_on_alert:
            raise typer.Exit(ALERT)
    if fail_on_alert and False not in alerts:
        raise ValueError("--fail-on-alert could never fail: alerts are undefined, see the warning on limits")


def _periods(file: Path, columns: dict[str, list[str]], times: Any, period: Any) -> Chunks:
    """Return chunks that are periods, or 10 equal chunks if there are no times."""
    if times is None:
        return Chunks.by_number(10)
    with _messages_about(file, columns):
        return Chunks.by_period(times, period)


@contextmanager
def _messages_about(file: Path, columns: dict[str, list[str]]) -> Iterator[None]:
    """Reword errors and warnings of CBPE, so that they name a file, its columns and options instead of arguments."""
    replacements = {
        "X: ": "",
        'set on_nan="drop"': "pass --drop-missing",
        "use fewer chunks": "pass a smaller --number",
        "convert them": "convert them, or read a CSV with --date-format",
        "the reference must": f"column {columns['y_true'][0]!r} must",
    }
    for name, option in (("y_score", "--score"), ("y_true", "--target"), ("y_pred", "--prediction")):
        replacements[name] = f"column {columns[name][0]!r}" if len(columns[name]) == 1 else option
    for column in columns["time"]:
        replacements |= {f"timestamps {verb}": f"column {column!r} {verb}" for verb in ("must", "has")}

    def reword(problem: Warning | str | Exception) -> str:
        sentence = re.sub("|".join(map(re.escape, replacements)), lambda match: replacements[match[0]], str(problem))
        return sentence if sentence == str(problem) else f"{file.name}: {sentence}"

    with warnings.catch_warnings(record=True) as caught:
        try:
            yield
        except (TypeError, ValueError) as error:
            raise ValueError(reword(error)) from error
    for warning in caught:
        warn(reword(warning.message), warning.category)


def _read(
    file: Path,
    columns: dict[str, list[str]],
    read_options: ReadOptions,
    optional: str,
    as_text: Sequence[str] = (),
) -> Any:
    """Read columns of a table as a DataFrame; raise ValueError if one is missing, unless it is the column `optional`.

    In a text file, the columns `as_text` are read as strings, even if all values are numbers.
    """
    names = list(dict.fromkeys(chain.from_iterable(columns.values())))
    labels = [*columns["y_true"], *columns["y_pred"]]
    table = open_table(file, [*labels, *as_text], read_options)
    names = [name for name in names if name != optional or name in table.columns]
    content = read_columns(table, names)
    check_has_rows(table, content.num_rows)
    echo_notes(stray_notes(table, names))
    for name in set(labels) & set(names) if table.is_text else ():
        content = content.set_column(names.index(name), name, typed_labels(content.column(name)))
    return content.to_pandas(date_as_object=False)


def _class_names(scores: list[str], labels: Any) -> list[str] | None:
    """Return the classes in the names of probability columns, with the positive class last.

    Returns None if the columns have other names, or if their names do not determine the classes in `labels`.
    """
    named = [score.removeprefix(_PROBABILITY) for score in scores if score.startswith(_PROBABILITY)]
    classes = _as_texts(labels).dropna().unique().tolist()
    if len(named) < len(scores) or not set(named) <= set(classes):
        return None
    if len(named) == 1 and len(classes) == 2:
        return [*(set(classes) - set(named)), *named]
    return named if len(named) == len(classes) else None


def _as_texts(labels: Any) -> Any:
    """Return labels as text. Integers become text without ".0", even if missing values made them floats."""
    return labels.convert_dtypes().astype("string")


def _arguments(frame: Any, columns: dict[str, list[str]], classes: list[str] | None) -> dict[str, Any]:
    """Return the arguments of CBPE, given the columns of each parameter; None for parameters without columns.

    X is a frame, and other arguments are arrays. If `classes` are given (as text), labels become text, too.
    """
    arguments: dict[str, Any] = dict.fromkeys(columns)
    for parameter, names in columns.items():
        if not names:
            continue
        values = frame[names] if parameter == "X" or len(names) > 1 else frame[names[0]]
        if classes is not None and parameter in ("y_true", "y_pred"):
            values = _as_texts(values)
        if parameter == "time" and getattr(values.dtype, "tz", None) is not None:
            values = values.dt.tz_localize(None)  # chunks are periods of local time
        arguments[parameter] = values if parameter == "X" else values.to_numpy()
    return arguments


def _as_table(title: str, result: CBPEResult) -> Table:
    """Return a table with a row for each chunk and metric. Alerts are red, and empty columns are left out."""
    caption = (
        "Estimates assume that P(label | score) is unchanged. They may not be valid if scores or features have"
        " shifted. A PSI (population stability index) above 0.2 is a large shift of the scores."
    )
    headings = ["chunk", ">rows", "metric", ">estimate", ">interval", ">realized", ">limits", "alert", "valid", ">PSI"]
    rows = []
    for row in result.estimates:
        numbers = (row.estimate,), (row.low, row.high), (row.realized,), (row.lower_limit, row.upper_limit)
        shift = result.shifts[row.chunk]
        answers = [_YES_OR_NO[row.alert], _YES_OR_NO[shift.valid]]
        cells = [row.chunk, str(row.n_rows), row.metric, *map(_format, numbers), *answers, _format((shift.psi,))]
        rows.append([Text(cell, "red" if row.alert else "") for cell in cells])
    nonempty = [(heading, *column) for heading, *column in zip(headings, *rows) if any(cell.plain for cell in column)]
    shown, *rows = map(list, zip(*nonempty))
    return _outputs.rich_table(title, shown, rows, caption=caption, **NARROW)


def _report_shifts(result: CBPEResult) -> None:
    """Print how many chunks have shifts beyond their limits, and which ones the first of these chunks has."""
    shifted = {chunk: shift for chunk, shift in result.shifts.items() if shift.valid is False}
    if not shifted:
        return
    chunk, shift = next(iter(shifted.items()))
    beyond = [f"{name} {value:.4g} (limit {limit:.4g})" for name, value, limit in measures_beyond_limits(shift)]
    typer.echo(
        f"shifts beyond limits: {len(shifted)} of {len(result.shifts)} chunks, first {chunk}: {', '.join(beyond)}",
        err=True,
    )


def _format(numbers: tuple[float, ...]) -> str:
    """Return a number or an interval as text. The text is empty for NaN."""
    return "" if all(map(math.isnan, numbers)) else " to ".join(f"{number:.4g}" for number in numbers)

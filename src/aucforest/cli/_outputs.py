"""Output of commands: files, tables in batches, and metrics with confidence intervals."""

import csv
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import typer
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from aucforest._files import file_beside, write_whole
from aucforest.columns.categorical import repeated
from aucforest.columns.dates import DateColumn
from aucforest.columns.expansion import IntegerColumn, TextColumn, categories_of_columns
from aucforest.inspection.scoring import find_metric
from aucforest.metrics.thresholds import decide
from aucforest.metrics.validation import positive_last
from aucforest.tables.copies import STANDARD
from aucforest.tables.kinds import decode, holds_text, plain_type
from aucforest.tables.sources import is_table

NARROW = {"collapse_padding": True, "pad_edge": False}  # options of `rich_table` for tables of many columns
PICTURES = (".png", ".svg", ".pdf")  # suffixes of picture files
TABLES = (".csv", ".parquet")  # suffixes of table files
_NUMBERS = "of integers with categories"
QUALITY = ("roc_auc", "average_precision", "g_mean", "brier", "log_loss")  # metrics for any number of classes

Write = Callable[[Any], None]


class MetricValue(NamedTuple):
    """A metric and its 95 % confidence interval, whose bounds are NaN for metrics without an interval."""

    metric: str
    value: float
    low: float = float("nan")
    high: float = float("nan")


def positive_class(model: Any) -> str:
    """Return the name of the positive class, or "" if there are more than two classes."""
    return str(model.classes_[positive_last(model)[-1]]) if len(model.classes_) == 2 else ""


def describe_rows(model: Any, n_rows: int) -> str:
    named = f"positive class: {positive_class(model)}; " if len(model.classes_) == 2 else ""
    return f"{named}{n_rows:,} rows"


def n_features(model: Any) -> int:
    """Return the number of features of the trees of a model. A column of dates has several features."""
    return len(getattr(model, "_columns_of_features", range(model.n_features_in_)))


def describe_features(model: Any) -> str:
    counts = Counter(map(_describe_parts, getattr(model, "expanded_", {}).values()))
    n_categorical = len(categories_of_columns(model)) - counts[_NUMBERS]
    kinds = [f"{n_categorical} of them categorical", *(f"{n} {parts}" for parts, n in counts.items())]
    return f"{model.n_features_in_} columns, {', '.join(kinds)}; {n_features(model)} features"


def _describe_parts(column: DateColumn | IntegerColumn | TextColumn) -> str:
    if isinstance(column, DateColumn):
        return "of dates"
    if isinstance(column, TextColumn):
        return "of text with first characters"
    return "of integers with ranges" if column.is_categorical else _NUMBERS


def describe_threshold(model: Any, rule_text: str) -> str:
    """Return a line on the decision threshold and, unless the threshold was given, the rule that chose it."""
    threshold = getattr(model, "threshold_", None)
    if threshold is None:
        return "labels: the most probable class"
    if np.ndim(threshold) > 0:
        return f"labels: by {rule_text}"
    chosen = "" if rule_text[0] in ".0123456789" else f" ({rule_text})"
    return f"labels: {positive_class(model)} where its probability is at least {threshold:.4g}{chosen}"


def _prediction_names(classes: NDArray[Any]) -> list[str]:
    return ["prediction", *(f"probability_{label}" for label in classes.tolist())]


def check_reference(columns: list[str], classes: NDArray[Any], file: Path) -> None:
    """Raise ValueError if a table of predictions and of `columns` from `file` would repeat a column name."""
    for name in repeated([*columns, *_prediction_names(classes)]):
        raise ValueError(f"the reference would have two columns named {name!r}: rename that of {file.name}")


def out_of_bag_rows(model: Any, target: str, labels: NDArray[Any]) -> tuple[Any, NDArray[np.bool_]]:
    """Return a table of labels, predictions and probabilities of the out-of-bag rows, and a mask of these rows.

    This must be called before `save_model`, which removes the out-of-bag probabilities from the model.
    """
    is_oob = np.isfinite(model.oob_decision_function_[:, 0])
    proba = model.oob_decision_function_[is_oob]
    predictions = [model.classes_[decide(model, proba)], *proba.T]
    columns = {target: labels[is_oob], **dict(zip(_prediction_names(model.classes_), predictions))}
    return pa.table(columns), is_oob


def write_reference(
    out: Path, oob_rows: tuple[Any, NDArray[np.bool_]], source: Any = None, kept: Sequence[str] = ()
) -> None:
    """Write the result of `out_of_bag_rows` as a table, after the columns `kept` of the training table `source`."""
    scored, is_oob = oob_rows
    kept_schema = source.schema(kept) if kept else pa.schema([])
    schema = pa.schema([*zip(kept, map(plain_type, kept_schema.types)), *scored.schema])
    with table_writer(out, schema) as write:
        if not kept:
            write(scored)
        n_rows = n_written = 0
        for batch in source.batches(kept) if kept else ():
            oob_batch = batch.filter(pa.array(is_oob[n_rows : n_rows + batch.num_rows]))
            predictions = scored.slice(n_written, oob_batch.num_rows)
            write(pa.table([*map(decode, oob_batch.columns), *predictions.columns], schema=schema))
            n_rows, n_written = n_rows + batch.num_rows, n_written + oob_batch.num_rows
    typer.echo(f"reference: {out}", err=True)


def metrics_table(title: str, metrics: dict[str, list[MetricValue]]) -> Table:
    """Return a table of metrics. The keys of `metrics`, such as "out of bag", are in the first column."""
    rows = []
    for kind, measured in metrics.items():
        for index, (metric, value, low, high) in enumerate(measured):
            interval = "" if np.isnan(low) else f"{low:.4f} to {high:.4f}"
            rows.append([kind if index == 0 else "", find_metric(metric).title, f"{value:.4f}", interval])
    return rich_table(title, ["", "metric", ">value", ">95 % interval"], rows)


def check_outputs(*outs: Path | None, inputs: list[Path | None]) -> None:
    """Raise an error if an output would overwrite another file of the command, or cannot be written."""
    taken = {file.resolve() for file in inputs if file is not None}
    for out in outs:
        if out is None or out == STANDARD:
            continue
        if not out.parent.is_dir():
            is_file = out.parent.is_file()
            raise ValueError(
                f"{out.parent} is a file, not a folder" if is_file else f"the folder {out.parent} does not exist"
            )
        if not os.access(out.parent, os.W_OK):
            raise ValueError(f"nothing can be written into the folder {out.parent}")
        if out.is_dir():
            raise ValueError(f"{out} is a folder, not a file to write")
        if out.resolve() in taken:
            raise ValueError(f"{out} would be overwritten: it is read, or another output")
        if out.parent.resolve() in taken and is_table(out):
            raise ValueError(f"{out} would be in the folder that is read, and be read the next time")
        taken.add(out.resolve())


def check_model_outputs(out: Path, reference: Path | None, json_out: Path | None, inputs: list[Path | None]) -> None:
    """Raise an error if the outputs of a fit cannot be written."""
    if out == STANDARD:
        raise typer.BadParameter("must be a file: a model is not written to standard output", param_hint="--out")
    check_suffix("--reference", reference, TABLES)
    check_outputs(out, json_out, reference, inputs=inputs)


def save_model(model: Any, out: Path) -> None:
    """Write a model without the out-of-bag probabilities of the training data and the settings of this machine."""
    _remove_unsaved(model)
    model.save(out)
    typer.echo(f"model: {out}", err=True)


def _remove_unsaved(model: Any) -> None:
    """Remove, from a model and its members, the attributes that `save_model` does not write."""
    settings = {"n_jobs": None, "verbose": 0}
    vars(model).pop("oob_decision_function_", None)
    parameters = model.get_params(deep=False)
    for nested in (*getattr(model, "members_", {}).values(), parameters.get("forest")):
        if nested is not None:
            _remove_unsaved(nested)
    model.set_params(**{name: value for name, value in settings.items() if name in parameters})


def check_suffix(option: str, out: Path | None, suffixes: tuple[str, ...]) -> None:
    if out is not None and out.suffix.lower() not in suffixes:
        raise typer.BadParameter(f"must end in {', '.join(suffixes)}, got {out.name}", param_hint=option)


def rich_table(title: str | None, headings: list[str], rows: Iterable[Sequence[str | Text]], **options: Any) -> Table:
    """Return a table of texts, which are not parsed as markup. ">" before a heading aligns its column right."""
    table = Table(title=title and escape(title), box=box.SIMPLE_HEAD, **options)
    for heading in headings:
        side: Any = "right" if heading[:1] == ">" else "left"
        table.add_column(escape(heading.removeprefix(">")), justify=side, overflow="fold")
    for cells in rows:
        table.add_row(*[Text(cell) if isinstance(cell, str) else cell for cell in cells])
    return table


def make_console(json_out: Path | None) -> Console:
    """Return the console for tables: standard output, or standard error if JSON is written to standard output."""
    return Console(stderr=json_out == STANDARD)


def write_json(
    out: Path | None, content: dict[str, Any], *, what: str = "metrics", optional: dict[str, Any] | None = None
) -> None:
    """Write content as JSON if there is an output. NaN becomes null, and empty optional entries are left out."""
    if out is None:
        return
    content = content | {name: value for name, value in (optional or {}).items() if value}
    # json.dumps writes NaN, which is not JSON. json.loads calls `parse_constant` with each NaN.
    text = json.dumps(json.loads(json.dumps(content), parse_constant=lambda number: None), indent=1)
    if out == STANDARD:
        sys.stdout.write(f"{text}\n")
    else:
        write_whole(out, text.encode())
        typer.echo(f"{what}: {out}", err=True)


def write_picture(out: Path, figure: Any) -> None:
    content = io.BytesIO()
    figure.savefig(content, format=out.suffix[1:].lower(), dpi=150)
    write_whole(out, content.getvalue())
    typer.echo(f"picture: {out}", err=True)


@contextmanager
def table_writer(out: Path, schema: Any) -> Iterator[Write]:
    """Yield a function that writes Arrow tables to standard output, or to a file that appears at the end."""
    if out == STANDARD:
        yield _csv_writer(sys.stdout.buffer, schema)
        sys.stdout.buffer.flush()
        return
    with file_beside(out) as beside:
        if out.suffix.lower() == ".parquet":
            with pyarrow.parquet.ParquetWriter(beside, schema) as writer:
                yield writer.write_table
        else:
            with beside.open("wb") as handle:
                yield _csv_writer(handle, schema)


def _csv_writer(handle: BinaryIO, schema: Any) -> Write:
    """Write a header, and return a function that writes rows."""
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(schema.names)
    handle.write(header.getvalue().encode())

    def write(table: Any) -> None:
        # Booleans are written as class names are: True and False. Arrow would write true and false.
        columns = [pc.if_else(one, "True", "False") if one.type == pa.bool_() else one for one in table.columns]
        texts = [column for column in columns if holds_text(column.type)]
        # The style "needed" quotes all values of text, also those without special characters.
        needs_quotes = any(pc.any(pc.match_substring_regex(text, '[",\r\n]')).as_py() for text in texts)
        quoting = "needed" if needs_quotes else "none"
        options = pyarrow.csv.WriteOptions(include_header=False, quoting_style=quoting)
        pyarrow.csv.write_csv(pa.table(columns, names=schema.names), handle, options)

    return write

"""Input of commands: models, tables in files or on standard input, and labeled rows.

The types of training data are inferred from the file; those of other rows are the types that the model expects.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from aucforest.cli._options import LEAST_ROWS, LEAST_ROWS_OF_INTEGERS, MOST_LABELS, STANDARD
from aucforest.estimators._model_files import read_as_fitted
from aucforest.tables.csv import CSV_SUFFIXES, CsvFiles, CsvTable, is_csv
from aucforest.tables.csv_format import DEFAULT_FORMAT, CsvFormat
from aucforest.tables.kinds import (
    FLAG,
    TEXT,
    Columns,
    ModelColumns,
    as_kind,
    as_text,
    check_types,
    decode,
    feature_names,
    find_column,
    holds_text,
    is_number,
    kind_of,
    to_numbers,
)
from aucforest.tables.labels import (
    LabelReader,
    find_comparison,
    not_label,
    read_groups,
    read_target,
    read_weights,
    refuse_missing,
)
from aucforest.tables.notes import suspicious_columns
from aucforest.tables.sources import ParquetFiles, Source, open_source
from aucforest.tables.spreadsheets import SPREADSHEET, read_spreadsheet
from aucforest.tables.texts import StrayText, read_as_missing

# The option in error messages.
_OPTION = "--positive "
# The maximum number of rows of a table read batch by batch that notes are on, and the places that they are taken from.
_MOST_ROWS, _BLOCKS = 2**16, 16
# Pairs of labels of which the second is positive even if it is more frequent.
_ORDERED = {("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("negative", "positive"), ("neg", "pos")}


@contextmanager
def open_table(file: Path, csv_format: CsvFormat = DEFAULT_FORMAT) -> Iterator[CsvTable | CsvFiles | ParquetFiles]:
    """Open a file, a folder of files, or a CSV from standard input or a pipe, which can be read only once."""
    if file == STANDARD:
        yield CsvTable(sys.stdin.buffer, "standard input", csv_format=csv_format)
    elif not file.exists():
        raise ValueError(f"there is no file {file}")
    elif file.is_dir():
        yield cast(CsvFiles | ParquetFiles, open_source(file, as_text=None, csv_format=csv_format))
    elif file.suffix.lower() == ".parquet":
        yield ParquetFiles([file], file.name)
    elif file.suffix.lower() == SPREADSHEET:
        yield read_spreadsheet(file, csv_format)
    elif is_csv(file) or not file.is_file():
        with file.open("rb") as handle:
            yield CsvTable(handle, file.name, file, csv_format)
    else:
        suffixes = ", ".join((*CSV_SUFFIXES, SPREADSHEET))
        raise ValueError(f"the name of a table must end in {suffixes} or .parquet, got {file.name}")


def can_read_again(file: Path) -> bool:
    """Return whether a table is a file or a folder, not standard input or a pipe."""
    return file.is_file() or file.is_dir()


def read_model(file: Path, jobs: int | None = None) -> Any:
    """Load a model and set its number of threads; the second of two classes is the positive one."""
    if not file.exists():
        raise ValueError(f"there is no file {file}")
    if file.is_dir():
        raise ValueError(f"{file} is a folder, not a model file")
    model = read_as_fitted(file)
    return model.set_params(n_jobs=jobs) if "n_jobs" in model.get_params(deep=False) else model


class Labelled(NamedTuple):
    """The name, features, labels and weights of a table.

    For training data, `y` has the numbers of the classes, the positive one of two last. Folds may be made by `groups`
    or `times`, and `kept` are columns of the table as they are. For other rows, `y` has the classes of the model.
    """

    title: str
    X: Any
    y: Any
    weight: NDArray[np.float64] | None = None
    classes: Any = None
    groups: NDArray[Any] | None = None
    times: NDArray[Any] | None = None
    kept: Any = None


def read_training(
    file: Path,
    target: str,
    positive: str | None = None,
    weight: str | None = None,
    drop: Sequence[str] = (),
    csv_format: CsvFormat = DEFAULT_FORMAT,
    *,
    groups: str | None = None,
    time: str | None = None,
    keep: Sequence[str] = (),
) -> Labelled:
    """Read the training data with all columns except some."""
    others = [target, *(name for name in (weight, groups, time) if name is not None), *drop]
    with open_table(file, csv_format) as table:
        for name in [*others, *keep]:
            find_column(table, name)
        content = table.whole(as_text=[target] if groups is None else [target, groups])
        if content.num_rows == 0:
            raise ValueError(f"{table.name} has a header, but no rows")
        reader = LabelReader(table, target, positive, _OPTION)
        reader.add(content.column(target))
        classes, y = _order(reader, *reader.finish(), positive)
        weights = None if weight is None else read_weights(table, content.column(weight), weight)
        of_groups = (
            None if groups is None else np.asarray(read_groups(table, content.column(groups), groups).to_pandas())
        )
        times = None if time is None else _read_times(table, content.column(time), time)
        names = feature_names(table, others)
    if table.is_text and csv_format.stray_text == "number":
        content = without_stray(content, [*names, *(name for name in keep if name in drop)])
    features = content.select(names)
    check_types(features.schema)
    say(suspicious_columns(features, y, drop=True))
    title = _title(table, target, positive)
    return Labelled(title, _to_frame(features), y, weights, classes, of_groups, times, content.select(keep))


def say(notes: list[str]) -> None:
    """Write notes on standard error."""
    for note in notes:
        typer.echo(f"Note: {note}", err=True)


def without_stray(content: Any, names: Sequence[str]) -> Any:
    """Return a CSV with numbers in those of its columns of text that are nearly all numbers, and say so."""
    for name in names:
        stray, column = StrayText(), content.column(name)
        if holds_text(column.type):
            numbers = to_numbers(column, stray)
            if stray.is_rare:
                content = content.set_column(content.column_names.index(name), name, numbers)
                say([read_as_missing(name, stray)])
    return content


def say_of_rows(table: Source, features: Sequence[str], labels: NDArray[Any]) -> None:
    """Say what is suspicious in rows of a table that is read batch by batch: the first of a CSV, else from all over."""
    n_rows = len(labels)
    n_blocks = 1 if table.is_text or n_rows <= _MOST_ROWS else _BLOCKS
    size = min(_MOST_ROWS // n_blocks, n_rows)
    batches: list[Any] = []
    starts = np.linspace(0, n_rows - size, n_blocks).astype(int)
    for start in starts.tolist():
        n_left = size
        for batch in table.batches(features, start):
            batches.append(batch.slice(0, n_left))
            n_left -= batches[-1].num_rows
            if n_left == 0:
                break
    places = starts[:, None] + np.arange(size)
    say(suspicious_columns(pa.Table.from_batches(batches), labels[places.ravel()], drop=True, n_rows=n_rows))


def _read_times(table: Columns, column: Any, name: str) -> NDArray[Any]:
    """Return a column of dates or numbers, with text parsed as dates by pandas; raise ValueError if one is missing."""
    column = decode(column)
    values, type_ = column.to_pandas(date_as_object=False), column.type
    if holds_text(type_) or pa.types.is_date(type_) or pa.types.is_timestamp(type_) or pa.types.is_null(type_):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that text has no common format
            values = pd.to_datetime(values, errors="coerce", utc=True).dt.tz_localize(None)
    elif not is_number(type_):
        raise ValueError(f"column {name!r} has type {type_}, but times must be dates or numbers")
    if values.isna().any():
        row = int(values.isna().to_numpy().argmax())
        what = f"the value {column[row].as_py()!r}, which is no date, or not in the format of the others"
        raise ValueError(f"{table.place(row)}: column {name!r} has {what if column[row].is_valid else 'no date'}")
    return values.to_numpy()


def read_labels(
    table: Source, target: str, positive: str | None = None, weight: str | None = None, groups: str | None = None
) -> Labelled:
    """Read only the labels, weights and groups of the training data."""
    reader = LabelReader(table, target, positive, _OPTION)
    classes, y, weights, numbers = read_target(table, reader, weight, groups)
    classes, y = _order(reader, classes, y, positive)
    return Labelled(_title(table, target, positive), None, y, weights, classes, numbers)


def read_for_model(
    model: Any,
    file: Path,
    target: str,
    positive: str | None = None,
    weight: str | None = None,
    csv_format: CsvFormat = DEFAULT_FORMAT,
) -> Labelled:
    """Read labeled rows for a model, say what it has not seen; raise ValueError if a label is no class of it."""
    others = [target, *([] if weight is None else [weight])]
    with open_table(file, csv_format) as table:
        columns, n_rows = ModelColumns(model, table, others, csv_format), 0
        features: list[Any] = []
        rest: list[Any] = []
        for batch in table.batches(list(dict.fromkeys([*columns.names, *others]))):
            features.append(_large_integers_kept(columns.typed(batch, n_rows), batch))
            rest.append(pa.table(batch.select(others)))
            n_rows += batch.num_rows
        if n_rows == 0:
            raise ValueError(f"{table.name} has a header, but no rows")
        say([*columns.stray_notes(), *columns.unseen_notes()])
        beside = pa.concat_tables(rest)
        y = _labels_of(model, table, beside.column(target), target, positive)
        weights = None if weight is None else read_weights(table, beside.column(weight), weight)
    X = _to_frame(pa.concat_tables(features, promote_options="permissive"))
    X = X if columns.has_names else X.set_axis(range(len(columns.names)), axis=1)
    return Labelled(_title(table, target, positive), X, y, weights, model.classes_)


def _large_integers_kept(typed: Any, batch: Any) -> Any:
    """Return the numbers of a batch; integers are not converted to float64, which merges those above 2**53."""
    for place, name in enumerate(typed.column_names):
        column = typed.column(place)
        if pa.types.is_floating(column.type) and (pc.max(pc.abs(column)).as_py() or 0) > 2**53:
            with suppress(pa.ArrowInvalid):  # not all values are integers
                given = batch.column(name)
                integers = (as_text(given) if holds_text(given.type) else given).cast(pa.int64())
                typed = typed.set_column(place, name, integers)
    return typed


def _title(table: Columns, target: str, positive: str | None) -> str:
    """Return the title of the results."""
    of = "" if positive is None else f" {positive}" if find_comparison(positive) else f" = {positive}"
    return f"{table.name}, {target}{of}"


def _order(
    reader: LabelReader, classes: NDArray[Any], labels: NDArray[np.uint16], positive: str | None
) -> tuple[NDArray[Any], NDArray[np.uint16]]:
    """Return the classes, the positive one of two last, and the number of each row's class."""
    if positive is not None:
        return reader.names(), labels
    _refuse_quantities(reader.target, classes, labels)
    is_text = len(classes) == 2 and classes.dtype.kind == "U"
    if is_text and tuple(map(str.lower, classes.tolist())) not in _ORDERED:
        n_negative, n_positive = np.bincount(labels, minlength=2)
        if n_negative < n_positive:
            classes, labels = classes[::-1], (1 - labels).astype(np.uint16)
        typer.echo(f"positive class: {str(classes[1])!r}, the rarer label (--positive chooses another)", err=True)
    return classes, labels


def _refuse_quantities(target: str, classes: NDArray[Any], labels: NDArray[np.uint16]) -> None:
    """Raise ValueError if there are many labels with few rows each, which are probably not classes."""
    n_rows, n_classes = len(labels), len(classes)
    is_integer = classes.dtype.kind in "iu"
    if n_classes <= MOST_LABELS or n_rows >= (LEAST_ROWS_OF_INTEGERS if is_integer else LEAST_ROWS) * n_classes:
        return
    if is_integer:
        raise ValueError(
            f"column {target!r} has {n_classes:,} distinct integers in {n_rows:,} rows, which looks like a quantity,"
            f" not classes: make two classes of it with --positive '>={classes[int(np.median(labels))]}', or bin it"
            " and write the bins as text"
        )
    raise ValueError(
        f"column {target!r} has {n_classes:,} distinct labels in {n_rows:,} rows, too many classes to learn: name one"
        " label with --positive, or merge rare labels"
    )


def _labels_of(model: Any, table: Columns, column: Any, target: str, positive: str | None) -> NDArray[Any]:
    """Return labels as the classes of a model."""
    classes = model.classes_
    kind = kind_of(classes.tolist())
    is_one_against_others = kind == TEXT and classes[0] == not_label(classes[1])
    if positive is not None and kind != FLAG and (len(classes) > 2 or positive != str(classes[1])):
        raise ValueError(f"--positive must be the model's, but is {positive!r}; its classes are {_listed(classes)}")
    if is_one_against_others or (positive is not None and kind == FLAG):
        reader = LabelReader(table, target, str(classes[1]) if positive is None else positive, _OPTION)
        reader.add(column)
        return classes[reader.finish()[1]]
    words = {str(label).lower(): label for label in classes.tolist()}
    if pa.types.is_boolean(column.type) and kind == TEXT and words.keys() == {"false", "true"}:
        column = pc.if_else(column, words["true"], words["false"])  # booleans, with the spelling in the training data
    try:
        labels = as_kind(column, kind, target, table.place, table.missing)
    except ValueError as error:
        advice = "; if the model was fitted with a positive label, pass --positive" if kind == FLAG else ""
        raise ValueError(f"{error}{advice}") from error
    missing = pc.is_null(labels, nan_is_null=True)
    n_missing = pc.sum(missing).as_py()
    if n_missing:
        refuse_missing(table, target, n_missing, pc.index(missing, True).as_py())
    places = pd.Index(classes).get_indexer(labels.to_pandas())
    if np.any(places < 0):
        row = int(np.argmax(places < 0))
        raise ValueError(
            f"{table.place(row)}: column {target!r} has the label {column[row].as_py()!r}, but the classes of the model"
            f" are {_listed(classes)}"
        )
    if np.all(places == places[0]):
        raise ValueError(f"column {target!r} has only one class, {str(classes[places[0]])!r}")
    return classes[places]


def _listed(classes: NDArray[Any]) -> str:
    """Return the first classes, quoted."""
    names = list(map(repr, classes.tolist()))
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if names[10:] else "")


def _to_frame(table: Any) -> pd.DataFrame:
    """Return an arrow table as a DataFrame with text and booleans as categories and NaN for null columns.

    Days and times of day stay in Arrow, because pandas has no type for them.
    """
    for place, (name, column) in enumerate(zip(table.column_names, table.columns)):
        if pa.types.is_boolean(column.type):
            table = table.set_column(place, name, column.dictionary_encode())
        elif pa.types.is_null(column.type):
            table = table.set_column(place, name, column.cast(pa.float64()))
    table = table.replace_schema_metadata(None)  # of pandas, which would determine the types
    in_arrow = {type_: pd.ArrowDtype(type_) for type_ in table.schema.types if _is_day_or_clock(type_)}
    return table.to_pandas(strings_to_categorical=True, types_mapper=in_arrow.get)


def _is_day_or_clock(type_: Any) -> bool:
    """Return whether a type is that of days without a time of day, or the reverse."""
    return pa.types.is_date(type_) or pa.types.is_time(type_)

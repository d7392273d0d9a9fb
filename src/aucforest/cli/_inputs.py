"""Input of commands: models, tables in files or on standard input, and labeled rows.

The types of training data are inferred from the file; those of other rows are the types that the model expects.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from aucforest.cli._labels import OPTION, labels_for_model, with_positive_last
from aucforest.cli._options import STANDARD
from aucforest.estimators._model_files import load
from aucforest.tables.columns import read_table
from aucforest.tables.csv import CSV_SUFFIXES, CsvFiles, CsvTable, is_csv
from aucforest.tables.csv_format import DEFAULT_FORMAT, CsvFormat
from aucforest.tables.integers import rounded_features
from aucforest.tables.kinds import (
    Columns,
    ModelColumns,
    as_text,
    decode,
    feature_names,
    find_column,
    holds_text,
    is_number,
    to_features,
)
from aucforest.tables.labels import LabelReader, check_has_rows, find_comparison, read_target, read_weights
from aucforest.tables.notes import suspicious_columns
from aucforest.tables.sources import ParquetFiles, Source, open_source, stray_notes
from aucforest.tables.spreadsheets import SPREADSHEET, spreadsheet_as_csv

# The maximum number of rows of a table read batch by batch that notes are on, and the places that they are taken from.
_MOST_ROWS, _BLOCKS = 2**16, 16


class TrainingColumns(NamedTuple):
    """The columns of a training table that are no ordinary features, by the options that name them.

    The columns `drop` are left out, and those in `keep` are copied to the output, whatever else they are. The columns
    `categorical` are text, whatever they hold.
    """

    target: str
    positive: str | None = None
    weight: str | None = None
    drop: Sequence[str] = ()
    groups: str | None = None
    time: str | None = None
    keep: Sequence[str] = ()
    categorical: Sequence[str] = ()


class Labelled(NamedTuple):
    """The name, features, labels and weights of a table.

    For training data, `y` has the numbers of the classes, the positive one of two last. Folds may be made by `groups`
    or `times`, and `kept` are columns of the table as they are. If it is read batch by batch, X and `kept` are None,
    and `source` and `features` are the opened table and the names of its features. For other rows, `y` has the classes
    of the model.
    """

    title: str
    X: Any
    y: Any
    weight: NDArray[np.float64] | None = None
    classes: Any = None
    groups: NDArray[Any] | None = None
    times: NDArray[Any] | None = None
    kept: Any = None
    source: Any = None
    features: Sequence[str] = ()


@contextmanager
def open_once(file: Path, csv_format: CsvFormat = DEFAULT_FORMAT) -> Iterator[CsvTable | CsvFiles | ParquetFiles]:
    """Open a table that is read once; all columns of a CSV are strings."""
    if _is_stream(file):
        with _open_csv(file, csv_format) as (handle, name, csv_format):
            yield CsvTable(handle, name, file if is_csv(file) else None, csv_format)
    else:
        yield cast(CsvFiles | ParquetFiles, open_source(file, as_text=None, csv_format=csv_format))


@contextmanager
def open_again(file: Path, csv_format: CsvFormat = DEFAULT_FORMAT, as_text: Sequence[str] = ()) -> Iterator[Source]:
    """Open a table that is read several times, in types that fit all rows; the columns `as_text` of a CSV are strings.

    What can be read only once is copied to a temporary file.
    """
    if not _is_stream(file) or (is_csv(file) and can_read_again(file)):
        yield open_source(file, as_text, csv_format)
        return
    with TemporaryDirectory() as folder, _open_csv(file, csv_format) as (handle, name, csv_format):
        copy = Path(folder, name)
        with copy.open("wb") as copied:
            copyfileobj(handle, copied)
        yield CsvFiles([copy], name, as_text, csv_format)


def _is_stream(file: Path) -> bool:
    """Return whether a table is a single CSV or a spreadsheet; ValueError if there is no such file."""
    if file == STANDARD:
        return True
    if not file.exists():
        raise ValueError(f"there is no file {file}")
    if file.is_dir() or file.suffix.lower() == ".parquet":
        return False
    if not (is_csv(file) or file.suffix.lower() == SPREADSHEET) and file.is_file():
        suffixes = ", ".join((*CSV_SUFFIXES, SPREADSHEET))
        raise ValueError(f"the name of a table must end in {suffixes} or .parquet, got {file.name}")
    return True


@contextmanager
def _open_csv(file: Path, csv_format: CsvFormat) -> Iterator[tuple[BinaryIO, str, CsvFormat]]:
    """Open a CSV, or a spreadsheet as one; yield its content, its name and its format."""
    if file == STANDARD:
        yield sys.stdin.buffer, "standard input", csv_format
    elif file.suffix.lower() == SPREADSHEET:
        yield BytesIO(spreadsheet_as_csv(file)), file.name, csv_format._replace(separator=",", encoding=None)
    else:
        with file.open("rb") as handle:
            yield handle, file.name, csv_format


def read_columns(table: Source, names: Sequence[str]) -> Any:
    """Return some columns of a table in the types that fit all rows."""
    names = list(dict.fromkeys(names))
    find_column(table, *names)
    return pa.Table.from_batches(table.batches(names), schema=table.schema(names))


def can_read_again(file: Path) -> bool:
    """Return whether a table is a file or a folder, not standard input or a pipe."""
    return file.is_file() or file.is_dir()


def read_model(file: Path, jobs: int | None = None) -> Any:
    """Load a model and set its number of threads."""
    if not file.exists():
        raise ValueError(f"there is no file {file}")
    if file.is_dir():
        raise ValueError(f"{file} is a folder, not a model file")
    model = load(file)
    return model.set_params(n_jobs=jobs) if "n_jobs" in model.get_params(deep=False) else model


def say(notes: list[str]) -> None:
    """Write notes on standard error."""
    for note in notes:
        typer.echo(f"Note: {note}", err=True)


def read_training(
    file: Path, columns: TrainingColumns, csv_format: CsvFormat = DEFAULT_FORMAT, *, in_batches: bool = False
) -> Labelled:
    """Read training data, and say what is suspicious; if it is read `in_batches`, its features are left in the file."""
    target, positive, weight, drop, groups, time, keep, categorical = columns
    read_apart = [name for name in (target, weight, groups) if name is not None]
    others = [*read_apart, *([] if time is None else [time])]
    with open_again(file, csv_format, [*read_apart, *categorical]) as table:
        find_column(table, *others, *drop, *keep, *categorical)
        _check_categorical(table, categorical)
        features = feature_names(table, [*others, *drop])
        reader = LabelReader(table, target, positive, OPTION)
        classes, y, weights, group_numbers = read_target(table, reader, weight, groups)
        say(reader.alike_notes())
        classes, y = with_positive_last(reader, classes, y, positive)
        data = Labelled(_title(table, target, positive), None, y, weights, classes, group_numbers)
        say(stray_notes(table, [*features, *keep]))
        if in_batches:
            _say_of_rows(table, features, y)
            return data._replace(source=table, features=features)
        content = read_columns(table, [*features, *(name for name in (groups, time) if name is not None), *keep])
        X = content.select(features)
        say(suspicious_columns(X, y, drop=True))
        return data._replace(
            X=to_features(_already_rounded(X)),
            groups=None if groups is None else content.column(groups).to_pandas().to_numpy(),
            times=None if time is None else _read_times(table, content.column(time), time),
            kept=content.select(keep),
        )


def _check_categorical(table: Source, names: Sequence[str]) -> None:
    """Raise ValueError if a column that is named as categorical has another type, which only a CSV has not."""
    for name in names if not table.is_text else ():
        type_ = table.schema([name]).field(name).type
        if not (holds_text(type_) or pa.types.is_boolean(type_)):
            raise ValueError(
                f"--categorical: the column {name!r} of {table.name} is {type_}: store it as text, as the types of a"
                " Parquet file say which columns are categorical"
            )


def _already_rounded(table: Any) -> Any:
    """Return a table with float64 in place of integers that it rounds: a note has told, so no fit needs to warn."""
    for feature in rounded_features(read_table(table)):
        column = table.column(feature).cast(pa.float64(), safe=False)
        table = table.set_column(feature, table.column_names[feature], column)
    return table


def _say_of_rows(table: Source, features: Sequence[str], labels: NDArray[Any]) -> None:
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
    rows = starts[:, None] + np.arange(size)
    say(suspicious_columns(pa.Table.from_batches(batches), labels[rows.ravel()], drop=True, n_rows=n_rows))


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
    with open_once(file, csv_format) as table:
        columns, n_rows = ModelColumns(model, table, others, csv_format), 0
        feature_batches: list[Any] = []
        other_batches: list[Any] = []
        for batch in table.batches(list(dict.fromkeys([*columns.names, *others]))):
            feature_batches.append(_large_integers_kept(columns.typed(batch, n_rows), batch))
            other_batches.append(pa.table(batch.select(others)))
            n_rows += batch.num_rows
        check_has_rows(table, n_rows)
        say([*columns.stray_notes(), *columns.unseen_notes()])
        content = pa.concat_tables(other_batches)
        y = labels_for_model(model, table, content.column(target), target, positive)
        weights = None if weight is None else read_weights(table, content.column(weight), weight)
    X = columns.features(pa.concat_tables(feature_batches, promote_options="permissive"))
    return Labelled(_title(table, target, positive), X, y, weights, model.classes_)


def _large_integers_kept(typed: Any, batch: Any) -> Any:
    """Return the numbers of a batch; integers are not converted to float64, which merges those above 2**53."""
    columns = dict(zip(typed.column_names, typed.columns))
    for name, column in columns.items():
        if pa.types.is_floating(column.type) and (pc.max(pc.abs(column)).as_py() or 0) > 2**53:
            with suppress(pa.ArrowInvalid):  # not all values are integers
                given = batch.column(name)
                columns[name] = (as_text(given) if holds_text(given.type) else given).cast(pa.int64())
    return pa.table(columns)


def _title(table: Columns, target: str, positive: str | None) -> str:
    """Return the title of the results."""
    label = "" if positive is None else f" {positive}" if find_comparison(positive) else f" = {positive}"
    return f"{table.name}, {target}{label}"

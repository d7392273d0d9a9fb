"""Input of commands: models, tables in files or on standard input, and labeled rows.

The types of training data are inferred from the file; those of other rows are the types that the model expects.
"""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import typer
from numpy.typing import NDArray

from aucforest.cli._labels import OPTION, labels_for_model, with_positive_last
from aucforest.cli._options import names_in
from aucforest.estimators._model_files import load
from aucforest.tables.columns import read_table
from aucforest.tables.copies import STANDARD
from aucforest.tables.integers import rounded_features
from aucforest.tables.kinds import Columns, decode, feature_names, find_column, holds_text, is_number, to_features
from aucforest.tables.labels import LabelReader, check_has_rows, find_comparison, read_target, read_weights
from aucforest.tables.model_columns import ModelColumns
from aucforest.tables.notes import suspicious_columns
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions
from aucforest.tables.sources import NAMES, Source, is_table, open_source, stray_notes

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
    and `source` and `features` are the opened table and the names of its features. `text_formats` says how features in
    text are written. For other rows, `y` has the classes of the model.
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
    text_formats: Mapping[str, Mapping[str, str]] = {}


def open_table(file: Path, as_text: Sequence[str] | None, options: ReadOptions = DEFAULT_OPTIONS) -> Source:
    """Open a table; the columns `as_text` of a text file are strings, None for all. ValueError if there is none."""
    if file != STANDARD and not file.exists():
        raise ValueError(f"there is no file {file}")
    if file.is_file() and not is_table(file):
        raise ValueError(f"the name of a table must end in {NAMES}, got {file.name}")
    return open_source(file, as_text, options)


def read_columns(table: Source, names: Sequence[str]) -> Any:
    """Return some columns of a table in the types that fit all rows."""
    names = list(dict.fromkeys(names))
    find_column(table, *names)
    return pa.Table.from_batches(table.batches(names), schema=table.schema(names))


def can_read_again(file: Path) -> bool:
    """Return whether a table is a file or a folder, not standard input or a pipe."""
    return file.is_file() or file.is_dir()


def read_groups(data: Path, by: str, read_options: ReadOptions) -> Any:
    """Read the columns of subgroups, which need not be those of the model."""
    if not can_read_again(data):
        raise typer.BadParameter("is for files: standard input and pipes cannot be read twice", param_hint="--by")
    return read_columns(open_table(data, (), read_options), names_in(by)).to_pandas()


def read_model(file: Path, jobs: int | None = None, prevalence: float | None = None) -> Any:
    """Load a model, set its number of threads, and the frequency of its positive class if that is given."""
    if not file.exists():
        raise ValueError(f"there is no file {file}")
    if file.is_dir():
        raise ValueError(f"{file} is a folder, not a model file")
    model = load(file)
    if prevalence is not None:
        if not hasattr(model, "set_prevalence"):
            raise ValueError(f"--prevalence is for forests and stacks, but the model is a {type(model).__name__}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.set_prevalence(prevalence)
        say([str(warning.message) for warning in caught])
    return model.set_params(n_jobs=jobs) if "n_jobs" in model.get_params(deep=False) else model


def say(notes: list[str]) -> None:
    """Write notes on standard error."""
    for note in notes:
        typer.echo(f"Note: {note}", err=True)


def read_training(
    file: Path, columns: TrainingColumns, read_options: ReadOptions = DEFAULT_OPTIONS, *, in_batches: bool = False
) -> Labelled:
    """Read training data, and say what is suspicious; if it is read `in_batches`, its features are left in the file."""
    target, positive, weight, drop, groups, time, keep, categorical = columns
    read_apart = [name for name in (target, weight, groups) if name is not None]
    others = [*read_apart, *([] if time is None else [time])]
    table = open_table(file, [*read_apart, *categorical], read_options)
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
    X, names = content.select(features), set(features)
    say(suspicious_columns(X, y, drop=True))
    return data._replace(
        X=to_features(_already_rounded(X)),
        groups=None if groups is None else content.column(groups).to_pandas().to_numpy(),
        times=None if time is None else _read_times(table, content.column(time), time),
        kept=content.select(keep),
        text_formats={name: written for name, written in table.text_formats.items() if name in names},
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


def _read_times(table: Source, column: Any, name: str) -> NDArray[Any]:
    """Return a column of dates or numbers, with text parsed as dates by pandas; raise ValueError if one is missing."""
    column = decode(column)
    values, type_ = column.to_pandas(date_as_object=False), column.type
    if holds_text(type_) or pa.types.is_date(type_) or pa.types.is_timestamp(type_) or pa.types.is_null(type_):
        values = pd.to_datetime(values, errors="coerce", utc=True, format="ISO8601").dt.tz_localize(None)
    elif not is_number(type_):
        raise ValueError(f"column {name!r} has type {type_}, but times must be dates or numbers")
    if name in table.stray:
        raise ValueError(f"column {name!r}: {table.stray[name]}, but times must be dates or numbers")
    if values.isna().any():
        row = int(values.isna().to_numpy().argmax())
        what = f"the value {column[row].as_py()!r}, which is no date; --date-format may help"
        raise ValueError(f"{table.location(row)}: column {name!r} has {what if column[row].is_valid else 'no date'}")
    return values.to_numpy()


def read_for_model(
    model: Any,
    file: Path,
    target: str,
    positive: str | None = None,
    weight: str | None = None,
    read_options: ReadOptions = DEFAULT_OPTIONS,
) -> Labelled:
    """Read labeled rows for a model, say what it has not seen; raise ValueError if a label is no class of it."""
    others = [target, *([] if weight is None else [weight])]
    table = open_table(file, None, read_options)
    columns, n_rows = ModelColumns(model, table, others), 0
    feature_batches: list[Any] = []
    other_batches: list[Any] = []
    for batch in table.batches(list(dict.fromkeys([*columns.names, *others]))):
        feature_batches.append(columns.typed(batch, n_rows))
        other_batches.append(pa.table(batch.select(others)))
        n_rows += batch.num_rows
    check_has_rows(table, n_rows)
    say([*stray_notes(table, columns.names), *columns.unseen_notes()])
    content = pa.concat_tables(other_batches)
    y = labels_for_model(model, table, content.column(target), target, positive)
    weights = None if weight is None else read_weights(table, content.column(weight), weight)
    X = columns.features(pa.concat_tables(feature_batches, promote_options="permissive"))
    return Labelled(_title(table, target, positive), X, y, weights, model.classes_)


def _title(table: Columns, target: str, positive: str | None) -> str:
    """Return the title of the results."""
    label = "" if positive is None else f" {positive}" if find_comparison(positive) else f" = {positive}"
    return f"{table.name}, {target}{label}"

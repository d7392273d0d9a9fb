"""Input of commands: models, tables in files or on standard input, and labelled rows.

The types of training data are inferred from the file. Other rows are read in the types that the model expects.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from aucforest.cli._options import names_in
from aucforest.columns.categorical import read_table
from aucforest.columns.integers import rounded_features
from aucforest.columns.notes import suspicious_columns
from aucforest.columns.texts import folded, listed
from aucforest.columns.values import FLAG, TEXT
from aucforest.estimators._model_files import load
from aucforest.metrics.validation import count_classes, positive_last
from aucforest.tables import kinds
from aucforest.tables.files import check_exists
from aucforest.tables.labels import (
    LabelReader,
    check_has_rows,
    find_comparison,
    not_label,
    numeric_columns,
    read_groups,
    read_labels,
    read_weights,
    refuse_missing,
)
from aucforest.tables.predictions import ModelColumns
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions
from aucforest.tables.sources import NAMES, Source, is_table, open_source, stray_notes

# Notes on a table that is read batch by batch are based on at most _MOST_ROWS rows, from _BLOCKS parts of the table.
_MOST_ROWS, _BLOCKS = 2**16, 16
# A target is refused if it has more than _MOST_LABELS distinct labels, and on average fewer than _LEAST_ROWS rows per
# label. For integers, which may be a quantity, the least number of rows is _LEAST_ROWS_OF_INTEGERS.
_MOST_LABELS, _LEAST_ROWS, _LEAST_ROWS_OF_INTEGERS = 50, 10, 100
# Pairs of labels of which the second is positive even if it is more frequent.
_ORDERED = {("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("negative", "positive"), ("neg", "pos")}


class LabelledColumns(NamedTuple):
    """The columns of a labelled table, as named by options. Those after `groups` are for fits only.

    The columns `drop` are left out. The columns `keep` are copied to the table of --reference, even if they have
    another role. The columns `categorical` are read as text, even if they contain numbers.
    """

    target: str
    positive: str | None = None
    weight: str | None = None
    groups: str | None = None
    drop: Sequence[str] = ()
    time: str | None = None
    keep: Sequence[str] = ()
    categorical: Sequence[str] = ()


class Labelled(NamedTuple):
    """The name, features, labels and weights of a table.

    For training data, `y` has class indices (of two classes the positive one is 1), `source` is the opened table, and
    `groups` or `times` may define the folds. If the table is read batch by batch, X is None, and `features` has the
    names of the features. For rows that are read for a fitted model, `y` has labels: classes of the model.
    """

    title: str
    X: Any
    y: Any
    weight: NDArray[np.float64] | None = None
    classes: Any = None
    groups: NDArray[Any] | None = None
    times: NDArray[Any] | None = None
    source: Any = None
    features: Sequence[str] = ()


def open_table(file: Path, as_text: Sequence[str] | None, options: ReadOptions = DEFAULT_OPTIONS) -> Source:
    """Open a table; the columns `as_text` of a text file (None for all) stay strings."""
    if file.is_file() and not is_table(file):
        raise ValueError(f"the name of a table must end in {NAMES}, got {file.name}")
    return open_source(file, as_text, options)


def read_columns(table: Source, names: Sequence[str]) -> Any:
    """Return the given columns of a table as an Arrow table; ValueError if one is missing."""
    names = list(dict.fromkeys(names))
    kinds.check_has_columns(table, *names)
    return pa.Table.from_batches(table.batches(names), schema=table.schema(names))


def can_read_again(file: Path) -> bool:
    """Return whether a table is a file or a folder, not standard input or a pipe."""
    return file.is_file() or file.is_dir()


def read_subgroups(data: Path, by: str, target: str, read_options: ReadOptions) -> Any:
    """Read the columns that define subgroups; they need not be columns of the model."""
    if target in names_in(by):
        raise typer.BadParameter(f"cannot be the target, {target!r}", param_hint="--by")
    if not can_read_again(data):
        raise typer.BadParameter("is for files: standard input and pipes cannot be read twice", param_hint="--by")
    return read_columns(open_table(data, (), read_options), names_in(by)).to_pandas()


def load_model(file: Path, jobs: int | None = None, prevalence: float | None = None) -> Any:
    """Load a model, set its number of threads, and call `set_prevalence` if a prevalence is given."""
    check_exists(file)
    if file.is_dir():
        raise ValueError(f"{file} is a folder, not a model file")
    model = load(file)
    if prevalence is not None:
        if not hasattr(model, "set_prevalence"):
            raise ValueError(f"--prevalence is for forests and stacks, but the model is a {type(model).__name__}")
        with warnings.catch_warnings(record=True) as caught:
            model.set_prevalence(prevalence)
        echo_notes([str(warning.message) for warning in caught])
    return model.set_params(n_jobs=jobs) if "n_jobs" in model.get_params(deep=False) else model


def echo_notes(notes: list[str]) -> None:
    """Print notes on standard error."""
    for note in notes:
        typer.echo(f"Note: {note}", err=True)


def read_training_table(
    file: Path, columns: LabelledColumns, read_options: ReadOptions = DEFAULT_OPTIONS, *, in_batches: bool = False
) -> Labelled:
    """Read training data, and print notes on suspicious columns; if `in_batches` is True, X is None."""
    target, positive, weight, groups, drop, time, keep, categorical = columns
    label_columns = [name for name in (target, weight, groups) if name is not None]
    non_features = [*label_columns, *([] if time is None else [time])]
    table = open_table(file, [*label_columns, *categorical], read_options)
    kinds.check_has_columns(table, *non_features, *drop, *keep, *categorical)
    _check_categorical(table, categorical)
    reader = LabelReader(table, target, positive)
    features = kinds.feature_names(table, [*non_features, *drop], numeric_columns(reader, weight))
    classes, y, weights, group_indices = read_labels(table, reader, weight, groups)
    echo_notes(reader.alike_notes())
    classes, y = with_positive_last(reader, classes, y, positive)
    data = Labelled(_title(table, target, positive), None, y, weights, classes, group_indices, source=table)
    echo_notes(stray_notes(table, [*features, *keep]))
    if in_batches:
        _print_notes_on_rows(table, features, y)
        return data._replace(features=features)
    content = read_columns(table, [*features, *(name for name in (groups, time) if name is not None)])
    X = content.select(features)
    echo_notes(suspicious_columns(X, y, drop=True))
    return data._replace(
        X=kinds.to_features(_round_integers(X)),
        groups=None if groups is None else content.column(groups).to_pandas().to_numpy(),
        times=None if time is None else _read_times(table, content.column(time), time),
    )


def _check_categorical(table: Source, names: Sequence[str]) -> None:
    """Raise ValueError if a column of --categorical is neither text nor boolean; text files have no types to check."""
    for name in () if table.is_text else names:
        type_ = table.schema([name]).field(name).type
        if not (kinds.holds_text(type_) or pa.types.is_boolean(type_)):
            raise ValueError(
                f"--categorical: the column {name!r} of {table.name} is {type_}: store it as text, as the types of a"
                " Parquet file say which columns are categorical"
            )


def _round_integers(table: Any) -> Any:
    """Return a table with large integers as float64, so that the fit does not warn of columns that a note has named."""
    for feature in rounded_features(read_table(table)):
        column = table.column(feature).cast(pa.float64(), safe=False)
        table = table.set_column(feature, table.column_names[feature], column)
    return table


def _print_notes_on_rows(table: Source, features: Sequence[str], labels: NDArray[Any]) -> None:
    """Print notes on a table that is read in batches, from its first rows if it is text, else from all over it."""
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
    echo_notes(suspicious_columns(pa.Table.from_batches(batches), labels[rows.ravel()], drop=True, n_rows=n_rows))


def _read_times(table: Source, column: Any, name: str) -> NDArray[Any]:
    """Return a column of dates or numbers; text is parsed as dates. ValueError if a value is missing."""
    column = kinds.decode(column)
    values, type_ = column.to_pandas(date_as_object=False), column.type
    if kinds.holds_text(type_) or pa.types.is_date(type_) or pa.types.is_timestamp(type_) or pa.types.is_null(type_):
        values = pd.to_datetime(values, errors="coerce", utc=True, format="ISO8601").dt.tz_localize(None)
    elif not kinds.is_numeric_type(type_):
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
    named: LabelledColumns,
    read_options: ReadOptions = DEFAULT_OPTIONS,
    *,
    is_refit: bool = False,
) -> Labelled:
    """Read labelled rows for a model, and print notes on them; raise ValueError if a label is not one of its classes.

    If `is_refit` is True, there are no notes on categories unknown to the model: a new one will be fitted to the rows.
    """
    target, positive, weight, groups, *_ = named
    non_features = list(dict.fromkeys(name for name in (target, weight, groups) if name is not None))
    table = open_table(file, None, read_options)
    kinds.check_has_columns(table, *non_features)
    reader = _label_reader(model, table, target, positive)
    model_columns = ModelColumns(model, table, non_features, numeric_columns(reader, weight))
    features, batches = list[Any](), list[Any]()
    for features_of_batch, batch in model_columns.batches(non_features):
        features.append(features_of_batch)
        batches.append(batch.select(non_features))
    check_has_rows(table, model_columns.n_rows)
    echo_notes([*stray_notes(table, model_columns.names), *([] if is_refit else model_columns.unseen_notes())])
    content = pa.Table.from_batches(batches)
    y = labels_for_model(model, table, content.column(target), target, reader)
    weights = None if weight is None else read_weights(table, content.column(weight), weight)
    X = model_columns.model_input(pa.concat_tables(features, promote_options="permissive"))
    group_ids = None if groups is None else read_groups(table, content.column(groups), groups).to_pandas().to_numpy()
    return Labelled(_title(table, target, positive), X, y, weights, model.classes_, group_ids)


def _title(table: Source, target: str, positive: str | None) -> str:
    label = "" if positive is None else f" {positive}" if find_comparison(positive) else f" = {positive}"
    return f"{table.name}, {target}{label}"


def with_positive_last(
    reader: LabelReader, classes: NDArray[Any], labels: NDArray[np.uint16], positive: str | None
) -> tuple[NDArray[Any], NDArray[np.uint16]]:
    """Return the classes, with the positive one last if there are two, and the class index of each row."""
    if positive is not None:
        return reader.names(), labels
    _refuse_quantities(reader.target, classes, labels)
    is_text = len(classes) == 2 and classes.dtype.kind == "U"
    if is_text and tuple(map(str.lower, classes.tolist())) not in _ORDERED:
        n_negative, n_positive = count_classes(labels, 2)
        if n_negative < n_positive:
            classes, labels = classes[::-1], (1 - labels).astype(np.uint16)
        typer.echo(f"positive class: {str(classes[1])!r}, the rarer label (--positive chooses another)", err=True)
    return classes, labels


def _refuse_quantities(target: str, classes: NDArray[Any], labels: NDArray[np.uint16]) -> None:
    """Raise ValueError if many labels have few rows each, so that they are probably not classes."""
    n_rows, n_classes = len(labels), len(classes)
    is_integer = classes.dtype.kind in "iu"
    if n_classes <= _MOST_LABELS or n_rows >= (_LEAST_ROWS_OF_INTEGERS if is_integer else _LEAST_ROWS) * n_classes:
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


def _label_reader(model: Any, table: Source, target: str, positive: str | None) -> LabelReader | None:
    """Return a label reader for a model of one label against all others, None for other models."""
    classes = model.classes_
    kind = kinds.kind_of(classes.tolist())
    *_, negative, positive_label = classes[positive_last(model)]
    shown = listed(list(map(repr, classes.tolist())))
    if positive is not None and len(classes) > 2:
        raise ValueError(f"--positive is for models of two classes, but this one has {len(classes)}: {shown}")
    if positive is not None and kind != FLAG and not _is_same_label(positive, str(positive_label)):
        raise ValueError(f"--positive must be the model's positive label, but is {positive!r}; its classes are {shown}")
    is_one_against_others = kind == TEXT and negative == not_label(positive_label)
    if is_one_against_others or (positive is not None and kind == FLAG):
        return LabelReader(table, target, positive if kind == FLAG else str(positive_label))
    return None


def _is_same_label(one: str, other: str) -> bool:
    """Return whether two labels are equal, or the same boolean as Python and as Arrow write it."""
    return one == other or (one.lower() == other.lower() in ("false", "true"))


def _spelled_as_in_fit(labels: Any, classes: Sequence[str], target: str) -> Any:
    """Return labels, with the class of the model for each label that differs from it only by case and spaces."""
    class_of = {folded(label): label for label in classes}
    if len(class_of) < len(classes):
        return labels
    for label in pc.unique(labels.drop_null()).to_pylist():
        if (known := class_of.get(folded(label), label)) != label:
            echo_notes([f"column {target!r}: the label {label!r} is read as {known!r}, as it is spelled in fit"])
            labels = pc.if_else(pc.equal(labels, label), known, labels)
    return labels


def labels_for_model(model: Any, table: Source, column: Any, target: str, reader: LabelReader | None) -> NDArray[Any]:
    """Return labels as the classes of a model; ValueError if one is missing or not a class, or if all are the same.

    `reader` is the result of `_label_reader`.
    """
    classes = model.classes_
    kind = kinds.kind_of(classes.tolist())
    if reader is not None:
        reader.add(column)
        labels = reader.finish()[1]
        echo_notes(reader.alike_notes())
        return classes[positive_last(model)][labels]
    if pa.types.is_boolean(column.type) and kind == TEXT:
        column = column.cast(pa.string())
    try:
        labels = kinds.as_kind(column, kind, target, table)
    except ValueError as error:
        advice = "; if the model was fitted with a positive label, pass --positive" if kind == FLAG else ""
        raise ValueError(f"{error}{advice}") from error
    if kind == TEXT:
        labels = _spelled_as_in_fit(labels, classes.tolist(), target)
    missing = pc.is_null(labels, nan_is_null=True)
    if n_missing := pc.sum(missing).as_py():
        refuse_missing(table, target, n_missing, pc.index(missing, True).as_py())
    codes = pc.index_in(labels, pa.array(classes.tolist()).cast(labels.type, safe=False))
    if codes.null_count:
        row = pc.index(pc.is_null(codes), True).as_py()
        shown = listed(list(map(repr, classes.tolist())))
        what = f"column {target!r} has the label {column[row].as_py()!r}, but the classes of the model are {shown}"
        raise ValueError(f"{table.location(row)}: {what}")
    y = classes[codes.to_numpy()]
    if np.all(y == y[0]):
        raise ValueError(f"column {target!r} has only one class, {str(y[0])!r}")
    return y

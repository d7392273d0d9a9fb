"""Models and tables that commands read, in files and on standard input; and labelled rows of tables.

Rows to train on have the types that the file shows, rows to evaluate a model on those of the model.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aucforest.cli._options import LEAST_ROWS, MOST_INTEGERS, STANDARD
from aucforest.estimators import load
from aucforest.tables.csv import CsvTable
from aucforest.tables.kinds import (
    FLAG,
    TEXT,
    Columns,
    ModelColumns,
    as_kind,
    check_types,
    feature_names,
    find_column,
    kind_of,
)
from aucforest.tables.labels import LabelReader, find_comparison, read_target, read_weights, refuse_missing
from aucforest.tables.sources import ParquetFiles, open_source

# How messages write the option.
_OPTION = "--positive "


@contextmanager
def open_table(file: Path) -> Iterator[CsvTable | ParquetFiles]:
    """Open a CSV or Parquet file, or a CSV on standard input or from a pipe, to be read once from its beginning."""
    if file == STANDARD:
        yield CsvTable(sys.stdin.buffer, "standard input")
    elif not file.exists():
        raise ValueError(f"there is no file {file}")
    elif file.is_dir():
        raise ValueError(f"{file} is a folder, not a table")
    elif file.suffix.lower() == ".parquet":
        yield ParquetFiles([file], file.name)
    elif file.suffix.lower() == ".csv" or not file.is_file():
        with file.open("rb") as handle:
            yield CsvTable(handle, file.name, file)
    else:
        raise ValueError(f"a table must end in .csv or .parquet, got {file.name}")


def read_model(file: Path, jobs: int | None = None) -> Any:
    """Read a model file, to be run in some threads."""
    if not file.exists():
        raise ValueError(f"there is no file {file}")
    if file.is_dir():
        raise ValueError(f"{file} is a folder, not a model file")
    model = load(file)
    return model.set_params(n_jobs=jobs) if "n_jobs" in model.get_params() else model


class Labelled(NamedTuple):
    """What a table is called, its features, class labels and weights."""

    title: str
    X: Any
    y: Any
    weight: NDArray[np.float64] | None = None


def read_training(
    file: Path, target: str, positive: str | None = None, weight: str | None = None, drop: Sequence[str] = ()
) -> Labelled:
    """Read a table to train on: all columns but some; with `positive`, that label against all others."""
    others = [target, *([] if weight is None else [weight]), *drop]
    with open_table(file) as table:
        for name in others:
            find_column(table, name)
        content = table.whole(as_text=[target])
        if content.num_rows == 0:
            raise ValueError(f"{table.name} has a header, but no rows")
        y = _labels(table, content.column(target), target, positive)
        weights = None if weight is None else read_weights(table, content.column(weight), weight)
        features = content.select(feature_names(table, others))
    check_types(features.schema)
    return Labelled(_title(table, target, positive), _to_frame(features), y, weights)


def read_labels(file: Path, target: str, positive: str | None = None, weight: str | None = None) -> Labelled:
    """Read no more than labels and weights of a file to train on."""
    table = open_source(file, as_text=None)
    for name in [target, *([] if weight is None else [weight])]:
        find_column(table, name)
    *found, weights = read_target(table, LabelReader(table, target, positive, _OPTION), weight)
    return Labelled(_title(table, target, positive), None, _as_classes(target, *found), weights)


def read_for_model(
    model: Any, file: Path, target: str, positive: str | None = None, weight: str | None = None
) -> Labelled:
    """Read labelled rows for a model, whose classes the labels must be."""
    others = [target, *([] if weight is None else [weight])]
    with open_table(file) as table:
        columns, n_rows = ModelColumns(model, table, others), 0
        features: list[Any] = []
        rest: list[Any] = []
        for batch in table.batches(list(dict.fromkeys([*columns.names, *others]))):
            features.append(columns.typed(batch, n_rows))
            rest.append(pa.table(batch.select(others)))
            n_rows += batch.num_rows
        if n_rows == 0:
            raise ValueError(f"{table.name} has a header, but no rows")
        beside = pa.concat_tables(rest)
        y = _labels_of(model, table, beside.column(target), target, positive)
        weights = None if weight is None else read_weights(table, beside.column(weight), weight)
    X = _to_frame(pa.concat_tables(features))
    X = X if columns.has_names else X.set_axis(range(len(columns.names)), axis=1)
    return Labelled(_title(table, target, positive), X, y, weights)


def _title(table: Columns, target: str, positive: str | None) -> str:
    """Return what results are called."""
    of = "" if positive is None else f" {positive}" if find_comparison(positive) else f" = {positive}"
    return f"{table.name}, {target}{of}"


def _labels(table: Columns, column: Any, target: str, positive: str | None) -> NDArray[Any]:
    """Return labels in the type that the file shows, or which of them are the positive one."""
    reader = LabelReader(table, target, positive, _OPTION)
    reader.add(column)
    return _as_classes(target, *reader.finish())


def _as_classes(target: str, classes: NDArray[Any], labels: NDArray[np.uint16]) -> NDArray[Any]:
    """Return the class of each row; refuse integers that are hardly classes: there are many, of few rows each."""
    n_rows, n_classes = len(labels), len(classes)
    if classes.dtype.kind in "iu" and n_classes > MOST_INTEGERS and n_rows < LEAST_ROWS * n_classes:
        raise ValueError(
            f"column {target!r} has {n_classes:,} distinct integers in {n_rows:,} rows, which looks like a quantity,"
            f" not classes: make two classes of it, such as by --positive '>={classes[int(np.median(labels))]}', or"
            " write classes as text"
        )
    return classes[labels]


def _labels_of(model: Any, table: Columns, column: Any, target: str, positive: str | None) -> NDArray[Any]:
    """Return labels as the classes of a model."""
    classes = model.classes_
    kind = kind_of(classes.tolist())
    if positive is not None:
        if kind != FLAG:
            raise ValueError(
                f"--positive is for a model that was fitted with it; this one's classes are {_listed(classes)}"
            )
        return _labels(table, column, target, positive)
    words = {str(label).lower(): label for label in classes.tolist()}
    if pa.types.is_boolean(column.type) and kind == TEXT and words.keys() == {"false", "true"}:
        column = pc.if_else(column, words["true"], words["false"])  # flags that the training table spelled so
    try:
        labels = as_kind(column, kind, target, table.place, table.missing)
    except ValueError as error:
        advice = "; if the model was fitted with --positive, give it here, too" if kind == FLAG else ""
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
        raise ValueError(f"column {target!r} has one class only: {classes[places[0]]}")
    return classes[places]


def _listed(classes: NDArray[Any]) -> str:
    """Return the first classes as text."""
    names = list(map(str, classes.tolist()))
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if names[10:] else "")


def _to_frame(table: Any) -> pd.DataFrame:
    """Return an arrow table as a DataFrame, where text and flags are categories and nothing is a number."""
    for place, (name, column) in enumerate(zip(table.column_names, table.columns)):
        if pa.types.is_boolean(column.type):
            table = table.set_column(place, name, column.dictionary_encode())
        elif pa.types.is_null(column.type):
            table = table.set_column(place, name, column.cast(pa.float64()))
    table = table.replace_schema_metadata(None)  # the types of pandas that wrote a Parquet
    return table.to_pandas(strings_to_categorical=True, date_as_object=False)

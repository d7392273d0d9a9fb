"""Classes of labels: which is positive, what are too many, and which of a model's classes a label is."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from aucforest.metrics.validation import positive_last
from aucforest.tables.kinds import FLAG, TEXT, Columns, as_kind, kind_of
from aucforest.tables.labels import LabelReader, not_label, refuse_missing

# A target is not accepted if it has more than MOST_LABELS distinct labels and on average fewer than LEAST_ROWS rows of
# each, or LEAST_ROWS_OF_INTEGERS if they are integers, which may be a quantity.
MOST_LABELS, LEAST_ROWS, LEAST_ROWS_OF_INTEGERS = 50, 10, 100
# The option of the positive label in messages.
OPTION = "--positive "
# Pairs of labels of which the second is positive even if it is more frequent.
_ORDERED = {("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("negative", "positive"), ("neg", "pos")}


def with_positive_last(
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


def labels_for_model(model: Any, table: Columns, column: Any, target: str, positive: str | None) -> NDArray[Any]:
    """Return labels as the classes of a model; ValueError if one is missing or no class, or if all are the same."""
    classes = model.classes_
    kind = kind_of(classes.tolist())
    *_, negative, of_model = classes[positive_last(model)]
    is_one_against_others = kind == TEXT and negative == not_label(of_model)
    if positive is not None and kind != FLAG and (len(classes) > 2 or positive != str(of_model)):
        raise ValueError(f"--positive must be the model's, but is {positive!r}; its classes are {_listed(classes)}")
    if is_one_against_others or (positive is not None and kind == FLAG):
        reader = LabelReader(table, target, str(of_model) if positive is None else positive, OPTION)
        reader.add(column)
        labels = reader.finish()[1]
        for note in reader.alike_notes():
            typer.echo(f"Note: {note}", err=True)
        return classes[positive_last(model)][labels]
    class_of_word = {str(label).lower(): label for label in classes.tolist()}
    if pa.types.is_boolean(column.type) and kind == TEXT and class_of_word.keys() == {"false", "true"}:
        # Booleans, in the spelling of the training data.
        column = pc.if_else(column, class_of_word["true"], class_of_word["false"])
    try:
        labels = as_kind(column, kind, target, table.location, table.missing)
    except ValueError as error:
        advice = "; if the model was fitted with a positive label, pass --positive" if kind == FLAG else ""
        raise ValueError(f"{error}{advice}") from error
    missing = pc.is_null(labels, nan_is_null=True)
    if n_missing := pc.sum(missing).as_py():
        refuse_missing(table, target, n_missing, pc.index(missing, True).as_py())
    codes = pc.index_in(labels, pa.array(classes.tolist()).cast(labels.type, safe=False))
    if codes.null_count:
        row = pc.index(pc.is_null(codes), True).as_py()
        raise ValueError(
            f"{table.location(row)}: column {target!r} has the label {column[row].as_py()!r}, but the classes of the"
            f" model are {_listed(classes)}"
        )
    y: NDArray[Any] = classes[codes.to_numpy()]
    if np.all(y == y[0]):
        raise ValueError(f"column {target!r} has only one class, {str(y[0])!r}")
    return y


def _listed(classes: NDArray[Any]) -> str:
    """Return the first classes, quoted."""
    names = list(map(repr, classes.tolist()))
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if names[10:] else "")

"""Class labels and sample weights from Arrow columns, which can be read in batches."""

import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aucforest.columns.texts import alike_note, listed
from aucforest.columns.values import NUMBER
from aucforest.metrics.validation import count_classes
from aucforest.tables.kinds import NamedTable, as_kind, as_text, decode, holds_text, is_numeric_type, nan_to_null
from aucforest.tables.sources import Source

_MOST_CLASSES = 2**16
_NO_CLASS = _MOST_CLASSES - 1  # the index of labels that are not classes
# For messages, labels are counted until this number of distinct ones is reached.
_MOST_SEEN = 1000
# Numbers without leading zeros.
_UNPADDED_NUMBER = re.compile(r"\s*[-+]?(0|[1-9]\d*)(\.\d*)?([eE][-+]?\d+)?\s*")
_COMPARISONS = {">=": pc.greater_equal, ">": pc.greater, "<=": pc.less_equal, "<": pc.less}


def find_comparison(positive: str | None) -> Callable[[Any], Any] | None:
    """Return a function that compares a column with a number, from a string such as ">=18"; None for other strings."""
    match = re.fullmatch(r"(>=|<=|>|<)\s*([-+.\w]+)", positive or "")
    if match is None:
        return None
    try:
        bound = float(match[2])
    except ValueError:
        return None
    return lambda column: _COMPARISONS[match[1]](column.cast(pa.float64(), safe=False), bound)


class LabelReader:
    """Encoder of labels as class indices, batch by batch. If a positive label is given, the classes are False and True.

    Labels are compared with `positive` as strings. A `positive` such as ">=18" compares them as numbers, unless a text
    file has it as a label.
    """

    def __init__(self, table: Any, target: str, positive: Any = None) -> None:
        self._table, self.target = table, target
        self._positive: Any = None if positive is None else pa.scalar(positive).cast(pa.string()).as_py()
        self._comparison = find_comparison(self._positive)
        if self._comparison is not None and table.is_text and table.has_value(target, self._positive):
            self._comparison = None
        # The counts of labels for messages. Without a positive label, they are those of the classes, set by `finish`.
        self._label_counts = Counter[Any]()
        self._code_of: dict[Any, int] = {}
        self._codes: list[NDArray[np.uint16]] = []
        self._n_rows = self._n_missing = 0
        self._first_missing = -1
        self._dtype: Any = None

    def add(self, column: Any) -> None:
        """Encode the labels of the next rows."""
        column = self._read(column)
        if column.null_count and self._n_missing == 0:
            self._first_missing = self._n_rows + pc.index(pc.is_null(column), True).as_py()
        self._n_missing += column.null_count
        self._n_rows += len(column)
        self._codes.append(_codes_of_rows(column.drop_null(), self._add_code))

    def _add_code(self, value: Any) -> int:
        """Return the code of a value, numbered by first appearance; ValueError if there are too many values."""
        code = self._code_of.setdefault(value, len(self._code_of))
        if code >= _MOST_CLASSES:
            labels = self._labels()
            advice = "" if isinstance(labels[0], str) else self._advice(statistics.median_high(labels))
            raise ValueError(f"column {self.target!r} has more than {_MOST_CLASSES:,} different labels{advice}")
        return code

    def _read(self, column: Any) -> Any:
        """Return a column as labels, or as text that `_labels` converts to labels after the last batch."""
        if self._table.is_text and self._comparison is not None:
            column = as_kind(column, NUMBER, self.target, self._table, self._n_rows)
        elif self._table.is_text:
            column = as_text(column, self._table.missing)
            if self._positive is None:
                return column
        return self._as_labels(column)

    def _labels(self) -> list[Any]:
        values = list(self._code_of)
        if self._table.is_text and self._positive is None:
            return self._as_labels(parse_labels(pa.array(values, pa.string()))).to_pylist()
        return values

    def _as_labels(self, column: Any) -> Any:
        """Return a column as labels: strings, integers or booleans; ValueError for other types and fractions."""
        column = decode(column)
        if pa.types.is_float16(column.type) or (pa.types.is_decimal(column.type) and self._positive is None):
            column = column.cast(pa.float64())
        type_ = column.type
        if pa.types.is_floating(type_):
            column = nan_to_null(column)
        if self._positive is not None:
            self._dtype = np.bool_
            return self._is_positive(column)
        if pa.types.is_floating(type_):
            is_integer = pc.and_(pc.is_finite(column), pc.equal(column, pc.round(column)))
            if pc.all(is_integer).as_py() is False:  # None if there are no labels
                value = column[pc.index(is_integer, False).as_py()]
                median = pc.quantile(column, interpolation="higher")[0]
                raise ValueError(
                    f"column {self.target!r} has numbers such as {value}, not class labels{self._advice(median)}"
                )
            column = column.cast(pa.int64())
        elif holds_text(type_):
            self._dtype = str
            return column.cast(pa.string())
        elif not (pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_null(type_)):
            raise ValueError(f"column {self.target!r} has type {type_}, not class labels")
        self._dtype = np.dtype(column.type.to_pandas_dtype())
        return column

    def _advice(self, bound: Any) -> str:
        """Return the end of an error message on a numeric target, with a comparison that makes classes of it."""
        return f"; --positive '>={bound}' (in Python, positive) makes two classes of a numeric target"

    def _is_positive(self, column: Any) -> Any:
        """Return whether each label is positive: the positive label, or a number that fulfils the comparison."""
        if self._comparison is not None and is_numeric_type(column.type):
            return self._comparison(column)
        if pa.types.is_boolean(column.type):  # Arrow casts booleans to strings in lower case
            self._positive = self._positive.lower()
        text = column.cast(pa.string())
        if len(self._label_counts) < _MOST_SEEN:
            for counted in pc.value_counts(text.drop_null()).to_pylist():
                self._label_counts[counted["values"]] += counted["counts"]
        return pc.equal(text, self._positive)

    def finish(self) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        """Return the sorted classes and the class index of each row.

        Raise ValueError if there are fewer than two classes, if a label is missing, or if a row repeats the header.
        """
        labels = self._labels()
        if self._n_missing:
            refuse_missing(self._table, self.target, self._n_missing, self._first_missing)
        distinct = sorted(set(labels))
        if self._positive is not None and True not in distinct:
            seen = list(map(repr, sorted(self._label_counts)))
            missing = f"label {self._positive!r}; its labels are {listed(seen)}" if seen else f"number {self._positive}"
            raise ValueError(f"column {self.target!r} has no {missing}")
        classes = np.array(distinct, dtype=self._dtype)
        if len(distinct) == 1:
            raise ValueError(f"column {self.target!r} has only one class, {classes[0]}: at least 2 are needed")
        self._index_of_class = {label: index for index, label in enumerate(distinct)}
        index_of_code = np.array([self._index_of_class[label] for label in labels], dtype=np.uint16)
        indices = np.concatenate([index_of_code[codes] for codes in self._codes])
        self._codes.clear()
        if self._positive is None:
            self._label_counts.update(dict(zip(classes.tolist(), count_classes(indices, len(classes)).tolist())))
        if self._table.is_text and self.target in self._label_counts:
            self._table.refuse_repeated_header()
        return classes, indices

    def alike_notes(self) -> list[str]:
        """Return the note of `alike_note` on labels, if any; to be called after `finish`."""
        if len(self._label_counts) >= _MOST_SEEN:
            return []
        note = alike_note(self._label_counts, self._label_counts.values(), "labels", self._positive)
        return [] if note is None else [f"column {self.target!r}: {note}"]

    def names(self) -> NDArray[Any]:
        """Return the names of both classes. If the negative class has only one label, that is its name."""
        others = [label for label in self._label_counts if label != self._positive]
        negative = others[0] if len(others) == 1 else not_label(self._positive)
        labels = parse_labels(pa.array([negative, self._positive]))
        return np.array(labels.to_pylist() if pa.types.is_integer(labels.type) else [negative, self._positive])

    def read_again(self, column: Any) -> NDArray[np.uint16]:
        """Return the class index of each row, _NO_CLASS if its label is no class; to be called after `finish`."""
        return _codes_of_rows(self._as_labels(column), lambda label: self._index_of_class.get(label, _NO_CLASS))


def numeric_columns(reader: LabelReader | None, weight: str | None) -> list[str]:
    """Return the columns that must be read as numbers: the weights, and labels that are compared with a number."""
    numbers = [] if weight is None else [weight]
    return numbers if reader is None or reader._comparison is None else [*numbers, reader.target]


def parse_labels(distinct: Any) -> Any:
    """Return distinct labels of text as booleans, as integers, or, if a label has a point or an exponent, as floats.

    They stay strings if a label is something else, such as "true", or has a leading zero, such as "007".
    """
    labels = set(distinct.to_pylist())
    if labels <= {"True", "False"}:
        return pc.equal(distinct, "True")
    if all(_UNPADDED_NUMBER.fullmatch(label) for label in labels):
        with suppress(pa.ArrowInvalid):  # integers of more than 64 bits
            unsigned = pc.replace_substring_regex(pc.utf8_trim_whitespace(distinct), r"^\+", "")
            return unsigned.cast(pa.float64() if re.search("[.eE]", "".join(labels)) else pa.int64())
    return distinct


def typed_labels(column: Any) -> Any:
    """Return a column of labels of text as booleans or numbers; see `parse_labels`."""
    distinct = pc.unique(column.drop_null())
    return parse_labels(distinct).take(pc.index_in(column, distinct))


def not_label(label: str) -> str:
    """Return the name of the class of all labels except the given one."""
    return f"not {label}"


def check_has_rows(table: NamedTable, n_rows: int) -> None:
    """Raise ValueError if a table has no rows."""
    if n_rows == 0:
        raise ValueError(f"{table.name} has {'a header, but ' if table.is_text else ''}no rows")


def refuse_missing(table: NamedTable, target: str, n_missing: int, first: int) -> NoReturn:
    """Raise ValueError for `n_missing` missing labels, of which the first is in the row `first`."""
    stray = f": {table.stray[target]}" if target in table.stray else ""
    what = f"column {target!r} has {n_missing} missing labels, the first in {table.location(first)}{stray}"
    raise ValueError(f"{what}: write these labels, or leave these rows out")


def _codes_of_rows(column: Any, code_of: Callable[[Any], int], dtype: Any = np.uint16) -> NDArray[Any]:
    """Return the code of each row, which `code_of` returns for its value."""
    values = pc.unique(column)
    codes = np.array([code_of(value) for value in values.to_pylist()], dtype=dtype)
    return codes[pc.index_in(column, values).to_numpy()]


class SteadyRows:
    """A source that raises ValueError if its labels change: a query can return its rows in another order each time.

    Other attributes are those of the source.
    """

    def __init__(self, source: Source, reader: LabelReader, labels: NDArray[np.uint16]) -> None:
        self._source, self._reader, self._labels = source, reader, labels

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def batches(self, columns: Sequence[str], *, max_rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of the given columns; see `TextFiles.batches`. ValueError if the labels have changed."""
        start = 0
        for batch in self._source.batches([*columns, self._reader.target], max_rows=max_rows):
            expected = self._labels[start : start + batch.num_rows]
            # The caller checks the number of rows.
            labels = self._reader.read_again(batch.column(self._reader.target))[: len(expected)]
            if not np.array_equal(labels, expected):
                raise ValueError(
                    f"{self._source.name} returned different rows, or in a different order, when it was read again:"
                    " sort it, or write it to a Parquet file first"
                )
            start += batch.num_rows
            yield batch.select(columns)


def read_weights(table: NamedTable, column: Any, name: str, first_row: int = 0) -> NDArray[np.float64]:
    """Return weights, the first of which is in `first_row`; ValueError if one is negative, infinite or missing."""
    weights: NDArray[np.float64] = as_kind(column, NUMBER, name, table, first_row).to_numpy(zero_copy_only=False)
    is_invalid = ~((weights >= 0.0) & np.isfinite(weights))
    if np.any(is_invalid):
        row = int(np.argmax(is_invalid))
        where, stray = table.location(first_row + row), table.stray.get(name)
        what = f"the weight {weights[row]}: weights must be >= 0"
        if np.isnan(weights[row]):
            what = "no weight" if stray is None else f"no weight: {stray}"
        raise ValueError(f"{where}: column {name!r} has {what}")
    return weights


def read_groups(table: NamedTable, column: Any, name: str, first_row: int = 0) -> Any:
    """Return a column of groups, the first of which is in `first_row`; ValueError if a group is missing."""
    column = decode(column)
    column = as_text(column, table.missing) if holds_text(column.type) else column
    row = pc.index(pc.is_null(column, nan_is_null=True), True).as_py()
    if row >= 0:
        raise ValueError(f"{table.location(first_row + row)}: column {name!r} has no value: every row needs a group")
    return column


def read_labels(
    source: Source, reader: LabelReader, weight: str | None, groups: str | None = None
) -> tuple[NDArray[Any], NDArray[np.uint16], NDArray[np.float64] | None, NDArray[np.int32] | None]:
    """Return the sorted classes, and the class index, the weight and the group index of each row."""
    weights, group_indices, index_of, n_rows = [], [], dict[Any, int](), 0
    for batch in source.batches([reader.target, *(name for name in (weight, groups) if name is not None)]):
        reader.add(batch.column(reader.target))
        if weight is not None:
            weights.append(read_weights(source, batch.column(weight), weight, n_rows))
        if groups is not None:
            column = read_groups(source, batch.column(groups), groups, n_rows)
            group_indices.append(_codes_of_rows(column, lambda x: index_of.setdefault(x, len(index_of)), np.int32))
        n_rows += batch.num_rows
    check_has_rows(source, n_rows)
    if len(index_of) == 1:
        raise ValueError(f"column {groups!r} has only one group, {next(iter(index_of))!r}: at least 2 are needed")
    joined_weights = np.concatenate(weights) if weights else None
    joined_groups = np.concatenate(group_indices) if group_indices else None
    return *reader.finish(), joined_weights, joined_groups

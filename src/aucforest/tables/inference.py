"""The types of columns of text, inferred from counts over all rows, in a few statements of the database engine."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from aucforest.tables import spellings, text_types
from aucforest.tables.read_options import ReadOptions
from aucforest.tables.spellings import MOST_STRAY, as_number
from aucforest.tables.text_types import (
    EXACT,
    FIRST_WITH_POINT,
    N_ROUNDED,
    N_SURE_OF_POINT,
    NUMBER,
    NUMBER_COUNTS,
    TEXT,
    TEXT_COUNTS,
    WORD_COUNTS,
    Counts,
    TextType,
    dates_in,
    n_rows,
)


class Count(Protocol):
    """Function that evaluates SQL aggregates for each of some columns, over all rows or over distinct values."""

    def __call__(
        self, names: Sequence[str], expressions: Sequence[str], *, distinct: bool = False
    ) -> dict[str, Sequence[Any]]:
        """Return the values by column."""


def infer_types(
    names: Sequence[str], count: Count, options: ReadOptions, *, has_numbers: bool = False
) -> tuple[dict[str, TextType], set[str]]:
    """Return the types of columns, and the names of those in which float64 rounds an integer.

    If the file `has_numbers`, not only text, plain numbers are never read with a decimal comma.
    """
    most_stray = _most_stray(options)
    plain = count(names, NUMBER_COUNTS)
    types = {name: text_types.plain_type(row, most_stray) for name, row in plain.items()}
    numbers = [name for name, type_ in types.items() if type_ is not None and type_.arrow == NUMBER.arrow]
    large = [name for name in numbers if (plain[name][3] or 0) >= EXACT]
    rounded = {name for name, (n_rounded,) in count(large, [N_ROUNDED]).items() if n_rounded}
    others = count([name for name, type_ in types.items() if type_ is None], WORD_COUNTS)
    types |= {name: text_types.type_of_words(row, most_stray) for name, row in others.items()}
    others = count([name for name, type_ in types.items() if type_ is None], TEXT_COUNTS, distinct=True)
    counts = {name: Counts(row) for name, row in others.items()}
    mark, with_comma = _decimal_mark(counts, [] if has_numbers else numbers, count, options)
    dates = _spelled_dates(counts, count, options)
    for name, found in counts.items():
        types[name] = (
            text_types.type_of_clocks(found)
            or text_types.type_of_iso(found, most_stray)
            or dates.get(name)
            or text_types.type_of_numbers(found, most_stray, mark)
        )
    return {name: type_ or TEXT for name, type_ in (types | with_comma).items()}, rounded


def _most_stray(options: ReadOptions) -> float:
    """Return the proportion of values below which stray text becomes missing."""
    return MOST_STRAY if options.stray_text == "number" else 0.0


def _decimal_mark(
    counts: Mapping[str, Counts], numbers: Sequence[str], count: Count, options: ReadOptions
) -> tuple[str | None, dict[str, TextType]]:
    """Return the decimal mark of columns that fit both marks, and the types of plain numbers if it is a comma.

    The mark is that of the options. If they have none, it is the only mark that other columns require, or None.
    """
    sure = {found.readings.is_sure for found in counts.values() if found.readings.decimal(MOST_STRAY)} - {None}
    mark = options.point_or_comma
    points = count(numbers, [N_SURE_OF_POINT, FIRST_WITH_POINT]) if mark == "," or "," in sure else {}
    if any(n_sure for n_sure, _ in points.values()):
        sure |= {"."}
    if mark is None and len(sure) == 1:
        (mark,) = sure
    types = {}
    for name, (n_sure, first) in points.items():
        if mark == "," and n_sure == 0 and first is not None:
            note = f"numbers such as {first!r} are read as {as_number(first, ',')}"
            types[name] = text_types.spelled_numbers({"decimal": ","}, note)
    return mark, types


def _spelled_dates(counts: Mapping[str, Counts], count: Count, options: ReadOptions) -> dict[str, TextType]:
    """Return the types of columns whose dates have one format: that of the options if it fits, or the only best one."""
    most_stray = _most_stray(options)
    given = options.date_format
    names = [
        name
        for name, found in counts.items()
        if not found.are_dates(found.n_iso, most_stray) and (given or found.are_dates(found.n_may_be_dates, most_stray))
    ]
    formats = spellings.date_formats(date for name in names for date in counts[name].dates if date is not None)
    formats = [*([given] if given else []), *(day for day in formats if day != given)]
    if not formats:
        return {}
    dates = [dates_in(day) for day in formats]
    counts_of_formats = [n_rows(sql) for date in dates for sql in (f"{date} IS NOT NULL", text_types.is_clock(date))]
    types = {}
    for name, row in count(names, counts_of_formats, distinct=True).items():
        n_dates, n_clocks = dict(zip(formats, row[::2])), dict(zip(formats, row[1::2]))
        fitting = {day: n for day, n in n_dates.items() if counts[name].are_dates(n, most_stray)}
        best = [given] if given in fitting else spellings.best_date_formats(fitting)
        if len(best) == 1:
            arrow = pa.timestamp("us") if n_clocks[best[0]] else pa.date32()
            note = "" if best == [given] else f"dates such as {counts[name].dates[0]!r} are read as {best[0]}"
            type_ = text_types.spelled_dates({"date": best[0]}, arrow, note)
            types[name] = type_._replace(is_sure=n_dates[best[0]] == counts[name].n_values)
    return types

"""Spreadsheets, read as the CSV of their first sheet."""

import csv
from io import StringIO
from pathlib import Path
from typing import Any

from aucforest._caller import warn
from aucforest._optional import import_optional

SPREADSHEET = ".xlsx"


def spreadsheet_as_csv(file: Path) -> bytes:
    """Return the first sheet of a spreadsheet as a CSV, with dates in ISO format; ValueError if it cannot be read.

    The cells of a column may be of several types, as in a CSV: so the rules for both are the same.
    """
    calamine = import_optional("python_calamine", purpose=f"reading {file.name}", extra="xlsx")
    try:
        with calamine.load_workbook(file) as book:
            names, rows = book.sheet_names, book.get_sheet_by_index(0).to_python()
    except calamine.CalamineError as error:
        raise ValueError(f"cannot read {file.name}: {error}") from error
    if len(names) > 1:
        warn(f"{file.name} has {len(names)} sheets: the first, {names[0]!r}, is read")
    written = StringIO()
    csv.writer(written).writerows([[_without_fraction(cell) for cell in row] for row in rows])
    return written.getvalue().encode()


def _without_fraction(cell: Any) -> Any:
    """Return the value of a cell, with whole numbers, which spreadsheets store as floats, as integers."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell

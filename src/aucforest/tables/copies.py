"""Copies of files that the database engine can read only once or not at all: streams, spreadsheets, other encodings."""

import csv
import os
import re
import shutil
import sys
import weakref
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE, getincrementaldecoder, lookup
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from io import BufferedReader, StringIO, TextIOWrapper
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from zipfile import ZipFile

import pyarrow as pa

from aucforest._caller import warn
from aucforest._optional import import_optional
from aucforest.tables.files import check_exists

STANDARD, SPREADSHEET = Path("-"), ".xlsx"
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
# Files that are no text, by their first bytes.
_NO_TEXT = {
    b"PK\x03\x04": "a zip archive, as Excel files are: let its name end in .xlsx, or unpack it",
    b"\xd0\xcf\x11\xe0": "a file of an old version of Excel, or has a password: save it as .xlsx without a password",
    b"PAR1\x15": "a Parquet file: pass it in a file whose name ends in .parquet",
}
_BLOCK = 2**20  # the number of characters that are copied at a time
# Encodings by byte order marks. The mark of UTF-32-LE is first, because it begins with that of UTF-16-LE. The engine
# reads UTF-8 with a mark, unless a quote follows the mark.
_MARKS = {
    BOM_UTF32_LE: "utf-32",
    BOM_UTF32_BE: "utf-32",
    BOM_UTF16_LE: "utf-16",
    BOM_UTF16_BE: "utf-16",
    BOM_UTF8 + b'"': "utf-8-sig",
    BOM_UTF8 + b"'": "utf-8-sig",
}
# A cell of a spreadsheet with a formula but without a result. With t="str", the result may be empty text.
_FORMULA_ONLY = re.compile(rb'<c (?![^<>]*t="str")[^<>]*><f(?: [^<>]*)?(?:/>|>[^<]*</f>)(?:<v\s*/>|<v>\s*</v>)?</c>')
# Characters of glob patterns, and those that the engine cannot represent. A path with these is read through a link.
_UNSUPPORTED_CHARACTERS = re.compile(r"[*?\[\\\ud800-\udfff]")


class Readable:
    """A file of text in UTF-8 that can be read more than once: `path` is the file itself or a temporary copy.

    `name` is for messages. `stamped` is the file that must not change while it is read. In a spreadsheet,
    `first_row` is the number of the first row that is not empty, counted from 1.
    """

    def __init__(self, file: Path, encoding: str | None) -> None:
        self.name, self.path, self.stamped, self.first_row = file.name, file, file, 1
        self.is_spreadsheet = file.name.lower().endswith(SPREADSHEET)
        if file == STANDARD:
            self.name = "standard input"
        else:
            check_exists(file)
        if file == STANDARD or not file.is_file():
            self.path = self.stamped = self._new_path()
            stream = nullcontext(sys.stdin.buffer) if file == STANDARD else file.open("rb")
            with stream as content, self.path.open("wb") as copy:
                shutil.copyfileobj(content, copy)
        if self.is_spreadsheet:
            text, self.first_row = _spreadsheet_as_csv(self.path, self.name)
            self.path = self._new_path()
            self.path.write_text(text, "utf-8", newline="")
        elif what := _find_format(self.path.open("rb"), _NO_TEXT):
            raise ValueError(f"cannot read {self.name}: it is {what}")
        elif other_encoding := encoding or _marked_encoding(self.path):
            self._convert_to_utf8(other_encoding)
        if os.sep == "/" and _UNSUPPORTED_CHARACTERS.search(str(self.path.absolute())):
            link = self._new_path()
            link.symlink_to(self.path.absolute())
            self.path = link
        self.compression = compression_of(self.path)

    def temporary_folder(self) -> Path:
        """Return a new folder, which is removed with this object."""
        folder = Path(mkdtemp(prefix="aucforest-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _new_path(self) -> Path:
        return self.temporary_folder() / "copy"

    def _convert_to_utf8(self, encoding: str) -> None:
        """Make a copy in UTF-8; ValueError if it is not encoded in `encoding` or is damaged."""
        original, self.path = self.path, self._new_path()
        try:
            with open_unpacked(original) as content:
                start = content.read(_BLOCK)
            if not lookup(encoding).name.startswith("utf") and _is_utf8(start):
                sentence = f"{self.name} is valid UTF-8, but is read as {encoding}"
                warn(f"{sentence}: leave out --encoding (in Python, encoding)")
            with (
                TextIOWrapper(open_unpacked(original), encoding, newline="") as content,
                self.path.open("w", encoding="utf-8", newline="") as copy,
            ):
                shutil.copyfileobj(content, copy, _BLOCK)
        except UnicodeError:
            raise ValueError(f"cannot read {self.name}: it is not encoded in {encoding}") from None
        except OSError as error:
            if error.errno is not None:  # of the system, such as a full disk
                raise
            raise cannot_read(self.name, error) from error


def cannot_read(name: str, error: OSError) -> ValueError:
    """Return an error that names a file which cannot be decompressed."""
    advice = "; decompress it first" if "requires too much memory" in str(error) else ""  # a long window of zstd
    return ValueError(f"cannot read {name}: {error}{advice}")


def _find_format(file: Any, formats: Mapping[bytes, str]) -> str:
    """Return the format with whose bytes an open file begins, or "", and close the file."""
    with file as content:
        start = content.read(8)
    return next((name for magic, name in formats.items() if start.startswith(magic)), "")


def compression_of(path: Path) -> str:
    """Return the compression of a file by its first bytes, or "none"."""
    return _find_format(path.open("rb"), _COMPRESSIONS) or "none"


def is_empty(path: Path) -> bool:
    """Return whether a file, decompressed if it is compressed, has no content; damaged files are refused later."""
    with suppress(OSError), open_unpacked(path) as content:
        return not content.read(1)
    return False


def _marked_encoding(path: Path) -> str:
    """Return the encoding of a file by its byte order mark, or "" if the engine can read the file as it is."""
    with suppress(OSError):  # damaged files are refused later
        return _find_format(open_unpacked(path), _MARKS)
    return ""


def open_unpacked(path: Path) -> Any:
    """Open a file as bytes, decompressed if it is compressed."""
    compression = compression_of(path)
    if compression == "none":
        return path.open("rb")
    # pyarrow would take a relative path that begins with ~ as one in a home directory.
    return BufferedReader(pa.input_stream(str(path.absolute()), compression=compression))


def _spreadsheet_as_csv(path: Path, name: str) -> tuple[str, int]:
    """Return the first visible sheet of a spreadsheet as a CSV, and the number of its first row that is not empty."""
    calamine = import_optional("python_calamine", purpose=f"reading {name}", extra="xlsx")
    try:
        with calamine.load_workbook(path) as book:
            is_visible = [sheet.visible == calamine.SheetVisibleEnum.Visible for sheet in book.sheets_metadata]
            index, n_sheets = is_visible.index(True), sum(is_visible)
            sheet = book.get_sheet_by_index(index)
            rows, start = sheet.to_python(), sheet.start
    except calamine.CalamineError as error:
        raise ValueError(f"cannot read {name}: it is damaged or no workbook of Excel ({error})") from error
    if n_sheets > 1:
        warn(f"{name} has {n_sheets} sheets: the first, {sheet.name!r}, is read")
    if _has_formula_without_result(path, index):
        advice = "open it in a spreadsheet program and save it"
        warn(f"{name} has formulas without stored results, which are read as missing: {advice}")
    # Spreadsheets store whole numbers as floats.
    cells = [[int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in row] for row in rows]
    content = StringIO()
    csv.writer(content).writerows(cells)
    return content.getvalue(), 1 if start is None else start[0] + 1


def _has_formula_without_result(path: Path, index: int) -> bool:
    """Return whether a sheet has a formula without a result, as programs that do not evaluate formulas write it."""
    with ZipFile(path) as archive, suppress(KeyError):  # most programs name the files of sheets in this way
        return _FORMULA_ONLY.search(archive.read(f"xl/worksheets/sheet{index + 1}.xml")) is not None
    return False


def _is_utf8(start: bytes) -> bool:
    """Return whether the first bytes of a file are UTF-8 with characters that are not ASCII."""
    with suppress(UnicodeDecodeError):
        getincrementaldecoder("utf-8")().decode(start)  # the last character may be cut off
        return not start.isascii()
    return False

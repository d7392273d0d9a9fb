"""Copies of what the database engine cannot read, or not twice: streams, other encodings, spreadsheets."""

import os
import re
import shutil
import sys
import weakref
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from io import BufferedReader
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, BinaryIO

import pyarrow as pa

from aucforest._caller import warn
from aucforest.tables.read_options import has_one_byte
from aucforest.tables.spreadsheets import SPREADSHEET, spreadsheet_as_csv

STANDARD = Path("-")
# What compressed files begin with, and the bytes that are read at a time.
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_BLOCK = 2**20
# Paths that the engine takes for patterns or cannot have: these files are read by a link.
_STRANGE = re.compile(r"[*?\[\\\ud800-\udfff]")


class Readable:
    """A file of text in UTF-8 that can be read more than once: `path` is the file itself, or a copy that this holds.

    `file` has the name that the user knows, and `stamped` is the file that must not change.
    """

    def __init__(self, file: Path, encoding: str | None) -> None:
        self.file, self.path, self.stamped = file, file, file
        if file == STANDARD or not file.is_file():
            self.file = Path("standard input") if file == STANDARD else file
            self.path = self.stamped = self._new_path()
            if file == STANDARD:
                _copy(sys.stdin.buffer, self.path)
            else:
                with _opened(file) as pipe:
                    _copy(pipe, self.path)
        if file.name.lower().endswith(SPREADSHEET):
            self.path = self._new_path()
            self.path.write_bytes(spreadsheet_as_csv(file))
        elif (encoding := encoding or _marked_encoding(self.path)) is not None:
            self._in_utf8(encoding)
        if os.sep == "/" and _STRANGE.search(str(self.path.absolute())):
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
        """Return the path of a copy, which is removed with this object."""
        return self.temporary_folder() / "copy"

    def _in_utf8(self, encoding: str) -> None:
        """Make a copy in UTF-8; ValueError if the file has another encoding."""
        with open_unpacked(self.path) as content:
            start = content.read(_BLOCK)
        if has_one_byte(encoding) and _is_utf8(start):
            sentence = f"{self.file.name} is valid UTF-8, but is read as {encoding}"
            warn(f"{sentence}: leave out --encoding (in Python, encoding)")
        given, self.path = self.path, self._new_path()
        decoder = getincrementaldecoder(encoding)()
        try:
            with open_unpacked(given) as content, self.path.open("wb") as written:
                while block := content.read(_BLOCK):
                    written.write(decoder.decode(block).encode())
                written.write(decoder.decode(b"", final=True).encode())
        except UnicodeError:
            raise ValueError(f"cannot read {self.file.name}: it is not encoded in {encoding}") from None


def compression_of(path: Path) -> str:
    """Return how a file is compressed, "none" if it is not."""
    with path.open("rb") as handle:
        start = handle.read(4)
    return next((name for magic, name in _PACKED.items() if start.startswith(magic)), "none")


def open_unpacked(path: Path) -> Any:
    """Open a file as bytes, decompressed if it is compressed."""
    packed = compression_of(path)
    # Arrow takes a relative path that begins with ~ for one in the home of a user.
    given = str(path.absolute())
    return path.open("rb") if packed == "none" else BufferedReader(pa.input_stream(given, compression=packed))


def _opened(file: Path) -> BinaryIO:
    """Open a pipe; ValueError if there is none."""
    if not file.exists():
        raise ValueError(f"there is no file {file}")
    return file.open("rb")


def _copy(handle: BinaryIO, path: Path) -> None:
    """Write all that is read from a handle to a file."""
    with path.open("wb") as copied:
        shutil.copyfileobj(handle, copied)


def _marked_encoding(path: Path) -> str | None:
    """Return UTF-16 if the first bytes of a file say so."""
    with path.open("rb") as handle:
        return "utf-16" if handle.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE) else None


def _is_utf8(start: bytes) -> bool:
    """Return whether the first bytes of a file are UTF-8 with characters that are not ASCII."""
    try:
        getincrementaldecoder("utf-8")().decode(start)  # the last character may be cut off
    except UnicodeDecodeError:
        return False
    return not start.isascii()

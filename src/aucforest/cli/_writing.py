"""Tables that are written batch by batch, whole or not at all."""

import csv
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from aucforest._files import file_beside
from aucforest.cli._inputs import STANDARD
from aucforest.tables.kinds import holds_text

Write = Callable[[Any], None]


@contextmanager
def table_writer(out: Path, schema: Any) -> Iterator[Write]:
    """Give a function that adds an arrow table of the schema to a CSV or Parquet file, or to standard output.

    The file has its name once all is written.
    """
    if out == STANDARD:
        yield _csv_writer(sys.stdout.buffer, schema)
        sys.stdout.buffer.flush()
        return
    with file_beside(out) as beside:
        if out.suffix.lower() == ".parquet":
            with pyarrow.parquet.ParquetWriter(beside, schema) as writer:
                yield writer.write_table
        else:
            with beside.open("wb") as handle:
                yield _csv_writer(handle, schema)


def _csv_writer(handle: BinaryIO, schema: Any) -> Write:
    """Write a header; return what writes rows after it."""
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(schema.names)
    handle.write(header.getvalue().encode())

    def write(table: Any) -> None:
        table = pa.table([_spell(column) for column in table.columns], names=schema.names)
        quoting = "needed" if any(map(_needs_quotes, table.columns)) else "none"
        options = pyarrow.csv.WriteOptions(include_header=False, quoting_style=quoting)
        pyarrow.csv.write_csv(table, handle, options)

    return write


def _spell(column: Any) -> Any:
    """Return flags in the words that name their classes, False and True; arrow writes others."""
    return pc.if_else(column, "True", "False") if pa.types.is_boolean(column.type) else column


def _needs_quotes(column: Any) -> bool:
    """Say whether a column has text that would not be read as it is."""
    if not holds_text(column.type):
        return False
    return bool(pc.any(pc.match_substring_regex(column, '[",\r\n]')).as_py())

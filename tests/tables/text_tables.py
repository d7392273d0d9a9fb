"""Functions that write text files, read them, and evaluate SQL."""

import pandas as pd
import pyarrow as pa

from aucforest.tables.read_options import DEFAULT_OPTIONS
from aucforest.tables.sources import open_source, stray_notes


def read_all(source):
    """Return all columns of a source, a file or a list of files as a table."""
    source = source if hasattr(source, "batches") else open_source(source)
    return pa.Table.from_batches(source.batches(source.columns), schema=source.schema(source.columns))


def write_table(frame, path):
    """Write a table in the format that its name says, and return its path."""
    if path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        {".csv": frame.to_csv, ".xlsx": frame.to_excel, ".parquet": frame.to_parquet}[path.suffix](path, index=False)
    return path


def write_column(folder, values, options=DEFAULT_OPTIONS, **others):
    """Write the column d, and the given other columns, into a CSV, and open it."""
    frame = pd.DataFrame({"d": values, "x": 1, **others}, dtype=object)
    return open_source(write_table(frame, folder / "t.csv"), options=options)


def read_column(folder, values, options=DEFAULT_OPTIONS, **others):
    """Write a column, and return the column that is read and the notes."""
    source = write_column(folder, values, options, **others)
    return read_all(source)["d"], stray_notes(source, ["d"])


def evaluated(connection, sql, texts):
    """Evaluate SQL for each of some texts, which replaces {0}."""
    rows = connection.execute(f"SELECT {sql.replace('{0}', 'v')} FROM (SELECT unnest(?::VARCHAR[]) AS v)", [texts])
    return [value for (value,) in rows.fetchall()]

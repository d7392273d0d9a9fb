"""Models and tables that commands read, in files and on standard input."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aucforest.estimators import load
from aucforest.tables.csv import CsvTable
from aucforest.tables.sources import ParquetFiles

STANDARD = Path("-")


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

"""Tables that commands read."""

from functools import partial
from pathlib import Path
from typing import Any

from aucforest._optional import import_optional


def names_in(listed: str) -> list[str]:
    """Return the names in a list with commas."""
    return [name.strip() for name in listed.split(",")]


def read_table(file: Path) -> Any:
    """Read a CSV or Parquet file as a DataFrame."""
    pandas = import_optional("pandas", purpose="reading tables", extra="cli")
    # Read in parts, a long column could get a type for each part.
    readers = {".csv": partial(pandas.read_csv, low_memory=False), ".parquet": pandas.read_parquet}
    if file.suffix not in readers:
        raise ValueError(f"FILE must end in {' or '.join(readers)}, got {file.name}")
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    try:
        return readers[file.suffix](file)
    except (ValueError, OSError) as error:  # the errors of both parsers are ValueErrors
        raise ValueError(f"cannot read {file}: {error}") from error

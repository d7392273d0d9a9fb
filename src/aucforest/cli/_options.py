"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")]
Data = Annotated[Path, typer.Argument(metavar="DATA", help="A .csv or .parquet table; - is CSV on standard input.")]
Target = Annotated[str, typer.Option(metavar="COLUMN", help="The column of class labels.")]
Positive = Annotated[
    str | None, typer.Option(metavar="LABEL", help="This label against all others: the classes are False and True.")
]
Weight = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of row weights.")]
Criterion = Literal["auc", "gini", "entropy", "hellinger"]
Seed = Annotated[int, typer.Option(min=0, help="Draws whatever is drawn.")]
Jobs = Annotated[int, typer.Option(help="Threads; -1 takes all cores.")]
JsonOut = Annotated[
    Path | None, typer.Option("--json", metavar="OUT", help="Write all figures here; - is standard output.")
]


def names_in(listed: str | None) -> list[str]:
    """Return the names in a list with commas."""
    return [] if listed is None else [name.strip() for name in listed.split(",")]

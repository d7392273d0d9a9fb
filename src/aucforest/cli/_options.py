"""Arguments and options that several commands have."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from aucforest.tree.criteria import CRITERIA

# A target with more distinct integers than the first, and fewer rows for each on average than the second, is refused as
# a quantity.
MOST_INTEGERS, LEAST_ROWS = 50, 10
STANDARD = Path("-")

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")]
Data = Annotated[Path, typer.Argument(metavar="DATA", help="A .csv or .parquet table; - is CSV on standard input.")]
Target = Annotated[str, typer.Option(metavar="COLUMN", help="The column of class labels.")]
TARGET_HELP = (
    f"The column of class labels. More than {MOST_INTEGERS} integers of fewer than {LEAST_ROWS} rows each on average"
    " are refused: a quantity needs --positive."
)
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="This label, or numbers such as '>=18', against all others: the classes are False and True.",
    ),
]
Weight = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of row weights.")]
if TYPE_CHECKING:
    Criterion = str
else:
    Criterion = Literal[("auto", *CRITERIA)]
Seed = Annotated[int, typer.Option(min=0, help="Draws whatever is drawn.")]
Jobs = Annotated[int, typer.Option(help="Threads; -1 takes all cores.")]
JsonOut = Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Metrics go here; - is standard output.")]
PlotOut = Annotated[Path | None, typer.Option("--plot", metavar="OUT", help="Draw a picture here (.png, .svg, .pdf).")]


def names_in(listed: str | None) -> list[str]:
    """Return the names in a list with commas."""
    return [] if listed is None else [name.strip() for name in listed.split(",")]

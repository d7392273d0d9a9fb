"""What commands write, and where."""

import json
import os
import sys
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aucforest._files import write_whole
from aucforest.cli._inputs import STANDARD

PICTURES = (".png", ".svg", ".pdf")
TABLES = (".csv", ".parquet")


def check_outputs(*outs: Path | None, inputs: list[Path | None]) -> None:
    """Refuse outputs that overwrite a file of this call or cannot be written, before there is work to lose."""
    taken = {file.resolve() for file in inputs if file is not None}
    for out in outs:
        if out is None or out == STANDARD:
            continue
        if not out.parent.is_dir():
            raise ValueError(f"the folder {out.parent} does not exist")
        if not os.access(out.parent, os.W_OK):
            raise ValueError(f"nothing can be written into the folder {out.parent}")
        if out.is_dir():
            raise ValueError(f"{out} is a folder, not a file to write")
        if out.resolve() in taken:
            raise ValueError(f"{out} would be overwritten: it is read, or another output")
        taken.add(out.resolve())


def check_suffix(option: str, out: Path | None, suffixes: tuple[str, ...]) -> None:
    """Refuse a file of no known kind."""
    if out is not None and out != STANDARD and out.suffix.lower() not in suffixes:
        raise typer.BadParameter(f"must end in {', '.join(suffixes)}, got {out.name}", param_hint=option)


def rich_table(title: str | None, headings: list[str], rows: Iterable[list[str]], **options: Any) -> Table:
    """Return a table; a heading that begins with ">" is that of a column of numbers."""
    table = Table(title=title and escape(title), box=box.SIMPLE_HEAD, **options)
    for heading in headings:
        table.add_column(heading.removeprefix(">"), justify="right" if heading[:1] == ">" else "left")
    for cells in rows:
        table.add_row(*cells)
    return table


def console(json_out: Path | None) -> Console:
    """Return where tables are printed: on standard error where standard output takes the figures."""
    return Console(stderr=json_out == STANDARD)


def write_json(out: Path, content: Any) -> None:
    """Write figures; what is not a number is null."""
    text = json.dumps(json.loads(json.dumps(content), parse_constant=lambda number: None), indent=1)
    if out == STANDARD:
        sys.stdout.write(f"{text}\n")
    else:
        write_whole(out, text.encode())
        typer.echo(f"figures: {out}", err=True)


def write_picture(out: Path, figure: Any) -> None:
    """Write a matplotlib figure."""
    content = BytesIO()
    figure.savefig(content, format=out.suffix[1:].lower(), dpi=150)
    write_whole(out, content.getvalue())
    typer.echo(f"picture: {out}", err=True)

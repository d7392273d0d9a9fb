"""What commands write, and where."""

import json
import math
import os
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from aucforest._files import write_whole
from aucforest.cli._tables import STANDARD

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


def console(json_out: Path | None) -> Console:
    """Return where tables are printed: on standard error where standard output takes the figures."""
    return Console(stderr=json_out == STANDARD)


def write_json(out: Path, content: Any) -> None:
    """Write figures; what is not a number is null."""
    text = json.dumps(_with_null(content), indent=1, allow_nan=False)
    if out == STANDARD:
        sys.stdout.write(f"{text}\n")
    else:
        write_whole(out, text.encode())
        typer.echo(f"figures: {out}", err=True)


def _with_null(content: Any) -> Any:
    """Return what JSON can hold."""
    if isinstance(content, dict):
        return {key: _with_null(value) for key, value in content.items()}
    if isinstance(content, list):
        return list(map(_with_null, content))
    return None if isinstance(content, float) and not math.isfinite(content) else content


def write_picture(out: Path, figure: Any) -> None:
    """Write a matplotlib figure."""
    content = BytesIO()
    figure.savefig(content, format=out.suffix[1:].lower(), dpi=150)
    write_whole(out, content.getvalue())
    typer.echo(f"picture: {out}", err=True)

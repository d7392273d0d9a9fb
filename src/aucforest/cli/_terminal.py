"""What is said on standard error: refusals of one sentence, warnings, and progress where somebody looks."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


class OneLineErrors(typer.core.TyperGroup):
    """A group of commands whose refusals are sentences, not tracebacks."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command: wrong data or files end it with 1; a wrong call ends with 2, which is for typer to say."""
        try:
            with _warnings_as_lines():
                return super().invoke(ctx)
        except BrokenPipeError:  # whoever read the output has seen enough
            raise
        except (ValueError, TypeError, OSError, ImportError) as error:
            typer.echo(f"Error: {' '.join(str(error).split())}", err=True)
            raise typer.Exit(1) from error


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Say every warning once, in the end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for sentence in dict.fromkeys(str(warning.message) for warning in caught):
                typer.echo(f"Warning: {sentence}", err=True)


def is_watched() -> bool:
    """Say whether standard error is a terminal."""
    return sys.stderr.isatty()


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, float | None], None]]:
    """Give a function that shows how many rows are done and which share of all that is, None for an unknown one."""
    columns = TextColumn(what), BarColumn(), TextColumn("{task.fields[rows]:,} rows"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not is_watched()) as bar:
        task = bar.add_task(what, total=None, rows=0)

        def show(rows: int, share: float | None) -> None:
            bar.update(task, rows=rows, total=None if share is None else 1.0, completed=share or 0.0)

        yield show

"""What is shown on standard error while something is under way, where somebody looks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


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

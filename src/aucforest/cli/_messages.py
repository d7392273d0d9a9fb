"""What the command line says when something is wrong: one sentence on standard error."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer


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

"""What the command line says when something is wrong: one sentence on standard error."""

from difflib import get_close_matches
from typing import Any, NoReturn

import typer


class OneLineErrors(typer.core.TyperGroup):
    """A group of commands whose refusals are sentences, not tracebacks."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (ValueError, TypeError, OSError, ImportError) as error:
            refuse(str(error))


def refuse(sentence: str) -> NoReturn:
    """Say in one line what is wrong, and stop."""
    typer.echo(f"Error: {' '.join(sentence.split())}", err=True)
    raise typer.Exit(2)


def nearest(word: str, words: Any) -> str:
    """Return a hint at the words most like a misspelt one."""
    near = get_close_matches(word, [str(other) for other in words])
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""

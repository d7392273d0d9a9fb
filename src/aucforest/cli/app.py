"""The command ``aucforest`` and its subcommands."""

import warnings
from typing import Any

import typer

from aucforest.cli.compare import compare
from aucforest.cli.estimate import estimate
from aucforest.cli.evaluate import evaluate
from aucforest.cli.fit import fit
from aucforest.cli.inspect import inspect
from aucforest.cli.predict import predict
from aucforest.cli.report import report


class _OneLineErrors(typer.core.TyperGroup):
    """A group of commands whose refusals are sentences, not tracebacks."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command: wrong data or files end it with 1; a wrong call ends with 2, which is for typer to say."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            try:
                try:
                    return super().invoke(ctx)
                finally:
                    for sentence in dict.fromkeys(str(warning.message) for warning in caught):
                        typer.echo(f"Warning: {sentence}", err=True)
            except BrokenPipeError:  # whoever read the output has seen enough
                raise
            except (ValueError, TypeError, OSError, ImportError) as error:
                typer.echo(f"Error: {' '.join(str(error).split())}", err=True)
                raise typer.Exit(1) from error


app = typer.Typer(cls=_OneLineErrors, no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)


@app.callback()
def _commands() -> None:
    """Forests whose trees are grown for ranking.

    Tables are CSV with a header, in UTF-8, or Parquet. It ends with 0 when all is well, 1 when data or files are not,
    2 when it is called wrongly.
    """


for command in (fit, predict, evaluate, report, compare, estimate, inspect):
    app.command()(command)

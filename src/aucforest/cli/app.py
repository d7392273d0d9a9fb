"""The command ``aucforest`` and its subcommands."""

import warnings
from collections import Counter
from importlib.metadata import version
from typing import Annotated, Any

import typer

from aucforest.cli.compare import compare
from aucforest.cli.estimate import estimate
from aucforest.cli.evaluate import evaluate
from aucforest.cli.export import export
from aucforest.cli.fit import fit
from aucforest.cli.inspect import inspect
from aucforest.cli.predict import predict
from aucforest.cli.refresh import refresh
from aucforest.cli.report import report
from aucforest.cli.warm_up import warm_up


class _OneLineErrors(typer.core.TyperGroup):
    """A group of commands that prints errors as one line, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command. Errors of data and files exit with code 1; Typer exits with 2 for usage errors."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            try:
                try:
                    return super().invoke(ctx)
                finally:
                    for sentence in dict.fromkeys(str(warning.message) for warning in caught):
                        typer.echo(f"Warning: {sentence}", err=True)
            except BrokenPipeError:  # the reader of the output has closed it
                raise
            except (ValueError, TypeError, OSError, ImportError) as error:
                typer.echo(f"Error: {' '.join(str(error).split())}", err=True)
                raise typer.Exit(1) from error


class _Command(typer.core.TyperCommand):
    """A command that refuses repeated options of lists, of which all but the last would be ignored."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of the command line."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for option, n in Counter(given).items():
            if n > 1 and str(option.metavar).startswith(("A,B", "A[,B")):
                raise typer.BadParameter(
                    f"is given {n} times: give one list, separated by commas", param_hint=option.opts[0]
                )
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_OneLineErrors,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="markdown",  # joins the lines of a paragraph
)


def _print_version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"aucforest {version('aucforest')}")
        raise typer.Exit


@app.callback()
def _commands(
    print_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Fit random forests that rank the samples of rare classes well, and evaluate, explain and monitor them.

    Tables are files of CSV with a header, JSON lines (.jsonl), .xlsx or Parquet, or folders of such files.

    Exit codes: 0 success, 1 data error, 2 usage error, 3 alert (aucforest estimate --fail-on-alert), 130 interrupted.
    """


for command in (fit, refresh, predict, evaluate, report, compare, estimate, inspect, export, warm_up):
    app.command(cls=_Command)(command)

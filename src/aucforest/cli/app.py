"""The command ``aucforest`` and its subcommands."""

import typer

from aucforest.cli._terminal import OneLineErrors
from aucforest.cli.compare import compare
from aucforest.cli.estimate import estimate
from aucforest.cli.evaluate import evaluate
from aucforest.cli.fit import fit
from aucforest.cli.inspect import inspect
from aucforest.cli.predict import predict
from aucforest.cli.report import report

app = typer.Typer(cls=OneLineErrors, no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)


@app.callback()
def _commands() -> None:
    """Forests whose trees are grown for ranking.

    Tables are CSV with a header, in UTF-8, or Parquet. It ends with 0 when all is well, 1 when data or files are not,
    2 when it is called wrongly.
    """


for command in (fit, predict, evaluate, report, compare, estimate, inspect):
    app.command()(command)

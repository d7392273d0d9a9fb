"""The command ``aucforest`` and its subcommands."""

import typer

from aucforest.cli._messages import OneLineErrors
from aucforest.cli.compare import compare
from aucforest.cli.estimate import estimate

app = typer.Typer(cls=OneLineErrors, no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)


@app.callback()
def _commands() -> None:
    """Forests whose trees are grown for ranking."""


for command in (compare, estimate):
    app.command()(command)

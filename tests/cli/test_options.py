"""Options that several commands have."""

from typer import Typer
from typer.testing import CliRunner

from aucforest.cli._options import takes_read_options
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions
from tests.cli.data import check_usage


def test_a_command_gets_the_options_of_a_csv_as_one_argument():
    app, formats = Typer(), []

    @app.command()
    @takes_read_options()
    def command(name: str, read_options: ReadOptions = DEFAULT_OPTIONS, last: int = 0) -> None:
        formats.append((name, read_options, last))

    def run(*arguments):
        return CliRunner().invoke(app, arguments)

    assert run("a").exit_code == 0
    assert (
        run("a", "--separator", ";", "--date-format", "%d.%m.%Y", "--stray-text", "text", "--last", "3").exit_code == 0
    )
    assert formats == [("a", DEFAULT_OPTIONS, 0), ("a", ReadOptions(";", date_format="%d.%m.%Y", stray_text="text"), 3)]
    check_usage(run("a", "--separator", "ab"), "the separator must be one character")
    check_usage(run("a", "--encoding", "cp999"), "the encoding must be one that Python has")

"""Options that several commands have."""

from typer import Typer
from typer.testing import CliRunner

from aucforest.cli._options import takes_csv_format
from aucforest.tables.csv_format import DEFAULT_FORMAT, CsvFormat
from tests.cli.data import check_usage


def test_a_command_gets_the_options_of_a_csv_as_one_argument():
    app, formats = Typer(), []

    @app.command()
    @takes_csv_format()
    def command(name: str, csv_format: CsvFormat = DEFAULT_FORMAT, last: int = 0) -> None:
        formats.append((name, csv_format, last))

    def run(*arguments):
        return CliRunner().invoke(app, arguments)

    assert run("a").exit_code == 0
    assert (
        run("a", "--separator", ";", "--date-format", "%d.%m.%Y", "--stray-text", "text", "--last", "3").exit_code == 0
    )
    assert formats == [("a", DEFAULT_FORMAT, 0), ("a", CsvFormat(";", None, "%d.%m.%Y", "text"), 3)]
    check_usage(run("a", "--separator", "ab"), "the separator must be one character")
    check_usage(run("a", "--encoding", "cp999"), "the encoding must be one that Python has")

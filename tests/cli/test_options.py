"""Options of several commands, and threshold rules as text."""

import pytest
from typer import BadParameter, Typer
from typer.testing import CliRunner

from aucforest.cli._options import parse_rule, rule_for, takes_read_options
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions
from tests.cli.data import check_usage


def test_a_command_gets_the_options_of_a_csv_as_one_argument():
    app, formats = Typer(), []

    @app.command()
    @takes_read_options()
    def command(name: str, read_options: ReadOptions = DEFAULT_OPTIONS, last: int = 0) -> None:
        formats.append((name, read_options, last))

    def run(arguments):
        return CliRunner().invoke(app, arguments.split())

    options = "--separator ; --date-format %d.%m.%Y --stray-text text --last 3"
    assert run("a").exit_code == run(f"a {options}").exit_code == 0
    assert formats == [("a", DEFAULT_OPTIONS, 0), ("a", ReadOptions(";", date_format="%d.%m.%Y", stray_text="text"), 3)]
    check_usage(run("a --separator ab"), "the separator must be one character")
    check_usage(run("a --encoding cp999"), "the encoding must be one that Python has")


def test_rules_are_those_of_python():
    cost = {"cost": [[0.0, 1.0], [10.0, 0.0]]}
    for text, rule in {
        "gmean": "gmean",
        "argmax": None,
        "0.3": 0.3,
        "alerts=30": {"alerts": 30},
        "recall=0.8": {"recall": 0.8},
        "cost=1:10": cost,
        "alerts=0.05,cost=1:10": {"alerts": 0.05} | cost,
        "cost=1:10,alerts=5": {"alerts": 5} | cost,
    }.items():
        assert rule_for(parse_rule(text), 2, 1) == parse_rule(text) == rule
    assert rule_for({"alerts": 5} | cost, 2, 0) == {"alerts": 5, "cost": [[0.0, 10.0], [1.0, 0.0]]}
    assert rule_for("gmean", 3, 2) == "gmean"
    with pytest.raises(ValueError, match=r"^--threshold with alerts and cost is for two classes, but there are 3$"):
        rule_for({"alerts": 5} | cost, 3, 2)


@pytest.mark.parametrize(("text", "sentence"), [
    ("often", "must be prevalence, gmean, youden, f1, alerts=NUMBER, "),
    ("1.5", "argmax or a probability, but is '1.5'"), ("recall=0.8,cost=1:10", "has the keys ['recall', 'cost']"),
    ("alerts=1,alerts=2", "or a probability, but is 'alerts=1,alerts=2'"),
    ("cost=10", "costs of a false positive and a false negative, such as 1:10, but is '10'"),
    ("cost=0:0", "such as 1:10, but is '0:0'"), ("recall=0", "recall must be in (0, 1], but is 0"),
])  # fmt: skip
def test_wrong_rules_are_refused(text, sentence):
    with pytest.raises(BadParameter) as caught:
        parse_rule(text)
    assert sentence in str(caught.value)

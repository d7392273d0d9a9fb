"""The command ``aucforest``: help, examples, exit codes, and errors before it starts."""

import re
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import aucforest
from aucforest import __main__
from aucforest.cli.app import app
from tests.cli.data import mixed, run, succeed

COMMANDS = {command.callback.__name__.replace("_", "-"): command.callback for command in app.registered_commands}


def example(command):
    (line,) = re.findall(r"Example: aucforest (.+)", COMMANDS[command].__doc__)
    return line


def test_the_commands_are_those_of_the_documentation_and_have_examples():
    assert list(COMMANDS) == [
        "fit", "refresh", "predict", "evaluate", "report", "compare", "estimate", "inspect", "export", "warm-up",
    ]  # fmt: skip
    assert all(command in succeed("--help").stdout for command in COMMANDS)
    for command in COMMANDS:
        assert f"Example: aucforest {example(command)}" in " ".join(succeed(f"{command} --help").stdout.split())


@pytest.mark.slow
def test_the_examples_run(tmp_path):
    for name, n in (("train", 100), ("test", 90), ("may", 300), ("reference", 2000), ("new", 2000)):
        rows = mixed(n, n)
        rows.assign(probability_yes=np.clip(rows["width"].fillna(0.0), 0.01, 0.99)).to_csv(f"{name}.csv", index=False)
    few = {"fit": ["--trees", 10], "compare": ["--trees", 2]}
    for command in COMMANDS:
        succeed(example(command), *few.get(command, []))
    written = {path.name for path in tmp_path.iterdir() if path.suffix != ".csv"}
    models = {"model.aucforest", "refreshed.aucforest", "model.onnx"}
    assert written == models | {"metrics.json", "report.html", "comparison.png"}
    assert Path("predictions.csv").read_text().startswith("id,prediction,probability_no,probability_yes\n")


def test_the_version_and_the_exit_codes():
    assert succeed("--version").stdout == f"aucforest {aucforest.__version__}\n"
    assert "Exit codes: 0 success, 1 data error, 2 usage error, 3 alert" in " ".join(run("--help").stdout.split())
    assert [run(call).exit_code for call in ("fitt", "predict", "")] == [2, 2, 2]


def test_without_arguments_it_says_where_the_machine_code_comes_from(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["aucforest"])
    with pytest.raises(SystemExit, match=r"^0$"):
        __main__.main()
    said = capsys.readouterr().out
    assert re.match(r"machine code: (compiled for this machine|none yet|shipped)", said)
    assert "Usage:" in said


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.setattr(sys, "argv", ["aucforest", "compare"])
    with pytest.raises(SystemExit, match=r"^the command line needs typer: pip install aucforest\[cli\]$"):
        __main__.main()


def test_an_interrupt_during_imports_is_no_traceback(monkeypatch):
    monkeypatch.setattr(__main__, "import_optional", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(SystemExit, match=r"^130$"):
        __main__.main()

"""What the README promises: its Python runs, its pictures and files exist."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_the_python_runs(capsys, program):
    exec(program, {})
    # each prints an AUC or a p-value
    printed = capsys.readouterr().out
    assert 0 < float(printed.split()[-1]) < 1
    # what a comment says is printed is printed
    for said in re.findall(r"^print\(.+\)  # (.+)$", program, flags=re.MULTILINE):
        assert said in printed.splitlines()


def test_the_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    assert len(targets) > 2
    missing = [target for target in targets if "://" not in target and not (README.parent / target).exists()]
    assert missing == []

"""What the README promises: its Python runs, its pictures and files exist."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_python_runs(capsys):
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    exec(program, {})
    assert 0.5 < float(capsys.readouterr().out.split()[-1]) < 1


def test_the_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    assert len(targets) > 2
    missing = [target for target in targets if "://" not in target and not (README.parent / target).exists()]
    assert missing == []

"""What the README promises: its Python runs, its pictures and files exist."""

import re
from pathlib import Path

import pandas as pd
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


def test_the_first_figures_are_those_of_the_results():
    table = pd.read_csv(README.parent / "docs" / "ranking.csv")
    auc = table.pivot(index="set", columns="model", values="auc").dropna()
    seconds = table.pivot(index="set", columns="model", values="fit_seconds").loc[auc.index].sum()
    first = " ".join(README.read_text().split("![")[0].split())
    assert f"On {len(auc)} data sets" in first
    means = auc.mean().round(3)
    said = [float(number) for number in re.findall(r"0\.9\d\d", first)]
    assert said == means[["aucforest", "scikit-learn", "LightGBM", "XGBoost", "CatBoost"]].tolist()
    times = seconds / seconds["aucforest"]
    assert "four times as long" in first
    assert "twenty times the time" in first
    assert times[["scikit-learn", "CatBoost"]].tolist() == pytest.approx([4, 20], rel=0.1)

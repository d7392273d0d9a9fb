"""What the README promises: its Python runs, its pictures and files exist."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

README = Path(__file__).parents[1] / "README.md"
DOCS = README.parent / "docs"
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


def means(name):
    """Return the mean metrics of each model and its sum of fit times, on the sets that all models had."""
    table = pd.read_csv(DOCS / name)
    whole = table.groupby("set")["model"].transform("nunique") == table["model"].nunique()
    groups = table[whole].groupby("model")
    return groups[["auc", "log_loss"]].mean().assign(seconds=groups["fit_seconds"].sum())


def test_the_first_table_is_that_of_the_results():
    rows = re.findall(r"^\| (.+) \| (0\.\d{3}) \| (0\.\d{3}) \| ([\d.]+) s \|$", README.read_text(), flags=re.MULTILINE)
    assert [row[0] for row in rows] == ["aucforest", "scikit-learn's forest", "CatBoost"]
    real = means("real_tables.csv").loc[["aucforest", "scikit-learn", "CatBoost"]].to_numpy()
    said = np.array([row[1:] for row in rows], dtype=float)
    np.testing.assert_allclose(said[:, :2], real[:, :2].round(3))
    np.testing.assert_allclose(said[:, 2], real[:, 2], rtol=0.02)


@pytest.mark.parametrize("name", ["real_tables.csv", "held_out.csv"])
def test_the_tables_of_the_settings_are_those_of_the_results(name):
    page = (DOCS / "howto" / "settings.md").read_text()
    for model, row in means(name).iterrows():
        auc, log_loss = f"{row['auc']:.4f}", f"{row['log_loss']:.4f}"
        assert re.search(rf"^\| {model} \|.* {auc} \|.* {log_loss} \|", page, flags=re.MULTILINE), model

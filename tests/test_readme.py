"""What the README and the page on settings promise: their Python runs, their figures are those of the recorded runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETTINGS, STACKING = ((ROOT / f"docs/howto/{page}.md").read_text(encoding="utf-8") for page in ("settings", "stacking"))


def test_the_python_runs(capsys):
    (program,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(program, {})
    # what a comment says is printed is printed
    (said,) = re.findall(r"^print\(.+\)  # (.+)$", program, flags=re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == [said]


def test_the_tables_are_those_of_the_recorded_runs():
    command = [sys.executable, str(ROOT / "benchmarks" / "front_page.py")]
    finished = subprocess.run(command, capture_output=True, encoding="utf-8", env=os.environ | {"PYTHONUTF8": "1"})
    assert finished.returncode == 0, finished.stderr
    first, *others = re.findall(r"(?:^\|.*\n)+", finished.stdout, flags=re.MULTILINE)
    assert first in README
    assert len(others) == 2
    assert all(table in SETTINGS for table in others)
    # the machine and the versions
    settings = " ".join(SETTINGS.split())
    assert finished.stdout.splitlines()[0] in settings
    (others_than_integers,) = re.findall("^On the other .*$", finished.stdout, flags=re.MULTILINE)
    assert others_than_integers in " ".join(README.split())
    assert others_than_integers in settings


def relative_times(name):
    """Return how many times as long as the forest each model takes to fit the data sets that all models had."""
    table = pd.read_csv(ROOT / "benchmarks" / "recorded" / f"{name}.csv")
    whole = table.groupby("set")["model"].transform("nunique") == table["model"].nunique()
    seconds = table[whole].groupby("model")["fit_seconds"].sum()
    return seconds / seconds["aucforest"]


def test_times_in_sentences_are_those_of_the_recorded_runs():
    real, keel = relative_times("real_tables"), relative_times("keel")
    readme, settings, stacking = (" ".join(page.split()) for page in (README, SETTINGS, STACKING))
    stack = "aucforest, stack"
    assert f"CatBoost takes {real['CatBoost']:.0f} times as long" in readme
    assert "fitted in less than a third of the time" in readme
    assert 3.0 < real["scikit-learn"] < 4.0
    assert "fitted in about nine tenths of the time of CatBoost" in readme
    assert 0.85 < real[stack] / real["CatBoost"] < 0.95
    assert "LightGBM and XGBoost with default parameters are fitted more than four times as fast" in readme
    assert max(real["LightGBM"], real["XGBoost"]) < 1 / 4
    assert f"CatBoost takes {real['CatBoost']:.0f} times as long to fit" in settings
    assert f"has a lower log loss, and takes {real[stack]:.1f} times as long" in settings
    said = f"{real[stack]:.1f} times as long as that of the forest on the real tables, and {keel[stack]:.1f} times on"
    assert f"{said} the sets from r to z" in stacking

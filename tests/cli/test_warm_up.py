"""What is compiled beforehand is what fits and predictions need."""

import subprocess
import sys
from pathlib import Path

import pytest

# without the packages of the command line
WARM_UP = """
import sys
sys.modules.update(dict.fromkeys(["typer", "rich", "pandas", "pyarrow"]))
sys.argv = ["aucforest", "warm-up"]
from aucforest.__main__ import main
if __name__ == "__main__":
    main()
"""

FITS = """
import sys
import numpy as np
from aucforest import AUCForestClassifier
from aucforest.cli.warm_up import warm_up

def compiled():
    modules = [module for name, module in sys.modules.items() if name.startswith("aucforest")]
    found = {id(value): value for module in modules for value in vars(module).values() if hasattr(value, "signatures")}
    return {(value.__name__, signature) for value in found.values() for signature in value.signatures}

warm_up()
before = compiled()
assert len(before) > 20
X = np.random.default_rng(0).normal(size=(500, 6))
for params in ({}, {"max_bins": None}, {"threshold": "f1", "oob_score": True}, {"class_weight": "balanced"}):
    for thresholds in ([1.0], [-0.5, 0.5, 1.0])[: 1 if "threshold" in params else 2]:
        forest = AUCForestClassifier(20, random_state=0, **params).fit(X, np.digitize(X[:, 0], thresholds))
        forest.predict(X), forest.predict(X[:1])
assert compiled() == before, compiled() - before
"""


def run(folder: Path, program: str) -> None:
    file = folder / "program.py"
    file.write_text(program)
    finished = subprocess.run([sys.executable, file], capture_output=True, text=True)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


@pytest.mark.slow
def test_warming_up_needs_no_extra(tmp_path):
    run(tmp_path, WARM_UP)


@pytest.mark.slow
def test_fits_compile_nothing_afterwards(tmp_path):
    run(tmp_path, FITS)

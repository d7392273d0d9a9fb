"""How long does the first fit of a checkout take, which compiles, and the first of a process, which need not?

    python benchmarks/first_fit.py [DATA ...] [--before REVISION]

runs some data: small (1,000 x 5, 10 trees), blocks (the bundled page blocks, five classes, the defaults). Every fit is
followed by a prediction; imports, of dependencies and of the package, are timed apart. The cache of compiled code is
empty before the first process, and holds the signatures that are counted after it. The next process is the first one
that fits with max_bins=None. With --before, the first processes of an earlier revision and those of the present sources
take turns; their seconds of the processor tell more than those of the clock if other programs run.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

import numpy as np
from _timing import ROOT, check_out, run_fresh
from numpy.typing import NDArray

DATA = {
    "small": "X = numpy.random.default_rng(0).normal(size=(1000, 5)); y = X[:, 0] > 0; n_trees = 10",
    "blocks": "X, y = load_page_blocks(return_X_y=True); n_trees = 300",
}

PROGRAM = """
import json
from time import perf_counter, process_time
times = []
def note():
    times.append((perf_counter(), process_time()))
note()
import joblib, numba, numpy, psutil, scipy.optimize, scipy.sparse, scipy.special, threadpoolctl, tqdm
import narwhals, safetensors.numpy, sklearn.base, sklearn.metrics, sklearn.preprocessing, sklearn.utils.validation
note()
from aucforest import AUCForestClassifier
from aucforest.datasets import load_page_blocks
note()
{data}
for _ in range(2):
    note()
    forest = AUCForestClassifier(n_trees, criterion="auc", max_bins={max_bins}, random_state=0)
    forest.fit(X, y).predict_proba(X)
    note()
print(json.dumps([(times[i + 1][0] - times[i][0], times[i + 1][1] - times[i][1]) for i in (0, 1, 3, 5)]))
"""
# What is timed, in this order.
STEPS = ("dependencies", "aucforest", "first fit", "second fit")
# The processes of an installation, and their `max_bins`.
PROCESSES = {"ever": 255, "exact": None, "later": 255}
ROUNDS = 5


def run(name: str, max_bins: int | None, cache: str, sources: Path = ROOT / "src") -> NDArray[np.float64]:
    """Return the seconds of the steps of a process, (n_steps, 2): of the clock and of the processor."""
    os.environ["NUMBA_CACHE_DIR"] = cache
    return np.array(json.loads(run_fresh(PROGRAM.format(data=DATA[name], max_bins=max_bins), sources=sources)))


def measure(name: str) -> None:
    """Print the seconds of the first processes of an installation and the medians of later ones."""
    with tempfile.TemporaryDirectory() as cache:
        for process, max_bins in PROCESSES.items():
            n_processes = ROUNDS if process == "later" else 1
            seconds = np.median([run(name, max_bins, cache) for _ in range(n_processes)], axis=0)
            n_signatures = len(list(Path(cache).rglob("*.nbc")))
            print(f"{name:<8}{process:<8}" + "".join(f"{wall:>14.2f}" for wall, _ in seconds), end="")
            print(f"{n_signatures:>12}", flush=True)


def first_fits(name: str, sources: Path) -> list[NDArray[np.float64]]:
    """Return the seconds of the first fit of an installation, and of the first exact one in the next process."""
    with tempfile.TemporaryDirectory() as cache:
        return [
            run(name, PROCESSES[process], cache, sources)[STEPS.index("first fit")] for process in ("ever", "exact")
        ]


def compare(name: str, revision: str) -> None:
    """Print the seconds of first fits of an earlier revision and of the present sources, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        states = check_out(revision, folder), ROOT / "src"
        rounds = [[first_fits(name, state) for state in states] for _ in range(ROUNDS)]
    before, now = np.median(rounds, axis=0)
    for i, process in enumerate(("ever", "exact")):
        for j, clock in enumerate(("clock", "processor")):
            figures = f"{before[i, j]:>10.2f}{now[i, j]:>8.2f}{now[i, j] / before[i, j]:>8.2f}"
            print(f"{name:<8}{process:<8}{clock:<12}{figures}", flush=True)


def main() -> None:
    """Run the chosen data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=list(DATA))
    parser.add_argument("--before", metavar="REVISION")
    chosen = parser.parse_args()
    if chosen.before:
        print(f"{'data':<8}{'first':<8}{'seconds of':<12}{chosen.before[:8]:>10}{'now':>8}{'ratio':>8}")
        for name in chosen.data:
            compare(name, chosen.before)
        return
    print(f"{'data':<8}{'process':<8}" + "".join(f"{step:>14}" for step in STEPS) + f"{'signatures':>12}")
    for name in chosen.data:
        measure(name)


if __name__ == "__main__":
    main()

"""How long does the first fit of an installation take, which compiles, and the first of a process, which need not?

    python benchmarks/first_fit.py [DATA ...] [--before REVISION]

runs some data: small (1,000 x 5, 10 trees), blocks (the bundled page blocks, five classes, the defaults). Every fit is
followed by a prediction; imports, of dependencies and of the package, are timed apart. The cache of compiled code is
empty before the first process, and holds the signatures that are counted after it. With --before, the first process of
an earlier revision and that of the present sources take turns.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from statistics import median

from _timing import ROOT, check_out, run_fresh

DATA = {
    "small": "X = numpy.random.default_rng(0).normal(size=(1000, 5)); y = X[:, 0] > 0; n_trees = 10",
    "blocks": "X, y = load_page_blocks(return_X_y=True); n_trees = 300",
}

PROGRAM = """
import json
from time import perf_counter
times = [perf_counter()]
import joblib, numba, numpy, psutil, scipy.optimize, scipy.sparse, scipy.special, threadpoolctl, tqdm
import narwhals, safetensors.numpy, sklearn.base, sklearn.metrics, sklearn.preprocessing, sklearn.utils.validation
times.append(perf_counter())
from aucforest import AUCForestClassifier
from aucforest.datasets import load_page_blocks
times.append(perf_counter())
{data}
for _ in range(2):
    times.append(perf_counter())
    AUCForestClassifier(n_trees, criterion="auc", random_state=0).fit(X, y).predict_proba(X)
    times.append(perf_counter())
print(json.dumps([times[i + 1] - times[i] for i in (0, 1, 3, 5)]))
"""
PROCESSES = 5


def measure(name: str) -> None:
    """Print the seconds of the first process of an installation and the median of later ones."""
    program = PROGRAM.format(data=DATA[name])
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache
        ever = json.loads(run_fresh(program))
        n_signatures = len(list(Path(cache).rglob("*.nbc")))
        later = [median(times) for times in zip(*(json.loads(run_fresh(program)) for _ in range(PROCESSES)))]
    for process, (dependencies, package, first, second) in (("ever", ever), ("later", later)):
        print(f"{name:<8}{process:<8}{dependencies:>14.2f}{package:>11.2f}{first:>11.2f}{second:>12.2f}", end="")
        print(f"{n_signatures:>12}" if process == "ever" else "", flush=True)


def compare(name: str, revision: str) -> None:
    """Print the seconds of first processes of an earlier revision and of the present sources, in turn."""
    program = PROGRAM.format(data=DATA[name])
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        states = check_out(revision, folder), ROOT / "src"
        for _ in range(PROCESSES):
            pairs.append([json.loads(run_fresh(program, cold=True, sources=state))[2] for state in states])
            print(f"{name:<8}{pairs[-1][0]:>10.2f}{pairs[-1][1]:>8.2f}", flush=True)
    before, now = (median(times) for times in zip(*pairs))
    print(f"{'median':<8}{before:>10.2f}{now:>8.2f}{before / now:>8.2f}")


def main() -> None:
    """Run the chosen data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=list(DATA))
    parser.add_argument("--before", metavar="REVISION")
    chosen = parser.parse_args()
    if chosen.before:
        print(f"{'data':<8}{chosen.before[:8]:>10}{'now':>8}{'ratio':>8}")
        for name in chosen.data:
            compare(name, chosen.before)
        return
    print(f"{'data':<8}{'process':<8}{'dependencies':>14}{'aucforest':>11}{'first fit':>11}{'second fit':>12}", end="")
    print(f"{'signatures':>12}")
    for name in chosen.data:
        measure(name)


if __name__ == "__main__":
    main()

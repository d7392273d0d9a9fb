"""How long does the first fit of an installation take, which compiles, and the first of a process, which need not?

    python benchmarks/first_fit.py [DATA ...] [--before REVISION]

runs some data: small (1,000 x 5, 10 trees), blocks (the bundled page blocks, five classes, the defaults). Every fit is
followed by a prediction; imports, of dependencies and of the package, are timed apart. After two equal fits comes the
first exact one, with max_bins=None. The cache of compiled code is empty before the first process, and holds the
signatures that are counted after it. With --before, the first process of an earlier revision and that of the present
sources take turns; their seconds of the processor tell more than those of the clock if other programs run.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

import numpy as np
from _timing import ROOT, check_out, run_fresh

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
for max_bins in (255, 255, None):
    note()
    forest = AUCForestClassifier(n_trees, criterion="auc", max_bins=max_bins, random_state=0)
    forest.fit(X, y).predict_proba(X)
    note()
print(json.dumps([(times[i + 1][0] - times[i][0], times[i + 1][1] - times[i][1]) for i in (0, 1, 3, 5, 7)]))
"""
# What is timed, in this order.
STEPS = ("dependencies", "aucforest", "first fit", "second fit", "exact fit")
PROCESSES = 5


def measure(name: str) -> None:
    """Print the seconds of the first process of an installation and the medians of later ones."""
    program = PROGRAM.format(data=DATA[name])
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache
        ever = np.array(json.loads(run_fresh(program)))
        n_signatures = len(list(Path(cache).rglob("*.nbc")))
        later = np.median([json.loads(run_fresh(program)) for _ in range(PROCESSES)], axis=0)
    for process, seconds in (("ever", ever), ("later", later)):
        print(f"{name:<8}{process:<8}" + "".join(f"{wall:>14.2f}" for wall, _ in seconds), end="")
        print(f"{n_signatures:>12}" if process == "ever" else "", flush=True)


def compare(name: str, revision: str) -> None:
    """Print the seconds of first processes of an earlier revision and of the present sources, in turn."""
    program = PROGRAM.format(data=DATA[name])
    with tempfile.TemporaryDirectory() as folder:
        states = check_out(revision, folder), ROOT / "src"
        # (process, state, step, clock)
        seconds = np.array(
            [[json.loads(run_fresh(program, cold=True, sources=state)) for state in states] for _ in range(PROCESSES)]
        )
    for clock, kind in enumerate(("clock", "processor")):
        for step in (STEPS.index("first fit"), STEPS.index("exact fit")):
            before, now = np.median(seconds[:, :, step, clock], axis=0)
            print(f"{name:<8}{STEPS[step]:<12}{kind:<12}{before:>10.2f}{now:>8.2f}{now / before:>8.2f}", flush=True)


def main() -> None:
    """Run the chosen data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=list(DATA))
    parser.add_argument("--before", metavar="REVISION")
    chosen = parser.parse_args()
    if chosen.before:
        print(f"{'data':<8}{'':<12}{'seconds of':<12}{chosen.before[:8]:>10}{'now':>8}{'ratio':>8}")
        for name in chosen.data:
            compare(name, chosen.before)
        return
    print(f"{'data':<8}{'process':<8}" + "".join(f"{step:>14}" for step in STEPS) + f"{'signatures':>12}")
    for name in chosen.data:
        measure(name)


if __name__ == "__main__":
    main()

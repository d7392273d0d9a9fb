"""How fast are fit and prediction, against an earlier revision of the package? In turn, ratios of medians.

    python benchmarks/before_after.py REVISION [CASE ...] [--restarts N]
    python benchmarks/before_after.py --level LEVEL [CASE ...] [--restarts N]

The first checks the sources of a revision out to a temporary folder and lets two processes, one for each state, run
every case in turn, on one thread, 30 trees, shrinkage off but for the cases "defaults", "out of core" (of Parquet) and
"Dask" (of a cluster of one thread in the same process). Each pair of processes is started several times: where its
arrays happen to lie in memory makes a process faster or slower by up to 15 % for as long as it lives. Seconds are those
of the processor. A prediction is the second one after a fit, because revisions differ in whether the fit or the first
prediction prepares the trees. A ratio above 1 says that the second state is faster. Cases are chosen by the start of
their names. The second command compares code for a level of processors, as a wheel has it (x86-64-v3, x86-64-v2,
generic), with code for this very processor, of the present sources.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from _timing import check_out

ROOT = Path(__file__).resolve().parent.parent
RESTARTS, ROUNDS = 7, 3
N_TREES = 30

WORKER = """
import sys, time
sys.path.insert(0, {benchmarks!r})
import before_after
fits = {{}}
for line in sys.stdin:
    name, what = line.split("|")[0], line.strip().split("|")[1]
    if what == "ready":
        fits[name] = before_after.prepare(name)
        fits[name][0]()
    if what == "predict":
        fits[name][1]()
    start = time.process_time()
    if what != "ready":
        fits[name][what == "predict"]()
    print(time.process_time() - start, flush=True)
"""


def make_data(n_rows: int, n_features: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normal features, and classes by a noisy sum of five of them; of two, 5 % are positive."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(n_rows, n_features))
    score = X[:, :5].sum(axis=1) + 2.0 * generator.normal(size=n_rows)
    ends = [0.95] if n_classes == 2 else np.arange(1, n_classes) / n_classes
    return X, np.searchsorted(np.quantile(score, ends), score)


SIZES = {"2 classes": (70_000, 30, 2), "8 classes": (21_000, 30, 8), "26 classes": (14_000, 16, 26)}
OTHER_SIZES = {
    "small": (500, 10, 2),
    "middle": (3_200, 57, 2),
    "letters": (8_000, 16, 26),
    "300 classes": (20_000, 20, 300),
}
CRITERIA = ("auc", "gini", "entropy", "hellinger")
CASES: dict[str, tuple[str, dict[str, object]]] = {
    **{f"{size}, {criterion}": (size, {"criterion": criterion}) for size in SIZES for criterion in CRITERIA},
    **{f"{size}, defaults": (size, {"shrinkage": "auto"}) for size in SIZES},
    **{f"{size}, exact": (size, {"max_bins": None}) for size in SIZES},
    **{f"{size}, random": (size, {"splitter": "random", "bootstrap": False}) for size in SIZES},
    **{f"{size}, sets": (size, {"categorical_features": [0, 1, 2]}) for size in SIZES},
    **{f"{size}, float weights": (size, {"weights": True}) for size in SIZES},
    "2 classes, 64 leaves": ("2 classes", {"max_leaf_nodes": 64}),
    "2 classes, monotonic": ("2 classes", {"monotonic_cst": [1, 1] + [0] * 28}),
    **{f"{size}, defaults": (size, {"shrinkage": "auto"}) for size in OTHER_SIZES},
    **{f"{size}, auto": (size, {"criterion": "auto", "shrinkage": "auto"}) for size in OTHER_SIZES},
    "out of core": ("2 classes", {"shrinkage": "auto", "held": "files"}),
    **{
        f"Dask, {strategy}": ("2 classes", {"shrinkage": "auto", "held": "Dask", "strategy": strategy})
        for strategy in ("replicate", "gather")
    },
}


def prepare(name: str):
    """Return a fit and a prediction of a case."""
    from aucforest import AUCForestClassifier

    size, options = CASES[name]
    X, y = make_data(*(SIZES | OTHER_SIZES)[size])
    options = {"criterion": "auc", "shrinkage": None} | options
    held = options.pop("held", "memory")
    if held != "memory":
        return prepare_elsewhere(held, X, y, options)
    weights = np.random.default_rng(1).random(len(X)) + 0.5 if options.pop("weights", False) else None
    if "categorical_features" in options:
        X[:, :3] = np.floor(4 * X[:, :3])
    forest = AUCForestClassifier(N_TREES, random_state=0, n_jobs=1, **options)
    return lambda: forest.fit(X, y, sample_weight=weights), lambda: forest.predict_proba(X)


def prepare_elsewhere(held: str, X: np.ndarray, y: np.ndarray, options: dict[str, object]):
    """Return the same for rows in a file or on a cluster."""
    from aucforest import AUCForestClassifier
    from aucforest.distributed import DaskAUCForestClassifier, fit_out_of_core

    if held == "files":
        folder = tempfile.TemporaryDirectory()
        columns = {f"x{i}": column for i, column in enumerate(X.T)} | {"y": y}
        pyarrow.parquet.write_table(pyarrow.table(columns), Path(folder.name) / "rows.parquet")
        forest = AUCForestClassifier(N_TREES, random_state=0, n_jobs=1, **options)
        probe = pyarrow.table(columns).drop_columns("y")
        return lambda: fit_out_of_core(forest, Path(folder.name), "y"), lambda: forest.predict_proba(probe)
    import dask
    import dask.array as da
    from distributed import Client

    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"})
    client = Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0")
    parts = da.from_array(X, chunks=(10_000, -1)), da.from_array(y, chunks=10_000)
    dask_forest = DaskAUCForestClassifier(N_TREES, random_state=0, n_jobs=1, client=client, **options)
    return lambda: dask_forest.fit(*parts), lambda: dask_forest.predict_proba(X)


def start(state: dict[str, str]) -> subprocess.Popen:
    """Start a process with the environment of a state."""
    code = WORKER.format(benchmarks=str(ROOT / "benchmarks"))
    environment = os.environ | state
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    )


def ask(process: subprocess.Popen, name: str, what: str) -> float:
    """Let a process run a case and return its seconds."""
    process.stdin.write(f"{name}|{what}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chosen", nargs="*")
    parser.add_argument("--level")
    parser.add_argument("--restarts", type=int, default=RESTARTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        now = {"PYTHONPATH": str(ROOT / "src")}
        if given.level:
            level = {"NUMBA_CPU_NAME": given.level, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": folder}
            names, chosen, states = ("native", given.level), given.chosen, (now, now | level)
        else:
            revision, *chosen = given.chosen
            names, states = (revision[:8], "now"), ({"PYTHONPATH": str(check_out(revision, folder))}, now)
        print(f"{N_TREES} trees, one thread, medians of {given.restarts} starts; numpy {np.__version__}")
        titles = [f"{f'{what} s, {names[0]}':>18}{names[1]:>10}{'ratio':>7}" for what in ("fit", "predict")]
        print(f"{'':<28}{''.join(titles)}")
        for name in CASES:
            if chosen and not any(name.startswith(start_of_name) for start_of_name in chosen):
                continue
            seconds = np.array([time_pair(states, name) for _ in range(given.restarts)])
            row = f"{name:<28}"
            for first, second in np.median(seconds, axis=0):
                row += f"{first:>18.3f}{second:>10.3f}{first / second:>7.2f}"
            print(row, flush=True)


def time_pair(states: tuple[dict[str, str], ...], name: str) -> list[list[float]]:
    """Return the least seconds of fit and of prediction, for each state, of processes that run in turn."""
    processes = [start(state) for state in states]
    for process in processes:
        ask(process, name, "ready")
    rounds = [
        [[ask(process, name, what) for process in processes] for what in ("fit", "predict")] for _ in range(ROUNDS)
    ]
    for process in processes:
        process.stdin.close()
        process.wait()
    least: list[list[float]] = np.min(rounds, axis=0).tolist()
    return least


if __name__ == "__main__":
    main()

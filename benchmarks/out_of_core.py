"""How long does a fit out of core take, and how much memory? From 100,000 to 10,000,000 rows of a Parquet file.

    python benchmarks/out_of_core.py [ROWS ...]

Fifty trees of default settings, on all cores, each fit in a process of its own with compiled code loaded. The peak is
that of the whole process less what it held before, and less the trees. scikit-learn-intelex fits the same rows,
already in memory, up to a million of them; beyond, its time is extrapolated by the line through log rows and log
seconds, and in proportion to the rows from the last size, which favours it. Linux only.

    python benchmarks/out_of_core.py csv

The same of a CSV of about 500 MB and a Parquet file of its rows, each with memory_limit="400MB".

    python benchmarks/out_of_core.py threshold [ROWS]

The same of 5,000,000 rows of 4 features without out-of-bag probabilities, with `oob_score`, and with tuned thresholds.
"""

import json
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from _timing import in_fresh_process, run_fresh
from sklearn.datasets import make_classification

N_TREES, N_FEATURES = 50, 30
SIZES = (100_000, 1_000_000, 10_000_000)
PEER_SIZES = (100_000, 250_000, 500_000, 1_000_000)
CSV_ROWS = 900_000
THRESHOLD_ROWS, THRESHOLD_FEATURES = 5_000_000, 4
REPEATS = 3
ROWS_OF_GROUP = 250_000

FIT = """
import json, resource, time
from pathlib import Path
import numpy as np, pyarrow as pa
from aucforest import AUCForestClassifier
from aucforest.distributed import fit_out_of_core

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

X = np.random.default_rng(0).normal(size=(3000, 3))
small = pa.table({{"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "target": (X[:, 0] > 0).astype(np.int64)}})
fit_out_of_core(AUCForestClassifier(5, n_jobs=-1, random_state=0), small, "target")  # compiles
Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
before, start = status("VmRSS"), time.perf_counter()
forest = AUCForestClassifier({n_trees}, n_jobs=-1, random_state=0, **{options!r})
fit_out_of_core(forest, {file!r}, "target", memory_limit={limit!r})
seconds, peak = time.perf_counter() - start, status("VmHWM") - before
trees = sum(v.nbytes for tree in forest.trees_ for v in vars(tree).values() if isinstance(v, np.ndarray))
print(json.dumps({{"seconds": seconds, "peak": peak, "trees": trees}}))
"""

PEER = """
import sys, time
sys.path.insert(0, {benchmarks!r})
import pandas as pd
from _forests import fit_intel
table = pd.read_parquet({file!r})
X, y = table.drop(columns="target").to_numpy(), table["target"].to_numpy()
fit_intel(X[:1000].copy(), y[:1000].copy(), 2)
start = time.perf_counter()
fit_intel(X, y, {n_trees})
print(time.perf_counter() - start)
"""


def write_tables(folder: Path, sizes: tuple[int, ...]) -> dict[int, Path]:
    """Write the first rows of one table, of 5 % positives, to a file for each size."""
    X, y = make_classification(max(sizes), N_FEATURES, n_informative=10, n_redundant=5, weights=[0.95], random_state=0)
    table = pa.table({f"x{i}": column for i, column in enumerate(X.T)} | {"target": y})
    files = {n_rows: folder / f"{n_rows}.parquet" for n_rows in sizes}
    for n_rows, file in files.items():
        pyarrow.parquet.write_table(table.slice(0, n_rows), file, row_group_size=ROWS_OF_GROUP)
    return files


def measure_peer(files: dict[int, Path]) -> dict[int, float]:
    """Return the median seconds of scikit-learn-intelex."""
    runs: dict[int, list[float]] = {n_rows: [] for n_rows in PEER_SIZES}
    for _ in range(REPEATS):
        for n_rows, seconds in runs.items():
            program = PEER.format(benchmarks=str(Path(__file__).parent), file=str(files[n_rows]), n_trees=N_TREES)
            seconds.append(in_fresh_process(program))
    return {n_rows: median(seconds) for n_rows, seconds in runs.items()}


def measure(file: Path, limit: str, n_trees: int = N_TREES, **options: Any) -> dict[str, float]:
    """Return seconds, peak of memory and bytes of the trees of a fit in a process of its own."""
    program = FIT.format(file=str(file), limit=limit, n_trees=n_trees, options=options)
    fit: dict[str, float] = json.loads(run_fresh(program))
    return fit


def write_in_fresh_process(folder: str, sizes: tuple[int, ...]) -> None:
    """Write tables in a process whose memory goes with it."""
    in_fresh_process(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from pathlib import Path;"
        f" import out_of_core as m; m.write_tables(Path({folder!r}), {sizes!r}); print(0)"
    )


def compare_csv() -> None:
    """Print seconds and memory of a CSV and of Parquet."""
    with tempfile.TemporaryDirectory() as folder:
        write_in_fresh_process(folder, (CSV_ROWS,))
        parquet, comma = (Path(folder) / f"{CSV_ROWS}.{kind}" for kind in ("parquet", "csv"))
        with pyarrow.parquet.ParquetFile(parquet) as rows, pyarrow.csv.CSVWriter(comma, rows.schema_arrow) as writer:
            for batch in rows.iter_batches():
                writer.write_batch(batch)
        print(f"{CSV_ROWS:,} rows, memory_limit=400MB{'fit s':>12}{'peak less trees':>18}{'trees':>11}")
        for file in (parquet, comma):
            fit = measure(file, "400MB")
            mib = [f"{size / 2**20:,.0f} MiB" for size in (fit["peak"] - fit["trees"], fit["trees"])]
            what = f"{file.suffix[1:]}, {file.stat().st_size / 1e6:,.0f} MB"
            print(f"{what:<33}{fit['seconds']:>12.2f}{mib[0]:>18}{mib[1]:>11}")


def compare_thresholds(n_rows: int) -> None:
    """Print seconds and memory of a fit without and with out-of-bag probabilities."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, THRESHOLD_FEATURES)).astype(np.float32)
    columns = {f"x{j}": column for j, column in enumerate(X.T)} | {"target": X[:, 0] + random.normal(size=n_rows) > 2.5}
    print(f"{n_rows:,} rows, {THRESHOLD_FEATURES} features{'fit s':>19}{'peak less trees':>18}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        pyarrow.parquet.write_table(pa.table(columns), file, row_group_size=ROWS_OF_GROUP)
        for options in ({}, {"oob_score": True}, {"threshold": {"alerts": 0.01}}, {"threshold": "gmean"}):
            fit = measure(file, "8GiB", 20, max_depth=8, **options)
            print(
                f"{options!s:<40}{fit['seconds']:>6.1f}{(fit['peak'] - fit['trees']) / 2**20:>14,.0f} MiB", flush=True
            )


def main(sizes: tuple[int, ...]) -> None:
    """Print seconds and memory by size, and what the peer takes."""
    all_sizes = tuple(sorted({*sizes, *PEER_SIZES}))
    with tempfile.TemporaryDirectory() as folder:
        write_in_fresh_process(folder, all_sizes)
        files = {n_rows: Path(folder) / f"{n_rows}.parquet" for n_rows in all_sizes}
        ours = {}
        for n_rows in sizes:
            fits = [measure(files[n_rows], "2GiB") for _ in range(REPEATS if n_rows <= 1_000_000 else 1)]
            ours[n_rows] = {name: median(fit[name] for fit in fits) for name in fits[0]}
        peer = measure_peer(files)
    slope, intercept = np.polyfit(np.log(list(peer)), np.log(list(peer.values())), 1)
    print(f"scikit-learn-intelex, {N_TREES} trees:", end=" ")
    print(", ".join(f"{n_rows:,} rows {seconds:.2f} s" for n_rows, seconds in peer.items()), end="; ")
    print(f"seconds grow as rows ** {slope:.3f}")
    largest = max(peer)
    print(f"{'rows':>12}{'fit s':>9}{'peak less trees':>18}{'trees':>11}{'peer by the line':>18}{'ratio':>7}", end="")
    print(f"{'in proportion':>15}{'ratio':>7}")
    for n_rows, fit in ours.items():
        line = peer.get(n_rows, float(np.exp(intercept + slope * np.log(n_rows))))
        flat = peer.get(n_rows, peer[largest] * n_rows / largest)
        mib = [f"{size / 2**20:,.0f} MiB" for size in (fit["peak"] - fit["trees"], fit["trees"])]
        print(f"{n_rows:>12,}{fit['seconds']:>9.2f}{mib[0]:>18}{mib[1]:>11}", end="")
        print(f"{line:>18.1f}{line / fit['seconds']:>7.2f}{flat:>15.1f}{flat / fit['seconds']:>7.2f}")


if __name__ == "__main__":
    if sys.argv[1:] == ["csv"]:
        compare_csv()
    elif sys.argv[1:2] == ["threshold"]:
        compare_thresholds(int(sys.argv[2]) if sys.argv[2:] else THRESHOLD_ROWS)
    else:
        main(tuple(map(int, sys.argv[1:])) or SIZES)

"""How long do whole commands take that read tables of text, and how much memory? Against an earlier checkout.

    python benchmarks/read_tables.py [CASE ...] [--before FOLDER] [--rounds N] [--trees N] [--small] [--folder FOLDER]
    python benchmarks/read_tables.py large --large GB [--before FOLDER] [--small] [--folder FOLDER]

The folder of `--before` is a checkout (a git worktree) of the earlier state, whose sources run on the same files in
turn; without it the present ones run alone. Each command is a process of its own. Seconds are medians, by the clock
and ("cpu") of the processors; a first round, in which code is compiled, is not counted. The peak is the largest of the
whole process. A ratio above 1 says that the present state is faster by the clock. What the earlier state cannot read is
nan, with its message above the table.

    wide      5,733 x 1,502, integers and numbers and a column of text, 35 MB: fit of 10 trees (`--trees` says others)
    long      1,000,000 x 30, numbers, a date and two columns of text: fit of few trees, reading alone, prediction
    European  200,000 x 12, semicolons, decimal commas, points between thousands, days first, codes with zeros: fit
    Parquet   the same 200,000 rows, and as JSON lines: fit
    commas    200 x 3,000, numbers with decimal commas: reading alone
    keys      200 x 3,000 as JSON lines, numbers and text: reading alone
    dates     500,000 x 3, dates and times in three formats, nearly all of them distinct: reading alone
    large     only with `--large`: a CSV of so many gigabytes like "long", few samples for each tree, a limit of 2 GiB
              for the process: fit, one round

Cases are chosen by the start of their names. `--small` makes all of them 50 times smaller. Files are in a temporary
folder (of `--folder` if it is given), which is removed at the end, also of an interrupted run; a large CSV needs half
of its size once more.
"""

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from _timing import ROOT, peak_rss_mib, run_fresh

ROUNDS, SHRINK = 3, 50
ROWS = {
    "wide.csv": 5733,
    "long.csv": 1_000_000,
    "european.csv": 200_000,
    "orders.parquet": 200_000,
    "orders.jsonl": 200_000,
    "commas.csv": 200,
    "keys.jsonl": 200,
    "dates.csv": 500_000,
}
# Each state has a folder of its own for its models, beside the tables. Earlier ones need to be told semicolons.
CASES = {
    "wide, fit": "fit ../wide.csv --target y --out wide.model --trees {trees}",
    "long, fit": "fit ../long.csv --target y --out long.model --memory-limit 2GiB --trees 5 --max-depth 8",
    "long, reading": "read ../long.csv",
    "long, predict": "predict long.model ../long.csv --out predictions.csv",
    "European, fit": "fit ../european.csv --target y --out european.model --trees 10 --separator ;",
    "Parquet, fit": "fit ../orders.parquet --target y --out parquet.model --trees 10",
    "JSON lines, fit": "fit ../orders.jsonl --target y --out json.model --trees 10",
    "commas, reading": "read ../commas.csv",
    "keys, reading": "read ../keys.jsonl",
    "dates, reading": "read ../dates.csv",
}
N_MANY = 3000  # columns of "commas" and "keys"
READ = """
import sys
from aucforest.tables.sources import open_source
table = open_source(sys.argv[1])
print(sum(batch.num_rows for batch in table.batches(table.columns)))
"""
TYPES = """
from aucforest.tables.sources import open_source
table = open_source({file!r})
print(", ".join(f"{{field.name}} {{field.type}}" for field in table.schema(table.columns)))
"""
FIT_LARGE = """
import sys
import psutil
from aucforest import AUCForestClassifier
from aucforest.distributed import fit_out_of_core
forest = AUCForestClassifier(5, max_depth=8, max_samples=int(sys.argv[2]), n_jobs=-1, random_state=0)
# As in `aucforest fit --memory-limit 2GiB`, the limit is for the process.
fit_out_of_core(forest, sys.argv[1], "y", memory_limit=2**31 - psutil.Process().memory_info().rss)
"""
WRITE = (
    "import sys; sys.path.insert(0, {benchmarks!r}); import read_tables; print(read_tables.{call}({file!r}, {size}))"
)
SAMPLES, BLOCK_ROWS = 100_000, 250_000
# What a large CSV needs of the disk, times its size: the fit writes its values once more, in a byte or a few each.
SPACE = 1.5


class Run(NamedTuple):
    """Seconds of the clock and of the processors, and the peak of memory in MiB, of a process."""

    seconds: float
    cpu: float
    peak: float


FAILED = Run(math.nan, math.nan, math.nan)


def make_wide(n_rows: int) -> pa.Table:
    """Return integers and numbers in turn, one column of text, and labels."""
    random = np.random.default_rng(0)
    columns = {
        f"x{j}": random.normal(size=n_rows).round(2) if j % 2 else random.integers(0, 100, n_rows) for j in range(1500)
    }
    labels = columns["x1"] + random.normal(size=n_rows) > 1.5
    return pa.table(columns | {"color": random.choice(["red", "green", "blue"], n_rows), "y": labels.astype(int)})


def make_long(n_rows: int) -> pa.Table:
    """Return normal numbers, two columns of integers, one of dates, two of text, and labels."""
    random = np.random.default_rng(0)
    columns = {f"x{j}": random.normal(size=n_rows).round(4) for j in range(24)}
    labels = columns["x0"] + columns["x1"] + random.normal(size=n_rows) > 2.5
    return pa.table(
        columns
        | {
            "age": random.integers(18, 90, n_rows),
            "amount": random.integers(0, 1_000_000, n_rows),
            "day": np.datetime64("2020-01-01") + random.integers(0, 1500, n_rows),
            "color": random.choice(["red", "green", "blue"], n_rows),
            "shop": random.choice([f"shop {i}" for i in range(50)], n_rows),
            "y": labels.astype(int),
        }
    )


def make_orders(n_rows: int) -> pa.Table:
    """Return codes with leading zeros, dates, text, integers, large and small numbers, and labels."""
    random = np.random.default_rng(0)
    ordered = np.datetime64("2022-01-01") + random.integers(0, 900, n_rows)
    amounts = {f"amount{j}": random.lognormal(7, 1.5, n_rows).round(2) for j in range(3)}
    rates = {f"rate{j}": random.random(n_rows).round(2) for j in range(3)}
    labels = np.where(np.log(amounts["amount0"]) + 3 * rates["rate0"] + random.normal(size=n_rows) > 10, "late", "paid")
    codes = [f"{code:05d}" for code in random.integers(1, 300, n_rows) * 321]
    columns = {"code": codes, "ordered": ordered, "sent": ordered + random.integers(0, 30, n_rows)}
    columns |= {"color": random.choice(["red", "green", "blue"], n_rows), "items": random.integers(1, 40, n_rows)}
    return pa.table(columns | amounts | rates | {"y": labels})


def make_many(n_rows: int) -> pa.Table:
    """Return many columns of numbers, every third one of text."""
    random = np.random.default_rng(0)
    return pa.table(
        {
            f"x{j}": random.normal(size=n_rows).round(4) if j % 3 else random.choice(["red", "green"], n_rows)
            for j in range(N_MANY)
        }
    )


def make_dates(n_rows: int) -> pa.Table:
    """Return moments with the day first, with the name of the month, and with the month first."""
    random, formats = np.random.default_rng(0), {"a": "%d/%m/%Y %H:%M", "b": "%d-%b-%Y %H:%M", "c": "%m/%d/%Y %H:%M"}
    moments = (np.datetime64("2020-01-01T00:00") + random.integers(0, 2_000_000, n_rows)).astype("datetime64[s]")
    return pa.table({name: pc.strftime(pa.array(moments), format_) for name, format_ in formats.items()})


def as_european(column: pa.ChunkedArray) -> pa.ChunkedArray | list[str]:
    """Return dates as 03.02.2024, numbers as 1.234,50, and all else as it is."""
    if pa.types.is_date(column.type):
        return pc.strftime(column.cast(pa.timestamp("s")), "%d.%m.%Y")
    if pa.types.is_floating(column.type):
        return [f"{number:,.2f}".translate(str.maketrans(",.", ".,")) for number in column.to_pylist()]
    return column


def write(file: str, n_rows: int) -> str:
    """Write a table in the format of the name of its file, and return its shape."""
    path = Path(file)
    makers = {"wide": make_wide, "long": make_long, "commas": make_many, "keys": make_many, "dates": make_dates}
    table = makers.get(path.stem, make_orders)(n_rows)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in table.to_pylist()))
    elif path.stem in ("european", "commas"):
        table = pa.table({name: as_european(table[name]) for name in table.column_names})
        pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(delimiter=";", quoting_style="none"))
    else:
        pyarrow.csv.write_csv(table, path)
    return f"{table.num_rows:,} x {table.num_columns:,}"


def decimals_in(block: np.ndarray) -> np.ndarray:
    """Return the places of the first three digits behind the points of a text in bytes."""
    is_digit = (block >= ord("0")) & (block <= ord("9"))
    last, indices = np.flatnonzero(block == ord(".")), []
    for _ in range(3):
        last = last[is_digit[last + 1]] + 1
        indices.append(last)
    return np.concatenate(indices)


def write_large(file: str, n_bytes: int) -> int:
    """Write a CSV of at least so many bytes, one block with new decimals time and again; return its number of rows."""
    random, n_rows = np.random.default_rng(1), 0
    table, text = make_long(min(BLOCK_ROWS, n_bytes // 200)), pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, text, pyarrow.csv.WriteOptions(include_header=False))
    block = np.frombuffer(text.getvalue(), np.uint8).copy()
    indices = decimals_in(block)
    with open(file, "wb") as csv:
        csv.write(f"{','.join(table.column_names)}\n".encode())
        while csv.tell() < n_bytes:
            block[indices] = random.integers(ord("0"), ord("9") + 1, len(indices), dtype=np.uint8)
            csv.write(block)
            n_rows += table.num_rows
    return n_rows


def write_in_fresh_process(call: str, file: Path, size: int) -> str:
    """Write a table in a process whose memory goes with it: the peak of a process begins with that of its parent."""
    return run_fresh(WRITE.format(benchmarks=str(ROOT / "benchmarks"), call=call, file=str(file), size=size)).strip()


def run(arguments: list[str], sources: Path, home: Path) -> Run:
    """Let Python run with some sources; RuntimeError with its last words if it fails."""
    # What it leaves behind if it is interrupted goes with the folder. Bytecode is kept, as after an installation.
    environment = os.environ | {"PYTHONPATH": str(sources), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": ""}
    with tempfile.TemporaryFile("w+") as said:
        start = perf_counter()
        process = subprocess.Popen([sys.executable, *arguments], env=environment, cwd=home, stdout=said, stderr=said)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        seconds, process.returncode = perf_counter() - start, os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(" ".join(said.read().split())[-300:] or f"ended with {process.returncode}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, peak_rss_mib(usage))


def arguments_of(case: str, n_trees: int) -> list[str]:
    """Return the arguments of Python that run a case."""
    what, *words = CASES[case].format(trees=n_trees).split()
    return ["-c", READ, *words] if what == "read" else ["-m", "aucforest", what, *words]


def measure(arguments: list[str], states: dict[str, Path], folder: Path, rounds: int) -> dict[str, Run]:
    """Return medians of seconds, and the largest peak, of each state; they take turns, and that before may fail."""
    runs: dict[str, list[Run]] = {state: [] for state in states}
    for _ in range(rounds):
        for state, sources in states.items():
            if FAILED in runs[state]:
                continue
            try:
                runs[state].append(run(arguments, sources, folder / state))
            except RuntimeError as error:
                if state == "now":
                    raise
                print(f"{state}: {error}", flush=True)
                runs[state] = [FAILED]
    return {state: summary_of(each[1:] or each) for state, each in runs.items()}


def summary_of(runs: list[Run]) -> Run:
    """Return medians of seconds, and the largest peak."""
    seconds, cpu, peaks = zip(*runs)
    return Run(median(seconds), median(cpu), max(peaks))


def compare(case: str, states: dict[str, Path], folder: Path, given: argparse.Namespace) -> str:
    """Return the row of a case."""
    needed = [name for name in ROWS if name in CASES[case]]
    for name in needed:
        if not (folder / name).exists():
            n_rows = ROWS[name] // (SHRINK if given.small else 1)
            shape = write_in_fresh_process("write", folder / name, n_rows)
            print(f"{name}: {shape}, {(folder / name).stat().st_size / 1e6:,.1f} MB", flush=True)
    if "predict" in case and not (folder / "now" / "long.model").exists():
        measure(arguments_of("long, fit", given.trees), states, folder, 1)
    return row_of(case, measure(arguments_of(case, given.trees), states, folder, 1 + given.rounds))


def row_of(case: str, measured: dict[str, Run]) -> str:
    """Return seconds, their ratio and peaks as a row of the table."""
    seconds, cpu, peaks = zip(*measured.values())
    ratio = f"{seconds[0] / seconds[1]:>7.2f}" if len(seconds) > 1 else ""
    clock, processor = ("".join(f"{each:>12.2f}" for each in both) for both in (seconds, cpu))
    return f"{case:<16}{clock}{ratio}{processor}{''.join(f'{peak:>12,.0f}' for peak in peaks)}"


def title_of(states: dict[str, Path], rounds: int) -> str:
    """Return the title of the columns of the table."""
    clock, processor, peaks = ("".join(f"{f'{state} {unit}':>12}" for state in states) for unit in ("s", "cpu", "MiB"))
    ratio = f"{'ratio':>7}" if len(states) > 1 else ""
    return f"{f'rounds: {rounds}':<16}{clock}{ratio}{processor}{peaks}"


def measure_large(n_bytes: int, states: dict[str, Path], folder: Path) -> None:
    """Print seconds, rates and peaks of the fit of a large CSV, of which trees have few samples."""
    file, free = folder / "large.csv", shutil.disk_usage(folder).free
    if free < SPACE * n_bytes:
        sys.exit(f"{SPACE * n_bytes / 1e9:,.1f} GB are needed in {folder}, but {free / 1e9:,.1f} GB are free")
    try:
        start = perf_counter()
        n_rows = int(write_in_fresh_process("write_large", file, n_bytes))
        size = file.stat().st_size
        print(f"\nlarge: {size / 1e9:,.2f} GB, {n_rows:,} rows, written in {perf_counter() - start:,.1f} s", flush=True)
        print(f"{'':<16}{'s':>12}{'cpu':>12}{'rows/s':>12}{'MB/s':>10}{'MiB':>12}")
        for state, sources in states.items():
            one = measure(["-c", FIT_LARGE, str(file), str(min(SAMPLES, n_rows))], {state: sources}, folder, 1)
            seconds, cpu, peak = one[state]
            rates = f"{n_rows / seconds:>12,.0f}{size / 1e6 / seconds:>10,.1f}"
            print(f"{state:<16}{seconds:>12.1f}{cpu:>12.1f}{rates}{peak:>12,.0f}", flush=True)
    finally:
        file.unlink(missing_ok=True)


def arguments() -> argparse.Namespace:
    """Return the arguments of the command line, with the names of chosen cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--before", type=Path, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--trees", type=int, default=10, metavar="N")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--large", type=float, metavar="GB")
    parser.add_argument("--folder", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    if given.before and not (given.before / "src" / "aucforest").is_dir():
        parser.error(f"{given.before} is no checkout of the package")
    names = [*CASES, *(["large"] if given.large else [])]
    given.cases = [name for name in names if name.startswith(tuple(given.cases) or "")]
    if not given.cases:
        parser.error(f"cases are {'; '.join([*CASES, 'large (with --large)'])}")
    return given


def main() -> None:
    """Print the table, how columns of text are read, and what a large file takes."""
    given = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which removes the files
    states = {"before": given.before.resolve() / "src"} if given.before else {}
    states["now"] = ROOT / "src"
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name).resolve()
        for state in states:
            (folder / state).mkdir()
        rows = [compare(case, states, folder, given) for case in given.cases if case in CASES]
        if rows:
            print("", title_of(states, given.rounds), *rows, sep="\n", flush=True)
        if (folder / "european.csv").exists():
            print("European columns now:", run_fresh(TYPES.format(file=str(folder / "european.csv"))).strip())
        if "large" in given.cases:
            measure_large(int(given.large * 1e9) // (SHRINK if given.small else 1), states, folder)


if __name__ == "__main__":
    main()

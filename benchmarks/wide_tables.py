"""What does a table of many columns cost, if a few of them are text? Against the same numbers as an array.

    python benchmarks/wide_tables.py [REVISION] [CASE ...]

5,733 rows of 1,501 columns, five of them text, are fitted with 300 trees by the command line from CSV and Parquet, and
with 100 trees from frames and, the numbers alone, from an array. Then 4,000 rows of more and more columns get a report,
and 5 rows of 10,001 columns with a date are predicted. Seconds are those of the clock, in brackets of the processor.
With a revision, the sources of that revision are measured. Cases are chosen by the start of their names.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from _timing import ROOT, check_out, run_fresh

COLUMNS = (100, 200, 400, 1000)
WORKER = "import sys; sys.path.insert(0, {folder!r}); import wide_tables; wide_tables.measure({case!r})"


def make_columns(n_rows: int, n_columns: int, n_texts: int = 5) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return columns of numbers, then of text, and labels."""
    random = np.random.default_rng(0)
    columns = {f"x{j}": random.normal(size=n_rows).round(4) for j in range(n_columns - n_texts)}
    labels = columns["x0"] + random.normal(size=n_rows) > 0.8
    return columns | {f"t{j}": random.choice(["red", "green", "blue"], n_rows) for j in range(n_texts)}, labels


def numbers_in(columns: dict[str, np.ndarray]) -> np.ndarray:
    """Return the columns of numbers as an array."""
    return np.stack([values for values in columns.values() if values.dtype.kind == "f"], axis=1)


FORMS: dict[str, Callable[..., object]] = {
    "array": numbers_in,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}
CASES = [
    *(f"command {ending}" for ending in ("csv", "parquet")),
    *(f"fit {form}" for form in FORMS),
    *(f"report {form} {n_columns}" for form in ("array", "pandas", "pyarrow") for n_columns in COLUMNS),
    *(f"predict {form}" for form in FORMS if form != "array"),
]


def call_command(ending: str, folder: str) -> Callable[[], object]:
    """Return the fit of a file by the command line."""
    from aucforest.cli.app import app

    columns, labels = make_columns(5733, 1501)
    path, table = Path(folder, f"t.{ending}"), pa.table(columns | {"y": labels})
    write = pyarrow.csv.write_csv if ending == "csv" else pyarrow.parquet.write_table
    write(table, path)
    arguments = ["fit", str(path), "--target", "y", "--out", f"{folder}/m"]
    return lambda: app(arguments, standalone_mode=False)


def call_fit(form: str) -> Callable[[], object]:
    """Return the fit of a table."""
    from aucforest import AUCForestClassifier

    columns, labels = make_columns(5733, 1501)
    return partial(AUCForestClassifier(random_state=0, n_jobs=-1).fit, FORMS[form](columns), labels)


def call_report(form: str, n_columns: int) -> Callable[[], object]:
    """Return the report on a table."""
    from aucforest import AUCForestClassifier
    from aucforest.report import report

    columns, labels = make_columns(4000, n_columns)
    X = FORMS[form](columns)
    forest = AUCForestClassifier(30, random_state=0, n_jobs=-1).fit(X, labels)
    return lambda: report(forest, X, labels)


def call_predict(form: str) -> Callable[[], object]:
    """Return the prediction of few rows with a date."""
    from aucforest import AUCForestClassifier

    columns, labels = make_columns(50, 10_000, n_texts=0)
    X = FORMS[form](columns | {"d": np.datetime64("2024-01-01", "us") + np.arange(50)})
    forest = AUCForestClassifier(5, random_state=0).fit(X, labels)
    return lambda: forest.predict_proba(X[:5])


def measure(case: str) -> None:
    """Print the seconds of a case on the last line."""
    what, form, *size = case.split()
    with tempfile.TemporaryDirectory() as folder:
        calls: dict[str, Callable[[], Callable[[], object]]] = {
            "command": lambda: call_command(form, folder),
            "fit": lambda: call_fit(form),
            "report": lambda: call_report(form, *map(int, size)),
            "predict": lambda: call_predict(form),
        }
        call = calls[what]()
        start, start_of_processor = perf_counter(), process_time()
        call()
        print(f"{perf_counter() - start:9.2f} s ({process_time() - start_of_processor:.2f})")


def main() -> None:
    """Print the seconds of all cases, or of those whose names begin with one of the words given."""
    words = sys.argv[1:]
    starts = tuple(word for word in words if any(case.startswith(word) for case in CASES))
    with tempfile.TemporaryDirectory() as folder:
        revisions = [word for word in words if word not in starts]
        sources = check_out(revisions[0], folder) if revisions else ROOT / "src"
        for case in CASES:
            if not starts or case.startswith(starts):
                program = WORKER.format(folder=str(ROOT / "benchmarks"), case=case)
                print(f"{case:24}{run_fresh(program, sources=sources).splitlines()[-1]}", flush=True)


if __name__ == "__main__":
    main()

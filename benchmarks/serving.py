"""How long predictions of 1, 100 and 10,000 rows take, in Python and by ONNX Runtime.

    python benchmarks/serving.py [--trees N] [--repeats N]

A forest and a stack of default parameters, fitted to 20,000 rows with 30 features. Medians and 99th percentiles of
milliseconds of one call with a matrix, warm, one thread; those of a data frame are beside. Needs the extra onnx.
"""

import argparse
import tempfile
from functools import partial
from time import perf_counter

import numpy as np
import onnxruntime
import pandas as pd
from sklearn.datasets import make_classification

from aucforest import AUCForestClassifier, AUCStackingClassifier


def cells_of(predict, tables, n_repeats):
    """Return the median and the 99th percentile of milliseconds of a call for each table, as text."""
    cells = []
    for n_rows, rows in tables.items():
        predict(rows)
        seconds = []
        for _ in range(n_repeats if n_rows <= 100 else max(n_repeats // 10, 5)):
            start = perf_counter()
            predict(rows)
            seconds.append(perf_counter() - start)
        median, high = 1e3 * np.percentile(seconds, [50, 99])
        cells.append(f"{median:,.2f} ({high:,.2f})")
    return " | ".join(cells)


def session_of(model, folder):
    model.to_onnx(f"{folder}/model.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(f"{folder}/model.onnx", options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=200)
    options = parser.parse_args()
    X, y = make_classification(30_000, 30, n_informative=10, weights=[0.95], random_state=0)
    forest = AUCForestClassifier(options.trees, random_state=0)
    print("| model | input | 1 row | 100 rows | 10,000 rows |\n| --- | --- | --- | --- | --- |")
    for name, model in {"forest": forest, "stack": AUCStackingClassifier(forest)}.items():
        model.fit(X[:20_000], y[:20_000])
        tables = {n_rows: X[20_000 : 20_000 + n_rows] for n_rows in (1, 100, 10_000)}
        print(f"| {name} | matrix | {cells_of(model.predict_proba, tables, options.repeats)} |", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            run = partial(session_of(model, folder).run, None)
            cells = cells_of(lambda rows, run=run: run({"X": rows}), tables, options.repeats)
        print(f"| {name} | ONNX Runtime | {cells} |", flush=True)
        model.fit(pd.DataFrame(X[:20_000]).add_prefix("x"), y[:20_000])
        frames = {n_rows: pd.DataFrame(rows).add_prefix("x") for n_rows, rows in tables.items()}
        print(f"| {name} | data frame | {cells_of(model.predict_proba, frames, options.repeats)} |", flush=True)


if __name__ == "__main__":
    main()

"""What do exports cost, and who predicts fastest: the forest, onnxruntime, scikit-learn or treelite's interpreter?

    python benchmarks/exports_speed.py

100 trees on 20,000 rows of 30 features, probabilities of 100,000 rows of float32 values, all on as many threads. The
forest and scikit-learn read a frame. Sizes are those of files; scikit-learn's is a pickle.
"""

import pickle
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import treelite
from _timing import interleaved
from joblib import cpu_count

from aucforest import AUCForestClassifier

N_JOBS = cpu_count()
N_TREES, N_TRAIN, N_ROWS, N_FEATURES, N_REPEATS = 100, 20_000, 100_000, 30, 3


def make_rows() -> tuple[pd.DataFrame, np.ndarray]:
    """Return two classes, 5 % positive."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)
    score = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=N_ROWS)
    return pd.DataFrame(X).add_prefix("x"), (score > np.quantile(score, 0.95)).astype(int)


def run(folder: Path) -> None:
    """Print times, sizes and the greatest difference in a probability."""
    frame, y = make_rows()
    # scikit-learn and treelite read trees before calibration
    forest = AUCForestClassifier(N_TREES, criterion="auc", calibration=None, n_jobs=N_JOBS, random_state=0).fit(
        frame[:N_TRAIN], y[:N_TRAIN]
    )
    X, path = np.asarray(forest.encode(frame)), folder / "forest.onnx"
    made = interleaved(
        {
            "to_sklearn": forest.to_sklearn,
            "to_onnx": lambda: forest.to_onnx(path),
            "save": lambda: forest.save(folder / "forest.safetensors"),
        },
        N_REPEATS,
    )
    exported = forest.to_sklearn().set_params(n_jobs=N_JOBS)
    table = pd.DataFrame(X, columns=frame.columns)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = N_JOBS
    session = onnxruntime.InferenceSession(path, options)
    compiled = treelite.sklearn.import_model(exported)
    ways = {
        "aucforest": lambda: forest.predict_proba(frame),
        "onnxruntime": lambda: session.run(["probabilities"], {"X": X})[0],
        "scikit-learn": lambda: exported.predict_proba(table),
        "treelite": lambda: treelite.gtil.predict(compiled, X, nthread=N_JOBS).reshape(N_ROWS, -1),
    }
    expected = ways["aucforest"]()
    differences = {way: np.abs(function() - expected).max() for way, function in ways.items()}  # and warms up
    seconds = interleaved(ways, N_REPEATS)
    sizes = {
        "to_sklearn": len(pickle.dumps(exported)),
        "to_onnx": path.stat().st_size,
        "save": (folder / "forest.safetensors").stat().st_size,
    }
    n_nodes = sum(tree.n_nodes for tree in forest.trees_)
    n_copies = sum(tree.tree_.node_count for tree in exported.estimators_)
    print(f"{n_nodes:,} nodes, {n_copies:,} in scikit-learn")
    for what, time in made.items():
        print(f"  {what:12} {time:8.3f} s  {sizes[what] / 2**20:8.1f} MiB  {sizes[what] / n_nodes:6.1f} bytes a node")
    for way, time in seconds.items():
        print(f"  {way:12} {time:8.3f} s  {time / seconds['aucforest']:6.2f} x  difference {differences[way]:.1e}")


if __name__ == "__main__":
    print(f"{N_TREES} trees, {N_TRAIN:,} x {N_FEATURES} rows to learn from, {N_ROWS:,} to predict, {N_JOBS} threads")
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder))

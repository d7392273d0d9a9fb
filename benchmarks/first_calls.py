"""How long do the first calls of an installation take, each in a process of its own with an empty cache?

    python benchmarks/first_calls.py [PYTHON] [--sources FOLDER] [--rounds N] [--calls NAME ...]

PYTHON is the interpreter of an environment where a wheel is installed, whose machine code is used; or FOLDER is where a
wheel is unpacked. Without either, the present sources compile. Data have 1,000 rows and 5 columns; forests have 10
trees unless it says otherwise. Imports, of dependencies and of the package, are timed apart. The second call of the
same process tells what is work. Seconds are medians. Calls are chosen by the start of their names. It ends with an
error if functions were compiled in spite of a wheel.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from _timing import ROOT

PROGRAM = """
import json, time, warnings
from collections import Counter
start = time.perf_counter()
import numpy as np
import joblib, numba, scipy.optimize, scipy.sparse, sklearn.metrics
from aucforest import AUCForestClassifier, AUCStackingClassifier, inspection, metrics, monitoring
from aucforest.losses import pairwise_loss
from numba.core import event
imported = time.perf_counter()


class Compiled(event.Listener):
    seen = Counter()

    def on_start(self, event):
        self.seen[event.data["dispatcher"].py_func.__qualname__] += 1

    def on_end(self, event):
        pass


event.register("numba:compile", Compiled())
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 5))
score = X[:, 0] + rng.normal(size=1000) / 2
proba = 1 / (1 + np.exp(-score))
y, y3 = score > 0.8, np.digitize(score, [-0.5, 0.8])
few = scipy.sparse.csr_array(np.where(abs(X) > 1, X, 0.0))
merchants = np.column_stack([X, np.arange(1000) % 60])


def fit(rows=X, labels=y, n_estimators=10, **params):
    forest = AUCForestClassifier(n_estimators, random_state=0, **params).fit(rows, labels)
    forest.predict_proba(rows)
    return forest


{prepare}
times = [imported - start]
for _ in range(2):
    began = time.perf_counter()
    {call}
    times.append(time.perf_counter() - began)
print(json.dumps([*times, Compiled.seen.total()]))
"""
FITTED = "forest = fit(oob_score=True)"
# Each: what is called, and what is done before.
CALLS = {
    "fit, two classes": ("fit()", ""),
    "fit, three classes": ("fit(labels=y3)", ""),
    "fit, sparse": ("fit(few)", ""),
    "fit, exact": ("fit(max_bins=None)", ""),
    "fit, categories": ("fit(merchants, categorical_features=[5])", ""),
    "fit, 300 trees": ("fit(n_estimators=300)", ""),
    "stack": ("AUCStackingClassifier(AUCForestClassifier(10, random_state=0)).fit(X, y).predict_proba(X)", ""),
    "ROC AUC": ("metrics.roc_auc_score(y, score)", ""),
    "average precision": ("metrics.average_precision_score(y, score)", ""),
    "interval of AUC": ("metrics.auc_confidence_interval(y, score)", ""),
    "Hand and Till": ("metrics.hand_till_score(y3, np.c_[proba, 1 - proba, proba] / (1 + proba[:, None]))", ""),
    "loss": ("pairwise_loss(y, score)", ""),
    "explanation": ("inspection.explain(forest, X[:5])", FITTED),
    "importance": ("inspection.oob_permutation_importance(forest, X, y, n_repeats=1)", FITTED),
    "CBPE": ("monitoring.CBPE.from_forest(forest, y, metrics=['roc_auc']).estimate(proba)", FITTED),
}
# numba finds no folder that it may write to, as for a user without a home and a folder of the package to read only.
NOWHERE = {"NUMBA_CACHE_LOCATOR_CLASSES": "IPythonCacheLocator"}
SETTINGS = {"": {}, ", nowhere to write": NOWHERE, ", without AVX": {"NUMBA_ENABLE_AVX": "0"}}


def run(python: str, sources: str, name: str, setting: dict[str, str]) -> tuple[list[float], int]:
    """Return the seconds of imports, of the first and of the second call, and how many kernels were compiled."""
    call, prepare = CALLS[name]
    program = PROGRAM.format(call=call, prepare=prepare)
    with tempfile.TemporaryDirectory() as cache:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA"))}
        own |= {"NUMBA_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1", **setting}
        if sources:
            own["PYTHONPATH"] = sources
        finished = subprocess.run([python, "-c", program], env=own, cwd=cache, capture_output=True, text=True)
        if finished.returncode:
            raise RuntimeError(f"{name}: {finished.stderr}")
        *seconds, compiled = json.loads(finished.stdout)
    return seconds, compiled


def main() -> None:
    """Print the seconds of each call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", nargs="?")
    parser.add_argument("--sources")
    parser.add_argument("--calls", nargs="*", default=[""])
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    # not resolved, as the interpreter of an environment is a link
    python = os.path.abspath(given.python or sys.executable)
    sources = given.sources or ("" if given.python else str(ROOT / "src"))
    print(f"{'':<40}{'imports':>10}{'first call':>12}{'second':>10}{'compiled':>10}")
    total = 0
    chosen = [name for name in CALLS if name.startswith(tuple(given.calls))]
    if not chosen:
        parser.error(f"no call starts with {' or '.join(given.calls)}")
    for name in chosen:
        for words, setting in SETTINGS.items() if name == "fit, two classes" else (("", {}),):
            rounds = [run(python, sources, name, setting) for _ in range(given.rounds)]
            seconds, compiled = np.median([times for times, _ in rounds], axis=0), rounds[0][1]
            figures = "".join(f"{seconds[i]:>{width}.2f}" for i, width in enumerate((10, 12, 10)))
            print(f"{name + words:<40}{figures}{compiled:>10}", flush=True)
            total += compiled
    if total and (given.python or given.sources):
        sys.exit(f"{total} functions were compiled")


if __name__ == "__main__":
    main()

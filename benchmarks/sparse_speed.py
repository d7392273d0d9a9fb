"""What does a forest on sparse rows cost? Against scikit-learn's forest, on counts of words.

    python benchmarks/sparse_speed.py [--trees 100] [--rows 20000] [--words 2000] [--repeats 3]

Made-up documents of about 25 words, drawn from a Zipf distribution in which one word in twenty is three times as
frequent for the positive 5 %; half of the rows are trained on. One thread, warm, in turns; memory is the peak of a
process that fits, beyond that of one that does not.
"""

import argparse
import tracemalloc
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from _timing import interleaved, peak_rss_mib, run_fresh
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from aucforest import AUCForestClassifier

PEAK = """
import sys
sys.path.insert(0, {folder!r})
import sparse_speed
print(sparse_speed.peak({name!r}, {is_fitted}, {args}))
"""


def make_documents(n_rows: int, n_words: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return counts of words and labels."""
    random = np.random.default_rng(0)
    y = (random.random(n_rows) < 0.05).astype(int)
    chances = 1.0 / np.arange(1, n_words + 1) ** 0.8
    tilted = chances * np.where(random.random(n_words) < 0.05, 3.0, 1.0)
    lengths = random.poisson(25, n_rows) + 1
    words = np.empty(lengths.sum(), dtype=np.int64)
    of_row = np.repeat(np.arange(n_rows), lengths)
    for label, weights in ((0, chances), (1, tilted)):
        chosen = y[of_row] == label
        words[chosen] = random.choice(n_words, np.count_nonzero(chosen), p=weights / weights.sum())
    X = sp.csr_matrix((np.ones(len(words)), (of_row, words)), shape=(n_rows, n_words))
    X.sum_duplicates()
    return X, y


def make_forests(n_trees: int) -> dict[str, object]:
    """Return what is compared, not fitted."""
    same = {"criterion": "gini", "splitter": "best", "shrinkage": 0.0}
    return {
        "scikit-learn": RandomForestClassifier(n_trees, random_state=0),
        "aucforest": AUCForestClassifier(n_trees, random_state=0),
        "aucforest, criterion='gini', shrinkage=0": AUCForestClassifier(n_trees, random_state=0, **same),
    }


def peak(name: str, is_fitted: bool, n_trees: int, n_rows: int, n_words: int) -> float:
    """Return the peak memory of this process, in MiB, with a forest that is fitted to all rows, or to few of them."""
    X, y = make_documents(n_rows, n_words)
    n_fitted = n_rows // 2 if is_fitted else 200
    make_forests(n_trees)[name].fit(X[:n_fitted], y[:n_fitted])
    return peak_rss_mib()


def measure_memory(name: str, sizes: str) -> float:
    """Return the MiB that a fit takes, the trees included."""
    options = {"folder": str(Path(__file__).parent), "name": name, "args": sizes}
    without, fitted = (float(run_fresh(PEAK.format(is_fitted=flag, **options))) for flag in (False, True))
    return fitted - without


def measure_codes(X: sp.csr_matrix, y: np.ndarray) -> float:
    """Return the peak of the bytes that a fit of a tree with one split allocates."""
    forest = AUCForestClassifier(1, max_depth=1, criterion="auc", shrinkage=0.0, calibration=None, random_state=0)
    forest.fit(X[:500], y[:500])
    tracemalloc.start()
    forest.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> None:
    """Print a line for each forest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option, value in (("--trees", 100), ("--rows", 20_000), ("--words", 2_000), ("--repeats", 3)):
        parser.add_argument(option, type=int, default=value)
    args = parser.parse_args()
    measure_memory("aucforest", "1, 1000, 50")  # compiles
    # before there is data: a process counts the memory of the one that it was started from
    memory = {name: measure_memory(name, f"{args.trees}, {args.rows}, {args.words}") for name in make_forests(1)}
    X, y = make_documents(args.rows, args.words)
    half = args.rows // 2
    forests = make_forests(args.trees)
    for forest in forests.values():  # warm
        forest.fit(X[:500], y[:500]).predict_proba(X[:10])
    fits = interleaved(
        {name: lambda f=forest: f.fit(X[:half], y[:half]) for name, forest in forests.items()}, args.repeats
    )
    walks = {name: lambda f=forest: f.predict_proba(X[half:]) for name, forest in forests.items()}
    predictions = interleaved(walks, args.repeats + 1)
    density = X.nnz / np.prod(X.shape)
    n_bytes = 12 * X[:half].nnz  # a float64 and an index of 4 bytes each
    print(
        f"{half:,} x {args.words:,} rows, density {density:.2%}, {n_bytes / 2**20:.1f} MiB of stored values,"
        f" a small fit {measure_codes(X[:half], y[:half]) / n_bytes:.2f} times that, {args.trees} trees, one thread,"
        f" medians of {args.repeats}"
    )
    for name, forest in forests.items():
        auc = roc_auc_score(y[half:], forest.predict_proba(X[half:])[:, 1])
        print(
            f"{name:42s} fit {fits[name]:6.2f} s ({fits['scikit-learn'] / fits[name]:.2f}x), "
            f"predict {predictions[name]:6.3f} s ({predictions['scikit-learn'] / predictions[name]:.2f}x), "
            f"AUC {auc:.4f}, memory {memory[name]:.0f} MiB"
        )


if __name__ == "__main__":
    main()

"""How long does an import take beyond numpy and scikit-learn? Against numba alone, and LightGBM.

    python benchmarks/import_time.py

Every statement in a process of its own, after `import numpy, sklearn.ensemble`; medians of rounds that take turns.
"""

from statistics import median

from _timing import in_fresh_process

STATEMENTS = (
    "import aucforest",
    "import aucforest.datasets",
    "import aucforest.metrics",
    "from aucforest import AUCForestClassifier",
    "import numba",
    "import lightgbm",
)
ROUNDS = 11


def seconds(statement):
    """Return what a statement takes in a fresh process."""
    before = "from time import perf_counter; import numpy, sklearn.ensemble; start = perf_counter()"
    return in_fresh_process(f"{before}\n{statement}\nprint(perf_counter() - start)")


def main():
    rounds = [[seconds(statement) for statement in STATEMENTS] for _ in range(ROUNDS)]
    for statement, times in zip(STATEMENTS, zip(*rounds, strict=True), strict=True):
        print(f"{statement:45} {median(times):6.3f} s")


if __name__ == "__main__":
    main()

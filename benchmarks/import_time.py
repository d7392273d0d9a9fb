"""How long does the import of an estimator take, against that of scikit-learn's forest?

    python benchmarks/import_time.py [REVISION]

Every statement in a process of its own, from nothing; least and median of rounds that take turns. With REVISION, the
estimator of an earlier revision is imported, too. Ratios are those to scikit-learn's forest.
"""

import sys
import tempfile
from pathlib import Path
from statistics import median

from _timing import ROOT, check_out, run_fresh

FOREST, PEER = "from aucforest import AUCForestClassifier", "from sklearn.ensemble import RandomForestClassifier"
STATEMENTS = (
    PEER,
    FOREST,
    "import aucforest",
    "import aucforest.datasets",
    "import aucforest.metrics",
    "import numba",
    "import lightgbm",
)
ROUNDS = 11

PROGRAM = """
from time import perf_counter, process_time
start, used = perf_counter(), process_time()
{}
print(perf_counter() - start, process_time() - used)
"""


def seconds(statement: str, sources: Path) -> list[float]:
    """Return the seconds that a statement takes in a fresh process: of the clock and of the processor."""
    return [float(word) for word in run_fresh(PROGRAM.format(statement), sources=sources).split()]


def main() -> None:
    """Print the seconds of every import."""
    with tempfile.TemporaryDirectory() as folder:
        cases = [(statement, statement, ROOT / "src") for statement in STATEMENTS]
        if sys.argv[1:]:
            cases.insert(1, (f"the same at {sys.argv[1][:8]}", FOREST, check_out(sys.argv[1], folder)))
        rounds = [[seconds(what, where) for _, what, where in cases] for _ in range(ROUNDS)]
    print(f"{'':<55}{'seconds: least':>15}{'median':>8}{'ratio':>7}{'processor: least':>18}{'ratio':>7}")
    least, middle = [[[f(times) for times in zip(*case)] for case in zip(*rounds)] for f in (min, median)]
    for (name, *_), (wall, used), (typical, _) in zip(cases, least, middle):
        print(f"{name:<55}{wall:>15.2f}{typical:>8.2f}{typical / middle[0][0]:>7.2f}", end="")
        print(f"{used:>18.2f}{used / least[0][1]:>7.2f}")


if __name__ == "__main__":
    main()

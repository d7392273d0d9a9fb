"""What does the mixture of criteria cost, and what is chosen out of bag? Times of fits, with one and with two threads.

    python benchmarks/mixture_price.py [SET ...] [--trees N] [--repeats N]

Sets: small, medium, noisy, six, letter, large. The default forest ("auto") and `criterion="auc"` ("auc") are fitted as
they are, without shrinkage, without calibration, and without both; trees of the mixture are always chosen out of bag.
Medians of wall times of interleaved fits, in ms: run it on a quiet machine. Then the default forest over "auc", each as
it is and without both, where mostly the trees of the other criteria and splitters differ; and how many times as fast
two threads are as one.
"""

import argparse
from functools import partial
from typing import Any

import numpy as np
from _timing import interleaved
from sklearn.datasets import make_classification

from aucforest import AUCForestClassifier

# Numbers of rows, features and classes, and the proportions of the first of two classes and of random labels.
SETS = {
    "small": (500, 10, 2, 0.9, 0.01),
    "medium": (4000, 20, 2, 0.9, 0.01),
    "noisy": (4000, 20, 2, 0.6, 0.2),
    "six": (3600, 36, 6, None, 0.01),
    "letter": (8000, 16, 26, None, 0.01),
    "large": (48_000, 16, 2, 0.6, 0.2),
}
WITHOUT: dict[str, dict[str, Any]] = {
    "": {},
    " -shrinkage": {"shrinkage": None},
    " -calibration": {"calibration": None},
    " -both": {"shrinkage": None, "calibration": None},
}
FORESTS = {
    f"{criterion}{name}": {"criterion": criterion, **options}
    for criterion in ("auto", "auc")
    for name, options in WITHOUT.items()
}


def make(
    n_rows: int, n_features: int, n_classes: int, first: float | None, flipped: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels."""
    options = {"weights": None if first is None else [first], "flip_y": flipped}
    informative = min(12, n_features - 2)
    return make_classification(
        n_rows, n_features, n_informative=informative, n_redundant=0, n_classes=n_classes, random_state=0, **options
    )


def main() -> None:
    """Print a table for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"some of {', '.join(SETS)}; all by default")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    for name in given.sets or SETS:
        X, y = make(*SETS[name])
        fits = {}
        for n_jobs in (1, 2):
            for forest, options in FORESTS.items():
                model = AUCForestClassifier(given.trees, n_jobs=n_jobs, random_state=0, **options)
                fits[f"{forest} {n_jobs}"] = partial(model.fit, X, y)
        interleaved(fits, 1)  # loads compiled code
        seconds = interleaved(fits, given.repeats)
        print(f"{name}, {len(X):,} x {X.shape[1]}, {given.trees} trees", flush=True)
        for forest in FORESTS:
            one, two = seconds[f"{forest} 1"], seconds[f"{forest} 2"]
            print(f"    {forest:20} 1 thread {1e3 * one:8.1f}   2 threads {1e3 * two:8.1f}   {one / two:.2f} times")
        for name_without in ("", " -both"):
            ratios = [seconds[f"auto{name_without} {n}"] / seconds[f"auc{name_without} {n}"] for n in (1, 2)]
            print(f"    auto{name_without} over auc{name_without}: {ratios[0]:.2f} and {ratios[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()

"""How often do 95 % intervals of class probabilities hold the forest's expected probability? Simulations.

    python benchmarks/probability_intervals.py [coverage] [others] [jackknife] [cost]
        [--sets N] [--rows N ...] [--trees N]

Without a name all four, which take about half an hour of processor time. The expected probability of a test row is the
mean over forests of N independent training sets (40 by default, 25 of 10,000 rows), so that of 300 trees is meant, with
all that a fit chooses: mixture, shrinkage, calibration. An estimate is compared with the mean as if that were
independent of it. Coverage is the mean over 200 test rows. 2 %, 10 % or 50 % are positive.

coverage: `predict_interval` of default forests with ``sampling="half-samples"``; its standard error is over training
sets. "worst rows" is the coverage that a tenth of the rows do not have; "low" and "high" are the quarters of the rows
with the lowest and the highest expected probability; and the mean length. The generators "additive" (10 normal
features, of which 4 count), "interactions" (products and thresholds of 5 of 10) and "clusters" (scikit-learn's
make_classification: 20 features, 10 of which count) are those with which the method was chosen, "mixed" (counts,
categories, rounded, skewed and missing values, steps) was not tried before.

others: the same forests, with other variances. "each row": the variance between half-samples less that of their few
trees, of every row alone, at least 0; with the share of rows where it is negative. "uncorrected": without "less".

jackknife: default forests, with the infinitesimal jackknife for bagging and its correction for few trees (Wager,
Hastie, Efron 2014), of every row alone and as one dispersion of all test rows.

cost: ROC AUC and log loss on 20,000 new rows, with half-samples less with bootstrap samples, and standard errors.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss, roc_auc_score

from aucforest import AUCForestClassifier
from aucforest.estimators._intervals import bounds_of
from aucforest.fitting.bootstrap import N_HALVES, half_of
from aucforest.fitting.spec import tree_keys

KINDS, SHARES, SIZES = ("additive", "interactions", "clusters", "mixed"), (0.02, 0.1, 0.5), (500, 2000, 10000)
Z = float(norm.ppf(0.975))
N_TEST, N_NEW = 200, 20_000
HEAD = f"\n{'':14}{'rows':>7}{'positive':>10}{'each row':>10}{'length':>8}{'negative':>10}"
Rows = tuple[np.ndarray, np.ndarray]


def mixed_features(n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Return features of several kinds."""
    common = rng.normal(size=n_rows)
    X = np.column_stack([
        np.round(common + rng.normal(size=n_rows)), rng.poisson(2.0, n_rows), rng.integers(6, size=n_rows),
        rng.exponential(size=n_rows), common, rng.random(n_rows) < 0.2, rng.standard_t(3, n_rows), rng.random(n_rows),
    ]).astype(np.float64)  # fmt: skip
    X[rng.random(n_rows) < 0.1, 4] = np.nan
    return X


def log_odds(kind: str, X: np.ndarray) -> np.ndarray:
    """Return the log odds of a positive label but for a constant."""
    if kind == "additive":
        return X[:, 0] + 0.8 * X[:, 1] + 0.6 * X[:, 2] + 0.4 * (X[:, 3] > 0)
    if kind == "interactions":
        return 1.5 * X[:, 0] * X[:, 1] + 1.5 * (X[:, 2] > 0) * X[:, 3] + np.abs(X[:, 4])
    steps = (
        0.8 * (X[:, 0] > 0) + 0.5 * np.minimum(X[:, 1], 4) + np.array([0, 1.2, -0.8, 0.3, 0, -0.4])[X[:, 2].astype(int)]
    )
    return steps + np.where(np.isnan(X[:, 4]), 0.7, np.nan_to_num(X[:, 4])) * X[:, 5] + 0.6 * (X[:, 3] > 1.5)


@cache
def source(kind: str, share: float) -> Callable[[int, np.random.Generator], Rows]:
    """Return a function that samples rows."""
    if kind == "clusters":
        X, y = make_classification(
            200_000, 20, n_informative=5, n_redundant=5, weights=[1 - share], class_sep=0.8, random_state=7
        )

        def sample(n_rows: int, rng: np.random.Generator) -> Rows:
            rows = rng.integers(len(X), size=n_rows)
            return X[rows], y[rows] > 0

        return sample

    def features(n_rows: int, rng: np.random.Generator) -> np.ndarray:
        return mixed_features(n_rows, rng) if kind == "mixed" else rng.normal(size=(n_rows, 10))

    large = log_odds(kind, features(100_000, np.random.default_rng(1)))
    constant = brentq(lambda constant: expit(large + constant).mean() - share, -20.0, 10.0)

    def sample(n_rows: int, rng: np.random.Generator) -> Rows:
        X = features(n_rows, rng)
        return X, rng.random(n_rows) < expit(log_odds(kind, X) + constant)

    return sample


def fits(kind: str, share: float, n_rows: int, n_sets: int, **params: Any) -> Iterator[AUCForestClassifier]:
    """Yield forests of independent training sets."""
    for seed in range(n_sets):
        rng = np.random.default_rng([4, n_rows, seed])
        X, y = source(kind, share)(n_rows, rng)
        while np.count_nonzero(y) < 2:
            X, y = source(kind, share)(n_rows, rng)
        yield AUCForestClassifier(random_state=seed, **params).fit(X, y)


def test_rows(kind: str, share: float) -> np.ndarray:
    """Return the rows for which intervals are computed."""
    return source(kind, share)(N_TEST, np.random.default_rng(3))[0]


def in_cells(arguments: argparse.Namespace) -> Iterator[tuple[str, float, int, int]]:
    """Yield the kinds, shares of positives, numbers of rows and of training sets."""
    for n_rows in arguments.rows:
        for share in SHARES:
            for kind in KINDS:
                yield kind, share, n_rows, arguments.sets or (25 if n_rows > 5000 else 40)


def is_held(bounds: list[np.ndarray], probabilities: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return which intervals hold the expected probability, (n_sets, n_test), and the expected probabilities."""
    found, n_sets = np.array(probabilities), len(probabilities)
    expected, low_high = found.mean(axis=0), np.array(bounds)
    assert np.all((low_high >= 0.0) & (low_high <= 1.0))  # no NaN
    # the deviation from a mean that includes the estimate is too small by this factor
    target = found + (expected - found) * np.sqrt(n_sets / (n_sets - 1))
    return (low_high[:, :, 0] <= target) & (target <= low_high[:, :, 1]), expected


def report_coverage(arguments: argparse.Namespace) -> None:
    """Print coverage and length of `predict_interval`."""
    print(f"\n{'':14}{'rows':>7}{'positive':>10}{'coverage':>18}{'worst rows':>12}{'low':>8}{'high':>8}{'length':>8}")
    for kind, share, n_rows, n_sets in in_cells(arguments):
        test = test_rows(kind, share)
        bounds, probabilities = [], []
        for forest in fits(kind, share, n_rows, n_sets, sampling="half-samples", n_estimators=arguments.trees):
            bounds.append(forest.predict_interval(test))
            probabilities.append(forest.predict_proba(test)[:, 1])
        held, expected = is_held(bounds, probabilities)
        by_row, order = held.mean(axis=0), np.argsort(expected)
        error = held.mean(axis=1).std(ddof=1) / np.sqrt(n_sets)
        low, high = by_row[order[: N_TEST // 4]].mean(), by_row[order[-N_TEST // 4 :]].mean()
        print(f"{kind:14}{n_rows:>7,}{share:>10.0%}{held.mean():>10.1%} ± {error:.1%}{np.quantile(by_row, 0.1):>12.1%}"
              f"{low:>8.1%}{high:>8.1%}{np.mean(np.diff(bounds)):>8.3f}", flush=True)  # fmt: skip


def of_trees(forest: AUCForestClassifier, X: np.ndarray) -> np.ndarray:
    """Return the probability of the positive class by each tree, (n_trees, n_rows)."""
    leaves = forest.apply(X)
    return np.stack([tree.prediction[leaves[:, i], 1] for i, tree in enumerate(forest.trees_)])


def interval(forest: AUCForestClassifier, X: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the intervals for variances of the mean over trees."""
    mean = np.clip(of_trees(forest, X).mean(axis=0), 1e-6, 1.0 - 1e-6)
    slope = 1.0 if forest.calibration_ is None else forest.calibration_.slope
    both, dispersion = np.stack((1.0 - mean, mean), axis=1), (variance / (mean * (1.0 - mean)))[:, None]
    return bounds_of(both, forest.predict_proba(X), slope, dispersion, Z)[:, 1]


def half_variances(forest: AUCForestClassifier, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the variance between half-samples, and what the few trees of each add to it."""
    proba, halves = of_trees(forest, X), np.array([*map(half_of, tree_keys(forest._seed, range(len(forest))))])
    parts = [proba[halves == half] for half in range(N_HALVES)]
    means, sizes = np.array([part.mean(axis=0) for part in parts]), np.array([len(part) for part in parts])
    within = sum(((part - mean) ** 2).sum(axis=0) for part, mean in zip(parts, means)) / (len(proba) - N_HALVES)
    return means.var(axis=0, ddof=1), within * np.mean(1.0 / sizes)


def print_two(cell: tuple, found: tuple, negative: list[float], probabilities: list[np.ndarray]) -> None:
    """Print coverage and length of the intervals by two variances, and the share of negative ones of the first."""
    kind, share, n_rows, _ = cell
    (first, _), (second, _) = (is_held(bounds, probabilities) for bounds in found)
    length = [np.mean(np.diff(bounds)) for bounds in found]
    print(f"{kind:14}{n_rows:>7,}{share:>10.0%}{first.mean():>10.1%}{length[0]:>8.3f}"
          f"{np.mean(negative):>10.0%}{second.mean():>13.1%}{length[1]:>8.3f}", flush=True)  # fmt: skip


def report_others(arguments: argparse.Namespace) -> None:
    """Print coverage and length with other variances between half-samples."""
    print(HEAD + f"{'uncorrected':>13}{'length':>8}")
    for cell in in_cells(arguments):
        test = test_rows(*cell[:2])
        found, negative, probabilities = ([], []), [], []
        for forest in fits(*cell, sampling="half-samples"):
            probabilities.append(forest.predict_proba(test)[:, 1])
            between, of_few = half_variances(forest, test)
            negative.append(np.mean(between < of_few))
            found[0].append(interval(forest, test, np.maximum(between - of_few, 0.0) + between / N_HALVES))
            found[1].append(interval(forest, test, between * (1.0 + 1.0 / N_HALVES)))
        print_two(cell, found, negative, probabilities)


def jackknife(forest: AUCForestClassifier, X: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the corrected infinitesimal jackknife variances of the mean over trees."""
    proba = of_trees(forest, X)
    counts = np.array([np.bincount(rows, minlength=n_rows) for rows in forest.estimators_samples_], dtype=np.float64)
    covariances = (counts - counts.mean(axis=0)).T @ (proba - proba.mean(axis=0)) / len(proba)
    return np.sum(covariances**2, axis=0) - counts.var(axis=0).sum() / len(proba) * proba.var(axis=0)


def report_jackknife(arguments: argparse.Namespace) -> None:
    """Print coverage and length by the infinitesimal jackknife."""
    print(HEAD + f"{'one for all':>13}{'length':>8}")
    for cell in in_cells(arguments):
        test, n_rows = test_rows(*cell[:2]), cell[2]
        found, negative, probabilities = ([], []), [], []
        for forest in fits(*cell):
            variance, proba = jackknife(forest, test, n_rows), of_trees(forest, test)
            mean, noise = proba.mean(axis=0), proba.var(axis=0) / len(proba)
            negative.append(np.mean(variance < 0.0))
            probabilities.append(forest.predict_proba(test)[:, 1])
            unit = np.sqrt(np.maximum(mean * (1.0 - mean), 1e-6))
            pooled = max(np.sum(variance / unit), 0.0) / unit.sum() * mean * (1.0 - mean)
            found[0].append(interval(forest, test, np.maximum(variance, 0.0) + noise))
            found[1].append(interval(forest, test, pooled + noise))
        print_two(cell, found, negative, probabilities)


def report_cost(arguments: argparse.Namespace) -> None:
    """Print what half-samples change in ROC AUC and log loss."""
    print(f"\n{'':14}{'rows':>7}{'positive':>10}{'ROC AUC':>20}{'log loss':>20}")
    for kind, share, n_rows, n_sets in in_cells(arguments):
        X, y = source(kind, share)(N_NEW, np.random.default_rng(3))
        scores = []
        for sampling in ("half-samples", "bootstrap"):
            found = [f.predict_proba(X)[:, 1] for f in fits(kind, share, n_rows, n_sets // 2, sampling=sampling)]
            scores.append([(roc_auc_score(y, p), log_loss(y, np.clip(p, 1e-6, 1.0 - 1e-6))) for p in found])
        change = np.subtract(*np.array(scores))
        mean, error = change.mean(axis=0), change.std(axis=0, ddof=1) / np.sqrt(len(change))
        cells = "".join(f"{m:>+11.4f} ± {e:.4f}" for m, e in zip(mean, error))
        print(f"{kind:14}{n_rows:>7,}{share:>10.0%}  {cells}", flush=True)


REPORTS = {"coverage": report_coverage, "others": report_others, "jackknife": report_jackknife, "cost": report_cost}


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=REPORTS, default=list(REPORTS))
    parser.add_argument("--sets", type=int, default=None)
    parser.add_argument("--trees", type=int, default=300, help="for coverage")
    parser.add_argument("--rows", type=int, nargs="+", default=list(SIZES))
    arguments = parser.parse_args()
    for name in arguments.names:
        REPORTS[name](arguments)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        main()

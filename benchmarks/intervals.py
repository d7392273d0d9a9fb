"""How often do 95 % intervals hold the truth, and tests reject a true null hypothesis? Simulations with known truth.

    python benchmarks/intervals.py [auc] [compare] [top] [folds] [criteria] [--replications N]

Without a name all five, which takes eight minutes of processor time with the default of 4,000 replications.

auc: coverage and mean length of `auc_confidence_interval`, of the logit interval and of Newcombe's fifth (Statistics in
Medicine 25, 2006), with 5 to 50 positives, 5 % or 50 % of the rows, at an AUC of 0.6 to 0.99. Scores are normal, of
equal variance ("normal"), rounded to five values ("five values"), or three times as spread among positives ("spread");
or equal and weighted by exponential variables ("weights").

compare: how often `compare_auc` and DeLong's z-test reject at 5 % when both AUCs are equal. The scores of a row are
correlated (0.5), normal, either both of equal variance ("same curve") or the second three times as spread among
positives ("other curve").

top: coverage of the intervals of `metrics_at_k`, and of Wilson's interval for recall. Scores are normal, those of 2 to
30 % positives higher by 1 or 2. Samples are 2,000 or 500 of equal weight, 2,000 with exponential weights, or
2,000 after nine in ten negatives were left out, with ten times the weight for the others.

folds: coverage of the intervals of `compare_criteria` and ``aucforest fit --validate``, by Student's t and as they are
now, for the expected score of a fold; 100 rows with 10 positives, a linear score in two features.

criteria: how often the tests of `compare_criteria` and an uncorrected paired t-test reject at 5 % when models are
equally good, by ROC AUC on 200 rows, of which 50 are positive: five folds, once and three times. "features": two
linear scores, each of ten features of its own that say equally much or nothing. "random": a linear score with two
random errors. "forests": AUC and Gini forests of ten trees on five features that say nothing; one set of rows for each
40 replications, else for each four.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from statistics import NormalDist

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr, ndtri, stdtrit
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.inspection import compare_criteria
from aucforest.inspection.comparison import resampled_mean
from aucforest.metrics import (
    auc_confidence_interval,
    average_precision_score,
    compare_auc,
    delong_covariance,
    metrics_at_k,
    roc_auc_score,
)
from aucforest.metrics.intervals import score_interval

Z = NormalDist().inv_cdf(0.975)
COUNTS = [(n, round(n / share) - n) for n, share in product((5, 10, 20, 50), (0.05, 0.5))]
AUCS = (0.6, 0.8, 0.9, 0.99)
VALUES = np.array([-0.5, 0.5, 1.5, 2.5])  # between five values


def five_values(mean: float) -> np.ndarray:
    """Return the chances of the five values of a rounded normal score."""
    return np.diff(ndtr(VALUES - mean), prepend=0.0, append=1.0)


def auc_of_five_values(mean: float) -> float:
    """Return the AUC of rounded scores when those of positives have this mean."""
    of_negatives = five_values(0.0)
    return float(five_values(mean) @ (np.cumsum(of_negatives) - 0.5 * of_negatives))


def scores(kind: str, auc: float, positive: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return scores of rows, of which this is the true AUC."""
    drawn = rng.normal(size=positive.size)
    if kind == "five values":
        mean = brentq(lambda mean: auc_of_five_values(mean) - auc, 0.0, 12.0)
        return np.digitize(drawn + mean * positive, VALUES).astype(np.float64)
    spread = 3.0 if kind == "spread" else 1.0
    return np.where(positive, spread * drawn + ndtri(auc) * np.sqrt(1.0 + spread**2), drawn)


def newcombe(auc: float, n_positive: int, n_negative: int) -> tuple[float, float]:
    """Return Newcombe's interval: a score interval by the variance of Hanley and McNeil's exponential model."""
    n = 0.5 * (n_positive + n_negative) - 1.0

    def rejects(t: float) -> float:
        variance = t * (1.0 - t) * (1.0 + n * ((1.0 - t) / (2.0 - t) + t / (1.0 + t))) / (n_positive * n_negative)
        return (auc - t) ** 2 - Z**2 * variance

    least, most = 1e-12, 1.0 - 1e-12  # 0 and 1 themselves have no variance
    low = brentq(rejects, least, min(auc, most)) if auc > 0.0 else 0.0
    return low, brentq(rejects, max(auc, least), most) if auc < 1.0 else 1.0


def logit_interval(positive: np.ndarray, y_score: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """Return the interval that is symmetric on the scale log(AUC / (1 - AUC)), with DeLong's variance."""
    auc, variance = (values.item() for values in delong_covariance(positive, y_score, weight))
    if variance == 0.0:
        return auc, auc
    reach = Z * np.sqrt(variance) / (auc * (1.0 - auc))
    return float(expit(logit(auc) - reach)), float(expit(logit(auc) + reach))


def intervals(kind: str, auc: float, counts: tuple[int, int], rng: np.random.Generator) -> Iterator[tuple[float, ...]]:
    """Yield the interval of every method, of one set of rows."""
    positive = np.repeat([True, False], counts)
    y_score = scores(kind, auc, positive, rng)
    weight = rng.exponential(size=positive.size) if kind == "weights" else None
    yield auc_confidence_interval(positive, y_score, sample_weight=weight)[1:]
    yield logit_interval(positive, y_score, weight)
    if weight is None:
        yield newcombe(roc_auc_score(positive, y_score), *counts)


def report_auc(n_replications: int) -> None:
    """Print coverage and length of intervals of the AUC."""
    for kind in ("normal", "five values", "spread", "weights"):
        methods = ["score", "logit", "Newcombe"][: 2 if kind == "weights" else 3]
        print(f"\n{kind}: coverage and mean length, {n_replications:,} replications")
        print(f"{'positives':>10}{'negatives':>10}{'AUC':>6}" + "".join(f"{method:>16}" for method in methods))
        for counts, auc in product(COUNTS, AUCS):
            rng = np.random.default_rng(0)
            found = np.array([list(intervals(kind, auc, counts, rng)) for _ in range(n_replications)])
            coverage = np.mean((found[:, :, 0] <= auc) & (auc <= found[:, :, 1]), axis=0)
            length = np.mean(found[:, :, 1] - found[:, :, 0], axis=0)
            cells = "".join(f"{share:>10.3f}{mean:>6.3f}" for share, mean in zip(coverage, length))
            print(f"{counts[0]:>10}{counts[1]:>10}{auc:>6}{cells}")


def readings(kind: str, auc: float, positive: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield two scores of the same rows, both of this true AUC."""
    common = rng.normal(size=positive.size)
    for spread in (1.0, 3.0 if kind == "other curve" else 1.0):
        drawn = np.sqrt(0.5) * (common + rng.normal(size=positive.size))
        yield np.where(positive, spread * drawn + ndtri(auc) * np.sqrt(1.0 + spread**2), drawn)


def report_compare(n_replications: int) -> None:
    """Print how often tests of equal AUCs reject."""
    for kind in ("same curve", "other curve"):
        print(f"\n{kind}: share rejected at 5 %, {n_replications:,} replications")
        print(f"{'positives':>10}{'negatives':>10}{'AUC':>6}{'compare_auc':>14}{'z-test':>10}")
        for counts, auc in product(COUNTS, AUCS):
            rng, positive = np.random.default_rng(0), np.repeat([True, False], counts)
            results = [compare_auc(positive, *readings(kind, auc, positive, rng)) for _ in range(n_replications)]
            by_t, by_z = (np.mean(reject) for reject in zip(*((r.pvalue < 0.05, abs(r.z) > Z) for r in results)))
            print(f"{counts[0]:>10}{counts[1]:>10}{auc:>6}{by_t:>14.3f}{by_z:>10.3f}")


def normal_samples(kind: str, prevalence: float, apart: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return labels, scores, and weights."""
    n = {"500": 500, "one in ten": 20_000}.get(kind, 2000)
    positive = rng.random(n) < prevalence
    if kind == "one in ten":
        positive = positive[positive | (rng.random(n) < 0.1)]
    weight = np.where(positive, 1.0, 10.0 if kind == "one in ten" else 1.0)
    if kind == "exponential":
        weight = rng.exponential(size=n)
    return positive, rng.normal(size=positive.size) + apart * positive, weight


def recall_of_normal(prevalence: float, apart: float, k: float) -> float:
    """Return the recall at k of normal scores."""

    def surplus(t: float) -> float:
        return prevalence * ndtr(apart - t) + (1.0 - prevalence) * ndtr(-t) - k

    return float(ndtr(apart - brentq(surplus, -10.0, 20.0)))


def report_top(n_replications: int) -> None:
    """Print coverage of intervals of precision and recall at k, and how long those of recall are beside Wilson's."""
    for kind in ("2000", "500", "exponential", "one in ten"):
        print(f"\nat k, {kind}: coverage, {n_replications:,} replications")
        print(f"{'positives':>10}{'apart':>7}{'k':>6}{'precision':>11}{'recall':>8}{'Wilson':>8}{'length':>8}")
        for prevalence, apart, k in product((0.02, 0.1, 0.3), (1.0, 2.0), (0.02, 0.1)):
            recall = recall_of_normal(prevalence, apart, k)
            rng, held, lengths = np.random.default_rng(0), np.zeros(3), np.zeros(2)
            for _ in range(n_replications):
                positive, y_score, weight = normal_samples(kind, prevalence, apart, rng)
                found = metrics_at_k(positive, y_score, k, sample_weight=weight)
                dispersion = np.square(weight[positive]).sum() / max(weight[positive].sum(), 1e-9) ** 2
                wilson = score_interval(found.recall[0], dispersion, Z)
                bounds = np.array([found.precision[1:], found.recall[1:], wilson])
                truths = np.array([prevalence * recall / k, recall, recall])
                held += (bounds[:, 0] <= truths) & (truths <= bounds[:, 1])
                lengths += np.nan_to_num(np.diff(bounds[1:]).ravel())  # without a positive there is none
            cells = "".join(f"{share:>{width}.3f}" for share, width in zip(held / n_replications, (11, 8, 8)))
            print(f"{prevalence:>10}{apart:>7}{k:>6}{cells}{lengths[0] / lengths[1]:>8.2f}")


def linear_folds(n_folds: int, rng: np.random.Generator) -> np.ndarray:
    """Return ROC AUC and average precision of the difference of class means, on every fold of 100 new rows."""
    y = np.arange(100) % 10 == 0
    X, fold = rng.normal(size=(100, 2)) + 1.2 * y[:, None], np.empty(100, dtype=np.int64)
    for k in (0, 1):
        fold[y == k] = rng.permutation(np.count_nonzero(y == k)) % n_folds
    found = []
    for k in range(n_folds):
        train, test = fold != k, fold == k
        score = X[test] @ (X[train & y].mean(axis=0) - X[train & ~y].mean(axis=0))
        found.append((roc_auc_score(y[test], score), average_precision_score(y[test], score)))
    return np.array(found)


def report_folds(n_replications: int) -> None:
    """Print coverage of intervals of means over folds."""
    print(f"\nfolds: coverage, and share of intervals that leave [0, 1], {n_replications:,} replications")
    print(f"{'folds':>6}  {'metric':<20}{'score':>8}{'t':>8}{'t outside':>12}")
    for n_folds in (3, 5, 10):
        rng = np.random.default_rng(0)
        drawn = np.array([linear_folds(n_folds, rng) for _ in range(n_replications)])
        sizes = np.rec.fromarrays([[100 / n_folds], [100 - 100 / n_folds]], names="n_test,n_train")
        for index, metric in enumerate(("roc_auc", "average_precision")):
            values = drawn[:, :, index]
            truth, mean = values.mean(), values.mean(axis=1)
            found = np.array([resampled_mean(each, sizes, 1.0, 0.95) for each in values])
            error = np.sqrt((1 / n_folds + sizes.n_test / sizes.n_train) * values.var(axis=1, ddof=1))
            half = stdtrit(n_folds - 1, 0.975) * error
            inside = np.mean((found[:, 1] <= truth) & (truth <= found[:, 2])), np.mean(np.abs(mean - truth) <= half)
            outside = np.mean((mean - half < 0.0) | (mean + half > 1.0))
            print(f"{n_folds:>6}  {metric:<20}{inside[0]:>8.3f}{inside[1]:>8.3f}{outside:>12.3f}")


def repeated_folds(n_repeats: int, y: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield which rows are tested in each of five stratified folds."""
    for _ in range(n_repeats):
        fold = np.empty(y.size, dtype=np.int64)
        for label in (False, True):
            fold[y == label] = rng.permutation(np.count_nonzero(y == label)) % 5
        yield from (fold == k for k in range(5))


def linear_differences(kind: str, distance: float, rng: np.random.Generator) -> np.ndarray:
    """Return differences in ROC AUC of two equally good linear scores, on each of three times five folds."""
    y, found = np.arange(200) % 4 == 0, []
    X = rng.normal(size=(200, 20)) + distance * y[:, None]
    for test in repeated_folds(3, y, rng):
        terms = X[test] * (X[~test & y].mean(axis=0) - X[~test & ~y].mean(axis=0))
        pair = terms[:, :10].sum(axis=1), terms[:, 10:].sum(axis=1)
        if kind == "random":
            pair = tuple(terms.sum(axis=1) + rng.normal(size=(2, len(terms))))
        found.append(np.subtract(*(roc_auc_score(y[test], score) for score in pair)))
    return np.array(found)


def forest_differences(rng: np.random.Generator) -> np.ndarray:
    """Return differences in ROC AUC of AUC and Gini forests on noise, on each of three times five folds."""
    comparison = compare_criteria(
        rng.normal(size=(200, 5)), np.arange(200) % 4 == 0, criteria=["auc", "gini"], metrics=["roc_auc"],
        n_repeats=3, n_estimators=10, random_state=int(rng.integers(2**31)), verbose=0,
    )  # fmt: skip
    return np.subtract(*comparison.folds["roc_auc"].T)


def report_criteria(n_replications: int) -> None:
    """Print how often the test over folds rejects, and the variance of a mean of J folds over that of a fold."""
    print(f"\ncriteria: rejections at 5 %, and var(mean) / s^2; {n_replications:,} replications")
    print(f"{'models':<20}{'folds':>6}{'corrected':>11}{'paired t':>10}{'variance':>10}{'corrected':>11}{'1 / J':>7}")
    cases: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
        f"{kind}, {name}": partial(linear_differences, kind, distance)
        for kind, (name, distance) in product(("features", "random"), (("signal", 0.2), ("noise", 0.0)))
    }
    for name, drawn in {**cases, "forests, noise": forest_differences}.items():
        rng, n_sets = np.random.default_rng(0), n_replications // (40 if drawn is forest_differences else 4)
        found = np.array([drawn(rng) for _ in range(max(2, n_sets))])
        for n_folds in (5, 15):
            some, by = found[:, :n_folds], (1 / n_folds + 0.25, 1 / n_folds)
            variance, squares = some.mean(axis=1) ** 2, some.var(axis=1, ddof=1)
            t = stdtrit(n_folds - 1, 0.975)
            rejects = [np.mean(variance > t**2 * each * squares) for each in by]
            print(f"{name:<20}{n_folds:>6}{rejects[0]:>11.3f}{rejects[1]:>10.3f}"
                  f"{variance.mean() / squares.mean():>10.3f}{by[0]:>11.3f}{by[1]:>7.3f}")  # fmt: skip


REPORTS: dict[str, Callable[[int], None]] = {
    "auc": report_auc,
    "compare": report_compare,
    "top": report_top,
    "folds": report_folds,
    "criteria": report_criteria,
}


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=REPORTS, default=list(REPORTS))
    parser.add_argument("--replications", type=int, default=4000)
    arguments = parser.parse_args()
    for name in arguments.names:
        REPORTS[name](arguments.replications)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # intervals that are points are what is counted
        main()

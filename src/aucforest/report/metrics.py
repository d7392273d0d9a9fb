"""Metrics with intervals, and those of a model without skill; curves, calibration bins and thresholds."""

from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import entr

from aucforest.estimators.threshold_rules import takes_costs
from aucforest.inspection.scoring import find_metric
from aucforest.metrics import average_precision_score
from aucforest.metrics.classification import brier_losses, g_mean, log_losses
from aucforest.metrics.confidence import auc_with_interval
from aucforest.metrics.intervals import normal_quantile, score_interval, tails
from aucforest.metrics.ranking import Cumulated, cumulate
from aucforest.metrics.roc import class_roc_auc, precision_area
from aucforest.metrics.thresholds import find_best
from aucforest.report.rows import FloatArray, ScoredRows

LEVEL = 0.95  # confidence level of all intervals and bands of the page
_MOST_GROUPS = 2000  # maximum number of distinct scores for bootstrapped curves; more are merged into groups
_MOST_THRESHOLDS = 500  # approximate number of thresholds of the explorer
_N_BINS = 10  # number of calibration bins
_ROUNDING = 1e-12  # tolerance of recalls, because a recall of 7 / 20 may differ from 0.35 by a rounding error
RECALLS = np.linspace(0.0, 1.0, 101)  # recalls at which the precision of bootstrapped curves is computed
_MEANINGS = {
    "roc_auc": "Probability of ranking two rows of two classes rightly, mean over pairs of classes (Hand and Till).",
    "average_precision": "Mean precision of the class {positive} over all recalls.",
    "brier": "Mean squared error of the probabilities; less is better.",
    "log_loss": "Mean negative logarithm of the probability of the true class; less is better.",
    "g_mean": "Geometric mean of the recalls of the classes, by the labels that the model predicts.",
}


class Metric(NamedTuple):
    """A metric with its interval (NaN if there is none) and its value for a model without skill."""

    name: str
    value: float
    low: float
    high: float
    no_skill: float
    meaning: str


def cumulate_class(rows: ScoredRows, k: int) -> Cumulated:
    """Return the cumulative weights of class k and of all other classes at each distinct score, in descending order."""
    return cumulate(rows.labels == k, np.ascontiguousarray(rows.scores[:, k]), rows.sample_weight)


def thin(cumulated: Cumulated, most: int, keep: NDArray[Any] | tuple[int, ...] = ()) -> NDArray[np.int64]:
    """Return indices of about `most` thresholds, evenly spaced by TPR + FPR, with the first, the last and `keep`."""
    n_values = cumulated.tps.size
    if n_values <= most:
        return np.arange(n_values)
    rate_sums = cumulated.tps / cumulated.tps[-1] + cumulated.fps / cumulated.fps[-1]
    indices = np.searchsorted(rate_sums, np.linspace(0.0, rate_sums[-1], most))
    # The last index is added, because several thresholds have the highest sum if some weights are negligible.
    return np.unique(np.concatenate([indices, [n_values - 1], np.asarray(keep, dtype=np.int64)]))


def row_losses(rows: ScoredRows) -> dict[str, FloatArray]:
    """Return the log loss (natural logarithm) and the Brier score (halved for two classes) of every row."""
    if not rows.is_probability:
        return {}
    return {"log_loss": log_losses(rows.labels, rows.scores), "brier": brier_losses(rows.labels, rows.scores)}


def top_proportion(rows: ScoredRows) -> float:
    """Return K of the metrics precision_at_K and recall_at_K: 0.01 for a rare class and many rows, else 0.1."""
    return 0.01 if rows.frequencies[1] < 0.05 and rows.labels.size >= 1000 else 0.1


def metric_function(rows: ScoredRows, most_groups: int) -> Callable[[FloatArray], dict[str, Any]]:
    """Return a function that computes metrics from row weights.

    For two classes, the function merges scores into about `most_groups` groups, returns the precision at each of
    `RECALLS` as "precision", and omits the ROC AUC, whose interval is computed without resampling.
    """
    losses, proportion = row_losses(rows), top_proportion(rows)
    group = group_by_score(rows, 1, most_groups) if len(rows.classes) == 2 else None

    def measure(weights: FloatArray) -> dict[str, Any]:
        means = {name: float(values @ weights / weights.sum()) for name, values in losses.items()}
        if group is None:
            return {"roc_auc": class_roc_auc(rows.labels, rows.scores, weights)} | means
        tps = np.cumsum(np.bincount(group, (rows.labels == 1) * weights))
        selected = np.cumsum(np.bincount(group, weights))
        precision = np.divide(tps, selected, out=np.ones_like(tps), where=selected > 0.0)
        n_top = proportion * float(selected[-1])
        # If the top ends within a group, a proportion of its rows is counted.
        hits = float(np.interp(n_top, np.append(0.0, selected), np.append(0.0, tps)))
        return {
            "average_precision": float(precision_area(tps, precision)),
            f"precision_at_{proportion}": hits / n_top,
            f"recall_at_{proportion}": hits / float(tps[-1]),
            "precision": precision[np.searchsorted(tps / tps[-1], RECALLS - _ROUNDING)],
            **means,
        }

    return measure


def resample(rows: ScoredRows, n_bootstrap: int, seed: int) -> dict[str, FloatArray]:
    """Return the metrics of `metric_function` and the G-mean in each of the stratified bootstrap samples."""
    measure = metric_function(rows, _MOST_GROUPS)
    samples = [
        measure(weights) | {"g_mean": g_mean(rows.labels, rows.predicted, weights)}
        for weights in bootstrap_weights(rows, n_bootstrap, seed)
    ]
    return {name: np.array([sample[name] for sample in samples]) for name in samples[0]}


def bootstrap_weights(rows: ScoredRows, n_bootstrap: int, seed: int) -> Iterator[FloatArray]:
    """Yield row weights of stratified bootstrap samples. They depend on the labels and the seed, not on a model."""
    generator = np.random.default_rng(seed)
    by_class = [np.flatnonzero(rows.labels == k) for k in rows.present]
    for _ in range(n_bootstrap):
        counts = np.zeros(rows.labels.size)
        for members in by_class:
            counts[members] = np.bincount(generator.integers(0, members.size, members.size), minlength=members.size)
        yield rows.weights * counts


def group_by_score(rows: ScoredRows, k: int, most: int) -> NDArray[np.int64]:
    """Assign rows to about `most` groups of equal or adjacent scores of class k; the first has the highest scores."""
    cumulated = cumulate_class(rows, k)
    lowest_scores = cumulated.thresholds[thin(cumulated, most)[1:]]
    return np.searchsorted(-lowest_scores, -rows.scores[:, k])


def compute_metrics(rows: ScoredRows, resamples: dict[str, FloatArray]) -> list[Metric]:
    """Return the metrics on all rows, each with its value for a model that always predicts the class frequencies."""
    frequencies, positive, metrics = rows.frequencies, rows.classes[-1], []
    values = {name: float(np.average(losses, weights=rows.weights)) for name, losses in row_losses(rows).items()}
    values["g_mean"] = g_mean(rows.labels, rows.predicted, rows.sample_weight)
    brier = float(1.0 - np.square(frequencies).sum()) / (2.0 if frequencies.size == 2 else 1.0)
    no_skill = {"roc_auc": 0.5, "brier": brier, "log_loss": float(entr(frequencies).sum()), "g_mean": 0.0}
    if len(rows.classes) == 2:
        is_positive, score = rows.labels == 1, rows.scores[:, 1]
        auc, low, high = auc_with_interval(is_positive, score, rows.sample_weight)
        meaning = f"Probability that a random row {rows.row_phrases[1]} has a higher score than a random other row."
        metrics.append(Metric("ROC AUC", auc, low, high, 0.5, meaning))
        values["average_precision"] = average_precision_score(is_positive, score, sample_weight=rows.sample_weight)
        no_skill["average_precision"] = float(frequencies[1])
    else:
        values["roc_auc"] = class_roc_auc(rows.labels, rows.scores, rows.sample_weight)
    for name in [name for name in _MEANINGS if name in values]:
        meaning = _MEANINGS[name].format(positive=positive)
        low, high = np.quantile(resamples[name], tails(LEVEL)).tolist()
        metrics.append(Metric(find_metric(name).title, values[name], low, high, no_skill[name], meaning))
    return metrics


class Bin(NamedTuple):
    """A calibration bin: the least and greatest probability, the mean, and the observed frequency with its interval."""

    least: float
    most: float
    n_rows: int
    mean: float
    observed: float
    low: float
    high: float


def reliability(rows: ScoredRows, k: int) -> list[Bin]:
    """Return calibration bins of class k with Wilson intervals, by ascending probability; see `thin` for bin ends."""
    indices = group_by_score(rows, k, _N_BINS + 1)
    bins, quantile = [], normal_quantile(LEVEL)
    for index in range(indices.max(), -1, -1):
        members = indices == index
        proba, weight = rows.scores[members, k], rows.weights[members]
        total = weight.sum()
        observed = float(weight[rows.labels[members] == k].sum() / total)
        low, high = score_interval(observed, float(np.square(weight).sum() / total**2), quantile)
        mean = float(np.average(proba, weights=weight))
        bins.append(Bin(float(proba.min()), float(proba.max()), proba.size, mean, observed, low, high))
    return bins


class Thresholds(NamedTuple):
    """Thresholds in ascending order; a row is predicted positive if its score is at least the threshold."""

    thresholds: FloatArray  # scores of rows, then infinity, at which no row is predicted positive
    tp: FloatArray  # weight of true positives
    fp: FloatArray  # weight of false positives
    model_index: int | None  # index of the model's threshold, None if its labels do not follow a threshold
    model_threshold: float | None  # value of the model's threshold, or None like `model_index`
    start: int  # index of the model's threshold or, without one, of the threshold with the best G-mean


def find_thresholds(rows: ScoredRows) -> Thresholds:
    """Return about 500 thresholds, with the model's threshold and all that are optimal for G-mean, F1 or some costs."""
    cumulated = cumulate_class(rows, 1)
    model_score, model_threshold = _model_threshold(rows)
    best = find_best(cumulated.tps, cumulated.fps, "gmean")
    position = best if model_score is None else int(np.searchsorted(-cumulated.thresholds, -model_score))
    # For any costs of errors, the minimum is at a vertex of the convex hull of the ROC curve. The vertices are the ends
    # of the blocks of a decreasing isotonic regression of the labels on the rank.
    positives, selected = np.diff(cumulated.tps), np.diff(cumulated.tps + cumulated.fps)
    hull = isotonic_regression(positives / selected, weights=selected, increasing=False).blocks
    indices = thin(cumulated, _MOST_THRESHOLDS, np.append(hull, [best, position]))[::-1]
    start = indices.tolist().index(position)
    tp, fp, thresholds = (np.asarray(values[indices], dtype=np.float64) for values in cumulated)
    return Thresholds(thresholds, tp, fp, None if model_score is None else start, model_threshold, start)


def _model_threshold(rows: ScoredRows) -> tuple[float | None, float | None]:
    """Return the lowest score of a row that the model predicts positive (infinity if none), and the threshold to show.

    The threshold to show is the model's threshold if the predicted labels agree with it, else that score. Both
    results are None if no threshold on the scores gives the predicted labels.
    """
    score, positive = rows.scores[:, 1], rows.predicted == 1
    highest_negative = float(score[~positive].max(initial=-np.inf))
    lowest_positive = float(score[positive].min(initial=np.inf))
    if highest_negative >= lowest_positive:
        return None, None
    threshold = getattr(rows.model, "threshold_", getattr(rows.model, "best_threshold_", None))
    nominal = float(threshold) if isinstance(threshold, Real) else (0.5 if rows.is_probability else 0.0)
    agrees = highest_negative <= nominal <= lowest_positive
    return lowest_positive, nominal if agrees else lowest_positive


def cost_matrix(model: Any) -> FloatArray | None:
    """Return the cost matrix of the `threshold` of a forest (the mean of several matrices), or None without costs."""
    rule = getattr(model, "threshold", None)
    if not (isinstance(rule, dict) and "cost" in rule) or takes_costs(rule):
        return None
    costs = np.asarray(rule["cost"], dtype=np.float64)
    return costs.mean(axis=0) if costs.ndim == 3 else costs

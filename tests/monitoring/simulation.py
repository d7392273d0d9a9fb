"""Simulations with a known P(y = 1 | score), for tests and benchmarks."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from aucforest.monitoring import CBPE, Chunks
from aucforest.monitoring._rows import RankedColumn
from aucforest.monitoring.calibration import needs_calibration

OF_ROWS = ("roc_auc", "accuracy", "f1", "precision", "recall")
AT_K = ("precision_at_0.05", "recall_at_0.05")
METRICS = OF_ROWS + AT_K
SHAPES = ("beta", "logit", "ties")


def scored(shape, n, random):
    if shape == "beta":
        score = random.beta(0.8, 1.6, n)
        return score, score**2
    if shape == "logit":
        logit = random.normal(-1.0, 1.3, n)
        return expit(logit), expit(1.5 * logit - 0.3)
    score = np.round(random.beta(1.0, 2.0, n), 1)
    return score, 0.1 + 0.7 * score


def estimates(score, y_true, y_pred, n_reference, metrics, **options):
    """Fit to the first `n_reference` rows, and return the estimates of the other rows, which are a single chunk."""
    known, new = slice(n_reference), slice(n_reference, None)
    cbpe = CBPE(metrics, **options).fit(y_score=score[known], y_true=y_true[known], y_pred=y_pred[known])
    return cbpe.estimate(score[new], y_pred=y_pred[new], y_true=y_true[new], chunks=Chunks.by_number(1)).estimates


def coverage(shape, n_reference, n_new, repeats, shifted, metrics=METRICS):
    """Return the proportion of intervals of each metric that contain the realized value."""
    held = []
    for seed in range(repeats):
        random = np.random.default_rng(seed)
        score, chance = scored(shape, n_reference + 3 * n_new, random)
        kept = np.arange(score.size) < n_reference
        # In a covariate shift, high scores are more frequent.
        kept |= (random.random(score.size) < 0.2 + 0.8 * chance) | (not shifted)
        score, chance = score[kept][: n_reference + n_new], chance[kept][: n_reference + n_new]
        y_pred, y_true = score > np.quantile(score[:n_reference], 0.7), random.random(score.size) < chance
        rows = estimates(score, y_true, y_pred, n_reference, metrics, calibration="isotonic")
        held.append([row.low <= row.realized <= row.high for row in rows])
    return dict(zip(metrics, np.mean(held, axis=0)))


def errors(positives, n_reference, n_new, shift, calibration, repeats, metrics=("average_precision", *METRICS)):
    """Return estimate minus realized value, and whether the interval contains it, as matrices (repeats, metrics).

    Logits are normal. Their mean is such that `positives` positive rows are expected in the reference, and is greater
    in new rows by `shift` standard deviations. With calibration="none" scores are probabilities, else distorted ones.
    """
    usual = norm.ppf((np.arange(10_000) + 0.5) / 10_000)
    middle = brentq(lambda mean: expit(mean + 1.5 * usual).mean() - positives / n_reference, -20, 20)
    found = []
    for seed in range(repeats):
        random = np.random.default_rng(seed)
        logit = middle + 1.5 * random.normal(np.repeat([0.0, shift], [n_reference, n_new]))
        labels = random.random(logit.size) < expit(logit)
        score = expit(logit) if calibration == "none" else expit(0.6 * logit + 0.5)
        y_pred = score > np.quantile(score[:n_reference], 0.95)
        rows = estimates(score, labels, y_pred, n_reference, metrics, calibration=calibration)
        found.append([(row.estimate - row.realized, row.low <= row.realized <= row.high) for row in rows])
    return np.moveaxis(np.array(found), -1, 0)


def share_that_fires(n, power, repeats):
    """Return how often scores are found to need calibration if P(y = 1 | score) is score ** power."""
    fired = 0
    for seed in range(repeats):
        random = np.random.default_rng(seed)
        scores = random.beta(0.8, 1.6, n)
        labels = (random.random(n) < scores**power).astype(float)
        fired += needs_calibration(RankedColumn(scores), labels, random_state=seed)
    return fired / repeats


def false_alerts(n_reference, n_chunk, n_chunks, repeats, with_features):
    """Return the rate of new chunks that are not valid in each simulation, (repeats,), and the level of the limits.

    There is no shift: all samples have the same distribution.
    """
    rates, known, new = [], slice(n_reference), slice(n_reference, None)
    for seed in range(repeats):
        random = np.random.default_rng(seed)
        X = random.normal(size=(n_reference + n_chunk * n_chunks, 3))
        score = expit(X[:, 0] + 0.3 * random.normal(size=len(X)))
        y_true = random.random(len(X)) < score
        before, after = ({"X": X[rows]} if with_features else {} for rows in (known, new))
        cbpe = CBPE(calibration="none", random_state=seed).fit(y_score=score[known], y_true=y_true[known], **before)
        shifts = cbpe.estimate(score[new], **after, chunks=Chunks.by_size(n_chunk)).shifts
        rates.append(np.mean([not shift.valid for shift in shifts.values()]))
    return np.array(rates), norm.sf(cbpe.threshold)

"""Scores and labels with known probabilities, recorded cases (see tests/data/README.md), and helpers for results."""

import json
from functools import cache
from pathlib import Path

import numpy as np

from aucforest.monitoring import CBPE, Chunks

DATA = Path(__file__).parents[1] / "data"
ONE = Chunks.by_number(1)
THREE = Chunks.by_number(3)  # of the reference: the fewest with limits, as each takes a domain classifier


def drawn(n=2000, seed=0, power=2.0, prevalence=1.6):
    """Return scores and labels with P(y = 1 | score) = score ** power."""
    random = np.random.default_rng(seed)
    score = random.beta(0.8, prevalence, n)
    return score, (random.random(n) < score**power).astype(int)


def classes_drawn(n=2000, seed=0):
    """Return probabilities of three classes, calibrated, labels and predictions."""
    random = np.random.default_rng(seed)
    p = random.dirichlet([1.0, 2.0, 3.0], size=n)
    y_true = np.array(["a", "b", "c"])[(random.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)]
    return p, y_true, np.array(["a", "b", "c"])[p.argmax(axis=1)]


def fit(metrics=("roc_auc",), *, seed=0, power=2.0, **options):
    """Return a CBPE fitted to drawn scores, and those of new samples; scores above 0.4 are predicted positive."""
    score, y_true = drawn(seed=seed, power=power)
    cbpe = CBPE(metrics, **options).fit(y_score=score, y_true=y_true, y_pred=score > 0.4)
    return cbpe, drawn(seed=seed + 1)


def only(result, metric="roc_auc"):
    """Return the single row of a metric."""
    (row,) = result.of(metric)
    return row


def figures(result):
    """Return estimate, standard error and bounds of every row."""
    return [row[5:9] for row in result.estimates]


@cache
def load(name):
    """Return a recorded file."""
    return json.loads((DATA / f"{name}.json").read_text())


def binary_cases():
    """Return the twelve recorded cases of two classes."""
    return load("cbpe_unit")["binary"]

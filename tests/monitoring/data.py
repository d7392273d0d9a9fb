"""Scores and labels with known probabilities, recorded cases (see tests/data/README.md), and helpers for results."""

import json
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aucforest.monitoring import CBPE, Chunks

DATA = Path(__file__).parents[1] / "data"
ONE = Chunks.by_number(1)
THREE = Chunks.by_number(3)  # the fewest reference chunks with limits, to save time: each needs a domain classifier


def drawn(n=2000, seed=0, power=2.0):
    """Return scores and labels with P(y = 1 | score) = score ** power."""
    random = np.random.default_rng(seed)
    score = random.beta(0.8, 1.6, n)
    return score, (random.random(n) < score**power).astype(int)


def classes_drawn(n=2000, seed=0):
    """Return calibrated probabilities of three classes, labels and predictions."""
    random = np.random.default_rng(seed)
    p, names = random.dirichlet([1.0, 2.0, 3.0], size=n), np.array(["a", "b", "c"])
    y_true = names[(random.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)]
    return p, y_true, names[p.argmax(axis=1)]


def one_hot_drawn(n):
    """Return calibrated probabilities of three classes, and one-hot encoded labels."""
    p, y_true, _ = classes_drawn(n)
    return p, (y_true[:, None] == ["a", "b", "c"]).astype(float)


def fit(metrics=("roc_auc",), *, n=2000, seed=0, power=2.0, **options):
    """Return a CBPE fitted to n samples, and other samples; scores above 0.4 are predicted positive."""
    score, y_true = drawn(n, seed, power)
    return CBPE(metrics, **options).fit(y_score=score, y_true=y_true, y_pred=score > 0.4), drawn(seed=seed + 1)


def only(result, metric="roc_auc"):
    (row,) = result.of(metric)
    return row


def figures(result):
    """Return the estimate, the standard error and the interval of each chunk and metric."""
    return [row[5:9] for row in result.estimates]


@cache
def load(name):
    return json.loads((DATA / f"{name}.json").read_text())


BINARY_CASES = load("cbpe_unit")["binary"]  # twelve cases of two classes
CHANCE = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0.0, 1.0))


@st.composite
def two_classes(draw, min_size=2, max_size=20):
    """Draw (scores, p): both classes are possible."""
    n = draw(st.integers(min_size, max_size))
    p = np.append([0.75, 0.5], draw(arrays(float, n - 2, elements=CHANCE)))
    return draw(arrays(float, n, elements=st.integers(-4, 4).map(float))), p


@st.composite
def many_classes(draw, max_size=12):
    """Draw (scores, p) of three classes; rows of p sum to 1 and all classes are possible."""
    n = draw(st.integers(2, max_size))
    scores = draw(arrays(float, (n, 3), elements=st.integers(-3, 3).map(float)))
    p = draw(arrays(float, (n, 3), elements=CHANCE))
    p[0] = [0.2, 0.3, 0.5]
    p[p.sum(axis=1) == 0.0] = 1.0
    return scores, p / p.sum(axis=1, keepdims=True)


def labelled():
    """Draw (scores, labels) with ties. Both labels occur: the first two probabilities, .75 and .5, become 1 and 0."""
    return two_classes(max_size=25).map(lambda rows: (rows[0], np.round(rows[1])))

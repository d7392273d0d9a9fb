"""Strategies of hypothesis: scores with ties, and probabilities that may be 0 or 1."""

import numpy as np
from hypothesis import strategies as st

chance = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0.0, 1.0))


@st.composite
def two_classes(draw, min_size=2, max_size=20):
    """Draw (scores, p): both classes are possible."""
    n = draw(st.integers(min_size, max_size))
    scores = draw(st.lists(st.integers(-4, 4).map(float), min_size=n, max_size=n))
    p = [0.75, 0.5, *draw(st.lists(chance, min_size=n - 2, max_size=n - 2))]
    return np.array(scores), np.array(p)


@st.composite
def many_classes(draw, max_size=12):
    """Draw (scores, p) of three classes; rows of p sum to 1 and all classes are possible."""
    n = draw(st.integers(2, max_size))
    scores = draw(st.lists(st.integers(-3, 3).map(float), min_size=3 * n, max_size=3 * n))
    p = np.array(draw(st.lists(chance, min_size=3 * n, max_size=3 * n))).reshape(n, 3)
    p[0] = [0.2, 0.3, 0.5]
    p[p.sum(axis=1) == 0.0] = 1.0
    return np.array(scores).reshape(n, 3), p / p.sum(axis=1, keepdims=True)


def labelled():
    """Draw (scores, labels) with ties and both labels: the first two probabilities, .75 and .5, become 1 and 0."""
    return two_classes(max_size=25).map(lambda rows: (rows[0], np.round(rows[1])))

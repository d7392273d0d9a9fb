"""Strategies of hypothesis and random rows: scores with ties, and weights that may be 0."""

import numpy as np
from hypothesis import strategies as st

SPECIAL = [-0.0, 0.0, 1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0), -1.0, np.nextafter(-1.0, -2.0)]
SPECIAL += [5e-324, -5e-324, 1e308, -1e308, 1e-40, 0.1, 0.3]

scores = st.one_of(
    st.sampled_from(SPECIAL), st.integers(-3, 3).map(float), st.floats(allow_nan=False, allow_infinity=False)
)
weights = st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0])


@st.composite
def two_classes(draw, min_size=2, max_size=30):
    """Draw (is_positive, scores, weights) with both classes; the first row of each class has weight."""
    rest = st.lists(st.tuples(st.booleans(), scores, weights), min_size=min_size - 2, max_size=max_size - 2)
    rows = [(True, draw(scores), 1.0), (False, draw(scores), 0.5), *draw(rest)]
    positive, drawn_scores, drawn_weights = map(np.array, zip(*rows))
    return positive, drawn_scores, drawn_weights


def random_rows(n, *, seed=0, levels=None, dtype=np.float64):
    """Return n rows of two classes one standard deviation apart; `levels` rounds scores so that they tie."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    positive[:2] = [True, False]
    scores = rng.normal(size=n) + positive
    if levels is not None:
        scores = np.round(scores * levels) / levels
    return positive, scores.astype(dtype), rng.exponential(size=n)

"""Gains, lift and precision at k against plain counting and scikit-learn."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from aucforest.report.alerts import alert_depths, top_rows
from aucforest.report.rows import score_rows

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2000, 1)), RNG.random(2000) < 0.1
X[Y] += 1.5


def test_alerts_are_counted_as_they_are_sorted():
    rows = score_rows(LogisticRegression().fit(X, Y), X, Y, None)
    order = np.argsort(-rows.scores[:, 1])
    for k in (1, 20, 333, 2000):
        found, hits = top_rows(rows, k, 0.95), int(Y[order[:k]].sum())
        assert found.precision[0] == pytest.approx(hits / k)
        assert found.recall[0] == pytest.approx(hits / Y.sum())
        assert found.lift[0] == pytest.approx(hits / k / Y.mean())
        assert found.threshold == rows.scores[order[k - 1], 1]
        # recall at the top varies with the number of positives and little else
        wilson = binomtest(hits, int(Y.sum())).proportion_ci(method="wilson")
        assert found.recall[2] - found.recall[1] < wilson.high - wilson.low


def test_equal_scores_count_by_their_mean():
    """Of rows with equal scores, precision at k is the mean over all orders of them."""
    stump = DecisionTreeClassifier(max_depth=1).fit(X, Y)
    rows = score_rows(stump, X, Y, None)
    top = rows.scores[:, 1] == rows.scores[:, 1].max()
    k = int(top.sum()) // 3
    assert top_rows(rows, k, 0.95).precision[0] == pytest.approx(Y[top].mean())


def test_weights_count_as_copies():
    times = RNG.integers(1, 3, Y.size)
    model = LogisticRegression().fit(X, Y)
    weighted = top_rows(score_rows(model, X, Y, times), 200, 0.95)
    copied = score_rows(model, np.repeat(X, times, axis=0), np.repeat(Y, times), None)
    expected = top_rows(copied, round(copied.labels.size / 10), 0.95)
    assert weighted.precision[0] == pytest.approx(expected.precision[0], abs=2e-3)
    assert np.ptp(weighted.precision) > np.ptp(expected.precision)


def test_depths_are_those_of_at_least_a_row():
    assert alert_depths(250) == {5: 1, 10: 2, 20: 5, 50: 12, 100: 25, 200: 50, 500: 125}

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.metrics import bootstrap_interval, precision_at_k, recall_at_k, roc_auc_score
from aucforest.metrics.intervals import score_interval, share_interval
from tests.metrics.strategies import random_rows

COUNTS = st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda counts: sum(counts) > 0)


@given(COUNTS, st.floats(0.0, 0.9), st.floats(0.001, 2.0))
@example((0, 3), 0.5, 0.1)
@example((3, 0), 0.5, 0.1)
def test_bounds_of_shares_by_definition(counts, correlation, dispersion):
    part, rest = (np.array([n / 9, *score_interval(n / 9, dispersion, 2.0)]) for n in counts)
    low, high = share_interval(part, rest, correlation)
    assert 0.0 <= low <= counts[0] / sum(counts) + 1e-12
    assert counts[0] / sum(counts) - 1e-12 <= high <= 1.0
    for s, nearer, farther in ((low, 1, 2), (high, 2, 1)):
        of_part, of_rest = (1.0 - s) * abs(part[0] - part[nearer]), s * abs(rest[farther] - rest[0])
        distance = math.sqrt(of_part**2 + of_rest**2 - 2.0 * correlation * of_part * of_rest)
        assert abs((1.0 - s) * part[0] - s * rest[0]) == pytest.approx(distance, abs=1e-7) or s in (0.0, 1.0)


def test_bootstrap_intervals_are_reproducible_and_weighted():
    positive, scores, weights = random_rows(100)
    options = {"sample_weight": weights, "n_resamples": 50, "random_state": 3}
    first = bootstrap_interval(recall_at_k, positive, scores, 0.1, **options)
    assert first == bootstrap_interval(recall_at_k, np.where(positive, "yes", "no"), scores, 0.1, **options)
    assert first[1] <= first[0] == recall_at_k(positive, scores, 0.1, sample_weight=weights) <= first[2]
    for name, value in {"level": 1.0, "sample_weight": 0 * weights, "n_resamples": 0}.items():
        with pytest.raises(ValueError, match=f"^{name} (must be in|is 0 for every|== 0, must be >= 1)"):
            bootstrap_interval(roc_auc_score, positive, scores, **{name: value})


def test_bootstrap_intervals_of_metrics_undefined_in_some_resamples():
    rng = np.random.default_rng(0)
    score, one = rng.normal(size=200), np.arange(200) == 7
    value, low, high = bootstrap_interval(recall_at_k, one, score, 0.5, random_state=0)
    assert (low, high) == (value, value)
    assert bootstrap_interval(precision_at_k, [0, 0, 0, 0], [1, 2, 3, 4], 2, random_state=0) == (0.0, 0.0, 0.0)
    y, few, weight = score + rng.normal(size=200) > 0, np.where(np.arange(200) < 20, 0.3, 0.0), rng.random(200) + 0.5
    for k, weights in ((0.5, few), (int(weight.sum()) - 1, weight)):
        value, low, high = bootstrap_interval(precision_at_k, y, score, k, sample_weight=weights, random_state=0)
        assert low < value < high


def test_bootstrap_intervals_without_positives_are_undefined():
    with pytest.warns(UndefinedMetricWarning):
        value, low, high = bootstrap_interval(recall_at_k, [0] * 9, np.arange(9), 3, random_state=0, n_resamples=5)
    assert np.isnan([value, low, high]).all()

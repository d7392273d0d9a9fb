"""Random splits without a histogram are those with a histogram, which sparse codes always need."""

import numpy as np
import pytest

from tests.tree.growing import NAMES, canonical, grow


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("range_of_weights", [0, 4, 40])
def test_random_splits_are_those_of_a_histogram(criterion, n_classes, range_of_weights):
    """Columns are repeated, so that features tie; some values are missing or infinite."""
    for key in range(25):
        rng = np.random.default_rng(key)
        X = rng.integers(0, 9, (60, 4)).astype(float)
        X[rng.random(X.shape) < 0.03] = rng.choice([np.nan, np.inf, -np.inf])
        X[0] = 0.0
        X, labels = np.tile(X, 2), rng.integers(0, n_classes, 60)
        weights = np.exp2(rng.uniform(0, range_of_weights, 60)).astype(np.int64) if range_of_weights > 0 else None
        options = {"criterion": criterion, "random": True, "max_features": 8, "key": key, "n_classes": n_classes}
        options |= {"weights": weights, "min_samples_leaf": 1 + key % 2, "max_bins": None}
        dense, sparse = (grow(X, labels, sparse=sparse, **options) for sparse in (False, True))
        assert canonical(dense) == canonical(sparse)

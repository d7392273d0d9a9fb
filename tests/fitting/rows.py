"""Training sets as growing takes them."""

import numpy as np

from aucforest.estimators.forest import AUCForestClassifier
from aucforest.fitting.bootstrap import RowDraws
from aucforest.fitting.growing import make_training_set
from aucforest.fitting.growth_params import GrowthParams
from aucforest.tree.features import CATEGORICAL, NUMERIC


def make_tied_rows(seed, n_classes, n_rows=200):
    """Draw small data full of ties: few whole values, some missing, one constant; classes lean on the features."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, rng.integers(2, 8, 4), (n_rows, 4)).astype(float)
    lean = 0.5 * (X[:, 0] - X[:, 3]) + rng.normal(0, 1.5, n_rows)
    X[rng.random(X.shape) < 0.15] = np.nan
    X[:, rng.integers(4)] = rng.choice([np.nan, 3.0])
    return X, np.clip(np.floor(lean + n_classes / 2), 0, n_classes - 1).astype(np.uint16)


def prepare(X, labels, weights=None, by_set=None, draws="all", max_bins=255, **params):
    """Return a training set and what a forest with these parameters makes of it."""
    n_classes = int(labels.max()) + 1
    kinds = None if by_set is None else np.where(by_set, CATEGORICAL, NUMERIC).astype(np.int8)
    training = make_training_set(X, labels, weights, None, n_classes, max_bins, 1, kinds)
    if draws == "all":
        draws = RowDraws.of_all(len(labels), len(labels))
    estimator = AUCForestClassifier(**params)
    estimator.classes_, estimator.categories_ = np.arange(n_classes), {}
    estimator.n_features_in_ = X.shape[1]
    return training, GrowthParams.resolve(estimator, len(labels), X.shape[1], draws)

"""Training sets as growing takes them."""

import numpy as np

from aucforest.estimators.forest import AUCForestClassifier
from aucforest.fitting.bootstrap import RowDraws
from aucforest.fitting.growing import TrainingSet
from aucforest.fitting.spec import GrowthParams, resolve_signs
from aucforest.tree.binning import bin_matrix
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
    training = bin_rows(X, labels, weights, n_classes, max_bins, by_set)
    if draws == "all":
        draws = RowDraws.of_all(len(labels), len(labels))
    given = AUCForestClassifier(**params).get_params()
    signs = resolve_signs(given["monotonic_cst"], None, X.shape[1], n_classes)
    return training, GrowthParams.resolve(given, len(labels), X.shape[1], draws, signs)


def bin_rows(X, labels, weights, n_classes, max_bins=255, by_set=None):
    """Return rows as growing takes them."""
    kinds = np.where(np.zeros(X.shape[1], bool) if by_set is None else by_set, CATEGORICAL, NUMERIC).astype(np.int8)
    binned = bin_matrix(X, max_bins=max_bins, weights=weights, by_set=kinds != NUMERIC)
    return TrainingSet(binned, labels, weights, n_classes, kinds)

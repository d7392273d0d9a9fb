"""Random trees, rows with values at their thresholds, and predictions by ONNX files."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime

from aucforest.tree.tree import SET_WORDS
from tests.persistence.trees import make_tree
from tests.reference.tree import leaf_of


def random_tree(rng, n_splits=12, *, n_codes=None, n_features=4, n_classes=2, shrinkage=0.0):
    """Return a valid tree; `n_codes` maps the features that are split by sets to their numbers of codes."""
    tree = make_tree(rng, n_splits, n_features, n_classes, by_set=list(n_codes or ()), most=5)
    is_numeric = ~tree.is_leaf
    is_numeric[tree.set_nodes] = False
    threshold = np.where(is_numeric, rng.choice([-1.5, 0.1, 1.0, 1e300, -1e300, np.inf], size=tree.n_nodes), 0.0)
    chance = rng.choice([0.0, 0.2, 0.5, 1.0], size=(len(tree.set_nodes), 1))
    bits = rng.random((len(tree.set_nodes), 64 * SET_WORDS)) < chance
    bits[:, -1] = tree.missing_left[tree.set_nodes]
    sets = (bits.reshape(-1, SET_WORDS, 64) * (np.uint64(1) << np.arange(64, dtype=np.uint64))).sum(axis=2)
    tree = replace(tree, threshold=threshold, sets=sets.astype(np.uint64), shrinkage=shrinkage)
    tree.validate()
    return tree


def random_rows(rng, tree, n_codes, n_rows=60, dtype=np.float32):
    """Return rows: codes, values at, above and below thresholds, and NaN."""
    with np.errstate(over="ignore"):
        around = tree.threshold.astype(dtype)
    below, above = np.nextafter(around, dtype(-np.inf)), np.nextafter(around, dtype(np.inf))
    values = np.concatenate((around, below, above))
    X = rng.choice(values[np.isfinite(values)], size=(n_rows, tree.n_features))
    for feature, n in n_codes.items():
        X[:, feature] = rng.integers(n, size=n_rows)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0] = np.nan
    return X


def random_data(seed, n_codes, n_trees=4, n_splits=8, dtype=np.float32, **params):
    """Return random trees with 5 features and rows for them."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, n_splits, n_codes=n_codes, n_features=5, **params) for _ in range(n_trees)]
    return trees, random_rows(rng, trees[0], n_codes, dtype=dtype)


def mean_of(trees, X):
    rows = X.astype(np.float64)
    return np.mean([[tree.prediction[leaf_of(tree, row)] for row in rows] for tree in trees], axis=0)


def run_onnx(path, X):
    """Return the labels and the probabilities that a valid ONNX file predicts."""
    onnx.checker.check_model(path, full_check=True)
    X = np.ascontiguousarray(X)
    return onnxruntime.InferenceSession(path).run(["label", "probabilities"], {"X": X})

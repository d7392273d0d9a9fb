"""Small tables for the tests of estimators."""

import numba
import numpy as np

from aucforest import AUCForestClassifier, AUCTreeClassifier


@numba.njit
def own_auc(left, node):
    """The AUC of a cut, less 1/2."""
    return 0.5 * abs(left[0] / node[0] - left[1] / node[1]) if node[0] > 0 and node[1] > 0 else 0.0


def make_table(n_rows=240, n_features=5, n_classes=2, *, seed=0, missing=0.0):
    """Return X, its values exact in float32, and y: the classes are of falling size, the last features are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32).astype(np.float64)
    score = X[:, 0] + 0.7 * X[:, 1] + rng.normal(scale=0.7, size=n_rows)
    y = np.digitize(score, np.quantile(score, 1 - 0.5 ** np.arange(1, n_classes)))
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def small_forest(n_estimators=6, **params):
    return AUCForestClassifier(n_estimators, **{"random_state": 0, **params})


def small_tree(**params):
    return AUCTreeClassifier(**{"random_state": 0, "max_features": 2, **params})


def digest(model):
    """Return the bytes of every array of every tree."""
    arrays = ("feature", "threshold", "missing_left", "left_child", "gain", "n_samples", "weight", "value", "sets")
    return [[getattr(tree, name).tobytes() for name in arrays] for tree in model.trees_]


def walk(tree, row):
    """Return the nodes that a row of values passes, by one comparison after the other."""
    nodes, sets = [0], dict(zip(tree.set_nodes.tolist(), tree.sets.tolist()))
    while tree.left_child[nodes[-1]] >= 0:
        node = nodes[-1]
        value = row[tree.feature[node]]
        goes_left = bool(tree.missing_left[node]) if np.isnan(value) else value <= tree.threshold[node]
        if node in sets and not np.isnan(value):
            goes_left = bool(sets[node][int(value) // 64] >> int(value) % 64 & 1)
        nodes.append(int(tree.left_child[node]) + (0 if goes_left else 1))
    return nodes


def everything(model, table):
    """Return what a fitted forest knows and says."""
    return digest(model), model.predict_proba(table), model.apply(table), model.oob_decision_function_


def assert_same(one, other):
    assert one[0] == other[0]
    for mine, yours in zip(one[1:], other[1:], strict=True):
        np.testing.assert_array_equal(mine, yours)

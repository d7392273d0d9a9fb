"""Small tables for the tests of estimators."""

import numba
import numpy as np
import pytest
from sklearn.base import BaseEstimator

from aucforest import AUCForestClassifier, AUCTreeClassifier
from aucforest.metrics import optimal_threshold
from aucforest.tree.tree import Tree


@numba.njit
def own_auc(left, node):
    """A custom criterion: the mean over pairs of classes of the AUC of a split, minus 1/2."""
    score, n_pairs = 0.0, 0
    for i in range(len(node)):
        for j in range(i):
            if node[i] > 0 and node[j] > 0:
                score += 0.5 * abs(left[i] / node[i] - left[j] / node[j])
                n_pairs += 1
    return score / n_pairs if n_pairs > 0 else 0.0


def make_table(n_rows=240, n_features=5, n_classes=2, *, seed=0, missing=0.0):
    """Return X, with float32 values, and y. Each class is smaller than the one before; only two features matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32).astype(np.float64)
    score = X[:, 0] + 0.7 * X[:, 1] + rng.normal(scale=0.7, size=n_rows)
    y = np.digitize(score, np.quantile(score, 1 - 0.5 ** np.arange(1, n_classes)))
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def make_noisy(n_rows):
    """Return X and noisy labels, which depend on two of ten features, so that much shrinkage is best."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 10))
    return X, rng.random(n_rows) < 1 / (1 + np.exp(-0.6 * (X[:, 0] + X[:, 1])))


def make_rare(n_rows, *, seed=0):
    """Return X and the labels "rare", about a sixth, and "common"."""
    X, y = make_table(n_rows, seed=seed)
    return X, np.where((y == 1) & (np.arange(n_rows) % 3 == 0), "rare", "common")


X3, Y3 = make_table(n_rows=300, n_classes=3, seed=1)
X4, Y4 = make_table(n_rows=300, n_classes=4, seed=1)
WEIGHT = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], 300)
GROUPS = np.random.default_rng(1).integers(60, size=300)
UNSCORED = "ignore:.* no out-of-bag probability"


def small_forest(n_estimators=6, **params):
    return AUCForestClassifier(n_estimators, **{"random_state": 0, **params})


def small_tree(**params):
    return AUCTreeClassifier(**{"random_state": 0, "max_features": 2, **params})


both = pytest.mark.parametrize("make", [small_tree, small_forest])


def refuse(model, message, *data, error=ValueError, **more):
    """Assert that a fit fails with a message of one line, and sets no fitted attribute."""
    with pytest.raises(error, match=message) as caught:
        model.fit(*data, **more)
    assert "\n" not in str(caught.value).strip()
    assert not [name for name in vars(model) if name.endswith("_")]


def best_threshold(rule, is_positive, scores, weights=None, *, n_rows=None):
    """Return the best threshold by a rule of a model. A number of alerts is for `n_rows` rows, by default all."""
    given = {} if isinstance(rule, str) else dict(rule)
    cost = given.pop("cost", None)
    if given.get("alerts", 0) > 1:
        given["alerts"] /= len(scores) if n_rows is None else n_rows
    criterion = rule if isinstance(rule, str) else given or "cost"
    return optimal_threshold(is_positive, scores, criterion=criterion, cost=cost, sample_weight=weights)


def digest(model):
    """Return the bytes of every array of every tree."""
    arrays = ("feature", "threshold", "missing_left", "left_child", "gain", "n_samples", "weight", "value", "sets")
    return [[getattr(tree, name).tobytes() for name in arrays] for tree in model.trees_]


def everything(model, table):
    """Return the trees and the predictions of a fitted forest."""
    return digest(model), model.predict_proba(table), model.apply(table), model.oob_decision_function_


def assert_same(one, other):
    """Assert that two values have equal types and bits; models are compared by their attributes."""
    assert type(one) is type(other) or {type(one), type(other)} <= {float, np.float64}
    if isinstance(one, BaseEstimator):
        one, other = known(one), known(other)
    elif isinstance(one, Tree):
        assert type(one.frequencies) is type(other.frequencies)
        one, other = ({**vars(tree), "frequencies": tree.value} for tree in (one, other))
        one, other = ({name: some[name] for name in sorted(some) if name != "depth"} for some in (one, other))
    if isinstance(one, dict):
        assert list(one) == list(other)
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list | tuple):
        assert len(one) == len(other)
        for mine, yours in zip(one, other):
            assert_same(mine, yours)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes()
    else:
        assert np.array(one).tobytes() == np.array(other).tobytes() if isinstance(one, float) else one == other


def known(model, *, is_fitted=False):
    """Return the attributes of a model, or only the fitted ones, without its cache."""
    names = [name for name in sorted(vars(model)) if name != "_cached"]
    return {name: vars(model)[name] for name in names if not is_fitted or name[0] == "_" or name[-1] == "_"}


def assert_same_fit(one, other):
    """Assert that two models have equal fitted attributes; parameters may differ."""
    assert_same(known(one, is_fitted=True), known(other, is_fitted=True))

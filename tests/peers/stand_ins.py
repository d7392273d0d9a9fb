"""Stand-ins: classes and functions of `aucforest` with the names, defaults and parameters of those of peers."""

import inspect
from functools import wraps

import numpy as np
from sklearn.metrics import make_scorer

from aucforest import AUCForestClassifier, AUCTreeClassifier, metrics
from aucforest.estimators._paths import path_indicator


class Missing:
    """A class without a counterpart in aucforest: its instances have no attributes."""

    def __init__(self, *args, **kwargs): ...


def _stand_in(**defaults):
    """Return a decorator of subclasses of our estimators, which sets other defaults.

    Parameters that our estimators lack are stored and have no effect. All others have our defaults, so that the peers'
    tests of trees are run with our criterion, bins and shrinkage.
    """

    def decorate(cls):
        init = cls.__init__
        ours = inspect.signature(init).parameters
        changed = [p.replace(default=defaults.get(p.name, p.default)) for p in ours.values()]
        more = [name for name in defaults if name not in ours]
        added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name]) for name in more]
        signature = inspect.Signature(changed + added)

        @wraps(init)
        def __init__(self, *args, **kwargs):
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            for name in more:
                setattr(self, name, bound.arguments.pop(name))
            init(*bound.args, **bound.kwargs)

        __init__.__signature__ = signature  # where scikit-learn's `get_params` looks
        cls.__init__ = __init__
        return cls

    return decorate


class _Nodes:
    """A tree with the arrays of a tree of scikit-learn, and with our importances."""

    def __init__(self, classifier):
        self._ours = classifier.trees_[0]
        self._theirs = classifier.to_sklearn().tree_

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._theirs, name)

    def compute_feature_importances(self, normalize=True):
        tree, is_split = self._ours, ~self._ours.is_leaf
        weighted = (tree.gain * tree.weight / tree.weight[0])[is_split]
        gains = np.bincount(tree.feature[is_split], weighted, minlength=tree.n_features)
        return gains / gains.sum() if normalize else gains


class _Tree(AUCTreeClassifier):
    tree_ = property(_Nodes)

    def get_depth(self):
        return self.trees_[0].max_depth

    def get_n_leaves(self):
        return self.trees_[0].n_leaves

    def decision_path(self, X):
        return path_indicator(self.trees_[0], self.apply(X))


@_stand_in()
class DecisionTreeClassifier(_Tree): ...


@_stand_in(splitter="random", max_features="sqrt")
class ExtraTreeClassifier(_Tree): ...


class _Forest(AUCForestClassifier):
    def _translated(self):
        """Return the values of our parameters that correspond to the given values of the peer's parameters."""
        score = make_scorer(self.oob_score) if callable(self.oob_score) else self.oob_score
        return {"oob_score": "accuracy" if score is True else score}

    def fit(self, X, y, sample_weight=None):
        given = self.get_params(deep=False)
        self.set_params(**self._translated())
        try:
            return super().fit(X, y, sample_weight)
        finally:
            self.set_params(**given)

    @property
    def estimators_(self):
        members = super().estimators_
        for member in members:
            member.__class__ = DecisionTreeClassifier
        return members

    def __iter__(self):
        return iter(self.estimators_)

    @property
    def estimator(self):
        return DecisionTreeClassifier(splitter=self.splitter)


@_stand_in(n_estimators=100)
class RandomForestClassifier(_Forest): ...


@_stand_in(n_estimators=100, splitter="random", bootstrap=False)
class ExtraTreesClassifier(_Forest): ...


@_stand_in(n_estimators=100, sampling="balanced", calibration=None, sampling_strategy="auto", replacement=False)
class BalancedRandomForestClassifier(_Forest):
    def _translated(self):
        """Return the parameters with a bootstrap. In imbalanced-learn, it is drawn from the balanced sample."""
        return {**super()._translated(), "bootstrap": True}


def _by_name(*classes, missing=()):
    return {cls.__name__: cls for cls in classes} | {name: type(name, (Missing,), {}) for name in missing}


SKLEARN = {
    "sklearn.tree": _by_name(
        DecisionTreeClassifier, ExtraTreeClassifier, missing=("DecisionTreeRegressor", "ExtraTreeRegressor")
    ),
    "sklearn.ensemble": _by_name(
        RandomForestClassifier, ExtraTreesClassifier,
        missing=("RandomForestRegressor", "ExtraTreesRegressor", "RandomTreesEmbedding"),
    ),
    "sklearn.metrics": {
        name: getattr(metrics, name) for name in ("roc_auc_score", "roc_curve", "average_precision_score")
    },
}  # fmt: skip
IMBLEARN = {"imblearn.ensemble": _by_name(BalancedRandomForestClassifier)}

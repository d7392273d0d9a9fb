"""The parameters of an estimator that its trees need, resolved against the data."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from aucforest.fitting.bootstrap import RowDraws
from aucforest.fitting.extras import resolve_criterion, resolve_monotonic_cst

_NO_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class GrowthParams:
    """The parameters of an estimator that its trees need, resolved against the data."""

    criterion: int
    own_criterion: Any
    max_features: int
    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_fraction_leaf: float
    min_gain: float
    max_leaf_nodes: int | None
    random_splits: bool
    signs: tuple[int, ...]
    draws: RowDraws | None
    balance_draws: bool

    @classmethod
    def resolve(cls, estimator: Any, n_rows: int, n_features: int, draws: RowDraws | None) -> "GrowthParams":
        """Turn fractions and names into numbers."""
        criterion, own_criterion = resolve_criterion(estimator.criterion)
        return cls(
            criterion=criterion,
            own_criterion=own_criterion,
            max_features=resolve_max_features(estimator.max_features, n_features),
            max_depth=_NO_LIMIT if estimator.max_depth is None else min(int(estimator.max_depth), _NO_LIMIT),
            min_samples_split=max(2, _resolve_rows(estimator.min_samples_split, n_rows)),
            min_samples_leaf=_resolve_rows(estimator.min_samples_leaf, n_rows),
            min_weight_fraction_leaf=estimator.min_weight_fraction_leaf,
            min_gain=float(estimator.min_gain),
            max_leaf_nodes=None if estimator.max_leaf_nodes is None else min(int(estimator.max_leaf_nodes), _NO_LIMIT),
            random_splits=estimator.splitter == "random",
            signs=resolve_monotonic_cst(estimator),
            draws=draws,
            balance_draws=estimator.class_weight == "balanced_subsample",
        )

    def n_draws(self, n_rows: int) -> int:
        """Return how many of so many rows a tree draws, each as often as it is drawn."""
        return n_rows if self.draws is None else self.draws.n_draws


def _resolve_rows(given: Any, n_rows: int) -> int:
    """Return a number of rows that is given as such or as a fraction; any number too large is one too large."""
    return min(int(given), n_rows + 1) if isinstance(given, Integral) else int(np.ceil(given * n_rows))


def resolve_max_features(max_features: Any, n_features: int) -> int:
    """Return how many features a node looks at."""
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, int(np.sqrt(n_features)))
    if max_features == "log2":
        return max(1, int(np.log2(n_features)))
    if isinstance(max_features, Integral):
        return min(int(max_features), n_features)
    return max(1, int(max_features * n_features))

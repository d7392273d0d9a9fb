"""Cross-validation of several forests and stacks on the same folds."""

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d

from aucforest._progress import progress_bar
from aucforest._sklearn import safe_indexing
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.stacking import AUCStackingClassifier
from aucforest.fitting.target import check_groups, code_classes, number_groups
from aucforest.inspection.models import check_count
from aucforest.inspection.scoring import FittedFold, find_metric
from aucforest.metrics.validation import unmask

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]  # indices of the training and of the test rows


class LabelledRows(NamedTuple):
    """Samples with labels, weights and groups, which are the arguments of `fit`."""

    X: Any
    y: NDArray[Any]
    sample_weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None = None  # for bootstrap samples of whole groups

    def take(self, rows: NDArray[np.int64]) -> "LabelledRows":
        """Return the samples in the given rows."""
        weights, groups = (None if values is None else values[rows] for values in (self.sample_weight, self.groups))
        return LabelledRows(safe_indexing(self.X, rows), self.y[rows], weights, groups)


def run_folds(
    forests: Mapping[str, AUCForestClassifier | AUCStackingClassifier],
    samples: LabelledRows,
    folds: Sequence[Fold],
    metrics: Sequence[str],
    random_state: Any,
    verbose: int,
) -> NDArray[np.void]:
    """Return a record for each fold and forest: "fold", "criterion", "n_train", "n_test" and a field for each metric.

    The shape is (n_folds, n_forests), and "criterion" is the key of the forest. In each fold, all forests get the same
    rows and the same seed. The order of the forests changes from fold to fold, so that fit times are comparable.
    """

    def fit(forest: Any, rows: NDArray[np.int64]) -> float:
        """Fit a forest, and return the time in seconds."""
        X, y, weights, groups = samples.take(rows)
        start = perf_counter()
        forest.fit(X, y, sample_weight=weights, groups=groups)
        return perf_counter() - start

    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=len(folds))
    names = list(forests)
    for forest in forests.values():
        forest._validate_params()  # raises errors before the first fit
    for forest in progress_bar(forests.values(), desc="compile", leave=False, verbose=verbose):
        # A fit with one tree compiles the code. The tree has too few out-of-bag rows for a score or a threshold, and
        # warnings of this fit do not matter.
        forest = clone(forest).set_params(oob_score=False, threshold=None)
        _forest_in(forest).set_params(n_estimators=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fit(forest, folds[0][0])

    fields = [("fold", "i8"), ("criterion", f"U{max(map(len, names))}"), ("n_train", "i8"), ("n_test", "i8")]
    table = np.zeros((len(folds), len(names)), [*fields, *((metric, "f8") for metric in metrics)])
    fits = [(fold, k) for fold in range(len(folds)) for k in np.roll(range(len(names)), fold)]
    for fold, k in progress_bar(fits, desc="fits", verbose=verbose):
        train, test = folds[fold]
        forest = clone(forests[names[k]])
        _forest_in(forest).set_params(random_state=seeds[fold])
        X, y, weights, _ = samples.take(test)
        fitted = FittedFold(forest, fit(forest, train), X, y, weights)
        values = (find_metric(metric).measure(fitted) for metric in metrics)
        table[fold, k] = (fold, names[k], len(train), len(test), *values)
    return table


def _forest_in(model: Any) -> Any:
    return model.forest if isinstance(model, AUCStackingClassifier) else model


def make_folds(
    X: Any, y: ArrayLike, *, cv: Any, n_repeats: int = 1, groups: Any = None, random_state: Any = None
) -> list[Fold]:
    """Return training and test rows of every fold of `compare_criteria`; raise ValueError if a fold lacks a class."""
    check_count("n_repeats", n_repeats, 1)
    y = np.asarray(column_or_1d(unmask(y)))
    code_classes(y)  # raises ValueError for labels that `fit` would not accept
    check_consistent_length(X, y)
    groups = None if groups is None else check_groups(groups, len(y))
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {classes.tolist()[0]!r}: at least 2 are needed")
    if isinstance(cv, Integral):
        if counts.min() < cv:
            fewest = "1 sample" if counts.min() == 1 else f"{counts.min()} samples"
            raise ValueError(f"class {classes[counts.argmin()]} has {fewest}, too few for {cv} folds")
        if groups is not None and (n_groups := len(set(groups.tolist()))) < int(cv):
            raise ValueError(f"{cv} folds need at least {cv} groups, found {n_groups}")
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = kind(int(cv), shuffle=True, random_state=check_random_state(random_state))
        codes = None if groups is None else number_groups(groups)  # integers, because groups can be of any type
        folds = [fold for _ in range(n_repeats) for fold in splitter.split(np.empty(len(y)), y, codes)]
    elif n_repeats != 1:
        raise ValueError(f"n_repeats={n_repeats} needs an integer cv: pass one, or a splitter that repeats")
    else:
        folds = list(check_cv(cv, y, classifier=True).split(X, y, groups))
    if len(folds) < 2:
        raise ValueError(f"a comparison needs at least 2 folds, but cv has {len(folds)}")
    for number, fold in enumerate(folds):
        for part, rows in zip(("training", "test"), fold):
            missing = np.setdiff1d(classes, y[rows])
            if len(missing):
                raise ValueError(f"fold {number} has no {part} sample of class {missing[0]}: use fewer folds")
    return folds


def time_folds(times: NDArray[Any], n_folds: int) -> list[Fold]:
    """Return folds with test rows that are later than the training rows.

    Rows in the order of time are divided into n_folds + 1 blocks of about equal size. Rows with the same time are in
    the same block. Each block except the first is the test set of a fold, and all earlier blocks are its training set.
    """
    order = np.argsort(times, kind="stable")
    changes = np.flatnonzero(times[order][1:] != times[order][:-1]) + 1
    if len(changes) < n_folds:
        raise ValueError(f"{n_folds} folds need at least {n_folds + 1} distinct times, found {len(changes) + 1}")
    indices = [-1]
    for k in range(n_folds):
        nearest = int(np.argmin(np.abs(changes - (k + 1) * len(order) / (n_folds + 1))))
        # Each test set begins after the previous one, and leaves at least one time for each later test set.
        indices.append(min(max(nearest, indices[-1] + 1), len(changes) - n_folds + k))
    ends = [*changes[indices[1:]].tolist(), len(order)]
    return [(np.sort(order[:start]), np.sort(order[start:end])) for start, end in pairwise(ends)]

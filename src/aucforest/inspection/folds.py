"""Cross-validation of several forests on the same folds."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import RepeatedStratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state, column_or_1d
from tqdm import tqdm

from aucforest.estimators.forest import AUCForestClassifier
from aucforest.fitting.target import code_classes
from aucforest.inspection.scoring import METRICS, FittedFold

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


def run_folds(
    forests: Mapping[str, AUCForestClassifier],
    X: Any,
    y: ArrayLike,
    *,
    cv: Any,
    n_repeats: int,
    metrics: Sequence[str],
    sample_weight: ArrayLike | None,
    random_state: Any,
    verbose: int,
) -> NDArray[np.void]:
    """Return a record for each fold and forest: "fold", "criterion", "n_train", "n_test" and a field for each metric.

    Every fold gives all forests the same rows and the same seed; the other arguments are those of `compare_criteria`.
    A forest goes by its name, in the field "criterion". Shape (n_folds, n_forests).
    """
    y = np.asarray(column_or_1d(y))
    code_classes(y)  # refuses what a fit would refuse
    check_consistent_length(X, y, sample_weight)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)

    def part(rows: NDArray[np.int64]) -> tuple[Any, NDArray[Any], NDArray[np.float64] | None]:
        return _safe_indexing(X, rows), y[rows], None if weight is None else weight[rows]

    random = check_random_state(random_state)
    folds = _folds(X, y, cv, n_repeats, random)
    seeds = random.randint(np.iinfo(np.int32).max, size=len(folds))
    names = list(forests)
    for forest in forests.values():
        forest._validate_params()  # fit would do it too, but after others were compiled
    for forest in tqdm(forests.values(), desc="compile", leave=False, disable=not verbose):
        # one tree leaves too few rows out of bag for a score or a threshold
        _fit(clone(forest).set_params(n_estimators=1, oob_score=False, threshold=None), *part(folds[0][0]))

    fields = [("fold", "i8"), ("criterion", f"U{max(map(len, names))}"), ("n_train", "i8"), ("n_test", "i8")]
    table = np.zeros((len(folds), len(names)), [*fields, *((metric, "f8") for metric in metrics)])
    fits = [(fold, k) for fold in range(len(folds)) for k in np.roll(range(len(names)), fold)]
    for fold, k in tqdm(fits, desc="fits", disable=not verbose):
        train, test = folds[fold]
        forest = clone(forests[names[k]]).set_params(random_state=seeds[fold])
        fitted = FittedFold(forest, _fit(forest, *part(train)), *part(test))
        scores = (METRICS[metric].measure(fitted) for metric in metrics)
        table[fold, k] = (fold, names[k], len(train), len(test), *scores)
    return table


def _fit(forest: Any, X: Any, y: NDArray[Any], sample_weight: NDArray[np.float64] | None) -> float:
    """Fit a forest and return the seconds that it took."""
    start = perf_counter()
    forest.fit(X, y, sample_weight=sample_weight)
    return perf_counter() - start


def _folds(X: Any, y: NDArray[Any], cv: Any, n_repeats: int, random: np.random.RandomState) -> list[Fold]:
    """Return training and test rows of every fold, each with rows of all classes."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {classes.tolist()[0]!r}: at least 2 are needed")
    if isinstance(cv, Integral):
        rarest = classes[counts.argmin()]
        if counts.min() < cv:
            raise ValueError(f"class {rarest} has {counts.min()} samples, too few for {cv} folds")
        splitter = RepeatedStratifiedKFold(n_splits=int(cv), n_repeats=n_repeats, random_state=random)
    elif n_repeats != 1:
        raise ValueError(f"n_repeats={n_repeats} needs an integer cv: set the repeats of a splitter itself")
    else:
        splitter = check_cv(cv, y, classifier=True)
    folds = list(splitter.split(X, y))
    if len(folds) < 2:
        raise ValueError(f"a comparison needs at least 2 folds, but cv has {len(folds)}")
    for number, fold in enumerate(folds):
        for part, rows in zip(("training", "test"), fold):
            missing = np.setdiff1d(classes, y[rows])
            if len(missing):
                raise ValueError(f"fold {number} has no {part} sample of class {missing[0]}")
    return folds

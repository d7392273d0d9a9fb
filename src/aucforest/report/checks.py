"""Checks whether the rows of a report were part of the training data."""

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.estimators.out_of_bag import training_rows
from aucforest.fitting.out_of_bag import TrainingRows
from aucforest.inspection.models import forest_of
from aucforest.metrics.validation import is_missing
from aucforest.report.data import columns_of
from aucforest.report.metrics import auc_interval
from aucforest.report.page import number, percent
from aucforest.report.rows import ScoredRows, number_labels

_LEVEL = 0.999  # confidence level: an AUC whose interval is above the out-of-bag AUC is suspicious


class Training(NamedTuple):
    """The training data and, for a forest or a stack with bootstrap samples, which rows are in them."""

    X: Any
    y: NDArray[Any]
    labels: NDArray[np.int64]
    sample_weight: NDArray[np.float64] | None
    rows: TrainingRows | None


def check_training(rows: ScoredRows, training: Training | None) -> tuple[str, str | None]:
    """Return a sentence on whether rows were trained on, and a warning or None.

    If the training data are given, the warning is for a proportion of rows with a duplicate in the training data that
    is larger than that within the training data by three standard errors. Otherwise it is for a ROC AUC far above the
    out-of-bag AUC.
    """
    if training is None:
        unknown = "Whether the model was trained on these rows was not checked: no training rows were given."
        return unknown, _beyond_out_of_bag(rows.model, rows.labels, rows.scores, rows.sample_weight)
    if not columns_of(rows.X):
        return "Whether the model was trained on these rows was not checked: they have no columns to compare.", None
    seen, alike = _count_seen(rows, training.X, training.labels)
    n_rows = rows.labels.size
    if seen == 0:
        return "No row of this report has the same label and values as a training row.", None
    alarming = seen / n_rows > alike + 3.0 * np.sqrt(alike * (1.0 - alike) / n_rows)
    text = (
        f"{seen:,} of the {n_rows:,} rows of this report ({percent(seen / n_rows)}) have the same label and values as "
        f"a training row; among the training rows themselves {percent(alike)} have a duplicate."
    )
    return text, f"{text} If these rows were trained on, all metrics here are too good." if alarming else None


def _count_seen(rows: ScoredRows, X: Any, labels: NDArray[np.int64]) -> tuple[int, float]:
    """Return the number of rows equal to a training row, and the proportion of training rows with a duplicate."""
    ours, theirs = columns_of(rows.X), columns_of(X)
    generator, n_rows = np.random.default_rng(0), rows.labels.size
    keys = np.zeros(n_rows + labels.size, dtype=np.uint64)
    pairs = [(ours[name], theirs[name]) for name in ours if name in theirs]
    for pair in [(rows.labels, labels), *pairs]:
        codes = _codes(*pair)
        # The hash of a row is the sum of a random word for each of its values (Zobrist hashing).
        keys += generator.integers(2**64, size=int(codes.max()) + 1, dtype=np.uint64)[codes]
    trained, counts = np.unique(keys[n_rows:], return_counts=True)
    return int(np.isin(keys[:n_rows], trained).sum()), float(counts[counts > 1].sum() / labels.size)


def _codes(ours: NDArray[Any], theirs: NDArray[Any]) -> NDArray[np.int64]:
    """Return the positions of the values of both arrays among their distinct values."""
    if "O" in (ours.dtype.kind, theirs.dtype.kind):
        values = [*ours.tolist(), *theirs.tolist()]
        both = np.array(["" if is_missing(value) else f"={value}" for value in values])
    else:
        both = np.concatenate([ours, theirs])
    return np.asarray(np.unique(both, return_inverse=True)[1])


def trained_on(
    model: Any, X: Any, y: NDArray[Any], sample_weight: NDArray[np.float64] | None, proba: NDArray[np.float64]
) -> str | None:
    """Return a sentence if rows are the training data of a forest or a stack, or probably were part of them."""
    forest = forest_of(model)
    if forest is None:
        return None
    with suppress(ValueError):
        training_rows(forest, X, y, sample_weight)
        known = f": the ROC AUC of out-of-bag rows is {model.oob_score_:.4f}" if model.oob_score is True else ""
        return f"these are the rows that the model was trained on, so that all metrics are too good{known}"
    return _beyond_out_of_bag(model, number_labels(y, model.classes_, "y"), proba, sample_weight)


def _beyond_out_of_bag(
    model: Any, labels: NDArray[np.int64], proba: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
) -> str | None:
    """Return a warning if a forest or a stack of two classes ranks rows far better than its out-of-bag rows."""
    if proba.shape[1] != 2 or forest_of(model) is None or model.oob_score is not True:
        return None
    auc, low, _ = auc_interval(labels == 1, proba[:, 1], sample_weight, _LEVEL)
    if not low > model.oob_score_:
        return None
    return (
        f"The ROC AUC of these rows, {number(auc)}, exceeds that of the out-of-bag rows, "
        f"{number(float(model.oob_score_))}, by more than chance explains. Check that the model was not trained on "
        "these rows."
    )

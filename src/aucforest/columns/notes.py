"""Notes on suspicious feature columns: empty, constant, identifiers, leaks, or numbers and dates read as strings."""

import shlex
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.columns.categorical import Column, Factor, count_unseen, count_values, names_of, read_column, read_table
from aucforest.columns.integers import ROUNDED, rounded_features
from aucforest.columns.texts import MOST_NAMES, listed_columns, text_note, unseen_note
from aucforest.metrics.ranking import mann_whitney, rank_rows

_UNUSED = ", never used in a split"
_EMPTY = f"no values{_UNUSED}"
_CONSTANT = f"the same value in every row{_UNUSED}"
_CONSTANT_ROUNDED = f"the same value in every row, if numbers above 2**53 are rounded to float64{_UNUSED}"
_IDENTIFIER = "every value is distinct, as in an identifier"
# The number of rows that are checked first, because they rule out constants, identifiers and leaks in most columns.
_FIRST_ROWS = 1000
_LEAST_ROWS = 20  # with fewer rows, distinct values do not indicate an identifier
# The minimum ROC AUC of a column that separates the classes. This is not checked if a class has fewer than
# _LEAST_OF_CLASS rows, because a column may separate so few rows by chance.
_LEAST_AUC, _LEAST_OF_CLASS = 0.999, 5
# All pairs of classes are compared, unless there are more classes than this.
_MOST_CLASSES = 10
# For each pair of classes: the indices of their rows, and whether each row is of the second class.
_Pairs = list[tuple[NDArray[np.int64], NDArray[np.bool_]]]


def suspicious_columns(
    table: Any, labels: NDArray[Any] | None = None, *, drop: bool = False, n_rows: int | None = None
) -> list[str]:
    """Return sentences on the suspicious columns of an Arrow table, a frame or a matrix, one for each kind of note.

    `labels` has the class index of each row, to find columns that separate the classes. If `drop` is True, the note on
    identifiers suggests the option --drop. If the table is a part of a larger one, `n_rows` is the number of rows of
    the larger one. Then text and rounding are not checked: `warn_of_text` and `warn_of_rounding` check all rows.
    """
    frame = read_table(table)
    names_by_note: dict[str, list[str]] = {}
    leaks: dict[str, float] = {}
    rounded = set(rounded_features(frame)) if n_rows is None else set()
    sampled_pairs = [] if labels is None else _sampled_pairs(labels)
    for feature, name in enumerate(_names_of(table, frame)):
        column = read_column(frame, feature)
        note = _note_on(column, len(frame), with_text=n_rows is None)
        if note is not None:
            names_by_note.setdefault(note, []).append(name)
        if feature in rounded:
            names_by_note.setdefault(ROUNDED, []).append(name)
        # The AUC of all rows is computed only if that of the sample is high.
        if labels is not None and sampled_pairs and _mean_auc(column, sampled_pairs) >= _LEAST_AUC:
            auc = _mean_auc(column, _pairs_of_classes(labels, np.arange(len(labels))))
            if auc >= _LEAST_AUC:
                leaks[name] = auc
    order = {_EMPTY: 0, _CONSTANT: 1, _CONSTANT_ROUNDED: 1, _IDENTIFIER: 3}
    notes = sorted(names_by_note, key=lambda note: order.get(note, 2))
    sentences = [_sentence(note, names_by_note[note], drop) for note in notes]
    sentences += [_leak_sentence(leaks)] if leaks else []
    if n_rows is None or n_rows == len(frame):
        return sentences
    return [f"in {len(frame):,} of {n_rows:,} rows, {sentence.removesuffix(_UNUSED)}" for sentence in sentences]


def _note_on(column: Column, n_rows: int, with_text: bool) -> str | None:
    if with_text and isinstance(column, Factor):
        values, counts = count_values(column, None)
        if (note := text_note(values.tolist(), counts.tolist())) is not None:
            return note
    for rows in (np.arange(min(n_rows, _FIRST_ROWS)), None):
        values, counts = count_values(column, rows)
        n_known, n_checked = int(np.sum(counts)), n_rows if rows is None else len(rows)
        is_constant = len(values) == 0 or (len(values) == 1 and n_known == n_checked)
        is_identifier = len(values) == n_known and n_rows >= _LEAST_ROWS and _are_integers_or_text(values)
        if not (is_constant or is_identifier):
            return None
    if len(values) == 0:
        return _EMPTY
    if is_constant and values.dtype.kind == "f" and abs(values[0]) > 2**53:
        return _CONSTANT_ROUNDED
    return _CONSTANT if is_constant else _IDENTIFIER if n_known >= _LEAST_ROWS else None


def _are_integers_or_text(values: NDArray[Any]) -> bool:
    if values.dtype == object:
        return all(isinstance(value, str) for value in values.tolist())
    return values.dtype.kind in "iu" or (values.dtype.kind == "f" and bool(np.all(values == np.floor(values))))


def _sampled_pairs(labels: NDArray[Any]) -> _Pairs:
    """Return the pairs of classes of a random sample of each class, or [] if columns that separate them have no note.

    The sample is random, because the table may be sorted by class.
    """
    counts, generator = np.bincount(labels), np.random.default_rng(0)
    present = np.flatnonzero(counts)
    if not 2 <= len(present) <= _MOST_CLASSES or counts[present].min() < _LEAST_OF_CLASS:
        return []
    sampled = [generator.permutation(np.flatnonzero(labels == code))[:_FIRST_ROWS] for code in present]
    return _pairs_of_classes(labels, np.concatenate(sampled))


def _pairs_of_classes(labels: NDArray[Any], rows: NDArray[np.int64]) -> _Pairs:
    """Return the given rows of each pair of classes, and whether each row is of the second class."""
    pairs = []
    for negative, positive in combinations(np.unique(labels[rows]), 2):
        pair = rows[(labels[rows] == negative) | (labels[rows] == positive)]
        pairs.append((pair, labels[pair] == positive))
    return pairs


def _mean_auc(column: Column, pairs: _Pairs) -> float:
    """Return the mean ROC AUC of a column over pairs of classes."""
    return float(np.mean([_auc(column, rows, is_positive) for rows, is_positive in pairs]))


def _auc(column: Column, rows: NDArray[np.int64], is_positive: NDArray[np.bool_]) -> float:
    """Return the larger ROC AUC of a column for two classes, with its values ranked in ascending or descending order.

    Missing numbers are ranked below or above all others. Categories are ranked by `_cross_fitted` class frequencies.
    """
    if not isinstance(column, np.ndarray):
        scores = [_cross_fitted(column.indices[rows] + 1, len(column.values) + 1, is_positive)]
    else:
        scores = [column[rows].astype(np.float64)]
        if not np.all(np.isfinite(scores[0])):
            missing = np.isnan(scores[0])
            filled = [np.where(missing, end, scores[0]) for end in (-np.inf, np.inf)]
            scores = [np.unique(values, return_inverse=True)[1].astype(np.float64) for values in filled]
    areas = [mann_whitney(is_positive, rank_rows(values), None) for values in scores]
    return max(*areas, *(1.0 - area for area in areas))


def _cross_fitted(codes: NDArray[Any], n_codes: int, is_positive: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Divide the rows into random halves, and return for each row the class frequency of its code in the other half."""
    in_half = np.random.default_rng(0).random(len(codes)) < 0.5
    scores = np.empty(len(codes))
    for half in (in_half, ~in_half):
        n_rows = np.bincount(codes[~half], minlength=n_codes)
        n_positive = np.bincount(codes[~half], is_positive[~half], minlength=n_codes)
        rates = np.where(n_rows > 0, n_positive / np.maximum(n_rows, 1), np.mean(is_positive))
        scores[half] = rates[codes[half]]
    return scores


def _sentence(note: str, names: list[str], drop: bool) -> str:
    value = "" if names[MOST_NAMES:] else f" {shlex.quote(','.join(names))}"
    advice = f"; consider --drop{value}, unless the first digits or characters have a meaning"
    return f"{listed_columns(list(map(repr, names)))}: {note}{advice if drop and note == _IDENTIFIER else ''}"


def _leak_sentence(aucs: dict[str, float]) -> str:
    if len(aucs) == 1:
        ((name, auc),) = aucs.items()
        return f"{name!r} alone separates the classes (ROC AUC {auc:.4f}): is it known at prediction time?"
    listed = listed_columns([f"{name!r} (ROC AUC {auc:.4f})" for name, auc in aucs.items()])
    return f"{listed} each separate the classes alone: are they known at prediction time?"


def unseen_categories(table: Any, categories: dict[int, NDArray[Any]], parts: dict[int, str]) -> list[str]:
    """Return a sentence for each column with values not in `categories`; `parts` are `parts_of_unseen` of the model."""
    frame, notes = read_table(table), []
    names = _names_of(table, frame)
    for feature, labels in categories.items():
        if unseen := count_unseen(read_column(frame, feature), labels):
            n_unseen, part = sum(unseen.values()), parts.get(feature, "")
            notes.append(unseen_note(names[feature], n_unseen, len(frame), list(unseen), part))
    return notes


def _names_of(table: Any, frame: Any) -> list[str]:
    """Return the names of the columns of a table; those of a matrix are feature_0, feature_1 and so on."""
    names = names_of(table)
    return list(map(str, names)) if names else [f"feature_{j}" for j in range(frame.shape[1])]

"""Performance by the values of a column."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.inspection import PermutationImportance
from aucforest.metrics.intervals import normal_quantile, score_interval
from aucforest.metrics.validation import is_missing
from aucforest.report.data import columns_of, numbers_in
from aucforest.report.importances import columns_in_order
from aucforest.report.metrics import auc_interval
from aucforest.report.page import Section, Table, interval, number, percent, shortened
from aucforest.report.rows import ScoredRows
from aucforest.tables.columns import names_of

_MOST_GROUPS = 10
_MOST_COLUMNS = 2  # if no columns are given
_FEW = 10  # minimum number of rows of a class for its metrics

Groups = dict[str, NDArray[Any]]


def read_groups(by: Any, rows: ScoredRows, sample_weight: ArrayLike | None) -> Groups | None:
    """Return the grouping columns, which are given by name or as arrays."""
    if by is None:
        return None
    if isinstance(by, str):
        by = [by]
    if not (isinstance(by, Mapping) or hasattr(by, "columns")):
        columns = columns_of(rows.X)
        for name in by:
            if name not in columns:
                raise ValueError(f"by names {name!r}, which is no column of X_test")
        return {name: columns[name] for name in by}
    groups = {str(name): np.asarray(by[name]) for name in names_of(by) or by}
    kept = slice(None) if sample_weight is None else np.asarray(sample_weight) != 0.0
    n_rows = rows.labels.size if sample_weight is None else np.size(sample_weight)
    for name, values in groups.items():
        if len(values) != n_rows:
            raise ValueError(f"by has {len(values)} values of {name!r}, but y_test has {n_rows} rows")
    return {name: values[kept] for name, values in groups.items()}


def default_groups(rows: ScoredRows, importance: PermutationImportance | None) -> Groups:
    """Return the most important columns with few categories, or the first such columns."""
    columns = columns_of(rows.X)
    order: Iterable[int] = range(len(columns))
    if importance is not None and columns:
        order = columns_in_order(importance, rows.model, len(columns))
    names, found = list(columns), {}
    for name in (names[place] for place in order):
        values = columns[name]
        if numbers_in(values) is None and 2 <= len({str(value) for value in values.tolist()}) <= _MOST_GROUPS:
            found[name] = values
        if len(found) == _MOST_COLUMNS:
            break
    return found


def subgroups_section(rows: ScoredRows, groups: Groups, level: float) -> Section:
    """Return a table of metrics for each column."""
    tables = [_table(rows, name, values, level) for name, values in groups.items()]
    lead = (
        "Performance in parts of the rows. Where intervals of two groups overlap widely, these rows do not tell their "
        f"performance apart. Metrics of fewer than {_FEW} rows of a class are not given: such groups are too small."
    )
    return Section("subgroups", "Subgroups", lead, [], tables)


def _table(rows: ScoredRows, name: str, values: NDArray[Any], level: float) -> Table:
    """Return the metrics of each group of a column."""
    metrics = _of_two_classes if len(rows.classes) == 2 else _of_more_classes
    members = _group(values)
    body = [[group, f"{np.count_nonzero(inside):,}", *metrics(rows, inside, level)] for group, inside in members]
    columns = [name, "rows", "accuracy", "95 % interval"]
    if len(rows.classes) == 2:
        rates = ["recall", "95 % interval", "false positive rate"]
        columns = [name, "rows", f"rows {rows.of_classes[1]}", "mean score", "ROC AUC", "95 % interval", *rates]
    return Table(f"Performance by {name}", columns, body, "l" + "r" * (len(columns) - 1))


def _group(values: NDArray[Any]) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return groups by quartile for many numbers, else by the most frequent values; missing values are a group."""
    numbers, missing = numbers_in(values), np.array([is_missing(value) for value in values.tolist()])
    if numbers is not None and np.unique(numbers[~missing]).size > _MOST_GROUPS:
        ends = np.unique(np.quantile(numbers[~missing], [0.25, 0.5, 0.75]))
        names = [f"to {number(ends[0])}", *(f"to {number(end)}" for end in ends[1:]), f"above {number(ends[-1])}"]
        found = [names[place] for place in np.searchsorted(ends, numbers)]
    else:
        found = [shortened(str(value), 40) for value in values.tolist()]
        names = [name for name, _ in Counter(np.array(found)[~missing].tolist()).most_common(_MOST_GROUPS)]
    texts = np.where(missing, "missing", np.where(np.isin(found, names), found, "all others"))
    return [(name, texts == name) for name in [*names, "all others", "missing"] if np.any(texts == name)]


def _rate(rows: ScoredRows, inside: NDArray[np.bool_], hit: NDArray[np.bool_], level: float) -> list[str]:
    """Return the weighted proportion of hits among some rows with Wilson's interval."""
    if np.count_nonzero(inside) < _FEW:
        return ["too few", "–"]
    weights = rows.weights[inside]
    proportion = float(np.average(hit[inside], weights=weights))
    dispersion = float(np.square(weights).sum() / weights.sum() ** 2)
    return [percent(proportion), interval(*score_interval(proportion, dispersion, normal_quantile(level)), percent)]


def _of_two_classes(rows: ScoredRows, inside: NDArray[np.bool_], level: float) -> list[str]:
    """Return positives, mean score, ROC AUC, recall and false positive rate of a group."""
    positive = rows.labels == 1
    n_positive, n_rows = np.count_nonzero(inside & positive), np.count_nonzero(inside)
    cells = [f"{n_positive:,} ({percent(n_positive / n_rows)})"]
    cells.append(number(float(np.average(rows.scores[inside, 1], weights=rows.weights[inside]))))
    auc = ["too few", "–"]
    if min(n_positive, n_rows - n_positive) >= _FEW:
        weights = None if rows.sample_weight is None else rows.sample_weight[inside]
        value, low, high = auc_interval(positive[inside], rows.scores[inside, 1], weights, level)
        auc = [number(value), interval(low, high)]
    alert = rows.predicted == 1
    false_positives, _ = _rate(rows, inside & ~positive, alert, level)
    return [*cells, *auc, *_rate(rows, inside & positive, alert, level), false_positives]


def _of_more_classes(rows: ScoredRows, inside: NDArray[np.bool_], level: float) -> list[str]:
    """Return the accuracy of a group."""
    return _rate(rows, inside, rows.predicted == rows.labels, level)

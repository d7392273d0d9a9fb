"""Target rates in model files, with validation of all values that index arrays."""

from typing import Any

import numpy as np

from aucforest.estimators._model_files import MOST_FEATURES, are_frequencies
from aucforest.persistence.model_file import Arrays, StoredModel, narrow, require
from aucforest.tables.columns import Categories
from aucforest.tables.target_rates import RateTable, TargetRates
from aucforest.tree.tree import MISSING_CODE

# Maximum sum of totals, so that sums in int64 are exact.
_MOST_TOTAL = 2.0**62


def store_rates(rates: TargetRates) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the metadata of target rates."""
    arrays: Arrays = {"rates.frequencies": rates.frequencies, "rates.factors": rates.factors}
    for i, table in enumerate(rates.tables):
        arrays |= {f"rates.{i}.totals": narrow(table.totals, "BHIq"), f"rates.{i}.edges": table.edges}
    tables = [[table.feature, table.other, table.n_parts, table.smoothing] for table in rates.tables]
    return arrays, {"tables": tables, "classes": rates.classes.tolist()}


def restore_rates(stored: StoredModel, categories: Categories, n_features: int, n_classes: int) -> TargetRates:
    """Return the target rates of a file; `n_features` is the number of features without them."""
    metadata = stored.take("rates", dict)
    are_lists = all(isinstance(metadata.get(name), list) for name in ("tables", "classes"))
    require(len(metadata) == 2 and are_lists, "rates have no tables and classes")
    items, classes = metadata["tables"], metadata["classes"]
    require(_are_classes(classes, n_classes), "the classes of rates are unknown or not in order")
    require(0 < len(items) * len(classes) <= MOST_FEATURES, "there are no rates, or too many")
    tables: list[RateTable] = []
    for number, item in enumerate(items):
        table = _restore_table(stored, number, item, categories, n_features, n_classes)
        before = [(one.feature, one.other) for one in tables if one.feature == table.feature]
        is_in_order = before[0][1] < 0 if table.is_interaction and before else not table.is_interaction
        require(is_in_order and (table.feature, table.other) not in before, "the tables of rates are not in order")
        tables.append(table)
    frequencies, factors = (
        stored.take_array(f"rates.{name}", "d", (n_classes,)) for name in ("frequencies", "factors")
    )
    require(are_frequencies(frequencies), "the frequencies of rates are not those of classes")
    # A class that is never sampled has the factor 0.
    are_factors = np.all((factors >= 0.0) & (factors < np.inf)) and factors.max() > 0.0
    require(are_factors, "the factors of rates are not positive and finite")
    return TargetRates(tuple(tables), np.array(classes), frequencies, factors)


def _are_classes(classes: list[Any], n_classes: int) -> bool:
    """Return whether `classes` are class indices in ascending order; for two classes, only the second class."""
    if not all(type(k) is int and 0 <= k < n_classes for k in classes):
        return False
    return classes == [1] if n_classes == 2 else len(classes) > 0 and classes == sorted(set(classes))


def _restore_table(
    stored: StoredModel, number: int, item: Any, categories: Categories, n_features: int, n_classes: int
) -> RateTable:
    """Return one table of a file, with a row of class totals for each category, or pair with a part of a feature."""
    require(isinstance(item, list) and len(item) == 4 and all(type(n) is int for n in item[:3]), "rates are no numbers")
    feature, other, n_parts, smoothing = item
    require(feature in categories, f"there are rates of feature {feature}, which has no categories")
    is_other = other == -1 or (0 <= other < n_features and other != feature)
    require(is_other, f"there are rates of feature {feature} and feature {other}")
    require(type(smoothing) is float and 0.0 < smoothing < np.inf, "the smoothing of rates is not positive and finite")
    edges = stored.take_array(f"rates.{number}.edges", "d", (-1,))
    require(np.all(np.isfinite(edges)) and np.all(np.diff(edges) > 0.0), "the edges of rates are not finite and rising")
    wanted = len(edges) + 1
    if other >= 0 and len(edges) == 0:
        require(other in categories, f"there are no edges of feature {other}, which is a number")
        wanted = min(len(categories[other]), MISSING_CODE)
    require(n_parts == max(wanted, 1) and (other >= 0 or len(edges) == 0), "rates have another number of parts")
    n_cells = len(categories[feature]) * n_parts
    totals = stored.take_array(f"rates.{number}.totals", "BHIq", (n_cells, n_classes)).astype(np.int64)
    is_positive = np.all(totals >= 0) and totals.sum(dtype=np.float64) < _MOST_TOTAL
    require(is_positive, "the totals of rates are negative or too large")
    return RateTable(feature, other, edges, n_parts, smoothing, totals)

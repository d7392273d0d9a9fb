"""The formula and the values of target rates: smoothed class frequencies of the categories of a column.

The rate of class k for a category is (s_k + a q_k) / (n + a) (Micci-Barreca 2001). Here n is the weight of the training
samples of the category, s_k the weight of those of class k, q_k the frequency of class k in all samples, and `a` the
smoothing. If the first characters of a category, or its range of integers, are a feature, too, q_k may be their rate.
An interaction is with another feature, which is divided into parts: its categories, or intervals of its numbers. Each
pair of a category and a part is a cell. The rate of a cell has the rate of the category as q_k. New samples get rates
from all training samples. For its out-of-bag predictions, a training sample gets rates from the samples outside its
group, and without groups from all others (leave-one-out). Trees are grown on other rates, see `tree.ordered_rates`.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.tree.binning import BinValues
from aucforest.tree.tree import SHARED_CODE

# Takes the index of a table and the cell of each row. Returns for each row the class totals to leave out, those of the
# row or of its group in the cell, (n_rows, n_classes).
LeftOutTotals = Callable[[int, NDArray[np.int64]], NDArray[np.int64]]

# The encodings of columns with many categories, for trees; see `AUCForestClassifier`.
ENCODINGS = SETS, RATES, INTERACTIONS = "sets", "rates", "interactions"


class RateTable(NamedTuple):
    """The class totals of the categories of a column, or of the cells of an interaction of the column."""

    feature: int  # index of the categorical feature
    other: int  # index of the other feature, -1 if there is none
    edges: NDArray[np.float64]  # edges of the intervals of a numeric other feature; empty for a categorical one
    n_parts: int  # number of parts of the other feature, 1 if there is none
    smoothing: float  # in samples
    totals: NDArray[np.int64]  # (n_categories * n_parts, n_classes)
    prior: int = -1  # without interaction: index of the feature whose rates are q_k, -1 if class frequencies are

    @property
    def is_interaction(self) -> bool:
        """Whether the cells are those of an interaction."""
        return self.other >= 0

    def parts_of(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Return the index of the part of each value of the other feature, -1 for missing values."""
        missing = np.isnan(values)
        if len(self.edges) > 0:
            parts = np.searchsorted(self.edges, values).astype(np.int64)
        else:
            parts = np.minimum(np.where(missing, 0, values), SHARED_CODE).astype(np.int64)
        return np.where(missing, -1, parts)

    def parts_of_codes(self, values: BinValues) -> NDArray[np.int64]:
        """Return the part of each bin of the other feature; the last bin, of missing values, has the part -1."""
        bins = slice(values.first[self.other], values.first[self.other + 1])
        return np.append(self.parts_of(values.lower[bins]), -1)

    def cells(self, categories: NDArray[np.int64], parts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the cell of each category and part, -1 where one of them is missing."""
        return np.where((categories < 0) | (parts < 0), -1, categories * self.n_parts + parts)

    def cells_of(self, X: NDArray[Any]) -> NDArray[np.int64]:
        """Return the index of the cell of each row of a feature matrix, -1 if the category or the part is missing."""
        values = X[:, self.feature]
        categories = np.where(np.isnan(values), -1, values).astype(np.int64)
        if not self.is_interaction:
            return categories
        return self.cells(categories, self.parts_of(X[:, self.other]))


class TargetRates(NamedTuple):
    """The features of columns with many categories: for every table, the rates of some classes.

    The table of a column alone comes before the tables of its interactions.
    """

    tables: tuple[RateTable, ...]
    classes: NDArray[np.int64]  # indices of the classes whose rates are features; of two classes only the second
    frequencies: NDArray[np.float64]  # (n_classes,) frequencies of all classes
    factors: NDArray[np.float64]  # (n_classes,) a class total times its factor is a weight in samples

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.tables) * len(self.classes)

    @property
    def columns(self) -> list[int]:
        """The index of the categorical feature from which each feature is computed."""
        return [table.feature for table in self.tables for _ in self.classes]

    def names(self, names: Sequence[Any], columns: Mapping[int, Any], classes: NDArray[Any]) -> list[str]:
        """Return the names of the features, given the names of all other features and the labels of the classes.

        For a feature in `columns`, the name of its column is used: "shop: rate" instead of "shop: category: rate".
        """
        feature_names = []
        for table in self.tables:
            cell = f"{columns.get(table.feature, names[table.feature])}"
            cell += f" x {names[table.other]}" if table.is_interaction else ""
            endings = [""] if len(classes) == 2 else [f" of {classes.tolist()[k]}" for k in self.classes]
            feature_names += [f"{cell}: rate{ending}" for ending in endings]
        return feature_names

    def indices(self, number: int) -> slice:
        """Return the slice of the features of a table."""
        return slice(number * len(self.classes), (number + 1) * len(self.classes))

    def prior_table(self, number: int) -> int:
        """Return the index of the table whose rates are the priors q_k of a table, -1 if class frequencies are."""
        table = self.tables[number]
        feature = table.feature if table.is_interaction else table.prior
        tables = enumerate(self.tables)
        return next((i for i, one in tables if one.feature == feature and not one.is_interaction), -1)

    def without_totals(self) -> "TargetRates":
        """Return a copy without the totals, which are not needed to grow trees."""
        no_totals = np.empty((0, len(self.frequencies)), dtype=np.int64)
        return self._replace(tables=tuple(table._replace(totals=no_totals) for table in self.tables))

    def compute(self, X: NDArray[Any], left_out: LeftOutTotals | None = None) -> NDArray[np.float64]:
        """Return the features of rows, (n_rows, n_features), from the totals minus those that `left_out` returns."""
        rates = np.empty((len(X), self.n_features))
        # The table of the priors of a table comes before it.
        order = sorted(enumerate(self.tables), key=lambda pair: (pair[1].is_interaction, pair[1].prior >= 0))
        for number, table in order:
            cells, features, prior = table.cells_of(X), self.indices(number), self.prior_table(number)
            known = np.flatnonzero(cells >= 0)
            totals = table.totals[cells[known]]
            if left_out is not None:
                totals = totals - left_out(number, cells)[known]
            # First every row gets the prior rates. They remain in rows without a cell.
            rates[:, features] = self.frequencies[self.classes] if prior < 0 else rates[:, self.indices(prior)]
            rates[known, features] = self.rate(totals, table.smoothing, rates[known, features])
        return rates

    def rate(self, totals: NDArray[np.int64], smoothing: float, priors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rates of cells from their totals, (n_cells, n_classes), and from q_k, their `priors`."""
        weights = totals * self.factors
        counts, total = weights[:, self.classes], weights.sum(axis=1, keepdims=True)
        rates: NDArray[np.float64] = (counts + smoothing * priors) / (total + smoothing)
        return rates


def append_rates(X: Any, rates: TargetRates | None, left_out: LeftOutTotals | None = None) -> Any:
    """Return a matrix of features with the rates appended as columns, if there are rates."""
    return X if rates is None else np.hstack((X, rates.compute(X, left_out)))


def are_same_rates(one: TargetRates | None, other: TargetRates | None) -> bool:
    """Return whether the target rates of two forests are equal."""
    if one is None or other is None or len(one.tables) != len(other.tables):
        return one is None and other is None
    values, other_values = (list[Any](chain(rates[1:], *rates.tables)) for rates in (one, other))
    return all(map(np.array_equal, values, other_values))

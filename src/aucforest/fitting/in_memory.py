"""Training data in the memory of this process, as one part."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.columns.categorical import Categories, Counted, Factor, encode_prefixes
from aucforest.columns.dates import Dates
from aucforest.columns.expansion import FoundCategories, encode_integers, n_added, times_in
from aucforest.columns.sparse import SparseRows
from aucforest.columns.target_rates import RATES
from aucforest.fitting.coding import Coding, with_coarse_times
from aucforest.fitting.growing import TreeBuffers, grow_batches, thread_map
from aucforest.fitting.integer_categories import (
    CountedRows,
    IntegerCounts,
    count_integers,
    count_rows,
    count_values_of,
    order_values,
    searched_columns,
)
from aucforest.fitting.out_of_bag import RatedRows
from aucforest.fitting.parts import Grown, Growth, Part
from aucforest.fitting.plan import FitSize, bytes_in_memory, check_fit
from aucforest.fitting.prefixes import count_categories, find_prefixes
from aucforest.fitting.spec import FitSpec
from aucforest.fitting.table import TrainingTable
from aucforest.fitting.target import Target
from aucforest.fitting.target_rates import find_rated
from aucforest.tree.binning import (
    MAX_BINS,
    BinnedMatrix,
    BinValues,
    bin_blocks,
    bin_matrix,
    code_dtype,
    encode_matrix,
    join_bins,
)
from aucforest.tree.sparse_binning import bin_sparse

# Approximate seconds that two threads need to bin and encode one value.
_VALUE_SECONDS = 2e-8
# Approximate seconds to count a value of a column of integers.
_COUNTING_SECONDS = 5e-8


class ExpandedRows:
    """Rows of a matrix with additional features, which are appended when rows are selected, to save memory."""

    def __init__(self, X: NDArray[Any], added: NDArray[Any]) -> None:
        self._X, self._added = X, added

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Return rows by their indices."""
        return np.column_stack((self._X[rows], self._added[rows]))


class RowsInMemory(TrainingTable):
    """Training data as a sparse matrix, or as a dense matrix with the indices of categories; see `TrainingTable`."""

    def __init__(
        self,
        X: NDArray[Any] | SparseRows,
        names: Sequence[str] | None,
        categories: Categories,
        dates: Dates,
        target: Target,
    ) -> None:
        self.X, self.names, self.target, self.dates, self._categories = X, names, target, dates, categories
        self.n_features = X.shape[1]
        self._spare: list[TreeBuffers] = []  # buffers for growing trees

    def may_have_rates(self, spec: FitSpec) -> bool:
        """Return whether a column has target rates, after a search for categories by the labels."""
        self.found = self._known(spec)
        if self.found and isinstance(self.X, SparseRows):
            raise ValueError("warm_start: X is sparse, but the existing trees read target rates: pass X.toarray()")
        if self.found is None:
            rows = CountedRows.of_target(self.target, self.n_features)
            self.found = {}
            if rows is not None and not isinstance(self.X, SparseRows):
                self.found = {**self._find_integers(spec, rows), **self._find_prefixes(rows)}
        return len(find_rated(self._categories, (RATES,))) + len(self.found) > 0

    def _find_prefixes(self, rows: CountedRows) -> FoundCategories:
        counted, by_class = dict[int, Counted](), dict[int, IntegerCounts | None]()
        for feature in find_rated(self._categories, (RATES,)):
            column = self._column(feature, self.target.kept)
            known, values = column.indices[column.indices >= 0], self._categories[feature]
            counted[feature] = Counted(values, np.bincount(known, minlength=len(values)))
            by_class[feature] = count_categories(column, None, rows)
        return find_prefixes(counted, by_class)

    def _column(self, feature: int, rows: NDArray[np.int64] | None) -> Factor:
        """Return the given rows of a categorical column, all if None."""
        codes = self.X[slice(None) if rows is None else rows, feature]
        return Factor(self._categories[feature].tolist(), np.where(np.isnan(codes), -1, codes).astype(np.int64))

    def _find_integers(self, spec: FitSpec, rows: CountedRows) -> FoundCategories:
        X, kept = self.X, self.target.kept
        columns = searched_columns(self.n_features - n_added(self.dates), self._categories.keys() | self.dates, spec)
        selected = slice(None) if kept is None else kept

        def find_widths(feature: int) -> tuple[int, ...]:
            counts = count_integers(X[:, feature][selected], rows)
            return () if counts is None else counts.find_widths()

        run = thread_map(spec.n_jobs, _COUNTING_SECONDS * len(X))
        found = {feature: widths for feature, widths in zip(columns, run(find_widths, columns)) if widths}
        if found:
            numbers = (X[:, feature][selected] for feature in range(self.n_features) if feature not in self._categories)
            if count_rows(numbers, rows).are_copies():
                return {}
        return order_values(count_values_of(X, kept, found), found)

    def _choose_coding(self) -> Coding:
        """Choose bins, and encode the features of the matrix, because binning and encoding are one step."""
        if isinstance(self.X, SparseRows):
            values = self._bin_sparse(self.X)
        else:
            self._codes, values = self._bin(self.X)
        coding = Coding(self._categories, values, self.dates).with_found(self.found or {})
        return coding.with_rated(self._spec.encodings)

    def _encode_rows(self, coding: Coding) -> None:
        """Append the codes of categories that are found, and the digits of category indices, see `Digits`."""
        self._check(int(coding.values.n_bins.max()) + 1, coding)
        X, kept = self.X, slice(None) if self.target.kept is None else self.target.kept
        n_columns, added = X.shape[1], np.empty((0, 0))
        if self.found:
            integers = {key: categories for key, categories in self.found.items() if key[0] not in self._categories}
            others = ((*key, prefixes) for key, prefixes in self.found.items() if key[0] in self._categories)
            encoded = [encode_prefixes(self._column(f, None), size, prefixes) for f, size, prefixes in others]
            added = np.column_stack((encode_integers(X, integers), *encoded))
            bins = join_bins(coding.values.by_feature()[n_columns:])
            codes = encode_matrix(added[kept], bins).codes.astype(self._codes.dtype)
            self._codes, self.X = np.concatenate((self._codes, codes)), ExpandedRows(X, added)
        columns = [X[:, f][kept] if f < n_columns else added[kept, f - n_columns] for f in coding.rated]
        self._codes = coding.with_digits(self._codes, columns)

    def without_rates(self) -> NDArray[Any] | SparseRows:
        """Return all features of the rows, without target rates."""
        return self.X.without_rates(slice(None)) if isinstance(self.X, RatedRows) else self.X

    def _check(self, n_codes: int, coding: Coding | None = None) -> None:
        spec = self._spec
        size = FitSize.of(spec, self.target, self.n_features, n_codes, coding)
        if isinstance(self.X, SparseRows) and self.X.is_very_sparse:
            size = replace(size, n_stored=self.X.matrix.nnz)
        check_fit(size, bytes_in_memory(size, spec.n_threads, spec.n_sums))

    def _bin(self, matrix: NDArray[Any]) -> BinnedMatrix:
        target, max_bins = self.target, self._spec.max_bins
        n_codes = np.array([min(len(self._categories.get(f, ())), MAX_BINS) for f in range(self.n_features)])
        X = matrix if target.kept is None else matrix[target.kept]
        run = thread_map(self._spec.n_jobs, _VALUE_SECONDS * X.size)
        binned = bin_matrix(X, max_bins=max_bins, weights=target.kept_weight, run=run, n_codes=n_codes)
        if not times_in(self.dates) or max_bins is None:
            return binned
        return encode_matrix(X, with_coarse_times(binned.values, self.dates), run)

    def _bin_sparse(self, matrix: SparseRows) -> BinValues:
        """Choose bins for a sparse matrix; encode its stored values if it is very sparse, else all values."""
        # The memory is checked with a lower bound of n_codes, before arrays with an item per feature are allocated.
        self._check(2)
        most_bins, max_bins, kept = matrix.most_stored + 1, self._spec.max_bins, self.target.kept
        if max_bins is not None:
            most_bins = min(most_bins, max_bins)
        if most_bins > MAX_BINS:
            self._check(most_bins + 1)
        run = thread_map(self._spec.n_jobs)
        options: Any = {"max_bins": max_bins, "weights": self.target.kept_weight, "run": run}
        if matrix.is_very_sparse:
            self._codes = np.empty((self.n_features, 0), dtype=np.uint8)
            self._sparse, values = bin_sparse(matrix.stored_columns(kept), **options)
        else:
            codes = np.empty((self.n_features, len(self.target.kept_labels)), dtype=code_dtype(most_bins))
            self._codes, values = bin_blocks(matrix.columns(kept), codes, **options)
        return values

    def growth_and_part(self) -> tuple[Growth, Part]:
        """Return the parameters of trees, and the rows of positive weight with their codes."""
        return self._growth, self._make_part()

    def _grow_trees(self, growth: Growth, keys: list[int]) -> Grown:
        return grow_batches(growth, self._make_part(), keys, self._spec.n_jobs, self._spare)

    def _end_growing(self) -> None:
        self._spare.clear()

"""Training data in the memory of this process, which are one part."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.coding import Coding, choose_target_rates, own_totals, with_coarse_times
from aucforest.fitting.growing import TreeBuffers, grow_batches, thread_map
from aucforest.fitting.out_of_bag import RatedRows
from aucforest.fitting.parts import Grown, Growth, Part
from aucforest.fitting.plan import NO_RATES, FitSize, RateSize, bytes_in_memory, check_fit, warn_of_regression
from aucforest.fitting.spec import FitSpec
from aucforest.fitting.table import TrainingTable
from aucforest.fitting.target import Target
from aucforest.fitting.target_rates import RateWeights, find_rated
from aucforest.tables.columns import Categories
from aucforest.tables.dates import Dates, times_in
from aucforest.tables.sparse import SparseRows
from aucforest.tables.target_rates import RATES, TargetRates
from aucforest.tree.binning import MAX_BINS, BinnedMatrix, BinValues, bin_blocks, bin_matrix, code_dtype, encode_matrix
from aucforest.tree.samples import SparseCodes
from aucforest.tree.sparse_binning import bin_sparse

# Approximate seconds in which two threads bin and encode a value.
_VALUE_SECONDS = 2e-8


class RowsInMemory(TrainingTable):
    """Training data as a dense matrix with codes for categories, or a sparse matrix; see `TrainingTable`."""

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
        self.may_have_rates = len(find_rated(categories, (RATES,))) > 0
        # Those of another forest and their weights, (n_kept,), where that forest reads the same features.
        self.rates: TargetRates | None = None
        self.rate_weight: NDArray[np.float64] | None = None

    def code(self, spec: FitSpec) -> Coding:
        """Choose codes for the values, and encode the rows of positive weight."""
        target, n_classes = self.target, len(self.target.classes)
        sparse = None
        if not isinstance(self.X, SparseRows):
            codes, _, values = self._bin(self.X, spec)
        elif self.X.is_very_sparse:
            codes, sparse, values = self._bin_stored(self.X, spec)
        else:
            codes, _, values = self._bin_sparse(self.X, spec)
        coding = Coding(self._categories, values, self.dates).reading(spec.encodings)
        self._check(spec, int(coding.n_bins.max()) + 1, RateSize.of(coding))
        rate_weights = None
        if coding.rated:
            codes = coding.with_digits(codes, self.X if target.kept is None else self.X[target.kept])
            coding, rate_weights = self._with_rates(coding, codes, spec)
        self._spec, self._growth = spec, Growth.of(spec, coding, len(target.kept_labels), n_classes)
        copies_rows = coding.rates is not None and spec.sampler is not None
        self._part = Part(
            codes, target.kept_labels, spec.weights, spec.sampler, copies_rows, sparse, rate_weights=rate_weights
        )
        self._spare: list[TreeBuffers] = []  # buffers for growing trees from this part
        return coding

    def _with_rates(
        self, coding: Coding, codes: NDArray[np.unsignedinteger], spec: FitSpec
    ) -> tuple[Coding, NDArray[np.float64] | None]:
        """Return the coding with target rates, and the weights of the rows in them; rows of X get theirs as well."""
        target, rates = self.target, self.rates
        sample_weight = target.kept_weight if rates is None else self.rate_weight
        weights = RateWeights.of(sample_weight, spec.sampler, len(target.classes))
        if rates is None:
            rates = choose_target_rates(coding, spec, target, weights, codes)
        own = own_totals(coding, target, weights.integers(sample_weight), rates, codes)
        self.X = RatedRows(self.X, rates, own)
        return replace(coding, rates=rates), weights.in_samples(sample_weight)

    def _check(self, spec: FitSpec, n_codes: int, rates: RateSize = NO_RATES) -> None:
        """Raise ValueError if the fit would take too much memory, and warn of a regression target."""
        n_rows, n_classes = len(self.target.kept_labels), len(self.target.classes)
        size = replace(FitSize.of(spec, n_rows, self.n_features, n_classes, n_codes), rates=rates)
        if isinstance(self.X, SparseRows) and self.X.is_very_sparse:
            size = replace(size, n_stored=self.X.matrix.nnz)
        n_bytes = bytes_in_memory(size, spec.n_threads, spec.n_sums)
        check_fit(size, n_bytes)
        warn_of_regression(size, n_bytes)

    def _bin(self, matrix: NDArray[Any], spec: FitSpec) -> BinnedMatrix:
        """Return the codes of the rows of positive weight."""
        target, n_codes = self.target, np.zeros(self.n_features, dtype=np.int64)
        for feature, categories in self._categories.items():
            n_codes[feature] = min(len(categories), MAX_BINS)
        X = matrix if target.kept is None else matrix[target.kept]
        run = thread_map(spec.n_jobs, _VALUE_SECONDS * X.size)
        binned = bin_matrix(X, max_bins=spec.max_bins, weights=target.kept_weight, run=run, n_codes=n_codes)
        if not times_in(self.dates) or spec.max_bins is None:
            return binned
        return encode_matrix(X, with_coarse_times(binned.values, self.dates), run)

    def _check_sparse(self, matrix: SparseRows, spec: FitSpec) -> int:
        """Do what `_check` does before there are arrays with an item for each feature; return the most bins of one."""
        self._check(spec, 2)
        most = matrix.most_stored + 1
        if spec.max_bins is not None:
            most = min(most, spec.max_bins)
        if most > MAX_BINS:
            self._check(spec, most + 1)
        return most

    def _bin_sparse(self, matrix: SparseRows, spec: FitSpec) -> BinnedMatrix:
        """Return the codes of a sparse matrix, which are dense with one byte each, or more if `max_bins` is None."""
        target, most = self.target, self._check_sparse(matrix, spec)
        codes = np.empty((self.n_features, len(target.kept_labels)), dtype=code_dtype(most))
        options = {"max_bins": spec.max_bins, "weights": target.kept_weight, "run": thread_map(spec.n_jobs)}
        return bin_blocks(matrix.columns(target.kept), codes, **options)

    def _bin_stored(
        self, matrix: SparseRows, spec: FitSpec
    ) -> tuple[NDArray[np.unsignedinteger], SparseCodes, BinValues]:
        """Return a matrix of codes that has no rows, the codes of the stored values, and the bins."""
        self._check_sparse(matrix, spec)
        columns, run = matrix.stored_columns(self.target.kept), thread_map(spec.n_jobs)
        sparse, values = bin_sparse(columns, max_bins=spec.max_bins, weights=self.target.kept_weight, run=run)
        return np.empty((self.n_features, 0), dtype=np.uint8), sparse, values

    def _grow_some(self, growth: Growth, keys: list[int]) -> Grown:
        """Yield indices of keys and their trees, as they are grown."""
        return grow_batches(growth, self._part, keys, self._spec.n_jobs, self._spare)

    def _end_growing(self) -> None:
        """Release the buffers."""
        self._spare.clear()

"""Training rows in the memory of this process: one part."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.coding import Coding
from aucforest.fitting.growing import grow_batches, run_in_threads
from aucforest.fitting.job import grow_missing
from aucforest.fitting.out_of_bag import SumRows
from aucforest.fitting.parts import Growth, Part
from aucforest.fitting.plan import FitSize, check_fit
from aucforest.fitting.spec import FitSpec
from aucforest.fitting.target import Target
from aucforest.tables.columns import Categories, feature_kinds
from aucforest.tables.sparse import SparseRows
from aucforest.tree.binning import BinnedMatrix, bin_blocks, bin_matrix, code_dtype
from aucforest.tree.features import NUMERIC
from aucforest.tree.tree import Tree


class TrainingTable(Protocol):
    """Who holds the training rows: this process, files, or the workers of a cluster."""

    @property
    def target(self) -> Target:
        """Labels and weights of all rows."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def names(self) -> Sequence[str] | None:
        """Names of the features, where they have some."""

    @property
    def X(self) -> Any:
        """A matrix, or what gives the rows of some numbers as trees read them: elsewhere those of `FitSpec.scored`."""

    @property
    def sum_rows(self) -> SumRows | None:
        """What sums out of bag where the rows are; None in this process."""

    def code(self, spec: FitSpec) -> Coding:
        """Choose codes for the values, encode rows of positive weight, and refuse what would take too much memory."""

    def grow(self, variant_of: Mapping[int, int]) -> list[Tree]:
        """Return trees, given by number and variant, in the order given."""


class RowsInMemory:
    """Training rows as a matrix, with codes for categories, or as a sparse one; see `TrainingTable`."""

    sum_rows: SumRows | None = None

    def __init__(
        self, X: NDArray[Any] | SparseRows, names: Sequence[str] | None, categories: Categories, target: Target
    ) -> None:
        self.X, self.names, self.target, self._categories = X, names, target, categories
        self.n_features = X.shape[1]

    def code(self, spec: FitSpec) -> Coding:
        """Choose codes for the values, and encode the rows of positive weight."""
        target, n_classes = self.target, len(self.target.classes)
        binned = self._bin_sparse(self.X, spec) if isinstance(self.X, SparseRows) else self._bin(self.X, spec)
        coding = Coding(self._categories, binned.values)
        self._check(spec, int(coding.n_bins.max()) + 1)
        self._spec, self._growth = spec, Growth.of(spec, coding, len(target.kept_labels), n_classes)
        self._part = Part(binned.codes, target.kept_labels, spec.weights, spec.sampler)
        return coding

    def _check(self, spec: FitSpec, n_codes: int) -> None:
        """Refuse a fit that takes too much memory."""
        n_rows, n_classes = len(self.target.kept_labels), len(self.target.classes)
        check_fit(FitSize.of(spec, n_rows, self.n_features, n_classes, n_codes), spec.n_threads, spec.n_sums)

    def _bin(self, matrix: NDArray[Any], spec: FitSpec) -> BinnedMatrix:
        """Return the codes of the rows of positive weight."""
        target, by_set = self.target, feature_kinds(self._categories, self.n_features) != NUMERIC
        X = matrix if target.kept is None else matrix[target.kept]
        run = run_in_threads(spec.n_jobs)
        return bin_matrix(X, max_bins=spec.max_bins, weights=target.kept_weight, run=run, by_set=by_set)

    def _bin_sparse(self, matrix: SparseRows, spec: FitSpec) -> BinnedMatrix:
        """Return the same of a sparse matrix: codes are dense, one byte each, or more if `max_bins` is None."""
        target, most = self.target, min(matrix.most_stored + 1, spec.max_bins or matrix.most_stored + 1)
        self._check(spec, most + 1)
        codes = np.empty((self.n_features, len(target.kept_labels)), dtype=code_dtype(most))
        options = {"max_bins": spec.max_bins, "weights": target.kept_weight, "run": run_in_threads(spec.n_jobs)}
        return bin_blocks(matrix.columns(target.kept), codes, **options)

    def grow(self, variant_of: Mapping[int, int]) -> list[Tree]:
        """Return trees, given by number and variant."""
        spec, part = self._spec, self._part
        grow = partial(grow_batches, part=part, n_jobs=spec.n_jobs)
        return grow_missing(spec, self._growth, variant_of, grow)


class SomeRows:
    """Some rows of a matrix that is not there, given by rising numbers: ``rows[numbers]`` is a matrix of those."""

    def __init__(self, numbers: NDArray[np.int64], matrix: NDArray[Any]) -> None:
        self._numbers, self._matrix = numbers, matrix

    def __getitem__(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows of some numbers, which must be known."""
        places = np.searchsorted(self._numbers, numbers)
        assert np.array_equal(self._numbers[places], numbers)
        return self._matrix[places]

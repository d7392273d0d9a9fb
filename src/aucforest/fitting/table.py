"""The interface of training data for a fit: encoding of the values, and growing of trees."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._progress import progress_bar
from aucforest.columns.dates import Dates
from aucforest.columns.expansion import FoundCategories
from aucforest.columns.target_rates import INTERACTIONS, SETS, RateTable, TargetRates
from aucforest.fitting.coding import Coding
from aucforest.fitting.job import JobFolder
from aucforest.fitting.out_of_bag import RatedRows, SumRows
from aucforest.fitting.parts import Grown, Growth, Part
from aucforest.fitting.plan import check_trees
from aucforest.fitting.spec import FitSpec, tree_keys
from aucforest.fitting.target import Target
from aucforest.fitting.target_rates import (
    CodedRows,
    ColumnSample,
    LeftOutTotalsFinder,
    RateWeights,
    choose_rates,
    prior_frequencies,
    sampled_rows,
)
from aucforest.tree.samples import SparseCodes
from aucforest.tree.tree import Tree


class TrainingTable(ABC):
    """Training data in this process, in files, or on the workers of a cluster."""

    target: Target  # labels and weights of all rows
    n_features: int  # number of features, target rates excluded; `code` adds those that are found by the labels
    names: Sequence[str] | None  # names of the columns, or None
    dates: Dates  # the features that columns of dates become
    X: Any  # a matrix, or an object that returns rows by index, at least those in `FitSpec.rows_with_values`
    categorical: Sequence[int] = ()  # the columns that are known to be categorical before they are read
    found: FoundCategories | None = None  # the categories that are found by the labels; None before the search
    # Target rates of another forest of the same features, to use here, and sample weights for them, (n_kept,).
    rates: TargetRates | None = None
    rate_weight: NDArray[np.float64] | None = None
    additive_interactions: tuple[RateTable, ...] = ()  # for the additive model of a stack; set when rates are chosen
    sum_rows: SumRows | None = None  # computes out-of-bag sums; None if all rows are in `X`
    _spec: FitSpec
    _coding: Coding
    _growth: Growth
    # The codes of the rows of positive weight; empty if they are in other processes.
    _codes: NDArray[np.unsignedinteger] = np.empty((0, 0), dtype=np.uint8)
    _release: Callable[[], None] | None = None  # removes the codes from memory if they are in a mapped file
    _sparse: SparseCodes | None = None
    _weighting: RateWeights | None = None  # converts sample weights to weights in target rates; None without rates
    _rate_weights: NDArray[np.float64] | None = None  # weights of rows in target rates, see `Part`
    _left_out: LeftOutTotalsFinder | None = None  # the totals that out-of-bag target rates leave out
    _job: JobFolder | None = None  # stores grown trees

    def code(self, spec: FitSpec) -> Coding:
        """Choose codes, and encode rows of positive weight; raise ValueError if a fit would take too much memory."""
        self._spec = spec
        coding = self._choose_coding()
        self.n_features = coding.n_features
        self._encode_rows(coding)
        self._coding = self._choose_rates(coding) if coding.rated else coding
        self._growth = Growth.of(spec, self._coding, len(self.target.kept_labels), len(self.target.classes))
        return self._coding

    def may_have_rates(self, spec: FitSpec) -> bool:
        """Return whether a column may have target rates, as far as this is known before the rows are read."""
        return len(self.categorical) > 0 or self._known(spec) != {}

    def _known(self, spec: FitSpec) -> FoundCategories | None:
        """Return the categories that are found by the labels, or None if they must be searched."""
        if self.found is None and spec.numbers.start > 0:  # a warm start uses those of the existing trees
            return spec.found
        return {} if spec.encodings == (SETS,) else self.found

    @abstractmethod
    def _choose_coding(self) -> Coding:
        """Choose bins and categories, without target rates."""

    @abstractmethod
    def _encode_rows(self, coding: Coding) -> None:
        """Encode the rows of positive weight."""

    @abstractmethod
    def _grow_trees(self, growth: Growth, keys: list[int]) -> Grown:
        """Yield indices of keys and their trees, as they are grown."""

    def _choose_rates(self, coding: Coding) -> Coding:
        """Return the coding with target rates, and append out-of-bag target rates to `X`."""
        target, n_classes = self.target, len(self.target.classes)
        weight = target.kept_weight if self.rates is None else self.rate_weight
        self._weighting = weighting = RateWeights.of(weight, self._spec.sampler, n_classes)
        self._rate_weights = weighting.in_samples(weight)
        rates = self._count_rates(coding, weighting) if self.rates is None else self.rates
        # `cells_of` must not refer to self, because a cycle would keep the mapped file open.
        codes, release = self._codes, self._release

        def cells_of(number: int) -> NDArray[np.int64]:
            cells = coding.cell_finder.cells(rates.tables[number], codes)
            if release is not None:
                release()
            return cells

        integers = weighting.integers(weight)
        self._left_out = LeftOutTotalsFinder(target.labels, target.kept, integers, n_classes, target.groups, cells_of)
        self.X = RatedRows(self.X, rates, self._left_out)
        return replace(coding, rates=rates)

    def _count_rates(self, coding: Coding, weighting: RateWeights) -> TargetRates:
        """Choose the tables of target rates, or take those of a warm start, and count their totals over all rows."""
        rates, target, spec = self._spec.rates, self.target, self._spec
        if rates is None:
            samples = (self._sample_column(coding, feature) for feature in coding.rated)
            with_interactions = INTERACTIONS in spec.encodings
            rates, self.additive_interactions = choose_rates(
                coding.cell_finder, samples, target.kept_labels, weighting.by_class, with_interactions
            )
        for table in rates.tables:
            if table.feature not in coding.rated:
                raise ValueError(
                    f"warm_start: column {table.feature} has different categories than in the previous fit"
                )
        integers = weighting.integers(target.kept_weight)
        frequencies = prior_frequencies(target.kept_labels, integers, weighting.by_class)
        all_totals = self._count_cells(coding, weighting, rates.tables)
        tables = tuple(table._replace(totals=totals) for table, totals in zip(rates.tables, all_totals, strict=True))
        return rates._replace(tables=tables, frequencies=frequencies, factors=weighting.factors)

    def _sample_column(self, coding: Coding, feature: int) -> ColumnSample:
        """Return a sample of rows, from which the target rates of a column are chosen."""
        rows = CodedRows(self._codes, self.target.kept_labels, release=self._release)
        return ColumnSample(feature, rows, sampled_rows(rows, coding.digits, feature, len(rows.labels)))

    def _count_cells(
        self, coding: Coding, weighting: RateWeights, tables: Sequence[RateTable]
    ) -> list[NDArray[np.int64]]:
        """Return the class totals of the cells of each table, over the rows of positive weight."""
        integers = weighting.integers(self.target.kept_weight)
        rows = CodedRows(self._codes, self.target.kept_labels, integers, self._release)
        return [coding.cell_finder.count(table, rows, len(self.target.classes)) for table in tables]

    def _make_part(self, *, copies_rows: bool = False) -> Part:
        """Return all rows of positive weight as a part. With target rates, each tree grows from copies of its rows."""
        spec, labels = self._spec, self.target.kept_labels
        copies_rows |= self._weighting is not None and spec.sampler is not None
        part = Part(self._codes, labels, spec.weights, spec.sampler, copies_rows, self._sparse)
        return part._replace(rate_weights=self._rate_weights)

    def _end_growing(self) -> None:  # noqa: B027, most tables keep nothing
        """Release memory that only growing needs, after the last tree."""

    def grow(self, variant_of: Mapping[int, int]) -> list[Tree]:
        """Return trees, given their variants by number. Trees that are not in the job folder are grown and saved."""
        spec, job, growth = self._spec, self._job, self._growth.for_trees(self._spec.seed, variant_of)
        trees = {} if job is None else job.trees(growth.kinds, growth.n_classes, variant_of)
        missing = [number for number in variant_of if number not in trees]
        total, n_before = len(spec.numbers), min(variant_of) - spec.numbers.start + len(trees)
        n_bytes, n_nodes = sum(tree.nbytes for tree in trees.values()), sum(tree.n_nodes for tree in trees.values())
        is_last = n_before + len(missing) == total
        with progress_bar(total=total, initial=n_before, desc="trees", leave=is_last, verbose=spec.verbose) as progress:
            for indices, grown in self._grow_trees(growth, tree_keys(spec.seed, missing)) if missing else ():
                by_number = dict(sorted(zip([missing[index] for index in indices], grown, strict=True)))
                trees |= by_number
                n_bytes += sum(tree.nbytes for tree in grown)
                n_nodes += sum(tree.n_nodes for tree in grown)
                check_trees(n_bytes, len(trees), n_nodes, total)
                if job is not None:
                    job.save(list(by_number), list(by_number.values()), [variant_of[number] for number in by_number])
                progress.update(len(grown))
        if is_last:
            self._end_growing()
        return [trees[number] for number in variant_of]

    def close(self) -> None:
        """Release the job folder."""
        if self._job is not None:
            self._job.close()


class RowsWithValues:
    """Some rows of training data that are not in memory, selected by their indices in the training data."""

    def __init__(self, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        self._rows, self._values = rows, values

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return rows by their indices, all of which must be stored."""
        indices = np.searchsorted(self._rows, rows)
        assert np.array_equal(self._rows[indices], rows)
        return self._values[indices]

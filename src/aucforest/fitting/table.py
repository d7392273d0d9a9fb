"""The interface of training data for a fit: coding of the values, and growing of trees."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._progress import progress_bar
from aucforest.fitting.coding import Coding
from aucforest.fitting.job import JobFolder
from aucforest.fitting.out_of_bag import SumRows
from aucforest.fitting.parts import Grown, Growth
from aucforest.fitting.plan import check_trees
from aucforest.fitting.spec import FitSpec, tree_keys
from aucforest.fitting.target import Target
from aucforest.tables.dates import Dates
from aucforest.tree.tree import Tree


class TrainingTable(ABC):
    """Training data in this process, in files, or on the workers of a cluster."""

    target: Target  # labels and weights of all rows
    n_features: int  # of the trees
    names: Sequence[str] | None  # of the columns, if they have names
    dates: Dates  # what is made of columns of dates
    X: Any  # a matrix, or an object that returns rows by number; outside of memory those of `FitSpec.rows_with_values`
    may_have_rates: bool = True  # whether a column may have so many categories that it has target rates
    sum_rows: SumRows | None = None  # computes out-of-bag sums where the rows are; None for this process
    _spec: FitSpec
    _growth: Growth
    _job: JobFolder | None = None  # stores grown trees

    @abstractmethod
    def code(self, spec: FitSpec) -> Coding:
        """Choose codes, and encode rows of positive weight; raise ValueError if a fit would take too much memory."""

    @abstractmethod
    def _grow_some(self, growth: Growth, keys: list[int]) -> Grown:
        """Yield indices of keys and their trees, as they are grown."""

    def _end_growing(self) -> None:  # noqa: B027, most tables keep nothing
        """Release what only growing needs, after the last tree."""

    def grow(self, variant_of: Mapping[int, int]) -> list[Tree]:
        """Return trees, given their numbers and variants; those in the job folder are read, others grown and saved."""
        spec, job, growth = self._spec, self._job, self._growth.of_trees(self._spec.seed, variant_of)
        trees = {} if job is None else job.trees(growth.kinds, growth.n_classes, variant_of)
        missing = [number for number in variant_of if number not in trees]
        total, n_before = len(spec.numbers), min(variant_of) - spec.numbers.start + len(trees)
        is_last, n_bytes, largest = n_before + len(missing) == total, sum(tree.nbytes for tree in trees.values()), 0.0
        with progress_bar(total=total, initial=n_before, desc="trees", leave=is_last, verbose=spec.verbose) as progress:
            for indices, grown in self._grow_some(growth, tree_keys(spec.seed, missing)) if missing else ():
                by_number = dict(sorted(zip([missing[index] for index in indices], grown, strict=True)))
                trees |= by_number
                # Trees of one variant may be larger than those of another.
                n_bytes += sum(tree.nbytes for tree in grown)
                if n_bytes > largest * len(trees):
                    largest = n_bytes / len(trees)
                    check_trees(n_bytes, len(trees), grown[0].n_nodes, total)
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


class SomeRows:
    """Some rows of a matrix that is not in memory, indexed by their numbers in the whole matrix."""

    def __init__(self, numbers: NDArray[np.int64], matrix: NDArray[Any]) -> None:
        self._numbers, self._matrix = numbers, matrix

    def __getitem__(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return rows by their numbers, all of which must be stored."""
        indices = np.searchsorted(self._numbers, numbers)
        assert np.array_equal(self._numbers[indices], numbers)
        return self._matrix[indices]

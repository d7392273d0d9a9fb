"""What a fit asks of the training rows, whoever holds them: codes for the values, and trees."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from aucforest.fitting.coding import Coding
from aucforest.fitting.job import JobFolder
from aucforest.fitting.out_of_bag import SumRows
from aucforest.fitting.parts import Grown, Growth
from aucforest.fitting.plan import check_trees
from aucforest.fitting.spec import FitSpec, tree_keys
from aucforest.fitting.target import Target
from aucforest.tree.tree import Tree


class TrainingTable(ABC):
    """Who holds the training rows: this process, files, or the workers of a cluster."""

    target: Target  # labels and weights of all rows
    n_features: int
    names: Sequence[str] | None  # of the features, where they have some
    X: Any  # a matrix, or what gives the rows of some numbers as trees read them: elsewhere those of `FitSpec.scored`
    sum_rows: SumRows | None = None  # sums out of bag where the rows are; None in this process
    _spec: FitSpec
    _growth: Growth
    _job: JobFolder | None = None  # keeps what is done

    @abstractmethod
    def code(self, spec: FitSpec) -> Coding:
        """Choose codes for the values, encode rows of positive weight, and refuse what would take too much memory."""

    @abstractmethod
    def _grow_some(self, growth: Growth, keys: list[int]) -> Grown:
        """Yield places of keys and their trees, as they are done."""

    def grow(self, variant_of: Mapping[int, int]) -> list[Tree]:
        """Return trees, given by number and variant: those of the job folder; others are saved there when grown."""
        spec, job, growth = self._spec, self._job, self._growth.of_trees(self._spec.seed, variant_of)
        trees = {} if job is None else job.trees(growth.kinds, growth.n_classes, variant_of)
        missing = [number for number in variant_of if number not in trees]
        total, n_before = len(spec.numbers), min(variant_of) - spec.numbers.start + len(trees)
        is_last, n_bytes, largest = n_before + len(missing) == total, sum(tree.nbytes for tree in trees.values()), 0.0
        with tqdm(total=total, initial=n_before, desc="trees", leave=is_last, disable=not spec.verbose) as progress:
            for places, grown in self._grow_some(growth, tree_keys(spec.seed, missing)) if missing else ():
                by_number = dict(sorted(zip([missing[place] for place in places], grown, strict=True)))
                trees |= by_number
                # Trees of one variant may be larger than those of another.
                n_bytes += sum(tree.nbytes for tree in grown)
                if n_bytes > largest * len(trees):
                    largest = n_bytes / len(trees)
                    check_trees(n_bytes, len(trees), grown[0].n_nodes, total)
                if job is not None:
                    job.save(list(by_number), list(by_number.values()), [variant_of[number] for number in by_number])
                progress.update(len(grown))
        return [trees[number] for number in variant_of]

    def close(self) -> None:
        """Let others use the job folder."""
        if self._job is not None:
            self._job.close()


class SomeRows:
    """Some rows of a matrix that is not there, given by rising numbers: ``rows[numbers]`` is a matrix of those."""

    def __init__(self, numbers: NDArray[np.int64], matrix: NDArray[Any]) -> None:
        self._numbers, self._matrix = numbers, matrix

    def __getitem__(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows of some numbers, which must be known."""
        places = np.searchsorted(self._numbers, numbers)
        assert np.array_equal(self._numbers[places], numbers)
        return self._matrix[places]

"""Rows in parts: what a task is given of the training data."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.bootstrap import RowDraws
from aucforest.fitting.growing import TrainingSet, fit_fixed_point
from aucforest.fitting.spec import GrowthParams
from aucforest.tree.binning import BinnedMatrix, BinValues
from aucforest.tree.samples import FixedPoint


class CodedPart(NamedTuple):
    """Rows that follow each other, at least one; all parts but the last are of whole blocks, `bootstrap.BLOCK_ROWS`."""

    first_row: int  # its number among all rows that trees draw from
    codes: NDArray[np.unsignedinteger]  # (n_features, n_rows)
    labels: NDArray[np.uint16]
    weights: NDArray[np.float64] | None  # None when every row counts 1
    draws: RowDraws | None  # those of all rows, with the members of these; None where each tree sees all rows

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)


class Growth(NamedTuple):
    """What the trees of a fit share beside the rows: small."""

    n_rows: int  # of the fit
    n_draws: int  # the size of the bootstrap sample of a tree, or all rows: a tree has at most so many samples
    most_weight: int  # the most that all samples of a tree can weigh, in units
    params: GrowthParams  # without draws: parts have them
    n_bins: NDArray[np.int64]  # (n_features,)
    values: BinValues
    n_classes: int
    kinds: NDArray[np.int8]  # (n_features,)
    fixed: FixedPoint | None  # None where every row counts 1, or where the units of weights differ from tree to tree


def describe_growth(training: TrainingSet, params: GrowthParams) -> Growth:
    """Return what growing over parts of these rows needs beside them."""
    n_rows = len(training.labels)
    n_draws = params.n_draws(n_rows)
    fixed = fit_fixed_point(training, params, n_draws)
    most_weight = n_draws
    if fixed is not None and training.weights is not None:
        most_weight *= int(fixed.apply(training.weights.max(keepdims=True))[0])
    _, n_bins, values = training.binned
    params = replace(params, draws=None)
    return Growth(n_rows, n_draws, most_weight, params, n_bins, values, training.n_classes, training.kinds, fixed)


def cut_into_parts(training: TrainingSet, draws: RowDraws | None, bounds: list[int]) -> list[CodedPart]:
    """Return views of the rows between bounds, which are multiples of `bootstrap.BLOCK_ROWS` but for the last."""
    return [
        CodedPart(
            start,
            training.binned.codes[:, start:stop],
            training.labels[start:stop],
            None if training.weights is None else training.weights[start:stop],
            None if draws is None else draws.of_part(start, stop - start),
        )
        for start, stop in pairwise(bounds)
    ]


class Rows(NamedTuple):
    """Samples of a node in one part: their rows, and how often each is in the bootstrap sample."""

    codes: NDArray[np.unsignedinteger]  # (n_features, n_rows)
    labels: NDArray[np.uint16]
    counts: NDArray[np.uint16]
    weights: NDArray[np.float64] | None


def join_parts(growth: Growth, parts: Sequence[CodedPart] | Sequence[Rows]) -> TrainingSet:
    """Return the rows of all parts, in order, as one process grows from them."""
    weights = [part.weights for part in parts if part.weights is not None]
    codes = np.concatenate([part.codes for part in parts], axis=1)
    return TrainingSet(
        BinnedMatrix(codes, growth.n_bins, growth.values),
        np.concatenate([part.labels for part in parts]),
        np.concatenate(weights) if weights else None,
        growth.n_classes,
        growth.kinds,
    )

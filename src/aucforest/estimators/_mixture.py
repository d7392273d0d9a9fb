"""Mixed forests: the choice of the criterion, splitter and encoding of each tree by out-of-bag AUC.

A variant is a pair of a criterion and a splitter. An encoding is the way in which a tree reads columns of many
categories.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.estimators._evidence import SCORED_TREES

# Minimum number of trees of each variant and encoding before the first evaluation. The numbers of trees at evaluations
# do not depend on n_estimators, so that a larger forest starts with the trees of a smaller one.
_FIRST_TREES = 4
# Number of trees before the last evaluation of several encodings. This evaluation is needed because each encoding has
# too few of the first SCORED_TREES trees (benchmarks/DEFAULTS.md).
_TREES_WITH_ENCODINGS = 192
# Encodings with a weight below this after the first evaluation are dropped.
_LEAST_WEIGHT = 0.01


def describe_alternatives(
    names: Mapping[str, Sequence[str]], n_trees: NDArray[np.int64], scores: NDArray[np.float64] | None
) -> dict[str, NDArray[Any]]:
    """Return the attribute `mixture_` or `encoding_mixture_` of a forest: columns with a value for each alternative.

    An alternative is a variant or an encoding. `scores` are the out-of-bag scores and their standard errors, (2,
    n_alternatives or more), or None without out-of-bag samples.
    """
    proportion = n_trees / max(n_trees.sum(), 1)
    oob_score, oob_score_std = np.full((2, len(n_trees)), np.nan) if scores is None else scores[:, : len(n_trees)]
    numbers = {"n_trees": n_trees, "proportion": proportion, "oob_score": oob_score, "oob_score_std": oob_score_std}
    return {column: np.array(values) for column, values in names.items()} | numbers


def assign_alternatives(
    weights: NDArray[np.float64], existing: Sequence[int | None], strata: Sequence[int], n_trees: int
) -> list[int]:
    """Return the alternatives (variants or encodings) of n_trees trees, given those of the existing trees.

    `strata` has the stratum of each tree: its variant if encodings are assigned, or 0 if variants are assigned. A tree
    without an alternative gets the one with the largest shortage in the stratum: weight times number of trees, minus
    number of trees of the alternative. Among equal shortages, the shortage in the whole forest decides. Existing trees
    of alternatives that are not in `weights` are not counted.
    """
    # Lists of Python numbers, because small arrays are several times slower.
    proportions, assigned = weights.tolist(), [*existing, *[None] * (n_trees - len(existing))]
    by_stratum = [[0] * len(weights) for _ in range(max(strata, default=0) + 1)]
    for stratum, alternative in zip(strata, existing):
        if alternative is not None and alternative < len(weights):
            by_stratum[stratum][alternative] += 1
    for index, (stratum, alternative) in enumerate(zip(strata, assigned)):
        if alternative is None:
            counts, total = by_stratum[stratum], list(map(sum, zip(*by_stratum)))
            n_in_stratum, n_total = sum(counts) + 1, sum(total) + 1
            shortages = [(p * n_in_stratum - counts[i], p * n_total - total[i]) for i, p in enumerate(proportions)]
            assigned[index] = chosen = shortages.index(max(shortages))
            counts[chosen] += 1
    return [alternative for alternative in assigned if alternative is not None]


def stages_of(n_variants: int, n_encodings: int, n_trees: int) -> list[range]:
    """Return the ranges of tree indices before, between and after the evaluations of variants and encodings."""
    n_alternatives = max(n_variants, n_encodings)
    first = _FIRST_TREES * n_alternatives
    evaluated = {first, max(first, SCORED_TREES)} if n_alternatives > 1 else set[int]()
    if n_encodings > 1:
        evaluated.add(max(first, _TREES_WITH_ENCODINGS))
    return [range(*pair) for pair in pairwise([0, *sorted(n for n in evaluated if n < n_trees), n_trees])]


def weights_of_trees(existing: Sequence[int], weights: NDArray[np.float64], *, chosen: bool) -> NDArray[np.float64]:
    """Return the proportion of each alternative in the existing trees.

    If an alternative has no trees, `weights` are returned instead, unless the alternatives were `chosen` by scores.
    """
    n_trees = np.bincount(existing, minlength=len(weights))[: len(weights)]
    return n_trees / n_trees.sum() if chosen or n_trees.min() > 0 else weights


def drop_small(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Set small weights to 0, and normalize the others."""
    weights = np.where(weights < _LEAST_WEIGHT, 0.0, weights)
    return np.asarray(weights / weights.sum())

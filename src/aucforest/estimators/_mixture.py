"""Mixed forests: the choice of the criterion, splitter and encoding of each tree by out-of-bag AUC."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.estimators._evidence import SCORED_TREES, mixture_weights

# Number of trees of each variant before the first evaluation. Evaluations do not depend on n_estimators. So a larger
# forest starts with the trees of a smaller one, except for trees of dropped encodings.
_FIRST_TREES = 4
# Several encodings need one more evaluation, after this number of trees, because the first SCORED_TREES trees have too
# few of each (benchmarks/DEFAULTS.md).
_TREES_WITH_ENCODINGS = 192
# The factor c in the weights exp(c n g) of variants, where n is the effective number of rows and g the gain in AUC. It
# was chosen with benchmarks/ranking.py.
VARIANT_FACTOR = 2.0


def describe_alternatives(
    names: Mapping[str, Sequence[str]], n_trees: NDArray[np.int64], scores: NDArray[np.float64] | None
) -> dict[str, NDArray[Any]]:
    """Return the attribute `mixture_` or `encoding_mixture_` of a forest: a value for each variant or encoding.

    `scores` are the out-of-bag scores and their standard errors; None without out-of-bag samples.
    """
    proportion = n_trees / max(n_trees.sum(), 1)
    oob_score, oob_score_std = np.full((2, len(n_trees)), np.nan) if scores is None else scores[:, : len(n_trees)]
    numbers = {"n_trees": n_trees, "proportion": proportion, "oob_score": oob_score, "oob_score_std": oob_score_std}
    return {column: np.array(values) for column, values in names.items()} | numbers


def assign_alternatives(
    weights: NDArray[np.float64], existing: Sequence[int | None], groups: Sequence[int], n_trees: int
) -> list[int]:
    """Return the variants or the encodings of n_trees trees, given those of the existing trees.

    A new tree, or an existing one with None, gets the alternative with the largest shortage in its group: weight times
    group size, minus number of trees. Ties are resolved by the same rule for all trees together. For encodings, the
    groups are variants. Existing trees of alternatives beyond `weights` are not counted.
    """
    # Lists of Python numbers, because small arrays are several times slower.
    proportions, assigned = weights.tolist(), [*existing, *[None] * (n_trees - len(existing))]
    by_group, total = [[0] * len(weights) for _ in range(max(groups, default=0) + 1)], [0] * len(weights)
    for group, alternative in zip(groups, existing):
        if alternative is not None and alternative < len(weights):
            by_group[group][alternative] += 1
            total[alternative] += 1
    for index, (group, alternative) in enumerate(zip(groups, assigned)):
        if alternative is None:
            counts, n_in_group, n_total = by_group[group], sum(by_group[group]) + 1, sum(total) + 1
            shortages = [(p * n_in_group - counts[i], p * n_total - total[i]) for i, p in enumerate(proportions)]
            assigned[index] = chosen = shortages.index(max(shortages))
            counts[chosen] += 1
            total[chosen] += 1
    return [alternative for alternative in assigned if alternative is not None]


def stages_of(n_variants: int, n_encodings: int, n_trees: int) -> list[range]:
    """Return the ranges of tree indices between the evaluations of variants and encodings."""
    n_alternatives = max(n_variants, n_encodings)
    first = _FIRST_TREES * n_alternatives
    evaluated = {first, max(first, SCORED_TREES)} if n_alternatives > 1 else set[int]()
    if n_encodings > 1:
        evaluated.add(max(first, _TREES_WITH_ENCODINGS))
    return [range(*pair) for pair in pairwise([0, *sorted(n for n in evaluated if n < n_trees), n_trees])]


class Mixture:
    """Weights of the variants or of the encodings of a forest.

    At first all weights are equal. After each evaluation they are exp(factor * (g - max g)), normalized, where g is
    the gain in AUC of the forest by more trees of a variant or encoding.
    """

    def __init__(self, n_alternatives: int) -> None:
        self.weights = np.full(n_alternatives, 1.0 / n_alternatives)

    def set_from_trees(self, existing: Sequence[int], *, were_chosen: bool = False) -> None:
        """Set the weights to the proportions of the existing trees, given the alternative of each.

        If an alternative has no trees, the weights stay equal. If they `were_chosen`, it was dropped and gets weight 0.
        """
        n_trees = np.bincount(existing, minlength=len(self.weights))[: len(self.weights)]
        if were_chosen or n_trees.min() > 0:
            self.weights = n_trees / n_trees.sum()

    def set_from_gains(self, gains: NDArray[np.float64], factor: float) -> None:
        """Set the weights from the gains, unless an AUC is not defined."""
        if not np.any(np.isnan(gains)):
            self.weights = mixture_weights(gains, factor)

    def drop_small(self) -> bool:
        """Set weights below 1 % to 0, and return whether there are any."""
        is_small = self.weights < 0.01
        self.weights = np.where(is_small, 0.0, self.weights)
        self.weights /= self.weights.sum()
        return bool(np.any(is_small))

"""Mixed forests: the choice of the criterion, splitter and encoding of each tree by out-of-bag AUC."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.estimators._evidence import SCORED_TREES, weights_of

# Number of trees of each variant before the first evaluation. Variants are evaluated at fixed numbers of trees, so that
# a larger forest starts with the trees of a smaller one, except for trees of encodings that were dropped.
_FIRST_TURNS = 4
# The factor c in the weights exp(c n g), where n is the effective number of rows; chosen with benchmarks/ranking.py.
STRENGTH = 2.0


def describe_alternatives(
    names: Mapping[str, Sequence[str]], n_trees: NDArray[np.int64], scores: NDArray[np.float64] | None
) -> dict[str, NDArray[Any]]:
    """Return the attribute `mixture_` or `encoding_mixture_` of a forest: a value for each variant or encoding.

    `scores` are the out-of-bag scores and their standard errors; None without out-of-bag samples.
    """
    proportion = n_trees / max(n_trees.sum(), 1)
    oob_score, oob_score_std = np.full((2, len(n_trees)), np.nan) if scores is None else scores[:, : len(n_trees)]
    numbers = {"n_trees": n_trees, "proportion": proportion, "oob_score": oob_score, "oob_score_std": oob_score_std}
    return {name: np.array(each) for name, each in names.items()} | numbers


def assign_encodings(
    weights: NDArray[np.float64], variants: Sequence[int], existing: Sequence[int | None]
) -> list[int]:
    """Return the encodings of all trees, given their variants and the existing encodings (None for new trees).

    A tree gets the encoding with the largest shortage, compared to its weight, among the trees of its variant; ties are
    resolved by the shortage among all trees. So the encoding of a tree is independent of its variant.
    """
    shares, encodings = weights.tolist(), [*existing, *[None] * (len(variants) - len(existing))]
    counts = np.zeros((max(variants, default=0) + 1, len(shares)))
    for variant, encoding in zip(variants, existing):
        if encoding is not None:
            counts[variant, encoding] += 1
    for index, variant in enumerate(variants):
        if encodings[index] is None:
            within, total = counts[variant], counts.sum(axis=0)
            shortages = [
                (share * (within.sum() + 1) - within[e], share * (total.sum() + 1) - total[e], -e)
                for e, share in enumerate(shares)
            ]
            encodings[index] = shortages.index(max(shortages))
            within[encodings[index]] += 1
    return [encoding for encoding in encodings if encoding is not None]


class Mixture:
    """Weights of the variants or of the encodings of a forest, and the assignment of trees to variants.

    At first all variants have the same weight. After each evaluation the weights are exp(strength (g - max g)),
    normalized, where g are the gains of the forest from more trees of a variant. Each tree is assigned to the variant
    with the largest shortage compared to its weight. Other variants of a warm start get no more trees.
    """

    def __init__(self, n_variants: int) -> None:
        self.weights = np.full(n_variants, 1.0 / n_variants)
        self.n_trees = np.zeros(n_variants, dtype=np.int64)

    def stages(self, n_trees: int, *, with_evidence: bool) -> list[range]:
        """Return the ranges of tree indices between evaluations."""
        first = _FIRST_TURNS * len(self.weights)
        evaluated = {first, max(first, SCORED_TREES)} if with_evidence and len(self.weights) > 1 else set()
        return [range(*pair) for pair in pairwise([0, *sorted(n for n in evaluated if n < n_trees), n_trees])]

    def assign(self, n_trees: int, existing: Sequence[int]) -> list[int]:
        """Return the variants of new trees among the next n_trees, given the variants of existing trees among them."""
        for variant in existing:
            if variant < len(self.n_trees):
                self.n_trees[variant] += 1
        # Lists of Python numbers, because small arrays are several times slower.
        weights, counts, variants = self.weights.tolist(), self.n_trees.tolist(), []
        for n_before in range(sum(counts), sum(counts) + n_trees - len(existing)):
            shortages = [weight * (n_before + 1) - count for weight, count in zip(weights, counts)]
            variants.append(shortages.index(max(shortages)))
            counts[variants[-1]] += 1
        self.n_trees[:] = counts
        return variants

    def keep(self, existing: Sequence[int]) -> None:
        """Set the weights to the proportions of the variants of existing trees, unless a variant has no trees."""
        n_trees = np.bincount(existing, minlength=len(self.weights))[: len(self.weights)]
        if n_trees.min() > 0:
            self.weights = n_trees / n_trees.sum()

    def weigh(self, gains: NDArray[np.float64], strength: float) -> None:
        """Set the weights of the variants from their gains; the weights do not change if an AUC is not defined."""
        if not np.any(np.isnan(gains)):
            self.weights = weights_of(gains, strength)

    def drop(self) -> bool:
        """Set weights below 1 % to 0, and return whether there are any."""
        is_small = self.weights < 0.01
        self.weights = np.where(is_small, 0.0, self.weights)
        self.weights /= self.weights.sum()
        return bool(np.any(is_small))

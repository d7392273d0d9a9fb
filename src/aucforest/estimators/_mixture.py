"""Mixed forests: the choice of the criterion, splitter and encoding of each tree by out-of-bag AUC."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.estimators._evidence import SCORED_TREES, OutOfBagScores

# Number of trees of each variant before the first evaluation. Variants are evaluated at fixed numbers of trees, so that
# a larger forest begins with the trees of a smaller one, but for those of encodings that it dropped.
_FIRST_TURNS = 4
# The factor c in the weights, chosen with benchmarks/ranking.py; it is multiplied by the effective number of rows.
STRENGTH = 2.0
# The same for encodings, whose gains are in standard errors, chosen with benchmarks/many_categories.py: on noise they
# differ more than variants, which read the same features.
ENCODING_STRENGTH = 1.5
# Encodings of smaller weights at the first evaluation have no trees.
_LEAST_WEIGHT = 0.01


def describe_mixture(
    criteria: Sequence[str],
    splitters: Sequence[str],
    n_trees: NDArray[np.int64],
    scores: NDArray[np.float64],
    errors: NDArray[np.float64],
) -> dict[str, NDArray[Any]]:
    """Return the attribute `mixture_` of a forest: a value for each variant."""
    names = {"criterion": np.array(criteria), "splitter": np.array(splitters)}
    return names | _describe(n_trees, scores, errors)


def describe_encodings(
    encodings: Sequence[str], n_trees: NDArray[np.int64], scores: NDArray[np.float64], errors: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """Return the attribute `encoding_mixture_` of a forest: a value for each encoding."""
    return {"encoding": np.array(encodings)} | _describe(n_trees, scores, errors)


def _describe(
    n_trees: NDArray[np.int64], scores: NDArray[np.float64], errors: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """Return the numbers of trees and the out-of-bag scores of alternatives."""
    proportion = n_trees / max(n_trees.sum(), 1)
    return {"n_trees": n_trees, "proportion": proportion, "oob_score": scores, "oob_score_std": errors}


def assign_encodings(
    weights: NDArray[np.float64], variants: Sequence[int], existing: Sequence[int | None]
) -> list[int]:
    """Return the encodings of trees, given the variants of all of them and the encodings that some of them have.

    A tree gets the encoding that is furthest below its weight among the trees of its variant, or where several are,
    among all trees. So encodings and variants do not depend on each other.
    """
    shares, encodings = weights.tolist(), [*existing, *[None] * (len(variants) - len(existing))]
    counts = np.zeros((max(variants, default=0) + 1, len(shares)))
    for variant, encoding in zip(variants, existing):
        if encoding is not None:
            counts[variant, encoding] += 1
    for index, variant in enumerate(variants):
        if encodings[index] is None:
            own, of_all = counts[variant], counts.sum(axis=0)
            shortages = [
                (share * (own.sum() + 1) - own[e], share * (of_all.sum() + 1) - of_all[e], -e)
                for e, share in enumerate(shares)
            ]
            encodings[index] = shortages.index(max(shortages))
            own[encodings[index]] += 1
    return [encoding for encoding in encodings if encoding is not None]


class Mixture:
    """Assigns the trees of a forest to its variants, one tree after another; or weighs the encodings of trees.

    At first all variants have the same weight. After each evaluation the weights are exp(c n (g - max g)), normalized,
    where g is the gain in out-of-bag AUC of the forest by more trees of a variant (`OutOfBagScores.variant_gains`), and
    n the effective number of rows. On small sets all variants keep about the same number of trees, on large ones few
    variants get nearly all of them. Each tree is assigned to the variant that is furthest below its weight. The trees
    of a warm start may be of other variants, which get no more trees.
    """

    def __init__(self, n_variants: int) -> None:
        self.weights = np.full(n_variants, 1.0 / n_variants)
        self.n_trees = np.zeros(n_variants, dtype=np.int64)

    def stages(self, n_trees: int, *, with_evidence: bool) -> list[range]:
        """Return the numbers of the trees that are grown between two evaluations."""
        first = _FIRST_TURNS * len(self.weights)
        evaluated = {first, max(first, SCORED_TREES)} if with_evidence and len(self.weights) > 1 else set()
        return [range(*pair) for pair in pairwise([0, *sorted(n for n in evaluated if n < n_trees), n_trees])]

    def assign(self, n_trees: int, existing: Sequence[int]) -> list[int]:
        """Return the variants of the next trees, given those of the first ones, which exist and may be of others."""
        for variant in existing:
            if variant < len(self.n_trees):
                self.n_trees[variant] += 1
        # Numbers, because arrays of few of them take several times as long.
        weights, counts, variants = self.weights.tolist(), self.n_trees.tolist(), []
        for n_before in range(sum(counts), sum(counts) + n_trees - len(existing)):
            shortages = [weight * (n_before + 1) - count for weight, count in zip(weights, counts)]
            variants.append(shortages.index(max(shortages)))
            counts[variants[-1]] += 1
        self.n_trees[:] = counts
        return variants

    def keep(self, n_trees: Sequence[int]) -> None:
        """Set the weights to the proportions of existing trees, unless these lack a variant."""
        if min(n_trees) > 0:
            self.weights = np.array(n_trees) / sum(n_trees)

    def weigh(self, gains: NDArray[np.float64], strength: float) -> None:
        """Set the weights of the variants from their gains; they stay as they are if an AUC is not defined."""
        if not np.any(np.isnan(gains)):
            weights = np.exp(strength * (gains - gains.max()))
            self.weights = weights / weights.sum()

    def drop(self) -> bool:
        """Set small weights to 0, and return whether there are some."""
        is_small = self.weights < _LEAST_WEIGHT
        self.weights = np.where(is_small, 0.0, self.weights)
        self.weights /= self.weights.sum()
        return bool(np.any(is_small))

    def scores(
        self, evidence: OutOfBagScores | None, groups: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the out-of-bag scores of the trees of each variant, and their standard errors."""
        n_variants = len(self.weights)
        if evidence is None:
            return np.full(n_variants, np.nan), np.full(n_variants, np.nan)
        scores = evidence.variant_scores(groups)[:n_variants]
        return scores, evidence.standard_errors(scores)

"""Mixed forests: which criterion and splitter each tree is grown by, in proportion to what they earn out of bag."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.estimators._evidence import SCORED_TREES, OutOfBagScores

# Trees of each variant before the first look at what they earn. Looks are taken at fixed numbers of trees, so that a
# forest of more trees begins with the trees of a smaller one.
_FIRST_TURNS = 4
# The factor c of the evidence; see benchmarks/ranking.py.
_STRENGTH = 2.0


def describe_mixture(
    criteria: Sequence[str],
    splitters: Sequence[str],
    n_trees: NDArray[np.int64],
    scores: NDArray[np.float64],
    errors: NDArray[np.float64],
) -> dict[str, NDArray[Any]]:
    """Return the attribute `mixture_` of a forest: a value for each variant."""
    return {
        "criterion": np.array(criteria),
        "splitter": np.array(splitters),
        "n_trees": n_trees,
        "proportion": n_trees / max(n_trees.sum(), 1),
        "oob_score": scores,
        "oob_score_std": errors,
    }


class Mixture:
    """Gives the trees of a forest to its variants, one tree after another.

    At first variants take turns. At each look the weights become exp(c n (g - max g)), where g is what more trees of a
    variant would add to the out-of-bag AUC of the forest and n the number of rows that this is worth: on small sets all
    variants keep about as many trees, on large ones few variants take nearly all. Each tree goes to the variant that
    lacks most to its weight. Trees of a warm start may be of other variants, which get no more.
    """

    def __init__(self, n_variants: int) -> None:
        self.weights = np.full(n_variants, 1.0 / n_variants)
        self.n_trees = np.zeros(n_variants, dtype=np.int64)

    def stages(self, n_trees: int, *, with_evidence: bool) -> list[range]:
        """Return the numbers of the trees from one look to the next."""
        first = _FIRST_TURNS * len(self.weights)
        looks = {first, max(first, SCORED_TREES)} if with_evidence and len(self.weights) > 1 else set()
        return [range(*pair) for pair in pairwise([0, *sorted(look for look in looks if look < n_trees), n_trees])]

    def assign(self, n_trees: int, known: Sequence[int]) -> list[int]:
        """Return the variants of the next trees, after those that are there; these may be of others."""
        for variant in known:
            if variant < len(self.n_trees):
                self.n_trees[variant] += 1
        variants = []
        for _ in range(n_trees - len(known)):
            variant = int(np.argmax(self.weights * (self.n_trees.sum() + 1) - self.n_trees))
            self.n_trees[variant] += 1
            variants.append(variant)
        return variants

    def weigh(self, evidence: OutOfBagScores) -> None:
        """Weigh the variants by what more of their trees would earn."""
        gains = evidence.variant_gains()[: len(self.weights)]
        if not np.any(np.isnan(gains)):
            weights = np.exp(_STRENGTH * evidence.n_rows * (gains - gains.max()))
            self.weights = weights / weights.sum()

    def describe(self, names: list[tuple[str, str]], evidence: OutOfBagScores | None) -> dict[str, NDArray[Any]]:
        """Return what is known of the variants, a value for each."""
        scores = errors = np.full(len(names), np.nan)
        if evidence is not None:
            scores = evidence.variant_scores()[: len(names)]
            errors = evidence.standard_errors(scores)
        criteria, splitters = zip(*names)
        return describe_mixture(criteria, splitters, self.n_trees, scores, errors)

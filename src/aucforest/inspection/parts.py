"""Scoring probabilities that are known already: of all rows, and of random parts of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from aucforest.estimators._oob_score import Scorer, score_probabilities

# How many random parts there are; fewer only when a class has fewer rows.
_MOST_PARTS = 10


@dataclass(frozen=True)
class Part:
    """Some rows to score."""

    # where the rows are among all that are scored
    places: NDArray[np.int64]
    forest: Any
    X: Any
    labels: NDArray[Any]
    sample_weight: NDArray[np.float64] | None
    # as in scikit-learn; None is ROC AUC
    scorer: Scorer | None

    def score(self, proba: NDArray[np.float64]) -> float:
        """Return the score of class probabilities, (n_rows, n_classes)."""
        return score_probabilities(self.forest, self.scorer, self.X, self.labels, proba, self.sample_weight)


def split_into_parts(
    forest: Any, X: Any, rows: Any, scored: NDArray[np.int64], scorer: Scorer | None, seed: int
) -> list[Part]:
    """Return all rows that are scored, then random parts of equal class shares, as far as two hold every class.

    `rows` has labels and sample_weight of X.
    """
    labels = rows.labels[scored]
    counts = np.bincount(labels)
    n_parts = min(_MOST_PARTS, int(counts[counts > 0].min())) if len(labels) else 0
    # Rows in random order within their classes, dealt out in turn.
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    places = [np.arange(len(labels))]
    if n_parts >= 2:
        places += [np.sort(order[part::n_parts]) for part in range(n_parts)]
    weight = rows.sample_weight

    def part(of: NDArray[np.int64]) -> Part:
        chosen = scored[of]
        own = None if weight is None else weight[chosen]
        return Part(of, forest, _safe_indexing(X, chosen), rows.labels[chosen], own, scorer)

    return [part(of) for of in places]

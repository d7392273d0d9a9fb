"""The out-of-bag score against the number of trees."""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest._display import Display
from aucforest._sklearn import safe_indexing
from aucforest.estimators.out_of_bag import OutOfBagScorer, is_roc_auc, training_rows
from aucforest.estimators.out_of_bag_pairs import pairs_of
from aucforest.fitting.out_of_bag import TrainingRows
from aucforest.inspection.models import check_count, check_forest, name_of_score
from aucforest.tables.rows import indexable_rows


@dataclass(repr=False, eq=False)
class OOBCurveDisplay(Display):
    """Plot of the out-of-bag score against the number of trees, to see whether more trees would help.

    Use `from_estimator` to create and plot a display.

    Parameters
    ----------
    n_trees : ndarray of shape (n_points,), int64
        The numbers of trees, ascending.
    scores : ndarray of shape (n_points,), float64
        The out-of-bag score of the first ``n_trees`` trees.
    scoring : str, default="score"
        Name of the score.

    Attributes
    ----------
    line_ : matplotlib line
        The curve.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import OOBCurveDisplay
    >>> X, rings = load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(100, oob_score=True, random_state=0).fit(X, rings >= 12)
    >>> display = OOBCurveDisplay.from_estimator(forest, X, rings >= 12, n_points=4)
    >>> display.n_trees
    array([  1,   5,  22, 100])
    >>> bool(display.scores[-1] == forest.oob_score_)
    True
    """

    n_trees: NDArray[np.int64]
    scores: NDArray[np.float64]
    _: KW_ONLY
    scoring: str = "score"

    @classmethod
    def from_estimator(
        cls,
        forest: Any,
        X: Any,
        y: ArrayLike,
        *,
        scoring: str | Callable[..., float] = "roc_auc",
        n_points: int = 30,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Plot the out-of-bag score of the first trees of a fitted forest.

        A score uses the samples that are out of bag for at least one of the trees, so the first scores use fewer
        samples. All scores use the `shrinkage_`, `calibration_` and `threshold_` of the whole forest.

        Parameters
        ----------
        forest, X, y, scoring, sample_weight
            As in `oob_permutation_importance`.
        n_points : int, default=30
            The maximum number of points, spaced geometrically from one tree to all trees.
        ax
            As in `plot`.

        Returns
        -------
        OOBCurveDisplay

        Raises
        ------
        ValueError, TypeError
            As in `oob_permutation_importance`, or if there are fewer than two points.
        """
        check_forest(forest)
        check_count("n_points", n_points, 2)
        scorer = OutOfBagScorer(forest, scoring)
        X = indexable_rows(X)
        rows = training_rows(forest, X, y, sample_weight)
        pairs, n_trees, scores = pairs_of(forest, rows, forest.n_jobs) if is_roc_auc(scoring) else None, [], []
        for part in first_trees(forest, rows, n_points):
            n_trees.append(part.n_trees)
            X_seen, weights = safe_indexing(X, part.seen), rows.weights_of(part.seen)
            scores.append(scorer.score(X_seen, rows.labels[part.seen], part.proba, weights))
            if pairs is not None:
                scores[-1] = pairs.correct(scores[-1], *part)
        return cls(np.array(n_trees), np.array(scores), scoring=name_of_score(scoring)).plot(ax)

    def _draw(self, ax: Any) -> None:
        (self.line_,) = ax.plot(self.n_trees, self.scores, "o-", markersize=4, linewidth=1.0)
        ax.set(xlabel="number of trees", ylabel=f"out-of-bag {self.scoring}")
        ax.grid(alpha=0.3)


class FirstTrees(NamedTuple):
    """Out-of-bag predictions of the first trees."""

    n_trees: int
    seen: NDArray[np.int64]  # the rows that are out of bag for at least one tree
    proba: NDArray[np.float64]  # class probabilities of these rows


def first_trees(forest: Any, rows: TrainingRows, n_points: int) -> Iterator[FirstTrees]:
    """Yield the predictions of the first trees for geometrically spaced numbers of trees."""
    n_trees = np.unique(np.geomspace(1, len(forest.trees_), n_points).round().astype(np.int64))
    total, n_unseen = np.zeros((len(rows.labels), len(forest.classes_))), np.zeros(len(rows.labels), np.int64)
    for start, stop in pairwise([0, *n_trees.tolist()]):
        (sums,) = forest._sum_out_of_bag(rows, [range(start, stop)])
        total += sums.total
        n_unseen += sums.n_trees
        seen = np.flatnonzero(n_unseen)
        yield FirstTrees(stop, seen, forest._mean_of_trees(total[seen], n_unseen[seen, None]))

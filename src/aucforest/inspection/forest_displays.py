"""Plots of a fitted forest: the variants of a mixed forest, and the out-of-bag score against the number of trees."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest._display import Display
from aucforest._sklearn import safe_indexing
from aucforest.columns.rows import indexable_rows
from aucforest.estimators.out_of_bag import OutOfBagScorer, is_roc_auc, training_rows
from aucforest.estimators.out_of_bag_pairs import OutOfBagPairs
from aucforest.inspection.models import check_count, check_forest, name_of_score


@dataclass(repr=False, eq=False)
class MixtureDisplay(Display):
    """Bar plot of the variants of a mixed forest, which are combinations of a split criterion and a splitter.

    A bar shows the proportion of trees of a variant, with the out-of-bag ROC AUC of these trees. If trees use different
    encodings of columns with many categories, there is also a bar for each encoding. A variant gets more trees if this
    raises the ROC AUC of the whole forest, even if the variant alone has a low ROC AUC. Use `from_estimator` to create
    and plot a display.

    Parameters
    ----------
    names : sequence of str
        The criterion and the splitter of each variant, and the encodings.
    proportions : ndarray of shape (n_variants,), float64
        The proportion of trees of each variant and encoding.
    oob_scores, oob_score_stds : ndarray of shape (n_variants,), float64
        The out-of-bag ROC AUC of these trees and its standard error, as in ``mixture_``. NaN if not computed.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        One bar for each variant, the first at the top, and one for each encoding.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier, datasets, inspection
    >>> X, rings = datasets.load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(100, random_state=0).fit(X, rings >= 18)
    >>> inspection.MixtureDisplay.from_estimator(forest).names[:2]
    ['auc, best', 'gini, best']
    """

    names: Sequence[str]
    proportions: NDArray[np.float64]
    oob_scores: NDArray[np.float64]
    oob_score_stds: NDArray[np.float64]

    @classmethod
    def from_estimator(cls, forest: Any, *, ax: Any = None) -> Self:
        """Plot the variants of a fitted forest.

        Parameters
        ----------
        forest : AUCForestClassifier
            A fitted mixed forest: ``criterion="auto"`` or several criteria, splitters or encodings.
        ax
            As in `plot`.

        Returns
        -------
        MixtureDisplay

        Raises
        ------
        TypeError, NotFittedError, ValueError
            If `forest` is not a fitted forest, or has a single variant.
        """
        check_forest(forest)
        mixtures = [getattr(forest, name) for name in ("mixture_", "encoding_mixture_") if hasattr(forest, name)]
        if not mixtures:
            raise ValueError(f"the forest is not mixed: criterion={forest.criterion!r}, splitter={forest.splitter!r}")
        names: list[str] = []
        for mixture in mixtures:
            if "encoding" in mixture:
                names += [f"encoding: {name}" for name in mixture["encoding"].tolist()]
            else:
                names += map(", ".join, zip(mixture["criterion"].tolist(), mixture["splitter"].tolist()))
        columns = ("proportion", "oob_score", "oob_score_std")
        return cls(names, *(np.concatenate([mixture[name] for mixture in mixtures]) for name in columns)).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 6.4, 0.8 + 0.32 * len(self.names)

    def _draw(self, ax: Any) -> None:
        self.bars_ = ax.barh(self.names, self.proportions, height=0.6)
        pairs = zip(self.oob_scores.tolist(), self.oob_score_stds.tolist())
        labels = ["" if np.isnan(score) else f"{score:.3f} ± {error:.3f}" for score, error in pairs]
        ax.bar_label(self.bars_, labels, padding=4, fontsize="small")
        note = "" if np.all(np.isnan(self.oob_scores)) else "\n(numbers: their ROC AUC, out of bag)"
        ax.set(xlabel=f"proportion of trees{note}", xlim=(0, 1.25 * self.proportions.max()))
        ax.invert_yaxis()
        ax.grid(axis="x", alpha=0.3)


@dataclass(repr=False, eq=False)
class OOBCurveDisplay(Display):
    """Plot of the out-of-bag score against the number of trees, to see whether more trees would help.

    Use `from_estimator` to create and plot a display.

    Parameters
    ----------
    n_trees, scores : ndarray of shape (n_points,), int64 and float64
        The numbers of trees, ascending, and the out-of-bag scores of the first ``n_trees`` trees.
    scoring : str, default="score"
        Name of the score.

    Attributes
    ----------
    line_ : matplotlib line
        The curve.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier, datasets, inspection
    >>> X, rings = datasets.load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(100, oob_score=True, random_state=0).fit(X, rings >= 12)
    >>> display = inspection.OOBCurveDisplay.from_estimator(forest, X, rings >= 12, n_points=4)
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
        samples. All scores use the `shrinkage_`, `calibration_` and `threshold_` of the whole forest. The ROC AUC is
        computed like ``oob_score_``. If the forest has ``oob_optimism_``, this value is subtracted.

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
        pairs, scores = OutOfBagPairs(forest, rows, forest.n_jobs) if is_roc_auc(scoring) else None, []
        n_trees = np.unique(np.geomspace(1, len(forest.trees_), n_points).round().astype(np.int64))
        total, n_oob_trees = np.zeros((len(rows.labels), len(forest.classes_))), np.zeros(len(rows.labels), np.int64)
        for start, stop in pairwise([0, *n_trees.tolist()]):
            (sums,) = forest._sum_out_of_bag(rows, [range(start, stop)])
            total += sums.total
            n_oob_trees += sums.n_trees
            oob_rows = np.flatnonzero(n_oob_trees)
            proba = forest._mean_of_trees(total[oob_rows], n_oob_trees[oob_rows, None])
            X_oob, weights = safe_indexing(X, oob_rows), rows.weights_of(oob_rows)
            score = scorer.score(X_oob, rows.labels[oob_rows], proba, weights)
            scores.append(score if pairs is None else pairs.correct(score, stop, oob_rows, proba))
        return cls(n_trees, np.array(scores), scoring=name_of_score(scoring)).plot(ax)

    def _draw(self, ax: Any) -> None:
        (self.line_,) = ax.plot(self.n_trees, self.scores, "o-", markersize=4, linewidth=1.0)
        ax.set(xlabel="number of trees", ylabel=f"out-of-bag {self.scoring}")
        ax.grid(alpha=0.3)

"""Plot of the variants of a mixed forest: their proportions and their out-of-bag scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from aucforest._display import Display
from aucforest.inspection.models import check_forest


@dataclass(repr=False, eq=False)
class MixtureDisplay(Display):
    """Bar plot of the proportion of trees of each variant of a mixed forest, labeled with its out-of-bag ROC AUC.

    If trees also differ in the encoding of columns with many categories, further bars show the proportion of trees of
    each encoding.

    The proportions depend on what additional trees of a variant contribute to the ROC AUC of the whole forest, not on
    the score of the variant alone.

    Use `from_estimator` to create and plot a display.

    Parameters
    ----------
    names : sequence of str
        The criterion and the splitter of each variant, and the encodings.
    proportions : ndarray of shape (n_variants,), float64
        The proportion of the trees.
    oob_scores, oob_score_stds : ndarray of shape (n_variants,), float64
        Out-of-bag ROC AUC of the variant's first trees and its standard error, or NaN.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        One bar for each variant, the first at the top, and one for each encoding.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import MixtureDisplay
    >>> X, rings = load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(100, random_state=0).fit(X, rings >= 18)
    >>> MixtureDisplay.from_estimator(forest).names[:2]
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
        TypeError, NotFittedError
            If `forest` is not a fitted forest.
        ValueError
            If the forest has a single variant.
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
        beside = "" if np.all(np.isnan(self.oob_scores)) else "\n(numbers: their ROC AUC, out of bag)"
        ax.set(xlabel=f"proportion of trees{beside}", xlim=(0, 1.25 * self.proportions.max()))
        ax.invert_yaxis()
        ax.grid(axis="x", alpha=0.3)

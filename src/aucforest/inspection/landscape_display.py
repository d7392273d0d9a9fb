"""What split criteria think of the splits of one feature."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from aucforest.fitting.target import code_classes
from aucforest.inspection.comparison import chosen, criterion_names
from aucforest.inspection.display import Display
from aucforest.tree.binning import midway
from aucforest.tree.criteria import CRITERIA, split_gain

_MOST_CLASSES = 3  # classes that a legend names


@dataclass(repr=False, eq=False)
class CriterionLandscapeDisplay(Display):
    """The score of every split of one feature under some criteria, each in units of its best, which is marked.

    Make one with `from_data`, which also draws it.

    Parameters
    ----------
    thresholds : ndarray of shape (n_splits,), float64
        The thresholds of the splits, ascending.
    gains : mapping of str to ndarray of shape (n_splits,), float64
        What each split gains over no split, by criterion.
    right : ndarray of shape (n_splits, n_classes), float64
        The proportion of each class above the threshold.
    class_names : sequence of str of length n_classes
        Names of the classes.
    feature_name : str, default="feature"
        Name of the feature.

    Attributes
    ----------
    best : dict of str to int
        The best split of each criterion: the first of equal ones, as in trees.
    lines_, marks_ : dict of str to matplotlib lines
        The curves and the marks of their best splits, by criterion.
    ax_, figure_ : matplotlib Axes and Figure
        Where `plot` drew.

    Examples
    --------
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import CriterionLandscapeDisplay
    >>> X, rings = load_abalone(return_X_y=True)
    >>> display = CriterionLandscapeDisplay.from_data(X[:, 7], rings >= 18, feature_name="shell weight")
    >>> {name: round(float(display.thresholds[cut]), 3) for name, cut in display.best.items()}
    {'auc': 0.26, 'gini': 0.509}
    """

    thresholds: NDArray[np.float64]
    gains: Mapping[str, NDArray[np.float64]]
    right: NDArray[np.float64]
    class_names: Sequence[str]
    _: KW_ONLY
    feature_name: str = "feature"

    @property
    def best(self) -> dict[str, int]:
        """The best split of each criterion."""
        return {name: int(gain.argmax()) for name, gain in self.gains.items()}

    @classmethod
    def from_data(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        *,
        criteria: Sequence[str | Callable[..., Any]] = ("auc", "gini"),
        feature_name: str = "feature",
        ax: Any = None,
    ) -> Self:
        """Score and draw every split between two values of a feature, as the root of a tree would without bins.

        Parameters
        ----------
        x : array-like of shape (n_samples,)
            The feature, finite; at least two of them differ.
        y : array-like of shape (n_samples,)
            Class labels.
        criteria : sequence of str or functions, default=("auc", "gini")
            "auc", "gini", "entropy", "log_loss", "hellinger", or ``f(left_totals, node_totals) -> score``, which goes
            by the name "f()" and need not be compiled here. See `AUCTreeClassifier`.
        feature_name : str, default="feature"
            Name of the feature.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        CriterionLandscapeDisplay
            Drawn.

        Raises
        ------
        ValueError
            For missing or infinite values, a constant feature, lengths that differ, a single class, or an unknown
            criterion.
        ImportError
            Without matplotlib (extra ``plot``).
        """
        names = criterion_names(criteria)
        by_name = dict(zip(chosen("criteria", names, [*CRITERIA, *(n for n in names if n.endswith("()"))]), criteria))
        values, classes, totals = _cumulated(x, y)
        thresholds = np.array([midway(low, high) for low, high in pairwise(values)])
        gains = {name: _gains(criterion, totals) for name, criterion in by_name.items()}
        right = 1.0 - totals[:-1] / totals[-1]
        return cls(thresholds, gains, right, [str(label) for label in classes], feature_name=feature_name).plot(ax)

    def _draw(self, ax: Any) -> None:
        self.lines_, self.marks_ = {}, {}
        for name, gain in self.gains.items():
            best = self.best[name]
            top = gain[best] if gain[best] > 0.0 else 1.0
            parts = [f"{part:.0%} of {label}" for part, label in zip(self.right[best], self.class_names)]
            listed = ", ".join(parts[:_MOST_CLASSES] + ["..."] * (len(parts) > _MOST_CLASSES))
            label = f"{name}: best cut sends {listed} right"
            (line,) = ax.plot(self.thresholds, gain / top, label=label)
            style = {"color": line.get_color(), "linestyle": "--", "linewidth": 1.0}
            self.lines_[name], self.marks_[name] = line, ax.axvline(self.thresholds[best], **style)
        ax.set(xlabel=f"cut of {self.feature_name}", ylabel="gain, as a share of the best", ylim=(0.0, None))
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize="small")


def _cumulated(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[np.int64]]:
    """Return the distinct values, ascending, the classes, and the class totals up to each value."""
    feature = np.asarray(column_or_1d(x), dtype=np.float64)
    classes, labels = code_classes(np.asarray(column_or_1d(y)))
    if len(feature) != len(labels):
        raise ValueError(f"x has {len(feature)} rows, but y has {len(labels)}")
    if len(classes) < 2:
        raise ValueError(f"y has one class only: {classes[0]}")
    n_bad = int(np.count_nonzero(~np.isfinite(feature)))
    if n_bad:
        raise ValueError(f"x has {n_bad} values that are missing or infinite: leave these rows out")
    values, places = np.unique(feature, return_inverse=True)
    if len(values) < 2:
        raise ValueError(f"x has nothing to cut: all {len(feature)} values are {values[0]:g}")
    totals = np.zeros((len(values), len(classes)), dtype=np.int64)
    np.add.at(totals, (places, labels), 1)
    return values, classes, totals.cumsum(axis=0)


def _gains(criterion: str | Callable[..., Any], totals: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what the splits gain, given the class totals to the left of each and, last, of the node."""
    node = totals[-1]
    if callable(criterion):
        return np.array([criterion(left.astype(np.float64), node.astype(np.float64)) for left in totals[:-1]])
    code = CRITERIA[criterion]
    return np.array([split_gain(code, left, node - left) for left in totals[:-1]])

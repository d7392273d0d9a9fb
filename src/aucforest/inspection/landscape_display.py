"""Plot of the gain of all splits of one feature under several criteria."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from aucforest.fitting.target import code_classes
from aucforest.inspection.comparison import check_names, criterion_names
from aucforest.inspection.display import Display
from aucforest.tree.binning import midway
from aucforest.tree.criteria import CRITERIA, split_gain

_MOST_CLASSES = 3  # classes that a legend names


@dataclass(repr=False, eq=False)
class CriterionLandscapeDisplay(Display):
    """Plot of the gain of every split of one feature for several criteria, relative to the best gain of each.

    Vertical lines mark the best splits.

    Use `from_data` to create and plot a display.

    Parameters
    ----------
    thresholds : ndarray of shape (n_splits,), float64
        The thresholds of the splits, ascending.
    gains : mapping of str to ndarray of shape (n_splits,), float64
        The gain of each split by criterion.
    right : ndarray of shape (n_splits, n_classes), float64
        The proportion of each class in the right child.
    class_names : sequence of str of length n_classes
        Names of the classes.
    feature_name : str, default="feature"
        Name of the feature.

    Attributes
    ----------
    best : dict of str to int
        The index of the best split of each criterion; the first of equal ones, as in trees.
    lines_, marks_ : dict of str to matplotlib lines
        The curves and the lines of the best splits by criterion.
    ax_, figure_ : matplotlib Axes and Figure
        The axes and figure of the plot.

    Examples
    --------
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import CriterionLandscapeDisplay
    >>> X, rings = load_abalone(return_X_y=True)
    >>> display = CriterionLandscapeDisplay.from_data(X[:, 7], rings >= 18, feature_name="shell weight")
    >>> {name: round(float(display.thresholds[split]), 3) for name, split in display.best.items()}
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
        """The index of the best split of each criterion."""
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
        """Plot the gain of every split of a feature, as at the root of a tree without binning.

        Parameters
        ----------
        x : array-like of shape (n_samples,)
            The values of the feature: finite and not constant.
        y : array-like of shape (n_samples,)
            Class labels.
        criteria : sequence of str or functions, default=("auc", "gini")
            Split criteria of `AUCTreeClassifier`, or functions ``f(left_totals, node_totals) -> score``, which need not
            be compiled here. A function f is shown as "f()".
        feature_name : str, default="feature"
            Name of the feature.
        ax : matplotlib Axes, optional
            The axes to plot on. By default a new figure is created.

        Returns
        -------
        CriterionLandscapeDisplay
            The plotted display.

        Raises
        ------
        ValueError
            If values are missing or infinite, the feature is constant, lengths differ, y has a single class, or a
            criterion is unknown.
        ImportError
            If matplotlib is not installed.
        """
        names = criterion_names(criteria)
        by_name = dict(
            zip(check_names("criteria", names, [*CRITERIA, *(n for n in names if n.endswith("()"))]), criteria)
        )
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
            label = f"{name}: best split sends {listed} right"
            (line,) = ax.plot(self.thresholds, gain / top, label=label)
            style = {"color": line.get_color(), "linestyle": "--", "linewidth": 1.0}
            self.lines_[name], self.marks_[name] = line, ax.axvline(self.thresholds[best], **style)
        ax.set(xlabel=f"threshold of {self.feature_name}", ylabel="gain / best gain", ylim=(0.0, None))
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize="small")


def _cumulated(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[np.int64]]:
    """Return the distinct values, ascending, the classes, and the class totals up to each value."""
    feature = np.asarray(column_or_1d(x), dtype=np.float64)
    classes, labels = code_classes(np.asarray(column_or_1d(y)))
    if len(feature) != len(labels):
        raise ValueError(f"x has {len(feature)} samples, but y has {len(labels)}")
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {classes.tolist()[0]!r}: at least 2 are needed")
    n_bad = int(np.count_nonzero(~np.isfinite(feature)))
    if n_bad:
        raise ValueError(f"x has {n_bad} missing or infinite values: remove these samples")
    values, places = np.unique(feature, return_inverse=True)
    if len(values) < 2:
        raise ValueError(f"x is constant and cannot be split: all {len(feature)} values are {values[0]:g}")
    totals = np.zeros((len(values), len(classes)), dtype=np.int64)
    np.add.at(totals, (places, labels), 1)
    return values, classes, totals.cumsum(axis=0)


def _gains(criterion: str | Callable[..., Any], totals: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the gains of the splits, given the class totals to the left of each and, last, of the node."""
    node = totals[-1]
    if callable(criterion):
        return np.array([criterion(left.astype(np.float64), node.astype(np.float64)) for left in totals[:-1]])
    code = CRITERIA[criterion]
    return np.array([split_gain(code, left, node - left) for left in totals[:-1]])

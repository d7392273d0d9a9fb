"""Plot of cumulative gains and lift of one or several models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from aucforest._display import Display
from aucforest.metrics.at_k import gains_curve, precision_at_k
from aucforest.metrics.roc_display import score_classifiers, scores_by_name
from aucforest.metrics.validation import FloatArray, check_option


@dataclass(repr=False, eq=False)
class GainsDisplay(Display):
    """Cumulative gains or lift curves of one or more models on the same samples.

    Use `from_predictions` or `from_estimator` to create and plot a display.

    Parameters
    ----------
    curves : mapping of str to (proportion, gain)
        The curves of `gains_curve` by name, in the order of plotting.
    prevalence : float
        The proportion of positives, which the best possible curve depends on.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The axes and figure of the plot.
    lines_ : list of matplotlib lines
        One line for each curve.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.metrics import GainsDisplay
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.integers(0, 2, 500)
    >>> display = GainsDisplay.from_predictions(y_true, y_true + rng.normal(size=500), kind="lift")
    >>> display.ax_.get_ylabel()
    'Lift'
    """

    curves: Mapping[str, tuple[FloatArray, FloatArray]]
    prevalence: float

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike | Mapping[str, ArrayLike],
        *,
        kind: Literal["gains", "lift"] = "gains",
        name: str = "model",
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Plot the curves of given scores.

        Parameters
        ----------
        y_true, y_score, name, ax
            As in `RocCurveDisplay.from_predictions`.
        kind : {"gains", "lift"}, default="gains"
            Whether to plot recall, or recall divided by the proportion of samples selected.
        pos_label : label, optional
            The positive label. By default the greater of two labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, not negative.

        Returns
        -------
        GainsDisplay
            The plotted display.

        Raises
        ------
        ValueError
            For an empty mapping or an unknown kind, and as `gains_curve`.
        ImportError
            If matplotlib is not installed.
        """
        scores = scores_by_name(y_score, name)
        options: dict[str, Any] = {"pos_label": pos_label, "sample_weight": sample_weight}
        curves = {label: gains_curve(y_true, values, **options)[:2] for label, values in scores.items()}
        prevalence = precision_at_k(y_true, next(iter(scores.values())), 1.0, **options)
        return cls(curves, prevalence).plot(kind=kind, ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y_true: ArrayLike, *, name: str | None = None, **options: Any
    ) -> Self:
        """Plot the curves of fitted binary classifiers.

        Parameters
        ----------
        estimator, X, y_true, name
            As in `RocCurveDisplay.from_estimator`.
        **options
            Other parameters of `from_predictions`.

        Returns
        -------
        GainsDisplay
            The plotted display.

        Raises
        ------
        ValueError
            If a classifier is not binary, the classifiers have different classes, a label is unknown, `pos_label` is
            not the positive class of the classifiers, and as `from_predictions`.
        """
        positive, scores, label = score_classifiers(estimator, X, y_true, name)
        if (given := options.pop("pos_label", None)) not in (None, label):
            raise ValueError(f"pos_label must be {label!r}, as in the classifiers, but is {given!r}")
        return cls.from_predictions(positive, scores, pos_label=True, **options)

    def plot(self, ax: Any = None, *, kind: Literal["gains", "lift"] = "gains") -> Self:
        """Plot the curves.

        Parameters
        ----------
        ax, kind
            As in `from_predictions`.

        Returns
        -------
        GainsDisplay
            The object itself, with ``ax_``, ``figure_`` and ``lines_``.

        Raises
        ------
        ValueError
            If the kind is unknown.
        ImportError
            If matplotlib is not installed.
        """
        check_option("kind", kind, ("gains", "lift"))
        return self._plot(ax, kind=kind)

    def _draw(self, ax: Any, *, kind: str) -> None:
        best = np.array([0.0, self.prevalence, 1.0]), np.array([0.0, 1.0, 1.0])
        random = np.array([0.0, 1.0]), np.array([0.0, 1.0])
        grey = {"color": "grey", "linewidth": 1.0}
        self.lines_ = [ax.plot(*self._shown(curve, kind), label=name)[0] for name, curve in self.curves.items()]
        ax.plot(*self._shown(best, kind), label="best possible", linestyle="--", **grey)
        ax.plot(*self._shown(random, kind), label="random order", linestyle=":", **grey)
        ax.set(xlabel="Proportion of samples", ylabel="Recall" if kind == "gains" else "Lift", xlim=(0, 1))
        ax.legend(fontsize="small")

    def _shown(self, curve: tuple[FloatArray, FloatArray], kind: str) -> tuple[FloatArray, FloatArray]:
        """Return a curve of gains, or that of the corresponding lift."""
        proportion, gain = curve
        if kind == "gains":
            return curve
        # Between two points gain is a straight line, but lift is not.
        first = min(curve[0][1] for curve in self.curves.values())
        grid = np.unique(np.concatenate((proportion[1:], np.geomspace(first, 1.0, 200))))
        return grid, np.interp(grid, proportion, gain) / grid

"""Cumulative gains and lift as a picture, of one or several models."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest._optional import import_optional
from aucforest.metrics.at_k import gains_curve, precision_at_k
from aucforest.metrics.display import score_classifiers
from aucforest.metrics.validation import check_option


class GainsDisplay:
    """Cumulative gains or lift curves of one or more models on the same samples.

    Make one with `from_predictions` or `from_estimator`; both also draw it.

    Parameters
    ----------
    curves : mapping of str to (proportion, gain)
        The curves of `gains_curve` by name, in the order of drawing.
    prevalence : float
        The proportion of positives, which the best possible curve depends on.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where `plot` drew.
    lines_ : list of matplotlib lines
        One a curve.

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

    def __init__(
        self, curves: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]], prevalence: float
    ) -> None:
        self.curves = dict(curves)
        self.prevalence = prevalence

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
        """Compute and draw the curves of scores.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Two labels: bool, integer, float or string.
        y_score : array-like of shape (n_samples,), or mapping of names to such
            Scores of one model, or of several.
        kind : {"gains", "lift"}, default="gains"
            What is drawn: recall, or recall divided by the proportion of samples selected.
        name : str, default="model"
            Name of a single model.
        pos_label : label, optional
            The positive label. By default the greater of two labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, not negative.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        GainsDisplay
            Drawn.

        Raises
        ------
        ValueError
            For an empty mapping or an unknown kind, and as `gains_curve`.
        ImportError
            Without matplotlib.
        """
        scores = y_score if isinstance(y_score, Mapping) else {name: y_score}
        if not scores:
            raise ValueError("y_score is an empty mapping")
        known: dict[str, Any] = {"pos_label": pos_label, "sample_weight": sample_weight}
        curves = {label: gains_curve(y_true, values, **known)[:2] for label, values in scores.items()}
        prevalence = precision_at_k(y_true, next(iter(scores.values())), 1.0, **known)
        return cls(curves, prevalence).plot(kind=kind, ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y_true: ArrayLike, *, name: str | None = None, **options: Any
    ) -> Self:
        """Compute and draw the curves of fitted classifiers of two classes.

        Parameters
        ----------
        estimator : classifier, or mapping of names to classifiers
            Fitted, with `predict_proba` or else `decision_function`, and `classes_`; the second class is positive.
        X : array-like or frame of shape (n_samples, n_features)
            Samples to score.
        y_true : array-like of shape (n_samples,)
            Their labels, each one of ``classes_``.
        name : str, optional
            Name of a single classifier; by default its class.
        **options
            As for `from_predictions`.

        Returns
        -------
        GainsDisplay
            Drawn.

        Raises
        ------
        ValueError
            If a classifier is not binary, the classifiers have different classes, a label is unknown, `pos_label` is
            not the second class, and as `from_predictions`.
        """
        positive, scores, label = score_classifiers(estimator, X, y_true, name)
        if (given := options.pop("pos_label", None)) not in (None, label):
            raise ValueError(f"pos_label must be {label!r}, the second class, but is {given!r}")
        return cls.from_predictions(positive, scores, pos_label=True, **options)

    def plot(self, *, kind: Literal["gains", "lift"] = "gains", ax: Any = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        kind : {"gains", "lift"}, default="gains"
            What is drawn.
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        GainsDisplay
            Itself, with ``ax_``, ``figure_`` and ``lines_``.

        Raises
        ------
        ValueError
            For an unknown kind.
        ImportError
            Without matplotlib.
        """
        check_option("kind", kind, ("gains", "lift"))
        pyplot = import_optional("matplotlib.pyplot", purpose="plotting", extra="plot")
        self.ax_ = pyplot.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        best = np.array([0.0, self.prevalence, 1.0]), np.array([0.0, 1.0, 1.0])
        random = np.array([0.0, 1.0]), np.array([0.0, 1.0])
        grey = {"color": "grey", "linewidth": 1.0}
        self.lines_ = [self._draw(curve, kind, label=name) for name, curve in self.curves.items()]
        self._draw(best, kind, label="best possible", linestyle="--", **grey)
        self._draw(random, kind, label="random order", linestyle=":", **grey)
        self.ax_.set(xlabel="Proportion of samples", ylabel="Recall" if kind == "gains" else "Lift", xlim=(0, 1))
        self.ax_.legend(fontsize="small")
        return self

    def _draw(self, curve: tuple[NDArray[np.float64], NDArray[np.float64]], kind: str, **options: Any) -> Any:
        """Draw a curve of gains, or the lift that it means, and return its line."""
        proportion, gain = curve
        if kind == "lift":
            # Between two points gain is a straight line, but lift is not.
            first = min(curve[0][1] for curve in self.curves.values())
            grid = np.unique(np.concatenate((proportion[1:], np.geomspace(first, 1.0, 200))))
            proportion, gain = grid, np.interp(grid, proportion, gain) / grid
        return self.ax_.plot(proportion, gain, **options)[0]

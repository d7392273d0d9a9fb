"""Plot of precision, recall, specificity, G-mean, F1 and cost against the threshold."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest._display import Display
from aucforest.metrics.curve_displays import score_classifiers
from aucforest.metrics.ranking import cumulate
from aucforest.metrics.thresholds import check_cost, error_costs
from aucforest.metrics.validation import two_classes


@dataclass(repr=False, eq=False)
class ThresholdCurveDisplay(Display):
    """Plot of binary classification metrics against the threshold; scores of at least the threshold are positive.

    Use `from_estimator` or `from_predictions` to create and plot a display.

    Parameters
    ----------
    thresholds : ndarray of shape (n_thresholds,), float64
        The distinct scores, ascending.
    curves : dict of str to ndarray of shape (n_thresholds,), float64
        "precision", "recall", "specificity", "G-mean" and "F1".
    cost : ndarray of shape (n_thresholds,), float64, default=None
        The mean cost of a sample.
    threshold : float, default=None
        A threshold to mark with a vertical line.

    Attributes
    ----------
    lines_ : dict of str to matplotlib lines
        The curves by name, including "cost" if there is one.
    mark_ : matplotlib line or None
        The line of the marked threshold.
    cost_ax_ : matplotlib Axes or None
        The axes of the cost, on the right.

    See Also
    --------
    aucforest.metrics.optimal_threshold : Find the threshold that maximizes a metric.

    Examples
    --------
    >>> from aucforest.inspection import ThresholdCurveDisplay
    >>> y_true, y_score = [0, 0, 0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    >>> display = ThresholdCurveDisplay.from_predictions(y_true, y_score, threshold=0.4)
    >>> display.curves["recall"]
    array([1. , 1. , 1. , 1. , 0.5, 0.5])
    >>> display.curves["specificity"]
    array([0.  , 0.25, 0.5 , 0.75, 0.75, 1.  ])
    """

    thresholds: NDArray[np.float64]
    curves: dict[str, NDArray[np.float64]]
    _: KW_ONLY
    cost: NDArray[np.float64] | None = None
    threshold: float | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        threshold: float | None = None,
        cost: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
    ) -> Self:
        """Plot the curves of given scores, such as the out-of-bag probabilities of a forest.

        Parameters
        ----------
        y_true, y_score, sample_weight
            As in `aucforest.metrics.optimal_threshold`.
        threshold, ax
            As in `ThresholdCurveDisplay` and its `plot`.
        cost : array-like of shape (2, 2), optional
            ``cost[i][j]`` is the cost of predicting class j if the true class is i; the second class is positive. The
            mean cost is plotted as well.

        Returns
        -------
        ThresholdCurveDisplay

        Raises
        ------
        ValueError
            If the input is empty or inconsistent, scores are not finite, weights are negative, cost is not a 2 x 2
            matrix, or labels are not binary with positive weight for both classes.
        TypeError
            If scores are not real numbers or labels cannot be sorted.
        """
        matrix = None if cost is None else check_cost(cost, 2)
        tps, fps, thresholds = cumulate(*two_classes(y_true, y_score, sample_weight))
        negatives, positives = fps[-1], tps[-1]
        if min(negatives, positives) <= 0.0:
            raise ValueError("y_true must have two classes with positive total weight, but one has none")
        # The threshold infinity is left out: without positive predictions, precision is undefined.
        curves = {name: curve[::-1] for name, curve in threshold_curves(tps[1:], fps[1:]).items()}
        mean_cost = None
        if matrix is not None:
            fp_cost, fn_cost = error_costs(matrix)
            of_errors = (fp_cost * fps[1:] + fn_cost * (positives - tps[1:]))[::-1]
            mean_cost = (np.diag(matrix) @ [negatives, positives] + of_errors) / (negatives + positives)
        return cls(thresholds[:0:-1].astype(np.float64), curves, cost=mean_cost, threshold=threshold).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y_true: ArrayLike, **options: Any) -> Self:
        """Plot the curves of a fitted binary classifier on held-out data.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `predict_proba` or `decision_function`. Its ``threshold_``, if it is a number, is
            marked.
        X : array-like or frame of shape (n_samples, n_features)
            Held-out samples. Training samples give optimistic curves; for a forest use `from_predictions` with the
            column of the positive class of ``oob_decision_function_``.
        y_true : array-like of shape (n_samples,)
            The true labels. The positive class is ``pos_label_`` or, without this attribute, the second class.
        **options
            Other parameters of `from_predictions`.

        Returns
        -------
        ThresholdCurveDisplay

        Raises
        ------
        ValueError
            If the classifier is not binary, if a label is unknown, and as in `from_predictions`.
        """
        is_positive, scores, _ = score_classifiers({"model": estimator}, X, y_true)
        options.setdefault("threshold", getattr(estimator, "threshold_", None))
        return cls.from_predictions(is_positive, scores["model"], **options)

    def _draw(self, ax: Any) -> None:
        self.cost_ax_, self.mark_, self.lines_ = None, None, {}
        # predictions change just above a score, because a score equal to the threshold is positive
        for name, curve in self.curves.items():
            (self.lines_[name],) = ax.plot(self.thresholds, curve, drawstyle="steps-pre", label=name)
        if self.cost is not None:
            self.cost_ax_ = ax.twinx()
            style = {"drawstyle": "steps-pre", "color": "black", "linestyle": ":", "label": "cost"}
            (self.lines_["cost"],) = self.cost_ax_.plot(self.thresholds, self.cost, **style)
            self.cost_ax_.set_ylabel("mean cost of a sample")
        handles = list(self.lines_.values())
        if self.threshold is not None:
            label = f"threshold {self.threshold:.3g}"
            self.mark_ = ax.axvline(self.threshold, color="0.4", linestyle="--", linewidth=1.0, label=label)
            handles.append(self.mark_)
        ax.set(xlabel="threshold", ylabel="metric", ylim=(0.0, 1.02))
        ax.legend(handles=handles, fontsize="small")


def threshold_curves(tps: NDArray[np.float64], fps: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return metrics from true and false positives; precision is NaN without positive predictions."""
    called, recall, specificity = tps + fps, tps / tps[-1], 1.0 - fps / fps[-1]
    return {
        "precision": np.divide(tps, called, out=np.full_like(called, np.nan), where=called > 0.0),
        "recall": recall,
        "specificity": specificity,
        "G-mean": np.sqrt(recall * specificity),
        "F1": 2.0 * tps / (called + tps[-1]),
    }

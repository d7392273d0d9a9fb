"""Plots of scores: ROC curves with confidence bands and paired tests, gains and lift, and metrics by threshold."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest._display import Display
from aucforest.metrics.at_k import gains_curve, precision_at_k
from aucforest.metrics.confidence import (
    AUCComparison,
    RocBand,
    auc_confidence_interval,
    compare_auc,
    roc_confidence_band,
)
from aucforest.metrics.ranking import cumulate
from aucforest.metrics.roc import roc_curve
from aucforest.metrics.thresholds import check_cost, error_costs
from aucforest.metrics.validation import FloatArray, check_option, class_codes, positive_last, two_classes


class RocEntry(NamedTuple):
    """One curve of a `RocCurveDisplay`.

    Attributes
    ----------
    fpr, tpr : ndarray of shape (n_thresholds,)
        The curve.
    interval : tuple of float
        AUC and the bounds of its confidence interval.
    band : RocBand or None
        The band around the curve.
    comparison : AUCComparison or None
        The paired test against the first curve; None for the first curve.
    """

    fpr: FloatArray
    tpr: FloatArray
    interval: tuple[float, float, float]
    band: RocBand | None
    comparison: AUCComparison | None

    def label(self, name: str) -> str:
        """Return the legend label."""
        text = "{}: AUC {:.3f} [{:.3f}, {:.3f}]".format(name, *self.interval)
        if self.comparison is None:
            return text
        return f"{text}, {self.comparison.difference:+.3f} (p = {self.comparison.pvalue:.2g})"


@dataclass(repr=False, eq=False)
class RocCurveDisplay(Display):
    """ROC curve visualization of one or more models on the same samples.

    Use `from_predictions` or `from_estimator` to create and plot a display.

    Parameters
    ----------
    entries : mapping of str to RocEntry
        The curves by name, in the order of plotting.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The axes and figure of the plot.
    lines_ : list of matplotlib lines
        One line for each curve.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.metrics import RocCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.integers(0, 2, 500)
    >>> scores = {"good": rng.normal(size=500) + 2 * y_true, "poor": rng.normal(size=500) + y_true}
    >>> display = RocCurveDisplay.from_predictions(y_true, scores)
    >>> print(display.lines_[1].get_label())
    poor: AUC 0.772 [0.728, 0.811], -0.137 (p = 8.8e-08)
    """

    entries: Mapping[str, RocEntry]

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike | Mapping[str, ArrayLike],
        *,
        name: str = "model",
        band: Literal["simultaneous"] | None = "simultaneous",
        level: float = 0.95,
        ax: Any = None,
    ) -> Self:
        """Plot the ROC curves of given scores.

        Parameters
        ----------
        y_true
            As in `roc_confidence_band`.
        y_score : array-like of shape (n_samples,), or mapping of str to array-like
            Scores of one or several models. The legend compares each model with the first by DeLong's paired test.
        name : str, default="model"
            The name of a single model.
        band : {"simultaneous"} or None, default="simultaneous"
            The confidence band of each curve, see `roc_confidence_band`. None draws no bands.
        level : float in (0, 1), default=0.95
            Confidence level of bands and intervals.
        ax : matplotlib Axes, optional
            The axes to plot on. By default a new figure is created.

        Returns
        -------
        RocCurveDisplay
            The plotted display.

        Raises
        ------
        ValueError, ImportError
            If the mapping is empty, `band` is unknown or matplotlib is not installed, and as in `roc_confidence_band`.
        """
        check_option("band", band, ("simultaneous", None))
        scores = _scores_by_name(y_score, name)
        entries: dict[str, RocEntry] = {}
        first = next(iter(scores.values()))
        for label, values in scores.items():
            fpr, tpr, _ = roc_curve(y_true, values)
            interval = auc_confidence_interval(y_true, values, level=level)
            area = None if band is None else roc_confidence_band(y_true, values, level=level)
            comparison = compare_auc(y_true, values, first, level=level) if entries else None
            entries[label] = RocEntry(fpr, tpr, interval, area, comparison)
        return cls(entries).plot(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y_true: ArrayLike, *, name: str | None = None, **options: Any
    ) -> Self:
        """Plot the ROC curves of fitted binary classifiers.

        Parameters
        ----------
        estimator : classifier, or mapping of names to classifiers
            Fitted classifiers with `predict_proba` or `decision_function`.
        X : array-like or frame of shape (n_samples, n_features)
            The input samples.
        y_true : array-like of shape (n_samples,)
            The true labels. The positive class is ``pos_label_`` or, without this attribute, the second class.
        name : str, optional
            The name of a single classifier. By default the name of its class.
        **options
            Other parameters of `from_predictions`.

        Returns
        -------
        RocCurveDisplay
            As `from_predictions`.

        Raises
        ------
        ValueError, ImportError
            As `from_predictions`. ValueError also if a classifier is not binary, classes differ or a label is unknown.
        """
        positive, scores, _ = _score_classifiers(estimator, X, y_true, name)
        return cls.from_predictions(positive, scores, **options)

    def _draw(self, ax: Any) -> None:
        self.lines_ = []
        for name, entry in self.entries.items():
            (line,) = ax.plot(entry.fpr, entry.tpr, label=entry.label(name))
            self.lines_.append(line)
            if entry.band is not None:
                ax.fill_between(*entry.band, color=line.get_color(), alpha=0.15, linewidth=0.0)
        ax.plot([0.0, 1.0], [0.0, 1.0], color="grey", linestyle=":", linewidth=1.0)
        ax.set(xlabel="False positive rate", ylabel="True positive rate", aspect="equal", xlim=(0, 1), ylim=(0, 1.01))
        ax.legend(loc="lower right", fontsize="small")


@dataclass(repr=False, eq=False)
class GainsDisplay(Display):
    """Cumulative gains or lift curves of one or more models on the same samples.

    Parameters
    ----------
    curves : mapping of str to (proportion, gain)
        The curves of `gains_curve` by name, in the order of plotting.
    prevalence : float
        The proportion of positives, which determines the best possible curve.

    Attributes
    ----------
    ax_, figure_, lines_
        As in `RocCurveDisplay`.

    Examples
    --------
    >>> from aucforest.metrics import GainsDisplay
    >>> display = GainsDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.8, 0.4, 0.4], kind="lift")
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
        pos_label, sample_weight
            As in `gains_curve`.

        Returns
        -------
        GainsDisplay
            The plotted display.

        Raises
        ------
        ValueError, ImportError
            As `RocCurveDisplay.from_predictions` and `gains_curve`. ValueError also for an unknown kind.
        """
        scores = _scores_by_name(y_score, name)
        options: dict[str, Any] = {"pos_label": pos_label, "sample_weight": sample_weight}
        curves = {label: gains_curve(y_true, values, **options)[:2] for label, values in scores.items()}
        prevalence = precision_at_k(y_true, next(iter(scores.values())), 1.0, **options)
        return cls(curves, prevalence).plot(kind=kind, ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y_true: ArrayLike, *, name: str | None = None, **options: Any
    ) -> Self:
        """Plot the curves of fitted binary classifiers; parameters as in `RocCurveDisplay.from_estimator`.

        The options are other parameters of `from_predictions`. Raises a ValueError if `pos_label` is not the positive
        class of the classifiers.
        """
        positive, scores, label = _score_classifiers(estimator, X, y_true, name)
        if (given := options.pop("pos_label", None)) not in (None, label):
            raise ValueError(f"pos_label must be {label!r}, as in the classifiers, but is {given!r}")
        return cls.from_predictions(positive, scores, pos_label=True, **options)

    def plot(self, ax: Any = None, *, kind: Literal["gains", "lift"] = "gains") -> Self:
        """Plot the curves and return the display; parameters and errors as in `from_predictions`."""
        check_option("kind", kind, ("gains", "lift"))
        return self._plot(ax, kind=kind)

    def _draw(self, ax: Any, *, kind: str) -> None:
        best = np.array([0.0, self.prevalence, 1.0]), np.array([0.0, 1.0, 1.0])
        random = np.array([0.0, 1.0]), np.array([0.0, 1.0])
        grey = {"color": "grey", "linewidth": 1.0}
        self.lines_ = [ax.plot(*self._points(curve, kind), label=name)[0] for name, curve in self.curves.items()]
        ax.plot(*self._points(best, kind), label="best possible", linestyle="--", **grey)
        ax.plot(*self._points(random, kind), label="random order", linestyle=":", **grey)
        ax.set(xlabel="Proportion of samples", ylabel="Recall" if kind == "gains" else "Lift", xlim=(0, 1))
        ax.legend(fontsize="small")

    def _points(self, curve: tuple[FloatArray, FloatArray], kind: str) -> tuple[FloatArray, FloatArray]:
        """Return the points of a gains curve, or of the corresponding lift curve."""
        proportion, gain = curve
        if kind == "gains":
            return curve
        # Between points of the gains curve, lift is not a straight line. So it is computed at more points.
        first = min(proportions[1] for proportions, _ in self.curves.values())
        grid = np.unique(np.concatenate((proportion[1:], np.geomspace(first, 1.0, 200))))
        return grid, np.interp(grid, proportion, gain) / grid


@dataclass(repr=False, eq=False)
class ThresholdCurveDisplay(Display):
    """Binary classification metrics against the threshold. Scores >= threshold are predicted positive.

    Use `from_estimator` or `from_predictions` to create and plot a display.

    Parameters
    ----------
    thresholds : ndarray of shape (n_thresholds,), float64
        The distinct scores, ascending.
    curves : dict of str to ndarray of shape (n_thresholds,), float64
        The metrics by name: "precision", "recall", "specificity", "G-mean" and "F1".
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

    thresholds: FloatArray
    curves: dict[str, FloatArray]
    _: KW_ONLY
    cost: FloatArray | None = None
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
            As in `optimal_threshold`.
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
        ValueError, TypeError
            As in `optimal_threshold`. ValueError also if a class has no weight.
        """
        matrix = None if cost is None else check_cost(cost, 2)
        tps, fps, thresholds = cumulate(*two_classes(y_true, y_score, sample_weight))
        negatives, positives = fps[-1], tps[-1]
        if min(negatives, positives) <= 0.0:
            raise ValueError("y_true must have two classes with positive total weight")
        # The threshold infinity is left out, because precision is undefined without positive predictions.
        curves = {name: curve[::-1] for name, curve in threshold_curves(tps[1:], fps[1:]).items()}
        mean_cost = None
        if matrix is not None:
            fp_cost, fn_cost = error_costs(matrix)
            error_cost = (fp_cost * fps[1:] + fn_cost * (positives - tps[1:]))[::-1]
            mean_cost = (np.diag(matrix) @ [negatives, positives] + error_cost) / (negatives + positives)
        return cls(thresholds[:0:-1].astype(np.float64), curves, cost=mean_cost, threshold=threshold).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y_true: ArrayLike, **options: Any) -> Self:
        """Plot the curves of a fitted binary classifier on held-out data.

        Parameters
        ----------
        estimator, y_true
            As in `RocCurveDisplay.from_estimator`, but a single classifier. Its ``threshold_`` is marked if it has one.
        X : array-like or frame of shape (n_samples, n_features)
            Held-out samples. Training samples would give optimistic curves. For the training samples of a forest, use
            `from_predictions` with the positive class's column of ``oob_decision_function_``.
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
        is_positive, scores, _ = _score_classifiers({"model": estimator}, X, y_true)
        options.setdefault("threshold", getattr(estimator, "threshold_", None))
        return cls.from_predictions(is_positive, scores["model"], **options)

    def _draw(self, ax: Any) -> None:
        self.cost_ax_, self.mark_, self.lines_ = None, None, {}
        # A score equal to the threshold is predicted positive, so predictions change just above a score.
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


def threshold_curves(tps: FloatArray, fps: FloatArray) -> dict[str, FloatArray]:
    """Return metrics by name from true and false positives. Precision is NaN without positive predictions."""
    selected, recall, specificity = tps + fps, tps / tps[-1], 1.0 - fps / fps[-1]
    return {
        "precision": np.divide(tps, selected, out=np.full_like(selected, np.nan), where=selected > 0.0),
        "recall": recall,
        "specificity": specificity,
        "G-mean": np.sqrt(recall * specificity),
        "F1": 2.0 * tps / (selected + tps[-1]),
    }


def _scores_by_name(y_score: ArrayLike | Mapping[str, ArrayLike], name: str) -> Mapping[str, ArrayLike]:
    scores = y_score if isinstance(y_score, Mapping) else {name: y_score}
    if not scores:
        raise ValueError("y_score is an empty mapping")
    return scores


def _score_classifiers(
    estimator: Any, X: Any, y_true: ArrayLike, name: str | None = None
) -> tuple[NDArray[np.bool_], dict[str, FloatArray], Any]:
    """Return whether each sample is positive, the scores of each classifier by name, and the positive label."""
    models = estimator if isinstance(estimator, Mapping) else {name or type(estimator).__name__: estimator}
    if not models:
        raise ValueError("estimator is an empty mapping of classifiers")
    scores = {label: _positive_scores(model, X) for label, model in models.items()}
    classes = {tuple(model.classes_[positive_last(model)].tolist()) for model in models.values()}
    if len(classes) != 1:
        raise ValueError(f"the classifiers must have the same two classes (negative, positive), but have {classes}")
    ((negative, positive),) = classes
    codes, _ = class_codes(y_true, len(next(iter(scores.values()))), labels=[negative, positive], of="X")
    return codes == 1, scores, positive


def _positive_scores(estimator: Any, X: Any) -> FloatArray:
    if len(estimator.classes_) != 2:
        raise ValueError(f"the classifier must have 2 classes, but has {len(estimator.classes_)}")
    positive = positive_last(estimator)[-1]
    if not hasattr(estimator, "predict_proba"):
        scores = np.asarray(estimator.decision_function(X))
        return scores if positive == 1 else -scores
    proba = np.asarray(estimator.predict_proba(X))
    if proba.ndim != 2 or proba.shape[1] != 2:
        name = type(estimator).__name__
        raise ValueError(f"{name}: predict_proba returned the shape {proba.shape}, but must return two columns")
    return proba[:, positive]

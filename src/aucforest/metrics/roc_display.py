"""Plot of ROC curves of several models with confidence bands and paired tests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest._display import Display
from aucforest.metrics.bands import RocBand, roc_confidence_band
from aucforest.metrics.confidence import AUCComparison, auc_confidence_interval, compare_auc
from aucforest.metrics.roc import roc_curve
from aucforest.metrics.validation import class_codes, positive_last


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
        The paired test against the first curve. None for the first curve.
    """

    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
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
        band: Literal["simultaneous", "bootstrap"] | None = "simultaneous",
        level: float = 0.95,
        n_bootstrap: int = 1000,
        random_state: int | None = None,
        ax: Any = None,
    ) -> Self:
        """Plot the ROC curves of given scores.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Binary labels (bool, int, float or str). The greater one is positive.
        y_score : array-like of shape (n_samples,), or mapping of names to such
            Scores of one or several models. The legend compares each with the first by DeLong's paired test.
        name : str, default="model"
            The name of a single model.
        band : {"simultaneous", "bootstrap"} or None, default="simultaneous"
            The confidence band of each curve; see `roc_confidence_band`.
        level : float in (0, 1), default=0.95
            Confidence level of bands and intervals.
        n_bootstrap : int, default=1000
            The number of bootstrap samples for the band "bootstrap".
        random_state : int or None
            Controls the bootstrap samples for the band "bootstrap".
        ax : matplotlib Axes, optional
            The axes to plot on. By default a new figure is created.

        Returns
        -------
        RocCurveDisplay
            The plotted display.

        Raises
        ------
        ValueError
            If the mapping is empty, and as in `roc_confidence_band`.
        ImportError
            If matplotlib is not installed.
        """
        scores = scores_by_name(y_score, name)
        entries: dict[str, RocEntry] = {}
        first = next(iter(scores.values()))
        options: dict[str, Any] = {"level": level, "n_bootstrap": n_bootstrap, "random_state": random_state}
        for label, values in scores.items():
            fpr, tpr, _ = roc_curve(y_true, values)
            interval = auc_confidence_interval(y_true, values, level=level)
            area = None if band is None else roc_confidence_band(y_true, values, method=band, **options)
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
            The true labels. The class ``pos_label_`` is positive or, if the classifier has none, the second.
        name : str, optional
            The name of a single classifier. By default the name of its class.
        **options
            Other parameters of `from_predictions`.

        Returns
        -------
        RocCurveDisplay
            The plotted display.

        Raises
        ------
        ValueError
            If a classifier is not binary, the classifiers have different classes, a label is unknown, and as in
            `from_predictions`.
        """
        positive, scores, _ = score_classifiers(estimator, X, y_true, name)
        return cls.from_predictions(positive, scores, **options)

    def _draw(self, ax: Any) -> None:
        self.lines_ = []
        for name, entry in self.entries.items():
            (line,) = ax.plot(entry.fpr, entry.tpr, label=entry.label(name))
            self.lines_.append(line)
            if entry.band is not None:
                ax.fill_between(*entry.band, color=line.get_color(), alpha=0.15, linewidth=0.0)
        ax.plot([0.0, 1.0], [0.0, 1.0], color="grey", linestyle=":", linewidth=1.0)
        ax.set(xlabel="False positive rate", ylabel="True positive rate")
        ax.set(aspect="equal", xlim=(0, 1), ylim=(0, 1.01))
        ax.legend(loc="lower right", fontsize="small")


def scores_by_name(y_score: ArrayLike | Mapping[str, ArrayLike], name: str) -> Mapping[str, ArrayLike]:
    """Return the scores of several models by name, or those of a single one by the given name."""
    scores = y_score if isinstance(y_score, Mapping) else {name: y_score}
    if not scores:
        raise ValueError("y_score is an empty mapping")
    return scores


def score_classifiers(
    estimator: Any, X: Any, y_true: ArrayLike, name: str | None
) -> tuple[NDArray[np.bool_], dict[str, NDArray[np.float64]], Any]:
    """Return whether samples are positive, their scores by the classifiers by name, and the label of the class."""
    models = estimator if isinstance(estimator, Mapping) else {name or type(estimator).__name__: estimator}
    if not models:
        raise ValueError("estimator is an empty mapping of classifiers")
    scores = {label: positive_scores(model, X) for label, model in models.items()}
    classes = {tuple(model.classes_[positive_last(model)].tolist()) for model in models.values()}
    if len(classes) != 1:
        raise ValueError(f"the classifiers must have the same two classes, but have {classes}, the positive one last")
    ((negative, positive),) = classes
    codes, _ = class_codes(y_true, len(next(iter(scores.values()))), labels=[negative, positive])
    return codes == 1, scores, positive


def positive_scores(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Return the scores of the positive class of a fitted classifier."""
    if len(estimator.classes_) != 2:
        raise ValueError(f"the classifier must have 2 classes, but has {len(estimator.classes_)}")
    if hasattr(estimator, "predict_proba"):
        proba = np.asarray(estimator.predict_proba(X))
        if proba.ndim != 2 or proba.shape[1] != 2:
            name = type(estimator).__name__
            raise ValueError(f"{name}: predict_proba returned the shape {proba.shape}, but must return two columns")
        return proba[:, positive_last(estimator)[-1]]
    return np.asarray(estimator.decision_function(X))

"""Confidence-based performance estimation: what scores alone say about a classifier in use."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from aucforest._restoring import restoring
from aucforest.metrics.thresholds import decide
from aucforest.metrics.validation import warn_undefined
from aucforest.monitoring._evaluation import Curves, Evaluated, Evaluator, Scored
from aucforest.monitoring._rows import FloatArray, Rows, check_raw_columns, rank_columns, side_by_side
from aucforest.monitoring._tables import UNKNOWN, Table, check_columns, check_options, choose_chunks, read_table
from aucforest.monitoring.calibration import Calibration, Rule, columns_to_fit, is_rising
from aucforest.monitoring.chunks import Chunks
from aucforest.monitoring.metrics import Normalize, alert_limits, find_metrics, is_beyond
from aucforest.monitoring.result import CBPEResult, ChunkEstimate
from aucforest.monitoring.shift import ShiftReport, outside, stability_index, tell_apart
from aucforest.monitoring.soft import soft_roc_auc

# With fewer positives in the reference, intervals of average precision hold far too rarely once scores shift:
# benchmarks/monitoring_bias.py.
FEWEST_POSITIVES = 50


class CBPE(BaseEstimator):
    """Estimate the performance of a classifier from its scores, chunk by chunk, with intervals and alerts.

    No estimate without labels sees concept drift. Everything here, intervals included, is conditional on one thing:
    that P(y = 1 | score) is still what it was in the reference. Where it has changed, the estimate is wrong and its
    interval does not say so; the shift report next to each chunk is a warning, not a verdict.

    On labelled reference rows an isotonic curve from scores to probabilities is fitted, where that helps. In a new
    chunk every row then counts p as a positive and 1 - p as a negative (`soft_auc`, `expected_confusion_matrix`) [1]_.
    Estimates are corrected for their bias and for the optimism of a curve that is evaluated on its own reference; the
    intervals hold the noise of labels and of the curve. In simulations, 95 % intervals hold
    the realised metric in 93 to 97 % of cases from 2000 reference rows on and in 92 to 97 % with 500. They hold less
    often where positives are rare and new scores pile up at the upper end of the reference, because isotonic curves
    lean outwards at their ends. Average precision suffers most: see Notes.

    Parameters
    ----------
    metrics : sequence of str, default=("roc_auc",)
        "roc_auc", "average_precision", "accuracy", "precision", "recall", "specificity", "f1", "confusion_matrix" (all
        cells), "cost", "cost_per_row". All but the first two need `y_pred`. Of more than two
        classes precision, recall, specificity, F1 and average precision are means over classes.
    calibration : {"auto", "isotonic", "none"} or sequence of bool, default="auto"
        Whether scores become probabilities by isotonic curves: where that helps, always, or never; or one bool a column
        of scores. With more than two classes, probabilities are divided by their sum afterwards.
    needs_calibration : {"brier_or_auc", "brier", "ece"}, default="brier_or_auc"
        How "auto" decides. "brier": curves fitted out of fold lower the Brier score, by a paired test (z > 1.645).
        "brier_or_auc": that, or the AUC that the scores promise is significantly wrong on the reference. "ece": curves
        lower the expected calibration error in each of three splits; this fires often on calibrated scores.
    multi_class : {"ovo", "ovr"}, default="ovo"
        The AUC of more than two classes: see `soft_auc_multiclass`.
    level : float in (0, 1), default=0.95
        Probability that an interval holds the realised metric.
    threshold : float, default=3.0
        Alert limits are mean -+ threshold * standard deviation of the metric realised in full reference chunks. Of few
        chunks, say fewer than 10, the standard deviation is uncertain and false alerts are more frequent.
    bias_correction : bool, default=True
        Whether estimates are corrected as said above.
    importance_weighted : bool, default=False
        Fit the curves anew for every chunk, the reference weighted by density ratios of X. The optimism of such curves
        is not corrected.
    normalize : {"all", "true", "pred"} or None, default=None
        Normalisation of "confusion_matrix".
    cost : array-like of shape (n_classes, n_classes), optional
        ``cost[i][j]`` is what it costs to predict class j where i is true, for "cost" and "cost_per_row". What a right
        prediction earns is a cost below 0.
    labels : array-like of shape (n_classes,), optional
        Classes in the order of the columns of scores; by default sorted. Of two, the second is positive.
    on_nan : {"raise", "drop"}, default="raise"
        What becomes of rows without a score or label. "drop" warns; a new row without a label only is kept, and its
        chunk has no realised value.
    n_draws : int, default=500
        Draws of labels, for intervals of average precision and of an AUC with fewer than 30 expected rows of a class.
    random_state : int or None, default=0
        Seed of folds, draws and domain classifiers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    calibrated_ : ndarray of shape (n_columns,)
        Whether a curve is used; one column for two classes.
    limits_ : dict of str to (float, float)
        Alert limits of each metric, NaN where there are none. Counts and costs grow with the rows: theirs are
        for the mean size of full reference chunks, and in proportion for others.

    Notes
    -----
    Average precision hangs on the highest scores, where a curve rests on few reference rows and is too high on average.
    When new logits are greater by one or two standard deviations, with 50 to 400 positives in the reference, the
    estimate is off by +0.029 to +0.067 on average, and 95 % intervals hold it in 90 to 94 %; with 20 positives, where
    `fit` warns as below 50, they hold it in 75 to 82 % (``benchmarks/monitoring_bias.py 200``). Intervals of the ROC
    AUC hold it in 90 to 98 % of these cases.

    See Also
    --------
    soft_auc_interval : The AUC alone, from calibrated probabilities.

    References
    ----------
    .. [1] J. Bialek, W. Kuberski, N. Perrakis, A. Bifet, "Estimating model performance under covariate shift without
       labels", 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.monitoring import CBPE, Chunks
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(6000)
    >>> y_true = rng.random(6000) < score**2
    >>> cbpe = CBPE().fit(score[:4000], y_true[:4000], chunks=Chunks.by_size(1000))
    >>> for row in cbpe.estimate(score[4000:], y_true=y_true[4000:]).estimates:
    ...     print(f"{row.estimate:.3f} [{row.low:.3f}, {row.high:.3f}] realised {row.realised:.3f}")
    0.872 [0.850, 0.894] realised 0.886
    0.858 [0.835, 0.882] realised 0.854
    """

    def __init__(
        self,
        metrics: Sequence[str] = ("roc_auc",),
        *,
        calibration: Literal["auto", "isotonic", "none"] | Sequence[bool] = "auto",
        needs_calibration: Rule = "brier_or_auc",
        multi_class: Literal["ovo", "ovr"] = "ovo",
        level: float = 0.95,
        threshold: float = 3.0,
        bias_correction: bool = True,
        importance_weighted: bool = False,
        normalize: Normalize = None,
        cost: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        on_nan: Literal["raise", "drop"] = "raise",
        n_draws: int = 500,
        random_state: int | None = 0,
    ) -> None:
        self.metrics = metrics
        self.calibration = calibration
        self.needs_calibration = needs_calibration
        self.multi_class = multi_class
        self.level = level
        self.threshold = threshold
        self.bias_correction = bias_correction
        self.importance_weighted = importance_weighted
        self.normalize = normalize
        self.cost = cost
        self.labels = labels
        self.on_nan = on_nan
        self.n_draws = n_draws
        self.random_state = random_state

    def fit(
        self,
        y_score: ArrayLike,
        y_true: ArrayLike,
        y_pred: ArrayLike | None = None,
        *,
        X: Any = None,
        chunks: Chunks | None = None,
    ) -> Self:
        """Learn from labelled rows that the classifier was not trained on.

        Parameters
        ----------
        y_score : array-like of shape (n_samples,) or (n_samples, n_classes)
            Scores of the positive class, or of all classes.
        y_true : array-like of shape (n_samples,)
            Labels.
        y_pred : array-like of shape (n_samples,), optional
            Predicted labels, for metrics that need them.
        X : array-like of shape (n_samples, n_features), optional
            Numeric features, for the domain classifier of the shift report.
        chunks : Chunks, optional
            How the reference is split for the alert limits; by default into 10 chunks.

        Returns
        -------
        CBPE
            Itself.

        Warns
        -----
        UserWarning
            For an inverted ranking, fewer than two full reference chunks, and average precision through a curve of
            fewer than 50 positives.

        Raises
        ------
        ValueError
            For empty or non-finite scores, missing values (unless they are dropped), lengths that differ, a reference
            of one class, labels that do not match, or an option that does not exist.
        TypeError
            For scores or features that are not real numbers, and for ``chunks`` of another type.
        """
        check_options(self)
        table, classes = read_table(
            y_score, y_true, y_pred, X, classes=self.labels, on_nan=self.on_nan, is_reference=True
        )
        metrics = find_metrics(self.metrics, classes, self.multi_class, self.normalize, self.cost)
        chunks = choose_chunks(chunks, Chunks.by_number(10))
        pieces = [(chunk, table.take(chunk.rows)) for chunk in chunks.split(len(table.scores))]
        whole = table.take(slice(None))
        check_columns(self, metrics, whole, n_features=None if whole.X is None else whole.X.shape[1])
        with restoring(self):
            self.classes_, self._metrics, self._chunks = classes, metrics, chunks
            self._learn(whole)
            self._set_limits([piece for chunk, piece in pieces if chunk.is_full and len(piece.scores) > 1])
        return self

    @classmethod
    def from_forest(
        cls, forest: Any, y_true: ArrayLike, X_ref: Any = None, *, chunks: Chunks | None = None, **options: Any
    ) -> Self:
        """Learn from the out-of-bag probabilities of a forest, so that no labelled rows need be held out.

        Each row is scored by the trees that did not draw it, about a third of them, so the scores are honest but a
        little noisier than those of the whole forest. Predicted labels follow from them by its `threshold_`, as in its
        `predict`: fit anew after `set_threshold`.

        Parameters
        ----------
        forest : AUCForestClassifier
            Fitted with ``oob_score=True``.
        y_true : array-like of shape (n_samples,)
            The labels that it was trained on.
        X_ref : array-like of shape (n_samples, n_features), optional
            The features that it was trained on, for the shift report.
        chunks : Chunks, optional
            As for `fit`.
        **options
            Parameters of CBPE; not `labels`, which are the forest's.

        Returns
        -------
        CBPE
            Fitted.

        Raises
        ------
        ValueError
            For a forest without out-of-bag probabilities, and as `fit`.

        Examples
        --------
        >>> from aucforest import AUCForestClassifier
        >>> from aucforest.datasets import load_abalone
        >>> from aucforest.monitoring import CBPE, Chunks
        >>> X, rings = load_abalone(return_X_y=True)
        >>> forest = AUCForestClassifier(50, oob_score=True, random_state=0).fit(X[:3000], rings[:3000] > 10)
        >>> cbpe = CBPE.from_forest(forest, rings[:3000] > 10)
        >>> row, = cbpe.estimate(forest.predict_proba(X[3000:]), chunks=Chunks.by_number(1)).estimates
        >>> f"{row.estimate:.2f}"
        '0.83'
        """
        proba = getattr(forest, "oob_decision_function_", None)
        if proba is None:
            raise ValueError("from_forest needs out-of-bag probabilities: fit the forest with oob_score=True")
        labels = np.asarray(y_true)
        if len(labels) != len(proba):
            raise ValueError(f"y_true has {len(labels)} rows, but the forest was trained on {len(proba)}")
        scored = ~np.isnan(proba).any(axis=1)
        features = None if X_ref is None else np.asarray(X_ref)[scored]
        predicted = forest.classes_[decide(proba[scored], getattr(forest, "threshold_", None))]
        cbpe = cls(labels=forest.classes_, **options)
        return cbpe.fit(proba[scored], labels[scored], predicted, X=features, chunks=chunks)

    def estimate(
        self,
        y_score: ArrayLike,
        y_pred: ArrayLike | None = None,
        *,
        y_true: ArrayLike | None = None,
        X: Any = None,
        chunks: Chunks | None = None,
    ) -> CBPEResult:
        """Estimate the metrics of new rows.

        Parameters
        ----------
        y_score, y_pred, X
            As in `fit`.
        y_true : array-like of shape (n_samples,), optional
            Labels as far as they are known, for comparison: estimates do not depend on them.
        chunks : Chunks, optional
            How the rows are split; by default as in `fit`, unless that was by period.

        Returns
        -------
        CBPEResult
            NaN with an UndefinedMetricWarning for chunks of fewer than two rows and where a class is impossible.

        Raises
        ------
        ValueError
            As `fit`, when scores are no probabilities although no curve is used, or X has not the columns of `fit`.
        TypeError
            As `fit`.
        """
        check_is_fitted(self, "limits_")
        table, _ = read_table(y_score, y_true, y_pred, X, classes=self.classes_, on_nan=self.on_nan, is_reference=False)
        check_columns(self, self._metrics, table, n_features=None if self._X is None else self._X.shape[1])
        rows: list[ChunkEstimate] = []
        shifts = {}
        for number, chunk in enumerate(choose_chunks(chunks, self._chunks).split(len(table.scores))):
            piece = table.take(chunk.rows)
            random = np.random.default_rng(None if self.random_state is None else [self.random_state, number])
            evaluated, shifts[chunk.key] = self._evaluate_chunk(piece, random)
            realised = self._realised(piece)
            for metric, values in zip(self._metrics, evaluated):
                ratio = metric.ratio(len(piece.scores), self._usual_size)
                lower, upper = (ratio * limit for limit in self.limits_[metric.name])
                alert = is_beyond(values.estimate, lower, upper)
                place = (chunk.key, chunk.start, chunk.end, len(piece.scores), metric.name)
                rows.append(ChunkEstimate(*place, *values, realised[metric.name], lower, upper, alert))
        bad = [f"{row.metric} of {row.chunk}" for row in rows if np.isnan(row.estimate)]
        if bad:
            warn_undefined(f"not defined: {', '.join(bad[:5])}{' and more' if len(bad) > 5 else ''}")
        return CBPEResult(tuple(rows), shifts)

    def _learn(self, table: Table) -> None:
        """Fit curves, and what estimated minus realised is on the reference."""
        columns, truth = rank_columns(table.scores), self._known(table)
        for k, column in enumerate(columns):
            if not is_rising(column, truth[:, k]):
                auc = soft_roc_auc(Rows([column], truth[:, k : k + 1])).value
                which = f"the scores of class {self.classes_[k]}" if len(columns) > 1 else "the scores"
                warnings.warn(
                    f"the ranking is inverted: {which} have an AUC of {auc:.3f} on the reference", stacklevel=3
                )
        self._reference = Rows(columns, truth, table.predicted)
        self._X = table.X
        self.calibrated_ = columns_to_fit(columns, truth, self.calibration, self.needs_calibration, self.random_state)
        check_raw_columns(columns, self.calibrated_)
        positives = np.where(self.calibrated_, truth.sum(axis=0), np.inf)
        if "average_precision" in self.metrics and positives.min() < FEWEST_POSITIVES:
            rarest = self.classes_[-len(columns) :][positives.argmin()]  # of two classes the second
            warnings.warn(
                f"average_precision is not to be trusted: the reference has {positives.min():.0f} rows of class "
                f"{rarest}, fewer than {FEWEST_POSITIVES}: label more, or look at roc_auc",
                stacklevel=3,
            )
        self._curves, self._offsets = None, {}
        if self.calibrated_.any() and not self.importance_weighted:
            self._curves = self._fit_curves()
            if self.bias_correction:
                self._offsets = {metric.name: self._curves.offset(metric) for metric in self._metrics}

    def _fit_curves(self, weights: FloatArray | None = None) -> Curves:
        """Return the curves of the reference."""
        return Curves(Calibration(*self._reference[:2], self.calibrated_, weights), self._reference, weights)

    def _set_limits(self, pieces: list[Table]) -> None:
        """Set the alert limits from full reference chunks."""
        if len(pieces) < 2:
            sentence = f"no alert limits: they need two full reference chunks, but there are {len(pieces)}"
            warnings.warn(sentence, stacklevel=3)
        realised = [self._realised(piece) for piece in pieces]
        sizes = [len(piece.scores) for piece in pieces]
        self._usual_size = float(np.mean(sizes)) if sizes else 1.0
        self.limits_ = {}
        for metric in self._metrics:
            values = [of[metric.name] * metric.ratio(self._usual_size, size) for of, size in zip(realised, sizes)]
            self.limits_[metric.name] = alert_limits(metric, values, self.threshold)

    def _known(self, table: Table) -> FloatArray:
        """Return labels as columns of zeros and ones."""
        classes = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return side_by_side([np.asarray(table.codes == k, dtype=np.float64) for k in classes])

    def _realised(self, table: Table) -> dict[str, float]:
        """Return the metrics of the labels; NaN where labels are missing."""
        if table.codes is None or len(table.codes) < 2 or (table.codes == UNKNOWN).any():
            return {metric.name: float("nan") for metric in self._metrics}
        rows = Rows(rank_columns(table.scores), self._known(table), table.predicted)
        return {metric.name: metric.estimate(rows).value for metric in self._metrics}

    def _evaluate_chunk(self, table: Table, random: np.random.Generator) -> tuple[list[Evaluated], ShiftReport]:
        """Return the estimate of every metric on a chunk, and its shift."""
        if len(table.scores) < 2:
            return [Evaluated()] * len(self._metrics), ShiftReport(float("nan"), float("nan"))
        curves = self._curves
        columns = rank_columns(table.scores)
        known = self._reference.columns
        report = ShiftReport(stability_index(known, columns), outside(known, columns))
        if self._X is not None and table.X is not None:
            domain = tell_apart(self._X, table.X, random, all_reference=self.importance_weighted)
            report = ShiftReport(*report[:2], *domain[:3])
            if self.importance_weighted and self.calibrated_.any():
                curves = self._fit_curves(domain.ratios)
        evaluator = Evaluator(self.level, self.bias_correction, self.n_draws, random)
        check_raw_columns(columns, self.calibrated_)
        scored, evaluated = Scored(columns, table.predicted, curves), []
        for metric in self._metrics:
            offset = self._offsets.get(metric.name)
            if offset is not None:
                offset = offset.scaled(metric.ratio(len(table.scores), len(self._reference.p)))
            evaluated.append(evaluator.evaluate(metric, scored, offset))
        return evaluated, report

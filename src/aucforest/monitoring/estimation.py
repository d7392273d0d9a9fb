"""Confidence-based performance estimation."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from aucforest._restoring import restoring
from aucforest.metrics.thresholds import decide
from aucforest.metrics.validation import warn_undefined
from aucforest.monitoring._evaluation import Curves, Evaluated, Scored, evaluate
from aucforest.monitoring._rows import FloatArray, IntArray, Rows, check_raw_columns, rank_columns, side_by_side
from aucforest.monitoring._tables import (
    UNKNOWN,
    Table,
    check_columns,
    check_options,
    choose_chunks,
    encode_features,
    learn_features,
    read_table,
)
from aucforest.monitoring.calibration import Calibration, columns_to_fit, is_rising
from aucforest.monitoring.chunks import Chunks
from aucforest.monitoring.metrics import (
    Normalize,
    alert_limits,
    find_metrics,
    is_beyond,
    proportion_at_k,
    reach_of_limits,
)
from aucforest.monitoring.result import CBPEResult, ChunkEstimate
from aucforest.monitoring.shift import Sample, ShiftReport, measure_shift
from aucforest.monitoring.soft import soft_roc_auc
from aucforest.monitoring.validity import Measured, prediction_limits, spread_out
from aucforest.tables.rows import indexable_rows

# With fewer positives in the reference, the coverage of intervals of metrics of the highest scores is far too low if
# scores shift; see benchmarks/monitoring_bias.py.
FEWEST_POSITIVES = 50


class CBPE(BaseEstimator):
    """Confidence-based performance estimation: metrics of a classifier without labels, with intervals and alerts.

    Estimates and intervals are valid as long as P(y | score) is unchanged since the reference data. Concept drift
    cannot be detected without labels. The shift report of each chunk indicates how far the data have changed; a chunk
    that differs more from the reference than chunks of the reference differ from each other is an alert.

    On labeled reference data, isotonic regression maps scores to probabilities if that improves them. The metrics of a
    new chunk are then expectations over labels with these probabilities (`soft_auc`, `expected_confusion_matrix`) [1]_.
    They are corrected for bias and for the optimism of a calibration that is evaluated on its own training data. The
    intervals include the randomness of labels and of the calibration. In simulations the coverage of 95 % intervals
    was 93 to 97 % with at least 2000 reference samples and 92 to 97 % with 500, and that of precision and recall at 5 %
    of the samples was 92 to 97 % and 92 to 99 %. It is lower if positives are rare and new scores concentrate at the
    upper end of the reference, where isotonic regression is biased. Average precision and metrics at K are affected
    most; see Notes.

    Parameters
    ----------
    metrics : sequence of str, default=("roc_auc",)
        Any of "roc_auc", "average_precision", "accuracy", "precision", "recall", "specificity", "f1",
        "confusion_matrix" (all cells), "cost", "cost_per_row", "precision_at_K" and "recall_at_K", where K is the
        proportion of samples with the highest scores, such as 0.01. All but the first two and the last two need
        `y_pred`. With more than two classes precision, recall, specificity, F1 and average precision are means over
        classes.
    calibration : {"auto", "isotonic", "none"} or sequence of bool, default="auto"
        Whether to calibrate scores by isotonic regression: if it helps, always, or never; or one boolean for each
        column of scores. It helps if out-of-fold calibration lowers the Brier score in a paired test (z > 1.645), or if
        the AUC expected from the scores differs significantly from the AUC on the reference. With more than two
        classes, calibrated probabilities are normalized to sum to 1.
    multi_class : {"ovo", "ovr"}, default="ovo"
        The type of multiclass AUC; see `soft_auc_multiclass`.
    level : float in (0, 1), default=0.95
        Confidence level of the intervals for the realized metric.
    threshold : float, default=3.0
        Alert limits are mean -+ threshold * standard deviation of the metric in full reference chunks. With fewer than
        about 10 chunks the standard deviation is uncertain and false alerts are more frequent. The limits of shifts
        are prediction limits with the one-sided level of `threshold` standard deviations of a normal distribution; with
        fewer than 5 chunks they are very wide. See `ShiftReport`.
    bias_correction : bool, default=True
        Whether to correct the bias and optimism of estimates.
    importance_weighted : bool, default=False
        Whether to fit the calibration for each chunk on the reference weighted by density ratios of X. Its optimism is
        not corrected.
    normalize : {"all", "true", "pred"} or None, default=None
        Normalization of "confusion_matrix".
    cost : array-like of shape (n_classes, n_classes), optional
        ``cost[i][j]`` is the cost of predicting class j if the true class is i, for "cost" and "cost_per_row". A
        negative cost is a benefit.
    labels : array-like of shape (n_classes,), optional
        The class of each column of scores, sorted by default. The second of two classes is positive.
    on_nan : {"raise", "drop"}, default="raise"
        Whether to raise an error for missing scores or labels, or to drop the samples with a warning. New samples that
        only lack a label are kept, but their chunk has no realized metric.
    n_simulations : int, default=500
        The number of simulated labelings for intervals of average precision and of precision and recall at K, and of
        the AUC if fewer than 30 samples of a class are expected.
    random_state : int or None, default=0
        Controls folds, simulated labels and domain classifiers.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    calibrated_ : ndarray of shape (n_columns,)
        Whether each column of scores is calibrated. There is one column for two classes.
    limits_ : dict of str to (float, float)
        Alert limits of each metric, NaN if there are none. Those of counts and costs are for the mean size of full
        reference chunks and are scaled in proportion for others. Other limits are the same for all chunks, so that much
        smaller ones have more false alerts; the limits of shifts depend on the size.

    Notes
    -----
    Average precision depends on the highest scores, where the calibration is based on few reference samples and is too
    high on average. In simulations where new logits were higher by one or two standard deviations and the reference
    had 50 to 400 positives, its bias was +0.029 to +0.067 and the coverage of 95 % intervals 90 to 94 %. With 20
    positives the coverage was 75 to 82 % (``benchmarks/monitoring_bias.py 200``); `fit` warns below 50. Precision and
    recall at K depend on the highest scores as well, and `fit` warns likewise. The coverage of intervals of the ROC AUC
    was 90 to 98 %.

    See Also
    --------
    soft_auc_interval : Expected AUC from calibrated probabilities.

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
    ...     print(f"{row.estimate:.3f} [{row.low:.3f}, {row.high:.3f}] realized {row.realized:.3f}")
    0.872 [0.850, 0.894] realized 0.886
    0.858 [0.835, 0.882] realized 0.854
    """

    def __init__(
        self,
        metrics: Sequence[str] = ("roc_auc",),
        *,
        calibration: Literal["auto", "isotonic", "none"] | Sequence[bool] = "auto",
        multi_class: Literal["ovo", "ovr"] = "ovo",
        level: float = 0.95,
        threshold: float = 3.0,
        bias_correction: bool = True,
        importance_weighted: bool = False,
        normalize: Normalize = None,
        cost: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        on_nan: Literal["raise", "drop"] = "raise",
        n_simulations: int = 500,
        random_state: int | None = 0,
    ) -> None:
        self.metrics = metrics
        self.calibration = calibration
        self.multi_class = multi_class
        self.level = level
        self.threshold = threshold
        self.bias_correction = bias_correction
        self.importance_weighted = importance_weighted
        self.normalize = normalize
        self.cost = cost
        self.labels = labels
        self.on_nan = on_nan
        self.n_simulations = n_simulations
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
        """Fit to labeled reference data that the classifier was not trained on.

        Parameters
        ----------
        y_score : array-like of shape (n_samples,) or (n_samples, n_classes)
            Scores of the positive class, or of all classes.
        y_true : array-like of shape (n_samples,)
            The true labels.
        y_pred : array-like of shape (n_samples,), optional
            The predicted labels, for metrics that need them.
        X : array-like of shape (n_samples, n_features), optional
            Features for the domain classifier of the shift report: numbers, and text or other categories, but no dates.
            A category that the reference lacks counts as missing. The classifier is fitted for up to 20 reference
            chunks, too, for the limits of shifts.
        chunks : Chunks, optional
            How to split the reference for the alert limits. By default into 10 chunks.

        Returns
        -------
        self : CBPE
            The fitted estimator.

        Warns
        -----
        UserWarning
            If the AUC is below 0.5, there are fewer than two full reference chunks, alert limits are so wide that not
            even scores without information would be beyond them, or average precision, or precision or recall at K, is
            calibrated with fewer than 50 positives.

        Raises
        ------
        ValueError
            If scores are empty or not finite, values are missing, lengths differ, the reference has a single class,
            labels do not match, or an option is invalid.
        TypeError
            If scores are not real numbers, features neither numbers nor categories, or chunks is not a Chunks object.
        """
        check_options(self)
        X, categories = learn_features(X)
        table, classes = read_table(
            y_score, y_true, y_pred, X, classes=self.labels, on_nan=self.on_nan, is_reference=True
        )
        metrics = find_metrics(self.metrics, classes, self.multi_class, self.normalize, self.cost)
        chunks = choose_chunks(chunks, Chunks.by_number(10))
        pieces = [(chunk.rows, table.take(chunk.rows)) for chunk in chunks.split(len(table.scores)) if chunk.is_full]
        pieces = [(rows, piece) for rows, piece in pieces if len(piece.scores) > 1]
        whole = table.take(slice(None))
        check_columns(self, metrics, whole, n_features=None if whole.X is None else whole.X.shape[1])
        with restoring(self):
            self.classes_, self._metrics, self._chunks, self._categories = classes, metrics, chunks, categories
            self._learn(whole)
            self._set_limits([piece for _, piece in pieces])
            self._set_shift_limits(table, pieces)
        return self

    @classmethod
    def from_forest(
        cls, forest: Any, y_true: ArrayLike, X_ref: Any = None, *, chunks: Chunks | None = None, **options: Any
    ) -> Self:
        """Fit to the out-of-bag probabilities of a forest or a stack, so that no labeled data need to be held out.

        The scores of a sample come from the trees that it is out of bag for, about a third. They are unbiased but
        slightly noisier than those of the whole forest. Labels are predicted by the `threshold_` of the forest: call
        this again after `set_threshold`.

        Parameters
        ----------
        forest : AUCForestClassifier or AUCStackingClassifier
            A forest fitted with ``oob_score=True``, or any fitted stack. Of two classes the second is positive to the
            metrics, whatever its `pos_label`.
        y_true : array-like of shape (n_samples,)
            The training labels.
        X_ref : array-like of shape (n_samples, n_features), optional
            The training features, for the shift report, as in `fit`.
        chunks : Chunks, optional
            As in `fit`.
        **options
            Parameters of CBPE other than `labels`.

        Returns
        -------
        CBPE
            The fitted estimator.

        Raises
        ------
        ValueError
            If the forest has no out-of-bag probabilities, and as in `fit`.

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
        '0.85'
        """
        proba = getattr(forest, "oob_decision_function_", None)
        if proba is None:
            raise ValueError("from_forest needs out-of-bag probabilities: fit the forest with oob_score=True")
        labels = np.asarray(y_true)
        if len(labels) != len(proba):
            raise ValueError(f"y_true has {len(labels)} samples, but the forest was trained on {len(proba)}")
        scored = ~np.isnan(proba).any(axis=1)
        features = None if X_ref is None else _safe_indexing(indexable_rows(X_ref), np.flatnonzero(scored))
        predicted = forest.classes_[decide(forest, proba[scored])]
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
        """Estimate the metrics of new data.

        Parameters
        ----------
        y_score, y_pred, X
            As in `fit`.
        y_true : array-like of shape (n_samples,), optional
            Known labels, for comparison. They do not affect the estimates.
        chunks : Chunks, optional
            How to split the data. By default as in `fit`, unless that was by period.

        Returns
        -------
        CBPEResult
            The estimates. NaN with an UndefinedMetricWarning for chunks of fewer than two samples, or if a class has
            probability 0 throughout a chunk.

        Raises
        ------
        ValueError
            As in `fit`, or if uncalibrated scores are not probabilities, or if X has other columns than in `fit`.
        TypeError
            As in `fit`.
        """
        check_is_fitted(self, "limits_")
        n_features = None if self._X is None else self._X.shape[1]
        X = encode_features(X, self._categories, n_features)
        table, _ = read_table(y_score, y_true, y_pred, X, classes=self.classes_, on_nan=self.on_nan, is_reference=False)
        check_columns(self, self._metrics, table, n_features=n_features)
        rows: list[ChunkEstimate] = []
        shifts = {}
        for number, chunk in enumerate(choose_chunks(chunks, self._chunks).split(len(table.scores))):
            piece = table.take(chunk.rows)
            evaluated, report = self._evaluate_chunk(piece, self._random(number))
            shifts[chunk.key] = report
            realized = self._realized(piece)
            for metric, values in zip(self._metrics, evaluated):
                ratio = metric.ratio(len(piece.scores), self._usual_size)
                lower, upper = (ratio * limit for limit in self.limits_[metric.name])
                alert = not report.valid or is_beyond(values.estimate, lower, upper)
                rows.append(
                    ChunkEstimate(
                        chunk=chunk.key,
                        start=chunk.start,
                        end=chunk.end,
                        n_rows=len(piece.scores),
                        metric=metric.name,
                        **values._asdict(),
                        realized=realized[metric.name],
                        lower_limit=lower,
                        upper_limit=upper,
                        alert=alert,
                    )
                )
        bad = [f"{row.metric} of {row.chunk}" for row in rows if np.isnan(row.estimate)]
        if bad:
            warn_undefined(f"the estimates are not defined: {', '.join(bad[:5])}{' and more' if len(bad) > 5 else ''}")
        return CBPEResult(tuple(rows), shifts)

    def _learn(self, table: Table) -> None:
        """Fit the calibration curves, and compute the estimated minus the realized metrics on the reference."""
        columns, truth = rank_columns(table.scores), self._truth(table)
        for k, column in enumerate(columns):
            if not is_rising(column, truth[:, k]):
                auc = soft_roc_auc(Rows([column], truth[:, k : k + 1])).value
                which = f"the scores of class {self.classes_[k]}" if len(columns) > 1 else "the scores"
                warnings.warn(
                    f"the ranking is inverted: {which} have an AUC of {auc:.3f} on the reference", stacklevel=3
                )
        self._reference = Rows(columns, truth, table.predicted)
        self._X = table.X
        self.calibrated_ = columns_to_fit(columns, truth, self.calibration, self.random_state)
        check_raw_columns(columns, self.calibrated_)
        positives = np.where(self.calibrated_, truth.sum(axis=0), np.inf)
        of_top = [name for name in self.metrics if name == "average_precision" or proportion_at_k(name) is not None]
        if of_top and positives.min() < FEWEST_POSITIVES:
            rarest = self.classes_[-len(columns) :][positives.argmin()]  # of two classes the second
            warnings.warn(
                f"{of_top[0]} is unreliable: the reference has {positives.min():.0f} samples of class "
                f"{rarest}, fewer than {FEWEST_POSITIVES}: label more samples or use roc_auc",
                stacklevel=3,
            )
        self._curves, self._offsets = None, {}
        if self.calibrated_.any() and not self.importance_weighted:
            self._curves = self._fit_curves()
            if self.bias_correction:
                self._offsets = {metric.name: self._curves.offset(metric) for metric in self._metrics}

    def _fit_curves(self, weights: FloatArray | None = None) -> Curves:
        """Return calibration curves fitted to the reference, with or without sample weights."""
        calibration = Calibration(self._reference.columns, self._reference.p, self.calibrated_, weights)
        return Curves(calibration, self._reference, weights)

    def _set_limits(self, pieces: list[Table]) -> None:
        """Compute the alert limits from full reference chunks."""
        if len(pieces) < 2:
            sentence = f"there are no alert limits: they need two full reference chunks, but there are {len(pieces)}"
            warnings.warn(sentence, stacklevel=3)
        realized = [self._realized(piece) for piece in pieces]
        sizes = [len(piece.scores) for piece in pieces]
        self._usual_size = float(np.mean(sizes)) if sizes else 1.0
        self.limits_, reaches = {}, {}
        p = self._reference.p
        no_information = self._reference._replace(p=np.tile(p.mean(axis=0), (len(p), 1)))
        for metric in self._metrics:
            values = [of[metric.name] * metric.ratio(self._usual_size, size) for of, size in zip(realized, sizes)]
            self.limits_[metric.name] = alert_limits(metric, values, self.threshold)
            if metric.name in self.metrics:  # cells of the confusion matrix neither rise nor fall with performance
                chance = metric.estimate(no_information).value * metric.ratio(self._usual_size, len(p))
                reaches[metric.name] = reach_of_limits(values, self.threshold, chance)
        self._warn_of_wide_limits(reaches)

    def _warn_of_wide_limits(self, reaches: dict[str, float]) -> None:
        """Warn of limits that no fall could cross, not even one to scores without information; see `reach_of_limits`.

        The standard deviation over chunks is taken to be proportional to the root of 1 / size.
        """
        wide = {name: reach for name, reach in reaches.items() if 1.0 < reach < np.inf}
        if not wide:
            return
        limits = ", ".join(f"{name} ({self.limits_[name][0]:.3g} to {self.limits_[name][1]:.3g})" for name in wide)
        size, n_rows = (2.0 * max(wide.values())) ** 2 * self._usual_size, len(self._reference.p)
        few = f", but the reference has only {n_rows}" if 2.0 * size > n_rows else ""
        warnings.warn(
            f"the alert limits of {limits} are so wide that not even scores without information would raise an alert: "
            f"with chunks of about {float(f'{size:.2g}'):.0f} samples half of that fall would{few}",
            stacklevel=4,
        )

    def _set_shift_limits(self, table: Table, pieces: list[tuple[slice | IntArray, Table]]) -> None:
        """Compute the limits of shifts by comparing reference chunks, given by rows of `table`, with the rest of it."""
        measures = []
        for number, (rows, piece) in enumerate(spread_out(pieces) if len(pieces) > 1 else []):
            rest = np.ones(len(table.kept), dtype=bool)
            rest[rows] = False
            new = Sample(rank_columns(piece.scores), piece.X)
            measured, _ = self._measure(new, self._random(number), rest[table.kept])
            measures.append(measured.standardized())
        self._shift_limits = prediction_limits(np.reshape(measures, (-1, 3)), self.threshold)

    def _measure(
        self, new: Sample, random: np.random.Generator, rest: NDArray[np.bool_] | None = None
    ) -> tuple[Measured, FloatArray | None]:
        """Return the shift of a chunk, and the density ratios of the reference if features are known."""
        report, ratios = measure_shift(
            Sample(self._reference.columns, self._X),
            new,
            random,
            rest=rest,
            categorical=list(self._categories),
            all_reference=self.importance_weighted,
        )
        n_reference = len(self._reference.p) if rest is None else int(np.count_nonzero(rest))
        return Measured(report, n_reference, new.columns[0].order.size), ratios

    def _random(self, number: int) -> np.random.Generator:
        """Return the random generator of a chunk."""
        return np.random.default_rng(None if self.random_state is None else [self.random_state, number])

    def _truth(self, table: Table) -> FloatArray:
        """Return one-hot encoded labels, or one column with 1 for the positive class if there are two classes."""
        classes = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return side_by_side([np.asarray(table.codes == k, dtype=np.float64) for k in classes])

    def _realized(self, table: Table) -> dict[str, float]:
        """Return the realized metrics; NaN if a label is missing or there are fewer than two samples."""
        if table.codes is None or len(table.codes) < 2 or (table.codes == UNKNOWN).any():
            return {metric.name: float("nan") for metric in self._metrics}
        rows = Rows(rank_columns(table.scores), self._truth(table), table.predicted)
        return {metric.name: metric.estimate(rows).value for metric in self._metrics}

    def _evaluate_chunk(self, table: Table, random: np.random.Generator) -> tuple[list[Evaluated], ShiftReport]:
        """Return the estimate of every metric on a chunk, and the shift report of the chunk."""
        if len(table.scores) < 2:
            return [Evaluated()] * len(self._metrics), ShiftReport(float("nan"), float("nan"))
        columns = rank_columns(table.scores)
        measured, ratios = self._measure(Sample(columns, table.X), random)
        curves = self._curves
        if self.importance_weighted and self.calibrated_.any():
            curves = self._fit_curves(ratios)
        check_raw_columns(columns, self.calibrated_)
        scored, evaluated = Scored(columns, table.predicted, curves), []
        for metric in self._metrics:
            offset = self._offsets.get(metric.name)
            if offset is not None:
                offset = offset.scaled(metric.ratio(len(table.scores), len(self._reference.p)))
            evaluated.append(evaluate(metric, scored, offset, self, random))
        return evaluated, measured.judged(self._shift_limits)

"""Confidence-based performance estimation."""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from aucforest._caller import warn
from aucforest._restoring import restoring
from aucforest._sklearn import num_samples, safe_indexing
from aucforest.columns.rows import indexable_rows
from aucforest.metrics.thresholds import decide
from aucforest.metrics.validation import class_codes, warn_undefined
from aucforest.monitoring import _tables
from aucforest.monitoring._rows import FloatArray, IntArray, RankedSamples, check_raw_scores, rank_columns, side_by_side
from aucforest.monitoring._tables import UNKNOWN, Samples
from aucforest.monitoring.calibration import Curves, Evaluated, Scored, columns_to_fit, evaluate, is_rising
from aucforest.monitoring.chunks import Chunks
from aucforest.monitoring.metrics import EstimatedMetric, Normalize, alert_limits, find_metrics, is_beyond
from aucforest.monitoring.result import CBPEResult, ChunkEstimate
from aucforest.monitoring.shift import LEAST_CHUNKS, ComparedSamples, ShiftReport, measure_shift, prediction_limits
from aucforest.monitoring.soft import soft_roc_auc

# With fewer positive reference samples, intervals of precision and recall at k and of average precision have far too
# low coverage if scores shift; see benchmarks/monitoring_bias.py.
FEWEST_POSITIVES = 50
MOST_CHUNKS = 20  # the maximum number of reference chunks that are compared: each needs a domain classifier


def _relative_reach(values: FloatArray, threshold: float, chance: float) -> float:
    """Return the distance of the alert limits from the mean, divided by the distance of `chance` from the mean.

    `chance` is the metric of scores without information, which is within the limits if the result is above 1. The
    result is NaN with fewer than two values, or if `chance` equals the mean.
    """
    if values.size < 2 or not is_beyond(values.mean(), chance, chance):
        return np.nan
    return float(threshold * values.std() / abs(values.mean() - chance))


def _shorten(names: list[str]) -> str:
    return f"{', '.join(names[:5])}{' and more' if len(names) > 5 else ''}"


class CBPE(BaseEstimator):
    """Confidence-based performance estimation: metrics of a classifier without labels, with intervals and alerts.

    Estimates and intervals are valid as long as P(y | score) is unchanged since the reference data. Concept drift
    cannot be detected without labels. The shift report of each chunk measures how far the data have changed. There is
    an alert if a chunk differs more from the reference than chunks of the reference differ from each other.

    If scores need calibration, isotonic regression on labelled reference data maps them to probabilities. The metrics
    of a new chunk are expectations over labels with these probabilities (`soft_auc`, `expected_confusion_matrix`) [1]_.
    They are corrected for bias and for the optimism of a calibration that is evaluated on its own training data. The
    intervals include the randomness of labels and of the calibration. In simulations the coverage of 95 % intervals
    was 93 to 97 % with at least 2000 reference samples and 92 to 97 % with 500. The coverage is lower if positives are
    rare and new scores are at the upper end of the reference; see Notes.

    Parameters
    ----------
    metrics : sequence of str, default=("roc_auc",)
        Any of "roc_auc", "average_precision", "accuracy", "precision", "recall", "specificity", "f1",
        "confusion_matrix" (all cells), "cost", "cost_per_row", "precision_at_K" and "recall_at_K", where K is the
        proportion of samples with the highest scores, such as 0.01. The first two and the last two need scores only.
        The others also need `y_pred`. With more than two classes, precision and recall (also at K), specificity, F1 and
        average precision are means over classes.
    calibration : {"auto", "isotonic", "none"} or sequence of bool, default="auto"
        "isotonic" calibrates scores by isotonic regression, "none" does not. "auto" does if scores are not
        probabilities, if out-of-fold calibration lowers the Brier score in a paired test (z > 1.645), or if the AUC
        expected from the scores differs significantly from the AUC on the reference. A sequence has one boolean for
        each column of scores. With more than two classes, calibrated probabilities are normalized to sum to 1.
    multi_class : {"ovo", "ovr"}, default="ovo"
        The type of multiclass AUC; see `soft_auc_multiclass`.
    level : float in (0, 1), default=0.95
        Confidence level of the intervals for the realized metric.
    threshold : float, default=3.0
        The alert limits of a metric are mean -+ threshold * standard deviation of its values in full reference chunks.
        At least two chunks are needed, better 10. If the standard deviation is 0, there is an alert if the interval of
        the estimate excludes the mean. The limits of shifts (see `ShiftReport`) are one-sided prediction limits, at the
        level of `threshold` standard deviations of a normal distribution. Three chunks are needed, better 5 or more.
    bias_correction : bool, default=True
        Whether to correct the bias and optimism of estimates.
    importance_weighted : bool, default=False
        Whether to fit a calibration for each chunk, on reference samples weighted by density ratios of X. The optimism
        of these calibrations is not corrected.
    normalize : {"all", "true", "pred"} or None, default=None
        Normalization of "confusion_matrix".
    cost : array-like of shape (n_classes, n_classes), optional
        ``cost[i][j]`` is the cost of predicting class j if the true class is i, for "cost" and "cost_per_row". A
        negative cost is a benefit.
    labels : array-like of shape (n_classes,), optional
        The class of each column of scores, sorted by default. The second of two classes is positive.
    on_nan : {"raise", "drop"}, default="raise"
        Whether to raise an error for missing scores or labels, or to drop the samples with a warning. New samples with
        a score but no label are kept, but their chunk has no realized metric.
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
        Alert limits of each metric for chunks of the mean size of full reference chunks, or NaN. For chunks of another
        size, the limits of counts and total costs are proportional to the size. For smaller chunks, the standard
        deviation is multiplied by the square root of mean size / size.
    n_features_in_ : int
        The number of columns of X, if X was passed to `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        The names of the columns of X, if all names are strings.

    Notes
    -----
    Average precision, and precision and recall at K depend on the highest scores. There, calibrated probabilities are
    based on few reference samples, and are too high on average. In simulations where new logits were higher by one or
    two standard deviations (``benchmarks/monitoring_bias.py 200``), the coverage of 95 % intervals of average precision
    was 90 to 94 % with 50 to 400 positives, and 75 to 82 % with 20. The coverage of the ROC AUC was 90 to 98 %.

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
    >>> cbpe = CBPE().fit(y_true=y_true[:4000], y_score=score[:4000], chunks=Chunks.by_size(1000))
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
        *,
        y_true: ArrayLike,
        y_score: ArrayLike,
        y_pred: ArrayLike | None = None,
        X: Any = None,
        chunks: Chunks | None = None,
    ) -> Self:
        """Fit to labelled reference data that the classifier was not trained on; all parameters are passed by name.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            The true labels.
        y_score : array-like of shape (n_samples,) or (n_samples, n_classes)
            Scores of the positive class, or of all classes.
        y_pred : array-like of shape (n_samples,), optional
            The predicted labels, for metrics that need them.
        X : array-like of shape (n_samples, n_features), optional
            Features for the domain classifier of the shift report: numbers, and text or other categories, but no dates.
            A category that is not in the reference is treated as missing. For the limits of shifts, one classifier is
            fitted for each of at most 20 reference chunks.
        chunks : Chunks, optional
            How to split the reference for the alert limits, by default into 10 chunks.

        Returns
        -------
        self : CBPE
            The fitted estimator.

        Warns
        -----
        UserWarning
            If the AUC is below 0.5, if limits are missing or so wide that scores without information are within them,
            or if average precision or a metric at K uses a calibration on fewer than 50 positives.

        Raises
        ------
        ValueError, TypeError
            If scores are empty or not finite numbers, values are missing, lengths differ, the reference has a single
            class, a label is not in `labels`, features are neither numbers nor categories, column names of X are not
            unique, or an option is invalid.
        """
        _tables.check_options(self)
        features, categories = _tables.learn_features(X)
        samples, classes = _tables.read_samples(self, y_score, y_true, y_pred, features, is_reference=True)
        metrics = find_metrics(self.metrics, classes, self.multi_class, self.normalize, self.cost)
        chunks = _tables.choose_chunks(chunks, Chunks.by_number(10))
        full = [chunk.rows for chunk in chunks.split(len(samples.scores)) if chunk.is_full]
        pieces = [(indices, piece) for indices in full if len((piece := samples.take(indices)).scores) > 1]
        whole = samples.take(slice(None))
        _tables.require_columns(self, metrics, whole)
        with restoring(self):
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)  # of an earlier fit
            if X is not None:
                validate_data(self, X, skip_check_array=True)
            self.classes_, self._metrics, self._chunks, self._categories = classes, metrics, chunks, categories
            self._learn(whole)
            self._set_limits([piece for _, piece in pieces])
            self._set_shift_limits(samples, pieces)
        return self

    @classmethod
    def from_forest(
        cls, forest: Any, y_true: ArrayLike, X_ref: Any = None, *, chunks: Chunks | None = None, **options: Any
    ) -> Self:
        """Fit to the out-of-bag probabilities of a forest or a stack, so that no labelled data need to be held out.

        The score of a sample is predicted by the trees for which the sample is out of bag, about a third of all trees.
        So it is slightly noisier than the score of the whole forest. Labels are predicted by the `threshold_` of the
        forest, so call this again after `set_threshold` or `set_prevalence`. After `set_prevalence`, the reference is a
        random sample of the training samples with the class frequencies ``prevalence_``.

        Parameters
        ----------
        forest : AUCForestClassifier or AUCStackingClassifier
            A forest fitted with ``oob_score=True``, or any fitted stack. With two classes, the metrics use the second
            class as positive, regardless of `pos_label`.
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
        labels, features = np.asarray(y_true), None if X_ref is None else indexable_rows(X_ref)
        for name, values in {"y_true": labels, "X_ref": features}.items():
            if values is not None and num_samples(values) != len(proba):
                n_rows = num_samples(values)
                raise ValueError(f"{name} has {n_rows} samples, but the forest was trained on {len(proba)}")
        kept = ~np.isnan(proba).any(axis=1)
        if hasattr(forest, "prevalence_"):
            codes = class_codes(labels, len(labels), labels=forest.classes_)[0][kept]
            counts = np.bincount(codes, minlength=len(forest.classes_))
            rates = np.where(counts > 0, forest.prevalence_ / np.maximum(counts, 1), 0.0)
            # Division by the maximum keeps as many samples as possible with these class frequencies.
            kept[kept] = np.random.default_rng(0).random(codes.size) < (rates / rates.max())[codes]
        if features is not None:
            features = safe_indexing(features, np.flatnonzero(kept))
        predicted = forest.classes_[decide(forest, proba[kept])]
        cbpe = cls(labels=forest.classes_, **options)
        return cbpe.fit(y_true=labels[kept], y_score=proba[kept], y_pred=predicted, X=features, chunks=chunks)

    def estimate(
        self,
        y_score: ArrayLike,
        *,
        y_true: ArrayLike | None = None,
        y_pred: ArrayLike | None = None,
        X: Any = None,
        chunks: Chunks | None = None,
    ) -> CBPEResult:
        """Estimate the metrics of new data.

        Parameters
        ----------
        y_score, y_pred
            As in `fit`.
        y_true : array-like of shape (n_samples,), optional
            Known labels, for comparison. They do not affect the estimates.
        X : array-like of shape (n_samples, n_features), optional
            Features, as in `fit`, with the same column names in the same order.
        chunks : Chunks, optional
            How to split the data, by default as in `fit`. Required if `fit` split the reference by period.

        Returns
        -------
        CBPEResult
            The estimates. NaN with an UndefinedMetricWarning for chunks of fewer than two samples, or if a class has
            probability 0 for all samples of a chunk.

        Raises
        ------
        ValueError, TypeError
            As in `fit`, or if uncalibrated scores are not probabilities, or the columns of X differ from those in
            `fit`.
        """
        check_is_fitted(self, "limits_")
        X = _tables.encode_features(self, X, self._categories)
        samples, _ = _tables.read_samples(self, y_score, y_true, y_pred, X, is_reference=False)
        _tables.require_columns(self, self._metrics, samples)
        estimates: list[ChunkEstimate] = []
        shifts, without_alerts = {}, []
        for number, chunk in enumerate(_tables.choose_chunks(chunks, self._chunks).split(len(samples.scores))):
            piece = samples.take(chunk.rows)
            evaluated, report = self._evaluate_chunk(piece, self._random(number))
            shifts[chunk.key] = report
            if chunk.is_full and report.valid is None and not np.isnan(report.psi_limit):
                without_alerts.append(chunk.key)
            realized, n_rows = self._realized(piece), len(piece.scores)
            for metric, values in zip(self._metrics, evaluated):
                limits = self._limits_for(metric, n_rows)
                alert = self._is_alert(metric, values, limits, report.valid)
                numbers = *values, realized[metric.name], *limits, alert
                estimates.append(ChunkEstimate(chunk.key, chunk.start, chunk.end, n_rows, metric.name, *numbers))
        undefined = [f"{row.metric} of {row.chunk}" for row in estimates if np.isnan(row.estimate)]
        if undefined:
            warn_undefined(f"the estimates are not defined: {_shorten(undefined)}")
        if without_alerts:
            warn(
                f"no shift could be beyond its limits in {_shorten(without_alerts)}, so that alerts are undefined: take"
                " larger chunks, or fit with 10 of them or more"
            )
        return CBPEResult(tuple(estimates), shifts)

    def _learn(self, samples: Samples) -> None:
        """Fit the calibration curves, and compute the estimated minus the realized metrics on the reference."""
        columns, truth = rank_columns(samples.scores), self._truth(samples)
        for k, column in enumerate(columns):
            if not is_rising(column, truth[:, k]):
                auc = soft_roc_auc(RankedSamples([column], truth[:, k : k + 1])).value
                which = f"the scores of class {self.classes_[k]}" if len(columns) > 1 else "the scores"
                warn(f"the ranking is inverted: {which} have an AUC of {auc:.3f} on the reference")
        self._reference = RankedSamples(columns, truth, samples.predicted)
        self._sample = ComparedSamples(columns, samples.X, list(self._categories), self.importance_weighted)
        self.calibrated_ = columns_to_fit(columns, truth, self.calibration, self.random_state)
        check_raw_scores(samples.scores, self.calibrated_)
        positives = np.where(self.calibrated_, truth.sum(axis=0), np.inf)
        top_metrics = [metric.name for metric in self._metrics if metric.always_simulated]
        if top_metrics and positives.min() < FEWEST_POSITIVES:
            rarest = self.classes_[-len(columns) :][positives.argmin()]  # the second of two classes
            warn(
                f"{top_metrics[0]} is unreliable: the reference has {positives.min():.0f} samples of class "
                f"{rarest}, fewer than {FEWEST_POSITIVES}: label more samples or use roc_auc"
            )
        self._curves, self._offsets = None, {}
        if self.calibrated_.any() and not self.importance_weighted:
            self._curves = Curves(self._reference, self.calibrated_)
            if self.bias_correction:
                self._offsets = {metric.name: self._curves.offset(metric) for metric in self._metrics}

    def _set_limits(self, pieces: list[Samples]) -> None:
        """Compute the alert limits of metrics from full reference chunks."""
        realized = [self._realized(piece) for piece in pieces]
        sizes = [len(piece.scores) for piece in pieces]
        self._usual_size = float(np.mean(sizes)) if sizes else 1.0
        self._chunk_values: dict[str, FloatArray] = {}  # realized metrics, converted to chunks of the usual size
        self.limits_, reaches = {}, {}
        p = self._reference.p
        no_information = self._reference._replace(p=np.tile(p.mean(axis=0), (len(p), 1)))
        for metric in self._metrics:
            scaled = [by_name[metric.name] * metric.ratio(self._usual_size, n) for by_name, n in zip(realized, sizes)]
            self._chunk_values[metric.name] = values = np.array([value for value in scaled if not np.isnan(value)])
            self.limits_[metric.name] = self._limits_for(metric, self._usual_size)
            if metric.name in self.metrics:  # not for cells of the confusion matrix
                chance = metric.estimate(no_information).value * metric.ratio(self._usual_size, len(p))
                reaches[metric.name] = _relative_reach(values, self.threshold, chance)
        self._warn_if_limits_are_missing(len(pieces))
        self._warn_if_limits_are_wide(reaches)

    def _limits_for(self, metric: EstimatedMetric, n_rows: float) -> tuple[float, float]:
        """Return the alert limits of a metric for a chunk of `n_rows` samples."""
        widening = max(1.0, np.sqrt(self._usual_size / max(n_rows, 1.0)))
        lower, upper = alert_limits(metric, self._chunk_values[metric.name], self.threshold * widening)
        ratio = metric.ratio(n_rows, self._usual_size)
        return ratio * lower, ratio * upper

    def _is_alert(
        self, metric: EstimatedMetric, evaluated: Evaluated, limits: tuple[float, float], valid: bool | None
    ) -> bool | None:
        """Return the `alert` of a `ChunkEstimate`."""
        (lower, upper), value = limits, evaluated.estimate
        if self.threshold > 0.0 and not is_beyond(upper, lower, lower):
            # The standard deviation over chunks is 0, so the whole interval must be beyond the mean for an alert.
            value = float(np.clip(lower, evaluated.low, evaluated.high))
        if valid is False or is_beyond(value, lower, upper):
            return True
        can_be_beyond = lower > metric.low or upper < metric.high
        return None if valid is None or np.isnan(value) or not can_be_beyond else False

    def _warn_if_limits_are_missing(self, n_pieces: int) -> None:
        """Warn if limits are missing, because there are too few full reference chunks or they lack a class."""
        n_rows = len(self._reference.p)
        if n_pieces < LEAST_CHUNKS:
            what, needed = ("alert limits", "two") if n_pieces < 2 else ("limits of shifts", "three")
            warn(
                f"there are no {what}: they need {needed} full reference chunks, but there are {n_pieces}, so that"
                f" alerts are undefined: fit with smaller chunks, such as {n_rows // 10} of {n_rows} samples"
            )
        lacking = {name: values.size for name, values in self._chunk_values.items() if values.size < 2 <= n_pieces}
        if lacking:
            n_defined = next(iter(lacking.values()))
            warn(
                f"there are no alert limits of {', '.join(lacking)}: they need two full reference chunks in which"
                f" the metric is defined, but there are {n_defined} of {n_pieces}: fit with larger chunks"
            )

    def _warn_if_limits_are_wide(self, reaches: dict[str, float]) -> None:
        """Warn if even scores without information would be within the limits; see `_relative_reach`."""
        wide = {name: reach for name, reach in reaches.items() if 1.0 < reach < np.inf}
        if not wide:
            return
        limits = ", ".join(f"{name} ({self.limits_[name][0]:.3g} to {self.limits_[name][1]:.3g})" for name in wide)
        # The standard deviation over chunks is proportional to 1 / sqrt(size). With this size, limits are half as far
        # from the mean as the metric of scores without information.
        size, n_rows = (2.0 * max(wide.values())) ** 2 * self._usual_size, len(self._reference.p)
        few = f", but the reference has only {n_rows}" if 2.0 * size > n_rows else ""
        warn(
            f"the alert limits of {limits} are so wide that not even scores without information would raise an alert: "
            f"with chunks of about {float(f'{size:.2g}'):.0f} samples, a metric halfway from its mean to theirs "
            f"would{few}"
        )

    def _set_shift_limits(self, samples: Samples, pieces: list[tuple[slice | IntArray, Samples]]) -> None:
        """Compute the limits of shifts by comparing reference chunks with the rest of the reference."""
        measures, n_compared = [], min(len(pieces), MOST_CHUNKS) if len(pieces) >= LEAST_CHUNKS else 0
        for number, k in enumerate(np.linspace(0, len(pieces) - 1, n_compared).astype(int)):
            indices, piece = pieces[k]
            rest = np.ones(len(samples.kept), dtype=bool)
            rest[indices] = False
            new = ComparedSamples(rank_columns(piece.scores), piece.X)
            measured = measure_shift(self._sample, new, self._random(number), rest[samples.kept])
            measures.append(measured.standardized())
        self._shift_limits = prediction_limits(np.reshape(measures, (-1, 3)), self.threshold)

    def _random(self, number: int) -> np.random.Generator:
        """Return a generator for chunk `number`. Each chunk has its own, so results do not depend on other chunks."""
        return np.random.default_rng(None if self.random_state is None else [self.random_state, number])

    def _truth(self, samples: Samples) -> FloatArray:
        """Return one-hot encoded labels, with only the column of the positive class if there are two classes."""
        classes = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return side_by_side([np.asarray(samples.codes == k, dtype=np.float64) for k in classes])

    def _realized(self, samples: Samples) -> dict[str, float]:
        """Return the realized metrics; NaN if a label is missing or there are fewer than two samples."""
        if samples.codes is None or len(samples.codes) < 2 or (samples.codes == UNKNOWN).any():
            return {metric.name: np.nan for metric in self._metrics}
        ranked = RankedSamples(rank_columns(samples.scores), self._truth(samples), samples.predicted)
        return {metric.name: metric.estimate(ranked).value for metric in self._metrics}

    def _evaluate_chunk(self, samples: Samples, random: np.random.Generator) -> tuple[list[Evaluated], ShiftReport]:
        """Return the estimate of each metric, and the shift report; NaN if there are fewer than two samples."""
        if len(samples.scores) < 2:
            return [Evaluated()] * len(self._metrics), ShiftReport(np.nan, np.nan)
        columns = rank_columns(samples.scores)
        measured = measure_shift(self._sample, ComparedSamples(columns, samples.X), random)
        curves = self._curves
        if self.importance_weighted and self.calibrated_.any():
            curves = Curves(self._reference, self.calibrated_, measured.ratios)
        check_raw_scores(samples.scores, self.calibrated_)
        ranked = RankedSamples(columns, side_by_side([column.scores for column in columns]), samples.predicted)
        scored = Scored(ranked, {}) if curves is None else curves.apply(ranked)
        evaluated = []
        for metric in self._metrics:
            offset = self._offsets.get(metric.name)
            if offset is not None:
                offset = offset.scaled(metric.ratio(len(samples.scores), len(self._reference.p)))
            evaluated.append(evaluate(metric, scored, curves, offset, self, random))
        return evaluated, measured.with_limits(self._shift_limits)

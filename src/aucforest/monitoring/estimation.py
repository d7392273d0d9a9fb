"""Confidence-based performance estimation."""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from aucforest._caller import warn
from aucforest._restoring import restoring
from aucforest._sklearn import num_samples, safe_indexing
from aucforest.metrics.thresholds import decide
from aucforest.metrics.validation import class_codes, warn_undefined
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
    remember_columns,
)
from aucforest.monitoring.calibration import Calibration, columns_to_fit, is_rising
from aucforest.monitoring.chunks import Chunks
from aucforest.monitoring.metrics import (
    Metric,
    Normalize,
    alert_limits,
    find_metrics,
    is_beyond,
    known,
    proportion_at_k,
    reach_of_limits,
)
from aucforest.monitoring.result import CBPEResult, ChunkEstimate
from aucforest.monitoring.shift import Sample, ShiftReport, greatest_index, measure_shift
from aucforest.monitoring.soft import soft_roc_auc
from aucforest.monitoring.validity import LEAST_CHUNKS, Measured, prediction_limits, spread_out
from aucforest.tables.rows import indexable_rows

# With fewer positives in the reference, the coverage of intervals of metrics of the highest scores is far too low if
# scores shift; see benchmarks/monitoring_bias.py.
FEWEST_POSITIVES = 50


def _few_of(names: list[str]) -> str:
    """Return the first names, and whether there are more."""
    return f"{', '.join(names[:5])}{' and more' if len(names) > 5 else ''}"


def _is_sampled(frequencies: FloatArray, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which samples are in a random sample with these class frequencies, the largest possible one."""
    counts = np.bincount(labels, minlength=len(frequencies))
    rates = np.where(counts > 0, frequencies / np.maximum(counts, 1), 0.0)
    is_sampled: NDArray[np.bool_] = np.random.default_rng(0).random(len(labels)) < (rates / rates.max())[labels]
    return is_sampled


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
        Alert limits are mean -+ threshold * standard deviation of the metric in full reference chunks, of which they
        need two. With fewer than about 10 chunks the standard deviation is uncertain and false alerts are more
        frequent. If it is 0, an alert needs an interval of the estimate that is beyond the limits. The limits of
        shifts are prediction limits with the one-sided level of `threshold` standard deviations of a normal
        distribution. They need three chunks, and with fewer than 5 they are very wide. See `ShiftReport`.
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
        Alert limits of each metric for chunks of the mean size of full reference chunks, NaN if there are none. Those
        of counts and costs are scaled in proportion for other sizes. For smaller chunks the standard deviation is
        larger by the root of the ratio of the sizes. The limits of shifts depend on the size, too.
    n_features_in_ : int
        The number of columns of X, if X was passed to `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        The names of these columns, if all of them are strings.

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
        """Fit to labeled reference data that the classifier was not trained on; all parameters are passed by name.

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
            If the AUC is below 0.5, there are fewer than three full reference chunks, or fewer than two in which a
            metric is defined, so that limits are missing, alert limits are so wide that not even scores without
            information would be beyond them, or average precision, or precision or recall at K, is calibrated with
            fewer than 50 positives.

        Raises
        ------
        ValueError
            If scores are empty or not finite, values are missing, lengths differ, the reference has a single class,
            labels do not match, column names of X are not unique, or an option is invalid.
        TypeError
            If scores are not real numbers, features neither numbers nor categories, or chunks is not a Chunks object.
        """
        check_options(self)
        features, categories = learn_features(X)
        table, classes = read_table(
            y_score, y_true, y_pred, features, classes=self.labels, on_nan=self.on_nan, is_reference=True
        )
        metrics = find_metrics(self.metrics, classes, self.multi_class, self.normalize, self.cost)
        chunks = choose_chunks(chunks, Chunks.by_number(10))
        pieces = [(chunk.rows, table.take(chunk.rows)) for chunk in chunks.split(len(table.scores)) if chunk.is_full]
        pieces = [(rows, piece) for rows, piece in pieces if len(piece.scores) > 1]
        whole = table.take(slice(None))
        check_columns(self, metrics, whole)
        with restoring(self):
            remember_columns(self, X)
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
        this again after `set_threshold` or `set_prevalence`. After the latter the reference is a random sample of the
        training samples that has the class frequencies ``prevalence_``.

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
        features = None if X_ref is None else indexable_rows(X_ref)
        for name, n_rows in {
            "y_true": len(labels),
            "X_ref": num_samples(proba if X_ref is None else features),
        }.items():
            if n_rows != len(proba):
                raise ValueError(f"{name} has {n_rows} samples, but the forest was trained on {len(proba)}")
        scored = ~np.isnan(proba).any(axis=1)
        if hasattr(forest, "prevalence_"):
            codes, _ = class_codes(labels, len(labels), labels=forest.classes_)
            scored[scored] = _is_sampled(forest.prevalence_, codes[scored])
        if features is not None:
            features = safe_indexing(features, np.flatnonzero(scored))
        predicted = forest.classes_[decide(forest, proba[scored])]
        cbpe = cls(labels=forest.classes_, **options)
        return cbpe.fit(y_true=labels[scored], y_score=proba[scored], y_pred=predicted, X=features, chunks=chunks)

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
            Features, as in `fit`: a table must have the columns of the table there, with the same names in the same
            order, as `predict_proba` requires it.
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
            As in `fit`, or if uncalibrated scores are not probabilities, or if the number, the names or the order of
            the columns of X differ from those in `fit`.
        TypeError
            As in `fit`.
        """
        check_is_fitted(self, "limits_")
        X = encode_features(self, X, self._categories)
        table, _ = read_table(y_score, y_true, y_pred, X, classes=self.classes_, on_nan=self.on_nan, is_reference=False)
        check_columns(self, self._metrics, table)
        rows: list[ChunkEstimate] = []
        shifts, vague = {}, []
        for number, chunk in enumerate(choose_chunks(chunks, self._chunks).split(len(table.scores))):
            piece = table.take(chunk.rows)
            evaluated, report = self._evaluate_chunk(piece, self._random(number))
            shifts[chunk.key] = report
            if chunk.is_full and report.valid is None and not np.isnan(report.psi_limit):
                vague.append(chunk.key)
            realized = self._realized(piece)
            for metric, values in zip(self._metrics, evaluated):
                lower, upper = self._limits_for(metric, len(piece.scores))
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
                        alert=self._is_alert(metric, values, (lower, upper), report.valid),
                    )
                )
        bad = [f"{row.metric} of {row.chunk}" for row in rows if np.isnan(row.estimate)]
        if bad:
            warn_undefined(f"the estimates are not defined: {_few_of(bad)}")
        if vague:
            warn(
                f"no shift could be beyond its limits in {_few_of(vague)}, so that alerts are undefined: take"
                " larger chunks, or fit with 10 of them or more",
            )
        return CBPEResult(tuple(rows), shifts)

    def _learn(self, table: Table) -> None:
        """Fit the calibration curves, and compute the estimated minus the realized metrics on the reference."""
        columns, truth = rank_columns(table.scores), self._truth(table)
        for k, column in enumerate(columns):
            if not is_rising(column, truth[:, k]):
                auc = soft_roc_auc(Rows([column], truth[:, k : k + 1])).value
                which = f"the scores of class {self.classes_[k]}" if len(columns) > 1 else "the scores"
                warn(f"the ranking is inverted: {which} have an AUC of {auc:.3f} on the reference")
        self._reference = Rows(columns, truth, table.predicted)
        self._X = table.X
        self.calibrated_ = columns_to_fit(columns, truth, self.calibration, self.random_state)
        check_raw_columns(columns, self.calibrated_)
        positives = np.where(self.calibrated_, truth.sum(axis=0), np.inf)
        of_top = [name for name in self.metrics if name == "average_precision" or proportion_at_k(name) is not None]
        if of_top and positives.min() < FEWEST_POSITIVES:
            rarest = self.classes_[-len(columns) :][positives.argmin()]  # of two classes the second
            warn(
                f"{of_top[0]} is unreliable: the reference has {positives.min():.0f} samples of class "
                f"{rarest}, fewer than {FEWEST_POSITIVES}: label more samples or use roc_auc",
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
        realized = [self._realized(piece) for piece in pieces]
        sizes = [len(piece.scores) for piece in pieces]
        self._usual_size = float(np.mean(sizes)) if sizes else 1.0
        self._of_chunks: dict[str, list[float]] = {}
        self.limits_, reaches = {}, {}
        p = self._reference.p
        no_information = self._reference._replace(p=np.tile(p.mean(axis=0), (len(p), 1)))
        for metric in self._metrics:
            values = [of[metric.name] * metric.ratio(self._usual_size, size) for of, size in zip(realized, sizes)]
            self._of_chunks[metric.name] = values
            self.limits_[metric.name] = self._limits_for(metric, self._usual_size)
            if metric.name in self.metrics:  # cells of the confusion matrix neither rise nor fall with performance
                chance = metric.estimate(no_information).value * metric.ratio(self._usual_size, len(p))
                reaches[metric.name] = reach_of_limits(values, self.threshold, chance)
        self._warn_of_no_limits(len(pieces))
        self._warn_of_wide_limits(reaches)

    def _limits_for(self, metric: Metric, n_rows: float) -> tuple[float, float]:
        """Return the alert limits of a metric for a chunk of so many samples."""
        widening = max(1.0, np.sqrt(self._usual_size / max(n_rows, 1.0)))
        lower, upper = alert_limits(metric, self._of_chunks[metric.name], self.threshold * widening)
        ratio = metric.ratio(n_rows, self._usual_size)
        return ratio * lower, ratio * upper

    def _is_alert(
        self, metric: Metric, evaluated: Evaluated, limits: tuple[float, float], valid: bool | None
    ) -> bool | None:
        """Return whether a chunk is an alert, or None if that is undefined; see `ChunkEstimate`."""
        (lower, upper), value = limits, evaluated.estimate
        if self.threshold > 0.0 and not is_beyond(upper, lower, lower):  # the reference says nothing about the spread
            value = float(np.clip(lower, evaluated.low, evaluated.high))
        if valid is False or is_beyond(value, lower, upper):
            return True
        can_be_beyond = lower > metric.low or upper < metric.high
        return None if valid is None or np.isnan(value) or not can_be_beyond else False

    def _warn_of_no_limits(self, n_pieces: int) -> None:
        """Warn if limits are missing, because there are too few full reference chunks or they lack a class."""
        n_rows = len(self._reference.p)
        if n_pieces < LEAST_CHUNKS:
            what, needed = ("alert limits", "two") if n_pieces < 2 else ("limits of shifts", "three")
            warn(
                f"there are no {what}: they need {needed} full reference chunks, but there are {n_pieces}, so that"
                f" alerts are undefined: fit with smaller chunks, such as {n_rows // 10} of {n_rows} samples",
            )
        n_defined = {name: known(values).size for name, values in self._of_chunks.items()}
        lacking = [name for name, n in n_defined.items() if n < 2 <= n_pieces]
        if lacking:
            warn(
                f"there are no alert limits of {', '.join(lacking)}: they need two full reference chunks in which"
                f" it is defined, but there are {n_defined[lacking[0]]} of {n_pieces}: fit with larger chunks",
            )

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
        warn(
            f"the alert limits of {limits} are so wide that not even scores without information would raise an alert: "
            f"with chunks of about {float(f'{size:.2g}'):.0f} samples half of that fall would{few}",
        )

    def _set_shift_limits(self, table: Table, pieces: list[tuple[slice | IntArray, Table]]) -> None:
        """Compute the limits of shifts by comparing reference chunks, given by rows of `table`, with the rest of it."""
        measures = []
        for number, (rows, piece) in enumerate(spread_out(pieces) if len(pieces) >= LEAST_CHUNKS else []):
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
        n_new = new.columns[0].order.size
        return Measured(report, n_reference, n_new, greatest_index(self._reference.columns, n_new)), ratios

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

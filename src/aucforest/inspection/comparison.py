"""Cross-validated comparison of split criteria and the stack: table, test, verdict and plot."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d

from aucforest._display import HtmlTable
from aucforest._optional import import_optional
from aucforest.columns.rows import indexable_rows
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.stacking import AUCStackingClassifier
from aucforest.fitting.spec import criterion_name
from aucforest.inspection.folds import LabelledRows, make_folds, run_folds
from aucforest.inspection.scoring import METRICS, find_metric
from aucforest.metrics.intervals import require_level, score_interval, t_quantile
from aucforest.metrics.validation import unmask

BASELINE = "gini"
STACK = "stack"  # the name of a stack in the list of criteria


def compare_criteria(
    X: Any,
    y: ArrayLike,
    *,
    criteria: Sequence[str | Callable[..., Any]] = ("auto", "auc", BASELINE),
    cv: Any = 5,
    n_repeats: int = 1,
    groups: ArrayLike | None = None,
    metrics: Sequence[str] = tuple(METRICS),
    sample_weight: ArrayLike | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    **forest_params: Any,
) -> "CriteriaComparison":
    """Compare split criteria, and optionally a stack, with Gini by cross-validation.

    All other parameters are equal. In each fold, all criteria use the same samples and the same seed. For comparable
    fit times, code is compiled beforehand, fits run one after another, and the order of criteria changes from fold to
    fold. The command ``aucforest compare`` uses 100 trees, and three repeats if the folds can be repeated.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_features)
        The data, as for AUCForestClassifier.
    y : array-like of shape (n_samples,)
        Class labels.
    criteria : sequence of str or compiled functions, default=("auto", "auc", "gini")
        Split criteria of AUCForestClassifier, including "auto" for a mixed forest. The baseline "gini" is added if it
        is missing. A function f is shown as "f()". "stack" is an AUCStackingClassifier with a mixed forest.
    cv : int or scikit-learn splitter, default=5
        The number of stratified, shuffled folds, or a splitter. With groups, each group is in one fold.
    n_repeats : int, default=1
        The number of times the cross-validation is repeated. Must be 1 if `cv` is a splitter.
    groups : array-like of shape (n_samples,), default=None
        The group of each sample, such as a customer, for the folds or the splitter. Models are fitted without groups.
    metrics : sequence of str
        By default all of "roc_auc" (Hand and Till's extension for more than two classes), "average_precision",
        "g_mean", "brier", "log_loss", "fit_seconds", "n_nodes" and "depth". In "precision_at_K", "recall_at_K" and
        "lift_at_K", K is a proportion of the test samples, such as 0.01, or their number, such as 100. For more than
        two classes, these three metrics are means over classes.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights for fitting and for the metrics.
    random_state : int, RandomState instance or None, default=None
        Controls the folds and the seeds of the forests.
    n_jobs : int or None, default=None
        The number of threads of each forest.
    verbose : int, default=1
        Whether to show a progress bar.
    **forest_params
        Other parameters of AUCForestClassifier. The default of `threshold` is "prevalence". Without a threshold, a rare
        class would hardly ever be predicted, and the G-mean is 0 if a class is never predicted.

    Returns
    -------
    CriteriaComparison
        With ``verdict()``, ``summary()``, ``to_frame()`` and ``plot()``.

    Raises
    ------
    ValueError
        If a metric or criterion is unknown or duplicated, there are fewer than two folds, or a fold lacks a class.
    TypeError
        If AUCForestClassifier does not have a parameter, or if labels cannot be sorted.

    Examples
    --------
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import compare_criteria
    >>> X, rings = load_abalone(return_X_y=True)
    >>> comparison = compare_criteria(
    ...     X, rings >= 18, criteria=["auc"], metrics=["roc_auc"], n_estimators=20, random_state=0, verbose=0
    ... )
    >>> for row in comparison.summary():
    ...     print(row.criterion, row.mean > 0.75)
    auc True
    gini True
    >>> comparison.verdict().partition(";")[0]
    'No criterion ranks significantly better than gini on these folds'
    """
    for criterion in criteria:
        if isinstance(criterion, list | tuple):
            expected = "single criteria, or 'auto' for a mixed forest"
            raise TypeError(f"criteria must hold {expected}, but has the list {criterion!r}")
    names = criteria if isinstance(criteria, str) else [criterion_name(criterion) for criterion in criteria]
    by_name = {**dict(zip(check_choices("criteria", names), criteria)), BASELINE: BASELINE}
    metrics = check_choices("metrics", metrics)
    for name in metrics:
        find_metric(name)  # raises ValueError for an unknown metric
    X = indexable_rows(X)
    forest_params = {"threshold": "prevalence"} | forest_params | {"n_jobs": n_jobs}
    forests = {name: _make_model(criterion, **forest_params) for name, criterion in by_name.items()}
    random = check_random_state(random_state)
    folds = make_folds(X, y, cv=cv, n_repeats=n_repeats, groups=groups, random_state=random)
    labels = np.asarray(column_or_1d(y))
    weights = None if sample_weight is None else np.asarray(unmask(sample_weight), dtype=np.float64)
    check_consistent_length(X, labels, weights)
    table = run_folds(forests, LabelledRows(X, labels, weights), folds, metrics, random, verbose)
    return CriteriaComparison(tuple(by_name), metrics, table, n_classes=len(np.unique(labels)))


def _make_model(
    criterion: Any, threshold: Any, oob_score: Any = False, **params: Any
) -> AUCForestClassifier | AUCStackingClassifier:
    """Return a forest with a criterion, or a stack; `threshold` and `oob_score` are parameters of the stack itself."""
    if criterion == STACK:
        return AUCStackingClassifier(AUCForestClassifier(**params), threshold=threshold, oob_score=oob_score)
    return AUCForestClassifier(criterion=criterion, threshold=threshold, oob_score=oob_score, **params)


class ComparisonRow(NamedTuple):
    """Mean of a metric over folds for one criterion, and its difference from Gini, with confidence intervals.

    ``adjusted_pvalue`` is ``pvalue`` adjusted for the number of criteria by Holm's method.
    """

    criterion: str
    metric: str
    mean: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    pvalue: float
    adjusted_pvalue: float

    @property
    def pvalue_text(self) -> str:
        """The adjusted p-value as text; empty for Gini, for fit time and sizes of trees, and if it is undefined."""
        if self.criterion == BASELINE or find_metric(self.metric).kind == "cost" or np.isnan(self.adjusted_pvalue):
            return ""
        return f"p = {self.adjusted_pvalue:.2g}" if self.adjusted_pvalue >= 0.001 else "p < 0.001"

    @property
    def is_better(self) -> bool:
        """Whether the mean is better than the mean of the baseline."""
        return (self.difference > 0) == find_metric(self.metric).higher_is_better and self.difference != 0


@dataclass(frozen=True, repr=False)
class CriteriaComparison(HtmlTable):
    """Results of `compare_criteria`.

    Attributes
    ----------
    criteria : tuple of str
        The criteria, always including Gini.
    metrics : tuple of str
        The metrics.
    folds : structured ndarray of shape (n_folds, n_criteria)
        One record for each fit, with the fields "fold", "criterion", "n_train" and "n_test" and one for each metric.
    n_classes : int
        The number of classes.
    """

    criteria: tuple[str, ...]
    metrics: tuple[str, ...]
    folds: NDArray[np.void]
    n_classes: int

    def summary(self, level: float = 0.95) -> list[ComparisonRow]:
        """Return the mean of each metric and the corrected resampled t-test of each criterion against Gini.

        Let s^2 be the variance over J folds. Training sets overlap, so the variance of the mean is larger than s^2 / J.
        Intervals and the paired test use Nadeau and Bengio's variance (1 / J + n_test / n_train) s^2 with J - 1 degrees
        of freedom. This variance is too large if forests differ mostly by their random numbers (table in the
        documentation). P-values are adjusted for the number of criteria, not of metrics, by the method of Holm (1979).
        Intervals are not adjusted. They are within the range of the metric: Wilson intervals for a mean, and clipped
        intervals for a difference. If a metric or difference is the same on all folds, its interval is NaN. The p-value
        of such a difference is NaN, or 1 if the difference is 0.

        Parameters
        ----------
        level : float in (0, 1), default=0.95
            Confidence level of the intervals.

        Returns
        -------
        list of ComparisonRow
            One for each metric and criterion. For Gini, the difference is 0 and the p-value is 1.

        References
        ----------
        Nadeau and Bengio: Inference for the generalization error. Machine Learning 52, 2003, equation 9.

        Holm: A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6, 1979.
        """
        return [row for metric in self.metrics for row in self._rows(metric, level)]

    def _rows(self, metric: str, level: float) -> list[ComparisonRow]:
        require_level(level)
        rows, upper = list[ComparisonRow](), find_metric(metric).upper_bound(self.n_classes)
        baseline = self._values(metric, BASELINE)
        for criterion in self.criteria:
            values, difference = self._values(metric, criterion), (0.0, 0.0, 0.0, 1.0)
            if criterion != BASELINE:
                difference = _resampled_difference(values, baseline, self.folds, upper, level)
            mean = resampled_mean(values, self.folds, upper, level)
            rows.append(ComparisonRow(criterion, metric, *mean, *difference, adjusted_pvalue=1.0))
        return adjust_pvalues(rows, BASELINE)

    def _values(self, metric: str, criterion: str) -> NDArray[np.float64]:
        return self.folds[metric][:, self.criteria.index(criterion)]

    def verdict(self, metric: str | None = None, *, level: float = 0.95) -> str:
        """Return one sentence on which criteria are significantly better than Gini by a metric, and which is best.

        A difference is significant if its adjusted p-value is below ``1 - level``. The interval is not adjusted for the
        number of criteria, so it may exclude 0 even if the difference is not significant.

        Parameters
        ----------
        metric : str, default=None
            The metric. None uses the first metric that is neither fit time nor size of trees.
        level : float in (0, 1), default=0.95
            Confidence level.

        Returns
        -------
        str

        Raises
        ------
        ValueError
            If the metric is not in the comparison, or is None and there are only fit times and sizes of trees.
        """
        if metric is None and not self.metrics_of_quality:
            raise ValueError(f"the comparison has no metric of quality, only {', '.join(self.metrics)}: name one")
        metric = self.metrics_of_quality[0] if metric is None else metric
        check_choices("metric", [metric], self.metrics)
        rows = [row for row in self._rows(metric, level) if row.criterion != BASELINE]
        return _verdict(rows, level) if rows else f"There is no criterion to compare with {BASELINE}."

    @property
    def metrics_of_quality(self) -> tuple[str, ...]:
        """The metrics other than fit time and sizes of trees."""
        return tuple(name for name in self.metrics if find_metric(name).kind != "cost")

    def to_frame(self) -> Any:
        """Return the fits as a pandas DataFrame with one row for each fold and criterion."""
        pandas = import_optional("pandas", purpose="to_frame", extra="frame")
        return pandas.DataFrame(self.folds.ravel())

    def plot(self, metrics: Sequence[str] | None = None, *, level: float = 0.95) -> Any:
        """Plot the paired differences from Gini, with one panel for each metric.

        A panel shows the difference on each fold, and the mean difference with the interval of `summary`.

        Parameters
        ----------
        metrics : sequence of str, default=None
            The metrics to plot. None plots all of them.
        level : float in (0, 1), default=0.95
            Confidence level of the intervals.

        Returns
        -------
        matplotlib.figure.Figure
        """
        metrics = check_choices("metrics", self.metrics if metrics is None else metrics, self.metrics)
        n_columns = min(4, len(metrics))
        n_rows = -(-len(metrics) // n_columns)
        pyplot = import_optional("matplotlib.pyplot", purpose="plotting", extra="plot")
        size = (3.2 * n_columns, n_rows * (1.3 + 0.42 * (len(self.criteria) - 1)))
        figure = pyplot.figure(figsize=size, layout="constrained")
        panels = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True).ravel()
        for panel, metric in zip(panels, metrics):
            self._draw(panel, metric, level)
        for panel in panels[len(metrics) :]:
            panel.set_axis_off()
        return figure

    def _draw(self, panel: Any, metric: str, level: float) -> None:
        rows = [row for row in self._rows(metric, level) if row.criterion != BASELINE]
        panel.axvline(0.0, color="0.45", linestyle="--", linewidth=1)
        for k, row in enumerate(rows):
            differences = self._values(metric, row.criterion) - self._values(metric, BASELINE)
            heights = np.full(len(differences), k + 0.2)
            panel.scatter(differences, heights, s=14, color=f"C{k}", alpha=0.35, linewidths=0)
            panel.plot([row.difference_low, row.difference_high], [k, k], color=f"C{k}", linewidth=2)
            panel.plot(row.difference, k, "o", color=f"C{k}", markersize=7)
            # The text is beside the panel, where no point or line crosses it.
            style = {"textcoords": "offset points", "va": "center", "fontsize": 8, "color": f"C{k}"}
            panel.annotate(row.pvalue_text, (1.0, k), (3, 0), xycoords=panel.get_yaxis_transform(), **style)
        better = "→" if find_metric(metric).higher_is_better else "←"
        panel.set_title(f"{find_metric(metric).title}  {better} better", fontsize=10)
        panel.set_xlabel(f"difference from {BASELINE}", fontsize=9)
        panel.set_yticks(range(len(rows)), [row.criterion for row in rows])
        panel.set_ylim(len(rows) - 0.5, -0.5)
        panel.spines[["top", "right"]].set_visible(False)
        panel.margins(x=0.12)
        panel.locator_params(axis="x", nbins=4)  # tick labels of differences are long
        panel.grid(axis="x", alpha=0.3)

    def _table(self) -> Any:
        pandas = import_optional("pandas", purpose="the table", extra="frame")
        table = pandas.DataFrame(self.summary())
        table.loc[~table["metric"].isin(self.metrics_of_quality), ["pvalue", "adjusted_pvalue"]] = np.nan
        return table.set_index(["metric", "criterion"])

    def __repr__(self) -> str:
        lines = [self.verdict()] if self.metrics_of_quality else []
        lines.append(f"{len(self.criteria)} criteria on {len(self.folds)} folds, differences from {BASELINE}")
        width = max(map(len, self.criteria))
        for metric in sorted(self.metrics, key=lambda name: find_metric(name).kind == "cost"):
            lines.append(find_metric(metric).title)
            for row in self._rows(metric, 0.95):
                digits = decimals(row.low, row.high, row.mean)
                interval = "" if np.isnan(row.low) else f" [{row.low:.{digits}f}, {row.high:.{digits}f}]"
                line = f"  {row.criterion:<{width}}  {row.mean:.{digits}f}{interval}"
                if row.criterion != BASELINE:
                    digits = decimals(row.difference_low, row.difference_high, row.difference)
                    line += f"  {row.difference:+.{digits}f}  {row.pvalue_text}"
                lines.append(line.rstrip())
        return "\n".join(lines)


def _verdict(rows: list[ComparisonRow], level: float) -> str:
    metric = find_metric(rows[0].metric)
    verbs = ("ranks", "rank") if metric.kind == "ranking" else ("does", "do")
    significant = [row for row in rows if row.adjusted_pvalue < 1.0 - level]
    better = _subject([row.criterion for row in significant if row.is_better], verbs) or f"No criterion {verbs[0]}"
    worse = _subject([row.criterion for row in significant if not row.is_better], verbs)
    worse = f", and {worse} significantly worse" if worse else ""
    best = max(rows, key=lambda row: row.difference if metric.higher_is_better else -row.difference)
    leader, runner_up = (best.criterion, "") if best.is_better else (BASELINE, f"then {best.criterion}, ")
    extreme, low, high = "highest" if metric.higher_is_better else "lowest", best.difference_low, best.difference_high
    digits = decimals(low, high)
    difference, low_text, high_text = (f"{value:+.{digits}f}" for value in (best.difference, low, high))
    interval = "" if np.isnan(low) else f", {100 * level:g} % interval {low_text} to {high_text}"
    return (
        f"{better} significantly better than {BASELINE} on these folds{worse}; {leader} has the {extreme} "
        f"{metric.title}, {runner_up}{difference}{interval}."
    )


def _subject(names: Sequence[str], verbs: tuple[str, str]) -> str:
    """Return names and their verb in singular or plural; an empty string without names."""
    if len(names) < 2:
        return "".join(f"{name} {verbs[0]}" for name in names)
    return f"{', '.join(names[:-1])} and {names[-1]} {verbs[1]}"


def check_choices(parameter: str, names: Sequence[str], allowed: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return names as a tuple; raise ValueError if there are no names, duplicates or unknown names."""
    if isinstance(names, str) or not len(names):
        raise ValueError(f"{parameter} must be a non-empty list of names, got {names!r}")
    for name in names:
        if list(names).count(name) > 1:
            raise ValueError(f"{parameter} contains {name!r} twice")
        if allowed is not None and name not in allowed:
            raise ValueError(f"{parameter} must be among {', '.join(allowed)}, got {name!r}")
    return tuple(names)


def resampled_mean(
    values: NDArray[np.float64], folds: NDArray[np.void], upper: float, level: float
) -> tuple[float, float, float]:
    """Return the mean of a metric over folds, and its interval within 0 and `upper`, NaN if all values are equal."""
    mean, variance, quantile = _corrected_moments(values, folds, level, _rounding_bound(values))
    if np.isnan(variance):
        return mean, np.nan, np.nan
    return mean, *score_interval(mean, variance / (mean * (1.0 - mean / upper)), quantile, upper)


def _resampled_difference(
    values: NDArray[np.float64], baseline: NDArray[np.float64], folds: NDArray[np.void], upper: float, level: float
) -> tuple[float, float, float, float]:
    """Return the mean of `values` minus `baseline`, its confidence interval, and the p-value for a mean of zero."""
    rounding = _rounding_bound(np.append(values, baseline))
    mean, variance, quantile = _corrected_moments(values - baseline, folds, level, rounding)
    error = math.sqrt(variance)
    is_zero = np.isnan(variance) and abs(mean) <= rounding
    pvalue = 1.0 if is_zero else float(2.0 * stdtr(len(values) - 1, -abs(mean) / error))
    return mean, max(mean - quantile * error, -upper), min(mean + quantile * error, upper), pvalue


def adjust_pvalues(rows: Sequence[ComparisonRow], baseline: str) -> list[ComparisonRow]:
    """Return rows of a metric with p-values adjusted for the number of criteria other than the baseline."""
    adjusted = holm([np.nan if row.criterion == baseline else row.pvalue for row in rows])
    return [row if row.criterion == baseline else row._replace(adjusted_pvalue=p) for row, p in zip(rows, adjusted)]


def holm(pvalues: Sequence[float]) -> NDArray[np.float64]:
    """Return p-values adjusted for their number by Holm's method. NaN values remain NaN and are not counted."""
    adjusted = np.array(pvalues, dtype=np.float64)
    order = np.argsort(adjusted)[: np.count_nonzero(~np.isnan(adjusted))]  # NaN comes last
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(adjusted[order] * factors), 1.0)
    return adjusted


def decimals(low: float, high: float, value: float = 0.0) -> int:
    """Return how many decimals show two digits of the half-width or, without an interval, four digits of `value`."""
    if low < high:
        return max(0, 1 - math.floor(math.log10((high - low) / 2.0)))
    return 4 if abs(value) <= 1.0 else max(0, 3 - math.floor(math.log10(abs(value))))


def _rounding_bound(values: NDArray[np.float64]) -> float:
    """Return an upper bound of the rounding errors of differences between values, and of their mean."""
    return float(4 * len(values) * np.finfo(np.float64).eps * values.max())


def _corrected_moments(
    values: NDArray[np.float64], folds: NDArray[np.void], level: float, rounding: float
) -> tuple[float, float, float]:
    """Return the mean over folds, its variance with Nadeau and Bengio's correction, and the quantile of Student's t.

    The variance is NaN if the values do not differ by more than `rounding`.
    """
    n_folds, test_to_train = len(values), float(np.mean(folds["n_test"] / folds["n_train"]))
    variance = float((1 / n_folds + test_to_train) * values.var(ddof=1)) if np.ptp(values) > rounding else np.nan
    return float(values.mean()), variance, t_quantile(n_folds - 1, level)

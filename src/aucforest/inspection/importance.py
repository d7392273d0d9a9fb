"""Out-of-bag permutation importance: computation, table and plot."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import cycle, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from aucforest._display import Display, HtmlTable
from aucforest._optional import import_optional
from aucforest._progress import progress_bar
from aucforest._sklearn import safe_indexing
from aucforest.columns.rows import indexable_rows
from aucforest.columns.sparse import as_dense
from aucforest.estimators.out_of_bag import OutOfBagScorer, Scorer, is_roc_auc, training_rows
from aucforest.estimators.out_of_bag_pairs import OutOfBagPairs
from aucforest.fitting.bootstrap import BLOCK_ROWS
from aucforest.fitting.growing import ParallelMap, thread_map
from aucforest.fitting.out_of_bag import RatedRows, TrainingRows, sum_out_of_bag, warn_of_never_out
from aucforest.inspection._permuted import MOST_FEATURES, PermutedRows, find_path_features
from aucforest.inspection.models import check_count, check_forest, input_names_of, name_of_score
from aucforest.metrics.intervals import require_level, t_quantile

_MOST_PARTS = 10  # maximum number of random parts of the rows; fewer if a class has fewer rows
_TASK_ORDERS = 32  # maximum number of permutations in a task, which finds the leaves of its unpermuted rows only once
_MOST_BYTES = 2**28  # bytes of sums and permuted columns that are kept at a time

PartScore = Callable[[NDArray[np.float64]], float]  # the score of a part of the rows, given probabilities of all rows


@dataclass(frozen=True, repr=False, eq=False)
class PermutationImportance(HtmlTable):
    """Results of `oob_permutation_importance`: the drop in a score when a feature is permuted.

    Attributes
    ----------
    importances : ndarray of shape (n_features, n_repeats), float64
        The score without permutation minus the score with the feature permuted. Both scores are computed from one
        out-of-bag prediction for each sample.
    importances_mean, importances_std : ndarray of shape (n_features,), float64
        Mean and standard deviation over repeats, as in scikit-learn. The standard deviation is due to the permutations
        only.
    importances_stderr : ndarray of shape (n_features,), float64
        Standard error of the mean, which also reflects the finite number of samples. NaN if a class has fewer than two
        scored samples.
    baseline_score : float
        The out-of-bag score without permutation. For ROC AUC, two samples are compared by the trees for which both are
        out of bag, as in ``oob_score_``.
    n_scored : int
        Number of scored samples, which are out of bag for at least one tree.
    scoring : str
        Name of the score.
    feature_names : tuple of str
        Names of the features.
    n_parts : int
        Number of random parts of the samples, from which the standard errors are computed.
    """

    importances: NDArray[np.float64]
    importances_stderr: NDArray[np.float64]
    baseline_score: float
    n_scored: int
    scoring: str
    feature_names: tuple[str, ...]
    n_parts: int

    @property
    def importances_mean(self) -> NDArray[np.float64]:
        """Mean importance over repeats."""
        return np.asarray(self.importances.mean(axis=1))

    @property
    def importances_std(self) -> NDArray[np.float64]:
        """Standard deviation over repeats."""
        return np.asarray(self.importances.std(axis=1))

    def importances_interval(self, level: float = 0.95) -> NDArray[np.float64]:
        """Return confidence intervals of the importances from Student's t with ``n_parts - 1`` degrees of freedom.

        Parameters
        ----------
        level : float in (0, 1), default=0.95

        Returns
        -------
        ndarray of shape (n_features, 2), float64
            Lower and upper bounds, NaN if the standard error is NaN.
        """
        require_level(level)
        half_width = self.importances_stderr * t_quantile(max(self.n_parts - 1, 1), level)
        return np.stack((self.importances_mean - half_width, self.importances_mean + half_width), axis=1)

    def _order(self) -> NDArray[np.int64]:
        return np.argsort(-self.importances_mean, kind="stable")

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row for each feature, the most important first."""
        pandas = import_optional("pandas", purpose="to_frame", extra="frame")
        columns = {"mean": self.importances_mean, "stderr": self.importances_stderr, "std": self.importances_std}
        index = pandas.Index(self.feature_names, name="feature")
        return pandas.DataFrame(columns, index=index).iloc[self._order()]

    _table = to_frame

    def plot(self, ax: Any = None, *, max_features: int = 20) -> "ImportanceDisplay":
        """Plot the importances, the most important feature at the top; parameters as in `ImportanceDisplay`."""
        check_count("max_features", max_features, 1)
        return ImportanceDisplay(self, max_features=max_features).plot(ax)

    def __repr__(self) -> str:
        width = max(map(len, self.feature_names))
        lines = [f"out-of-bag {self.scoring} {self.baseline_score:.4f} ({self.n_scored:,} samples); drop by feature:"]
        for j in self._order():
            name, mean, error = self.feature_names[j], self.importances_mean[j], self.importances_stderr[j]
            lines.append(f"  {name:<{width}}  {mean:+.4f} ± {error:.4f}")
        return "\n".join(lines)


@dataclass(repr=False, eq=False)
class ImportanceDisplay(Display):
    """Plot of permutation importances with 95 % confidence intervals, created by `PermutationImportance.plot`.

    Parameters
    ----------
    importance : PermutationImportance
        The importances to plot.
    max_features : int, default=20
        The maximum number of features to plot.

    Attributes
    ----------
    container_ : matplotlib ErrorbarContainer
        The points and intervals, the most important feature first.
    """

    importance: PermutationImportance
    _: KW_ONLY
    max_features: int = 20

    def _size(self) -> tuple[float, float]:
        return 6.4, 0.9 + 0.3 * min(self.max_features, len(self.importance.feature_names))

    def _draw(self, ax: Any) -> None:
        importance = self.importance
        features = importance._order()[: self.max_features]
        errors = np.diff(importance.importances_interval()[features], axis=1)[:, 0] / 2
        means, heights = importance.importances_mean[features], np.arange(len(features))
        self.container_ = ax.errorbar(means, heights, xerr=errors, fmt="o", markersize=5, capsize=2)
        ax.axvline(0.0, color="0.6", linewidth=1.0)
        ax.set_yticks(heights, [importance.feature_names[j] for j in features])
        ax.set_ylim(len(features) - 0.5, -0.5)
        ax.set_xlabel(f"drop in out-of-bag {importance.scoring} (baseline {importance.baseline_score:.3f})")
        ax.grid(axis="x", alpha=0.3)


def oob_permutation_importance(
    forest: Any,
    X: Any,
    y: ArrayLike,
    *,
    scoring: str | Callable[..., float] = "roc_auc",
    n_repeats: int = 5,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> PermutationImportance:
    """Permutation importance on out-of-bag samples.

    The importance of a feature is the drop in the out-of-bag score when its values are permuted over the training
    samples, so no held-out data are needed. For rare classes, [1]_ propose the drop in the ROC AUC of each tree. Here,
    the score is that of the forest. Unlike the impurity-based ``feature_importances_``, the drop does not favour
    features with many values. A categorical column is permuted together with its target rates (target encoding),
    including those of interactions.

    Parameters
    ----------
    forest : AUCForestClassifier
        A forest fitted with ``bootstrap=True``.
    X, y : array-like of shape (n_samples, n_features) and (n_samples,)
        The training samples and labels, in the same order as in `fit`.
    scoring : str or callable, default="roc_auc"
        Name of a scikit-learn scorer, or a callable ``scorer(estimator, X, y)`` that uses probabilities or labels.
        "roc_auc" is Hand and Till's extension for more than two classes.
    n_repeats : int, default=5
        The number of times each feature is permuted.
    sample_weight : array-like of shape (n_samples,), default=None
        The sample weights of `fit`. They are also used in scoring.
    n_jobs : int or None, default=None
        The number of threads. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Controls the permutations.
    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    PermutationImportance
        With ``importances_mean``, ``importances_stderr``, ``importances_interval()``, ``to_frame()`` and ``plot()``.
        Standard errors are computed by random groups ([2]_, section 2.2), from the variance of the importance over at
        most 10 parts of the samples with equal class frequencies. They reflect the choice of samples and permutations,
        not the randomness of the forest.

    Raises
    ------
    ValueError, TypeError
        If X and y are not the training data, the forest has no bootstrap samples, the score is unknown, or the model is
        not a forest.

    Warns
    -----
    UserWarning
        If some samples are in the bootstrap sample of every tree. Such samples are left out.

    References
    ----------
    .. [1] S. Janitza, C. Strobl, A.-L. Boulesteix, "An AUC-based permutation variable importance measure for random
       forests", BMC Bioinformatics 14 (2013), 119.
    .. [2] K. M. Wolter, Introduction to variance estimation, 2nd edition, Springer 2007.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier, datasets, inspection
    >>> X, rings = datasets.load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(50, random_state=0).fit(X, rings >= 12)
    >>> result = inspection.oob_permutation_importance(forest, X, rings >= 12, n_repeats=2, random_state=0)
    >>> result.importances.shape
    (8, 2)
    >>> result.feature_names[result.importances_mean.argmax()]  # the weight of the shell
    'feature_7'
    >>> display = result.plot(max_features=3)
    """
    check_forest(forest)
    check_count("n_repeats", n_repeats, 1)
    score = OutOfBagScorer(forest, scoring).score
    X = indexable_rows(X)
    rows = training_rows(forest, X, y, sample_weight)
    if not isinstance(rows.X, RatedRows):
        rows = replace(rows, X=as_dense(rows.X))
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    sums = _OutOfBagSums(forest, rows, n_repeats, seed, n_jobs)
    is_scored = sums.n_trees > 0
    if not is_scored.any():
        raise ValueError(f"no sample is out of bag: all {len(forest.trees_)} trees use all {len(is_scored)} samples")
    warn_of_never_out(int(np.count_nonzero(~is_scored)), len(is_scored), len(forest.trees_), "the importances")

    def proba_of(total: NDArray[np.float64]) -> NDArray[np.float64]:
        return forest._mean_of_trees(total[is_scored], sums.n_trees[is_scored, None])

    scored, proba = rows.bags.all_kept[is_scored], proba_of(sums.baseline)
    parts = scores_of_parts(X, rows, scored, score, seed)
    with progress_bar(total=sums.n_features, desc="features", verbose=verbose) as progress:

        def permuted() -> Iterator[list[Callable[[], NDArray[np.float64]]]]:
            for features, totals in sums.permuted():
                yield [partial(proba_of, total) for total in totals]
                progress.update(len(features))

        result = measure_importance(parts, proba, permuted(), n_repeats, input_names_of(forest), thread_map(n_jobs))
    baseline_score = result.baseline_score
    if is_roc_auc(scoring):
        pairs = OutOfBagPairs(forest, rows, n_jobs)
        baseline_score = pairs.correct(baseline_score, len(forest.trees_), scored, proba)
    return replace(result, baseline_score=baseline_score, scoring=name_of_score(scoring))


def scores_of_parts(X: Any, rows: Any, scored: NDArray[np.int64], score: Scorer, seed: int) -> list[PartScore]:
    """Return functions that compute a score: the first on all rows in `scored`, each other one on a random part.

    `scored` has indices of rows of X. The argument of each function has the class probabilities of all these rows.
    There are 2 to 10 parts with equal class frequencies, or none if a class has a single row. `rows` has the labels and
    sample_weight of X; `score` is a function of X, labels, class probabilities and weights.
    """
    labels = rows.labels[scored]
    counts = np.bincount(labels)
    n_parts = min(_MOST_PARTS, int(counts[counts > 0].min())) if len(labels) else 0
    # Rows are in random order within their classes. Part k is every n_parts-th row, starting at row k.
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]

    def score_of(part: NDArray[np.int64]) -> PartScore:
        indices = scored[part]
        X_part, y_part = safe_indexing(X, indices), rows.labels[indices]
        weights = None if rows.sample_weight is None else rows.sample_weight[indices]
        return lambda proba: score(X_part, y_part, proba[part], weights)

    parts = [np.sort(order[part::n_parts]) for part in range(n_parts)] if n_parts >= 2 else []
    return [score_of(part) for part in (np.arange(len(labels)), *parts)]


def measure_importance(
    parts: list[PartScore],
    proba: NDArray[np.float64],
    permuted: Iterable[Sequence[Callable[[], NDArray[np.float64]]]],
    n_repeats: int,
    names: Sequence[str],
    run: ParallelMap = map,
) -> PermutationImportance:
    """Return permutation importances from `scores_of_parts` and the class probabilities of the scored rows.

    `permuted` yields lists of functions that return class probabilities with a feature permuted. A list has all repeats
    of one or more features. Each repeat is scored on all rows. Each random part is scored in one of the repeats only.
    """
    baseline = np.array([part(proba) for part in parts])
    parts_of_repeats = [[0, *range(repeat + 1, len(parts), n_repeats)] for repeat in range(n_repeats)]

    def measure_drops(task: tuple[list[int], Callable[[], NDArray[np.float64]]]) -> NDArray[np.float64]:
        indices, proba = task[0], task[1]()
        return baseline[indices] - np.array([parts[i](proba) for i in indices])

    drops = [drop for block in permuted for drop in run(measure_drops, zip(cycle(parts_of_repeats), block))]
    by_feature = [drops[start : start + n_repeats] for start in range(0, len(drops), n_repeats)]
    importances = np.array([[drop[0] for drop in repeats] for repeats in by_feature])
    part_drops = [np.concatenate([drop[1:] for drop in repeats]) for repeats in by_feature]
    errors = np.array(list(map(standard_error, importances, part_drops)))
    score = float(baseline[0])
    return PermutationImportance(importances, errors, score, len(proba), "roc_auc", tuple(names), len(parts) - 1)


def standard_error(repeat_drops: NDArray[np.float64], part_drops: NDArray[np.float64]) -> float:
    """Return the standard error of the mean of `repeat_drops`. `part_drops` has the drop of each part in one repeat.

    The drop in one repeat has a larger variance than the mean over repeats. The difference is subtracted.
    """
    if len(part_drops) < 2:
        return np.nan
    n_repeats = len(repeat_drops)
    permutation_variance = float(repeat_drops.var(ddof=1)) if n_repeats > 1 else 0.0
    variance = part_drops.var(ddof=1) / len(part_drops) - (1 - 1 / n_repeats) * permutation_variance
    return float(np.sqrt(max(variance, permutation_variance / n_repeats)))


class _OutOfBagSums:
    """For each row, sums of the out-of-bag predictions, with and without permuted features."""

    def __init__(self, forest: Any, rows: TrainingRows, n_repeats: int, seed: int, n_jobs: int | None) -> None:
        self.forest, self.rows, self.n_repeats, self.seed, self.run = forest, rows, n_repeats, seed, thread_map(n_jobs)
        self._thread = threading.local()
        self.inputs = np.array(forest._inputs_of_features)
        self.n_features = int(self.inputs.max()) + 1
        trees, kept = range(len(rows.bags.keys)), rows.bags.all_kept
        # Rows of weight 0 are left out, because they have no out-of-bag target rates.
        self.X = rows.X if isinstance(rows.X, np.ndarray) and rows.bags.kept is None else rows.X[kept]
        self.any_missing = bool(np.isnan(self.X).any())
        (sums,) = sum_out_of_bag(rows, [(trees, forest._pack())], [trees], len(forest.classes_), n_jobs)
        self.baseline, self.n_trees = sums.total[kept], sums.n_trees[kept]

    def permuted(self) -> Iterator[tuple[range, NDArray[np.float64]]]:
        """Yield ranges of features, each with the sums for its permutations, (n_permutations, n_rows, n_classes)."""
        bytes_per_feature = self.n_repeats * len(self.baseline) * (self.baseline.shape[1] + 1) * 8
        n_together = min(max(1, _MOST_BYTES // bytes_per_feature), MOST_FEATURES)

        def permutations(feature: int) -> NDArray[np.int64]:
            random = np.random.default_rng([self.seed, feature])
            return np.stack([random.permutation(len(self.X)) for _ in range(self.n_repeats)])

        for start in range(0, self.n_features, n_together):
            features = range(start, min(start + n_together, self.n_features))
            orders = np.concatenate(list(self.run(permutations, features)))
            yield features, self._sums(features, orders)

    def _copy_of_block(self, block: int, indices: slice) -> NDArray[np.float64]:
        """Return this thread's copy of the rows of a block. It is reused, because copying all features is slow."""
        if getattr(self._thread, "block", None) != block:
            self._thread.block, self._thread.X = block, np.array(self.X[indices], dtype=np.float64, order="C")
        return self._thread.X

    def _sums(self, features: range, orders: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the sums for each row order; there are n_repeats for each feature, which includes its target rates."""
        packed, bags = self.forest._pack(), self.rows.bags
        paths = find_path_features(self.forest.trees_, features.start, self.inputs)
        columns = [np.flatnonzero(self.inputs == feature) for feature in features]
        totals = np.empty((len(orders), *self.baseline.shape))

        def fill(task: tuple[int, int]) -> None:
            block, first_order = task
            indices = slice(block * BLOCK_ROWS, block * BLOCK_ROWS + len(bags.rows(block)))
            X = self._copy_of_block(block, indices)
            block_rows = PermutedRows(packed, paths, X, bags.counts(block, range(len(bags.keys))), self.any_missing)
            for i in range(first_order, min(first_order + _TASK_ORDERS, len(orders))):
                bit = i // self.n_repeats
                values = self.X[orders[i, indices][:, None], columns[bit]].astype(np.float64, copy=False)
                totals[i, indices] = block_rows.sums(bit, columns[bit], values)

        tasks = product(range(bags.sampler.n_blocks), range(0, len(orders), _TASK_ORDERS))
        list(self.run(fill, tasks))
        return totals

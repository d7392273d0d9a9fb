"""The boosted trees of a stack: a series of trees for each fold, fitted to the rows of the other folds.

The scores of a training row are predicted by the series that was not fitted to it. The scores of a new row are the mean
over all series; no series is fitted to all rows.

A leaf adds a step s to the score of a class k. The trees are stored as a forest, which can be saved, exported and
explained. In a forest, the values of a leaf must not be negative and must sum to 1. So the value of class j of K > 2
classes is (1 + (d - 1 / K) s / c) / K, where d is 1 if j = k and else 0, and c is the largest absolute step of all
leaves. For two classes, s is also subtracted from the score of the other class, and the values are (1 + s / c) / 2 and
(1 - s / c) / 2. The mean score over the series is the mean value over all trees times a scale, up to a constant that is
the same for all classes.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from aucforest._progress import progress_bar
from aucforest.columns.target_rates import ENCODINGS, INTERACTIONS, RATES, SETS
from aucforest.estimators._class_sample import class_frequencies
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.fitting.boosted import BoostedTree, Booster, BoostingRows, BoostingState, boosted_classes, sum_steps
from aucforest.fitting.bootstrap import SampleRecord
from aucforest.fitting.encodings import encode_samples
from aucforest.fitting.growing import thread_map
from aucforest.fitting.in_memory import RowsInMemory
from aucforest.fitting.out_of_bag import RatedRows
from aucforest.fitting.parts import Growth, Part, TreeRows
from aucforest.fitting.spec import tree_keys
from aucforest.fitting.target_rates import RateWeights
from aucforest.metrics.validation import FloatArray
from aucforest.tree.tree import Tree

# The parameters and limits were chosen on the data sets of benchmarks/ranking.py with names from a to q, and on the
# tables of `benchmarks/many_categories.py tables`.
_PARAMS: dict[str, Any] = {
    "criterion": "gini",
    "splitter": "best",
    "bootstrap": False,
    "max_depth": 6,
    "min_samples_leaf": 20,
    "max_features": 0.5,
    "shrinkage": None,
    "calibration": None,
}
# A series stops after _PATIENCE stages without a lower log loss of its fold, or after _MOST_STAGES stages or
# _MOST_TREES trees. A stage is one tree or, with more than two classes, a tree for each class.
_PATIENCE, _MOST_STAGES, _MOST_TREES = 20, 600, 2400
# A stack has boosted trees only for at least LEAST_ROWS rows and at most MOST_CLASSES classes. With fewer rows, the fit
# would be several times as long, but not better. With more classes, there would be few trees for each class.
LEAST_ROWS, MOST_CLASSES = 500, 50
# Where integers are categories, encodings with a smaller proportion of the trees of the forest are not fitted.
_LEAST_SHARE = 0.1
# Estimated bytes of a code, of a row without its features and scores, and of a node without class frequencies.
_MOST_CODE_BYTES, _ROW_BYTES, _NODE_BYTES = 4, 100, 76


class BoostedTrees(NamedTuple):
    """The fitted trees of all series."""

    model: AUCForestClassifier
    scale: float  # the class scores are the mean over trees times this number
    scores: FloatArray  # (n_rows, n_classes), predicted for training rows by trees not fitted to them


class _BoostedRows:
    """The training rows, which are split into rows to fit and held-out rows for each series."""

    def __init__(self, table: RowsInMemory) -> None:
        self._table = table
        growth, part = self.growth, self._part = table.growth_and_part()
        n_rows, kept = part.n_rows, table.target.kept
        self.indices = np.arange(n_rows) if kept is None else kept
        self._weights = np.ones(n_rows) if part.weights is None else part.weights / part.weights.mean()
        self._rate_weights = None
        if growth.rates is not None:
            # The target rates of new rows are those of the forest, with lower weights for classes that it samples less.
            # So the rates of training rows are computed with the same factors, although boosted trees do not sample.
            unsampled = RateWeights.of(table.rate_weight, None, growth.n_classes).factors
            given = np.ones(n_rows) if part.rate_weights is None else part.rate_weights
            self._rate_weights = given * (growth.rates.factors / unsampled)[part.labels]

    def values(self, rows: NDArray[np.int64]) -> FloatArray:
        """Return the features of training rows, with target rates as for new rows."""
        # As float64, because the kernel that finds leaves would have to be compiled again for float32.
        return np.require(self._table.X[self.indices[rows]], np.float64, ["C", "W"])

    def split(self, growth: Growth, is_held_out: NDArray[np.bool_], key: int) -> tuple[Growth, BoostingRows]:
        """Return the rows of a series. A row to fit gets target rates from the rows before it in a random order."""
        fitted, held_out = np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
        all_rows, groups, features = self._part, self._table.target.groups, None
        part = Part(
            np.ascontiguousarray(all_rows.codes[:, fitted]),
            all_rows.labels[fitted],
            self._weights[fitted],
            groups=None if groups is None else groups[fitted],
            rate_weights=None if self._rate_weights is None else self._rate_weights[fitted],
        )
        if growth.rates is None:
            values = self.values(fitted)
        else:
            rows = TreeRows.of_tree(part, np.ones(part.n_rows, dtype=np.uint16))
            growth, (part, _, _), features = encode_samples(growth, rows, [key])
            values = self._values_of_codes(growth, part, features, self.indices[fitted])
        held_out_rows = self.values(held_out), all_rows.labels[held_out], self._weights[held_out]
        return growth, BoostingRows(part, values, features, *held_out_rows)

    def _values_of_codes(
        self, growth: Growth, part: Part, features: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> FloatArray:
        """Return the features of rows. Target rates are given as codes, and become the lower bounds of their bins."""
        assert isinstance(self._table.X, RatedRows)
        base = self._table.X.without_rates(rows)
        values = np.zeros((len(rows), len(self.growth.n_bins)))
        values[:, : base.shape[1]] = base
        for index in np.flatnonzero(features >= base.shape[1]).tolist():
            lower = growth.values.lower[growth.values.first[index] : growth.values.first[index + 1]]
            values[:, features[index]] = lower[part.codes[index]]
        return values


def fit_boosted(
    forest: AUCForestClassifier, validate_rows: Callable[[AUCForestClassifier], RowsInMemory], fold: NDArray[np.int64]
) -> BoostedTrees:
    """Fit a series for each fold, given the fold of each row, -1 for rows of weight 0.

    `validate_rows` validates the training rows with the given model, and returns them. The trees have the same features
    as the trees of the fitted `forest`.
    """
    n_series = len(np.unique(fold[fold >= 0]))
    shared = {name: getattr(forest, name) for name in ("categorical_features", "date_parts", "max_bins")}
    model = AUCForestClassifier(n_series, **_PARAMS, **shared, random_state=forest._seed % 2**32)
    model.categorical_encoding = _choose_encodings(forest)
    model.n_jobs = min(effective_n_jobs(forest.n_jobs), n_series)  # a thread fits a whole series
    with model._fitting():
        table = validate_rows(model)
        seed = _prepare(model, table)
        rows = _BoostedRows(table)
        n_classes, fold = rows.growth.n_classes, fold[rows.indices]
        # Whether interactions help depends on the table, so all encodings are fitted, and the best one is kept.
        # With a list, the series of all encodings would be in memory at the same time.
        growths = [replace(rows.growth, encoding=encoding) for encoding in rows.growth.encodings]
        fits = ((*_fit_series(rows, growth, fold, seed, forest), growth.encoding) for growth in growths)
        _, series, encoding = min(fits, key=itemgetter(0))
        scores = np.full((len(table.target.labels), n_classes), np.nan)
        for k, trees_of_fold in series.items():
            held_out = np.flatnonzero(fold == k)
            scores[rows.indices[held_out]] = sum_steps(trees_of_fold, rows.values(held_out), n_classes)
        trees = [*chain(*series.values())]
        bound = max(float(np.abs(boosted.steps).max()) for boosted in trees) or 1.0
        model.trees_ = [_with_values(boosted, bound, n_classes) for boosted in trees]
        model.n_estimators, model.n_jobs = len(trees), forest.n_jobs
        model.variants_ = [("gini", "best")] * len(trees)
        model.encodings_ = [] if model.target_rates_ is None else [encoding] * len(trees)
    return BoostedTrees(model, n_classes * bound * len(trees) / len(series), scores)


def _choose_encodings(forest: AUCForestClassifier) -> str | list[str]:
    """Return the encodings with which series are fitted, given the fitted forest of the stack."""
    if forest.target_rates_ is None:
        return SETS
    if not forest._integers:
        return [RATES, INTERACTIONS]
    # Integers may be numbers rather than categories, so other encodings with many trees in the forest are fitted, too.
    least = _LEAST_SHARE * len(forest.encodings_)
    return [name for name in ENCODINGS if name == RATES or forest.encodings_.count(name) >= least]


def _max_stages(trees_per_stage: int) -> int:
    return min(_MOST_STAGES, max(1, _MOST_TREES // trees_per_stage))


def _fit_series(
    rows: _BoostedRows, growth: Growth, fold: NDArray[np.int64], seed: int, forest: AUCForestClassifier
) -> tuple[float, dict[int, list[BoostedTree]]]:
    """Return the log loss of the held-out rows of all folds, and the trees of the series of each fold."""
    trees_per_stage, folds, stopped = len(boosted_classes(growth.n_classes)), np.unique(fold).tolist(), Event()
    max_stages = _max_stages(trees_per_stage)

    def add_stages(
        k: int, state: BoostingState | None = None, n_stages: int | None = None
    ) -> tuple[BoostingState, list[float]]:
        """Add stages up to n_stages or, if None, until the loss stops falling; return the state and the new losses."""
        keys = tree_keys(seed, range(k * max_stages * trees_per_stage, (k + 1) * max_stages * trees_per_stage))
        booster, losses = Booster(*rows.split(growth, fold == k, keys[0]), state), list[float]()
        first = len(booster.state.trees)
        for start in range(first, (max_stages if n_stages is None else n_stages) * trees_per_stage, trees_per_stage):
            if stopped.is_set():
                break
            losses.append(booster.add_stage(keys[start : start + trees_per_stage]))
            progress.update()
            if n_stages is None and len(losses) - int(np.argmin(losses)) > _PATIENCE:
                break
        return booster.state, losses

    try:
        with progress_bar(total=max_stages * len(folds), desc="boosting stages", verbose=forest.verbose) as progress:
            states, losses = map(list, zip(*thread_map(forest.n_jobs)(add_stages, folds)))
            # The number of stages is chosen by the total loss of all folds, so all series are made equally long.
            n_stages = max(map(len, losses))
            shorter = [i for i, fold_losses in enumerate(losses) if len(fold_losses) < n_stages]
            continued = thread_map(forest.n_jobs)(lambda i: add_stages(folds[i], states[i], n_stages), shorter)
            for i, (_, new_losses) in zip(shorter, continued):
                losses[i] += new_losses
            progress.update(progress.total - progress.n)  # stages that are not needed because of early stopping
    finally:
        # If the fit is interrupted, threads that still grow trees stop.
        stopped.set()
    total = np.sum(losses, axis=0)
    n_best = 1 + int(np.argmin(total))
    return float(total.min()), {k: state.trees[: n_best * trees_per_stage] for k, state in zip(folds, states)}


def _prepare(model: AUCForestClassifier, table: RowsInMemory) -> int:
    """Encode the rows, and set the fitted attributes that are not about trees; return the seed of the trees."""
    start, target = model._start(), table.target
    n_rows, n_classes, table_without_groups = len(target.kept_labels), len(target.classes), copy(table)
    # Groups of rows are not sampled, because the trees are grown on all rows. `table` keeps the groups, because the
    # target rates of a held-out row leave out its group.
    table_without_groups.target = replace(target, groups=None)
    spec = model._resolve(table_without_groups, start)
    n_features = table.n_features + (0 if table.rates is None else table.rates.n_features)
    # Each thread stores the features, codes, scores and probabilities of the rows, and a few other numbers of each row.
    n_bytes = n_rows * ((8 + _MOST_CODE_BYTES) * n_features + 24 * n_classes + _ROW_BYTES)
    score_bytes = model.n_estimators * 8 * n_classes * n_rows  # kept for all series, because stages may be added
    n_nodes = min(2 ** (spec.params.max_depth + 1), 2 * n_rows // spec.params.min_samples_leaf)
    trees_per_stage = len(boosted_classes(n_classes))
    n_trees = model.n_estimators * _max_stages(trees_per_stage) * trees_per_stage
    # With target rates, the trees of a second encoding are in memory, too, but without class frequencies.
    node_bytes = (1 if table.rates is None else 2) * _NODE_BYTES + 8 * n_classes
    tree_bytes = n_trees * n_nodes * node_bytes
    try:
        model._code(table, replace(spec, evidence_bytes=spec.n_threads * n_bytes + score_bytes + tree_bytes))
    except ValueError as error:
        raise ValueError(f"the boosted trees of the stack: {error}; or set boosted=False") from error
    model._set_sampling(table_without_groups.target, start.seed, [SampleRecord.of(spec.sampler, n_rows)])
    model.calibration_ = model.threshold_ = None
    model.shrinkage_ = 0.0
    model.class_prior_ = class_frequencies(target.labels, target.sample_weight, n_classes)
    return start.seed


def _with_values(boosted: BoostedTree, bound: float, n_classes: int) -> Tree:
    """Return the tree with the values that the module docstring defines; `bound` is c, the largest absolute step."""
    is_class = np.arange(n_classes) == boosted.k
    change = 2.0 * is_class - 1.0 if n_classes == 2 else is_class - 1.0 / n_classes
    return replace(boosted.tree, frequencies=(1.0 + change * (boosted.steps / bound)[:, None]) / n_classes)

"""The fit of a forest, step by step: trees, how much they lean on their ancestors, threshold, out-of-bag score."""

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from aucforest.estimators._base import TreeBasedClassifier
from aucforest.estimators._oob_score import resolve_scorer, score_probabilities
from aucforest.estimators._out_of_bag import Bags, Sums, TrainingRows, sum_out_of_bag, warn_of_seen
from aucforest.estimators._prior_correction import fit_correction, odds_formula
from aucforest.estimators._shrinkage import PRIOR, PackSome, choose_amount, row_weight, shrink_trees
from aucforest.estimators._thresholds import (
    N_GROUPS,
    check_threshold,
    fixed_threshold,
    is_tuned,
    tune_threshold,
)
from aucforest.estimators._training_data import TrainingData
from aucforest.fitting.bootstrap import RowDraws
from aucforest.fitting.class_weights import weights_by_class
from aucforest.fitting.growing import tree_keys
from aucforest.fitting.growth_params import GrowthParams
from aucforest.fitting.sampling import Drawn, describe_draws, resolve_draws
from aucforest.tables.columns import Categories, check_same_categories
from aucforest.tree.prediction import PackedTrees
from aucforest.tree.tree import Tree

# A gigabyte or so.
_MOST_PACKED = 2**25


class ForestFit(TreeBasedClassifier):
    """Base of the forest: what happens in `fit`."""

    n_estimators: int
    prior_correction: bool
    shrinkage: Any
    threshold: Any
    oob_score: Any
    warm_start: bool
    n_jobs: int | None
    random_state: Any
    sampling: Any
    verbose: int

    _seed: int
    _drawn: list[Drawn]  # how the trees there are drew their rows

    def _seed_and_trees(self) -> tuple[int, list[Tree]]:
        """Return the seed and the trees to go on from."""
        if not (self.warm_start and hasattr(self, "trees_")):
            return int(check_random_state(self.random_state).randint(np.iinfo(np.int64).max, dtype=np.int64)), []
        n_trees = len(self.trees_)
        if self.n_estimators < n_trees:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be at least {n_trees}, the trees there are, with warm_start"
            )
        if self.n_estimators == n_trees:
            warnings.warn(f"warm_start: all {n_trees} trees are there, none is added", stacklevel=4)
        return self._seed, self.trees_

    def _grow(self, data: TrainingData, seed: int, trees: list[Tree], classes: Any, categories: Categories) -> None:
        """Add the missing trees to those there are, which know these classes and categories, and score out of bag."""
        check_threshold(self.threshold, len(self.classes_))
        self._check_trees(trees, classes, data.n_features)
        if trees:
            check_same_categories(categories, self.categories_)
        draws = resolve_draws(self, data.kept_labels, self.classes_)
        drawn = list(dict.fromkeys([*(self._drawn if trees else []), describe_draws(draws, data.n_kept)]))
        self._check_draws(drawn, draws is not None)
        params = GrowthParams.resolve(self, data.n_kept, data.n_features, draws)
        keys = tree_keys(seed, range(self.n_estimators))
        data.check_memory(params, self.n_estimators - len(trees), self.n_jobs, self._n_sums(len(self.classes_)))
        self._seed, self._drawn, self.trees_ = seed, drawn, trees + data.grow(params, keys[len(trees) :])
        self._prior_correction = odds_formula(draws, len(self.classes_)) if self.prior_correction else None
        shares = np.bincount(data.labels, data.sample_weight, minlength=len(self.classes_))
        if draws is not None and len(draws.sizes) == len(shares) and not self.prior_correction:
            shares = shares * np.nan_to_num(draws.rates)
        self.class_prior_ = shares / shares.sum()
        self.__dict__.pop("_packed", None)
        rows = data.rows(Bags(draws, keys, data.kept)) if draws is not None and len(drawn) == 1 else None
        self._shrink(rows, row_weight(data.weights, data.kept_weight, bootstrap=draws is not None))
        sums, groups = self._sum_for(self.threshold, rows)
        if self._prior_correction is not None and rows is not None and sums is not None:
            self._fit_prior_correction(rows, sums, self._weighted_prior(data, rows.bags.draws))
        self._set_threshold(self.threshold, rows, sums, groups)
        if self.oob_score and rows is not None and sums is not None:
            self._score_out_of_bag(rows, sums)

    def _shrink(self, rows: TrainingRows | None, unit: float) -> None:
        """Shrink what the trees predict, by an amount that is given or chosen out of bag; a row weighs one unit."""
        if self.shrinkage != "auto":
            amount = float(self.shrinkage or 0.0)
        elif rows is None:
            amount = PRIOR
        else:
            amount = choose_amount(self.trees_, self._packing(), rows, unit, self._mean_of_trees, self.n_jobs)
        self.shrinkage_, self.trees_ = amount, shrink_trees(self.trees_, amount * unit)
        if not self._is_large() and self._n_predicted() <= _MOST_PACKED:
            self._pack()

    def _is_large(self) -> bool:
        """Say whether the trees take so much memory that they should not be laid out for walking before they walk."""
        return sum(tree.n_nodes for tree in self.trees_) > _MOST_PACKED

    def _packing(self) -> PackSome:
        """Return what lays some trees out for walking: all at once, unless they are large."""
        if self._is_large():
            return lambda trees: (PackedTrees(self.trees_[trees.start : trees.stop]), range(len(trees)))
        packed = self._pack_nodes()
        return lambda trees: (packed, trees)

    def _sum_for(self, threshold: Any, rows: TrainingRows | None) -> tuple[Sums | None, Sums | None]:
        """Return the out-of-bag sums over all trees and over groups of them, where a fit needs them."""
        n_trees = len(self.trees_)
        if rows is not None and is_tuned(threshold, len(self.classes_)):
            bounds = np.linspace(0, n_trees, min(n_trees, N_GROUPS) + 1).astype(np.int64)
            # Not the sum of the groups, which would be rounded otherwise: a threshold is a probability that a row has.
            whole, *groups = self._sum_out_of_bag(rows, [range(n_trees), *(range(*pair) for pair in pairwise(bounds))])
            return whole, Sums(*map(np.stack, zip(*groups)))
        if rows is not None and (self.oob_score or self._prior_correction is not None):
            return self._sum_out_of_bag(rows, [range(n_trees)])[0], None
        return None, None

    def _weighted_prior(self, data: TrainingData, draws: RowDraws) -> NDArray[np.float64]:
        """Return the class frequencies of the training rows as `class_weight` changes them."""
        if self.class_weight == "balanced_subsample":
            # Classes weigh alike in what a tree draws.
            with np.errstate(divide="ignore"):
                prior = np.where(self.class_prior_ > 0, 1.0 / draws.rates, 0.0)
        else:
            by_class = weights_by_class(self.class_weight, self.classes_, data.kept_labels, data.kept_weight)
            prior = self.class_prior_ if by_class is None else self.class_prior_ * by_class
        return prior / prior.sum()

    def _fit_prior_correction(self, rows: TrainingRows, sums: Sums, prior: NDArray[np.float64]) -> None:
        """Fit the correction of priors to the rows that some tree did not draw."""
        assert self._prior_correction is not None
        total, n_trees = sums
        seen = n_trees > 0
        known = (total[seen] / n_trees[seen, None], rows.labels[seen], rows.weights_of(seen))
        self._prior_correction = fit_correction(self._prior_correction, *known, prior)

    def _set_threshold(self, threshold: Any, rows: TrainingRows | None, sums: Sums | None, groups: Sums | None) -> None:
        """Set what turns probabilities into labels, tuned out of bag where there are sums for it."""
        if rows is None or sums is None or groups is None:
            self.threshold_ = fixed_threshold(threshold, self.class_prior_)
            self.__dict__.pop("threshold_std_", None)
            return
        self.threshold_, self.threshold_std_ = tune_threshold(
            threshold, rows.labels, sums, groups, rows.sample_weight, self._mean_of_trees, self._seed
        )

    def _n_sums(self, n_classes: int) -> int:
        """Return how many out-of-bag sums a fit keeps at a time."""
        tuned = 2 * N_GROUPS + 1 if is_tuned(self.threshold, n_classes) else 0
        corrected = self.prior_correction and self.sampling not in ("bootstrap", "subsample")
        return max(tuned, 3 if self.oob_score else 0, 1 if corrected else 0)

    def _sum_out_of_bag(self, rows: TrainingRows, ranges: Sequence[range]) -> list[Sums]:
        """Sum what some trees predict of the rows that they did not draw, for several ranges of trees."""
        if rows.sum_rows is not None:
            return rows.sum_rows(rows.bags, self._pack(), ranges)
        return sum_out_of_bag(rows, self._in_groups(), ranges, len(self.classes_), self.n_jobs)

    def _score_out_of_bag(self, rows: TrainingRows, sums: Sums) -> None:
        """Set the out-of-bag probabilities and their score, over the rows that some tree did not draw."""
        total, n_trees = sums
        seen = n_trees > 0
        proba = np.full_like(total, np.nan)
        proba[seen] = self._mean_of_trees(total[seen], n_trees[seen, None])
        n_kept = rows.bags.draws.n_rows
        what = "out-of-bag probability and are left out of oob_score_"
        warn_of_seen(n_kept - int(np.count_nonzero(seen)), n_kept, len(self.trees_), what, stacklevel=6)
        self.oob_decision_function_ = proba
        self.oob_score_ = float("nan")
        if np.any(seen):
            scorer = resolve_scorer("roc_auc" if isinstance(self.oob_score, bool | np.bool_) else self.oob_score)
            # Scorers with a name ask for nothing but probabilities.
            X = rows.X[seen] if callable(self.oob_score) else None
            known = (X, rows.labels[seen], proba[seen], rows.weights_of(seen))
            self.oob_score_ = score_probabilities(self, scorer, *known)

    def _check_trees(self, trees: list[Tree], classes: Any, n_features: int) -> None:
        """Refuse to add trees to others that cannot stand beside them."""
        if trees and trees[0].n_features != n_features:
            raise ValueError(
                f"warm_start: X has {n_features} features, but the trees there are know {trees[0].n_features}"
            )
        if trees and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"warm_start: y has the classes {self.classes_.tolist()}, but the trees there are know"
                f" {classes.tolist()}"
            )

    def _check_draws(self, drawn: list[Drawn], bootstrap: bool) -> None:
        """Refuse what needs rows out of bag where there are none, or trees that drew alike where they did not.

        Out of bag because all are drawn anew like the last; the prior correction because it undoes the same draws of
        all trees.
        """
        out_of_bag = {"oob_score": self.oob_score, "threshold": is_tuned(self.threshold, len(self.classes_))}
        by_class = self.prior_correction and any(len(some.sizes) > 1 for some in drawn)
        for name, is_needed in {**out_of_bag, "prior_correction": by_class}.items():
            value = getattr(self, name)
            if name in out_of_bag and is_needed and not bootstrap:
                raise ValueError(f"{name}={value!r} needs bootstrap=True: without draws no row is out of bag")
            if is_needed and len(drawn) > 1:
                raise ValueError(
                    f"warm_start: {name}={value!r} needs trees that drew alike, not {', '.join(map(str, drawn))} rows"
                )

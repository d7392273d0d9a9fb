"""The fit of a forest, step by step: trees, how much they lean on their ancestors, threshold, out-of-bag score."""

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from aucforest.estimators._base import TreeBasedClassifier
from aucforest.estimators._columns import Categories, check_same_categories
from aucforest.estimators._growing import GrowthParams, grow_trees, tree_keys
from aucforest.estimators._oob_score import resolve_scorer, score_probabilities
from aucforest.estimators._out_of_bag import Bags, TrainingRows, sum_out_of_bag, warn_of_seen
from aucforest.estimators._prior_correction import fit_correction, odds_formula
from aucforest.estimators._sampling import Drawn, describe_draws, resolve_draws
from aucforest.estimators._shrinkage import PRIOR, choose_amount, row_weight, shrink_trees
from aucforest.estimators._thresholds import (
    N_GROUPS,
    Sums,
    check_threshold,
    fixed_threshold,
    is_tuned,
    tune_threshold,
)
from aucforest.tree.structure import Tree


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

    def _grow(
        self, X: Any, y: Any, sample_weight: Any, seed: int, trees: list[Tree], classes: Any, categories: Categories
    ) -> None:
        """Add the missing trees to those there are, which know these classes and categories, and score out of bag."""
        data = self._prepare(X, y, sample_weight)
        check_threshold(self.threshold, len(self.classes_))
        self._check_trees(trees, classes, data.n_features)
        if trees:
            check_same_categories(categories, self.categories_)
        draws = resolve_draws(self, data.training.labels, self.classes_)
        drawn = list(dict.fromkeys([*(self._drawn if trees else []), describe_draws(draws, data.n_rows)]))
        self._check_draws(drawn, draws is not None)
        params = GrowthParams.resolve(self, data.n_rows, data.n_features, draws)
        keys = tree_keys(seed, range(self.n_estimators))
        trees = trees + grow_trees(data.training, params, keys[len(trees) :], self.n_jobs, self.verbose)
        self._seed, self._drawn, self.trees_ = seed, drawn, trees
        self._prior_correction = odds_formula(draws, len(self.classes_)) if self.prior_correction else None
        shares = np.bincount(data.labels, data.sample_weight, minlength=len(self.classes_))
        if draws is not None and len(draws.sizes) == len(shares) and not self.prior_correction:
            shares = shares * np.nan_to_num(draws.rates)
        self.class_prior_ = shares / shares.sum()
        self.__dict__.pop("_packed", None)
        kept = np.arange(len(data.X)) if data.kept is None else data.kept
        rows = None
        if draws is not None and len(drawn) == 1:
            rows = TrainingRows(data.X, data.labels, data.sample_weight, Bags(draws, keys, kept))
        kept_weight = None if data.sample_weight is None else data.sample_weight[kept]
        self._shrink(rows, row_weight(data.training.weights, kept_weight, bootstrap=draws is not None))
        self._correct_priors(rows)
        self._set_threshold(self.threshold, rows)
        if self.oob_score and rows is not None:
            self._score_out_of_bag(rows)

    def _shrink(self, rows: TrainingRows | None, unit: float) -> None:
        """Shrink what the trees predict, by an amount that is given or chosen out of bag; a row weighs one unit."""
        if self.shrinkage != "auto":
            amount = float(self.shrinkage or 0.0)
        elif rows is None:
            amount = PRIOR
        else:
            amount = choose_amount(self.trees_, self._pack(), rows, unit, self._mean_of_trees, self.n_jobs)
        self.shrinkage_, self.trees_ = amount, shrink_trees(self.trees_, amount * unit)
        self._pack().take_predictions(self.trees_, self._run_over_trees())

    def _correct_priors(self, rows: TrainingRows | None) -> None:
        """Fit the correction of priors, where there is one, to the rows that some tree did not draw."""
        if self._prior_correction is None or rows is None:
            return
        total, n_trees = self._sum_out_of_bag(rows, range(len(self.trees_)))
        seen = n_trees > 0
        known = (total[seen] / n_trees[seen, None], rows.labels[seen], rows.weights_of(seen))
        self._prior_correction = fit_correction(self._prior_correction, *known, self.class_prior_)

    def _set_threshold(self, threshold: Any, rows: TrainingRows | None) -> None:
        """Set what turns probabilities into labels, tuned out of bag where there are rows for it."""
        if rows is None or not is_tuned(threshold, len(self.classes_)):
            self.threshold_ = fixed_threshold(threshold, self.class_prior_)
            self.__dict__.pop("threshold_std_", None)
            return
        n_trees = len(self.trees_)
        bounds = np.linspace(0, n_trees, min(n_trees, N_GROUPS) + 1).astype(np.int64)
        parts = [self._sum_out_of_bag(rows, range(start, stop)) for start, stop in pairwise(bounds)]
        groups = Sums(*map(np.stack, zip(*parts)))
        # Not the sum of the groups, which would be rounded otherwise: the threshold is a probability that some row has.
        sums = self._sum_out_of_bag(rows, range(n_trees))
        self.threshold_, self.threshold_std_ = tune_threshold(
            threshold, rows.labels, sums, groups, rows.sample_weight, self._mean_of_trees, self._seed
        )

    def _sum_out_of_bag(self, rows: TrainingRows, trees: range) -> Sums:
        """Sum what some trees predict of the rows that they did not draw."""
        packed = self._pack()
        values = packed.values[packed.first_leaf[trees.start] : packed.first_leaf[trees.stop]]
        return Sums(*sum_out_of_bag(rows, packed, trees, values, self.n_jobs))

    def _score_out_of_bag(self, rows: TrainingRows) -> None:
        """Set the out-of-bag probabilities and their score, over the rows that some tree did not draw."""
        total, n_trees = self._sum_out_of_bag(rows, range(len(self.trees_)))
        seen = n_trees > 0
        proba = np.full_like(total, np.nan)
        proba[seen] = self._mean_of_trees(total[seen], n_trees[seen, None])
        n_kept = len(rows.bags.kept)
        what = "out-of-bag probability and are left out of oob_score_"
        warn_of_seen(n_kept - int(np.count_nonzero(seen)), n_kept, len(self.trees_), what, stacklevel=6)
        self.oob_decision_function_ = proba
        self.oob_score_ = float("nan")
        if np.any(seen):
            scorer = resolve_scorer("roc_auc" if isinstance(self.oob_score, bool | np.bool_) else self.oob_score)
            known = (rows.X[seen], rows.labels[seen], proba[seen], rows.weights_of(seen))
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

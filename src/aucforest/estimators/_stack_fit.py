"""The fit of a stack: the members, their combination, threshold and out-of-bag score."""

import warnings
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state, column_or_1d
from sklearn.utils.validation import _check_sample_weight, _num_samples, has_fit_parameter

from aucforest.estimators._additive import AdditiveClassifier
from aucforest.estimators._calibration import LEAST, effective_counts, n_of_rarer
from aucforest.estimators._class_sample import class_factors, sample_classes
from aucforest.estimators._combination import Combination, combine, log_proba, residual_score
from aucforest.estimators._decision import DecisionModel
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.out_of_bag import score_out_of_bag
from aucforest.estimators.thresholds import (
    TunedRule,
    check_groups_of_rule,
    is_tuned,
    resolve_threshold,
    warn_of_few_groups,
)
from aucforest.fitting.out_of_bag import parts_of_rows, warn_of_never_out
from aucforest.fitting.spec import weights_by_class
from aucforest.fitting.target import FewGroups, check_groups, find_few_groups, number_groups
from aucforest.metrics.validation import class_codes, unmask
from aucforest.tables.columns import decode_labels
from aucforest.tables.sparse import SparseRows

# The penalty is multiplied by 1 + _FEW / n for about n samples of the rarer class. Both constants were chosen on the
# data sets of benchmarks/ranking.py whose names begin with a to q, and on synthetic ones.
_FEW = 600.0
# Number of folds for the scores of the linear model, which divides fitting.out_of_bag.N_PARTS.
_N_FOLDS = 5
# Maximum number of rows that the combination is fitted to.
_MOST_ROWS = 2**18


class _Training(NamedTuple):
    """The training data, as they were given and as numbers."""

    X: Any
    y: Any
    labels: NDArray[np.uint16]  # the numbers of the classes
    weights: NDArray[np.float64]  # class weights included
    sample_weight: NDArray[np.float64] | None
    groups: NDArray[np.int64] | None  # -1 for rows of weight 0

    def is_evidence(self, classes: NDArray[Any], rows: NDArray[np.bool_]) -> bool:
        """Return whether there are two rows of every class, and no class has too few groups."""
        return self.few_groups(classes) is None and np.bincount(self.labels[rows], minlength=len(classes)).min() >= 2

    def groups_of(self, rows: NDArray[Any]) -> NDArray[np.int64] | None:
        """Return the numbers of the groups of some rows, or None without groups."""
        return None if self.groups is None else self.groups[rows]

    def few_groups(self, classes: NDArray[Any]) -> FewGroups | None:
        """Return the class with the fewest groups if these are too few for evidence out of bag."""
        kept = self.weights > 0.0
        return find_few_groups(classes, self.labels[kept], self.groups_of(kept))


def _matrix_of(valid: Any) -> Any:
    """Return the features of a forest as a dense or sparse matrix."""
    return valid.matrix if isinstance(valid, SparseRows) else valid


class StackFit(DecisionModel):
    """Base class of the stack with the steps of `fit`, and the scores of its members."""

    _training_arguments = ("y",)
    forest: AUCForestClassifier | None
    residual: bool
    penalty: float
    n_jobs: int | None
    members_: dict[str, Any]
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]

    def _fit_members(self, X: Any, y: Any, sample_weight: Any, groups: Any, cost: Any) -> None:
        """Fit all members and their combination, and set what follows from them."""
        with warnings.catch_warnings():
            # The stack has its own warnings.
            for message in (".* no out-of-bag probability ", "groups: only "):
                warnings.filterwarnings("ignore", message, UserWarning)
            forest = self._make_forest().fit(X, y, sample_weight, groups)
            for name in ("classes_", "n_features_in_", "feature_names_in_", "class_prior_"):
                if hasattr(forest, name):
                    setattr(self, name, getattr(forest, name))
            self.members_ = {"forest": forest}
            training = self._number(X, y, sample_weight, groups)
            rule = resolve_threshold(self.threshold, cost, len(self.classes_), len(training.labels))
            self.oob_decision_function_ = self._combine(training)
            del forest.oob_decision_function_  # its score stays, and files are smaller
        if (few := training.few_groups(self.classes_)) is not None:
            warn_of_few_groups(few, stacklevel=5)
        n_kept, seen = int(np.count_nonzero(training.weights)), np.isfinite(self.oob_decision_function_[:, 0])
        n_always = n_kept - int(np.count_nonzero(seen))
        warn_of_never_out(n_always, n_kept, forest.n_estimators, "oob_score_ and the choice of coef_", stacklevel=5)
        self._set_threshold(rule, training)
        if self.oob_score:
            # Labels are by thresholds that were not tuned on the row.
            tuned = TunedRule(rule, training.labels, training.sample_weight)
            take_rows, proba = partial(_safe_indexing, training.X), self.oob_decision_function_
            self.oob_score_ = score_out_of_bag(self, tuned, proba, take_rows, training.groups_of)

    def _make_forest(self) -> AUCForestClassifier:
        """Return the forest to fit; raise an error if it cannot be a member."""
        forest = AUCForestClassifier() if self.forest is None else self.forest
        if type(forest) is not AUCForestClassifier:
            name = type(forest).__name__
            raise TypeError(f"forest must be an AUCForestClassifier, which is fitted in memory, but is a {name}")
        if not forest.bootstrap or forest.warm_start:
            name, value = ("warm_start", True) if forest.warm_start else ("bootstrap", False)
            raise ValueError(f"forest: {name}={value} is not available in a stack: set {name}={not value}")
        forest = clone(forest).set_params(threshold=None, oob_score=True)
        if self.n_jobs is not None:
            forest.set_params(n_jobs=self.n_jobs)
        if forest.random_state is None:
            seed = self.random_state
            if not isinstance(seed, Integral):
                seed = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
            forest.set_params(random_state=seed)
        return forest

    def _number(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> _Training:
        """Return the training data, which the forest has validated, with numbers of classes and groups."""
        y = column_or_1d(decode_labels(y))
        labels = class_codes(y, len(y), labels=self.classes_)[0].astype(np.uint16)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(unmask(sample_weight), X, dtype=np.float64)
        weights = np.ones(len(labels)) if sample_weight is None else sample_weight
        given = self.members_["forest"].class_weight
        # In the samples of trees and in all samples alike, all classes have the same weight.
        given = "balanced" if given == "balanced_subsample" else given
        by_class = weights_by_class(given, self.classes_, labels, sample_weight)
        weights = weights if by_class is None else weights * by_class[labels]
        weights = weights / weights[weights > 0.0].mean()
        numbers = None
        if groups is not None:
            kept = weights > 0.0
            numbers = np.full(len(labels), -1, dtype=np.int64)
            numbers[kept] = number_groups(check_groups(groups, len(labels))[kept])
        return _Training(X, y, labels, weights, sample_weight, numbers)

    def _combine(self, training: _Training) -> NDArray[np.float64]:
        """Fit the other members and the combination, and return probabilities out of bag, NaN where there are none."""
        n_classes, forest = len(self.classes_), self.members_["forest"]
        proba: NDArray[np.float64] = forest.oob_decision_function_
        self.coef_, self.intercept_ = np.ones(1), np.zeros(n_classes)
        if not training.is_evidence(self.classes_, np.isfinite(proba[:, 0])):
            return proba
        scores = [log_proba(proba)]
        if self.residual:
            scores.append(residual_score(self._fit_residual(training), proba))
        # The sum of a monotonic forest and another model is not monotonic.
        if self.linear is not None and not (self.linear == "auto" and forest.monotonic_cst is not None):
            scores.append(log_proba(self._fit_linear(training)))
        is_seen = np.all([np.isfinite(score[:, 0]) for score in scores], axis=0)
        if len(scores) == 1 or not training.is_evidence(self.classes_, is_seen):
            self.members_ = {"forest": forest}
            return proba
        combination = self._fit_combination(scores, training, np.flatnonzero(is_seen))
        self.coef_, self.intercept_ = combination
        combined = np.full_like(proba, np.nan)
        combined[is_seen] = combination.apply([score[is_seen] for score in scores])
        return combined

    def _fit_combination(
        self, scores: list[NDArray[np.float64]], training: _Training, rows: NDArray[np.int64]
    ) -> Combination:
        """Fit the combination to the scores of some rows, or a sample of them if there are many."""
        n_classes, seed = len(self.classes_), self.members_["forest"]._seed
        sample = rows[sample_classes(training.labels[rows], n_classes, max(2, _MOST_ROWS // n_classes), seed)]
        labels = training.labels[sample]
        weights = training.weights[sample] * class_factors(training.labels[rows], labels)
        groups = np.arange(len(sample)) if training.groups is None else training.groups[sample]
        # The effective number of rows, or groups, that are independent (Kish 1965).
        by_group = np.bincount(groups, weights)
        weights *= by_group.sum() / np.sum(by_group**2)
        n_rarer = n_of_rarer(effective_counts(labels, weights, groups))
        return combine([score[sample] for score in scores], labels, weights, self.penalty * (1.0 + _FEW / n_rarer))

    def _fit_residual(self, training: _Training) -> NDArray[np.float64]:
        """Fit the forest of residuals, and return its probabilities out of bag."""
        forest = self.members_["forest"]
        of_label = forest.oob_decision_function_[np.arange(len(training.labels)), training.labels]
        weights = training.weights * np.maximum(1.0 - np.nan_to_num(of_label, nan=1.0), LEAST)
        params = {"class_weight": None, "calibration": None, "random_state": forest._seed % 2**32}
        residual = clone(forest).set_params(**params).fit(training.X, training.y, weights, training.groups)
        self.members_["residual"] = residual
        proba: NDArray[np.float64] = residual.oob_decision_function_
        # what is out of bag is not the classes but the errors of the forest
        del residual.oob_decision_function_, residual.oob_score_
        return proba

    def _fit_linear(self, training: _Training) -> NDArray[np.float64]:
        """Fit the additive model, and return the probabilities of each row by a model of the other folds."""
        forest, labels = self.members_["forest"], training.labels.astype(np.int64)
        X, linear = training.X, self.linear
        if linear == "auto":
            X = _matrix_of(forest._validate_X(X, reset=False))
            linear = AdditiveClassifier(tuple(forest.categories_))
        kept = np.flatnonzero(training.weights)
        is_weighted = np.ptp(training.weights[kept]) > 0.0
        if is_weighted and not has_fit_parameter(linear, "sample_weight"):
            raise ValueError(
                f"linear: {type(linear).__name__}.fit takes no sample_weight, but samples or classes have different"
                " weights: pass a classifier whose fit takes them"
            )

        def fit(rows: NDArray[np.int64]) -> Any:
            weight = {"sample_weight": training.weights[rows]} if is_weighted else {}
            table = X if len(rows) == len(labels) else _safe_indexing(X, rows)
            return clone(linear).fit(table, labels[rows], **weight)

        self.members_["linear"] = fit(kept)
        fold = parts_of_rows(labels[kept], training.groups_of(kept)) % _N_FOLDS
        proba = np.full((len(labels), len(self.classes_)), np.nan)
        for k in np.unique(fold):
            rows = kept[fold == k]
            proba[rows] = self._predict_linear(fit(kept[fold != k]), _safe_indexing(X, rows))
        return proba

    def _predict_linear(self, linear: Any, X: Any) -> NDArray[np.float64]:
        """Return probabilities of all classes; those of classes that a fold does not have are 0."""
        proba = np.zeros((len(self.classes_), _num_samples(X)))
        proba[linear.classes_] = linear.predict_proba(X).T
        return proba.T

    @property
    def _reads_table(self) -> bool:
        """Whether a member, of another package, reads X itself and not the features of the trees."""
        return not isinstance(self.members_.get("linear"), AdditiveClassifier | None)

    def _scores(self, X: Any, valid: Any) -> list[NDArray[np.float64] | None]:
        """Return the scores of the members, None for those of weight 0 except the forest.

        The forests know the same categories and dates, so that X is encoded once: `valid` is what `_validate_X` of the
        forest returns.
        """
        proba = self.members_["forest"]._predict_valid(valid)
        scores: list[NDArray[np.float64] | None] = []
        for (name, member), weight in zip(self.members_.items(), self.coef_):
            if name == "forest":
                scores.append(log_proba(proba))
            elif weight == 0.0:
                scores.append(None)
            elif name == "residual":
                scores.append(residual_score(member._predict_valid(valid), proba))
            else:
                matrix = _matrix_of(valid) if isinstance(member, AdditiveClassifier) else X
                scores.append(log_proba(self._predict_linear(member, matrix)))
        return scores

    def _set_threshold(self, rule: Any, training: _Training) -> None:
        """Set the decision threshold, tuned out of bag if the rule is."""
        if not is_tuned(rule, len(self.classes_)):
            self._set_fixed_threshold(rule)
            return
        check_groups_of_rule(rule, len(self.classes_), training.few_groups(self.classes_))
        self._warn_of_positive(rule)
        proba = self.oob_decision_function_
        is_seen = np.isfinite(proba[:, 0])
        best = TunedRule(rule, training.labels, training.sample_weight).best(proba[is_seen, 1], is_seen)
        if np.isnan(best):
            raise ValueError(f"threshold={rule!r} needs out-of-bag samples of both classes: increase n_estimators")
        self.threshold_ = best

    def _tune_out_of_bag(self, threshold: Any, X: Any, y: Any, sample_weight: Any) -> None:
        proba = getattr(self, "oob_decision_function_", np.empty((0, 2)))
        if np.size(y) != len(proba):
            raise ValueError(
                f"y has {np.size(y)} samples, but {len(proba)} have out-of-bag probabilities: pass the y of fit, or"
                " tune on other samples with oob=False"
            )
        self._set_threshold(threshold, self._number(proba, y, sample_weight, None))

"""The fit of a stack: the members, their combination, threshold and out-of-bag score."""

import warnings
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from aucforest._sklearn import num_samples, safe_indexing
from aucforest.columns.rows import indexable_rows
from aucforest.columns.sparse import SparseRows, as_csr
from aucforest.estimators._additive import AdditiveClassifier
from aucforest.estimators._boosted import LEAST_ROWS, MOST_CLASSES, fit_boosted
from aucforest.estimators._calibration import MIN_PROBA, effective_counts, rarer_class_size
from aucforest.estimators._class_sample import class_factors, class_frequencies, sample_classes
from aucforest.estimators._combination import Combination, combine, log_proba, residual_score
from aucforest.estimators._decision import DecisionModel
from aucforest.estimators._exports import OnnxExport
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.out_of_bag import is_roc_auc, rows_to_tune_on, score_out_of_bag, warn_of_single_sample
from aucforest.estimators.threshold_rules import TunedRule, is_tuned, warn_of_few_groups
from aucforest.fitting.in_memory import RowsInMemory
from aucforest.fitting.out_of_bag import parts_of_rows, warn_of_never_out
from aucforest.fitting.spec import weights_by_class
from aucforest.fitting.target import Target
from aucforest.tree.random import STACK_SAMPLE

# The penalty is multiplied by 1 + _FEW / n, where n is about the number of samples of the rarer class. The penalty and
# _FEW were chosen on data sets of benchmarks/ranking.py whose names begin with a to q, and on synthetic ones.
_FEW = 600.0
# Number of folds for the out-of-fold scores of the boosted trees and the linear model. It must divide N_PARTS of
# fitting.out_of_bag, because each fold is a union of the parts of `parts_of_rows`.
_N_FOLDS = 5
# Maximum number of rows that the combination is fitted to.
_MOST_ROWS = 2**18
# Smaller weights, relative to the mean weight, are raised to this value. Otherwise, their products with the errors of
# the forest could be below the least weight that the residual forest accepts.
_LEAST_WEIGHT = 1e-90
# Maximum of a probability. It is above 1 because of the rounding errors of float32.
_MAX_PROBA = 1.0 + 1e-6

# Fitted attributes that a stack copies from its forest.
_SAME_AS_FOREST = (
    "classes_", "pos_label_", "n_features_in_", "feature_names_in_", "class_prior_", "categories_", "expanded_",
    "target_rates_",
)  # fmt: skip

# A fitted model, and probabilities of the training rows by models that were not fitted to them.
_Predicted = tuple[Any, NDArray[np.float64]]


class _StackRows(NamedTuple):
    """The training data of all members."""

    X: Any  # as given to `fit`; a sparse matrix is CSR
    target: Target
    weights: NDArray[np.float64]  # sample weights times class weights, with the mean 1 over positive weights
    groups: NDArray[np.int64] | None  # the group of each row as an index, -1 for rows of weight 0

    @classmethod
    def from_target(cls, X: Any, target: Target, class_weight: Any) -> "_StackRows":
        """Return the training data, weighted as in a forest with this `class_weight`."""
        labels, sample_weight = target.labels, target.sample_weight
        # Only the forest has bootstrap samples to balance, so for the others "balanced_subsample" means "balanced".
        class_weight = "balanced" if class_weight == "balanced_subsample" else class_weight
        by_class = weights_by_class(class_weight, target.classes, labels, sample_weight)
        weights = np.ones(len(labels)) if sample_weight is None else sample_weight
        weights = weights if by_class is None else weights * by_class[labels]
        weights = weights / weights[weights > 0.0].mean()
        weights = np.where(weights > 0.0, np.maximum(weights, _LEAST_WEIGHT), 0.0)
        groups = None
        if target.groups is not None:
            groups = np.full(len(labels), -1, dtype=np.int64)
            groups[slice(None) if target.kept is None else target.kept] = target.groups
        return cls(X, target, weights, groups)

    def has_enough_samples(self, rows: NDArray[np.bool_]) -> bool:
        """Return whether members besides the forest can be fitted to `rows`, a mask; each class needs two rows."""
        counts = np.bincount(self.target.labels[rows], minlength=len(self.target.classes))
        return self.target.has_enough_samples and bool(counts.min() >= 2)

    def folds(self) -> NDArray[np.int64]:
        """Return the fold of each row, -1 for rows of weight 0."""
        kept, folds = self.weights > 0.0, np.full(len(self.weights), -1)
        folds[kept] = parts_of_rows(self.target.labels[kept], self.groups_of(kept)) % _N_FOLDS
        return folds

    def groups_of(self, rows: NDArray[Any]) -> NDArray[np.int64] | None:
        return None if self.groups is None else self.groups[rows]


def _as_matrix(valid: Any) -> Any:
    return valid.matrix if isinstance(valid, SparseRows) else valid


def _predict_linear(linear: Any, X: Any, n_classes: int) -> NDArray[np.float64]:
    """Return the class probabilities of a linear model, with 0 for classes that the model was not fitted to.

    Raises ValueError if `predict_proba` of a user's model does not return probabilities.
    """
    name, classes = f"linear: {type(linear).__name__}", np.asarray(getattr(linear, "classes_", None))
    if not np.all(np.isin(classes, np.arange(n_classes))):
        raise ValueError(f"{name} has the classes_ {classes.tolist()}, which are not labels from 0 to {n_classes - 1}")
    returned, shape = np.asarray(linear.predict_proba(X)), (num_samples(X), len(classes))
    if returned.shape != shape or returned.dtype.kind not in "biuf":
        found = f"{returned.dtype} of the shape {returned.shape}"
        raise ValueError(f"{name}: predict_proba returned {found}, but must return probabilities of the shape {shape}")
    is_proba = (returned >= 0.0) & (returned <= _MAX_PROBA)
    if not is_proba.all():
        raise ValueError(f"{name}: predict_proba returned {returned[~is_proba][0]}, which is no probability")
    proba = np.zeros((n_classes, len(returned)))
    proba[classes.astype(np.int64)] = returned.T
    return proba.T


def _fit_linear(training: _StackRows, models: list[Any], X: Any) -> list[_Predicted]:
    """Return the fitted linear models, each with out-of-fold probabilities; no models if there are too few samples."""
    if not training.has_enough_samples(training.weights > 0.0):
        return []
    n_classes, labels = len(training.target.classes), training.target.labels.astype(np.int64)
    is_kept, fold = training.weights > 0.0, training.folds()
    is_weighted = np.ptp(training.weights[is_kept]) > 0.0

    def fit(model: Any, is_fitted: NDArray[np.bool_]) -> Any:
        rows = np.flatnonzero(is_fitted)
        weight = {"sample_weight": training.weights[rows]} if is_weighted else {}
        X_rows = X if len(rows) == len(labels) else safe_indexing(X, rows)
        return clone(model).fit(X_rows, labels[rows], **weight)

    fits = []
    for model in models:
        if is_weighted and not has_fit_parameter(model, "sample_weight"):
            raise ValueError(
                f"linear: {type(model).__name__}.fit takes no sample_weight, but samples or classes have different"
                " weights: pass a classifier whose fit takes them"
            )
        fitted, proba = fit(model, is_kept), np.full((len(labels), n_classes), np.nan)
        for k in np.unique(fold[is_kept]):
            rows = np.flatnonzero(fold == k)
            proba[rows] = _predict_linear(fit(model, is_kept & (fold != k)), safe_indexing(X, rows), n_classes)
        fits.append((fitted, proba))
    return fits


class StackFit(DecisionModel, OnnxExport):
    """Base of the stack: the steps of `fit`, and the class scores of the members."""

    members_: dict[str, Any]
    weights_: NDArray[np.float64]
    intercepts_: NDArray[np.float64]
    # The class scores of the boosted trees are this number times the mean over trees. Only set with boosted trees.
    _boosted_scale: float

    def _fit_members(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, cost: Any, old: _Predicted | None = None
    ) -> None:
        """Fit all members and their combination, and set the threshold and the out-of-bag score.

        `old` is a model that was fitted to other rows, and its probabilities for X. The model becomes the first
        member, and the penalty of `combine` pulls its weight towards 1.
        """
        X = as_csr(X) if issparse(X) else X
        with warnings.catch_warnings():
            # The stack gives these warnings in place of the forest.
            for message in (".* no out-of-bag probability ", "groups: only ", "oob_score_ is NaN: only one "):
                warnings.filterwarnings("ignore", message, UserWarning)
            forest = self._make_forest()
            with forest._fitting():
                table = forest._validate_rows(X, y, sample_weight, groups)
                rule = self._check_target(table.target, cost)
                training = _StackRows.from_target(X, table.target, forest.class_weight)
                # A model of the user may reject the data, so it is fitted before the forest, which takes longer.
                linear = []
                if self.linear not in ("auto", None):
                    linear = _fit_linear(training, [self.linear], indexable_rows(X))
                forest._fit_rows(table, forest._start())
                # Members other than the forest are not monotonic.
                if self.linear == "auto" and forest.monotonic_cst is None:
                    categorical = tuple(sorted(forest.categories_))
                    models = [AdditiveClassifier(categorical)]
                    if table.additive_interactions:
                        models.append(AdditiveClassifier(categorical, table.additive_interactions))
                    linear = _fit_linear(training, models, _as_matrix(table.without_rates()))
            self.__dict__.update((name, value) for name, value in vars(forest).items() if name in _SAME_AS_FOREST)
            self.members_ = {"forest": forest}
            self.oob_decision_function_ = self._combine(training, linear, old)
            if "boosted" not in self.members_:
                self.__dict__.pop("_boosted_scale", None)  # of an earlier fit
            forest_proba = forest.oob_decision_function_
            del forest.oob_decision_function_  # so that model files are smaller
        target = training.target
        warn_of_few_groups(target.few_groups)
        n_kept, seen = int(np.count_nonzero(training.weights)), np.isfinite(self.oob_decision_function_[:, 0])
        n_never_out = n_kept - int(np.count_nonzero(seen))
        warn_of_never_out(n_never_out, n_kept, forest.n_estimators, "oob_score_ and the choice of weights_")
        self._set_threshold(rule, target.labels, target.sample_weight)
        if self.oob_score:
            # For this score, the label of a row is predicted with a threshold that is tuned on other rows.
            tuned = TunedRule(rule, target.labels, target.sample_weight, self._positive)
            take_rows = partial(safe_indexing, indexable_rows(X))
            self.oob_score_ = score_out_of_bag(self, tuned, self.oob_decision_function_, take_rows, training.groups_of)
            if is_roc_auc(self.oob_score):
                # The AUC of the stack gets the correction for bias and optimism that the AUC of the forest has.
                forest_score = score_out_of_bag(forest, tuned, forest_proba, take_rows, training.groups_of)
                correction = forest.oob_score_ - forest_score
                self.oob_score_ = float(np.clip(self.oob_score_ + correction, 0.0, 1.0))
                if np.isnan(forest.oob_score_) and np.any(seen):
                    warn_of_single_sample(target.labels[training.weights > 0.0], self.classes_)

    @property
    def _class_weight(self) -> Any:
        return self.members_["forest"].class_weight

    def _shift_scores(self, shift: NDArray[np.float64]) -> None:
        self.intercepts_ = self.intercepts_ + shift - shift.mean()

    def _make_forest(self) -> AUCForestClassifier:
        """Return the unfitted forest; raise an error if the parameter `forest` is not available in a stack."""
        forest = AUCForestClassifier() if self.forest is None else self.forest
        if type(forest) is not AUCForestClassifier:
            name = type(forest).__name__
            raise TypeError(f"forest must be an AUCForestClassifier, which is fitted in memory, but is a {name}")
        if not forest.bootstrap or forest.warm_start:
            name, value = ("warm_start", True) if forest.warm_start else ("bootstrap", False)
            raise ValueError(f"forest: {name}={value} is not available in a stack: set {name}={not value}")
        forest = clone(forest).set_params(pos_label=self.pos_label, threshold=None, oob_score=True)
        forest._validate_params()
        if self.n_jobs is not None:
            forest.set_params(n_jobs=self.n_jobs)
        if forest.random_state is None:
            seed = self.random_state
            if not isinstance(seed, Integral):
                seed = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
            forest.set_params(random_state=seed)
        return forest

    def _combine(self, training: _StackRows, linear: list[_Predicted], old: _Predicted | None) -> NDArray[np.float64]:
        """Fit the other members and the combination; return out-of-bag probabilities, NaN where they are undefined.

        Of several linear models, the one with the lowest log loss in combination with the other members is kept.
        """
        n_classes, forest = len(self.classes_), self.members_["forest"]
        proba: NDArray[np.float64] = forest.oob_decision_function_
        self.weights_, self.intercepts_ = np.ones(1), np.zeros(n_classes)
        scores = [log_proba(proba)]
        if training.has_enough_samples(np.isfinite(proba[:, 0])):
            if old is not None:
                self.members_ = {"old": old[0], "forest": forest}
                scores.insert(0, log_proba(old[1]))
            if self.residual:
                scores.append(residual_score(self._fit_residual(training), proba))
            is_unsuitable = np.count_nonzero(training.weights) < LEAST_ROWS or n_classes > MOST_CLASSES
            if self.boosted and forest.monotonic_cst is None and not is_unsuitable and not issparse(training.X):
                scores.append(self._fit_boosted(training))
        candidates = [[*scores, log_proba(linear_proba)] for _, linear_proba in linear] or [scores]
        is_seen = np.all([np.isfinite(score[:, 0]) for score in candidates[0]], axis=0)
        if len(candidates[0]) == 1 or not training.has_enough_samples(is_seen):
            if old is not None:
                raise ValueError(
                    "too few of the new rows have an out-of-bag probability: pass more rows, or increase n_estimators"
                )
            self.members_ = {"forest": forest}
            return proba
        rows = np.flatnonzero(is_seen)
        labels, weights, fits = training.target.labels[rows], training.weights[rows], []
        for scores in candidates:
            combination = self._fit_combination(scores, training, rows)
            combined = combination.apply([score[rows] for score in scores])
            fits.append((-np.sum(weights * log_proba(combined[np.arange(len(rows)), labels])), combination, combined))
        best = int(np.argmin([loss for loss, *_ in fits]))
        scores, (_, combination, combined) = candidates[best], fits[best]
        if linear:
            self.members_["linear"], _ = linear[best]
        self.weights_, self.intercepts_ = combination
        # The `class_prior_` of the forest may be the class frequencies of its bootstrap samples.
        self.class_prior_ = class_frequencies(training.target.labels, training.target.sample_weight, n_classes)
        if old is not None:
            if self.weights_[0] == 0.0:
                del self.members_["old"]
                self.weights_ = self.weights_[1:]
            combined = self._combine_by_part(scores, training, rows, combination)
        oob_proba = np.full_like(proba, np.nan)
        oob_proba[rows] = combined
        return oob_proba

    def _combine_by_part(
        self, scores: list[NDArray[np.float64]], training: _StackRows, rows: NDArray[np.int64], combination: Combination
    ) -> NDArray[np.float64]:
        """Return the combined probabilities of each tenth of the rows, with weights that are fitted to the other rows.

        The intercepts and the sum of the weights are those of `combination`, so that all rows are comparable.
        """
        parts = parts_of_rows(training.target.labels[rows], training.groups_of(rows))
        combined = np.empty_like(scores[0][rows])
        for part in np.unique(parts):
            is_part, weights = parts == part, self._fit_combination(scores, training, rows[parts != part]).coef
            weights = weights * (combination.coef.sum() / max(weights.sum(), np.finfo(np.float64).tiny))
            combined[is_part] = combination._replace(coef=weights).apply([score[rows[is_part]] for score in scores])
        return combined

    def _fit_combination(
        self, scores: list[NDArray[np.float64]], training: _StackRows, rows: NDArray[np.int64]
    ) -> Combination:
        """Fit the combination to the scores of the given rows, or to a sample of them if there are many."""
        n_classes, seed = len(self.classes_), self.members_["forest"]._seed
        max_rows, labels = max(2, _MOST_ROWS // n_classes), training.target.labels
        sample = rows[sample_classes(labels[rows], n_classes, max_rows, [seed, STACK_SAMPLE])]
        weights = training.weights[sample] * class_factors(labels[rows], labels[sample])
        groups = np.arange(len(sample)) if training.groups is None else training.groups[sample]
        # The weights are scaled so that their sum is the effective number of independent rows or groups (Kish 1965).
        by_group = np.bincount(groups, weights)
        weights *= by_group.sum() / np.sum(by_group**2)
        labels = labels[sample]
        n_rarer = rarer_class_size(effective_counts(labels, weights, groups))
        return combine([score[sample] for score in scores], labels, weights, self.penalty * (1.0 + _FEW / n_rarer))

    def _fit_residual(self, training: _StackRows) -> NDArray[np.float64]:
        """Fit the residual forest, and return its out-of-bag probabilities."""
        forest, labels = self.members_["forest"], training.target.labels
        label_proba = forest.oob_decision_function_[np.arange(len(labels)), labels]
        weights = training.weights * np.maximum(1.0 - np.nan_to_num(label_proba, nan=1.0), MIN_PROBA)
        params = {"class_weight": None, "calibration": None, "random_state": forest._seed % 2**32}
        # Out-of-bag probabilities are only kept if `oob_score` is set. The log loss is the fastest score.
        residual = clone(forest).set_params(**params, oob_score="neg_log_loss")
        with residual._fitting():
            residual._fit_rows(self._validate_for(residual, training, weights), residual._start())
        self.members_["residual"] = residual
        proba: NDArray[np.float64] = residual.oob_decision_function_
        # These would mislead users, because rows are weighted by the errors of the first forest.
        del residual.oob_decision_function_, residual.oob_score_
        return proba

    def _fit_boosted(self, training: _StackRows) -> NDArray[np.float64]:
        """Fit the boosted trees, and return the out-of-fold class scores of the rows."""
        validate_rows = partial(self._validate_for, training=training, weights=training.weights)
        fitted = fit_boosted(self.members_["forest"], validate_rows, training.folds())
        self.members_["boosted"], self._boosted_scale = fitted.model, fitted.scale
        return fitted.scores

    def _validate_for(
        self, model: AUCForestClassifier, training: _StackRows, weights: NDArray[np.float64]
    ) -> RowsInMemory:
        """Return the training rows for a member, with the target rates and found categories of the forest."""
        target = training.target
        table = model._validate_rows(training.X, target.classes[target.labels], weights, training.groups)
        table.rates, given = self.members_["forest"].target_rates_, target.sample_weight
        table.found = self.members_["forest"]._found
        kept = table.target.kept
        table.rate_weight = given if given is None or kept is None else given[kept]
        return table

    @property
    def _reads_table(self) -> bool:
        """Whether a member (an old model, or a linear model of another package) needs X as given, not encoded."""
        return "old" in self.members_ or not isinstance(self.members_.get("linear"), AdditiveClassifier | None)

    def _scores(self, X: Any, valid: Any) -> list[NDArray[np.float64] | None]:
        """Return the scores of the members, None for members of weight 0 except the forest.

        `valid`, the result of `_features_of`, is X encoded for all members that do not need X itself.
        """
        forest, n_classes = self.members_["forest"], len(self.classes_)
        proba = forest._predict_valid(valid)
        scores: list[NDArray[np.float64] | None] = []
        for (name, member), weight in zip(self.members_.items(), self.weights_):
            if name == "forest":
                scores.append(log_proba(proba))
            elif weight == 0.0:
                scores.append(None)
            elif name == "old":
                scores.append(log_proba(member.predict_proba(X)))
            elif name == "residual":
                scores.append(residual_score(member._predict_valid(valid), proba))
            elif name == "boosted":
                scores.append(self._boosted_scale * member._predict_valid(valid))
            elif isinstance(member, AdditiveClassifier):
                features = _as_matrix(valid)[:, : member.n_features_]  # without target rates
                scores.append(log_proba(_predict_linear(member, features, n_classes)))
            else:
                scores.append(log_proba(_predict_linear(member, indexable_rows(X), n_classes)))
        return scores

    def _set_threshold(self, rule: Any, labels: NDArray[np.uint16], sample_weight: NDArray[np.float64] | None) -> None:
        """Set the decision threshold, which is tuned on out-of-bag probabilities if the rule requires this."""
        if not is_tuned(rule, len(self.classes_)):
            self._set_fixed_threshold(rule)
            return
        self._warn_of_positive(rule)
        proba = self.oob_decision_function_
        is_seen = np.isfinite(proba[:, 0])
        tuned = self._rule_on_training(rule, labels, sample_weight)
        self.threshold_ = tuned.require(tuned.best(proba[is_seen], is_seen), oob=True)

    def _tune_out_of_bag(self, threshold: Any, X: Any, y: Any, sample_weight: Any) -> None:
        if not hasattr(self, "oob_decision_function_"):
            raise ValueError(
                f"threshold={threshold!r} is tuned on oob_decision_function_, which this stack does not have any more:"
                " pass other samples with oob=False"
            )
        rows = rows_to_tune_on(self.members_["forest"], threshold, X, y, sample_weight)
        self._set_threshold(threshold, rows.labels, rows.sample_weight)

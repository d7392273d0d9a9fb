"""The decisions of forests and stacks: the threshold, the positive class, and the prevalence of classes."""

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils.validation import check_is_fitted

from aucforest._caller import warn
from aucforest.estimators._calibration import MIN_PROBA
from aucforest.estimators._class_sample import class_frequencies
from aucforest.estimators._model_files import Model
from aucforest.estimators._validation import check_weights, encode_labels
from aucforest.estimators.out_of_bag import check_scorer
from aucforest.estimators.threshold_rules import (
    FIT_COSTS,
    ROW_COSTS,
    TunedRule,
    check_groups_of_rule,
    check_threshold,
    depends_on_prevalence,
    find_positive,
    has_bound,
    is_tuned,
    resolve_threshold,
    warn_of_positive,
)
from aucforest.fitting.target import Target
from aucforest.metrics.at_k import ROUNDING
from aucforest.metrics.validation import positive_last


class DecisionModel(Model):
    """Base of the forest and the stack, which have a threshold and a positive class."""

    classes_: NDArray[Any]
    class_prior_: NDArray[np.float64]
    threshold_: Any
    oob_decision_function_: NDArray[np.float64]

    def set_threshold(
        self, threshold: Any, X: Any = None, y: Any = None, sample_weight: Any = None, *, oob: bool = True
    ) -> Self:
        """Change the threshold of `predict` without a new fit.

        Parameters
        ----------
        threshold
            The new value of the parameter `threshold`. Pass costs of each sample as ``{"cost": array}``.
        X, y, sample_weight
            The samples to tune the threshold on. Only needed for rules that are tuned.
        oob : bool, default=True
            If True, X and y must be the training data, and the threshold is tuned on their out-of-bag probabilities.
            If False, they are other samples, such as a validation set, and there is no `threshold_std_`. After
            `set_prevalence`, the (weighted) class frequencies of other samples should equal the prevalence.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If the rule is unknown or not defined for this number of classes, if it needs samples, if ``oob=True`` and
            the samples are not the training data, or if all samples have the same class.
        """
        check_is_fitted(self, "classes_")
        check_threshold(threshold, len(self.classes_), None if y is None else np.size(y))
        if not is_tuned(threshold, len(self.classes_)):
            self._set_fixed_threshold(threshold)
        elif X is None or y is None:
            samples = "out-of-bag samples: pass the X and y of fit" if oob else "samples: pass X and y"
            raise ValueError(f"threshold={threshold!r} is tuned on {samples}")
        elif oob:
            self._tune_out_of_bag(threshold, X, y, sample_weight)
        else:
            self._tune_on(threshold, X, y, sample_weight)
        self.threshold = threshold
        return self

    def set_prevalence(self, prevalence: Any) -> Self:
        """Predict probabilities for other class frequencies than those of the training data, without a new fit.

        This corrects for sampling by class, such as dropping most of the negatives: the probability of each class is
        multiplied by the ratio of its new frequency to its frequency in the training data, and normalized [1]_. It is
        assumed that samples of a class have the same distribution in the population and in the training data. With two
        classes the ranking does not change. All probabilities (also out-of-bag), thresholds, saved and exported models,
        and `aucforest.monitoring.CBPE` use the new frequencies.

        Parameters
        ----------
        prevalence : float, dict, array-like of shape (n_classes,) or None
            The frequency of the class ``pos_label_`` in the population, or the frequencies of all classes, by label or
            in the order of ``classes_``. None restores the frequencies of the training data.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If frequencies are not positive or do not sum to 1, if a class has no frequency or no training samples, or
            if the model has a `class_weight`, with which its probabilities are not those of any population.

        Warns
        -----
        UserWarning
            If the threshold was tuned by a rule that depends on class frequencies, such as a precision. `predict` still
            selects the same samples. To tune the threshold for the new frequencies, call `set_threshold`.

        References
        ----------
        .. [1] Elkan, C. (2001). The foundations of cost-sensitive learning. IJCAI, theorem 2.

        Examples
        --------
        >>> from aucforest import AUCForestClassifier
        >>> from aucforest.datasets import load_abalone
        >>> X, rings = load_abalone(return_X_y=True)
        >>> forest = AUCForestClassifier(50, random_state=0).fit(X, rings >= 12)
        >>> before, after = forest.predict_proba(X[:1]), forest.set_prevalence(0.05).predict_proba(X[:1])
        >>> odds_ratio = 0.05 / 0.95 * forest.class_prior_[0] / forest.class_prior_[1]
        >>> bool(abs(after[0, 1] / after[0, 0] - before[0, 1] / before[0, 0] * odds_ratio) < 1e-9)
        True
        """
        check_is_fitted(self, "classes_")
        if prevalence is None and not hasattr(self, "prevalence_"):
            return self
        new = self.class_prior_ if prevalence is None else self._validate_prevalence(prevalence)
        shift = np.log(new) - np.log(self._frequencies)
        # `_shift_scores` gives an uncalibrated forest a calibration, and calibrations replace probabilities below
        # MIN_PROBA by MIN_PROBA. A stack has no `calibration_`.
        min_proba = MIN_PROBA if getattr(self, "calibration_", self) is None else 0.0
        self._shift_scores(shift)
        if prevalence is None:
            self.__dict__.pop("prevalence_", None)
        else:
            self.prevalence_ = new
        if hasattr(self, "oob_decision_function_"):
            with np.errstate(divide="ignore"):
                self.oob_decision_function_ = softmax(np.log(self.oob_decision_function_) + shift, axis=1)
        if not is_tuned(self.threshold, len(self.classes_)):
            self._set_fixed_threshold(self.threshold)
            return self
        if not np.isinf(self.threshold_):
            positive, threshold = self._positive, self.threshold_
            with np.errstate(divide="ignore"):
                log_odds = np.log(max(threshold, min_proba)) - np.log(max(1.0 - threshold, min_proba))
            # The threshold is a little lower, so that the same samples are positive in spite of rounding errors.
            self.threshold_ = float(expit(log_odds + shift[positive] - shift[1 - positive])) * (1.0 - ROUNDING)
        self.__dict__.pop("threshold_std_", None)
        if depends_on_prevalence(self.threshold):
            advice = "the same samples stay positive; call set_threshold to tune it for the new frequencies"
            warn(f"threshold={self.threshold!r} was tuned for other class frequencies: {advice}")
        return self

    @property
    def _frequencies(self) -> NDArray[np.float64]:
        """The class frequencies of the population for which probabilities are predicted."""
        return getattr(self, "prevalence_", self.class_prior_)

    def _validate_prevalence(self, prevalence: Any) -> NDArray[np.float64]:
        """Return the frequencies of all classes, given the argument of `set_prevalence`."""
        if self._class_weight is not None:
            reason = f"it has class_weight={self._class_weight!r}"
            raise ValueError(f"set_prevalence needs a model without class weights, but {reason}")
        labels, given = self.classes_.tolist(), prevalence
        if hasattr(given, "keys"):  # a dict, or a pandas Series
            given = dict(given)
            if set(given) != set(labels):
                raise ValueError(f"prevalence has the classes {list(given)}, but the model {labels}")
            given = [given[label] for label in labels]
        elif isinstance(given, Real) and len(labels) == 2:
            given = np.array([1.0 - float(given), float(given)])[[0, 1] if self._positive else [1, 0]]
        needed = "a number between 0 and 1, or positive frequencies of all classes that sum to 1"
        try:
            frequencies = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"prevalence must be {needed}, but is {prevalence!r}") from None
        if frequencies.shape != (len(labels),):
            raise ValueError(f"prevalence must be a frequency for each of {len(labels)} classes, but is {prevalence!r}")
        if not np.all(frequencies > 0.0) or abs(frequencies.sum() - 1.0) > 1e-6:
            raise ValueError(f"prevalence must be {needed}, but is {prevalence!r}")
        if not np.all(self.class_prior_ > 0.0):
            label = labels[int(np.argmin(self.class_prior_))]
            raise ValueError(f"set_prevalence needs training samples of all classes, but class {label!r} has none")
        return frequencies / frequencies.sum()

    @property
    def _class_weight(self) -> Any:
        return self.class_weight

    def _shift_scores(self, shift: NDArray[np.float64]) -> None:
        """Add `shift`, a number for each class, to the logarithms of the class probabilities before normalization."""
        raise NotImplementedError

    def _rule_on_training(self, rule: Any, labels: NDArray[Any], weights: NDArray[np.float64] | None) -> TunedRule:
        """Return a rule with the training samples to tune it on; with a prevalence, their weights are adapted to it."""
        if hasattr(self, "prevalence_"):
            frequencies = class_frequencies(labels, weights, len(self.classes_))
            factors = (self.prevalence_ / np.maximum(frequencies, np.finfo(np.float64).tiny))[labels]
            weights = factors if weights is None else weights * factors
        return TunedRule(rule, labels, weights, self._positive)

    def _check_target(self, target: Target, cost: Any) -> Any:
        """Return the threshold rule with the costs of `fit`; raise ValueError if parameters do not suit the target."""
        n_classes = len(target.classes)
        rule = resolve_threshold(self.threshold, cost, n_classes, len(target.labels))
        target.check_classes()
        find_positive(self.pos_label, target.classes)
        check_scorer(self, target)
        check_groups_of_rule(rule, n_classes, target.few_groups)
        return rule

    @property
    def _positive(self) -> int:
        """The index of the positive class."""
        return positive_last(self)[-1]

    def _set_fixed_threshold(self, rule: Any) -> None:
        if rule == "prevalence":
            frequencies = self._frequencies
            self.threshold_ = float(frequencies[self._positive]) if len(frequencies) == 2 else frequencies
        else:
            self.threshold_ = np.asarray(rule["cost"], dtype=np.float64) if isinstance(rule, dict) else rule
        self.__dict__.pop("threshold_std_", None)

    def _tune_out_of_bag(self, threshold: Any, X: Any, y: Any, sample_weight: Any) -> None:
        """Tune the threshold on the out-of-bag probabilities of X and y, which must be the training data."""
        raise NotImplementedError

    def _warn_of_positive(self, rule: Any) -> None:
        """Warn if the rule depends on which class is positive, and the user may expect the other class."""
        if rule == "f1" or has_bound(rule):
            warn_of_positive(f"threshold={rule!r}", self)

    def _tune_on(self, rule: Any, X: Any, y: Any, sample_weight: Any) -> None:
        """Tune the threshold on the probabilities of samples that are not the training data."""
        proba = self.predict_proba(X)
        labels, weights = encode_labels(y, len(proba), self.classes_), check_weights(X, sample_weight)
        self._warn_of_positive(rule)
        tuned = TunedRule(rule, labels, weights, self._positive)
        self.threshold_ = tuned.require(tuned.best(proba), oob=False)
        self.__dict__.pop("threshold_std_", None)

    def _params_to_store(self) -> dict[str, Any]:
        params = super()._params_to_store()
        if isinstance(self.threshold, dict) and np.ndim(self.threshold.get("cost", 0)) == 3:
            # The costs of each sample are not stored. To fit the loaded model again, pass them to `fit`.
            params["threshold"] = self.threshold | {"cost": FIT_COSTS} if "alerts" in self.threshold else ROW_COSTS
        return params

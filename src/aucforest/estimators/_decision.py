"""The decision of forests and stacks: the threshold, and which of two classes is positive."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from aucforest.estimators._model_files import Model
from aucforest.estimators.thresholds import (
    OF_ROWS,
    TunedRule,
    check_threshold,
    fixed_threshold,
    is_of_positive,
    is_tuned,
    warn_of_positive,
)
from aucforest.metrics.validation import class_codes, positive_last


class DecisionModel(Model):
    """Base of the models that the command line fits, which have a threshold and a positive class."""

    pos_label: Any
    classes_: NDArray[Any]
    pos_label_: Any
    class_prior_: NDArray[np.float64]
    oob_decision_function_: NDArray[np.float64]

    def set_threshold(
        self, threshold: Any, X: Any = None, y: Any = None, sample_weight: Any = None, *, oob: bool = True
    ) -> Self:
        """Change the threshold of `predict` without fitting anew.

        Parameters
        ----------
        threshold
            The new value of the parameter `threshold`. Costs of each sample are ``{"cost": array}`` here.
        X, y, sample_weight
            The samples on which the threshold is tuned, needed only by rules that are tuned.
        oob : bool, default=True
            Whether these are the training data, whose out-of-bag probabilities are used; their groups are known. With
            False they are other samples, such as a validation set, and there is no `threshold_std_`.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If the rule is unknown or not defined for this number of classes, if it needs samples, if the samples are
            not the training data with ``oob=True``, or if they are of one class.
        """
        check_is_fitted(self, "classes_")
        check_threshold(threshold, len(self.classes_), None if y is None else np.size(y))
        if not is_tuned(threshold, len(self.classes_)):
            self._set_fixed_threshold(threshold)
        else:
            if X is None or y is None:
                samples = "out-of-bag samples: pass the X and y of fit" if oob else "samples: pass X and y"
                raise ValueError(f"threshold={threshold!r} is tuned on {samples}")
            tune = self._tune_out_of_bag if oob else self._tune_on
            tune(threshold, X, y, sample_weight)
        self.threshold = threshold
        return self

    @property
    def _positive(self) -> int:
        """The index of the positive one of two classes."""
        return positive_last(self)[-1]

    def _set_fixed_threshold(self, threshold: Any) -> None:
        """Set the threshold by a rule that is not tuned."""
        self.threshold_ = fixed_threshold(threshold, self.class_prior_, self._positive)
        self.__dict__.pop("threshold_std_", None)

    def _tune_out_of_bag(self, threshold: Any, X: Any, y: Any, sample_weight: Any) -> None:
        """Set the threshold by out-of-bag probabilities of the training data, which are given once more."""
        raise NotImplementedError

    def _warn_of_positive(self, threshold: Any) -> None:
        """Warn if a rule for the positive class may be meant for the other one."""
        if is_of_positive(threshold):
            warn_of_positive(f"threshold={threshold!r}", self)

    def _tune_on(self, threshold: Any, X: Any, y: Any, sample_weight: Any) -> None:
        """Set the threshold by the probabilities of samples that no tree has seen."""
        proba = self.predict_proba(X)
        named: dict[str, Any] = {"name": "y", "of": "X", "strangers_are": "no class of the model"}
        labels = class_codes(np.asarray(column_or_1d(y)), len(proba), labels=self.classes_, **named)[0]
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self._warn_of_positive(threshold)
        best = TunedRule(threshold, labels, weights, self._positive).best(proba)
        if np.isnan(best):
            raise ValueError(f"threshold={threshold!r} needs samples of both classes in y")
        self.threshold_ = best
        self.__dict__.pop("threshold_std_", None)

    def _params_to_store(self) -> dict[str, Any]:
        params = super()._params_to_store()
        if isinstance(self.threshold, dict) and np.ndim(self.threshold.get("cost", 0)) == 3:
            # Costs of the training rows are not stored: a fit of the loaded forest asks for those of its rows.
            params["threshold"] = OF_ROWS
        return params

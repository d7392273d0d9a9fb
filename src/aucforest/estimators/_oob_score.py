"""A score of probabilities that are known already, by any scorer of scikit-learn."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.metrics import hand_till_score, roc_auc_score

Scorer = Callable[..., float]


def score_probabilities(
    forest: Any,
    scorer: Scorer | None,
    X: Any,
    labels: NDArray[np.uint16],
    proba: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
) -> float:
    """Return the score of class probabilities.

    Parameters
    ----------
    forest : AUCForestClassifier
        For scorers that ask for labels: they follow from the probabilities by its own rule.
    scorer : callable ``scorer(estimator, X, y)`` or None
        Called with sample_weight where there is one. None is ROC AUC, Hand and Till's for more than two classes.
    X : array-like of shape (n_rows, n_features)
    labels : ndarray of shape (n_rows,), uint16
        The numbers of the classes.
    proba : ndarray of shape (n_rows, n_classes), float64
    sample_weight : ndarray of shape (n_rows,), float64, or None

    Returns
    -------
    float
    """
    if scorer is None and proba.shape[1] == 2:
        return float(roc_auc_score(labels, proba[:, 1], sample_weight=sample_weight))
    if scorer is None:
        return float(hand_till_score(labels, proba, labels=np.arange(proba.shape[1]), sample_weight=sample_weight))

    def predict_proba(X: Any) -> NDArray[np.float64]:
        """Return what is known."""
        return proba

    answers = copy.copy(forest)
    answers.predict_proba = predict_proba
    weight = {} if sample_weight is None else {"sample_weight": sample_weight}
    return float(scorer(answers, X, forest.classes_[labels], **weight))

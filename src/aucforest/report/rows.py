"""Labelled rows and the predictions of a fitted model for them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.metrics import confusion_matrix
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from aucforest._sklearn import num_samples, safe_indexing
from aucforest.columns.categorical import names_of
from aucforest.columns.rows import indexable_rows
from aucforest.metrics.validation import FloatArray, check_weights, class_codes, positive_last, require_finite, unmask


@dataclass(frozen=True)
class ScoredRows:
    """Rows, their labels, and the predictions of a model."""

    model: Any
    X: Any  # supports row indexing; rows of weight 0 are removed
    # Class names; of two classes the positive one is last. With a named target, numbers become "cancelled = 1".
    classes: tuple[str, ...]
    row_phrases: tuple[str, ...]  # phrases for the rows of each class: "with cancelled = 1", "of class genuine"
    labels: NDArray[np.int64]  # indices of the true classes
    predicted: NDArray[np.int64]  # indices of the predicted classes
    scores: FloatArray  # (n_rows, n_classes): probabilities, or decision values if the model has no probabilities
    is_probability: bool
    sample_weight: FloatArray | None

    @cached_property
    def weights(self) -> FloatArray:
        """Weights of the rows, ones if none were given."""
        return np.ones(len(self.labels)) if self.sample_weight is None else self.sample_weight

    @cached_property
    def totals(self) -> FloatArray:
        """Total weight of the rows of each class, shape (n_classes,)."""
        return np.bincount(self.labels, self.weights, minlength=len(self.classes)).astype(np.float64)

    @property
    def frequencies(self) -> FloatArray:
        """Weighted class frequencies."""
        return np.asarray(self.totals / self.totals.sum())

    @property
    def present(self) -> list[int]:
        """The indices of the classes that have rows."""
        return np.flatnonzero(self.totals > 0.0).tolist()

    @cached_property
    def confusion(self) -> FloatArray:
        """The confusion matrix, (true class, predicted class), with the weights of the rows."""
        indices = range(len(self.classes))
        return confusion_matrix(self.labels, self.predicted, labels=indices, sample_weight=self.weights)


def score_rows(
    model: Any, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None, name: str | None = None
) -> ScoredRows:
    """Predict labelled rows with a fitted classifier; raise ValueError or TypeError if X, y and the model do not match.

    `name` is the name of one of several models. If it is given, X may also have columns that the model does not use.
    """
    check_classifier(model)
    if X is None or y is None:
        raise ValueError("the report of a model needs X_test and y_test: rows that it was not trained on")
    X, y_true, weights = check_rows(X, y, sample_weight, "test")
    model_name = "the model" if name is None else f"the model {name!r}"
    columns, needed = set(names_of(X)), list(getattr(model, "feature_names_in_", []))
    lacking = [column for column in needed if column not in columns]
    if columns and lacking:
        raise ValueError(f"X_test lacks the column {lacking[0]!r}, which {model_name} was fitted to")
    if columns and needed and name is not None:
        X = nw.from_native(X, eager_only=True).select(needed).to_native()
    if weights is not None and not weights.all():
        kept = np.flatnonzero(weights)
        X, y_true, weights = safe_indexing(X, kept), y_true[kept], weights[kept]
    classes = ordered_classes(model)
    labels = class_indices(y_true, classes, "y_test")
    present = np.unique(labels)
    if len(present) < 2:
        rest = f"only of class {classes[present[0]]}" if len(present) else "none with weight"
        raise ValueError(f"y_test must have rows of at least two classes, but has {rest}")
    try:
        scores, predicted = predict_scores(model, X), model.predict(X)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{model_name} cannot read X_test: {' '.join(str(error).split())}") from error
    require_finite(scores, f"{model_name}'s scores of X_test")
    codes = class_indices(predicted, classes, f"{model_name}'s prediction")
    target = getattr(y, "name", None)
    has_target = target not in (None, "") and classes.dtype.kind in "biuf"
    names = tuple(f"{target} = {label}" if has_target else str(label) for label in classes.tolist())
    row_phrases = tuple(f"with {name}" if has_target else f"of class {name}" for name in names)
    is_probability = hasattr(model, "predict_proba")
    return ScoredRows(model, X, names, row_phrases, labels, codes, scores, is_probability, weights)


def check_classifier(model: Any) -> None:
    """Raise TypeError if a model is not a classifier, or NotFittedError if it is not fitted."""
    if not (hasattr(model, "predict") and is_classifier(model)):
        raise TypeError(f"report needs a fitted classifier or a CriteriaComparison, but got a {type(model).__name__}")
    check_is_fitted(model)


def check_rows(
    X: Any, y: ArrayLike, sample_weight: ArrayLike | None, name: str
) -> tuple[Any, NDArray[Any], FloatArray | None]:
    """Validate and return X (with row indexing), the labels and the weights. `name` is "test" or "train"."""
    X, labels = indexable_rows(X), column_or_1d(unmask(y))
    if num_samples(X) != len(labels):
        raise ValueError(f"X_{name} has {num_samples(X)} rows, but y_{name} has {len(labels)}")
    return X, labels, check_weights(sample_weight, len(labels), of=f"y_{name}")


def ordered_classes(model: Any) -> NDArray[Any]:
    """Return the class labels of a model; of two classes the positive one is last."""
    return np.asarray(model.classes_)[positive_last(model)]


def predict_scores(model: Any, X: Any) -> FloatArray:
    """Return probabilities, or else decision values, (n_rows, n_classes), in the order of `ordered_classes`."""
    method = model.predict_proba if hasattr(model, "predict_proba") else model.decision_function
    scores = np.asarray(method(X), dtype=np.float64)
    scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    if scores.shape != (shape := (num_samples(X), len(model.classes_))):
        raise ValueError(f"its {method.__name__} returns the shape {scores.shape}, but rows and classes are {shape}")
    return scores[:, positive_last(model)]


def class_indices(labels: NDArray[Any], classes: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Return the index of the class of each label; raise ValueError if a label is unknown to the model."""
    unknown_is = f"none of the {len(classes)} classes of the model"
    codes, _ = class_codes(labels, len(labels), labels=classes, name=name, unknown_is=unknown_is)
    return codes.astype(np.int64)

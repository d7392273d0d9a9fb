"""Out-of-bag scores, and the check that X and y are the training data of a forest."""

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import get_scorer

from aucforest._caller import warn
from aucforest.columns.sparse import dense_blocks
from aucforest.columns.target_rates import SETS
from aucforest.estimators._validation import check_weights, encode_labels
from aucforest.estimators.threshold_rules import (
    TunedRule,
    check_groups_of_rule,
    cross_fit_labels,
    is_tuned,
    warn_of_positive,
)
from aucforest.fitting.bootstrap import SampleRecord, resolve_sampler
from aucforest.fitting.out_of_bag import Bags, RatedRows, TrainingRows
from aucforest.fitting.spec import tree_keys
from aucforest.fitting.target import Target, find_few_groups
from aucforest.fitting.target_rates import CodedRows, LeftOutTotalsFinder, RateWeights, count_totals
from aucforest.metrics.at_k import find_at_k, top_size
from aucforest.metrics.classification import log_loss
from aucforest.metrics.roc import class_average_precision, class_roc_auc, mean_over_classes
from aucforest.metrics.thresholds import decide
from aucforest.metrics.validation import FloatArray, class_codes, positive_last
from aucforest.tree.prediction import PackedTrees

Scorer = Callable[..., float]
# Maximum relative error of the weight of a class in a leaf from the rounding of sample weights in trees.
_LEAF_TOLERANCE = 1e-6


def _score_codes(metric: Any, estimator: Any, X: Any, y: NDArray[Any], sample_weight: Any = None) -> float:
    """Return a metric of class codes and class probabilities."""
    codes, _ = class_codes(y, len(y), labels=estimator.classes_)
    return float(metric(codes, estimator.predict_proba(X), sample_weight))


# Names of scikit-learn scorers that depend on which of two classes is positive.
_POSITIVE_SCORERS = (
    "average_precision", "f1", "jaccard", "neg_negative_likelihood_ratio", "positive_likelihood_ratio", "precision",
    "recall",
)  # fmt: skip
# These replace scikit-learn's scorers, which are slower. Its log loss also fails if y lacks a class.
_SCORERS: dict[Any, Scorer] = {
    "average_precision": partial(_score_codes, class_average_precision),
    "neg_log_loss": partial(_score_codes, lambda *given: -log_loss(*given)),
}


def resolve_scorer(scoring: str | Scorer) -> Scorer | None:
    """Return the scorer of a name; None for "roc_auc", which `OutOfBagScorer` computes without a scorer."""
    if scoring == "roc_auc":
        return None
    at_k = find_at_k(scoring) if isinstance(scoring, str) else None
    if at_k is not None:
        _, metric, k = at_k
        return partial(_score_codes, partial(mean_over_classes, partial(metric, k=k)))
    return _SCORERS[scoring] if scoring in _SCORERS else get_scorer(scoring)


def is_roc_auc(scoring: Any) -> bool:
    """Return whether the value of a parameter `scoring` or `oob_score` selects the ROC AUC."""
    return bool(scoring) if isinstance(scoring, bool | np.bool_) else isinstance(scoring, str) and scoring == "roc_auc"


def warn_of_single_sample(labels: NDArray[np.uint16], classes: NDArray[Any]) -> None:
    """Warn that the out-of-bag ROC AUC is undefined, because one of two classes has a single sample."""
    label = classes.tolist()[int(np.argmin(np.bincount(labels, minlength=2)))]
    reason = f"only one sample has class {label!r}, so no tree for which it is out of bag has seen this class"
    warn(f"oob_score_ is NaN: {reason}")


class OutOfBagScorer:
    """Scores class probabilities of a forest by a scorer that is given by name or as a function.

    With two classes, a scorer that is given by name gets the labels 0 and 1, where 1 is the positive class of the
    forest, because scikit-learn's scorers take 1 as positive. `parameter` is the name of the scoring parameter in
    messages. `label` computes class indices from probabilities, by default with the threshold of the forest.
    """

    def __init__(
        self,
        forest: Any,
        scoring: str | Scorer,
        *,
        parameter: str = "scoring",
        label: Callable[[FloatArray], NDArray[np.int64]] | None = None,
    ) -> None:
        self._forest, self._scorer, self._parameter = forest, resolve_scorer(scoring), parameter
        self._label = partial(decide, forest) if label is None else label
        is_coded = isinstance(scoring, str) and len(forest.classes_) == 2
        # The positive class of two comes last and gets the label 1.
        self._order = positive_last(forest) if is_coded else np.arange(len(forest.classes_))
        self._classes: NDArray[Any] = np.argsort(self._order) if is_coded else forest.classes_
        if isinstance(scoring, str) and (scoring in _POSITIVE_SCORERS or find_at_k(scoring) is not None):
            warn_of_positive(f"{parameter}={scoring!r}", forest)

    def score(self, X: Any, labels: NDArray[np.uint16], proba: FloatArray, sample_weight: FloatArray | None) -> float:
        """Return the score of class probabilities; NaN with a warning if the scorer fails because a class is absent."""
        if self._scorer is None:
            return class_roc_auc(labels, proba, sample_weight)
        scored_model, classes, order = copy.copy(self._forest), self._classes, self._order

        # Scorers read the names of these functions, which must be the names of methods.
        def predict_proba(X: Any) -> FloatArray:
            return proba[:, order]

        def predict(X: Any) -> NDArray[Any]:
            return classes[self._label(proba)]

        scored_model.classes_, scored_model.predict_proba, scored_model.predict = classes[order], predict_proba, predict
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        try:
            score = self._scorer(scored_model, X, classes[labels], **weight)
        except ValueError as error:
            absent = np.setdiff1d(np.arange(proba.shape[1]), labels)
            if len(absent) == 0:
                raise
            reason = f"no out-of-bag sample has class {self._forest.classes_.tolist()[absent[0]]!r}"
            warn(f"the score is NaN because {reason}, increase n_estimators: {error}")
            return float("nan")
        try:
            return float(score)
        except (TypeError, ValueError):
            shown = " ".join(repr(score).split())
            raise TypeError(f"{self._parameter}: a scorer must return a number, but it returned {shown}") from None


def check_scorer(model: Any, target: Target) -> None:
    """Raise ValueError if the scorer named by the parameter `oob_score` would fail after the fit."""
    name, sample_weight = model.oob_score, target.sample_weight
    if not isinstance(name, str):
        return
    if (at_k := find_at_k(name)) is not None:
        n_rows = len(target.labels) if sample_weight is None else float(sample_weight.sum())
        top_size(at_k[2], n_rows, name=f"oob_score: k of {name!r}")
        return
    trial = copy.copy(model)
    trial.classes_ = target.classes[:3]  # three classes show whether the scorer supports more than two
    n_classes, trial.pos_label_ = len(trial.classes_), trial.classes_.tolist()[-1]
    labels = np.repeat(np.arange(n_classes, dtype=np.uint16), 2)
    trial.class_prior_ = np.full(n_classes, 1.0 / n_classes)
    weights = None if sample_weight is None else np.ones(len(labels))
    scorer = OutOfBagScorer(trial, name, label=lambda proba: proba.argmax(axis=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            scorer.score(None, labels, np.eye(n_classes)[labels], weights)
        except (TypeError, ValueError) as error:
            data = f"{len(target.classes)} classes{'' if sample_weight is None else ' and sample weights'}"
            reason = " ".join(str(error).split())
            raise ValueError(f"oob_score={name!r} is not available for {data}: {reason}") from None


def score_out_of_bag(
    model: Any,
    rule: TunedRule,
    proba: FloatArray,
    take_rows: Callable[[NDArray[np.int64]], Any],
    groups_of: Callable[[NDArray[np.int64]], NDArray[np.int64] | None],
) -> float:
    """Return the score of out-of-bag probabilities by the scorer `model.oob_score`, without rows that have NaN.

    `rule` contains the labels and weights of all rows. If it is tuned, the label of each row is predicted by another
    threshold, which was not tuned on this row. `take_rows` returns rows of X, and `groups_of` their groups.
    """
    seen = np.flatnonzero(np.isfinite(proba[:, 0]))
    if len(seen) == 0:
        return float("nan")
    label = None
    if is_tuned(rule.threshold, len(model.classes_)):
        label = partial(cross_fit_labels, rule, seen, groups_of(seen))
    scoring = "roc_auc" if is_roc_auc(model.oob_score) else model.oob_score
    scorer = OutOfBagScorer(model, scoring, parameter="oob_score", label=label)
    X = take_rows(seen) if callable(model.oob_score) else None  # scorers given by name do not read X
    return scorer.score(X, rule.labels[seen], proba[seen], None if rule.weights is None else rule.weights[seen])


def training_rows(
    forest: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, *, same_weights: bool = True
) -> TrainingRows:
    """Return the training data of a forest with its bootstrap samples, which are drawn again.

    Raises ValueError if X and y are not the training data. To detect this, the number of samples and the weight of each
    class in the leaves of a tree are compared with those of the fit. With same_weights=False, weights may differ.
    """
    if not forest.bootstrap:
        raise ValueError("out-of-bag samples need a forest with bootstrap=True")
    X = forest._validate_X(X, reset=False)  # without target rates, which must leave out the row itself
    labels = encode_labels(y, len(X), forest.classes_).astype(np.uint16)
    weight = check_weights(X, sample_weight)
    kept = np.arange(len(X)) if weight is None else np.flatnonzero(weight)
    params = forest.get_params(deep=False)
    sampler = resolve_sampler(params, labels[kept], forest.classes_, forest._groups, forest._seed)
    record = SampleRecord.of(sampler, len(kept))
    for fitted in forest._sample_records:
        fitted.check_stream()
    if forest._sample_records != [record]:
        grown = f"the trees were grown on {', '.join(map(str, forest._sample_records))}"
        raise ValueError(f"X and y must be the training data: {grown}, not on {record}")
    assert sampler is not None
    bags = Bags(sampler, tree_keys(forest._seed, range(len(forest.trees_))), kept)
    rows = _with_rates(forest, TrainingRows(X, labels, weight, bags))
    _check_leaves(forest, rows, same_weights)
    return rows


def _with_rates(forest: Any, rows: TrainingRows) -> TrainingRows:
    """Return training rows with target rates, if the forest has them; raise ValueError for other data or weights."""
    rates, n_classes, kept = forest.target_rates_, len(forest.classes_), rows.bags.all_kept
    if rates is None:
        return rows

    def cells_of(number: int) -> NDArray[np.int64]:
        return rates.tables[number].cells_of(rows.X[kept])

    for weight in (rows.weights_of(kept), None):  # the fit may have had no weights
        integers = _rate_weights(forest, weight, rows.labels[kept], cells_of)
        if integers is not None:
            totals = LeftOutTotalsFinder(rows.labels, kept, integers, n_classes, forest._groups, cells_of)
            return replace(rows, X=RatedRows(rows.X, rates, totals))
    raise ValueError("X, y and sample_weight must be those of fit, but the class totals of categories differ")


def _rate_weights(
    forest: Any, weight: FloatArray | None, labels: NDArray[np.uint16], cells_of: Callable[[int], Any]
) -> NDArray[np.int64] | None:
    """Return the integer weights of the rows in the fit; None if these rows do not have the totals of the target rates.

    `weight` may differ from the weights of the fit by a common factor.
    """
    rates, n_classes = forest.target_rates_, len(forest.classes_)
    integers = RateWeights.of(weight, None, n_classes).integers(weight)
    rows = CodedRows(np.empty((0, len(labels)), dtype=np.uint8), labels, integers)
    scale = 1.0
    for number, table in enumerate(rates.tables):
        totals = count_totals(cells_of(number), len(table.totals), rows, n_classes)
        if number == 0:
            scale = table.totals.sum() / max(totals.sum(), 1)
        if not np.allclose(totals * scale, table.totals, rtol=_LEAF_TOLERANCE, atol=0.5):
            return None
    return np.rint((np.ones(len(labels)) if integers is None else integers) * scale).astype(np.int64)


def rows_to_tune_on(forest: Any, threshold: Any, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
    """Return the training data to tune a threshold on; raise ValueError for other data or too few groups."""
    try:
        rows = training_rows(forest, X, y, sample_weight)
    except ValueError as error:
        raise ValueError(f"{error}; to tune a threshold on other samples, pass oob=False") from None
    kept = rows.bags.all_kept
    few = find_few_groups(forest.classes_, rows.labels[kept], rows.bags.groups_of(kept))
    check_groups_of_rule(threshold, len(forest.classes_), few)
    return rows


def _check_leaves(forest: Any, rows: TrainingRows, same_weights: bool) -> None:
    """Raise ValueError unless each leaf of a tree has as many rows, and the same weight of each class, as in the fit.

    Only the first tree without target rates is checked, because rates differ from tree to tree.
    """
    first = 0 if forest.target_rates_ is None else next((i for i, e in enumerate(forest.encodings_) if e == SETS), None)
    if first is None:
        return
    tree, counts = forest.trees_[first], rows.counts(range(first, first + 1))[:, 0]
    sampled = np.flatnonzero(counts)
    packed, labels = PackedTrees([tree]), rows.labels[sampled]
    blocks = dense_blocks(rows.take(sampled), slice(0, len(sampled)))
    leaves = np.concatenate([packed.find_leaves(block)[0] for _, block in blocks])
    is_leaf, weights = tree.is_leaf, rows.weights_of(sampled)
    n_samples = np.bincount(leaves, minlength=tree.n_nodes)
    if not np.array_equal(n_samples[is_leaf], tree.n_samples[is_leaf]):
        raise ValueError("X must be the training samples in the order of fit, but the leaves of a tree differ")
    totals, fitted = np.zeros((tree.n_nodes, tree.n_classes)), (tree.weight[:, None] * tree.value)[is_leaf]
    np.add.at(totals, (leaves, labels), counts[sampled] if weights is None else counts[sampled] * weights)
    totals = totals[is_leaf]
    # Class weights are unknown here. They scale the totals of a class by the same factor in all leaves.
    totals *= fitted.sum(axis=0) / np.maximum(totals.sum(axis=0), np.finfo(np.float64).tiny)
    if not same_weights:
        totals, fitted = totals > 0.0, fitted > 0.0
    if not np.allclose(totals, fitted, rtol=_LEAF_TOLERANCE, atol=_LEAF_TOLERANCE * fitted.max()):
        names = "labels" if weights is None else "labels, and sample_weight the weights,"
        raise ValueError(f"y must be the training {names} in the order of fit, but the classes of a leaf differ")

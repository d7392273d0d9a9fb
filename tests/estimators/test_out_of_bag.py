"""Out-of-bag scores by any scorer, and the check that data are the training data."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from sklearn import config_context, metrics

from aucforest import AUCStackingClassifier
from aucforest.estimators.out_of_bag import training_rows
from aucforest.fitting.out_of_bag import parts_of_rows
from aucforest.inspection import oob_permutation_importance
from aucforest.metrics import lift_at_k, precision_at_k, recall_at_k
from tests.estimators.data import GROUPS, WEIGHT, X3, Y3, best_threshold, make_table, small_forest
from tests.reference.metrics import hand_till
from tests.reference.tree import walk

X, Y = make_table(n_rows=300, seed=2)
NAMES = np.array(["a", "b", "c"])


def take(weight, rows):
    return None if weight is None else weight[rows]


def positive(metric):
    return lambda y, proba, labels, weight: metric(y, proba[:, 1], sample_weight=weight)


def of_labels(metric):
    return lambda y, proba, labels, weight: metric(y, labels, sample_weight=weight)


BOTH = {
    "neg_log_loss": lambda y, proba, labels, weight: -metrics.log_loss(y, proba, sample_weight=weight),
    "balanced_accuracy": of_labels(metrics.balanced_accuracy_score),
    metrics.make_scorer(metrics.balanced_accuracy_score): of_labels(metrics.balanced_accuracy_score),
}
TWO = {
    "average_precision": positive(metrics.average_precision_score), "f1": of_labels(metrics.f1_score),
    metrics.make_scorer(metrics.fbeta_score, beta=2): of_labels(partial(metrics.fbeta_score, beta=2)),
    metrics.make_scorer(metrics.roc_auc_score, response_method="predict_proba"): positive(metrics.roc_auc_score),
    "precision_at_0.1": positive(partial(precision_at_k, k=0.1)), "lift_at_20": positive(partial(lift_at_k, k=20)),
    metrics.make_scorer(recall_at_k, k=0.1, response_method="predict_proba"): positive(partial(recall_at_k, k=0.1)),
    **BOTH,
}  # fmt: skip
MANY = {
    "roc_auc_ovo": lambda y, proba, labels, weight: hand_till(np.searchsorted(NAMES, y), proba, 3, weight),
    "recall_at_0.1": lambda y, proba, labels, weight: np.mean(
        [recall_at_k(y == name, of_class, 0.1, sample_weight=weight) for name, of_class in zip(NAMES, proba.T)]
    ),
    "f1_macro": of_labels(partial(metrics.f1_score, average="macro")), **BOTH,
}  # fmt: skip


def cross_fitted(y, scores, weight):
    """Return the labels of each tenth of the rows by the best threshold on the other rows."""
    parts, labels = parts_of_rows(y.astype(np.uint16), None), np.empty(len(y), dtype=int)
    for part in range(10):
        rest = parts != part
        labels[~rest] = scores[~rest] >= best_threshold("gmean", y[rest], scores[rest], take(weight, rest))
    return labels


def check(forest, table, y, weight, by_hand):
    """Compare the out-of-bag score with the same metric of the out-of-bag probabilities that are not NaN."""
    with pytest.warns(UserWarning, match="of every one of the 4 trees, .* ignored in oob_score_") as seen:
        forest.fit(table, y, weight)
    assert {warning.filename for warning in seen} == {__file__}
    proba = forest.oob_decision_function_
    known = ~np.isnan(proba[:, 0])
    n_kept = len(y) if weight is None else np.count_nonzero(weight)
    assert 0 < n_kept - known.sum() < n_kept
    assert str(seen[0].message).startswith(f"{n_kept - known.sum()} of {n_kept} samples")
    y, proba, weight = y[known], proba[known], take(weight, known)
    is_tuned = forest.threshold_ is not None
    labels = cross_fitted(y, proba[:, 1], weight) if is_tuned else forest.classes_[proba.argmax(axis=1)]
    assert forest.oob_score_ == pytest.approx(by_hand(y, proba, labels, weight), rel=1e-12)


@pytest.mark.parametrize("scoring", TWO, ids=str)
@pytest.mark.parametrize(("weight", "threshold"), [(None, None), (WEIGHT, "gmean")], ids=["alike", "weighted"])
def test_scores_of_two_classes_equal_the_metric(scoring, weight, threshold):
    check(small_forest(4, oob_score=scoring, threshold=threshold), X, Y, weight, TWO[scoring])


@pytest.mark.parametrize("scoring", MANY, ids=str)
def test_scores_of_many_classes_equal_the_metric(scoring):
    weight = None if scoring == "roc_auc_ovo" else WEIGHT
    check(small_forest(4, oob_score=scoring), X3, NAMES[Y3], weight, MANY[scoring])


def test_callable_scorers_see_out_of_bag_predictions():
    seen = []

    def scorer(estimator, table, y):
        seen.append((table, y, estimator.predict_proba(table), estimator.predict(table)))
        return 0.25

    forest = small_forest(60, oob_score=scorer, threshold=0.2).fit(X, Y)
    assert forest.oob_score_ == 0.25
    known = forest.oob_decision_function_
    for found, expected in zip(*seen, (X, Y, known, known[:, 1] >= 0.2), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert np.any(forest.predict_proba(X) != known)


@pytest.mark.parametrize("names", [["fraud", "genuine"], [-3, 0]], ids=str)
@pytest.mark.parametrize("scoring", ["f1", "average_precision"])
def test_the_second_of_two_classes_is_positive_whatever_its_label(scoring, names):
    found = []
    for y in (Y, np.array(names)[Y]):
        forest = small_forest(60, oob_score=scoring, threshold="gmean").fit(X, y)
        importance = oob_permutation_importance(forest, X, y, scoring=scoring, n_repeats=1, random_state=0)
        found.append([forest.oob_score_, *importance.importances.ravel()])
    assert found[0] == found[1]


@pytest.mark.parametrize("scoring", ["f1", "recall", "average_precision", "recall_at_0.1"])
def test_the_first_of_two_classes_may_be_positive(scoring):
    forest = small_forest(30, oob_score=scoring, pos_label="a").fit(X, np.where(Y == 1, "a", "b"))
    scores = forest.oob_decision_function_[:, :1]
    by_hand = TWO | {"recall": of_labels(metrics.recall_score), "recall_at_0.1": positive(partial(recall_at_k, k=0.1))}
    expected = by_hand[scoring](Y, np.hstack((1 - scores, scores)), scores[:, 0] >= 0.5, None)
    assert forest.oob_score_ == pytest.approx(expected)


@pytest.mark.parametrize(("name", "value"), [
    ("oob_score", "f1"), ("oob_score", "precision_at_0.1"), ("threshold", "f1"), ("threshold", {"alerts": 0.05}),
])  # fmt: skip
def test_a_positive_class_that_is_hardly_meant_is_named(name, value):
    rare, params = X[:, 0] > np.quantile(X[:, 0], 0.8), {name: value}
    names = np.where(rare, "fraud", "genuine")
    with pytest.warns(UserWarning, match=f"^{name}={value!r}: the positive class is 'genuine', .* pos_label='fraud'$"):
        small_forest(60, **params).fit(X, names)
    others = (rare, params), (np.where(rare, "yes", "no"), params), (names, {"oob_score": "balanced_accuracy"})
    for y, given in (*others, (names, {"threshold": "gmean"}), (names, params | {"pos_label": "genuine"})):
        small_forest(60, **given).fit(X, y)


def test_scorers_take_weights_with_metadata_routing():
    with config_context(enable_metadata_routing=True):
        forest = small_forest(60, oob_score="neg_log_loss").fit(X, Y, 1 + WEIGHT)
    expected = BOTH["neg_log_loss"](Y, forest.oob_decision_function_, None, 1 + WEIGHT)
    assert forest.oob_score_ == pytest.approx(expected)


@pytest.mark.parametrize(("scoring", "y", "weight", "sentence"), [
    ("f1", Y3, None, "^oob_score='f1' is not available for 3 classes: Target is multiclass but average='binary'"),
    ("r2", NAMES[Y3], None, "^oob_score='r2' is not available for 3 classes: could not convert string to float"),
    ("rand_score", Y, WEIGHT, "^oob_score='rand_score' is not available for 2 classes and sample weights: "),
    ("recall_at_301", Y, None, "^oob_score: k of 'recall_at_301' must be from 1 to 300"),
])  # fmt: skip
@pytest.mark.parametrize("make", [small_forest, lambda **params: AUCStackingClassifier(**params)])
@pytest.mark.usefixtures("nothing_grows")
def test_scorers_that_would_fail_fail_before_the_fit(make, scoring, y, weight, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        make(oob_score=scoring).fit(X3, y, weight)
    assert "\n" not in str(caught.value)


def test_a_scorer_that_returns_no_number_or_fails():
    for score in (None, np.ones(3), "good"):
        with pytest.raises(TypeError, match=r"^oob_score: a scorer must return a number, but it returned \S"):
            small_forest(30, oob_score=lambda *_, score=score: score).fit(X, Y)
    with pytest.raises(ZeroDivisionError):
        small_forest(30, oob_score=lambda *_: 1 / 0).fit(X, Y)


def test_a_class_that_is_never_out_of_bag():
    """The sample of the tree contains the only row of the rare class."""
    y = np.where(np.arange(300) == 0, "rare", np.where(Y == 0, "a", "b"))
    forest = small_forest(1, oob_score="neg_log_loss", random_state=1)
    with pytest.warns(UserWarning, match="no out-of-bag probability"):
        forest.fit(X, y)
    known = ~np.isnan(forest.oob_decision_function_[:, 0])
    assert not known[0]
    expected = -metrics.log_loss(y[known], forest.oob_decision_function_[known], labels=forest.classes_)
    assert forest.oob_score_ == pytest.approx(expected, rel=1e-12)
    with (
        pytest.warns(UserWarning, match="the score is NaN because no out-of-bag sample has class 'rare'"),
        pytest.warns(UserWarning, match="no out-of-bag probability"),
    ):
        assert np.isnan(forest.set_params(oob_score="roc_auc_ovr").fit(X, y).oob_score_)


X_TRAIN, Y_TRAIN = make_table(n_rows=300, n_classes=3, missing=0.1)
LABELS = NAMES[Y_TRAIN]
TRAIN_WEIGHT = np.where(np.arange(300) % 5 == 0, 0.0, 1.0 + np.arange(300) % 2)
SUBSAMPLE = {"sampling": "subsample"}


@pytest.mark.parametrize(("params", "grouped"), [
    *product(({}, {"max_samples": 0.3}, {"max_samples": 7}, SUBSAMPLE), (False, True)),
    *((params, False) for params in ({"max_bins": 5}, {"sampling": "balanced"}, {"sampling": {"a": 0.5}})),
])  # fmt: skip
@pytest.mark.parametrize("weight", [None, TRAIN_WEIGHT])
def test_the_rows_drawn_are_those_that_fill_the_leaves(params, grouped, weight):
    """Samples of rows and of whole groups also have the given size."""
    groups = GROUPS if grouped else None
    forest = small_forest(4, max_depth=4, **params).fit(X_TRAIN, LABELS, weight, groups=groups)
    rows = training_rows(forest, X_TRAIN, LABELS, weight)
    counts = rows.counts(range(4))
    kept = np.flatnonzero(TRAIN_WEIGHT) if weight is not None else np.arange(300)
    if params.get("sampling", "subsample") == "subsample":
        _, first = np.unique(GROUPS[kept] if grouped else kept, return_index=True)
        size = params.get("max_samples", 0.632 if params == SUBSAMPLE else 1.0)
        for count, sample in zip(counts.T[:, kept], forest.estimators_samples_, strict=True):
            assert count[first].sum() == (7 if size == 7 else round(size * len(first)))
            assert params != SUBSAMPLE or count.max() == 1
            np.testing.assert_array_equal(np.repeat(np.arange(len(kept)), count), sample)
            assert not grouped or len(set(zip(GROUPS[kept], count))) == len(first)
    np.testing.assert_array_equal(rows.labels, Y_TRAIN)
    assert not counts[TRAIN_WEIGHT == 0].any() or weight is None
    np.testing.assert_array_equal(rows.counts(range(2, 4)), counts[:, 2:])
    weights = counts if weight is None else counts * weight[:, None]
    for tree, drawn, weighed in zip(forest.trees_, counts.T, weights.T):
        leaves = np.array([walk(tree, row)[-1] for row in X_TRAIN])
        for leaf in np.flatnonzero(tree.is_leaf):
            assert np.count_nonzero(drawn[leaves == leaf]) == tree.n_samples[leaf]
            assert weighed[leaves == leaf].sum() == pytest.approx(tree.weight[leaf])


SHUFFLED = np.random.default_rng(0).permutation(300)


@pytest.mark.parametrize("params", [{"max_depth": 1}, {"class_weight": "balanced_subsample"}], ids=str)
def test_labels_and_weights_in_another_order_are_refused(params):
    """Even if all leaves have all classes, and with class weights."""
    weight = np.random.default_rng(0).lognormal(sigma=3.0, size=300)
    forest = small_forest(3, min_samples_leaf=30, **params).fit(X_TRAIN, LABELS, weight)
    training_rows(forest, X_TRAIN, LABELS, weight)
    for labels, weights in ((LABELS[SHUFFLED], weight), (LABELS, weight[SHUFFLED]), (LABELS, None)):
        with pytest.raises(ValueError, match=r"^y must be the training labels.* in the order of fit"):
            training_rows(forest, X_TRAIN, labels, weights)
    training_rows(forest, X_TRAIN, LABELS, None, same_weights=False)

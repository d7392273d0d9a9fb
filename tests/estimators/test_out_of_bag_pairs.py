"""Out-of-bag ROC AUC by pairs, against a reference, and for features without information."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from sklearn.metrics import roc_auc_score

from aucforest.estimators import out_of_bag_pairs
from aucforest.estimators._evidence import PRIOR
from aucforest.estimators.out_of_bag import training_rows
from aucforest.estimators.out_of_bag_pairs import OutOfBagPairs, extrapolate, noise_share
from aucforest.inspection import OOBCurveDisplay
from tests.estimators.data import make_table, small_forest
from tests.estimators.stacks import small_stack
from tests.reference import pairs as reference

X, Y = make_table(n_rows=60, seed=3)
X3, Y3 = make_table(n_rows=60, n_classes=3, seed=1)


def by_hand(forest, table, labels, weight=None):
    """Return the score of the reference for the trees of a forest."""
    rows = training_rows(forest, table, labels, weight)
    is_out = rows.counts(range(len(forest.trees_))).T == 0
    if weight is not None:
        is_out &= weight > 0.0
    proba = [tree.predict_proba(table).tolist() for tree in forest.estimators_]
    weights = np.ones(len(labels)) if weight is None else weight
    half = OutOfBagPairs(forest, rows, 1)._half.tolist()
    return reference.score(is_out.tolist(), proba, rows.labels.tolist(), weights.tolist(), half)


@pytest.mark.parametrize(("table", "labels"), [(X, Y), (X3, Y3)], ids=["two", "three"])
@pytest.mark.parametrize("kind", ["plain", "weights", "groups"])
def test_score_is_the_reference(table, labels, kind):
    weight = np.random.default_rng(0).choice([0.0, 0.5, 2.0], 60) if kind == "weights" else None
    groups = np.arange(60) // 2 if kind == "groups" else None
    forest = small_forest(40, oob_score=True, calibration=None, max_depth=3)
    forest.fit(table, labels, sample_weight=weight, groups=groups)
    expected = by_hand(forest, table, labels, weight) - forest.oob_optimism_
    assert forest.oob_score_ == pytest.approx(expected, abs=1e-9)
    curve = OOBCurveDisplay.from_estimator(forest, table, labels, n_points=3, sample_weight=weight)
    assert curve.scores[-1] == forest.oob_score_


@pytest.mark.parametrize("n_classes", [2, 3])
def test_constant_features_have_one_half(n_classes):
    labels = np.arange(300) % 10 % n_classes
    forest = small_forest(100, oob_score=True).fit(np.zeros((300, 2)), labels)
    assert forest.oob_score_ == pytest.approx(0.5, abs=2e-3 if n_classes > 2 else 1e-12)
    proba = forest.oob_decision_function_
    # The ROC AUC by rows is biased, which is why pairs are compared.
    assert roc_auc_score(labels, proba[:, 1] if n_classes == 2 else proba, multi_class="ovo") < 0.4


def test_some_rows_correct_the_score_of_all(monkeypatch):
    table, labels = make_table(n_rows=600, seed=2)
    of_all = small_forest(100, oob_score=True).fit(table, labels).oob_score_
    monkeypatch.setattr(out_of_bag_pairs, "_MOST_ROWS", 200)
    of_some = small_forest(100, oob_score=True).fit(table, labels).oob_score_
    assert of_all != of_some == pytest.approx(of_all, abs=0.01)


def test_no_rows_to_compare_leave_the_score(monkeypatch):
    monkeypatch.setattr(out_of_bag_pairs, "_MOST_ROWS", 9)  # fewer than five of each class
    forest = small_forest(20, oob_score=True).fit(X, Y)
    by_row = roc_auc_score(Y, forest.oob_decision_function_[:, 1])
    assert forest.oob_score_ == pytest.approx(by_row - forest.oob_optimism_)


@given(st.floats(0.1, 3.0), st.floats(0.0, 4.0), st.floats(0.05, 0.9))
def test_extrapolation_is_exact_for_normal_scores(signal, noise, wanted):
    score_of = lambda per_tree: float(ndtr(signal / np.sqrt(1.0 + noise * per_tree)))  # noqa: E731
    share = noise_share((score_of(1.0), score_of(2.0)), (1.0, 2.0))
    assert extrapolate(score_of(1.0), share, wanted) == pytest.approx(score_of(wanted), abs=1e-7)


@pytest.mark.parametrize(("score", "of_half"), [(1.0, 0.9), (0.6, 0.4), (0.5, 0.5), (0.7, np.nan), (0.6, 0.7)])
def test_scores_that_say_nothing_of_more_trees_stay(score, of_half):
    assert noise_share((score, of_half), (0.5, 1.0)) == 0.0
    assert extrapolate(score, 0.0, 0.1) == score


@pytest.mark.filterwarnings("ignore:ROC AUC is not defined")
def test_single_positive_has_no_score():
    labels = np.arange(50) == 7
    table = labels[:, None].astype(float)
    with pytest.warns(UserWarning, match="only one sample has class True, so no tree"):
        forest = small_forest(20, oob_score=True).fit(table, labels)
    assert np.isnan([forest.oob_score_, OOBCurveDisplay.from_estimator(forest, table, labels).scores[-1]]).all()
    assert small_forest(20, oob_score="accuracy").fit(table, labels).oob_score_ > 0.9


def test_nothing_is_chosen_by_few_positives():
    table = np.random.default_rng(0).normal(size=(400, 4))
    few, enough = (small_forest(40).fit(table, np.arange(400) < n_positive) for n_positive in (9, 10))
    assert few.shrinkage_ == PRIOR
    assert few.calibration_ is None
    assert np.ptp(few.mixture_["n_trees"]) <= 1
    assert enough.calibration_ is not None


def test_stack_is_corrected_as_its_forest():
    labels = np.random.default_rng(0).random(300) < 0.2
    stack = small_stack(100, stack={"oob_score": True}).fit(np.zeros((300, 1)), labels)
    assert roc_auc_score(labels, stack.oob_decision_function_[:, 1]) < 0.4 < stack.oob_score_
    few = small_stack(50, stack={"oob_score": True}).fit(X[:, :2], np.arange(60) < 5)
    assert list(few.members_) == ["forest"]
    assert few.oob_score_ == few.members_["forest"].oob_score_


@pytest.mark.parametrize("make", ["binary", "numeric"])
def test_noise_has_one_half_within_its_error(make):
    scores = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        table = rng.integers(0, 2, (300, 1)) if make == "binary" else rng.normal(size=(300, 3))
        labels = rng.permutation(300) < 15
        forest = small_forest(60, criterion="gini", oob_score=True, random_state=seed)
        scores.append(forest.fit(table, labels).oob_score_)
    assert abs(np.mean(scores) - 0.5) < 3.0 * np.std(scores, ddof=1) / np.sqrt(len(scores))

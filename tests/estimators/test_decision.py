"""Thresholds that are set after the fit."""

import numpy as np
import pytest

from aucforest.metrics import optimal_threshold
from tests.estimators.data import digest, make_table, small_forest
from tests.estimators.stacks import small_stack

X, SCORE = make_table(n_rows=300, seed=2)


Y = np.where((SCORE == 1) & (np.arange(300) % 3 == 0), "rare", "common")


X3, Y3 = make_table(n_rows=300, n_classes=3, seed=1)


WEIGHT = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], 300)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "weighted"])
@pytest.mark.parametrize(
    "rule", ["f1", {"cost": [[-1, 2], [9, 0.5]]}, {"alerts": 40}, "prevalence", 0.3, None], ids=str
)
def test_a_threshold_set_afterwards(rule, weight):
    fitted = small_forest(30, threshold=rule, sampling="balanced").fit(X, Y, weight)
    forest = small_forest(30, threshold="youden", sampling="balanced").fit(X, Y, weight)
    trees = digest(forest)
    assert forest.set_threshold(rule, X, Y, weight) is forest
    assert forest.threshold_ == fitted.threshold_
    assert getattr(forest, "threshold_std_", None) == getattr(fitted, "threshold_std_", None)
    assert forest.get_params()["threshold"] == rule
    assert digest(forest) == trees
    np.testing.assert_array_equal(forest.predict(X), fitted.predict(X))


def test_a_threshold_that_needs_no_data():
    forest = small_forest(30, bootstrap=False).fit(X, Y)
    for rule in ("prevalence", 0.9, None):
        assert forest.set_threshold(rule).threshold_ == {"prevalence": np.mean(Y == "rare"), 0.9: 0.9, None: None}[rule]
    many = small_forest(3).fit(X3, Y3)
    cost = 1 - np.eye(3)
    np.testing.assert_array_equal(many.set_threshold({"cost": cost}).predict(X3), many.set_threshold(None).predict(X3))


@pytest.fixture(scope="module")
def fitted():
    return small_forest(30, threshold="gmean").fit(X, Y), small_stack(30, stack={"threshold": "gmean"}).fit(X, Y)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("f1",), "^threshold='f1' is tuned on out-of-bag samples: pass the X and y of fit$"),
        (("f1", X), "^threshold='f1' is tuned on out-of-bag samples: pass the X and y of fit$"),
        (("f1", X[::-1], Y), "^X must be the training samples in the order of fit"),
        (("f1", X[:299], Y[:299]), "^X and y must be the training data: the trees were grown on 300 of 300 samples"),
        (
            ("f1", X, Y[::-1]),
            "^y must be the training labels in the order of fit, but the classes of a leaf differ; .* pass oob=False$",
        ),
        (("f1", X, np.where(Y == "rare", "common", "rare")), "^y must be the training labels in the order of fit"),
        (("best",), "^threshold must be one of prevalence, gmean, youden, f1, but is 'best'$"),
        ((1.5,), "^threshold must be a number between 0 and 1, but is 1.5$"),
        ((np.nan,), "^threshold must be a number between 0 and 1, but is nan$"),
        (([0.5],), r"^threshold must be a number between 0 and 1, but is \[0.5\]$"),
    ],
)
def test_a_threshold_that_cannot_be_set(arguments, sentence, fitted):
    for model in fitted:
        before = dict(vars(model))
        with pytest.raises(ValueError, match=sentence):
            model.set_threshold(*arguments)
        assert vars(model) == before


def test_a_threshold_that_fails_late_changes_nothing():
    forest = small_forest(sampling="subsample", max_samples=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="needs out-of-bag samples of both classes: increase n_estimators"):
        forest.set_threshold("f1", X, Y)
    assert forest.threshold is None
    assert forest.threshold_ is None
    with pytest.raises(ValueError, match="out-of-bag samples need a forest with bootstrap=True"):
        small_forest(bootstrap=False).fit(X, Y).set_threshold("f1", X, Y)


def test_thresholds_after_the_fit():
    labels = (Y == "rare").astype(int)
    stack = small_stack(20, stack={"threshold": "f1"}).fit(X, labels)
    tuned = stack.threshold_
    for fixed, expected in (("prevalence", stack.class_prior_[1]), (0.3, 0.3), (None, None)):
        assert stack.set_threshold(fixed).threshold_ == expected
        assert stack.threshold == fixed
    assert stack.set_threshold("f1", X, labels).threshold_ == tuned
    proba = stack.predict_proba(X)[:, 1]
    assert stack.set_threshold("gmean", X, labels, oob=False).threshold_ == optimal_threshold(
        labels, proba, criterion="gmean"
    )
    with pytest.raises(ValueError, match=r"^threshold must be one of"):
        stack.set_threshold("f2")

"""Fits of forests with target rates: warm starts, float32, scorers, weights in other units, and names."""

import numpy as np
import pandas as pd
import pytest

from aucforest import AUCForestClassifier
from aucforest.estimators._evidence import PRIOR, PRIOR_WITH_RATES
from aucforest.inspection import oob_permutation_importance
from tests.estimators.data import refuse


def make_strong(n_rows=4000, n_categories=800, seed=0):
    """Return a column of many categories with a strong effect, a number, and the labels."""
    random = np.random.default_rng(seed)
    shop, amount = random.integers(0, n_categories, n_rows), random.normal(size=n_rows)
    effects = 2.5 * random.normal(size=n_categories)
    X = pd.DataFrame({"amount": amount, "shop": pd.Categorical(shop)})
    return X, random.logistic(size=n_rows) < effects[shop] + amount


@pytest.fixture(scope="module")
def strong():
    return make_strong()


def test_dropped_encodings_stay_dropped_in_a_warm_start(strong):
    X, y = strong
    forest = AUCForestClassifier(100, random_state=0).fit(X, y)
    assert set(forest.encodings_) == {"rates"}
    more = AUCForestClassifier(140, random_state=0).fit(X, y)
    forest.set_params(warm_start=True, n_estimators=140).fit(X, y)
    assert forest.encodings_ == more.encodings_
    np.testing.assert_array_equal(forest.predict_proba(X), more.predict_proba(X))


def test_a_warm_start_with_more_rows_keeps_the_features():
    X, y = make_strong(n_categories=150)
    forest = AUCForestClassifier(40, random_state=0).fit(X, y)
    names = forest.split_features_.tolist()
    more = pd.concat((X, X[:300]), ignore_index=True).assign(amount=lambda frame: frame.amount + 0.01)
    with pytest.warns(UserWarning, match="sampled in different ways"):
        forest.set_params(warm_start=True, n_estimators=50).fit(more, np.append(y, y[:300]))
    assert forest.split_features_.tolist() == names
    assert forest.target_rates_.tables[0].totals.sum() == len(more)


def test_float32_and_float64_are_alike(strong):
    X, y = strong
    matrix = np.column_stack((X.amount, X.shop.astype(int))).astype(np.float32)
    params = {"categorical_features": [1], "random_state": 0, "oob_score": True}
    narrow = AUCForestClassifier(60, **params).fit(matrix, y)
    wide = AUCForestClassifier(60, **params).fit(matrix.astype(np.float64), y)
    np.testing.assert_array_equal(narrow.oob_decision_function_, wide.oob_decision_function_)
    np.testing.assert_array_equal(narrow.predict_proba(matrix), wide.predict_proba(matrix.astype(np.float64)))


def test_a_scorer_sees_the_features_without_rates(strong):
    X, y = strong
    shapes = []

    def score(estimator, rows, labels):
        shapes.append(rows.shape[1])
        return 0.5

    AUCForestClassifier(40, random_state=0, oob_score=score).fit(X, y)
    assert shapes == [2]


def test_weights_may_have_another_unit_after_the_fit(strong):
    X, y = strong
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    forest = AUCForestClassifier(40, random_state=0).fit(X, y, weight)
    found = [
        oob_permutation_importance(forest, X, y, sample_weight=weight * unit, random_state=0).importances_mean
        for unit in (1.0, 3.0)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    with pytest.raises(ValueError, match=r"categories have other numbers of labels$"):
        oob_permutation_importance(forest, X, np.roll(y, 1), sample_weight=weight)


def test_a_column_with_the_name_of_a_rate(strong):
    X, y = strong
    sentence = "^X has a column 'shop: rate', which is also the name of a target rate"
    refuse(AUCForestClassifier(10, random_state=0), sentence, X.assign(**{"shop: rate": 0.0}), y)


@pytest.mark.parametrize(("encoding", "amount"), [("sets", PRIOR), ("rates", PRIOR_WITH_RATES)])
def test_shrinkage_without_clear_evidence(encoding, amount):
    random = np.random.default_rng(2)
    X = pd.DataFrame({"shop": pd.Categorical(random.integers(0, 200, 400))})
    forest = AUCForestClassifier(40, categorical_encoding=encoding, random_state=0).fit(X, random.integers(0, 2, 400))
    assert forest.shrinkage_ == amount


def test_noise_of_many_categories_does_not_look_good_out_of_bag():
    scores = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        X = pd.DataFrame({"x": random.normal(size=3000), "shop": pd.Categorical(random.integers(0, 600, 3000))})
        y = random.permutation(np.arange(3000) % 8 == 0)
        scores.append(AUCForestClassifier(60, random_state=seed, oob_score=True).fit(X, y).oob_score_)
    assert abs(np.mean(scores) - 0.5) < 0.02

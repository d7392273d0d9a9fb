"""Permutation importance and partial dependence against scikit-learn's."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.inspection import partial_dependence as of_scikit_learn
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from aucforest import AUCForestClassifier, AUCStackingClassifier
from aucforest.report.importance import held_out_importance, partial_dependence
from aucforest.report.rows import score_rows
from tests.estimators.data import small_forest
from tests.estimators.rated import make_rated

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
X[:, 1] = RNG.integers(0, 5, 300)
Y = RNG.random(300) < 1 / (1 + np.exp(-X[:, 0] - X[:, 1]))


@pytest.fixture(scope="module")
def model():
    return LogisticRegression().fit(X, Y)


def test_importances_are_those_of_scikit_learn(model):
    importance = held_out_importance(score_rows(model, X, Y, None), 20, 0)
    expected = permutation_importance(model, X, Y, scoring="roc_auc", n_repeats=20, random_state=1)
    error = np.hypot(importance.importances_std, expected.importances_std) / np.sqrt(20)
    assert np.all(np.abs(importance.importances_mean - expected.importances_mean) <= 4 * error + 1e-12)
    assert importance.baseline_score == pytest.approx(roc_auc_score(Y, model.predict_proba(X)[:, 1]))
    assert importance.n_parts == 10
    assert held_out_importance(score_rows(model, csr_array(X), Y, None), 1, 0) is None


@pytest.mark.parametrize("weighted", [False, True])
def test_means_are_those_of_scikit_learn(model, weighted):
    weight = RNG.random(300) if weighted else None
    few, many = partial_dependence(score_rows(model, X, Y, weight), [1, 0], 0)
    options = {"kind": "average", "method": "brute", "response_method": "predict_proba", "sample_weight": weight}
    expected = of_scikit_learn(model, X, [1], **options)
    assert few.name == "feature_1"
    assert few.values == expected["grid_values"][0].tolist()
    assert few.means[:, 1] == pytest.approx(expected["average"][0])
    assert len(many.values) == 12
    assert set(many.values) <= set(X[:, 0].tolist())


@pytest.mark.parametrize("frames", [pd, pl])
def test_categories_and_missing_values_have_means(frames):
    gaps = [None if row % 7 == 0 else value for row, value in enumerate(X[:, 0].tolist())]
    kinds = [None if row % 5 == 0 else "ab"[value > 1] for row, value in enumerate(X[:, 1].tolist())]
    columns = {"size": gaps, "kind": kinds, "constant": [1.0] * 300}
    frame = frames.DataFrame(columns)
    model = small_forest(5).fit(frame, Y)
    rows = score_rows(model, frame, Y, None)
    assert held_out_importance(rows, 1, 0).feature_names == ("size", "kind", "constant")
    size, kind = partial_dependence(rows, [0, 1, 2], 0)
    assert size.missing_means is not None
    assert size.missing_means.sum() == pytest.approx(1.0)
    assert sorted(kind.values) == ["a", "b", "missing"]
    for value, mean in zip(kind.values, kind.means):
        same = frames.DataFrame(columns | {"kind": [value] * 300})
        assert value == "missing" or mean == pytest.approx(model.predict_proba(same).mean(axis=0))


@pytest.mark.parametrize("is_stack", [False, True])
def test_target_rates_follow_the_category(is_stack):
    train, y = make_rated()
    forest = AUCForestClassifier(20, random_state=0, max_depth=6, categorical_encoding="rates")
    model = (AUCStackingClassifier(forest, random_state=0) if is_stack else forest).fit(train, y)
    frame, labels = make_rated(300, seed=3)
    rows = score_rows(model, frame, labels, None)
    (merchant,) = partial_dependence(rows, [0], 0)
    assert np.ptp(merchant.means[:, 1]) > 0.1
    for value, mean in zip(merchant.values, merchant.means):
        same = frame.assign(merchant=np.full(300, value, dtype=object))
        assert mean == pytest.approx(model.predict_proba(same).mean(axis=0))
    importance, random = held_out_importance(rows, 1, 0), np.random.default_rng(0)
    for k in (0, 1):
        random.permutation(np.flatnonzero(labels == k))  # all rows are taken
    permuted = frame.assign(merchant=frame["merchant"].to_numpy()[random.permutation(300)])
    before, after = (roc_auc_score(labels, model.predict_proba(each)[:, 1]) for each in (frame, permuted))
    assert importance.feature_names == ("merchant", "amount", "kind")
    assert importance.importances[0, 0] == pytest.approx(before - after)

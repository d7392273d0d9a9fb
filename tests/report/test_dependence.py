"""Partial dependence against scikit-learn's."""

import numpy as np
import pytest
from sklearn.inspection import partial_dependence as of_scikit_learn
from sklearn.linear_model import LogisticRegression

from aucforest.report.dependence import partial_dependence
from aucforest.report.rows import score_rows
from tests.estimators.data import small_forest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
X[:, 1] = RNG.integers(0, 5, 300)
Y = RNG.random(300) < 1 / (1 + np.exp(-X[:, 0] - X[:, 1]))


def test_means_are_those_of_scikit_learn():
    model = LogisticRegression().fit(X, Y)
    few, many = partial_dependence(score_rows(model, X, Y, None), [1, 0], 0)
    expected = of_scikit_learn(model, X, [1], kind="average", method="brute", response_method="predict_proba")
    assert few.name == "feature_1"
    assert few.values == expected["grid_values"][0].tolist()
    assert few.means[:, 1] == pytest.approx(expected["average"][0])
    assert len(many.values) == 12
    assert set(many.values) <= set(X[:, 0].tolist())


def test_weights_weigh_the_rows():
    model, weight = LogisticRegression().fit(X, Y), RNG.random(300)
    (found,) = partial_dependence(score_rows(model, X, Y, weight), [1], 0)
    options = {"kind": "average", "method": "brute", "response_method": "predict_proba", "sample_weight": weight}
    assert found.means[:, 1] == pytest.approx(of_scikit_learn(model, X, [1], **options)["average"][0])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_and_missing_values_have_means(library):
    frames = pytest.importorskip(library)
    gaps = [None if row % 7 == 0 else value for row, value in enumerate(X[:, 0].tolist())]
    kinds = [None if row % 5 == 0 else "ab"[value > 1] for row, value in enumerate(X[:, 1].tolist())]
    frame = frames.DataFrame({"size": gaps, "kind": kinds, "constant": [1.0] * 300})
    model = small_forest(20).fit(frame, Y)
    size, kind = partial_dependence(score_rows(model, frame, Y, None), [0, 1, 2], 0)
    assert size.of_missing is not None
    assert size.of_missing.sum() == pytest.approx(1.0)
    assert sorted(kind.values) == ["a", "b", "missing"]
    for value, mean in zip(kind.values, kind.means):
        kinds = [None if value == "missing" else value] * 300
        same = frames.DataFrame({"size": gaps, "kind": kinds, "constant": [1.0] * 300})
        if value != "missing":
            assert mean == pytest.approx(model.predict_proba(same).mean(axis=0))

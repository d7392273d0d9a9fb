"""CBPE of a forest: its out-of-bag probabilities, and labels by its own rule."""

import copy
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import expit
from sklearn.base import clone

from aucforest import AUCForestClassifier, AUCStackingClassifier
from aucforest.metrics.thresholds import decide
from aucforest.monitoring import CBPE, Chunks

ONE = Chunks.by_number(1)
TWO = Chunks.by_number(2)  # of the reference: the fewest with limits, as each takes a domain classifier
COST = {"cost": [[0, 1, 9], [2, 0, 1], [1, 5, 0]]}


@pytest.fixture(scope="module")
def forest_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(1200, 3))
    y = np.where(random.random(1200) < expit(2 * X[:, 0]), "yes", "no")
    forest = AUCForestClassifier(30, oob_score=True, min_samples_leaf=5, random_state=0)
    return forest.fit(X[:800], y[:800]), X, y


def test_from_forest(forest_rows):
    forest, X, y = forest_rows
    cbpe = CBPE.from_forest(forest, y[:800], X[:800], chunks=TWO, metrics=["roc_auc", "accuracy"])
    assert cbpe.classes_.tolist() == ["no", "yes"]
    result = cbpe.estimate(
        forest.predict_proba(X[800:]), forest.predict(X[800:]), y_true=y[800:], X=X[800:], chunks=ONE
    )
    for row in result.estimates:
        assert row.low <= row.realized <= row.high
    assert result.shifts["[0:399]"].domain_auc > 0


def test_from_a_stack(forest_rows):
    """Its own out-of-bag probabilities and threshold, not those of its forest."""
    forest, X, y = forest_rows
    stack = AUCStackingClassifier(clone(forest), threshold="gmean").fit(X[:800], y[:800])
    cbpe = CBPE.from_forest(stack, y[:800], chunks=TWO, metrics=["roc_auc", "accuracy"])
    proba = stack.oob_decision_function_
    labels = stack.classes_[decide(proba, stack.threshold_)]
    expected = CBPE(["roc_auc", "accuracy"]).fit(proba, y[:800], labels, chunks=TWO)
    new = stack.predict_proba(X[800:]), stack.predict(X[800:])
    found = cbpe.estimate(*new, y_true=y[800:], chunks=ONE).estimates
    assert found == expected.estimate(*new, y_true=y[800:], chunks=ONE).estimates
    for row in found:
        assert row.low <= row.realized <= row.high


@pytest.mark.parametrize("form", ["pandas", "category", "polars", "object"])
def test_the_features_of_the_forest_may_be_categories(form):
    """A shift of a text column alone is seen by the domain classifier, and an unseen category counts as one."""
    random = np.random.default_rng(0)
    towns = np.array(["Łódź", "Kraków", "Gdańsk", None], dtype=object)
    frame = pd.DataFrame({"size": random.normal(size=900), "town": towns[random.integers(4, size=900)]})
    y = random.random(900) < expit(2 * frame["size"] + (frame["town"] == "Łódź"))
    frame.loc[700:, "town"] = np.where(random.random(200) < 0.5, "Łódź", "Poznań")
    X: Any = frame.astype({"town": "category"}) if form == "category" else frame
    if form == "polars":
        X = pl.from_pandas(frame)
    if form == "object":
        X = frame.to_numpy()
    options: dict[str, Any] = {"categorical_features": [1]} if form == "object" else {}
    forest = AUCForestClassifier(30, oob_score=True, min_samples_leaf=5, random_state=0, **options)
    forest.fit(X[:500], y[:500])
    for weighted in (False, True):
        cbpe = CBPE.from_forest(forest, y[:500], X[:500], chunks=TWO, importance_weighted=weighted)
        shifts = [
            cbpe.estimate(forest.predict_proba(some), X=some, chunks=ONE).shifts for some in (X[500:700], X[700:])
        ]
        (same,), (moved,) = (each.values() for each in shifts)
        assert abs(same.domain_auc - 0.5) < 0.1
        assert moved.domain_auc > 0.7
    with pytest.raises(ValueError, match="X has 1 columns, but the reference has 2"):
        cbpe.estimate(forest.predict_proba(X[500:]), X=frame[["town"]][500:])


def test_features_that_are_neither_numbers_nor_categories_are_named(forest_rows):
    forest, X, y = forest_rows
    frame = pd.DataFrame(X[:800], columns=["a", "b", "c"])
    mixed = frame.assign(b=[*["high"] * 799, 3.5])
    with pytest.raises(TypeError, match=r"X: column 'b' is .* cannot be sorted: .*make all its values text"):
        CBPE.from_forest(forest, y[:800], mixed)
    lists = frame.assign(b=[[1, 2]] * 800)
    with pytest.raises(TypeError, match="X: column 'b' holds values of type list: encode them as numbers or text"):
        CBPE.from_forest(forest, y[:800], lists)


DAY = date(2024, 2, 29)


@pytest.mark.filterwarnings("ignore:there are no alert limits:UserWarning")
@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"day": [DAY]}).astype("M8[s]"),
        pd.DataFrame({"day": [DAY]}, dtype=object),
        pl.DataFrame({"day": [DAY]}),
        pa.table({"day": pa.array([DAY], pa.date32())}),
        pa.table({"day": pa.array([DAY], pa.date64())}),
        pa.table({"day": pa.array([5], pa.duration("s"))}),
        np.array([["2024-02-29"]], dtype="M8[D]"),
    ],
)
def test_dates_are_refused_in_every_form(forest_rows, X):
    forest, _, y = forest_rows
    cbpe = CBPE.from_forest(forest, y[:800], np.zeros((800, 1)), chunks=ONE)
    sentence = "^X: column (0|'day') holds dates or durations: leave dates out, because new ones alone tell new samples"
    for attempt in (lambda: CBPE().fit([0.5], [1], X=X), lambda: cbpe.estimate([0.5], X=X)):
        with pytest.raises(TypeError, match=sentence):
            attempt()


def test_from_forest_refuses(forest_rows):
    forest, X, y = forest_rows
    with pytest.raises(ValueError, match="oob_score=True"):
        CBPE.from_forest(clone(forest).set_params(oob_score=False).fit(X, y), y)
    with pytest.raises(TypeError, match="labels"):
        CBPE.from_forest(forest, y[:800], labels=["yes", "no"])
    with pytest.raises(ValueError, match="y_true has 3 samples, but the forest was trained on 800"):
        CBPE.from_forest(forest, y[:3])


@pytest.mark.filterwarnings("ignore:the alert limits of .* are so wide:UserWarning")
@pytest.mark.parametrize(
    ("n_classes", "threshold"),
    [(2, None), (2, "prevalence"), (2, "f1"), (2, 0.0), (2, np.inf), (3, None), (3, "prevalence"), (3, COST)],
)
def test_the_forest_decides(n_classes, threshold):
    """Alert limits are those of the labels that the forest predicts, not of the most probable classes."""
    random = np.random.default_rng(1)
    X = random.normal(size=(600, 3))
    y = np.digitize(X[:, 0] + random.normal(size=600), [1.2, 2.0][: n_classes - 1])
    never = threshold == np.inf  # a result of tuning, but not a valid parameter
    params = {"criterion": "auc", "threshold": None if never else threshold, "oob_score": True, "random_state": 0}
    forest = AUCForestClassifier(20, **params).fit(X, y)
    forest.threshold_ = np.inf if never else forest.threshold_
    chances = forest.oob_decision_function_
    out_of_bag = copy.copy(forest)
    out_of_bag.predict_proba = lambda X: chances
    metrics = ["accuracy", "recall", "confusion_matrix"]
    limits = [
        CBPE(metrics, calibration="none").fit(chances, y, labels).limits_
        for labels in (out_of_bag.predict(X), chances.argmax(axis=1))
    ]
    assert CBPE.from_forest(forest, y, metrics=metrics, calibration="none").limits_ == limits[0]
    assert (limits[0] == limits[1]) == (threshold is None)

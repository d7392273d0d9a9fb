"""Frames whose columns are dates, durations and categories."""

from datetime import date
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import aucforest
from aucforest import AUCForestClassifier, AUCTreeClassifier, LinearAUCClassifier
from aucforest.fitting.coding import TIME_BINS
from aucforest.inspection import explain, export_text, forest_summary, oob_permutation_importance
from tests.estimators.test_model_files import at, check_refused, read

N_ROWS = 300
NAMES = ["amount", "booked: time", "site", "waited: seconds", "booked: month", "booked: day of week", "booked: hour"]


def make_frame(seed=0):
    """Return a frame with dates, durations and missing values, and labels that depend on the day of the week."""
    random = np.random.default_rng(seed)
    minutes = random.integers(0, 365 * 24 * 60, N_ROWS)
    frame = pd.DataFrame(
        {
            "amount": random.normal(size=N_ROWS),
            "booked": np.datetime64("2024-01-01", "us") + minutes.astype("m8[m]"),
            "site": pd.Categorical(random.choice(list("xyz"), N_ROWS)),
            "waited": random.integers(0, 1000, N_ROWS).astype("m8[s]"),
        }
    )
    y = (frame["booked"].dt.day_of_week >= 5).to_numpy()
    frame.loc[::17, "booked"] = pd.NaT
    return frame, y


X, Y = make_frame()
ARROW = pa.Table.from_pandas(X, preserve_index=False)


def forest_of(table=X, n_estimators=20, **params):
    return AUCForestClassifier(n_estimators, random_state=0, **params).fit(table, Y)


@cache
def fitted_forest():
    return forest_of()


@cache
def expected_proba():
    return fitted_forest().predict_proba(X)


def test_columns_and_features():
    """The names of scikit-learn are those of columns; trees see more features."""
    assert fitted_forest().n_features_in_ == 4
    assert fitted_forest().feature_names_in_.tolist() == X.columns.tolist()
    assert fitted_forest().split_features_.tolist() == NAMES
    importances = fitted_forest().split_importances_
    assert importances.shape == (7,)
    assert NAMES[int(importances.argmax())] == "booked: day of week"
    of_column = [sum(importances[[name.startswith(column) for name in NAMES]]) for column in X.columns]
    np.testing.assert_allclose(fitted_forest().feature_importances_, of_column, rtol=1e-12)
    assert fitted_forest()[0].predict_proba(X).shape == (N_ROWS, 2)
    assert AUCTreeClassifier().fit(X, Y).split_features_.tolist() == NAMES
    assert fitted_forest().encode(X).columns.tolist() == NAMES
    assert fitted_forest().to_sklearn().feature_names_in_.tolist() == NAMES


def test_model_files(tmp_path):
    fitted_forest().save(tmp_path / "forest")
    loaded = aucforest.load(tmp_path / "forest")
    assert loaded.dates_ == fitted_forest().dates_
    np.testing.assert_array_equal(loaded.predict_proba(ARROW), expected_proba())


@pytest.mark.parametrize(
    ("dates", "sentence"),
    [
        ([[1, ["time"]]], "each item of dates must be a feature, its parts and a zone"),
        ([[9, ["time"], None]], "feature 9 of dates is unknown, categorical or repeated"),
        ([[2, ["time"], None]], "feature 2 of dates is unknown, categorical or repeated"),
        ([[1, ["month", "time"], None]], "the parts of dates are unknown"),
        ([[1, ["time"], "../etc"]], "the zone of dates is unknown"),
    ],
)
def test_hostile_model_files(tmp_path, dates, sentence):
    fitted_forest().save(tmp_path / "forest")
    check_refused(read(tmp_path / "forest"), at("dates", put=dates), sentence, tmp_path)


DAY = date(2024, 2, 29)


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame({"amount": X["booked"]}),
        pd.DataFrame({"amount": [DAY]}, dtype=object),
        pl.DataFrame({"amount": [DAY]}),
        pa.table({"amount": pa.array([DAY], pa.date32())}),
        pa.table({"amount": pa.array([DAY], pa.date64())}),
        pa.table({"amount": pa.array([5], pa.duration("s"))}),
    ],
)
def test_dates_in_a_numeric_column(rows):
    forest = AUCForestClassifier(2, random_state=0).fit(X[["amount"]], Y)
    with pytest.raises(ValueError, match=r"^X: column 'amount' holds dates \(.*\), but was numeric in fit$"):
        forest.predict_proba(rows)


def test_dates_can_be_refused():
    with pytest.raises(ValueError, match=r"^X: column 'booked' is not numeric but datetime64\[us\]; encode dates"):
        forest_of(date_parts=None)
    with pytest.raises(ValueError, match=r"'date_parts' .* must be 'auto', a list of 'time', 'year', .* or None"):
        forest_of(date_parts=["week"])
    for table in (X[["booked"]], ARROW.select(["booked"]), pl.DataFrame({"d": [DAY] * N_ROWS})):
        with pytest.raises(ValueError, match=r"^X: column '.*' is not numeric but .*; encode dates and times as"):
            LinearAUCClassifier().fit(table, Y)


def test_warm_start_needs_the_same_dates():
    model = forest_of(warm_start=True).set_params(n_estimators=22)
    with pytest.raises(ValueError, match=r"^warm_start: the dates of column 1 differ in kind or zone"):
        model.fit(X.assign(booked=X["booked"].dt.tz_localize("Asia/Tokyo")), Y)
    np.testing.assert_array_equal(model.fit(X, Y).predict_proba(X), forest_of(n_estimators=22).predict_proba(X))


def test_a_monotonic_constraint_is_one_of_the_time():
    rises = AUCForestClassifier(8, monotonic_cst={"booked": 1}, random_state=0)
    X_time = X[["booked"]].assign(noise=X["amount"])
    y = X["booked"].dt.day_of_year.to_numpy() + 40 * X["amount"].to_numpy() > 180
    model = rises.set_params(date_parts=["time"]).fit(X_time, y)
    days = pd.DataFrame({"booked": pd.date_range("2024-01-01", "2024-12-31", 50), "noise": 0.0})
    assert np.all(np.diff(model.predict_proba(days)[:, 1]) >= 0)
    with pytest.raises(ValueError, match=r"^monotonic_cst of column 0 must be 0, because date_parts has no time$"):
        rises.set_params(date_parts=["month"]).fit(X_time, y)


def test_times_have_few_thresholds():
    """Single days cannot be learned, unless every value is asked for."""
    thresholds = {}
    for max_bins in (255, None):
        options = {"date_parts": ["time"], "splitter": "best", "criterion": "gini"}
        forest = forest_of(X[["booked"]], max_bins=max_bins, **options)
        found = np.concatenate([tree.threshold[tree.feature == 0] for tree in forest.trees_])
        thresholds[max_bins] = np.unique(found[np.isfinite(found)])
    assert 16 < len(thresholds[255]) < TIME_BINS
    assert len(thresholds[None]) > 2 * TIME_BINS


def test_an_explicit_category_is_not_expanded():
    model = forest_of(X[["amount", "booked"]], categorical_features=["booked"])
    assert list(model.categories_) == [1]
    assert model.dates_ == {}
    model.predict_proba(X[["amount", "booked"]])


def test_names_of_features():
    explanation = explain(fitted_forest(), X[:40])
    assert list(explanation.feature_names) == NAMES
    reasons = [reason for row in explanation.top(7) for reason in row]
    times = {str(reason.value) for reason in reasons if reason.feature == "booked: time" and reason.value}
    assert times <= {str(moment) for moment in X["booked"].dt.floor("s")}
    assert list(forest_summary(fitted_forest()).feature_names) == NAMES
    assert list(oob_permutation_importance(fitted_forest(), X, Y, n_repeats=1).feature_names) == NAMES
    text = export_text(AUCTreeClassifier(random_state=0, date_parts=["time"]).fit(X[["booked"]], Y))
    assert "|--- booked: time <= 2024-" in text

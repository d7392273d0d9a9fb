"""Frames whose columns are dates, durations and categories."""

from datetime import date
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from aucforest import AUCTreeClassifier, LinearAUCClassifier
from aucforest.fitting.coding import TIME_BINS
from aucforest.inspection import explain, export_text, forest_summary
from tests.estimators.data import small_forest
from tests.estimators.test_model_files import at, check_refused, read

N_ROWS = 300
NAMES = ["amount", "booked: time", "site", "waited: seconds", "booked: month", "booked: day of week", "booked: hour"]


RANDOM = np.random.default_rng(0)
X = pd.DataFrame({
    "amount": RANDOM.normal(size=N_ROWS),
    "booked": np.datetime64("2024-01-01", "us") + RANDOM.integers(0, 365 * 24 * 60, N_ROWS).astype("m8[m]"),
    "site": pd.Categorical(RANDOM.choice(list("xyz"), N_ROWS)),
    "waited": RANDOM.integers(0, 1000, N_ROWS).astype("m8[s]"),
})  # fmt: skip
Y = (X["booked"].dt.day_of_week >= 5).to_numpy()
X.loc[::17, "booked"] = pd.NaT


@cache
def fitted_forest():
    return small_forest(20).fit(X, Y)


def test_columns_and_features():
    """`feature_names_in_` are the columns of X, and `split_features_` the features of trees."""
    forest = fitted_forest()
    assert forest.n_features_in_ == 4
    assert forest.feature_names_in_.tolist() == X.columns.tolist()
    importances = forest.split_importances_
    assert importances.shape == (7,)
    assert NAMES[int(importances.argmax())] == "booked: day of week"
    of_column = [sum(importances[[name.startswith(column) for name in NAMES]]) for column in X.columns]
    np.testing.assert_allclose(forest.feature_importances_, of_column, rtol=1e-12)
    assert forest[0].predict_proba(X).shape == (N_ROWS, 2)
    tree, exported = AUCTreeClassifier().fit(X, Y), forest.to_sklearn()
    for names in (forest.split_features_, tree.split_features_, forest.encode(X).columns, exported.feature_names_in_):
        assert list(names) == NAMES


@pytest.mark.parametrize(("dates", "sentence"), [
    ([1, ["time"]], "each item of dates must be a feature, its parts and a zone"),
    ([9, ["time"], None], "feature 9 of dates, integers or text is unknown or repeated"),
    ([2, ["time"], None], "there are categories of feature 2, which is a number"),
    ([1, "time", None], "the parts of dates are unknown"),
    ([1, ["month", "time"], None], "the parts of dates are unknown"),
    ([1, ["time"], 5], "the zone of dates is unknown"), ([1, ["time"], "../etc"], "the zone of dates is unknown"),
])  # fmt: skip
def test_hostile_model_files(tmp_path, dates, sentence):
    fitted_forest().save(tmp_path / "forest")
    check_refused(read(tmp_path / "forest"), at("dates", put=[dates]), sentence, tmp_path)


DAY = date(2024, 2, 29)


def test_dates_in_a_numeric_column():
    forest = small_forest().fit(X[["amount"]], Y)
    arrow = pa.array([DAY], pa.date32()), pa.array([DAY], pa.date64()), pa.array([5], pa.duration("s"))
    pandas = pd.DataFrame({"amount": X["booked"]}), pd.DataFrame({"amount": [DAY]}, dtype=object)
    for rows in (*pandas, pl.DataFrame({"amount": [DAY]}), *(pa.table({"amount": column}) for column in arrow)):
        with pytest.raises(ValueError, match=r"^X: column 'amount' holds dates \(.*\), but was numeric in fit$"):
            forest.predict_proba(rows)


def test_dates_can_be_refused():
    with pytest.raises(ValueError, match=r"^X: column 'booked' is not numeric but datetime64\[us\]; encode dates"):
        small_forest(date_parts=None).fit(X, Y)
    with pytest.raises(ValueError, match=r"'date_parts' .* must be 'auto', a list of 'time', 'year', .* or None"):
        small_forest(date_parts=["week"]).fit(X, Y)
    for table in (X[["booked"]], pa.table(X[["booked"]]), pl.DataFrame({"d": [DAY] * N_ROWS})):
        with pytest.raises(ValueError, match=r"^X: column '.*' is not numeric but .*; encode dates and times as"):
            LinearAUCClassifier().fit(table, Y)


def test_warm_start_needs_the_same_dates():
    model = small_forest(20, warm_start=True).fit(X, Y).set_params(n_estimators=22)
    with pytest.raises(ValueError, match=r"^warm_start: the dates of column 1 have another type, zone or parts than"):
        model.fit(X.assign(booked=X["booked"].dt.tz_localize("Asia/Tokyo")), Y)
    np.testing.assert_array_equal(model.fit(X, Y).predict_proba(X), small_forest(22).fit(X, Y).predict_proba(X))


def test_a_monotonic_constraint_is_one_of_the_time():
    rises, X_time = small_forest(8, monotonic_cst={"booked": 1}), X[["booked"]].assign(noise=X["amount"])
    y = X["booked"].dt.day_of_year.to_numpy() + 40 * X["amount"].to_numpy() > 180
    model = rises.set_params(date_parts=["time"]).fit(X_time, y)
    days = pd.DataFrame({"booked": pd.date_range("2024-01-01", "2024-12-31", 50), "noise": 0.0})
    assert np.all(np.diff(model.predict_proba(days)[:, 1]) >= 0)
    with pytest.raises(ValueError, match=r"^monotonic_cst of column 0 must be 0, because date_parts has no time$"):
        rises.set_params(date_parts=["month"]).fit(X_time, y)


def test_times_have_few_thresholds():
    """Times have few bins, so that single days cannot be learned, unless max_bins is None."""
    for max_bins, least, most in ((255, 16, TIME_BINS), (None, 2 * TIME_BINS, np.inf)):
        forest = small_forest(20, date_parts=["time"], splitter="best", criterion="gini", max_bins=max_bins)
        trees = forest.fit(X[["booked"]], Y).trees_
        assert least < len({*np.concatenate([tree.threshold[tree.feature == 0] for tree in trees])} - {np.inf}) < most


def test_an_explicit_category_is_not_expanded():
    model = small_forest(categorical_features=["booked"]).fit(X[["amount", "booked"]], Y)
    assert (list(model.categories_), model.expanded_) == ([1], {})
    assert model.predict_proba(X[["amount", "booked"]]).shape == (N_ROWS, 2)


def test_names_of_features():
    reasons = [reason for row in explain(fitted_forest(), X[:40]).top(7) for reason in row]
    times = {str(reason.value) for reason in reasons if reason.feature == "booked: time" and reason.value}
    assert times <= {str(moment) for moment in X["booked"].dt.floor("s")}
    assert list(forest_summary(fitted_forest()).feature_names) == NAMES
    text = export_text(AUCTreeClassifier(random_state=0, date_parts=["time"]).fit(X[["booked"]], Y))
    assert "|--- booked: time <= 2024-" in text

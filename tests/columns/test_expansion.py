from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.columns import expansion
from aucforest.columns.categorical import nearest_of
from aucforest.columns.dates import DateColumn, table_of
from aucforest.columns.expansion import IntegerColumn, expand, read_features

# The column of integers comes before the column of dates, but its categories are the last features.
DATA = {"shop": [7, -3, None], "x": [0.5, 1.5, 2.5], "day": [date(2024, 3, 1), None, date(2024, 7, 2)]}
EXPANDED = {2: DateColumn(("month", "day"), None), 0: IntegerColumn((1, 10))}
NAN = np.nan
FEATURES = [[7, 0.5, 3, 1, 1, 1], [-3, 1.5, NAN, NAN, NAN, 0], [NAN, 2.5, 7, 2, NAN, NAN]]


@pytest.mark.parametrize("X", [
    pl.DataFrame(DATA), pd.DataFrame(DATA), pd.DataFrame(DATA).convert_dtypes(),
    pd.DataFrame(DATA).astype(object).to_numpy(), [list(row) for row in zip(*DATA.values())],
])  # fmt: skip
def test_features_of_dates_and_integers(X):
    matrix = read_features(table_of(X), EXPANDED, {4: np.array([3, 7]), 5: np.array([-1, 0])})
    np.testing.assert_array_equal(matrix.astype(np.float64), FEATURES)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_categories_appended_to_a_matrix(dtype):
    matrix = np.array([[7, 0.5], [-3, NAN], [NAN, 1.5], [7.5, 2.5], [np.inf, 0.0], [12, 0.0]], dtype=dtype)
    appended = expansion.append_categories(matrix, {(0, 1): np.array([-3, 7]), (0, 10): np.array([0, 1])})
    assert appended.dtype == dtype
    # The nearest range of -3 is that of 0 to 9.
    expected = [[1, 0], [0, 0], [NAN, NAN], [NAN, 0], [NAN, NAN], [NAN, 1]]
    np.testing.assert_array_equal(appended, np.column_stack((matrix, expected)))
    assert expansion.append_categories(matrix, {}) is matrix


def test_codes_of_the_most_frequent_integers_come_first():
    values = np.concatenate((np.arange(0, 508, 2), np.arange(1, 99, 2)))
    codes = expansion.encode_integers(np.array([[506.0], [1.0], [97.0], [508.0]]), {(0, 1): values})
    np.testing.assert_array_equal(codes[:, 0], [253, 254, 302, NAN])


def test_names_and_columns_of_features():
    assert expansion.split_names(list(DATA), EXPANDED) == [
        "shop", "x", "day: month", "day: day", "shop: category", "shop: range of 10",
    ]  # fmt: skip
    assert expansion.columns_of_features(3, EXPANDED) == [0, 1, 2, 2, 0, 0]
    assert expansion.columns_of_found(3, EXPANDED, categorical=False) == {4: (0, 1), 5: (0, 10)}
    assert expansion.n_added(EXPANDED) == 3
    assert expand(X := np.eye(3), {}) is X


def test_a_column_with_the_name_of_a_part():
    with pytest.raises(ValueError, match=r"^X has a column 'day: day', which is also the name of another feature"):
        expand(table_of(pl.DataFrame(DATA).rename({"x": "day: day"})), EXPANDED)


@given(st.lists(st.integers(-50, 50), min_size=1, unique=True), st.lists(st.floats(-99, 99), min_size=1))
def test_nearest_values(values, numbers):
    nearest = nearest_of(np.array([*numbers, NAN]), np.array(values))
    assert all(abs(a - b) == min(abs(a - value) for value in values) for a, b in zip(numbers, nearest))
    assert np.isnan(nearest[-1])

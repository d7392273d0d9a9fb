from datetime import UTC, date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aucforest.tables.columns import as_table
from aucforest.tables.dates import expand, find_dates, format_time, split_names, table_of
from tests.estimators.data import small_forest

# A Friday, a missing value, and a Sunday before 1970; in summer New York is four hours behind.
DAYS = [date(2024, 3, 1), None, date(1960, 7, 31)]
MOMENTS = [datetime(2024, 3, 1, 22, 30, 0, 250_000), None, datetime(1960, 7, 31, 0, 0, 1)]
ZONED = [None if moment is None else moment.replace(tzinfo=UTC) for moment in MOMENTS]
WAITS = [timedelta(hours=1, milliseconds=500), None, timedelta(seconds=-2)]
CLOCKS = [time(1, 0, 0, 500_000), None, time(23, 59, 58)]
NEW_YORK = "America/New_York"
NUMPY_TYPES = {pa.date32(): "M8[D]", pa.timestamp("us"): "M8[us]", pa.duration("ms"): "m8[ms]"}


def seconds(moment):
    return (moment - datetime(1970, 1, 1)).total_seconds()


def forms_of(values, type_):
    """Return a column in all forms that have a type for it."""
    column = pa.table({"d": pa.array(values, type_)})
    forms = {"arrow": column, "pandas on arrow": column.to_pandas(types_mapper=pd.ArrowDtype)}
    if type_ != pa.date64():  # which polars reads as moments
        forms["polars"] = pl.DataFrame(column)
    forms["objects"] = pd.DataFrame({"d": values}, dtype=object)
    forms["list"] = [[value] for value in values]
    if type_ in NUMPY_TYPES:
        forms["numpy"] = np.array(forms["list"], dtype=NUMPY_TYPES[type_])
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_):
        forms["pandas"] = column.to_pandas()
    return forms


def features(X, parts="auto"):
    """Return the names and values of the features that are made of a table."""
    table = table_of(X)
    dates = find_dates(table, parts)
    names = table.columns if hasattr(table, "columns") else ["d"]
    expanded = expand(table, dates)
    matrix = expanded.to_numpy() if hasattr(expanded, "columns") else expanded
    return split_names(names, dates), matrix.astype(np.float64), dates


CASES = {
    "days": (
        DAYS,
        [pa.date32(), pa.date64()],
        {
            "d: time": [seconds(datetime(2024, 3, 1)), np.nan, seconds(datetime(1960, 7, 31))],
            "d: month": [3, np.nan, 7],
            "d: day of week": [5, np.nan, 7],
        },
    ),
    "moments": (
        MOMENTS,
        [pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")],
        {
            "d: time": [seconds(MOMENTS[0]), np.nan, seconds(MOMENTS[2])],
            "d: month": [3, np.nan, 7],
            "d: day of week": [5, np.nan, 7],
            "d: hour": [22.5 + 0.25 / 3600, np.nan, 1 / 3600],
        },
    ),
    "zones": (
        [None if moment is None else moment.astimezone(ZoneInfo(NEW_YORK)) for moment in ZONED],
        [pa.timestamp("us", NEW_YORK)],
        {
            "d: time": [seconds(MOMENTS[0]), np.nan, seconds(MOMENTS[2])],
            "d: month": [3, np.nan, 7],
            "d: day of week": [5, np.nan, 6],
            "d: hour": [17.5 + 0.25 / 3600, np.nan, 20 + 1 / 3600],
        },
    ),
    "durations": (WAITS, [pa.duration("ms"), pa.duration("ns")], {"d: seconds": [3600.5, np.nan, -2]}),
    "times of day": (CLOCKS, [pa.time64("us")], {"d: seconds": [3600.5, np.nan, 86398]}),
}


@pytest.mark.parametrize("case", CASES)
def test_every_form_of_a_date_gives_the_same_features(case):
    values, types, wanted = CASES[case]
    found = {}
    for type_ in types:
        for form, X in forms_of(values, type_).items():
            names, found[form, type_], _ = features(X)
            assert names == list(wanted), (form, type_)
    first = next(iter(found.values()))
    np.testing.assert_allclose(first, np.transpose(list(wanted.values())), rtol=1e-14)
    for form, matrix in found.items():
        np.testing.assert_array_equal(matrix, first, str(form))


@pytest.mark.parametrize("case", CASES)
def test_a_column_may_be_missing_altogether(case):
    values, types, wanted = CASES[case]
    for type_ in types:
        for form, X in forms_of(values, type_).items():
            dates = find_dates(table_of(X), "auto")
            expanded = expand(as_table(forms_of([None, None], type_)[form]), dates)
            assert np.isnan(np.asarray(expanded, dtype=np.float64)).all(), (form, type_)
            assert expanded.shape == (2, len(wanted))


def test_a_matrix_of_dates_may_have_a_categorical_column():
    days = np.array(["2024-01-01", "2024-02-01"], dtype="M8[s]")[np.arange(200).reshape(100, 2) % 3 % 2]
    forest = small_forest(categorical_features=[0]).fit(days, np.arange(100) % 2)
    assert forest.predict_proba(days).shape == (100, 2)


def test_time_is_exact_in_every_unit():
    """Nanoseconds since 1970 do not fit into a float64, so they must not be rounded before the division."""
    random = np.random.default_rng(0)
    ticks = np.concatenate([random.integers(-(10**16), 10**16, 1000), [0, 1, -1]])  # microseconds
    in_us = ticks.astype("M8[us]")
    exact = [int(tick) / 10**6 for tick in ticks]  # Python rounds the quotient of two integers once
    for unit in ("us", "ns"):
        found = features(in_us.astype(f"M8[{unit}]")[:, None])[1][:, 0]
        kept = np.abs(ticks) < 9 * 10**15  # what fits into nanoseconds
        np.testing.assert_allclose(found[kept], np.array(exact)[kept], rtol=2**-52)
    np.testing.assert_array_equal(
        features(in_us[:, None])[1][:, 0][kept], features(in_us.astype("M8[ns]")[:, None])[1][:, 0][kept]
    )


def test_parts_can_be_chosen():
    moments = pd.to_datetime(["2024-02-29 13:00", "2023-12-31 00:00"])
    frame = pd.DataFrame({"a": [1.0, 2.0], "d": moments, "b": [3.0, 4.0]})
    names, matrix, dates = features(frame, ["day", "hour", "year"])
    assert names == ["a", "d: year", "b", "d: day", "d: hour"]
    np.testing.assert_array_equal(matrix, [[1, 2024, 3, 29, 13], [2, 2023, 4, 31, 0]])
    # Dates without a time of day are read as midnight by what was learned from others.
    days = as_table(frame.assign(d=[date(2024, 2, 29), date(2023, 12, 31)]))
    np.testing.assert_array_equal(expand(days, dates).to_numpy()[:, 4], [0, 0])


def test_another_index_and_other_names_of_columns():
    frame = pd.DataFrame({0: pd.to_datetime(["2024-02-29", "2023-12-31"])}, index=[7, 5])
    names, matrix, _ = features(frame, ["month"])
    assert names == ["0: month"]
    np.testing.assert_array_equal(matrix, [[2], [12]])


def test_zones_are_converted_to_that_of_fit():
    berlin = as_table(pd.DataFrame({"d": pd.to_datetime(ZONED).tz_convert("Europe/Berlin")}))
    dates = find_dates(berlin, "auto")
    assert dates[0].zone == "Europe/Berlin"
    wanted = expand(berlin, dates).to_numpy()
    for X in (pl.DataFrame({"d": ZONED}), pd.DataFrame({"d": ZONED}, dtype=object), [[moment] for moment in ZONED]):
        found = expand(table_of(X), dates)
        np.testing.assert_array_equal(np.asarray(found, dtype=float), wanted)
    # Offsets are not in the time zone database, and polars has none.
    offsets = pd.DataFrame({"d": pd.to_datetime(["2024-03-01 10:00+02:00"])})
    assert find_dates(as_table(offsets), "auto")[0].zone == "UTC"


BAD = {
    "numbers": (MOMENTS, [1.5, 2.5], "had dates in fit, but holds Float64 now: pass dates, not numbers or text$"),
    "text": (MOMENTS, ["2024-03-01"], "had dates in fit, but holds String now"),
    "durations": (MOMENTS, WAITS, "holds durations, but had dates in fit$"),
    "a zone": (MOMENTS, ZONED, "has the time zone UTC, but had none in fit: convert it, or set its zone$"),
    "no zone": (ZONED, MOMENTS, "has no time zone, but had UTC in fit: convert it"),
}


@pytest.mark.parametrize("case", BAD)
def test_other_values_than_in_fit(case):
    fitted, values, message = BAD[case]
    dates = find_dates(as_table(pl.DataFrame({"d": fitted})), "auto")
    with pytest.raises(ValueError, match=f"^X: column 'd' {message}"):
        expand(as_table(pl.DataFrame({"d": values})), dates)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([DAYS[0], 3], "^X: column 'd' holds dates, but also 3$"),
        ([MOMENTS[0], ZONED[0]], "^X: column 'd' holds dates with and without a time zone: use one of the two$"),
    ],
)
def test_objects_of_several_kinds(values, message):
    with pytest.raises(ValueError, match=message):
        features(pd.DataFrame({"d": values}, dtype=object))


def test_missing_dates_may_be_of_any_type():
    dates = find_dates(as_table(pl.DataFrame({"d": DAYS})), "auto")
    for column in (pa.nulls(2), pa.nulls(2, pa.float64()), pa.nulls(2, pa.timestamp("s"))):
        found = expand(as_table(pa.table({"d": column})), dates).to_numpy()
        assert found.shape == (2, 3)
        assert np.all(np.isnan(found))


def test_a_part_with_the_name_of_a_column():
    frame = pl.DataFrame({"d": DAYS, "d: month": [1, 2, 3]})
    with pytest.raises(ValueError, match=r"^X has a column 'd: month', which is also the name of a part of its dates"):
        features(frame)


def test_times_as_text():
    assert format_time(seconds(datetime(2024, 3, 1))) == "2024-03-01"
    assert format_time(seconds(datetime(2024, 3, 1, 22, 30)) + 0.75) == "2024-03-01 22:30:00"
    assert format_time(float("inf")) == "inf"


@pytest.mark.parametrize(
    "moment",
    [datetime(1, 1, 1, 2, tzinfo=timezone(timedelta(hours=5))), datetime(9999, 12, 31, 20, tzinfo=ZoneInfo(NEW_YORK))],
)
def test_the_ends_of_the_calendar_with_a_zone(moment):
    """As objects of Python, which cannot be converted, they are what they are in polars."""
    of_polars = pl.DataFrame({"d": [moment]})
    dates = find_dates(as_table(of_polars), "auto")
    wanted = expand(as_table(of_polars), dates).to_numpy()
    for X in (pd.DataFrame({"d": [moment]}, dtype=object), [[moment]]):
        np.testing.assert_array_equal(np.asarray(expand(table_of(X), dates), dtype=float), wanted)

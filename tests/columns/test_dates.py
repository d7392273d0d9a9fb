from datetime import UTC, date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aucforest.columns.dates import find_dates, format_time, table_of
from aucforest.columns.expansion import expand, split_names
from tests.estimators.data import small_forest

# A Friday, a missing value, and a Sunday before 1970. In summer, New York is four hours behind UTC.
DAYS = [date(2024, 3, 1), None, date(1960, 7, 31)]
MOMENTS = [datetime(2024, 3, 1, 22, 30, 0, 250_000), None, datetime(1960, 7, 31, 0, 0, 1)]
ZONED = [None if moment is None else moment.replace(tzinfo=UTC) for moment in MOMENTS]
WAITS = [timedelta(hours=1, milliseconds=500), None, timedelta(seconds=-2)]
CLOCKS = [time(1, 0, 0, 500_000), None, time(23, 59, 58)]
NEW_YORK = "America/New_York"
IN_NEW_YORK = [None if moment is None else moment.astimezone(ZoneInfo(NEW_YORK)) for moment in ZONED]
NUMPY_TYPES = {pa.date32(): "M8[D]", pa.timestamp("us"): "M8[us]", pa.duration("ms"): "m8[ms]"}


def seconds(moment):
    return (moment - datetime(1970, 1, 1)).total_seconds()


def forms_of(values, type_):
    """Return a column in the types of all libraries that can represent its values."""
    column = pa.table({"d": pa.array(values, type_)})
    forms = {"arrow": column, "pandas on arrow": column.to_pandas(types_mapper=pd.ArrowDtype)}
    if type_ != pa.date64():  # polars reads this type as dates with a time of day
        forms["polars"] = pl.DataFrame(column)
    forms["objects"] = pd.DataFrame({"d": values}, dtype=object)
    forms["list"] = [[value] for value in values]
    if type_ in NUMPY_TYPES:
        forms["numpy"] = np.array(forms["list"], dtype=NUMPY_TYPES[type_])
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_):
        forms["pandas"] = column.to_pandas()
    return forms


def expanded(X, dates):
    return np.asarray(expand(table_of(X), dates), dtype=np.float64)


def features(X, parts="auto"):
    """Return the names and values of the features of a table."""
    dates = find_dates(table_of(X), parts)
    return split_names(getattr(table_of(X), "columns", ["d"]), dates), expanded(X, dates), dates


# Values, their Arrow types, and for each feature its values in the first and in the last row.
MIDNIGHTS = [seconds(datetime(2024, 3, 1)), seconds(datetime(1960, 7, 31))]
CASES = {
    "days": (DAYS, [pa.date32(), pa.date64()], {
        "d: time": MIDNIGHTS, "d: month": [3, 7], "d: day of week": [5, 7],
    }),
    "moments": (MOMENTS, [pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")], {
        "d: time": [seconds(MOMENTS[0]), seconds(MOMENTS[2])], "d: month": [3, 7], "d: day of week": [5, 7],
        "d: hour": [22.5 + 0.25 / 3600, 1 / 3600],
    }),
    "zones": (IN_NEW_YORK, [pa.timestamp("us", NEW_YORK)], {
        "d: time": [seconds(MOMENTS[0]), seconds(MOMENTS[2])], "d: month": [3, 7], "d: day of week": [5, 6],
        "d: hour": [17.5 + 0.25 / 3600, 20 + 1 / 3600],
    }),
    "durations": (WAITS, [pa.duration("ms"), pa.duration("ns")], {"d: seconds": [3600.5, -2]}),
    "times of day": (CLOCKS, [pa.time64("us")], {"d: seconds": [3600.5, 86398]}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_form_of_a_date_gives_the_same_features(case):
    """All values of the column may be missing after the fit."""
    values, types, wanted = CASES[case]
    found = {}
    for type_ in types:
        missing = forms_of([None, None], type_)
        for form, X in forms_of(values, type_).items():
            names, found[form, type_], dates = features(X)
            assert names == list(wanted), (form, type_)
            np.testing.assert_array_equal(expanded(missing[form], dates), np.full((2, len(wanted)), np.nan))
    first = next(iter(found.values()))
    np.testing.assert_allclose(first[[0, 2]], np.transpose(list(wanted.values())), rtol=1e-14)
    assert np.isnan(first[1]).all()
    for form, matrix in found.items():
        np.testing.assert_array_equal(matrix, first, str(form))


def test_a_matrix_of_dates_may_have_a_categorical_column():
    days = np.array(["2024-01-01", "2024-02-01"], dtype="M8[s]")[np.arange(200).reshape(100, 2) % 3 % 2]
    forest = small_forest(categorical_features=[0]).fit(days, np.arange(100) % 2)
    assert forest.predict_proba(days).shape == (100, 2)


def test_time_is_exact_in_every_unit():
    """Nanoseconds since 1970 do not fit into a float64, so they must not be rounded before the division."""
    random = np.random.default_rng(0)
    ticks = np.concatenate([random.integers(-9 * 10**15, 9 * 10**15, 1000), [0, 1, -1]])  # microseconds
    exact = [int(tick) / 10**6 for tick in ticks]  # Python rounds the quotient of two integers once
    found = [features(ticks.astype("M8[us]").astype(f"M8[{unit}]")[:, None])[1][:, 0] for unit in ("us", "ns")]
    np.testing.assert_allclose(found[0], exact, rtol=2**-52)
    np.testing.assert_array_equal(found[0], found[1])


def test_parts_can_be_chosen():
    """The names of columns and the index of rows may be of any kind."""
    moments = pd.to_datetime(["2024-02-29 13:00", "2023-12-31 00:00"])
    frame = pd.DataFrame({"a": [1.0, 2.0], 0: moments, "b": [3.0, 4.0]}, index=[7, 5])
    names, matrix, dates = features(frame, ["day", "hour", "year"])
    assert names == ["a", "0: year", "b", "0: day", "0: hour"]
    np.testing.assert_array_equal(matrix, [[1, 2024, 3, 29, 13], [2, 2023, 4, 31, 0]])
    # If the fit had dates with a time of day, dates without one are read as midnight.
    frame[0] = [date(2024, 2, 29), date(2023, 12, 31)]
    np.testing.assert_array_equal(expanded(frame, dates)[:, 4], [0, 0])


def test_zones_are_converted_to_that_of_fit():
    berlin = pd.DataFrame({"d": pd.to_datetime(ZONED).tz_convert("Europe/Berlin")})
    _, wanted, dates = features(berlin)
    assert dates[0].zone == "Europe/Berlin"
    for X in (pl.DataFrame({"d": ZONED}), pd.DataFrame({"d": ZONED}, dtype=object), [[moment] for moment in ZONED]):
        np.testing.assert_array_equal(expanded(X, dates), wanted)
    # Offsets are not in the time zone database, and polars does not support them.
    offsets = pd.DataFrame({"d": pd.to_datetime(["2024-03-01 10:00+02:00"])})
    assert features(offsets)[2][0].zone == "UTC"


# The values in the fit, the values afterwards ([] if the fit fails), and the error message.
BAD = [
    (MOMENTS, [1.5, 2.5], "column 'd' had dates in fit, but holds Float64 now: pass dates, not numbers or text$"),
    (MOMENTS, ["2024-03-01"], "column 'd' had dates in fit, but holds String now"),
    (MOMENTS, WAITS, "column 'd' holds durations, but had dates in fit$"),
    (MOMENTS, ZONED, "column 'd' has the time zone UTC, but had none in fit: convert it, or set its zone$"),
    (ZONED, MOMENTS, "column 'd' has no time zone, but had UTC in fit: convert it"),
    ([DAYS[0], 3], [], "column 'd' holds dates, but also 3$"),
    ([MOMENTS[0], ZONED[0]], [], "column 'd' holds dates with and without a time zone: use one of the two$"),
]


@pytest.mark.parametrize(("fitted", "values", "message"), BAD)
def test_values_that_are_refused(fitted, values, message):
    with pytest.raises(ValueError, match=f"^X: {message}"):
        expanded(pl.DataFrame({"d": values}), features(pd.DataFrame({"d": fitted}, dtype=object))[2])


def test_missing_dates_may_be_of_any_type():
    dates = features(pl.DataFrame({"d": DAYS}))[2]
    for type_ in (pa.null(), pa.float64()):
        np.testing.assert_array_equal(expanded(pa.table({"d": pa.nulls(2, type_)}), dates), np.full((2, 3), np.nan))


def test_times_as_text():
    assert format_time(seconds(datetime(2024, 3, 1))) == "2024-03-01"
    assert format_time(seconds(datetime(2024, 3, 1, 22, 30)) + 0.75) == "2024-03-01 22:30:00"
    assert format_time(float("inf")) == "inf"


@pytest.mark.parametrize("moment", [
    datetime(1, 1, 1, 2, tzinfo=timezone(timedelta(hours=5))), datetime(9999, 12, 31, 20, tzinfo=ZoneInfo(NEW_YORK)),
])  # fmt: skip
def test_the_ends_of_the_calendar_with_a_zone(moment):
    """pandas holds such dates as Python objects. Their features are those of the same dates in polars."""
    _, wanted, dates = features(pl.DataFrame({"d": [moment]}))
    for X in (pd.DataFrame({"d": [moment]}, dtype=object), [[moment]]):
        np.testing.assert_array_equal(expanded(X, dates), wanted)

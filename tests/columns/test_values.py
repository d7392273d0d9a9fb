"""Equal values are one category, in all types that may contain them in `fit` and afterwards."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import permutations
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aucforest.columns.categorical import as_table, encode, learn
from aucforest.columns.values import plain_values
from aucforest.persistence.plain_values import labels_from_plain, labels_to_plain

DAYS = [date(2024, 3, 1), None, date(1960, 7, 31), date(2024, 3, 1), date(9999, 12, 31)]
MIDNIGHTS = [None if day is None else datetime.combine(day, time()) for day in DAYS]
MOMENTS = [None if day is None else datetime.combine(day, time(9, 30, 0, 250_000)) for day in DAYS]
NEW_YORK, ZONED = "America/New_York", [None if moment is None else moment.replace(tzinfo=UTC) for moment in MOMENTS]
WAITS = [timedelta(hours=1), None, timedelta(0, 7205, 1500), timedelta(hours=1), timedelta(0)]
CLOCKS = [None if wait is None else (datetime.min + wait).time() for wait in WAITS]


class Color(str, Enum):  # noqa: UP042, its `str` is "Color.RED"
    """Members are strings, but `str` returns another string."""

    RED = "b"
    BLUE = "é"
    ONE = "1"


def objects(values, convert=lambda value: value):
    values = [None if value is None else convert(value) for value in values]
    return pd.DataFrame({"c": pd.Series(values, dtype=object)})


def matrix(values, dtype):
    return np.array([[value] for value in values], dtype=dtype)


def forms_of(values, *types):
    """Return a column in the given Arrow types, and in the types of pandas and polars to which Arrow converts them."""
    forms = {"objects": objects(values), "rows": [[value] for value in values]}
    forms["category"] = pd.DataFrame({"c": pd.Categorical(values)})
    for type_ in types:
        forms[f"arrow {type_}"] = table = pa.table({"c": pa.array(values).cast(type_)})
        forms[f"pandas of {type_}"] = table.to_pandas(types_mapper=pd.ArrowDtype)
        forms[f"polars of {type_}"] = pl.DataFrame(table)
    return forms


def moments(values):
    units = [pa.timestamp(unit) for unit in ("us", "ms")]
    return {
        **forms_of(values, *units), "timestamps": objects(values, pd.Timestamp),
        "pandas": pd.DataFrame({"c": pd.Series(values, dtype="M8[us]")}), "numpy": matrix(values, "M8[us]"),
        "scalars of numpy": objects(values, lambda value: np.datetime64(value, "ms")),
        "text": pd.DataFrame({"c": [None if value is None else value.isoformat() for value in values]}),
    }  # fmt: skip


CASES = {
    "days": {
        **forms_of(DAYS, pa.date32(), pa.date64(), pa.timestamp("s")),
        **{f"midnight: {name}": form for name, form in moments(MIDNIGHTS).items()}, "numpy": matrix(DAYS, "M8[D]"),
        "dictionary": pa.table({"c": pa.array(DAYS).dictionary_encode()}),
        "scalars of numpy": objects(DAYS, lambda value: np.datetime64(value, "D")),
    },
    "moments": moments(MOMENTS),
    "zones": {
        **forms_of(ZONED, pa.timestamp("us", "UTC"), pa.timestamp("ms", NEW_YORK)),
        "another zone": objects(ZONED, lambda value: value.astimezone(ZoneInfo(NEW_YORK))),
        "timestamps": objects(ZONED, lambda value: pd.Timestamp(value).tz_convert(NEW_YORK)),
        "text": pd.DataFrame({"c": [None if value is None else value.isoformat() for value in ZONED]}),
    },
    "durations": {
        **forms_of(WAITS, pa.duration("us"), pa.duration("ns")),
        **{f"clock: {name}": form for name, form in forms_of(CLOCKS, pa.time64("us"), pa.time64("ns")).items()},
        "pandas": pd.DataFrame({"c": pd.Series(WAITS, dtype="m8[ns]")}), "numpy": matrix(WAITS, "m8[us]"),
        "text of the clock": objects(CLOCKS, str),
    },
    "numbers": {
        **{t.__name__: objects([1, None, 0, 1, 3], t) for t in (int, float, Decimal, Fraction, np.float32)},
        "flags": objects([True, None, False, True, 3]), "long": matrix([1, np.nan, 0, 1, 3], np.longdouble),
        "arrow decimals": pa.table({"c": pa.array([1, None, 0, 1, 3]).cast(pa.decimal128(30, 2))}),
    },
    "flags": {"flags": objects([True, None, False]), "of numpy": objects([True, None, False], np.bool_)},
    "text": {t.__name__: objects(["b", None, "é", "b", "1"], t) for t in (str, np.str_, Color)},
    "intervals": {
        "pandas": pd.DataFrame({"c": pd.cut(pd.Series([1.0, np.nan, 2.5]), [0, 1, 3])}),
        "text": pd.DataFrame({"c": ["(0, 1]", None, "(1, 3]"]}),
    },
    "periods": {
        "pandas": pd.DataFrame({"c": pd.PeriodIndex(["2024-01", None, "2023-12"], freq="M")}),
        "text": pd.DataFrame({"c": ["2024-01", None, "2023-12"]}),
    },
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_equal_values_are_one_category_in_every_type(case):
    forms = {name: as_table(X) for name, X in CASES[case].items()}
    learned = {name: learn(table, [0], None) for name, table in forms.items() if "text" not in name}
    first, categories = next(iter(learned.values()))
    np.testing.assert_array_equal(np.isnan(first[:, 0]), [row == 1 for row in range(len(first))])
    for fitted, (codes, found) in learned.items():
        assert found[0].tolist() == categories[0].tolist(), fitted
        np.testing.assert_array_equal(codes, first, fitted)
        for name, table in forms.items():
            np.testing.assert_array_equal(encode(table, found), first, f"{fitted}, then {name}")
        assert labels_from_plain(labels_to_plain(found[0])).tolist() == found[0].tolist(), fitted


OTHERS = {
    "text": ("b", "'b'"), "numbers": (3, "3"), "dates": (DAYS[0], "'2024-03-01'"),
    "dates with a zone": (ZONED[0], r"'2024-03-01 09:30:00.250000\+00:00'"),
    "durations": (WAITS[2], "'2:00:05.001500'"),
}  # fmt: skip


@pytest.mark.parametrize(("fitted", "other"), list(permutations(OTHERS, 2)))
def test_values_of_another_kind_than_in_fit(fitted, other):
    """No value could be equal to a category."""
    (before, before_text), (now, now_text) = OTHERS[fitted], OTHERS[other]
    _, categories = learn(as_table(objects([before])), [0], None)
    message = f"^X: column 'c' has values such as {now_text}, but had values such as {before_text} in fit$"
    with pytest.raises(ValueError, match=message):
        encode(as_table(objects([now])), categories)


@pytest.mark.parametrize("value", [b"a", (1, 2), 1j, object(), frozenset("a")])
def test_values_that_a_model_file_cannot_hold_are_refused_before_the_fit(value):
    message = "but its values cannot be categories: .* is none of text, numbers, booleans"
    with pytest.raises(TypeError, match=f"^X: column 'c' is categorical, {message}"):
        learn(as_table(objects([value, value])), [0], None)


def test_moments_beyond_the_calendar_of_python_are_its_ends():
    far = np.array([["20000-01-01"], ["-3000-01-01"], ["2024-03-01"]], dtype="M8[D]")
    assert learn(far, [0], None)[1][0].tolist() == [datetime.min, datetime(2024, 3, 1), datetime.max]
    west = datetime.max.replace(tzinfo=timezone(-timedelta(hours=5)))
    east = datetime.min.replace(tzinfo=ZoneInfo("Asia/Tokyo"))
    ends = [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
    assert learn(as_table(objects([west, east])), [0], None)[1][0].tolist() == ends


def test_text_is_not_converted_value_by_value():
    assert plain_values(values := ["b", None, "a"]) is values

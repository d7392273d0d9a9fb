import numpy as np
import pandas as pd
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.monitoring import Chunks
from tests.monitoring.data import load

CASES = load("cbpe_unit")["chunkers"]
PERIODS = [case for case in CASES if case["kind"] == "period"]
TIMES = np.datetime64("2023-01-30") + 2 * np.arange(25)


def test_recorded_chunks_by_size():
    (case,) = (case for case in CASES if case["kind"] == "size")
    chunks = Chunks.by_size(case["size"]).split(case["n"])
    assert [(c.key, c.start, c.end, c.rows.stop - c.rows.start, c.is_full) for c in chunks] == [
        (c["key"], c["start"], c["end"], c["n"], c["n"] >= case["size"]) for c in case["chunks"]
    ]


@pytest.mark.parametrize("case", PERIODS, ids=lambda case: f"{case['period']}, {case['n']} rows")
def test_recorded_chunks_by_period(case):
    times = TIMES if case["n"] == 25 else np.concatenate([TIMES[:5], TIMES[20:]])
    chunks = Chunks.by_period(times, case["period"]).split(len(times))
    for chunk, recorded in zip(chunks, case["chunks"], strict=True):
        expected = recorded["key"], recorded["start_date"][:10], recorded["end_date"][:10]
        assert (chunk.key, chunk.start, chunk.end) == expected
        assert chunk.rows.tolist() == list(range(recorded["start"], recorded["end"] + 1))


def test_days_hours_and_weeks_before_1970():
    times = ["2023-01-30T23:59:59", "2023-01-31T00:00:00", "2023-01-31T00:59:00"]
    assert [c.key for c in Chunks.by_period(times, "D").split(3)] == ["2023-01-30", "2023-01-31"]
    hours = Chunks.by_period(times, "h").split(3)
    assert [(c.key, c.start, c.end) for c in hours] == [(h, h, h) for h in ("2023-01-30T23", "2023-01-31T00")]
    (chunk,) = Chunks.by_period(["1969-12-29"], "W").split(1)
    assert chunk.key == "1969-12-29/1970-01-04"


@given(st.integers(1, 40), st.integers(0, 200))
def test_chunks_by_number(number, more):
    chunks = Chunks.by_number(number).split(number + more)
    parts = [np.arange(number + more)[chunk.rows] for chunk in chunks]
    assert len(chunks) == number
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert all(chunk.is_full for chunk in chunks)
    assert np.concatenate(parts).tolist() == list(range(number + more))


@given(st.permutations(range(25)))
def test_rows_of_a_period_can_be_in_any_order(order):
    times = TIMES[order]
    for chunk in Chunks.by_period(times, "W").split(25):
        inside = (times >= np.datetime64(chunk.start)) & (times <= np.datetime64(chunk.end))
        assert chunk.rows.tolist() == np.flatnonzero(inside).tolist()


@pytest.mark.parametrize(
    "make", [list, np.array, pd.Series, lambda texts: pd.to_datetime(texts, format="mixed").to_numpy("M8[ns]")]
)
def test_timestamps_of_any_kind(make):
    assert len(Chunks.by_period(make(["2023-01-30", "2023-02-05 12:00", "2023-02-06"]), "W").split(3)) == 2


@pytest.mark.parametrize(("make", "sentence"), [
    (lambda: Chunks.by_size(0), "size == 0, must be >= 1"),
    (lambda: Chunks.by_number(0), "number == 0, must be >= 1"),
    (lambda: Chunks.by_size(1.5), "size must be an instance of int"),
    (lambda: Chunks.by_number("10"), "number must be an instance of int"),
    (lambda: Chunks.by_period(["2023-01-01"], "decade"), "period must be one of 'h', 'D', 'W', 'M', 'Q', 'Y'"),
    (lambda: Chunks.by_period(["soon"], "D"), "timestamps must be dates such as 2024-03-13, but one is 'soon': "),
    (lambda: Chunks.by_period(["2023-01-01", "NaT"], "D"), "timestamps has 1 missing values"),
    (lambda: Chunks.by_period(pd.Series(["2023-01-01", None, np.nan]), "D"), "timestamps has 2 missing values"),
    (lambda: Chunks.by_period([1704067200, 1704067201], "D"), "must be dates, but the first is 1704067200"),
    (lambda: Chunks.by_period(np.array([1.5, "2023"], dtype=object), "D"), "must be dates, but the first is 1.5"),
    (lambda: Chunks.by_period([["2023-01-01"]], "D"), "one dimension"),
    (lambda: Chunks.by_period([], "D"), r"and samples, but has shape \(0,\)"),
    (lambda: Chunks.by_period(["2023-01-01"], "D").split(2), "timestamps has 1 samples, but y_score has 2"),
    (lambda: Chunks.by_number(3).split(2), "2 samples cannot be split into 3 chunks"),
])  # fmt: skip
def test_invalid_sizes_periods_and_timestamps(make, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        make()


ZONED = pd.Series(pd.date_range("2023-01-31 23:30", periods=3, freq="h", tz="Europe/Berlin"))


@pytest.mark.parametrize("times", [
    ZONED, pd.DatetimeIndex(ZONED), list(ZONED.dt.to_pydatetime()), ZONED.astype(str), polars.from_pandas(ZONED),
], ids=["series", "index", "datetimes", "texts", "polars"])  # fmt: skip
@pytest.mark.filterwarnings("ignore:The behavior of DatetimeProperties:FutureWarning")
def test_times_with_a_zone_are_invalid(times):
    """In UTC the first time would be on another day than in local time."""
    with pytest.raises(ValueError, match="timestamps must not have a time zone"):
        Chunks.by_period(times, "D")
    assert len(Chunks.by_period(polars.from_pandas(ZONED.dt.tz_localize(None)), "M").split(3)) == 2


def test_first_and_last_periods_with_few_rows_are_not_full():
    days = np.datetime64("2024-01-30") + np.arange(64)  # two days of January and three of April
    chunks = Chunks.by_period(days, "M").split(64)
    assert [chunk.key for chunk in chunks] == ["2024-01", "2024-02", "2024-03", "2024-04"]
    assert [chunk.is_full for chunk in chunks] == [False, True, True, False]
    assert Chunks.by_period(days[:1], "M").split(1)[0].is_full
    (chunk,) = Chunks.by_size(10).split(7)
    assert (chunk.key, chunk.is_full) == ("[0:6]", False)

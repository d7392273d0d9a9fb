"""Folds of whole groups and folds forward in time."""

import pandas as pd
import pytest

from tests.cli.data import check_refusal, json_of, read_json, run, succeed

COMPARE = "compare visits.csv --target label --positive yes --trees 3"


def test_folds_of_whole_groups(visits):
    grouped, plain = (
        read_json(f"{COMPARE} --criteria gini --drop {options}")
        for options in ("date --groups customer", "date,customer")
    )
    for content in (grouped, plain):
        assert (content["n_features"], len(content["folds"])) == (1, 15)
    assert {fold["n_test"] % 5 for fold in grouped["folds"]} == {0}  # whole customers of 5 rows each
    assert grouped["folds"][0]["roc_auc"] != plain["folds"][0]["roc_auc"]


FORMS = {
    "german": lambda dates: dates.dt.strftime("%d.%m.%Y"),
    "seconds": lambda dates: (dates - pd.Timestamp("1970")).dt.days,
    "zone": lambda dates: dates.dt.strftime("%Y-%m-%dT00:00:00+00:00"),
    "dictionary": lambda dates: dates.dt.strftime("%Y-%m-%d").astype("category"),
}


@pytest.mark.parametrize("form", FORMS)
def test_folds_forward_in_time(visits, form):
    visited = pd.read_csv("visits.csv", parse_dates=["date"], dtype={"customer": str})
    frame, kind = visited.assign(date=FORMS[form](visited["date"])), "parquet" if form == "dictionary" else "csv"
    getattr(frame, f"to_{kind}")(f"times.{kind}", index=False)
    options = "--criteria gini --trees 3 --drop customer --folds 3 --time date --json a.json"
    result = succeed(f"compare times.{kind} --target label --positive yes {options}")
    content = json_of("a.json")
    assert content["n_features"] == 1
    assert [(fold["n_train"], fold["n_test"]) for fold in content["folds"]] == [(75, 75), (150, 75), (225, 75)]
    first, _, last = content["time_folds"]
    days = ["2024-01-30", "2024-02-13", "2024-02-14", "2024-02-28"]
    if form == "seconds":
        days = ["19752", "19766", "19767", "19781"]
    assert [first[name] for name in ("train_from", "train_to", "test_from", "test_to")] == days
    early = visited[visited["date"] <= "2024-02-13"]["label"].value_counts().to_dict()
    assert first["train_class_counts"] == early
    assert sum(last["test_class_counts"].values()) == last["n_test"] == 75
    (line,) = (line for line in result.output.splitlines() if line.split()[:1] == ["0"])
    n_positive = early["yes"], first["test_class_counts"]["yes"]
    train, test = (f"{days[k]} to {days[k + 1]} 75 {n}" for k, n in zip((0, 2), n_positive))
    assert line.split() == f"0 {train} {test}".split()


FEW = dict.fromkeys(range(300), "no") | dict.fromkeys(range(9), "yes")
BAD = [
    ("date", {0: "soon"}, "--time date", "column 'date': 1 of 300 values is no date ('soon'), but times must"),
    ("date", {3: None}, "--time date", "visits.csv, line 5: column 'date' has no date"),
    ("date", dict.fromkeys(range(300)), "--time date", "visits.csv, line 2: column 'date' has no date"),
    ("date", dict(enumerate([True, False] * 150)), "--time date", "has type bool, but times must be dates or numbers"),
    ("label", FEW, "--time row", "fold 0 has no test sample of class yes: use fewer folds"),
    ("label", FEW, "--groups customer", " sample of class yes: use fewer folds"),
    ("customer", {4: None}, "--groups customer", "line 6: column 'customer' has no value: every row needs a group"),
    ("date", {}, "--time dat", "no column 'dat'; did you mean 'date'?"),
]


def test_wrong_groups_and_times_are_refused_in_one_line(visits):
    original = pd.read_csv("visits.csv", dtype={"customer": str}).assign(row=range(300))
    for column, change, option, sentence in BAD:
        frame = original.astype({column: object})
        for row, value in change.items():
            frame.loc[row, column] = value
        frame.to_csv("visits.csv", index=False)
        check_refusal(run(f"{COMPARE} --drop customer,date,row {option}"), sentence)

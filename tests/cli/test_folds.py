"""Folds of whole groups and folds forward in time."""

import json
from functools import partial

import pandas as pd
import pytest

from tests.cli import data
from tests.cli.data import check_refusal

run, succeed, read_json = (partial(call, "compare") for call in (data.run, data.succeed, data.read_json))


def test_folds_of_whole_groups(visits):
    arguments = ["--target", "label", "--criteria", "gini", "--trees", 3]
    options = ["--drop", "date", "--groups", "customer"], ["--drop", "date,customer"]
    found = [read_json(visits, *arguments, *given) for given in options]
    assert [(content["n_features"], len(content["folds"])) for content in found] == [(1, 15), (1, 15)]
    # Whole customers of 5 rows each.
    assert {fold["n_test"] % 5 for fold in found[0]["folds"]} == {0}
    assert found[0]["folds"][0]["roc_auc"] != found[1]["folds"][0]["roc_auc"]


FORMS = {
    "german": lambda dates: dates.dt.strftime("%d.%m.%Y"),
    "seconds": lambda dates: (dates - pd.Timestamp("1970")).dt.days,
    "zone": lambda dates: dates.dt.strftime("%Y-%m-%dT00:00:00+00:00"),
    "dictionary": lambda dates: dates.dt.strftime("%Y-%m-%d").astype("category"),
}


@pytest.mark.parametrize("form", FORMS)
def test_folds_forward_in_time(visits, form, tmp_path):
    visited = pd.read_csv(visits, parse_dates=["date"], dtype={"customer": str})
    frame, path = visited.assign(date=FORMS[form](visited["date"])), tmp_path / "times.csv"
    if form == "dictionary":
        path = tmp_path / "times.parquet"
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    arguments = ["--target", "label", "--positive", "yes", "--criteria", "gini", "--trees", 3, "--drop", "customer"]
    result = succeed(path, *arguments, "--folds", 3, "--time", "date", "--json", tmp_path / "a.json")
    content = json.loads((tmp_path / "a.json").read_text())
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
    n_positive = [str(counts["yes"]) for counts in (early, first["test_class_counts"])]
    train, test = (f"{days[k]} to {days[k + 1]} 75 {n}" for k, n in zip((0, 2), n_positive))
    assert line.split() == f"0 {train} {test}".split()


FEW = dict.fromkeys(range(300), "no") | dict.fromkeys(range(9), "yes")


BAD = [
    ("date", {0: "soon"}, "--time date", "column 'date': 1 of 300 values is no date ('soon'), but times must"),
    ("date", {3: "13.1.24"}, "--time date", "('13.1.24'), but times must be dates or numbers"),
    ("date", {3: None}, "--time date", "visits.csv, line 5: column 'date' has no date"),
    ("date", dict.fromkeys(range(300), "2024-02-03"), "--time date", "5 folds need at least 6 distinct times"),
    ("date", dict.fromkeys(range(300)), "--time date", "visits.csv, line 2: column 'date' has no date"),
    ("date", dict(enumerate([True, False] * 150)), "--time date", "has type bool, but times must be dates or numbers"),
    ("label", FEW, "--time row", "fold 0 has no test sample of class yes: use fewer folds"),
    ("label", FEW, "--groups customer", " sample of class yes: use fewer folds"),
    ("customer", {4: None}, "--groups customer", "line 6: column 'customer' has no value: every row needs a group"),
    ("customer", dict(enumerate(["1", "2"] * 150)), "--groups customer", "5 folds need at least 5 groups, found 2"),
    ("customer", dict.fromkeys(range(300), "001"), "--groups customer", "has only one group, '001'"),
    ("date", {}, "--time dat", "no column 'dat'; did you mean 'date'?"),
]


def test_wrong_groups_and_times_are_refused_in_one_line(visits):
    original = visits.read_text()
    for column, change, option, sentence in BAD:
        visits.write_text(original)
        frame = pd.read_csv(visits, dtype={"customer": str}).assign(row=range(300))
        frame[column] = frame[column].astype(object)
        for row, value in change.items():
            frame.loc[row, column] = value
        frame.to_csv(visits, index=False)
        arguments = ["--target", "label", "--positive", "yes", "--trees", 3, "--drop", "customer,date,row"]
        check_refusal(run(visits, *arguments, *option.split()), sentence)

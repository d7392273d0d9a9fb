"""`aucforest estimate`: its output, its files and its errors."""

from io import StringIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from aucforest.cli.estimate import _report_shifts
from aucforest.monitoring import CBPE, CBPEResult, Chunks, ShiftReport
from tests.cli.data import check_refusal, check_usage, json_of, read_json, run, succeed

mpl.use("Agg")
NAMES = "--score score --target label"
ESTIMATE = f"estimate reference.csv new.csv {NAMES}"


def frame_of(n, seed):
    """Return rows of a model whose scores are too high."""
    random = np.random.default_rng(seed)
    score = random.random(n)
    return pd.DataFrame({
        "score": score, "label": np.where(random.random(n) < score**2, "yes", "no"),
        "guess": np.where(score > 0.6, "yes", "no"),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n) // 20, unit="D"),
        "age": random.normal(40, 9, n),
    })  # fmt: skip


NEW = frame_of(400, 1)


@pytest.fixture(autouse=True)
def _tables():
    frame_of(1000, 0).to_csv("reference.csv", index=False)
    NEW.to_csv("new.csv", index=False)


def write_both(change, kind="csv"):
    """Write a reference and new rows. `change` gets 400 rows, and 0 for the reference or 1 for new rows."""
    for seed, name in enumerate(("reference", "new")):
        frame = change(frame_of(400, seed), seed)
        frame.to_csv(f"{name}.csv", index=False) if kind == "csv" else frame.to_parquet(f"{name}.{kind}")


def table_rows(result):
    return [line.split() for line in result.stdout.splitlines() if "roc_auc" in line]


def test_outputs_are_those_of_cbpe():
    NEW.to_parquet("new.parquet")
    options = "--prediction guess --metrics roc_auc,f1 --size 200 --json out.json --csv out.csv --plot out.png"
    result = succeed(f"estimate reference.csv new.parquet {NAMES} {options}")
    assert Path("out.png").read_bytes().startswith(b"\x89PNG")
    reference, chunks = pd.read_csv("reference.csv"), Chunks.by_size(200)
    cbpe = CBPE(["roc_auc", "f1"])
    cbpe.fit(y_score=reference["score"], y_true=reference["label"], y_pred=reference["guess"], chunks=chunks)
    expected = cbpe.estimate(NEW["score"], y_pred=NEW["guess"], y_true=NEW["label"]).to_frame()
    pd.testing.assert_frame_equal(pd.read_csv("out.csv"), expected, check_dtype=False)
    content = json_of("out.json")
    assert content["metrics"] == ["roc_auc", "f1"]
    assert [row["estimate"] for row in content["estimates"]] == expected["estimate"].tolist()
    assert content["estimates"][0]["domain_auc"] is None
    for text in ("[0:199]", "[200:399]", "roc_auc", "f1", f"{expected['estimate'][0]:.4g}"):
        assert text in result.output


def test_periods_features_and_unlabelled_rows():
    NEW.drop(columns="label").to_csv("new.csv", index=False)
    estimate = f"{ESTIMATE} --time day --features age,score,guess"
    (row,) = read_json(estimate)["estimates"]
    assert (row["chunk"], row["start"], row["end"]) == ("2024-01", "2024-01-01", "2024-01-31")
    assert row["realized"] is None
    assert 0.3 < row["domain_auc"] < 0.7
    result = succeed(f"{estimate} --csv -")
    assert pd.read_csv(StringIO(result.stdout))["chunk"].tolist() == ["2024-01"]
    assert "estimated from reference.csv" in result.stderr
    assert "realized" not in result.stderr


def test_digits_are_text_if_the_reference_has_text():
    towns = [["10", "20", "A1"], ["10", "20"]]
    write_both(lambda frame, seed: frame.assign(town=np.random.default_rng(seed).choice(towns[seed], 400)))
    assert 0.5 < read_json(f"{ESTIMATE} --features town --size 100")["estimates"][0]["domain_auc"] < 0.9


def test_a_reference_without_limits_cannot_fail_on_alerts():
    result = run(f"{ESTIMATE} --size 2000 --fail-on-alert --json a.json")
    assert result.exit_code == 1, result.output
    assert "Warning: there are no alert limits" in result.stderr
    assert "Error: --fail-on-alert could never fail: alerts are undefined" in result.stderr
    (row,) = json_of("a.json")["estimates"]
    assert row["alert"] is row["valid"] is None
    assert not {"yes", "no"} & set(result.stdout.split())


def test_months_are_those_of_the_time_zone():
    """In UTC, 2024-01-01 00:00 in Berlin is in the year 2023."""
    write_both(lambda frame, _: frame.assign(day=frame["day"].dt.tz_localize("Europe/Berlin")), "parquet")
    content = read_json(f"estimate reference.parquet new.parquet {NAMES} --period M --time day")
    assert [row["chunk"] for row in content["estimates"]] == ["2024-01"]


@pytest.mark.parametrize(("kept", "option"), [(0, ""), (200, "--drop-missing")], ids=["no label", "half the labels"])
def test_labels_of_new_rows_may_be_missing(kept, option):
    """Integers with missing values are read as 0.0 and 1.0. The classes are still 0 and 1."""
    write_both(
        lambda frame, seed: frame.assign(
            label=(frame["label"] == "yes").astype(int).where((seed == 0) | (frame.index < kept))
        )
    )
    first, second = read_json(f"{ESTIMATE} --labels 0,1 --number 2 {option}")["estimates"]
    assert (first["realized"] is not None) == bool(kept)
    assert second["realized"] is None


def test_several_classes_by_name():
    random = np.random.default_rng(0)
    p = random.dirichlet([1, 2, 3], size=600)
    table = pd.DataFrame(p, columns=["p1", "p2", "p3"])
    table["kind"] = (random.random(600)[:, None] > p.cumsum(axis=1)).sum(axis=1) + 1
    table.to_csv("table.csv", index=False)
    estimate = "estimate table.csv table.csv --labels 3,2,1 --target kind --number 2 --score"
    rows = read_json(estimate, "p3, p2, p1")["estimates"]
    assert [row["low"] < row["realized"] < row["high"] for row in rows] == [True, True]


def test_alerts_are_shown_and_exit_with_3_on_request():
    calm = succeed(f"{ESTIMATE} --fail-on-alert --size 200")
    assert [row[-3] for row in table_rows(calm)] == ["no", "no"]
    NEW.assign(score=0.5).to_csv("new.csv", index=False)
    result = run(f"{ESTIMATE} --fail-on-alert --json a.json")
    assert result.exit_code == 3, result.output
    assert all(row["alert"] for row in json_of("a.json")["estimates"])
    (heading,) = (line.split() for line in result.stdout.splitlines() if "estimate " in line)
    assert heading == ["chunk", "rows", "metric", "estimate", "interval", "realized", "limits", "alert", "valid", "PSI"]
    rows = table_rows(result)
    assert len(rows) == 10
    assert {(row[3], row[-3], row[-2]) for row in rows} == {("0.5", "yes", "no")}
    assert "alerts: 10 of 10 estimates\nshifts beyond limits: 10 of 10 chunks, first [0:39]: PSI " in result.stderr
    assert succeed(ESTIMATE).stdout == result.stdout


def test_a_shift_equal_to_its_limit_but_for_rounding_is_not_beyond(capsys):
    auc = {"domain_auc": np.nextafter(0.7, 1), "domain_auc_limit": 0.7}
    _report_shifts(CBPEResult((), {"a": ShiftReport(0.5, 0.0, psi_limit=0.2, valid=False, **auc)}))
    assert capsys.readouterr().err == "shifts beyond limits: 1 of 1 chunks, first a: PSI 0.5 (limit 0.2)\n"


@pytest.mark.slow
def test_shifted_features_are_an_alert():
    for factor, alert, valid in ((1, "no", "yes"), (0.1, "yes", "no")):
        NEW.assign(age=NEW["age"] * factor).to_csv("new.csv", index=False)
        result = run(f"{ESTIMATE} --features age --size 200 --fail-on-alert --json a.json")
        assert result.exit_code == (3 if alert == "yes" else 0), result.output
        assert [(row[-3], row[-2]) for row in table_rows(result)] == 2 * [(alert, valid)]
    assert "alerts: 2 of 2 estimates" in result.stderr
    first, _ = json_of("a.json")["estimates"]
    found = f"domain AUC {first['domain_auc']:.4g} (limit {first['domain_auc_limit']:.4g})"
    assert f"shifts beyond limits: 2 of 2 chunks, first [0:199]: {found}" in result.stderr
    assert "PSI" not in result.stderr


@pytest.mark.parametrize("labels", [("other", "fraud"), ("0", "1")])
def test_the_column_of_probabilities_names_the_positive_class(labels):
    negative, positive = (f"probability_{label}" for label in labels)

    def relabelled(frame, _):
        frame = frame.replace(dict(zip(("no", "yes"), labels)))
        return frame.assign(**{negative: 1 - frame["score"], positive: frame["score"]})

    write_both(relabelled)
    options = "--target label --prediction guess --metrics roc_auc,recall --size 200"
    estimate = f"estimate reference.csv new.csv --score {positive} {options}"
    rows = read_json(estimate)["estimates"]
    assert rows == read_json(f"{estimate} --labels {','.join(labels)}")["estimates"]
    assert min(row["realized"] for row in rows if row["metric"] == "roc_auc") > 0.7


def test_stray_text_in_features_is_missing_as_in_fit():
    NEW.assign(age=["unknown", *NEW["age"][1:]]).to_csv("new.csv", index=False)
    result = succeed(f"{ESTIMATE} --features age --size 200")
    assert "Note: column 'age': 1 of 400 values is no number ('unknown'), read as missing" in result.stderr
    check_refusal(run(f"{ESTIMATE} --features age --size 200 --stray-text text"), "column 'age'")


def test_missing_scores_are_refused_or_dropped():
    NEW.assign(score=NEW["score"].where(NEW.index > 2)).to_csv("new.csv", index=False)
    sentence = "new.csv: column 'score' has 3 and column 'label' 0 missing values: pass --drop-missing to drop"
    check_refusal(run(ESTIMATE), sentence)
    assert "Warning: new.csv: column 'score' has 3" in succeed(f"{ESTIMATE} --drop-missing").stderr


def test_wrong_files_and_columns_are_refused_in_one_line():
    frame_of(100, 0).assign(label="no").to_csv("one.csv", index=False)
    frame_of(0, 0).to_csv("none.csv", index=False)
    frame_of(0, 0).to_parquet("none.parquet")
    frame_of(1, 0).to_csv("row.csv", index=False)
    for command, sentence in [
        (f"estimate reference.csv none.csv {NAMES}", "Error: none.csv has a header, but no rows"),
        (f"estimate reference.csv none.parquet {NAMES}", "Error: none.parquet has no rows"),
        (f"estimate one.csv new.csv {NAMES}", "one.csv: column 'label' must have samples of all classes, two or more"),
        (ESTIMATE.replace("score score", "score scor"), "no column 'scor'; did you mean 'score'?"),
        (f"{ESTIMATE} --period W --time label", "column 'label' must be dates such as 2024-03-13, but one is '"),
        (f"{ESTIMATE} --json reference.csv", "reference.csv would be overwritten"),
        (f"{ESTIMATE} --json a.png --plot a.png", "a.png would be overwritten"),
        (ESTIMATE.replace("score score", "score label"), "reference.csv: column 'label' must hold real numbers"),
    ]:
        check_refusal(run(command), sentence)
    few = run(f"estimate reference.csv row.csv {NAMES}")
    assert few.exit_code == 1
    sentence = "Error: row.csv: 1 samples cannot be split into 10 chunks: pass a smaller --number"
    assert few.stderr.splitlines()[-1] == sentence
    succeed(f"estimate reference.csv row.csv {NAMES} --number 1")


def test_wrong_calls_exit_with_2():
    succeed(f"{ESTIMATE} --metrics recall_at_0.1,precision_at_0.1")
    for options, sentence in [
        ("--period W", "Invalid value for --period: needs --time"),
        ("--period X --time day", "Invalid value for '--period'"),
        ("--size 10 --time day", "by one of --size, --number and --time"),
        ("--json - --csv -", "cannot be standard output, because --json is written to it"),
        ("--plot a.txt", "must end in .png, .svg, .pdf, got a.txt"),
        ("--metrics auc", "'auc' is not among roc_auc, average_precision, "),
        ("--metrics recall_at_50", "K must be a proportion, such as 0.01"),
    ]:
        check_usage(run(f"{ESTIMATE} {options}"), sentence)


def test_a_reference_without_times_is_divided_evenly():
    NEW.assign(day=pd.date_range("2025-01-01", periods=400, freq="3h")).to_csv("new.csv", index=False)
    frame_of(1000, 0).drop(columns="day").to_csv("reference.csv", index=False)
    result = succeed(f"{ESTIMATE} --time day --period M")
    assert "2025-02" in result.stdout
    assert "limits" in result.stdout

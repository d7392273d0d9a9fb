"""`aucforest estimate`: what it prints, writes and refuses."""

import json
from functools import partial
from io import StringIO

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from aucforest.monitoring import CBPE, Chunks
from tests.cli import data
from tests.cli.data import check_refusal, check_usage

mpl.use("Agg")


run, succeed, read_json = (partial(call, "estimate") for call in (data.run, data.succeed, data.read_json))


def frame_of(n, seed):
    """Return rows of a model whose scores are too high."""
    random = np.random.default_rng(seed)
    score = random.random(n)
    return pd.DataFrame({
        "score": score,
        "label": np.where(random.random(n) < score**2, "yes", "no"),
        "guess": np.where(score > 0.6, "yes", "no"),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n) // 20, unit="D"),
        "age": random.normal(40, 9, n),
    })  # fmt: skip


@pytest.fixture
def files(tmp_path):
    paths = tmp_path / "reference.csv", tmp_path / "new.parquet"
    frame_of(1000, 0).to_csv(paths[0], index=False)
    frame_of(400, 1).to_parquet(paths[1])
    return paths


NAMES = ("--score", "score", "--target", "label")


def test_it_writes_what_cbpe_says(files, tmp_path):
    outs = {kind: tmp_path / f"out.{kind}" for kind in ("json", "csv", "png")}
    arguments = [*NAMES, "--prediction", "guess", "--metrics", "roc_auc,f1", "--size", "200"]
    result = succeed(*files, *arguments, "--json", outs["json"], "--csv", outs["csv"], "--plot", outs["png"])
    assert outs["png"].read_bytes().startswith(b"\x89PNG")
    reference, new = pd.read_csv(files[0]), pd.read_parquet(files[1])
    cbpe = CBPE(["roc_auc", "f1"]).fit(
        y_score=reference["score"], y_true=reference["label"], y_pred=reference["guess"], chunks=Chunks.by_size(200)
    )
    expected = cbpe.estimate(new["score"], y_pred=new["guess"], y_true=new["label"]).to_frame()
    pd.testing.assert_frame_equal(pd.read_csv(outs["csv"]), expected, check_dtype=False)
    content = json.loads(outs["json"].read_text())
    assert content["metrics"] == ["roc_auc", "f1"]
    assert [row["estimate"] for row in content["estimates"]] == expected["estimate"].tolist()
    assert content["estimates"][0]["domain_auc"] is None
    for text in ("[0:199]", "[200:399]", "roc_auc", "f1", f"{expected['estimate'][0]:.4g}"):
        assert text in result.output


def test_periods_features_and_unlabelled_rows(files, tmp_path):
    new = tmp_path / "unlabelled.csv"
    frame_of(400, 1).drop(columns="label").to_csv(new, index=False)
    arguments = ["--period", "M", "--time", "day", "--features", "age,score,guess"]
    (row,) = read_json(files[0], new, *NAMES, *arguments)["estimates"]
    assert (row["chunk"], row["start"], row["end"]) == ("2024-01", "2024-01-01", "2024-01-31")
    assert row["realized"] is None
    assert "realized" not in succeed(files[0], new, *NAMES, *arguments).stdout
    assert 0.3 < row["domain_auc"] < 0.7


def test_times_make_months_unless_a_period_is_given(files):
    """And the table goes to standard output if that is asked for."""
    result = succeed(*files, *NAMES, "--time", "day", "--csv", "-")
    assert pd.read_csv(StringIO(result.stdout))["chunk"].tolist() == ["2024-01"]
    assert "estimated from reference.csv" in result.stderr


def test_text_of_digits_is_the_text_of_the_reference(tmp_path):
    """Types of both files follow from their values, so that a column may be text in the reference only."""
    paths = tmp_path / "reference.csv", tmp_path / "new.csv"
    for seed, path in enumerate(paths):
        towns = np.random.default_rng(seed).choice(["10", "20", "A1"][: 3 - seed], 400)
        frame_of(400, seed).assign(town=towns).to_csv(path, index=False)
    content = read_json(*paths, *NAMES, "--features", "town", "--size", "100")
    assert 0.5 < content["estimates"][0]["domain_auc"] < 0.9


def test_a_reference_without_limits_cannot_fail_on_alerts(files, tmp_path):
    """Neither yes nor no is said of what is undefined."""
    out = tmp_path / "a.json"
    result = run(*files, *NAMES, "--size", "2000", "--fail-on-alert", "--json", out)
    assert result.exit_code == 1, result.output
    assert "Warning: there are no alert limits" in result.stderr
    assert "Error: --fail-on-alert could never fail: no alert is defined" in result.stderr
    (row,) = json.loads(out.read_text())["estimates"]
    assert row["alert"] is row["valid"] is None
    assert not {"yes", "no"} & set(result.stdout.split())


def test_the_calendar_of_a_zone_is_that_of_its_clock(files, tmp_path):
    """2024-01-01 00:00 in Berlin is of the year before in UTC."""
    paths = tmp_path / "reference.parquet", tmp_path / "new.parquet"
    for seed, path in enumerate(paths):
        frame = frame_of(400, seed)
        frame.assign(day=frame["day"].dt.tz_localize("Europe/Berlin")).to_parquet(path)
    content = read_json(*paths, *NAMES, "--period", "M", "--time", "day")
    assert [row["chunk"] for row in content["estimates"]] == ["2024-01"]


@pytest.mark.parametrize("kept", [0, 200], ids=["no label", "half the labels"])
def test_labels_of_new_rows_may_be_missing(tmp_path, kept):
    """Numbers with gaps are read as 0.0 and 1.0, and are still the classes 0 and 1."""
    paths = tmp_path / "reference.csv", tmp_path / "new.csv"
    for seed, path in enumerate(paths):
        frame = frame_of(400, seed)
        label = (frame["label"] == "yes").astype(int)
        frame.assign(label=label if seed == 0 else label.where(frame.index < kept)).to_csv(path, index=False)
    drop = ["--drop-missing"] if kept else []
    first, second = read_json(*paths, *NAMES, "--labels", "0, 1", "--number", "2", *drop)["estimates"]
    assert (first["realized"] is not None) == bool(kept)
    assert second["realized"] is None


def test_several_classes_by_name(tmp_path):
    random = np.random.default_rng(0)
    p = random.dirichlet([1, 2, 3], size=600)
    table = pd.DataFrame(p, columns=["p1", "p2", "p3"])
    table["kind"] = (random.random(600)[:, None] > p.cumsum(axis=1)).sum(axis=1) + 1
    table.to_csv(tmp_path / "table.csv", index=False)
    names = ("--score", "p3, p2, p1", "--labels", "3,2,1", "--target", "kind", "--number", "2")
    rows = read_json(tmp_path / "table.csv", tmp_path / "table.csv", *names)["estimates"]
    assert len(rows) == 2
    for row in rows:
        assert row["low"] < row["realized"] < row["high"]


def test_alerts_are_shown_and_end_with_3_if_that_is_asked_for(files, tmp_path):
    """After everything is written; without alerts with 0."""
    vague, out = tmp_path / "vague.csv", tmp_path / "a.json"
    frame_of(400, 1).assign(score=0.5).to_csv(vague, index=False)
    result = run(files[0], vague, *NAMES, "--fail-on-alert", "--json", out)
    assert result.exit_code == 3, result.output
    assert all(row["alert"] for row in json.loads(out.read_text())["estimates"])
    (heading,) = (line.split() for line in result.stdout.splitlines() if "estimate " in line)
    assert heading == ["chunk", "rows", "metric", "estimate", "interval", "realized", "limits", "alert", "valid", "PSI"]
    rows = [line.split() for line in result.stdout.splitlines() if "roc_auc" in line]
    assert len(rows) == 10
    assert {(row[3], row[-3], row[-2]) for row in rows} == {("0.5", "yes", "no")}
    assert "alerts: 10 of 10 estimates\nshifts beyond limits: 10 of 10 chunks, first [0:39]: PSI " in result.stderr
    assert succeed(files[0], vague, *NAMES).stdout == result.stdout
    calm = succeed(*files, *NAMES, "--fail-on-alert", "--size", "200")
    assert [line.split()[-3] for line in calm.stdout.splitlines() if "roc_auc" in line] == ["no", "no"]


@pytest.mark.slow
def test_shifted_features_are_an_alert(files, tmp_path):
    """Though scores are as before; the table says yes and no, and a sentence says what differs."""
    moved = tmp_path / "moved.csv"
    frame = frame_of(400, 1)
    frame.assign(age=frame["age"] / 10).to_csv(moved, index=False)
    arguments = [*NAMES, "--features", "age", "--size", "200", "--fail-on-alert", "--json", tmp_path / "a.json"]
    for new, valid in ((files[1], "yes"), (moved, "no")):
        result = run(files[0], new, *arguments)
        assert result.exit_code == (0 if valid == "yes" else 3), result.output
        rows = [line.split() for line in result.stdout.splitlines() if "roc_auc" in line]
        assert [(row[-3], row[-2]) for row in rows] == 2 * [("no" if valid == "yes" else "yes", valid)]
    assert "alerts: 2 of 2 estimates" in result.stderr
    first, _ = json.loads((tmp_path / "a.json").read_text())["estimates"]
    found = f"domain AUC {first['domain_auc']:.4g} (limit {first['domain_auc_limit']:.4g})"
    assert f"shifts beyond limits: 2 of 2 chunks, first [0:199]: {found}" in result.stderr
    assert "PSI" not in result.stderr


@pytest.mark.parametrize("labels", [("no", "yes"), ("other", "fraud"), ("0", "1"), ("1", "0")])
def test_the_column_of_probabilities_names_the_positive_class(tmp_path, labels):
    """Whatever the order of labels: as with --labels; a reference as out-of-bag predictions give it."""
    paths = tmp_path / "reference.csv", tmp_path / "new.csv"
    for seed, path in enumerate(paths):
        frame = frame_of(400, seed).replace(dict(zip(("no", "yes"), labels)))
        probabilities = {f"probability_{labels[0]}": 1 - frame["score"], f"probability_{labels[1]}": frame["score"]}
        frame.assign(**probabilities).to_csv(path, index=False)
    arguments = ["--target", "label", "--prediction", "guess", "--metrics", "roc_auc,recall", "--size", "200"]
    results = []
    for names in ([], ["--labels", ",".join(labels)]):
        results.append(read_json(*paths, "--score", f"probability_{labels[1]}", *arguments, *names)["estimates"])
    assert results[0] == results[1]
    assert min(row["realized"] for row in results[0] if row["metric"] == "roc_auc") > 0.7


def test_stray_text_in_features_is_missing_as_in_fit(files, tmp_path):
    stray = tmp_path / "stray.csv"
    frame = frame_of(400, 1).astype({"age": object})
    frame.loc[7, "age"] = "unknown"
    frame.to_csv(stray, index=False)
    result = succeed(files[0], stray, *NAMES, "--features", "age", "--size", "200")
    assert "Note: column 'age': 1 of 400 values is no number ('unknown'), read as missing" in result.stderr
    refused = run(files[0], stray, *NAMES, "--features", "age", "--size", "200", "--stray-text", "text")
    check_refusal(refused, "column 'age'")


def test_missing_scores_are_refused_or_dropped(files, tmp_path):
    gaps = tmp_path / "gaps.csv"
    frame_of(400, 1).assign(score=lambda f: f["score"].where(f.index > 2)).to_csv(gaps, index=False)
    refused = run(files[0], gaps, *NAMES)
    check_refusal(
        refused, "gaps.csv: column 'score' has 3 and column 'label' 0 missing values: pass --drop-missing to drop"
    )
    dropped = succeed(files[0], gaps, *NAMES, "--drop-missing")
    assert "Warning: gaps.csv: column 'score' has 3" in dropped.stderr


def test_wrong_files_and_columns_are_refused_in_one_line(files, tmp_path):
    one_class = tmp_path / "one.csv"
    frame_of(100, 0).assign(label="no").to_csv(one_class, index=False)
    cases = [
        ((files[0], tmp_path / "missing.csv", *NAMES), "there is no file"),
        ((*files, "--score", "scor", "--target", "label"), "no column 'scor'; did you mean 'score'?"),
        ((*files, "--score", "score", "--target", "lable"), "no column 'lable'; did you mean 'label'?"),
        ((*files, *NAMES, "--period", "W", "--time", "label"), "timestamps must be dates"),
        ((*files, *NAMES, "--period", "W", "--time", "age"), "timestamps must be dates, but the first is"),
        ((*files, *NAMES, "--json", files[0]), "reference.csv would be overwritten"),
        ((*files, *NAMES, "--json", tmp_path / "a.png", "--plot", tmp_path / "a.png"), "a.png would be overwritten"),
        ((*files, *NAMES, "--size", "0"), "size must be at least 1"),
        ((*files, "--score", "label", "--target", "label"), "reference.csv: column 'label' must hold real numbers"),
        ((one_class, files[1], *NAMES), "one.csv: column 'label' must have samples of all classes, two or more"),
        ((*files, *NAMES, "--labels", "no,maybe"), "column 'label' has the label 'yes', which is not in labels"),
        ((*files, *NAMES, "--csv", tmp_path / "no" / "a.csv"), "does not exist"),
    ]
    for arguments, sentence in cases:
        check_refusal(run(*arguments), sentence)


def test_files_of_no_row_and_of_one_are_named(files, tmp_path):
    none, one, parquet = (tmp_path / name for name in ("none.csv", "one.csv", "none.parquet"))
    frame_of(0, 0).to_csv(none, index=False)
    frame_of(1, 0).to_csv(one, index=False)
    frame_of(0, 0).to_parquet(parquet)
    for reference, new, sentence in (
        (none, files[1], "Error: none.csv has a header, but no rows"),
        (files[0], none, "Error: none.csv has a header, but no rows"),
        (files[0], parquet, "Error: none.parquet has no rows"),
        (one, files[1], "Error: one.csv: column 'label' must have samples of all"),
    ):
        check_refusal(run(reference, new, *NAMES), sentence)
    few = run(files[0], one, *NAMES)
    assert few.exit_code == 1
    sentence = "Error: one.csv: 1 samples cannot be split into 10 chunks: pass a smaller --number"
    assert few.stderr.splitlines()[-1] == sentence
    succeed(files[0], one, *NAMES, "--number", "1")


def test_wrong_calls_exit_with_2(files):
    check_usage(run(*files, *NAMES, "--period", "W"), "Invalid value for --period: needs --time")
    check_usage(run(*files, *NAMES, "--period", "X", "--time", "day"), "Invalid value for '--period'")
    for others in (["--number", "3"], ["--time", "day"]):
        check_usage(run(*files, *NAMES, "--size", "10", *others), "by one of --size, --number and --time")
    check_usage(run(*files, *NAMES, "--json", "-", "--csv", "-"), "cannot be standard output, which is that of --json")
    check_usage(run(*files, *NAMES, "--plot", "-"), "must end in .png, .svg, .pdf, got -")
    needed = "Invalid value for --prediction: must name the column of predicted labels, which f1, recall needs"
    check_usage(run(*files, *NAMES, "--metrics", "roc_auc,f1,recall"), needed)
    check_usage(run(*files, *NAMES, "--metrics", "auc"), "'auc' is not among roc_auc, average_precision, ")
    check_usage(run(*files, *NAMES, "--metrics", "recall_at_50"), "K must be a proportion, such as 0.01")
    succeed(*files, *NAMES, "--metrics", "recall_at_0.1,precision_at_0.1")
    check_usage(run(*files, *NAMES, "--separator", ";;"), "the separator must be one character")
    check_usage(run(*files, *NAMES, "--plot", "a.txt"), "must end in .png, .svg, .pdf, got a.txt")


def test_a_reference_without_times_is_divided_evenly(files, tmp_path):
    new = frame_of(400, 1).assign(day=pd.date_range("2025-01-01", periods=400, freq="3h"))
    new.to_csv(tmp_path / "new.csv", index=False)
    frame_of(1000, 0).drop(columns="day").to_csv(files[0], index=False)
    result = succeed(files[0], tmp_path / "new.csv", *NAMES, "--time", "day", "--period", "M")
    assert "2025-02" in result.stdout
    assert "limits" in result.stdout

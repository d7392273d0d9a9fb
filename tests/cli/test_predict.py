"""`aucforest predict`: predictions in batches equal those of the whole table. Files, columns and errors."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import aucforest
from aucforest.inspection import explain
from aucforest.tables import files as table_files
from aucforest.tables import text_files
from tests.cli.data import check_refusal, check_usage, frame_of, mixed, read_json, run, succeed


def predict(arguments, **options):
    return pd.read_csv(io.StringIO(succeed(f"predict {arguments}").stdout), **options)


def check_same(predicted, model="model.aucforest"):
    model, X = aucforest.load(model), frame_of(mixed(250, 1))
    assert list(predicted.columns[-3:]) == ["prediction", "probability_no", "probability_yes"]
    assert np.array_equal(predicted[["probability_no", "probability_yes"]].to_numpy(), model.predict_proba(X))
    assert predicted["prediction"].tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(("kind", "rows"), [("csv", 7), ("parquet", 1)])  # some single rows have only missing values
def test_predictions_do_not_depend_on_batches(files, monkeypatch, kind, rows):
    monkeypatch.setattr(table_files, "_MOST_ROWS", rows)
    monkeypatch.setattr(text_files, "rows_of_batch", lambda n_columns: rows)
    check_same(predict(f"model.aucforest test.{kind}"))


def test_reasons_of_a_stack_in_batches(stack, monkeypatch):
    monkeypatch.setattr(table_files, "_MOST_ROWS", 7)
    result = succeed("predict stack.aucforest test.parquet --reasons 2")
    predicted, model = pd.read_csv(io.StringIO(result.stdout)), aucforest.load("stack.aucforest")
    check_same(predicted.iloc[:, :-2], "stack.aucforest")
    expected = [list(map(str, row)) for row in explain(model, frame_of(mixed(250, 1))).top(2)]
    assert predicted[["reason_1", "reason_2"]].to_numpy().tolist() == expected
    assert "250 rows: standard output" in result.stderr
    assert "calibration" not in result.stderr


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_in_another_order_beside_others(files, kind):
    rows = mixed(250, 1).iloc[:, ::-1].assign(more=pd.Timestamp("2024-02-29"))
    rows.to_csv("rows.csv", index=False) if kind == "csv" else rows.to_parquet("rows.parquet")
    succeed(f"predict model.aucforest rows.{kind} --out p.parquet")
    check_same(pd.read_parquet("p.parquet"))


def test_kept_columns_are_copied_as_they_are(files):
    names, rows = ["id", "colour", "width", "label"], mixed(250, 1).assign(day=pd.Timestamp("2024-02-29"))
    kept = predict(f"model.aucforest test.csv --labels --keep {','.join(names)}", dtype=str)
    assert kept.columns.tolist() == [*names, "prediction"]
    pd.testing.assert_frame_equal(kept[names], pd.read_csv("test.csv", dtype=str)[names])
    assert run("predict model.aucforest test.csv --labels --keep id").stdout.splitlines()[1].startswith("00000,")
    rows.astype({"colour": "category"}).to_parquet("rows.parquet")
    succeed("predict model.aucforest rows.parquet --keep day,count,colour --out p.parquet")
    predicted = pd.read_parquet("p.parquet")
    assert predicted["day"].tolist() == rows["day"].tolist()
    assert predicted["count"].astype("Int64").equals(rows["count"])
    assert predicted["colour"].fillna("").tolist() == rows["colour"].fillna("").tolist()


COMMAND = [sys.executable, "-m", "aucforest", "predict", "model.aucforest"]  # in a process of its own


@pytest.mark.slow
def test_a_closed_pipe_gives_no_traceback(files):
    pd.concat([mixed(250, 1)] * 200).to_csv("long.csv", index=False)
    with subprocess.Popen([*COMMAND, "long.csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 1


@pytest.mark.slow
def test_an_interrupted_command_leaves_no_file(files, tmp_path):
    """The interrupt comes while standard input is copied to a temporary folder."""
    (tmp_path / "temporary").mkdir()
    before, environment = set(tmp_path.rglob("*")), {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    command = [*COMMAND, "-", "--out", "p.csv"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        process.stdin.write(Path("test.csv").read_bytes())
        process.stdin.flush()
        deadline = time.monotonic() + 300
        while not list(tmp_path.glob("temporary/*/copy")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(list(tmp_path.glob("temporary/*/copy"))) == 1
        process.send_signal(signal.SIGINT)
        process.stdin.close()  # Ctrl-C interrupts all processes of a pipeline
        process.wait(60)
    assert process.returncode == 130
    assert set(tmp_path.rglob("*")) == before


def test_a_table_without_rows_has_no_predictions(files):
    Path("none.csv").write_text("width,colour,count,flag\n")
    for kind, read_table in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        succeed(f"predict model.aucforest none.csv --out out.{kind}")
        assert list(read_table(f"out.{kind}")) == ["prediction", "probability_no", "probability_yes"]


@pytest.mark.parametrize("words", [("False", "True"), ("FALSE", "TRUE"), ("0", "1"), ("007", "100")])
def test_labels_are_spelled_as_they_were_read(words):
    x = np.random.default_rng(0).normal(size=60)
    rows = pd.DataFrame({"x": x, "kept": np.array(words)[::-1][(x > 0.5).astype(int)]})
    rows.assign(y=np.array(words)[(x > 0).astype(int)]).to_csv("rows.csv", index=False)
    succeed("fit rows.csv --target y --out m --trees 3 --drop kept")
    for kind in ("csv", "parquet"):
        succeed(f"predict m rows.csv --keep y,kept --out out.{kind}")
    written = pd.read_csv("out.csv", dtype=str)
    assert set(written["prediction"]) == set(words)
    assert written.columns[3:].tolist() == [f"probability_{word}" for word in words]
    assert np.mean(written["y"] == written["prediction"]) > 0.9
    assert pd.read_parquet("out.parquet")["prediction"].astype(str).tolist() == written["prediction"].tolist()
    if words[1].lower() == "true":
        rows.assign(y=x > 0).to_parquet("flags.parquet")
        metrics = [read_json(f"evaluate m {table} --target y")["metrics"] for table in ("rows.csv", "flags.parquet")]
        assert metrics[0] == metrics[1]


def test_trees_and_linear_models_predict():
    """The models have no feature names, so columns are used in their order."""
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    y = np.where(rows["a"] > 0, 2, 1)
    rows.assign(y=y).to_csv("rows.csv", index=False)
    for model in (aucforest.AUCTreeClassifier(max_depth=2), aucforest.LinearAUCClassifier()):
        model.fit(rows.to_numpy(), y).save("m")
        predicted = predict("m rows.csv --keep y")
        assert list(predicted.columns) == ["y", "prediction", "probability_1", "probability_2"]
        assert predicted["prediction"].tolist() == model.predict(rows.to_numpy()).tolist()
        assert np.array_equal(predicted["probability_2"], model.predict_proba(rows.to_numpy())[:, 1])
        check_refusal(run("predict m rows.csv"), "has 4 columns, but the model")


def test_wrong_tables_and_models_are_refused_in_one_line(files, tmp_path):
    rows = mixed(30, 1)
    text, first_flag = rows.to_csv(index=False), 2 + int(np.argmax(rows["flag"].fillna(False)))
    rows.drop(columns=["width", "flag"]).rename(columns={"colour": "color"}).to_csv("lacking.csv", index=False)
    Path("words.csv").write_text(text.replace("\n00007,", "\n00007,wide"))
    Path("flags.csv").write_text(text.replace("True", "perhaps"))
    rows.assign(colour=1).to_parquet("numbers.parquet")
    for arguments, sentence in [
        ("model.aucforest lacking.csv", "lacking.csv lacks feature columns seen in fit: 'width', 'colour', "),
        ("model.aucforest words.csv --stray-text text", "words.csv, line 9: column 'width' has the value 'wide"),
        ("model.aucforest flags.csv", f"line {first_flag}: column 'flag' has the value 'perhaps', which is not a"),
        ("model.aucforest numbers.parquet", "column 'colour' has type int64, but the model needs a string"),
        ("model.aucforest test.csv --keep idd", "has no column 'idd'; did you mean 'id'?"),
        ("model.aucforest test.csv --keep id,id", "the result would have two columns named 'id'"),
        ("model.aucforest test.csv --out test.csv", "would be overwritten"),
        ("model.aucforest test.csv --out no/p.csv", "does not exist"),
        ("none test.csv", "there is no file"),
        (f"{tmp_path.parent} test.csv", "is a folder, not a model file"),
        ("test.csv test.csv", "not a model file"),
    ]:
        check_refusal(run(f"predict --out out.csv {arguments}"), sentence)
    assert not Path("out.csv").exists()
    check_usage(run("predict model.aucforest test.csv --out p.txt"), "must end in .csv, .parquet, got p.txt")


PEAK = """
import re, sys
from pathlib import Path
from aucforest.cli.app import app
app(["predict", *sys.argv[1:]], standalone_mode=False)
# ru_maxrss would include the memory of the parent process at the start.
print(int(re.search("VmHWM: *([0-9]+)", Path("/proc/self/status").read_text().expandtabs())[1]) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_file(files, kind):
    rows = mixed(2000, 3).assign(**{f"more{i}": np.random.default_rng(i).normal(size=2000) for i in range(5)})
    peaks = []
    for times in (10, 1000):
        if kind == "csv":
            header, text = rows.to_csv(index=False).split("\n", 1)
            with open("rows.csv", "w") as file:
                file.writelines([f"{header}\n", *[text] * times])
        else:
            pd.concat([rows] * times).to_parquet("rows.parquet", row_group_size=100_000)
        command = [sys.executable, "-c", PEAK, "model.aucforest", f"rows.{kind}", "--out", f"out.{kind}"]
        peaks.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    assert peaks[1] - peaks[0] < 100, peaks


def test_reasons_are_those_of_explain_and_not_more_than_features(files):
    predicted = predict("model.aucforest test.csv --reasons 100 --labels").fillna("")
    assert predicted.columns.tolist() == ["prediction", "reason_1", "reason_2", "reason_3", "reason_4"]
    expected = explain(aucforest.load("model.aucforest"), frame_of(mixed(250, 1))).top(4)
    padded = [[*map(str, row), *[""] * (4 - len(row))] for row in expected]
    assert predicted.iloc[:, 1:].to_numpy().tolist() == padded
    assert (predicted["reason_4"] != "").any()


def test_intervals_are_those_of_the_model(stack):
    succeed("fit train.csv --target label --trees 100 --sampling half-samples --drop id,weight --out m")
    model, X = aucforest.load("m"), frame_of(mixed(250, 1))
    predicted = predict("m test.csv --interval --reasons 1")
    assert predicted.columns.tolist()[-4:] == ["probability_yes", "low_yes", "high_yes", "reason_1"]
    assert np.array_equal(predicted[["low_yes", "high_yes"]].to_numpy(), model.predict_interval(X))
    assert predicted["probability_yes"].between(predicted["low_yes"], predicted["high_yes"]).all()
    shorter = predict("m test.csv --interval --level 0.5")
    assert np.array_equal(shorter[["low_yes", "high_yes"]].to_numpy(), model.predict_interval(X, 0.5))
    check_usage(run("predict m test.csv --level 0.9"), "needs --interval")
    check_refusal(run("predict m test.csv --interval --level 95"), "level must be in (0, 1), but is 95.0")
    for other in ("model.aucforest", "stack.aucforest"):
        sentence = "--interval needs a forest that was fitted with --sampling half-samples: fit one"
        check_refusal(run(f"predict {other} test.csv --interval"), sentence)


def test_reasons_of_three_classes_are_those_of_the_predicted_one():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(200, 3)).round(2), columns=["a", "b", "c"])
    X.assign(kind=np.array(["x", "y", "z"])[X.to_numpy().argmax(axis=1)]).to_csv("rows.csv", index=False)
    succeed("fit rows.csv --target kind --trees 10 --out m")
    predicted = predict("m rows.csv --reasons 1 --keep kind")
    explanation = explain(aucforest.load("m"), X).of_class(predicted["prediction"].to_numpy())
    assert predicted["reason_1"].tolist() == [str(reason) for (reason,) in explanation.top(1)]

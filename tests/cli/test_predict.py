"""`aucforest predict`: the same as all at once, in any order of columns, from and to any file, whole or not at all."""

import io
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import aucforest
from aucforest.inspection import explain
from aucforest.persistence.model_file import write_model
from aucforest.tables import files as table_files
from aucforest.tables import text_files
from tests.cli.data import check_refusal, check_usage, frame_of, mixed, read_json, run, succeed
from tests.estimators.test_model_files import read


def predict(*arguments):
    """Return the predictions on standard output as a frame, and the text on standard error."""
    result = succeed("predict", *arguments)
    return pd.read_csv(io.StringIO(result.stdout)), result.stderr


@pytest.fixture
def expected(files):
    """Probabilities and labels of the test rows, all at once."""
    model, X = aucforest.load(files.model_aucforest), frame_of(mixed(250, 1))
    return model.predict_proba(X), model.predict(X)


def check_same(predicted, expected):
    """All columns of a table of predictions."""
    proba, labels = expected
    assert list(predicted.columns[-3:]) == ["prediction", "probability_no", "probability_yes"]
    assert np.array_equal(predicted[["probability_no", "probability_yes"]].to_numpy(), proba)
    assert predicted["prediction"].tolist() == labels.tolist()


@pytest.mark.parametrize(("source", "rows"), [("test_csv", 7), ("test_parquet", 1), ("test_parquet", 1000)])
def test_batches_give_what_all_at_once_gives(files, expected, monkeypatch, source, rows):
    """One row at a time has batches of nothing but missing values."""
    monkeypatch.setattr(table_files, "_MOST_ROWS", rows)
    monkeypatch.setattr(text_files, "rows_of_batch", lambda n_columns: rows)
    predicted, notes = predict(files.model_aucforest, getattr(files, source))
    check_same(predicted, expected)
    assert "250 rows: standard output" in notes


def test_reasons_of_a_stack_in_batches(files, stack, tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "_MOST_ROWS", 7)
    predicted, notes = predict(stack.path, files.test_parquet, "--reasons", 2)
    model, X = aucforest.load(stack.path), frame_of(mixed(250, 1))
    check_same(predicted.iloc[:, :-2], (model.predict_proba(X), model.predict(X)))
    expected = [list(map(str, row)) for row in explain(model, X).top(2)]
    assert predicted[["reason_1", "reason_2"]].to_numpy().tolist() == expected
    assert "calibration" not in notes
    arrays, metadata = read(stack.path)
    del arrays["linear/column_means_"]
    arrays["coef_"] = np.ones(4)
    write_model(tmp_path / "before.aucforest", arrays, metadata)
    result = run("predict", tmp_path / "before.aucforest", files.test_csv, "--reasons", 2, "--out", tmp_path / "p.csv")
    check_refusal(result, "the stack is from an older model file")
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_in_another_order_beside_others(files, expected, tmp_path, kind):
    rows = mixed(250, 1).iloc[:, ::-1].assign(more=pd.Timestamp("2024-02-29"))
    path = tmp_path / f"rows.{kind}"
    rows.to_csv(path, index=False) if kind == "csv" else rows.to_parquet(path)
    succeed("predict", files.model_aucforest, path, "--out", tmp_path / "p.parquet")
    check_same(pd.read_parquet(tmp_path / "p.parquet"), expected)


def test_columns_without_values(files, tmp_path):
    """A file whose columns are empty has no types for them; the model has."""
    empty = mixed(5, 1).assign(width=None, colour=None, count=None, flag=None)
    X = frame_of(mixed(5, 1)).assign(width=np.nan, colour=pd.Categorical([None] * 5), count=np.nan, flag=pd.NA)
    proba = aucforest.load(files.model_aucforest).predict_proba(X.astype({"flag": "boolean"}))
    for kind, write in (("csv", pd.DataFrame.to_csv), ("parquet", pd.DataFrame.to_parquet)):
        write(empty, tmp_path / f"empty.{kind}", index=False)
        predicted, _ = predict(files.model_aucforest, tmp_path / f"empty.{kind}", "--proba")
        assert np.array_equal(predicted.to_numpy(), proba)


def test_kept_columns_are_copied_as_they_are(files):
    result = run("predict", files.model_aucforest, files.test_csv, "--labels", "--keep", "id,colour,width,label")
    assert result.stdout.splitlines()[0] == "id,colour,width,label,prediction"
    kept = pd.read_csv(io.StringIO(result.stdout), dtype=str).drop(columns="prediction")
    original = pd.read_csv(files.test_csv, dtype=str)[["id", "colour", "width", "label"]]
    pd.testing.assert_frame_equal(kept, original)
    plain = run("predict", files.model_aucforest, files.test_csv, "--labels", "--keep", "id")
    assert plain.stdout.splitlines()[1].startswith("00000,")


def test_kept_columns_of_parquet_keep_their_types(files, tmp_path):
    rows = mixed(250, 1).assign(day=pd.Timestamp("2024-02-29"), colour=lambda rows: rows["colour"].astype("category"))
    rows.to_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "p.parquet"
    succeed("predict", files.model_aucforest, tmp_path / "rows.parquet", "--keep", "day,count,colour", "--out", out)
    predicted = pd.read_parquet(out)
    assert predicted["day"].tolist() == rows["day"].tolist()
    assert predicted["count"].astype("Int64").equals(rows["count"])
    assert predicted["colour"].fillna("").tolist() == rows["colour"].astype(object).fillna("").tolist()


COMMAND = [sys.executable, "-m", "aucforest", "predict"]  # in a process of its own


@pytest.mark.slow
def test_through_pipes(files, expected):
    """A real command, with bytes in and out."""
    command = [*COMMAND, files.model_aucforest, "-"]
    finished = subprocess.run(command, input=files.test_csv.read_bytes(), capture_output=True)
    assert finished.returncode == 0, finished.stderr
    check_same(pd.read_csv(io.BytesIO(finished.stdout)), expected)


@pytest.mark.slow
def test_a_closed_pipe_gives_no_traceback(files, tmp_path):
    """No traceback when the output is closed, as by head."""
    long = tmp_path / "long.csv"
    pd.concat([mixed(250, 1)] * 200).to_csv(long, index=False)
    with subprocess.Popen(
        [*COMMAND, files.model_aucforest, long], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 1


@pytest.mark.slow
def test_an_interrupted_command_leaves_no_file(files, tmp_path):
    """While standard input is copied to a temporary folder."""
    command = [*COMMAND, files.model_aucforest, "-", "--out", "p.csv"]
    options = {"env": {**os.environ, "TMPDIR": str(tmp_path)}, "cwd": tmp_path, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, stdin=subprocess.PIPE, **options) as process:
        process.stdin.write(files.test_csv.read_bytes())
        process.stdin.flush()
        deadline = time.monotonic() + 300
        while not list(tmp_path.glob("*/copy")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(list(tmp_path.glob("*/copy"))) == 1
        process.send_signal(signal.SIGINT)
        process.stdin.close()  # as the whole pipeline is interrupted at a terminal
        process.wait(60)
    assert process.returncode == 130
    assert os.listdir(tmp_path) == []


def test_a_failure_leaves_the_old_file(files, tmp_path):
    bad, out = tmp_path / "bad.csv", tmp_path / "p.csv"
    bad.write_text(files.test_csv.read_text() + "1,2,3\n")
    out.write_text("old")
    check_refusal(run("predict", files.model_aucforest, bad, "--out", out), "bad.csv, line 252: the header has 7")
    assert out.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["bad.csv", "p.csv"]


def test_a_table_without_rows_has_no_predictions(files, tmp_path):
    (tmp_path / "none.csv").write_text("width,colour,count,flag\n")
    for kind in ("csv", "parquet"):
        out = tmp_path / f"out.{kind}"
        succeed("predict", files.model_aucforest, tmp_path / "none.csv", "--out", out)
        predicted = pd.read_csv(out) if kind == "csv" else pd.read_parquet(out)
        assert list(predicted.columns) == ["prediction", "probability_no", "probability_yes"]


@pytest.mark.parametrize("words", [("False", "True"), ("FALSE", "TRUE"), ("0", "1"), ("007", "100")])
def test_labels_are_spelled_as_they_were_read(tmp_path, words):
    x = np.random.default_rng(0).normal(size=60)
    rows = pd.DataFrame({"x": x, "kept": np.array(words)[::-1][(x > 0.5).astype(int)]})
    path = tmp_path / "rows.csv"
    rows.assign(y=np.array(words)[(x > 0).astype(int)]).to_csv(path, index=False)
    succeed("fit", path, "--target", "y", "--out", tmp_path / "m", "--trees", 3, "--drop", "kept")
    for kind in ("csv", "parquet"):
        succeed("predict", tmp_path / "m", path, "--keep", "y,kept", "--out", tmp_path / f"out.{kind}")
    lines = [line.split(",") for line in (tmp_path / "out.csv").read_text().splitlines()]
    assert {line[2] for line in lines[1:]} == set(words)
    assert lines[0][3:] == [f"probability_{word}" for word in words]
    assert np.mean([line[0] == line[2] for line in lines[1:]]) > 0.9
    from_parquet = pd.read_parquet(tmp_path / "out.parquet")["prediction"]
    assert from_parquet.astype(str).tolist() == [line[2] for line in lines[1:]]
    tables = [path]
    if words[1].lower() == "true":
        tables.append(tmp_path / "flags.parquet")
        rows.assign(y=x > 0).to_parquet(tables[1])
    metrics = [read_json("evaluate", tmp_path / "m", table, "--target", "y")["metrics"] for table in tables]
    assert metrics[0] == metrics[-1]


def test_flags_of_a_parquet_table_are_spelled_as_python_does(tmp_path):
    rows = pd.DataFrame({"x": np.arange(60.0), "y": np.arange(60) > 20})
    rows.to_parquet(tmp_path / "rows.parquet")
    result = succeed("fit", tmp_path / "rows.parquet", "--target", "y", "--out", tmp_path / "m", "--trees", 3)
    assert aucforest.load(tmp_path / "m").classes_.tolist() == [False, True]
    result = run("predict", tmp_path / "m", tmp_path / "rows.parquet", "--keep", "y", "--labels")
    assert result.stdout.splitlines()[0] == "y,prediction"
    assert set(result.stdout.splitlines()[1:]) == {"False,False", "True,True"}


def test_trees_and_linear_models_predict(tmp_path):
    """A single tree and a linear model; classes that are numbers; features without names go by their order."""
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    y = np.where(rows["a"] > 0, 2, 1)
    rows.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    for model in (aucforest.AUCTreeClassifier(max_depth=2), aucforest.LinearAUCClassifier()):
        model.fit(rows.to_numpy(), y).save(tmp_path / "m")
        predicted, _ = predict(tmp_path / "m", tmp_path / "rows.csv", "--keep", "y")
        assert list(predicted.columns) == ["y", "prediction", "probability_1", "probability_2"]
        assert predicted["prediction"].tolist() == model.predict(rows.to_numpy()).tolist()
        assert np.array_equal(predicted["probability_2"], model.predict_proba(rows.to_numpy())[:, 1])
        check_refusal(run("predict", tmp_path / "m", tmp_path / "rows.csv"), "has 4 columns, but the model")


def test_wrong_tables_and_models_are_refused_in_one_line(files, tmp_path):
    rows = mixed(30, 1)
    text, first_flag = rows.to_csv(index=False), 2 + int(np.argmax(rows["flag"].fillna(False)))
    lacking = rows.drop(columns=["width", "flag"]).rename(columns={"colour": "color"})
    for name, content in {
        "lacking.csv": lacking.to_csv(index=False),
        "words.csv": text.replace("\n00007,", "\n00007,wide"),
        "flags.csv": text.replace("True", "perhaps"),
    }.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "latin.csv").write_bytes(text.replace("red", "grün").encode("latin-1"))
    rows.assign(width=pd.Timestamp("2024-02-29")).to_parquet(tmp_path / "dates.parquet")
    rows.assign(colour=1).to_parquet(tmp_path / "numbers.parquet")
    for name, sentence, *options in [
        ("lacking.csv", "lacking.csv lacks feature columns seen in fit: 'width', 'colour', "),
        ("words.csv", "words.csv, line 9: column 'width' has the value 'wide", "--stray-text", "text"),
        ("flags.csv", f"line {first_flag}: column 'flag' has the value 'perhaps', which is not a boolean"),
        ("latin.csv", "is not encoded in UTF-8: pass its encoding, such as --encoding cp1252"),
        ("dates.parquet", "column 'width' has type timestamp[us], but the model needs a number"),
        ("numbers.parquet", "column 'colour' has type int64, but the model needs a string"),
        (files.test_csv, "has no column 'idd'; did you mean 'id'?", "--keep", "idd"),
        (files.test_csv, "the result would have two columns named 'id'", "--keep", "id,id"),
        (files.test_csv, "would be overwritten", "--out", files.test_csv),
        (files.test_csv, "does not exist", "--out", tmp_path / "no" / "p.csv"),
    ]:
        check_refusal(
            run("predict", files.model_aucforest, tmp_path / name, "--out", tmp_path / "out.csv", *options), sentence
        )
    for model, sentence in [
        (tmp_path / "none", "there is no file"),
        (files.model_aucforest.parent, "is a folder, not a model file"),
        (files.test_csv, "not a model file"),
    ]:
        check_refusal(run("predict", model, files.test_csv, "--out", tmp_path / "out.csv"), sentence)
    assert not (tmp_path / "out.csv").exists()
    check_usage(
        run("predict", files.model_aucforest, files.test_csv, "--out", "p.txt"), "must end in .csv, .parquet, got p.txt"
    )


PEAK = """
import re, sys
from pathlib import Path
from aucforest.cli.app import app
app(["predict", *sys.argv[1:]], standalone_mode=False)
# ru_maxrss would begin with what the process had that started this one
print(int(re.search("VmHWM: *([0-9]+)", Path("/proc/self/status").read_text().expandtabs())[1]) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_file(files, tmp_path, kind):
    """A table of 300 MB as CSV takes no more than one of 3 MB and some buffers."""
    rows = mixed(2000, 3).assign(**{f"more{i}": np.random.default_rng(i).normal(size=2000) for i in range(5)})
    peaks = []
    for times in (10, 1000):
        path = tmp_path / f"rows.{kind}"
        if kind == "csv":
            header, text = rows.to_csv(index=False).split("\n", 1)
            with path.open("w") as file:
                file.write(f"{header}\n")
                file.writelines([text] * times)
        else:
            pd.concat([rows] * times).to_parquet(path, row_group_size=100_000)
        command = [sys.executable, "-c", PEAK, files.model_aucforest, path, "--out", tmp_path / f"out.{kind}"]
        peaks.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    assert peaks[1] - peaks[0] < 100, peaks


def test_reasons_are_those_of_explain_and_not_more_than_features(files):
    """A row in which some features move nothing has empty cells."""
    predicted, _ = predict(files.model_aucforest, files.test_csv, "--reasons", 100, "--labels")
    predicted = predicted.fillna("")
    assert predicted.columns.tolist() == ["prediction", "reason_1", "reason_2", "reason_3", "reason_4"]
    expected = explain(aucforest.load(files.model_aucforest), frame_of(mixed(250, 1))).top(4)
    padded = [[*map(str, row), *[""] * (4 - len(row))] for row in expected]
    assert predicted.iloc[:, 1:].to_numpy().tolist() == padded
    assert (predicted["reason_4"] != "").any()


def test_intervals_are_those_of_the_model(files, tmp_path):
    options = "--target", "label", "--trees", 100, "--sampling", "half-samples", "--drop", "id,weight"
    out = tmp_path / "m.aucforest"
    succeed("fit", files.train_csv, *options, "--out", out)
    predicted, _ = predict(out, files.test_csv, "--interval", "--reasons", 1)
    assert predicted.columns.tolist()[-4:] == ["probability_yes", "low_yes", "high_yes", "reason_1"]
    expected = aucforest.load(out).predict_interval(frame_of(mixed(250, 1)))
    assert np.array_equal(predicted[["low_yes", "high_yes"]].to_numpy(), expected)
    assert predicted["probability_yes"].between(predicted["low_yes"], predicted["high_yes"]).all()
    check_usage(run("predict", out, files.test_csv, "--level", 0.9), "needs --interval")
    shorter, _ = predict(out, files.test_csv, "--interval", "--level", 0.5)
    expected = aucforest.load(out).predict_interval(frame_of(mixed(250, 1)), 0.5)
    assert np.array_equal(shorter[["low_yes", "high_yes"]].to_numpy(), expected)
    of_percent = run("predict", out, files.test_csv, "--interval", "--level", 95)
    check_refusal(of_percent, "level must be in (0, 1), but is 95.0")


def test_models_without_half_samples_have_no_intervals(files, stack):
    for path in (files.model_aucforest, stack.path):
        result = run("predict", path, files.test_csv, "--interval")
        check_refusal(result, "--interval needs a forest that was fitted with --sampling half-samples: fit one")


def test_reasons_of_three_classes_are_those_of_the_predicted_one(tmp_path):
    random = np.random.default_rng(0)
    rows = pd.DataFrame(random.normal(size=(200, 3)).round(2), columns=["a", "b", "c"])
    rows["kind"] = np.array(["x", "y", "z"])[rows[["a", "b", "c"]].to_numpy().argmax(axis=1)]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    arguments = "--target", "kind", "--trees", 10, "--out", tmp_path / "m.aucforest"
    succeed("fit", tmp_path / "rows.csv", *arguments)
    predicted, _ = predict(tmp_path / "m.aucforest", tmp_path / "rows.csv", "--reasons", 1, "--keep", "kind")
    model = aucforest.load(tmp_path / "m.aucforest")
    explanation = explain(model, rows[["a", "b", "c"]]).of_class(predicted["prediction"].to_numpy())
    assert predicted["reason_1"].tolist() == [str(reason) for (reason,) in explanation.top(1)]

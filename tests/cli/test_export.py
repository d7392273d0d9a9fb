"""`aucforest export`: the predictions of ONNX and scikit-learn equal those of the model."""

import re
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import skops.io

import aucforest
from aucforest.cli import export as command
from tests.cli.data import check_refusal, check_usage, frame_of, mixed, run, succeed

BOTH = "--onnx m.onnx --sklearn m.skops"


@pytest.mark.parametrize("kind", ["plain", "balanced"])
def test_exported_files_agree_with_the_model(files, kind):
    if kind == "balanced":  # and the positive class is the first one
        mixed(300, 0).replace({"label": {"yes": "fraud", "no": "genuine"}}).to_csv("train.csv", index=False)
        options = "--drop id,weight --sampling balanced --trees 10 --out model.aucforest"
        succeed(f"fit train.csv --target label {options}")
    result = succeed(f"export model.aucforest {BOTH} --check test.csv")
    assert "compared on 250 rows" in result.stdout
    assert result.stderr.splitlines() == ["ONNX: m.onnx", "scikit-learn: m.skops"]
    forest, X = aucforest.load("model.aucforest"), frame_of(mixed(250, 1))
    encoded = np.asarray(forest.encode(X))
    _, of_onnx = onnxruntime.InferenceSession("m.onnx").run(None, {"X": encoded})
    loaded = skops.io.load("m.skops", trusted=skops.io.get_untrusted_types(file="m.skops"))
    of_sklearn = loaded.predict_proba(pd.DataFrame(encoded, columns=X.columns))
    rounded = X.astype({"width": "float32"})
    for proba, rows, atol in ((of_onnx, X, 1e-6), (of_sklearn, rounded, 1e-12)):
        expected = np.sort(forest.predict_proba(rows), axis=1)
        np.testing.assert_allclose(np.sort(proba, axis=1), expected, rtol=0, atol=atol)


def test_values_that_float32_does_not_represent():
    rng = np.random.default_rng(0)
    amount, number = rng.integers(1000, 9000, 400) / 100, rng.integers(20_000_000, 20_000_400, 400)
    X = pd.DataFrame({"amount": amount, "number": number})
    y = (amount + rng.normal(scale=20, size=400) > 70).astype(int)
    aucforest.AUCForestClassifier(10, random_state=0).fit(X[:200], y[:200]).save("m")
    X.to_csv("new.csv", index=False)
    result = succeed(f"export m {BOTH} --check new.csv")
    assert re.search(r"rounding changes the probabilities of \d+ rows of 400, by up to", result.stdout)


def test_a_stack_is_exported_to_onnx_only(files):
    X, y = frame_of(mixed(300, 0)), mixed(300, 0)["label"]
    forest = aucforest.AUCForestClassifier(20, random_state=0)
    aucforest.AUCStackingClassifier(forest, pos_label="no").fit(X, y).save("stack")
    assert "compared on 250 rows" in succeed("export stack --onnx m.onnx --check test.csv").stdout
    result = run("export stack --onnx no.onnx --sklearn m.skops")
    check_refusal(result, "--sklearn: AUCStackingClassifier has no such export")
    assert "use --onnx" not in result.stderr
    assert "use --onnx" in run("export stack --sklearn m.skops").stderr
    assert not Path("no.onnx").exists()


def test_a_difference_is_refused(files, monkeypatch):
    monkeypatch.setitem(command._TOLERANCES, "ONNX", 1e-12)
    result = run(f"export model.aucforest {BOTH} --check test.csv")
    check_refusal(result, "the ONNX file differs from the model by")
    assert "no file is written" in result.stderr
    assert list(Path().glob("m.*")) == []


def test_stray_text_in_checked_rows(files):
    rows = mixed(250, 1).astype({"width": object})
    rows.loc[3, "width"] = "unknown"
    rows.to_csv("words.csv", index=False)
    rows[:0].to_csv("none.csv", index=False)
    export = "export model.aucforest --onnx m.onnx --check"
    check_refusal(run(f"{export} words.csv --stray-text text"), "'unknown'")
    check_refusal(run(f"{export} none.csv"), "none.csv has a header, but no rows")
    assert not Path("m.onnx").exists()
    assert "'unknown'" in succeed(f"{export} words.csv").stderr
    assert Path("m.onnx").exists()


def test_unknown_kinds_of_files_and_wrong_paths_are_refused(files):
    check_usage(run("export model.aucforest"), "name a file to write")
    check_usage(run("export model.aucforest --onnx m.txt"), "must end in .onnx, got m.txt")
    check_usage(run("export model.aucforest --sklearn m.pkl"), "must end in .skops, got m.pkl")
    check_refusal(run("export model.aucforest --onnx no/m.onnx"), "does not exist")
    check_refusal(run("export test.csv --onnx m.onnx"), "test.csv")

"""`aucforest export`: files of other libraries that predict what the model predicts."""

import re

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import skops.io

import aucforest
from aucforest.cli import export as command
from tests.cli.data import check_refusal, check_usage, frame_of, mixed, run, succeed


def balanced_model(folder):
    """Fit a forest to balanced samples, labels that are text and the first of them positive."""
    train, model = folder / "train.csv", folder / "balanced.aucforest"
    mixed(300, 0).replace({"label": {"yes": "fraud", "no": "genuine"}}).to_csv(train, index=False)
    options = "--target", "label", "--drop", "id,weight", "--sampling", "balanced", "--trees", 10
    succeed("fit", train, *options, "--out", model)
    return model


@pytest.mark.parametrize("kind", ["plain", "balanced"])
def test_exported_files_agree_with_the_model(files, tmp_path, kind):
    model = files.model_aucforest if kind == "plain" else balanced_model(tmp_path)
    onnx, sklearn = tmp_path / "model.onnx", tmp_path / "model.skops"
    result = succeed("export", model, "--onnx", onnx, "--sklearn", sklearn, "--check", files.test_csv)
    assert "compared on 250 rows" in result.stdout
    assert result.stderr.splitlines() == [f"ONNX: {onnx}", f"scikit-learn: {sklearn}"]
    forest, X = aucforest.load(model), frame_of(mixed(250, 1))
    expected = np.sort(forest.predict_proba(X), axis=1)
    encoded = np.asarray(forest.encode(X))
    _, proba = onnxruntime.InferenceSession(onnx).run(None, {"X": encoded})
    assert np.allclose(np.sort(proba, axis=1), expected, rtol=0, atol=1e-6)
    loaded = skops.io.load(sklearn, trusted=skops.io.get_untrusted_types(file=sklearn))
    proba = loaded.predict_proba(pd.DataFrame(encoded, columns=X.columns))
    expected = np.sort(forest.predict_proba(X.astype({"width": "float32"})), axis=1)
    assert np.allclose(np.sort(proba, axis=1), expected, rtol=0, atol=1e-12)


def test_values_that_float32_does_not_represent(tmp_path):
    """ONNX agrees for them too; scikit-learn rounds them, which is told, and agrees for the rounded ones."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"amount": rng.integers(1000, 9000, 400) / 100, "number": rng.integers(20_000_000, 20_000_400, 400)}
    )
    y = (X["amount"] + rng.normal(scale=20, size=400) > 70).astype(int)
    aucforest.AUCForestClassifier(10, random_state=0).fit(X[:200], y[:200]).save(tmp_path / "m.aucforest")
    X.to_csv(tmp_path / "new.csv", index=False)
    outs = ("--onnx", tmp_path / "m.onnx", "--sklearn", tmp_path / "m.skops")
    result = succeed("export", tmp_path / "m.aucforest", *outs, "--check", tmp_path / "new.csv")
    assert re.search(r"rounding changes the probabilities of \d+ rows of 400, by up to", result.stdout)


def test_a_stack_is_exported_to_onnx_only(files, tmp_path):
    X, y = frame_of(mixed(300, 0)), mixed(300, 0)["label"]
    stack = aucforest.AUCStackingClassifier(aucforest.AUCForestClassifier(20, random_state=0), pos_label="no").fit(X, y)
    model, onnx, sklearn = tmp_path / "stack.aucforest", tmp_path / "stack.onnx", tmp_path / "stack.skops"
    stack.save(model)
    result = succeed("export", model, "--onnx", onnx, "--check", files.test_csv)
    assert "compared on 250 rows" in result.stdout
    result = run("export", model, "--onnx", tmp_path / "no.onnx", "--sklearn", sklearn)
    check_refusal(result, "--sklearn: AUCStackingClassifier has no such export")
    assert "use --onnx" not in result.stderr
    assert "use --onnx" in run("export", model, "--sklearn", sklearn).stderr
    assert not (tmp_path / "no.onnx").exists()


def test_a_linear_model_is_refused(tmp_path):
    X = np.arange(40.0).reshape(20, 2)
    aucforest.LinearAUCClassifier().fit(X, X[:, 0] > 20).save(tmp_path / "m.aucforest")
    result = run("export", tmp_path / "m.aucforest", "--onnx", tmp_path / "m.onnx")
    check_refusal(result, "--onnx: LinearAUCClassifier has no such export")


def test_a_difference_is_refused(files, tmp_path, monkeypatch):
    monkeypatch.setitem(command._TOLERANCES, "ONNX", 1e-12)
    outs = ("--onnx", tmp_path / "m.onnx", "--sklearn", tmp_path / "m.skops")
    result = run("export", files.model_aucforest, *outs, "--check", files.test_csv)
    check_refusal(result, "the ONNX file differs from the model by")
    assert "no file is written" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_stray_text_in_checked_rows(files, tmp_path):
    rows = mixed(250, 1).astype({"width": object})
    rows.loc[3, "width"] = "unknown"
    rows.to_csv(tmp_path / "words.csv", index=False)
    call = ("export", files.model_aucforest, "--onnx", tmp_path / "m.onnx", "--check", tmp_path / "words.csv")
    check_refusal(run(*call, "--stray-text", "text"), "'unknown'")
    rows[:0].to_csv(tmp_path / "none.csv", index=False)
    check_refusal(run(*call[:-1], tmp_path / "none.csv"), "none.csv has a header, but no rows")
    assert not (tmp_path / "m.onnx").exists()
    result = succeed(*call)
    assert "'unknown'" in result.stderr
    assert (tmp_path / "m.onnx").exists()


def test_unknown_kinds_of_files_and_wrong_paths_are_refused(files, tmp_path):
    check_usage(run("export", files.model_aucforest), "name a file to write")
    check_usage(run("export", files.model_aucforest, "--onnx", tmp_path / "m.txt"), "must end in .onnx, got m.txt")
    check_usage(run("export", files.model_aucforest, "--sklearn", tmp_path / "m.pkl"), "must end in .skops, got m.pkl")
    check_refusal(run("export", files.model_aucforest, "--onnx", tmp_path / "no" / "m.onnx"), "does not exist")
    check_refusal(run("export", files.test_csv, "--onnx", tmp_path / "m.onnx"), "test.csv")

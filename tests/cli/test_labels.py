"""Models whose positive label comes first in sorted order: the command line has it last, Python in sorted order."""

import numpy as np
import pandas as pd
import pytest

import aucforest
from aucforest.cli._inputs import read_model
from aucforest.inspection import explain, oob_permutation_importance
from aucforest.persistence import model_file
from aucforest.report.metrics import costs_of
from tests.cli.data import check_refusal, run


def make_rows(n=600, seed=0):
    """Return rows of which about a quarter are bad."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(n, 3)), columns=["a", "b", "c"]).round(3)
    return X.assign(label=np.where(X["a"] + random.normal(size=n) > 1, "bad", "good"))


def fit(folder, *options, rows=None):
    """Fit by the command line; return the rows and the model file."""
    rows, train, model = make_rows() if rows is None else rows, folder / "train.csv", folder / "m.aucforest"
    rows.to_csv(train, index=False)
    result = run("fit", train, "--target", "label", "--trees", 30, "--out", model, *options)
    assert result.exit_code == 0, result.output
    return rows, model


SAMPLINGS = ["bootstrap", "balanced", "stratified"]


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_both_see_the_same_forest(tmp_path, sampling):
    rows, file = fit(tmp_path, "--sampling", sampling, "--threshold", "gmean")
    X, y = rows[["a", "b", "c"]], rows["label"]
    shell, python = read_model(file), aucforest.load(file)
    assert shell.classes_.tolist() == ["good", "bad"]
    assert python.classes_.tolist() == ["bad", "good"]
    np.testing.assert_array_equal(python.predict_proba(X), shell.predict_proba(X)[:, ::-1])
    np.testing.assert_array_equal(python.predict(X), shell.predict(X))
    values = explain(shell, X[:5]).values
    np.testing.assert_allclose(explain(python, X[:5]).values, -values, rtol=0, atol=1e-12)
    # trees sampled rows by class in the order of the fit
    for threshold in ("gmean", "youden"):
        shell.set_threshold(threshold, X, y)
        python.set_threshold(threshold, X, y)
        assert np.mean(python.predict(X) == shell.predict(X)) > 0.97  # of thresholds of equal quality, each has its own
    found, expected = (oob_permutation_importance(m, X, y, n_repeats=1, random_state=0) for m in (python, shell))
    np.testing.assert_allclose(found.importances, expected.importances, rtol=0, atol=1e-12)


def test_both_see_the_same_stack(tmp_path):
    rows, file = fit(tmp_path, "--model", "stack", "--threshold", "gmean")
    X = rows[["a", "b", "c"]]
    shell, python = read_model(file), aucforest.load(file)
    assert shell.classes_.tolist() == ["good", "bad"]
    assert python.classes_.tolist() == ["bad", "good"]
    np.testing.assert_allclose(python.predict_proba(X), shell.predict_proba(X)[:, ::-1], rtol=1e-12)
    np.testing.assert_array_equal(python.predict(X), shell.predict(X))
    result = run("evaluate", file, tmp_path / "train.csv", "--target", "label")
    assert "these are the rows that the model was trained on" in result.stderr


def test_saving_in_python_changes_nothing(tmp_path):
    _, file = fit(tmp_path, "--threshold", "gmean")
    again = tmp_path / "again.aucforest"
    aucforest.load(file).save(again)
    assert again.read_bytes() == file.read_bytes()
    assert read_model(again).threshold_ == read_model(file).threshold_


def test_files_of_before_hold_the_classes_in_sorted_order(tmp_path):
    rows, file = fit(tmp_path, "--threshold", 0.3)
    before, X = tmp_path / "before.aucforest", rows[["a", "b", "c"]]
    python = aucforest.load(file)
    expected = python.predict_proba(X)
    python._positive_first = False  # written as it is
    python.save(before)
    stored = model_file.read_model(before)
    model_file.write_model(before, stored._arrays, {**stored._metadata, "positive_first": True})
    assert read_model(before).classes_.tolist() == ["good", "bad"]
    np.testing.assert_array_equal(aucforest.load(before).predict_proba(X), expected)


@pytest.mark.parametrize("n_bad", [49, 51])
def test_rows_at_the_threshold(tmp_path, n_bad):
    """All rows have the probability that is the threshold, the class frequency."""
    rows = pd.DataFrame({"x": 1.0, "label": np.where(np.arange(100) < n_bad, "bad", "good")})
    reference = tmp_path / "reference.csv"
    _, file = fit(tmp_path, "--positive", "bad", "--sampling", "stratified", "--reference", reference, rows=rows)
    result = run("predict", file, tmp_path / "train.csv", "--out", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    assert set(pd.read_csv(tmp_path / "p.csv")["prediction"]) == set(pd.read_csv(reference)["prediction"])


@pytest.mark.parametrize("threshold", [0, 0.51, 1])
def test_fixed_thresholds_survive_both_ways(tmp_path, threshold):
    rows, file = fit(tmp_path, "--threshold", threshold)
    assert read_model(file).threshold_ == threshold
    python = aucforest.load(file)
    np.testing.assert_array_equal(
        python.predict(rows[["a", "b", "c"]]), read_model(file).predict(rows[["a", "b", "c"]])
    )
    python.save(tmp_path / "again.aucforest")
    assert read_model(tmp_path / "again.aucforest").threshold_ == threshold
    assert read_model(tmp_path / "again.aucforest").threshold == threshold


def test_costs_are_those_of_the_other_order(tmp_path):
    rows, file = fit(tmp_path)
    python, again = aucforest.load(file), tmp_path / "again.aucforest"
    python.set_threshold({"cost": [[0, 10], [1, 0]]}, rows[["a", "b", "c"]], rows["label"])
    assert python.monotonic_cst is None
    python.save(again)
    assert costs_of(read_model(again)).tolist() == [[0, 1], [10, 0]]


def test_a_new_fit_forgets_the_order(tmp_path):
    rows, file = fit(tmp_path, "--threshold", "argmax")
    X, kinds = rows[["a", "b", "c"]], np.arange(len(rows)) % 3
    model = aucforest.load(file).set_params(threshold=None).fit(X, kinds)
    model.save(file)
    np.testing.assert_array_equal(aucforest.load(file).predict_proba(X), model.predict_proba(X))
    model = aucforest.load(fit(tmp_path)[1]).fit(X, kinds > 0)
    model.save(file)
    assert read_model(file).classes_.tolist() == [False, True]


def test_a_warm_start_is_refused(tmp_path):
    rows, file = fit(tmp_path)
    model = aucforest.load(file).set_params(warm_start=True, n_estimators=40)
    with pytest.raises(ValueError, match=r"^warm_start: the command line fitted this forest with 'bad' as"):
        model.fit(rows[["a", "b", "c"]], rows["label"])


def test_directions_are_those_of_the_other_order(tmp_path):
    _, file = fit(tmp_path)
    forest = read_model(file).set_params(monotonic_cst=[1, 0, -1])
    forest._reverse_classes()
    assert forest.monotonic_cst == [-1, 0, 1]
    forest.set_params(monotonic_cst={"a": 1})
    forest._reverse_classes()
    assert forest.monotonic_cst == {"a": -1}


def test_names_of_labels_are_no_markup(tmp_path):
    rows = make_rows().replace({"label": {"bad": "[/]", "good": "[red]x[/red]"}})
    _, file = fit(tmp_path, rows=rows)
    result = run("evaluate", file, tmp_path / "train.csv", "--target", "label")
    assert result.exit_code == 0, result.output
    assert "[red]x[/red]" in result.stdout
    assert "[/]" in result.stdout


def test_labels_that_are_no_classes(tmp_path):
    rows = make_rows(50).assign(label=[float("inf"), *[0.0, 1.0] * 24, 1.0])
    rows.to_parquet(tmp_path / "rows.parquet")
    result = run("fit", tmp_path / "rows.parquet", "--target", "label", "--out", tmp_path / "m.aucforest")
    check_refusal(result, "column 'label' has numbers such as inf, not class labels")

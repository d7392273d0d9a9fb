"""Commands with a model that reads target rates of a column of many categories."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import aucforest
from aucforest.inspection import explain
from tests.cli.data import check_usage, read_json, run, succeed
from tests.estimators.rated import make_rated


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    """train.csv, test.csv and model.aucforest."""
    folder = tmp_path_factory.mktemp("rated")
    train, test, model = (folder / name for name in ("train.csv", "test.csv", "model.aucforest"))
    for path, seed in ((train, 0), (test, 2)):
        X, y = make_rated(seed=seed)
        X.assign(label=np.array(["no", "yes"])[y]).to_csv(path, index=False)
    result = succeed("fit", train, "--target", "label", "--out", model, "--trees", 30)
    return SimpleNamespace(train=train, test=test, model=model, fitted=result)


def test_inspect_shows_rates_and_encodings(rated):
    assert "3 columns, 2 of them categorical; 4 features" in rated.fitted.stdout
    model = aucforest.load(rated.model)
    assert "merchant: rate <= 0." in run("inspect", rated.model, "--text", model.encodings_.index("rates")).stdout
    result = succeed("inspect", rated.model)
    words = " ".join(result.stdout.split())
    assert "4 features of 3 columns" in words
    assert "merchant: rate rate 0." in words
    counts = Counter(model.encodings_)
    assert set(counts) == {"sets", "rates"}
    assert f"encodings {'; '.join(f'{name}={n}' for name, n in counts.most_common())}" in words
    content = read_json("inspect", rated.model)
    assert content["encodings"] == counts
    assert [feature["kind"] for feature in content["features"]] == ["categorical", "numeric", "categorical", "rate"]
    assert [feature["name"] for feature in content["features"]][-1] == "merchant: rate"
    assert len(content["features"][0]["categories"]) == 80
    assert content["features"][3]["categories"] is None
    assert content["parameters"]["categorical_encoding"] == "auto"


def test_predictions_and_reasons(rated, tmp_path):
    out = tmp_path / "predictions.csv"
    succeed("predict", rated.model, rated.test, "--reasons", 9, "--out", out)
    model, written = aucforest.load(rated.model), pd.read_csv(out)
    X = pd.read_csv(rated.test).drop(columns="label")
    np.testing.assert_allclose(written["probability_yes"], model.predict_proba(X)[:, 1], rtol=1e-12)
    # One reason for each column, and none for a rate.
    assert [name for name in written if name.startswith("reason_")] == ["reason_1", "reason_2", "reason_3"]
    expected = [[str(reason) for reason in row] for row in explain(model, X).of_class("yes").top(3)]
    assert written[["reason_1", "reason_2", "reason_3"]].to_numpy().tolist() == expected
    assert not written["reason_1"].str.contains("rate").any()


def test_evaluation_and_report(rated, tmp_path):
    succeed("evaluate", rated.model, rated.test, "--target", "label", "--json", tmp_path / "a.json")
    page = tmp_path / "report.html"
    succeed("report", rated.model, rated.test, "--target", "label", "--train", rated.train, "--out", page)
    text = page.read_text()
    assert "merchant" in text
    assert "and by the encoding of columns of many categories" in text
    assert ">encodings</t" in text


@pytest.mark.parametrize(
    ("given", "encoding", "encodings"),
    [("sets", ["sets"], []), ("rates", ["rates"], ["rates"]), ("sets, rates", ["sets", "rates"], ["sets", "rates"])],
)
def test_the_encoding_is_an_option(rated, tmp_path, given, encoding, encodings):
    path = tmp_path / "model"
    arguments = ["--target", "label", "--out", path, "--trees", 12, "--categorical-encoding", given]
    succeed("fit", rated.train, *arguments)
    model = aucforest.load(path)
    assert model.categorical_encoding == encoding
    assert list(dict.fromkeys(model.encodings_)) == encodings


def test_a_stack_reads_rates(rated, tmp_path):
    path = tmp_path / "stack"
    arguments = ["--target", "label", "--out", path, "--trees", 30, "--categorical-encoding", "rates"]
    result = succeed("fit", rated.train, *arguments, "--model", "stack")
    assert "3 columns, 2 of them categorical; 4 features" in result.stdout
    stack = aucforest.load(path)
    assert stack.members_["residual"].encodings_ == ["rates"] * 30
    content = read_json("inspect", path)
    assert content["encodings"] == {"rates": 30}
    succeed("report", path, rated.test, "--target", "label", "--out", tmp_path / "report.html")


def test_unknown_encodings_are_wrong_calls(rated, tmp_path):
    for given in ("codes", "sets,codes", "auto,sets", "sets,sets", ""):
        arguments = ["--target", "label", "--out", tmp_path / "model", "--categorical-encoding", given]
        sentence = f"must be auto or some of sets, rates, interactions, each once, but is {given!r}"
        check_usage(run("fit", rated.train, *arguments), sentence)


def test_exports_agree_with_the_model(rated, tmp_path):
    for suffix in ("onnx", "skops"):
        pytest.importorskip({"onnx": "onnxruntime", "skops": "skops.io"}[suffix])
    outs = ["--onnx", tmp_path / "model.onnx", "--sklearn", tmp_path / "model.skops"]
    result = succeed("export", rated.model, *outs, "--check", rated.test)
    assert "compared on 600 rows" in result.stdout


def test_numbers_as_categories(tmp_path, rated):
    table = pd.read_csv(rated.train)
    table.insert(0, "code", np.random.default_rng(0).integers(0, 90, len(table)))
    table["code"] = table["code"].map("1{:04}".format)
    path, model = tmp_path / "codes.csv", tmp_path / "model.aucforest"
    table.to_csv(path, index=False)
    for more, n_categories in (((), None), (("--categorical", "code"), 90)):
        result = succeed("fit", path, "--target", "label", "--out", model, "--trees", 8, *more)
        fitted = aucforest.load(model)
        assert (0 in fitted.categories_) == (n_categories is not None)
    assert fitted.categories_[0].tolist()[0] == "10000"
    result = succeed("predict", model, path)
    assert "Note" not in result.stderr
    table.assign(code=table.code.astype(int)).to_parquet(tmp_path / "codes.parquet")
    refused = run("fit", tmp_path / "codes.parquet", "--target", "label", "--out", model, "--categorical", "code")
    assert refused.exit_code == 1
    assert "--categorical: the column 'code' of codes.parquet is int64: store it as text" in refused.stderr

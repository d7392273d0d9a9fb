"""Commands with a model that reads target rates of a column of many categories."""

from collections import Counter
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import aucforest
from tests.cli.data import check_refusal, check_usage, read_json, run, succeed
from tests.estimators.rated import make_rated
from tests.fitting.tables import make_accounts

FIT = "fit train.csv --target label --out m"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rated")
    with chdir(folder):
        for name, seed in (("train", 0), ("test", 2)):
            X, y = make_rated(seed=seed)
            X.assign(label=np.array(["no", "yes"])[y]).to_csv(f"{name}.csv", index=False)
        return folder, succeed(f"{FIT} --trees 30 --out model.aucforest")


def test_inspect_shows_rates_and_encodings(files):
    assert "3 columns, 2 of them categorical; 4 features" in files.stdout
    model = aucforest.load("model.aucforest")
    tree = run(f"inspect model.aucforest --text {model.encodings_.index('rates')}").stdout
    assert "merchant: rate <= 0." in tree
    words, counts = " ".join(succeed("inspect model.aucforest").stdout.split()), Counter(model.encodings_)
    assert set(counts) == {"sets", "rates"}
    encodings = f"encodings {'; '.join(f'{name}={n}' for name, n in counts.most_common())}"
    for text in ("4 features of 3 columns", "merchant: rate rate 0.", encodings):
        assert text in words
    content = read_json("inspect model.aucforest")
    assert content["encodings"] == counts
    assert [feature["kind"] for feature in content["features"]] == ["categorical", "numeric", "categorical", "rate"]
    assert len(content["features"][0]["categories"]) == 80


def test_a_report(files):
    succeed("report model.aucforest test.csv --target label --train train.csv --out report.html")
    page = Path("report.html").read_text()
    for text in ("merchant", "and by the encoding of columns of many categories", ">encodings</t"):
        assert text in page


@pytest.mark.parametrize("given", ["sets", "rates", "sets, rates"])
def test_the_encoding_is_an_option(files, given):
    succeed(f"{FIT} --trees 12 --categorical-encoding", given)
    model = aucforest.load("m")
    assert model.categorical_encoding == given.split(", ")
    assert list(dict.fromkeys(model.encodings_)) == ([] if given == "sets" else given.split(", "))


@pytest.mark.parametrize(("name", "batches"), [("accounts.csv", "--memory-limit 4GiB"), ("accounts.parquet", "")])
def test_rates_of_integers(files, name, batches):
    table = make_accounts().to_pandas()[["x", "account", "label"]]
    getattr(table, f"to_{Path(name).suffix[1:]}")(name, index=False)
    result = succeed(f"fit {name} --target label --positive b --out m --trees 30 {batches}")
    assert "2 columns, 0 of them categorical, 1 of integers with categories; 4 features" in result.stdout
    model = aucforest.load("m")
    table.assign(account=table.account.astype("Int64")).to_csv("integers.csv", index=False)
    for rows in (name, "integers.csv"):
        succeed(f"predict m {rows} --out predicted.csv")
        expected = model.predict_proba(table[["x", "account"]])[:, 1]
        np.testing.assert_allclose(pd.read_csv("predicted.csv").probability_b, expected, rtol=1e-12)


def test_a_stack_reads_rates(files):
    result = succeed(f"{FIT} --trees 30 --categorical-encoding rates --model stack")
    assert "3 columns, 2 of them categorical; 4 features" in result.stdout
    assert aucforest.load("m").members_["residual"].encodings_ == ["rates"] * 30
    assert read_json("inspect m")["encodings"] == {"rates": 30}


def test_unknown_encodings_are_wrong_calls(files):
    for given in ("codes", "sets,sets"):
        sentence = f"must be auto or some of sets, rates, interactions, each once, but is {given!r}"
        check_usage(run(f"{FIT} --categorical-encoding", given), sentence)


def test_numbers_as_categories(files):
    table = pd.read_csv("train.csv")
    table["code"] = np.random.default_rng(0).integers(10_000, 10_090, len(table))
    table.to_csv("train.csv", index=False)
    for option, is_categorical in (("", False), ("--categorical code", True)):
        succeed(f"{FIT} --trees 8 {option}")
        categories = aucforest.load("m").categories_
        assert (3 in categories) == is_categorical
    assert categories[3].tolist() == np.unique(table["code"]).astype(str).tolist()
    assert "Note" not in succeed("predict m train.csv").stderr
    table.to_parquet("codes.parquet")
    refused = run("fit codes.parquet --target label --out m --categorical code")
    check_refusal(refused, "--categorical: the column 'code' of codes.parquet is int64: store it as text")

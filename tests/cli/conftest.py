"""A fitted model and the files that go with it, made once."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tests.cli.data import mixed, succeed


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """train.csv, test.csv, test.parquet and model.aucforest of the table of every kind of column."""
    folder = tmp_path_factory.mktemp("cli")
    paths = {name: folder / name for name in ("train.csv", "test.csv", "test.parquet", "model.aucforest")}
    mixed(300, 0).to_csv(paths["train.csv"], index=False)
    test = mixed(250, 1)
    test.to_csv(paths["test.csv"], index=False)
    test.to_parquet(paths["test.parquet"])
    result = succeed(
        "fit", paths["train.csv"], "--target", "label", "--out", paths["model.aucforest"],
        "--drop", "id,weight", "--threshold", "gmean", "--trees", 20,
    )  # fmt: skip
    names = (path.name.replace(".", "_") for path in paths.values())
    return SimpleNamespace(**dict(zip(names, paths.values())), fitted=result)


@pytest.fixture(scope="session")
def stack(files):
    """The model file of a stack, the forest of which is that of the fixture `files` with more trees, and its JSON."""
    folder = files.train_csv.parent
    path, figures = folder / "stack.aucforest", folder / "stack.json"
    arguments = ["--drop", "id,weight", "--threshold", "gmean", "--trees", 30, "--model", "stack"]
    result = succeed("fit", files.train_csv, "--target", "label", "--out", path, *arguments, "--json", figures)
    return SimpleNamespace(path=path, figures=json.loads(figures.read_text()), fitted=result)


@pytest.fixture
def visits(tmp_path):
    """Customers, who have 5 visits each, on 60 days in random order."""
    random = np.random.default_rng(0)
    customer, days = np.repeat(random.permutation(60), 5), pd.date_range("2024-01-30", periods=60)
    frame = pd.DataFrame({
        "customer": [f"{number:03d}" for number in customer],
        "date": random.permutation(np.repeat(days, 5)).astype("M8[D]"),
        "width": random.normal(size=300) + customer % 2,
        "label": np.where(customer % 2, "yes", "no"),
    })  # fmt: skip
    path = tmp_path / "visits.csv"
    frame.to_csv(path, index=False)
    return path

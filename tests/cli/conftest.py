"""Fixtures: each test runs in a new folder. A model, a stack and their tables are made once and copied."""

import json
import shutil
from contextlib import chdir
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tests.cli.data import mixed, succeed

FIT = "fit train.csv --target label --drop id,weight --threshold gmean"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Return a folder with train.csv, test.csv, test.parquet and model.aucforest, and the result of `fit`."""
    folder, test = tmp_path_factory.mktemp("cli"), mixed(250, 1)
    with chdir(folder):
        mixed(300, 0).to_csv("train.csv", index=False)
        test.to_csv("test.csv", index=False)
        test.to_parquet("test.parquet")
        return folder, succeed(f"{FIT} --trees 20 --out model.aucforest")


@pytest.fixture
def files(made, tmp_path):
    """Copy the files of `made`, which a module may override, to the folder of the test; return the result of `fit`."""
    shutil.copytree(made[0], tmp_path, dirs_exist_ok=True)
    return made[1]


@pytest.fixture(scope="session")
def made_stack(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("stack") / "stack.aucforest"
    with chdir(made[0]), pytest.MonkeyPatch.context() as patch:
        patch.setattr("aucforest.estimators._stack_fit.LEAST_ROWS", 1)  # see tests/conftest.py
        fitted = succeed(f"{FIT} --trees 30 --model stack --json - --out", path, "--reference", path.with_name("r.csv"))
    return SimpleNamespace(path=path, figures=json.loads(fitted.stdout), said=fitted.stderr)


@pytest.fixture
def stack(files, made_stack, tmp_path):
    """Copy a stack to stack.aucforest; return its path, the JSON of `fit`, and the messages of `fit`."""
    shutil.copy(made_stack.path, tmp_path)
    return made_stack


@pytest.fixture
def visits():
    """Write visits.csv: customers with 5 visits each, on 60 days in random order."""
    random = np.random.default_rng(0)
    customer, days = np.repeat(random.permutation(60), 5), pd.date_range("2024-01-30", periods=60)
    frame = pd.DataFrame({
        "customer": [f"{number:03d}" for number in customer],
        "date": random.permutation(np.repeat(days, 5)).astype("M8[D]"), "width": random.normal(size=300) + customer % 2,
        "label": np.where(customer % 2, "yes", "no"),
    })  # fmt: skip
    frame.to_csv("visits.csv", index=False)

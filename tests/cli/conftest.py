"""A fitted model and the files that go with it, made once."""

from types import SimpleNamespace

import pytest

from tests.cli.data import mixed, run


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """train.csv, test.csv, test.parquet and model.aucforest of the table of every kind of column."""
    folder = tmp_path_factory.mktemp("cli")
    paths = {name: folder / name for name in ("train.csv", "test.csv", "test.parquet", "model.aucforest")}
    mixed(300, 0).to_csv(paths["train.csv"], index=False)
    test = mixed(250, 1)
    test.to_csv(paths["test.csv"], index=False)
    test.to_parquet(paths["test.parquet"])
    result = run(
        "fit", paths["train.csv"], "--target", "label", "--out", paths["model.aucforest"],
        "--drop", "id,weight", "--threshold", "gmean", "--trees", 20,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    names = (path.name.replace(".", "_") for path in paths.values())
    return SimpleNamespace(**dict(zip(names, paths.values())), fitted=result)

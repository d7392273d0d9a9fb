"""Settings of all tests, a connection to the database engine, and mapped files as on Windows."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# There is no deadline, because the first example may compile a kernel. .ci/run tests trees with the profile "thorough".
settings.register_profile("quick", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=50)
settings.load_profile("quick")

# Files that take long come first, so that no process works alone at the end.
_NAMES = "categorical_wide compile dask docs estimation forest.py forms job out_of_bag stacking thresholds tree.py"
_LONG = tuple(f"test_{name}" for name in _NAMES.split())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.path.name.startswith(_LONG))


@pytest.fixture(scope="session")
def engine() -> Iterator[Any]:
    from aucforest.tables.database import connect

    with connect() as connection:
        yield connection


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """Close the figures of a test, because matplotlib warns of many open figures."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="module", autouse=True)
def _boost_few_rows(request: pytest.FixtureRequest) -> Iterator[None]:
    """Stacks have boosted trees also for few rows. Tests of documentation pages, directly in tests/, are excluded."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent != Path(__file__).parent:
            patch.setattr("aucforest.estimators._stack_fit.LEAST_ROWS", 1)
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run each file in one process, and all files of tests/distributed in the same one, which starts the cluster."""
    from xdist.scheduler import LoadFileScheduling

    class OneCluster(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "the cluster" if "tests/distributed/" in file else file

    config.option.loadscopereorder = False  # keeps the order of `pytest_collection_modifyitems`
    return OneCluster(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture
def mapped_files_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to remove or replace a file while a memory map of it is open, as Windows does."""
    if sys.platform != "linux":
        pytest.skip("maps are read from /proc")

    def refuse_mapped(function: Any, index: int) -> Any:
        def call(*paths: Any, **options: Any) -> Any:
            path = os.fsdecode(paths[index])  # without its folder if a whole folder is removed
            if f"/{path.lstrip('/')}\n" in Path("/proc/self/maps").read_text():
                raise PermissionError(f"{path} is mapped")
            return function(*paths, **options)

        return call

    for name, index in (("unlink", 0), ("remove", 0), ("rename", 1), ("replace", 1)):
        monkeypatch.setattr(os, name, refuse_mapped(getattr(os, name), index))

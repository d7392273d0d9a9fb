"""Settings of all tests, and files as Windows has them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# the first example of a test may compile a kernel; .ci/run has the thorough profile for the tests of trees
settings.register_profile("quick", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=50)
settings.load_profile("quick")

# What takes longest is begun first, so that no process waits for another one at the end.
_NAMES = "compile dask docs forest.py forms job out_of_bag stacking thresholds tree.py"
_LONG = tuple(f"test_{name}" for name in _NAMES.split())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first."""
    items.sort(key=lambda item: not item.path.name.startswith(_LONG))


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """Close what a test has drawn; matplotlib warns of many open figures."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="module", autouse=True)
def _boost_few_rows(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let stacks have boosted trees for few rows, too, except in tests of pages, whose outputs users see."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent != Path(__file__).parent:
            patch.setattr("aucforest.estimators._stack_fit.LEAST_ROWS", 1)
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give whole files to processes, those of Dask to one of them: each would start a cluster."""
    from xdist.scheduler import LoadFileScheduling

    class OneCluster(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "the cluster" if "tests/distributed/" in file else file

    config.option.loadscopereorder = False  # which is by the number of tests
    return OneCluster(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture
def mapped_files_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file be removed or replaced while a map of it is open, as Windows does."""
    if sys.platform != "linux":
        pytest.skip("maps are read from /proc")

    def refuse_mapped(function: Any, index: int) -> Any:
        def call(*paths: Any, **options: Any) -> Any:
            path = os.fsdecode(paths[index])  # a name alone where a folder is emptied
            if f"/{path.lstrip('/')}\n" in Path("/proc/self/maps").read_text():
                raise PermissionError(f"{path} is mapped")
            return function(*paths, **options)

        return call

    for name, index in (("unlink", 0), ("remove", 0), ("rename", 1), ("replace", 1)):
        monkeypatch.setattr(os, name, refuse_mapped(getattr(os, name), index))

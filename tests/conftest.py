"""Settings of all tests."""

from typing import Any

import pytest
from hypothesis import settings

# the first example of a test may compile a kernel
settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")

# What takes longest is begun first, so that no process waits for another one at the end.
_LONG = ("test_dask", "test_reports", "test_model_parts", "test_forest.py", "test_docs", "test_forms", "test_resuming")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first."""
    items.sort(key=lambda item: not item.path.name.startswith(_LONG))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give whole files to processes, those with Dask in their names to one of them: each starts a cluster."""
    from xdist.scheduler import LoadFileScheduling

    class OneCluster(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "the cluster" if "/test_dask" in file else file

    config.option.loadscopereorder = False  # which is by the number of tests
    return OneCluster(config, log) if config.getoption("dist") == "loadfile" else None

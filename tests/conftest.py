"""Settings of all tests."""

from typing import Any

import pytest
from hypothesis import settings

# the first example of a test may compile a kernel
settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give whole files to processes, those with Dask in their names to one of them: each starts a cluster."""
    from xdist.scheduler import LoadFileScheduling

    class OneCluster(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "the cluster" if "/test_dask" in file else file

    return OneCluster(config, log) if config.getoption("dist") == "loadfile" else None

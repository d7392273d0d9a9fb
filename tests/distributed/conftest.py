"""A Dask cluster for all tests of this folder. It takes seconds to start."""

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

# hypothesis would import this module later. Python 3.11 can fail to parse it while a thread of Dask parses another one.
import hypothesis.internal.conjecture.optimiser  # noqa: F401
import pytest


@pytest.fixture(scope="package")
def client() -> Iterator[Any]:
    """Return the client of a cluster of two worker processes with one thread each."""
    import dask
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "memory_limit": "2GiB"}
    quiet = {"dashboard_address": ":0", "host": "127.0.0.1", "silence_logs": logging.CRITICAL}
    # The profiler of workers would take time a hundred times a second.
    unwatched = dask.config.set({"distributed.worker.profile.enabled": False})
    with unwatched, LocalCluster(**options, **quiet) as cluster, Client(cluster) as client:
        yield client


def wait_for(condition: Callable[[], bool]) -> bool:
    """Wait until a condition holds; return whether it does after at most 20 seconds."""
    end = time.monotonic() + 20.0
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()

"""A cluster for all tests of the session: it takes seconds to start."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    """Return a client of two workers with one thread each, in processes of their own."""
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "memory_limit": "2GiB"}
    quiet = {"dashboard_address": ":0", "host": "127.0.0.1", "silence_logs": logging.CRITICAL}
    with LocalCluster(**options, **quiet) as cluster, Client(cluster) as client:
        yield client

"""A cluster for all tests of the session: it takes seconds to start."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    """Return a client of two workers with one thread each, in processes of their own."""
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        LocalCluster(**options, host="127.0.0.1", memory_limit="2GiB", silence_logs=logging.CRITICAL) as cluster,
        Client(cluster) as client,
    ):
        yield client

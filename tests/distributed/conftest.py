"""A cluster for all tests of this folder, since it takes seconds to start; and files as Windows has them."""

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def mapped_files_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file be removed or replaced while a map of it is open, as Windows does."""
    if sys.platform != "linux":
        pytest.skip("maps are read from /proc")

    def refuse_mapped(function: Any, place: int) -> Any:
        def call(*paths: Any, **options: Any) -> Any:
            path = os.fsdecode(paths[place])  # a name alone where a folder is emptied
            if f"/{path.lstrip('/')}\n" in Path("/proc/self/maps").read_text():
                raise PermissionError(f"{path} is mapped")
            return function(*paths, **options)

        return call

    for name, place in (("unlink", 0), ("remove", 0), ("rename", 1), ("replace", 1)):
        monkeypatch.setattr(os, name, refuse_mapped(getattr(os, name), place))


@pytest.fixture(scope="package")
def client() -> Iterator[Any]:
    """Return a client of two workers with one thread each, in processes of their own; idle ones take time, too."""
    import dask
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "memory_limit": "2GiB"}
    quiet = {"dashboard_address": ":0", "host": "127.0.0.1", "silence_logs": logging.CRITICAL}
    # workers would look a hundred times a second at what they do
    unwatched = dask.config.set({"distributed.worker.profile.enabled": False})
    with unwatched, LocalCluster(**options, **quiet) as cluster, Client(cluster) as client:
        yield client

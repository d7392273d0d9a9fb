"""Tasks on a cluster: results and errors. If the cluster fails, all waits end."""

import asyncio
import operator
import threading
import time
from contextlib import closing
from unittest.mock import AsyncMock

import pytest
from distributed import Client, Event

from aucforest.distributed import ClusterError, VersionMismatchError
from aucforest.distributed import _executor as _dask_executor
from aucforest.distributed._executor import DaskExecutor, check_versions, default_client, describe_code


def raise_error(error):
    raise error


@pytest.fixture
def executor(client):
    with closing(DaskExecutor(client, "Take more memory.")) as executor:
        yield executor


@pytest.fixture
def other_client(client):
    with Client(client.scheduler.address) as other:
        yield other


def test_results_in_the_order_of_completion_or_submission(executor):
    numbers = {executor.submit(operator.mul, number, 2): number for number in range(5)}
    submitted, found = list(numbers), []
    for future, result in executor.as_completed(submitted):
        found.append((numbers[future], result))
        if len(found) == 2:  # futures can be added in the loop
            numbers[executor.submit(operator.mul, 5, 2)] = 5
            submitted.append(list(numbers)[-1])
    assert sorted(found) == [(number, 2 * number) for number in range(6)]
    futures = list(numbers)
    assert executor.gather(futures[::-1]) == [10, 8, 6, 4, 2, 0]
    # Futures can be gathered again, and an iterator need not be exhausted.
    assert next(executor.as_completed(futures[3:4])) == (futures[3], 6)
    assert list(executor.as_completed([])) == executor.gather([]) == []


def test_errors_of_tasks_are_raised(executor):
    futures = [executor.submit(time.sleep, 0.0), executor.submit(raise_error, KeyError("gone"))]
    for wait in (executor.gather, lambda futures: list(executor.as_completed(futures))):
        with pytest.raises(KeyError, match="gone"):
            wait(futures)
    with pytest.raises(ClusterError, match=r"ran out of memory: .* Take more memory\."):
        executor.gather([executor.submit(raise_error, MemoryError("no room"))])


def test_tasks_in_order_start_in_order(executor):
    """A few tasks are out of order, because each worker has some of them."""

    def nap_from(seconds, after):
        begun = time.monotonic()
        time.sleep(seconds)
        return begun

    after = executor.submit(time.sleep, 0.5)
    begun = executor.gather([executor.submit(nap_from, 0.02, after, in_order=True) for _ in range(40)])
    assert max(begun[:15]) < min(begun[25:])


def test_results_of_workers_that_cannot_be_reached_go_through_the_scheduler(executor, other_client, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(executor._client.scheduler, "gather", None)
        assert executor.gather([executor.submit(sum, [1, 2])]) == [3]
    for setting, is_direct in ((False, False), (None, True)):
        other_client.direct_to_workers = setting
        assert DaskExecutor(other_client)._is_direct == is_direct
    connect, workers = other_client.rpc.connect, other_client.scheduler_info()["workers"]
    closed = dict.fromkeys(workers, "tcp://127.0.0.1:1")
    monkeypatch.setattr(other_client.rpc, "connect", lambda address: connect(closed.get(address, address)))
    executor = DaskExecutor(other_client)
    assert not executor._is_direct
    assert executor.gather([executor.submit(sum, [1, 2])]) == [3]


def test_a_cancelled_request_raises_an_error(executor, monkeypatch):
    cancelled = AsyncMock(side_effect=asyncio.CancelledError)
    monkeypatch.setattr(_dask_executor, "_CHECK_SECONDS", 0.05)
    future, waiting = executor.submit(sum, [1]), executor.submit(time.sleep, 3.0)
    with monkeypatch.context() as patch:
        patch.setattr(executor._client, "_gather", cancelled)
        with pytest.raises(ClusterError, match="cancelled or lost"):
            executor.gather([future])
    assert executor.gather([future]) == [1]
    monkeypatch.setattr(executor._client.scheduler, "identity", cancelled)
    with pytest.raises(ClusterError, match="cancelled or lost"):
        executor.gather([waiting])


@pytest.mark.parametrize(("workers", "sentence"), [
    (None, "the Dask scheduler does not answer"), ({}, r"has done nothing for .*: there are no workers"),
])  # fmt: skip
def test_waiting_ends_without_a_scheduler_or_workers(executor, monkeypatch, workers, sentence):
    async def identity():
        await asyncio.sleep(10.0 if workers is None else 0.0)
        return {"workers": workers}

    monkeypatch.setattr(_dask_executor, "_CHECK_SECONDS", 0.05)
    monkeypatch.setattr(_dask_executor, "_IDLE_SECONDS", 0.1)
    monkeypatch.setattr(executor._client.scheduler, "identity", identity)
    with pytest.raises(ClusterError, match=sentence):
        executor.gather([executor.submit(time.sleep, 3.0)])


def test_an_asynchronous_or_missing_client_is_refused(client, monkeypatch):
    async def try_it():
        async with Client(client.scheduler.address, asynchronous=True) as other:
            DaskExecutor(other)

    with pytest.raises(TypeError, match="client must not be asynchronous"):
        asyncio.run(try_it())
    assert default_client(None) is client
    assert default_client("given") == "given"
    monkeypatch.setattr("distributed.default_client", lambda: raise_error(ValueError("No clients found")))
    with pytest.raises(ClusterError, match="there is no Dask client"):
        default_client(None)


def test_a_closed_client_raises_an_error(other_client):
    executor = DaskExecutor(other_client)
    futures = [executor.submit(time.sleep, 0.5) for _ in range(8)]
    threading.Timer(0.2, other_client.close).start()
    with pytest.raises(ClusterError):
        executor.gather(futures)
    for use, *arguments in ((executor.submit, time.sleep, 0.0), (executor.gather, futures)):
        with pytest.raises(ClusterError, match="the Dask client is clos"):
            use(*arguments)
    executor.close()


@pytest.mark.slow
def test_waiting_ends_if_the_memory_of_workers_is_full(client, monkeypatch):
    def say_and_nap(name, seconds):
        Event(name).set()
        time.sleep(seconds)

    def set_pause_fraction(fraction, dask_worker):
        dask_worker.memory_manager.memory_pause_fraction = fraction

    monkeypatch.setattr(_dask_executor, "_CHECK_SECONDS", 0.1)
    monkeypatch.setattr(_dask_executor, "_IDLE_SECONDS", 1.0)
    executor = DaskExecutor(client, "Take more memory.")
    running = executor.submit(say_and_nap, "begun", 2.0)
    Event("begun", client).wait()
    try:
        # A worker with full memory is paused.
        client.run(set_pause_fraction, 1e-6)
        while client.sync(client.scheduler.ncores_running):
            time.sleep(0.1)
        future = executor.submit(time.sleep, 0.0)
        assert executor.gather([running]) == [None]
        with pytest.raises(ClusterError, match=r"the memory of all workers is full\. Take more memory\."):
            executor.gather([future])
    finally:
        client.run(set_pause_fraction, 0.8)
    assert DaskExecutor(client).gather([future]) == [None]


def test_workers_of_other_versions_are_refused(client, executor, monkeypatch):
    assert {"numpy", "numba", "the code of aucforest"} < describe_code().keys()
    versions = describe_code() | {"numba": "0.1"}
    monkeypatch.setattr(_dask_executor, "describe_code", lambda: versions)
    with pytest.raises(VersionMismatchError, match=r"numba is 0\.1 here, but .* on tcp://127\.0\.0\.1"):
        DaskExecutor(client)
    executor._versions = versions
    with pytest.raises(VersionMismatchError, match="on a worker that was added"):
        executor.gather([executor.submit(time.sleep, 0.0)])
    with pytest.raises(VersionMismatchError, match=r"more is 1\.0 here, but missing on worker 1"):
        check_versions(versions | {"more": "1.0"}, versions, "worker 1")

"""Tasks on a cluster: results, errors by name, and an end within bounded time when the cluster is gone."""

import asyncio
import operator
import threading
import time
import warnings
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from distributed import Client, Event, LocalCluster

from aucforest.distributed import ClusterError, VersionMismatchError
from aucforest.distributed import _executor as _dask_executor
from aucforest.distributed import _source as _dask_source
from aucforest.distributed._executor import DaskExecutor, default_client
from aucforest.fitting.executor import as_completed

Pair = namedtuple("Pair", "first second")


@dataclass(frozen=True)
class Held:
    array: Any


def read_only(n):
    array = np.arange(n)
    array.flags.writeable = False
    return array


def are_writable(*values):
    return [value.flags.writeable for value in values]


def are_inner_writable(pair, held):
    return are_writable(pair.first[0], pair.second, held.array)


def raise_error(error):
    raise error


def nap(seconds):
    time.sleep(seconds)


def say_and_nap(name, seconds):
    Event(name).set()
    nap(seconds)


def nap_from(seconds, after):
    begun = time.monotonic()
    nap(seconds)
    return begun


def meet():
    barrier, places = threading.Barrier(2, timeout=10), []

    def choose(*args):
        places.extend(args[-1](lambda _: barrier.wait(), [0, 1]))

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr(_dask_source, "choose_coding", choose)
        _dask_source._choose_coding(None, None, None)
    return sorted(places) == [0, 1]


@pytest.fixture
def executor(client):
    executor = DaskExecutor(client, "Take more memory.")
    yield executor
    executor.cancel()


@pytest.fixture
def other_client(client):
    with Client(client.scheduler.address) as other:
        yield other


def test_results_come_as_they_end_or_in_order(executor):
    futures = [executor.submit(operator.mul, number, 2) for number in range(5)]
    assert sorted(as_completed(executor, futures)) == [(number, 2 * number) for number in range(5)]
    assert executor.gather(futures[::-1]) == [8, 6, 4, 2, 0]
    # Futures may be asked for again, and by the first answer alone.
    assert next(iter(as_completed(executor, futures[3:]))) == (0, 6)


def test_tasks_get_what_futures_hold(executor):
    shared = executor.share([1, 2])
    doubled = executor.submit(operator.mul, shared, 2)
    assert executor.gather([executor.submit(sum, [executor.share(3), executor.share(4)]), doubled]) == [7, [1, 2, 1, 2]]


def test_the_cluster_is_described(executor):
    assert executor.n_workers == 2
    assert executor.memory == 2**31
    assert executor.cluster() == (executor.cluster().__class__)(n_workers=2, n_threads=2, memory=2**31)


def test_tasks_may_write_to_arrays(executor):
    array = executor.submit(read_only, 5)
    assert executor.gather([executor.submit(are_writable, array, array)]) == [[True, True]]
    frozen = read_only(3)
    inner = executor.submit(are_inner_writable, Pair([frozen], frozen), Held(frozen))
    assert executor.gather([inner]) == [[True, True, True]]


def test_errors_of_tasks_are_raised_as_they_are(executor):
    futures = [executor.submit(nap, 0.0), executor.submit(raise_error, KeyError("gone"))]
    with pytest.raises(KeyError, match="gone"):
        executor.gather(futures)
    with pytest.raises(KeyError, match="gone"):
        list(as_completed(executor, futures))


def test_tasks_in_order_begin_in_order(executor):
    """Workers have some tasks each, and so may those few change places."""
    after = executor.submit(nap, 0.5)
    begun = executor.gather([executor.submit(nap_from, 0.02, after, in_order=True) for _ in range(40)])
    assert max(begun[:15]) < min(begun[25:])


def test_results_do_not_go_through_the_scheduler(executor, monkeypatch):
    def refuse(*args, **options):
        raise AssertionError

    monkeypatch.setattr(executor._client.scheduler, "gather", refuse)
    assert executor.gather([executor.submit(sum, [1, 2])]) == [3]


def test_workers_that_cannot_be_reached_answer_through_the_scheduler(other_client, monkeypatch):
    other_client.direct_to_workers = False
    assert not DaskExecutor(other_client)._is_direct
    other_client.direct_to_workers = None
    assert DaskExecutor(other_client)._is_direct
    connect, workers = other_client.rpc.connect, other_client.scheduler_info()["workers"]
    closed = dict.fromkeys(workers, "tcp://127.0.0.1:1")
    monkeypatch.setattr(other_client.rpc, "connect", lambda address: connect(closed.get(address, address)))
    executor = DaskExecutor(other_client)
    assert not executor._is_direct
    assert executor.gather([executor.submit(sum, [1, 2])]) == [3]


def test_too_little_memory_is_explained(executor):
    with pytest.raises(ClusterError, match=r"ran out of memory: .* Take more memory\."):
        executor.gather([executor.submit(raise_error, MemoryError("no room"))])


def test_a_cancelled_future_is_an_error(executor):
    futures = [executor.submit(nap, 0.5) for _ in range(8)]
    threading.Timer(0.2, executor.cancel).start()
    with pytest.raises(ClusterError, match="cancelled"):
        executor.gather(futures)


def test_a_question_that_is_cancelled_is_an_error(executor, monkeypatch):
    async def cancelled(*args, **options):
        raise asyncio.CancelledError

    future = executor.submit(sum, [1])
    with pytest.raises(ClusterError, match=r"the Dask scheduler does not answer: .* was closed"):
        executor._ask(cancelled)
    monkeypatch.setattr(executor._client, "_gather", cancelled)
    with pytest.raises(ClusterError, match=r"cancelled or lost: .* was closed"):
        executor.gather([future])


def test_an_asynchronous_client_is_refused(client):
    async def try_it():
        async with Client(client.scheduler.address, asynchronous=True) as other:
            DaskExecutor(other)

    with pytest.raises(TypeError, match="client must be one whose answers are waited for"):
        asyncio.run(try_it())


@pytest.mark.slow
def test_all_threads_of_a_worker_choose_bins():
    """Two threads of another cluster meet at a barrier, in a process in which joblib allows one."""
    with (
        LocalCluster(1, threads_per_worker=2, processes=True, dashboard_address=":0", host="127.0.0.1") as cluster,
        Client(cluster, set_as_default=False) as other,
    ):
        executor = DaskExecutor(other)
        assert executor.gather([executor.submit(meet)]) == [True]


def test_a_client_that_is_closed_is_an_error(other_client):
    executor = DaskExecutor(other_client)
    futures = [executor.submit(nap, 0.5) for _ in range(8)]
    threading.Timer(0.2, other_client.close).start()
    with pytest.raises(ClusterError):
        executor.gather(futures)
    with pytest.raises(ClusterError, match="the Dask client is clos"):
        executor.submit(nap, 0.0)
    executor.cancel()


def test_without_workers_there_is_an_end(executor, monkeypatch):
    monkeypatch.setattr(_dask_executor, "_LOOK", 0.05)
    monkeypatch.setattr(_dask_executor, "_NO_WORKERS", 0.1)
    future = executor.submit(nap, 0.5)
    monkeypatch.setattr(executor, "_ask", lambda question: {"workers": {}})
    with pytest.raises(ClusterError, match=r"has done nothing for .*: there are no workers"):
        executor.gather([future])


def test_workers_without_memory_are_not_waited_for(client, monkeypatch):
    monkeypatch.setattr(_dask_executor, "_LOOK", 0.1)
    monkeypatch.setattr(_dask_executor, "_NO_WORKERS", 1.0)
    executor = DaskExecutor(client, "Take more memory.")
    running = executor.submit(say_and_nap, "begun", 2.0)
    Event("begun", client).wait()
    try:
        # what a worker does whose memory is full
        client.run(_set_pause_fraction, 1e-6)
        while client.sync(client.scheduler.ncores_running):
            time.sleep(0.1)
        future = executor.submit(nap, 0.0)
        assert executor.gather([running]) == [None]
        with pytest.raises(ClusterError, match=r"the memory of all workers is full\. Take more memory\."):
            executor.gather([future])
    finally:
        client.run(_set_pause_fraction, 0.8)
    assert executor.gather([future]) == [None]


def _set_pause_fraction(fraction, dask_worker):
    dask_worker.memory_manager.memory_pause_fraction = fraction


def test_workers_of_other_versions_are_refused(client, monkeypatch):
    versions = _dask_executor.find_versions() | {"numba": "0.1"}
    monkeypatch.setattr(_dask_executor, "find_versions", lambda: versions)
    with pytest.raises(VersionMismatchError, match=r"numba is 0\.1 here, but .* on tcp://127\.0\.0\.1"):
        DaskExecutor(client)
    monkeypatch.setattr(_dask_executor, "_report", _dask_executor._identity)
    monkeypatch.setattr(client, "run", lambda *_, **__: {next(iter(client.scheduler_info()["workers"])): (versions, 1)})
    late = DaskExecutor(client)
    with pytest.raises(VersionMismatchError, match="on a worker that was added"):
        late.gather([late.submit(nap, 0.0)])


def test_without_a_client_there_is_one_sentence(client, monkeypatch):
    assert default_client(None) is client
    assert default_client("given") == "given"
    monkeypatch.setattr("distributed.default_client", lambda: raise_error(ValueError("No clients found")))
    with pytest.raises(ClusterError, match="there is no Dask client"):
        default_client(None)

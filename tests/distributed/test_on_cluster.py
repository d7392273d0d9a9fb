"""Failures of workers, the client and the cluster: a fit ends with the forest of a fit in memory, or with an error."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster, wait
from tornado.ioloop import PeriodicCallback

from aucforest import AUCForestClassifier
from aucforest.distributed import ClusterError, DaskAUCForestClassifier
from aucforest.distributed._executor import DaskExecutor
from tests.estimators.data import assert_same_fit
from tests.fitting.forests import chunked, make_rows

pytestmark = pytest.mark.slow

X, Y = make_rows()
# With so many trees, nearly all rows are out of bag for some tree.
OPTIONS = {"n_estimators": 24, "max_depth": 5, "threshold": "f1", "random_state": 0}


@pytest.fixture(scope="module")
def local():
    return AUCForestClassifier(**OPTIONS).fit(X, Y)


@pytest.fixture(autouse=True)
def _hard_limit():
    def fail(*_):
        raise AssertionError("this hangs")

    signal.signal(signal.SIGALRM, fail)
    signal.alarm(120)
    yield
    signal.alarm(0)


@contextmanager
def cluster_of(n_workers=2):
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "host": "127.0.0.1"}
    with (
        # Connections to dead workers time out after 3 instead of 30 seconds.
        dask.config.set({"distributed.comm.timeouts.connect": "3s"}),
        LocalCluster(n_workers=n_workers, silence_logs=logging.CRITICAL, **options) as cluster,
        Client(cluster) as client,
    ):
        yield cluster, client


@pytest.fixture(scope="module")
def hardy_cluster():
    """Return a cluster whose workers are started again when they die."""
    with cluster_of() as (cluster, client):
        yield cluster, client


@contextmanager
def kept_up(cluster):
    """Also replace dead workers whose nannies have ended."""
    done = threading.Event()

    def scale():
        while not done.wait(0.5):
            cluster.scale(2)

    thread = threading.Thread(target=scale, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture
def hardy(hardy_cluster):
    """Return the client of the cluster, once all workers are running."""
    cluster, client = hardy_cluster
    # A worker that dies while it starts is not restarted. It takes time until a nanny that has ended is forgotten.
    with kept_up(cluster):
        client.wait_for_workers(2)
        nannies = cluster.workers.values()
        while not all(nanny.process and nanny.process.status.name == "running" for nanny in list(nannies)):
            time.sleep(0.05)
    return client


def fit(client, **options):
    return DaskAUCForestClassifier(**OPTIONS, **options, client=client).fit(*chunked(4, X, Y))


def die_once(flag, function, *args):
    try:
        Path(flag).touch(exist_ok=False)
    except FileExistsError:
        return function(*args)
    os.kill(os.getpid(), signal.SIGKILL)


def die_always(function, *args):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def at(monkeypatch):
    """Return a function that intercepts the first task of each of the named functions.

    `instead` returns arguments that are put before those of the task, and `do` is called when the task is submitted.
    """
    submit, waiting = DaskExecutor.submit, set()

    def install(*names, instead=lambda _: (), do=lambda: None):
        waiting.update(names)

        def intercept(self, function, *args, **options):
            name = function.__name__
            if name not in waiting:
                return submit(self, function, *args, **options)
            waiting.remove(name)
            do()
            return submit(self, *instead(name), function, *args, **options)

        monkeypatch.setattr(DaskExecutor, "submit", intercept)
        return waiting

    return install


@pytest.mark.parametrize(("phases", "strategy"), [
    (["read_partition_target", "grow"], "auto"), (["summarize_values", "join_parts"], "auto"),
    (["encode_partition", "add_out_of_bag"], "auto"), (["sample", "grow_samples"], "gather"),
])  # fmt: skip
def test_a_worker_dies_in_each_phase(hardy, local, at, tmp_path, phases, strategy):
    waiting = at(*phases, instead=lambda name: (die_once, str(tmp_path / name)))
    with kept_up(hardy.cluster):
        assert_same_fit(local, fit(hardy, strategy=strategy))
    assert not waiting
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(phases)


def test_all_workers_die(hardy, local, at):
    pids = list(hardy.run(os.getpid).values())

    def kill_all():
        for pid in pids:
            with suppress(ProcessLookupError):  # the nanny of an earlier test may have replaced the worker
                os.kill(pid, signal.SIGKILL)

    at("grow", do=threading.Timer(0.1, kill_all).start)
    with kept_up(hardy.cluster):
        assert_same_fit(local, fit(hardy))
    assert not set(pids) & set(hardy.run(os.getpid).values())


def test_a_worker_freezes(hardy, local, at):
    # A worker does not answer while it imports packages and loads compiled code. A first fit has done this.
    fit(hardy)
    pid = min(hardy.run(os.getpid).values())
    at("grow", do=lambda: os.kill(pid, signal.SIGSTOP))
    before = hardy.run_on_scheduler(set_worker_ttl, 5)
    assert_same_fit(local, fit(hardy))
    hardy.run_on_scheduler(set_worker_ttl, before)
    assert pid not in hardy.run(os.getpid).values()


def test_a_worker_without_a_nanny_freezes(tmp_path):
    """Requests for its result are not answered until the scheduler gives up the worker."""
    with cluster_of(0) as (cluster, client):
        command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path)]
        processes = [subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL) for _ in range(2)]
        try:
            client.wait_for_workers(2)
            executor = DaskExecutor(client)
            assert executor._is_direct
            future = executor.submit(os.getpid)
            wait(future)
            (address,) = client.who_has([future])[future.key]
            pids = client.run(os.getpid)
            client.run_on_scheduler(set_worker_ttl, 3)
            os.kill(pids.pop(address), signal.SIGSTOP)
            assert executor.gather([future]) == list(pids.values())
        finally:
            for process in processes:
                process.kill()
                process.wait()


def set_worker_ttl(seconds, dask_scheduler):
    """Change the seconds after which a running scheduler gives up workers, and return the old value."""
    before, dask_scheduler.worker_ttl = dask_scheduler.worker_ttl, seconds
    callbacks = dask_scheduler.periodic_callbacks
    callbacks["worker-ttl"].stop()
    callbacks["worker-ttl"] = PeriodicCallback(dask_scheduler.check_worker_ttl, 1000)
    callbacks["worker-ttl"].start()
    return before


def test_workers_come_and_go(local, at, monkeypatch):
    with cluster_of(1) as (cluster, client):
        first, gather = next(iter(client.ncores())), DaskExecutor.gather

        def add():
            cluster.scale(2)
            client.wait_for_workers(2)

        changes = iter([add, lambda: client.retire_workers([first])])

        def change(self, futures):
            found = gather(self, futures)
            next(changes, int)()
            return found

        monkeypatch.setattr(DaskExecutor, "gather", change)
        assert_same_fit(local, fit(client))
        assert len(client.ncores()) == 1
        assert first not in client.ncores()
        # Finally, the scheduler is closed, too.
        at("encode_partition", do=threading.Timer(0.05, cluster.close).start)
        forest = DaskAUCForestClassifier(2000, random_state=0, client=client)
        with pytest.raises(ClusterError):
            forest.fit(*chunked(4, X, Y))
        assert not hasattr(forest, "trees_")


def test_the_error_of_a_task_that_kills_its_workers_has_advice(hardy, at):
    hardy.run_on_scheduler(allow_failures, 0)
    at("grow", instead=lambda _: (die_always,))
    with pytest.raises(ClusterError, match=r"a worker died .* strategy='replicate' needs about .* n_workers="):
        fit(hardy)
    hardy.run_on_scheduler(allow_failures, 3)


def allow_failures(number, dask_scheduler):
    dask_scheduler.allowed_failures = number

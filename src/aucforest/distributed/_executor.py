"""An executor of tasks on a Dask cluster, and its errors."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, wait
from functools import cache
from itertools import count
from typing import Any
from uuid import uuid4
from weakref import WeakSet

from aucforest._sources import digest_sources
from aucforest.distributed._collections import import_dask, import_distributed
from aucforest.distributed._plan import Workers
from aucforest.fitting.job import find_versions

_CHECK_SECONDS = 1.0  # seconds between checks of the cluster
# A fit fails after so many seconds without an active worker. Batch systems and clouds take minutes to start workers.
_IDLE_SECONDS = 300.0
_MERGED = 8  # maximum number of results that a task merges


class ClusterError(RuntimeError):
    """Raised if a Dask cluster has too few workers or too little memory, or if the connection to it is lost."""


class VersionMismatchError(ClusterError):
    """Raised if a worker has other package versions than the client."""


class DaskExecutor:
    """Runs tasks on a Dask cluster. If a worker is lost, Dask computes its results again.

    Dask's functions for waiting do not return if the cluster has failed. Therefore a watchdog runs until `close`: a
    coroutine that raises an error if no worker has been active for `_IDLE_SECONDS`. All waits then raise this error.

    `advice` is appended to errors about memory or workers. The constructor raises ClusterError if there is no worker,
    and VersionMismatchError if a worker has other versions of packages than this process. Workers may join later, so
    each task checks the versions of its worker.
    """

    def __init__(self, client: Any, advice: str = "") -> None:
        if client.asynchronous:
            raise TypeError("client must not be asynchronous: create it without asynchronous=True")
        self.advice, self._client, self._distributed = advice, client, import_distributed()
        self._name, self._numbers, self._versions = uuid4().hex, count(), describe_code()
        self._futures: WeakSet[Any] = WeakSet()
        self._threads: dict[str, int] = {}
        self._check_running()
        self._watchdog = asyncio.run_coroutine_threadsafe(self._watch(), client.loop.asyncio_loop)
        try:
            reports = self._wait_for(self._collect_reports)
            if not reports:
                raise ClusterError("the Dask cluster has no workers")
            for worker, (versions, _) in reports.items():
                check_versions(self._versions, versions, worker)
        except BaseException:
            self.close()
            raise
        self.memory = min(memory for _, memory in reports.values())

    def workers(self) -> Workers:
        # Workers may have left since the executor was created.
        return Workers(max(1, len(self._threads)), max(1, sum(self._threads.values())), self.memory)

    def submit(self, function: Callable[..., Any], *args: Any, in_order: bool = False) -> Any:
        """Return the future of a call of a module-level function; with `in_order`, earlier tasks have priority.

        A task may run twice, so it must not change its arguments. Futures among the arguments, and in lists, are
        replaced by their results.
        """
        self._check_running()
        # The key contains the name of the function. Dask spreads tasks whose keys have the same name over all workers.
        key = f"{function.__name__}-{self._name}", next(self._numbers)
        # Tasks that are submitted within `fifo_timeout` have the same priority.
        options = {"key": key, "pure": False, "fifo_timeout": 0 if in_order else "100ms"}
        # `share` submits large arguments, about which Dask would warn.
        with import_dask().config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
            future = self._client.submit(_run, self._versions, function, *args, **options)
        self._futures.add(future)
        return future

    def share(self, value: Any) -> Any:
        """Store a value on a worker, and return its future, which can be an argument of many tasks."""
        return self.submit(identity, value)

    def merge(self, function: Callable[..., Any], futures: list[Any], *args: Any) -> Any:
        """Return the future of all results merged by function(list of results, *args), a few in each call."""
        return merge_in_groups(lambda group: self.submit(function, group, *args), futures)

    def compute(self, *columns: list[Any]) -> list[list[Any]]:
        """Return the futures of several lists of delayed objects, which are computed together."""
        self._check_running()
        futures = self._client.compute([delayed for column in columns for delayed in column])
        self._futures.update(futures)
        remaining = iter(futures)
        return [[next(remaining) for _ in column] for column in columns]

    def as_completed(self, futures: list[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield futures and results in the order of completion; errors of tasks are raised.

        The list is emptied. The caller may append further futures to the list between results.
        """
        pending = self._distributed.as_completed(loop=self._client.loop)
        while futures or not pending.is_empty():
            pending.update(futures)
            futures.clear()
            batch = [self._wait_for(pending.__anext__), *pending.next_batch(block=False)]
            yield from zip(batch, self.gather(batch))

    def gather(self, futures: list[Any]) -> list[Any]:
        """Return all results in order; errors of tasks are raised."""
        return list(self._wait_for(lambda: self._client.gather(futures, direct=self._is_direct, asynchronous=True)))

    def close(self) -> None:
        """Release all futures, so that Dask cancels their tasks.

        ``Client.cancel`` is not used, because it would also cancel other computations with the same collections, and it
        would close the connection if a result has been released.
        """
        for future in list(self._futures):
            future.release()
        self._watchdog.cancel()

    def _wait_for(self, function: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Return the result of a coroutine; errors of tasks are raised, and ClusterError if the cluster fails."""
        self._check_running()
        result = asyncio.run_coroutine_threadsafe(function(), self._client.loop.asyncio_loop)
        try:
            # Each wait is short, because a wait cannot be interrupted on Windows.
            while not wait((result, self._watchdog), _CHECK_SECONDS, FIRST_COMPLETED).done:
                pass
            return (result if result.done() else self._watchdog).result()
        except (self._distributed.scheduler.KilledWorker, MemoryError) as error:
            raise ClusterError(f"a worker died or ran out of memory: {error} {self.advice}".strip()) from error
        except Exception as error:
            is_lost = isinstance(error, CancelledError | self._distributed.comm.CommClosedError)
            if is_lost or (self._client.status != "running" and not isinstance(error, ClusterError)):
                raise ClusterError(f"the Dask futures were cancelled or lost: {error}") from error
            raise
        finally:
            result.cancel()

    def _check_running(self) -> None:
        if self._client.status != "running":
            raise ClusterError(f"the Dask client is {self._client.status}: it is not connected to a scheduler")

    async def _collect_reports(self) -> dict[str, tuple[dict[str, str], int]]:
        """Return the reports of the workers by address, and set `_is_direct`: whether this process can reach them."""
        reports = await self._client.run(_report, on_error="return", asynchronous=True)
        await self._update_workers()
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                await asyncio.gather(*(self._client.rpc(worker).identity() for worker in self._threads))
            self._is_direct = self._client.direct_to_workers is not False
        except Exception:
            self._is_direct = False
        return {worker: report for worker, report in reports.items() if isinstance(report, tuple)}

    async def _watch(self) -> None:
        """Check the cluster until no worker has been active for `_IDLE_SECONDS`, then raise ClusterError."""
        idle = 0.0
        while idle < _IDLE_SECONDS:
            await asyncio.sleep(_CHECK_SECONDS)
            workers = await self._update_workers()
            idle = 0.0 if any(map(_is_active, workers.values())) else idle + _CHECK_SECONDS
        why = "the memory of all workers is full" if workers else "there are no workers"
        raise ClusterError(f"the Dask cluster has done nothing for {idle:.0f} s: {why}. {self.advice}".strip())

    async def _update_workers(self) -> dict[str, dict[str, Any]]:
        """Return the workers that the scheduler has, and record their threads."""
        self._check_running()
        try:
            async with asyncio.timeout(_IDLE_SECONDS):
                workers: dict[str, dict[str, Any]] = (await self._client.scheduler.identity())["workers"]
        except (OSError, RuntimeError) as error:
            raise ClusterError(f"the Dask scheduler does not answer: {error}") from error
        for lost in self._threads.keys() - workers.keys():
            # Close the connection here, because a frozen worker does not close it.
            self._client.rpc.remove(lost)
        self._threads = {worker: properties["nthreads"] for worker, properties in workers.items()}
        return workers


def merge_in_groups(merge: Callable[[list[Any]], Any], results: list[Any]) -> Any:
    """Return all results merged by merge(list of results), a few in each call."""
    while len(results) > 1:
        results = [merge(results[i : i + _MERGED]) for i in range(0, len(results), _MERGED)]
    return results[0]


def watch_task() -> Callable[[], bool]:
    """Return a function that tells whether the current task was cancelled."""
    worker = import_distributed().get_worker()
    task = worker.state.tasks[worker.get_current_task()]
    return lambda: task.state == "cancelled"


def default_client(client: Any) -> Any:
    """Return the given client or the current one; raise ClusterError if there is none."""
    if client is not None:
        return client
    try:
        return import_distributed().default_client()
    except ValueError:
        raise ClusterError("there is no Dask client: create a distributed.Client, or pass one as client") from None


@cache  # every task calls it
def describe_code() -> dict[str, str]:
    """Return the versions of the packages that determine the trees, and a digest of the sources of aucforest."""
    return {**find_versions(), "the code of aucforest": digest_sources(b"")[:12]}


def check_versions(versions: dict[str, str], worker_versions: dict[str, str], worker: str) -> None:
    """Raise VersionMismatchError, with the first difference, if a worker has other versions than this process."""
    for name, version in versions.items():
        if (other := worker_versions.get(name, "missing")) != version:
            raise VersionMismatchError(f"{name} is {version} here, but {other} on {worker}: install the same version")


def identity(value: Any) -> Any:
    """Return the value. As a task, this function stores the value on a worker."""
    return value


def _run(versions: dict[str, str], function: Callable[..., Any], *args: Any) -> Any:
    """Call a function after a check of the versions, because workers may join later."""
    check_versions(versions, describe_code(), "a worker that was added")
    return function(*args)


def _report(dask_worker: Any) -> tuple[dict[str, str], int]:
    """Return the versions of a worker and the bytes of its memory."""
    memory = dask_worker.memory_manager.memory_limit or import_distributed().system.MEMORY_LIMIT
    return describe_code(), int(memory)


def _is_active(worker: dict[str, Any]) -> bool:
    """Return whether a worker accepts or executes tasks. A worker with full memory does not accept any."""
    counts = worker["metrics"].get("task_counts", {})
    return worker["status"] == "running" or counts.get("executing", 0) > 0

"""Where tasks run when they run on a Dask cluster."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import fields, is_dataclass, replace
from functools import partial
from itertools import pairwise
from operator import is_
from time import monotonic
from typing import Any
from uuid import uuid4
from weakref import WeakSet

import numpy as np

from aucforest._optional import import_optional
from aucforest.distributed._errors import ClusterError, check_versions
from aucforest.fitting.job import find_versions
from aucforest.fitting.plan import Workers

# Seconds between two looks at whether the cluster is still there, and until one whose workers do nothing is given up:
# schedulers of batch jobs and clouds take minutes to start some.
_LOOK, _NO_WORKERS = 1.0, 300.0
_ENDS = ("finished", "error", "cancelled")


class DaskExecutor:
    """Tasks as futures that Dask can compute anew: what a lost worker held is lost for a moment only.

    Parameters
    ----------
    client : distributed.Client
    advice : str
        What an error says of too little memory: how much there must be, and what to change.

    Raises
    ------
    ClusterError
        Without a worker.
    VersionMismatchError
        If a worker has other versions of the packages than this process; one that comes later is told by its first
        task.
    """

    def __init__(self, client: Any, advice: str = "") -> None:
        self.advice = advice
        self._client = client
        self._distributed = import_distributed()
        self._lost = CancelledError, self._distributed.comm.CommClosedError
        self._futures: WeakSet[Any] = WeakSet()
        self._raw: list[Any] = []
        self._watched: WeakSet[Any] = WeakSet()
        self._ended = threading.Event()
        self._is_cancelled = False
        self._name = uuid4().hex
        self._versions = find_versions()
        self._n_submitted = 0
        self._workers: set[str] = set()
        if client.asynchronous:
            raise TypeError("client must be one whose answers are waited for, not Client(asynchronous=True)")
        self._check_running()
        reports = self._patiently(partial(client.run, _report, on_error="return"))
        reports = {worker: report for worker, report in reports.items() if isinstance(report, tuple)}
        if not reports:
            raise ClusterError("the Dask cluster has no workers")
        for worker, (versions, _) in reports.items():
            check_versions(self._versions, versions, worker)
        self.memory = min(memory for _, memory in reports.values())
        self._workers = set(reports)
        # Results of workers that can be reached need not go through the scheduler.
        self._is_direct = client.direct_to_workers is not False and self._reaches_workers()
        self._threads: dict[str, int] = {}
        self._asked = -np.inf

    @property
    def n_workers(self) -> int:
        """How many tasks run at once: the threads of all workers."""
        if monotonic() - self._asked > _LOOK:
            self._threads, self._asked = self._ask(self._client.scheduler.ncores), monotonic()
        return max(1, sum(self._threads.values()))

    def cluster(self) -> Workers:
        """Describe the cluster as it is now."""
        n_threads = self.n_workers
        return Workers(max(1, len(self._threads)), n_threads, self.memory)

    def submit(self, function: Callable[..., Any], *args: Any, in_order: bool = False) -> Any:
        """Return the future of a call; the function is one of a module. In order: not before what came earlier."""
        self._check_running()
        # Names by function: Dask spreads a group of tasks that need the same data over all workers.
        key = f"{function.__name__.strip('_')}-{self._name}", self._n_submitted
        self._n_submitted += 1
        dask = import_optional("dask", purpose="Dask", extra="dask")
        # Its advice about large arguments is to share them, and that is how.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
            # What comes within that time has the same priority.
            fifo_timeout = 0 if in_order else "100ms"
            future = self._client.submit(
                _run, self._versions, function, *args, key=key, pure=False, fifo_timeout=fifo_timeout
            )
        self._futures.add(future)
        return future

    def share(self, value: Any) -> Any:
        """Return a future of a value that many tasks are given."""
        return self.submit(_identity, value)

    def compute(self, delayed: list[list[Any]]) -> list[list[Any]]:
        """Return the futures of lists of delayed objects, all of which are asked for at once."""
        self._check_running()
        bounds = np.cumsum([0, *map(len, delayed)]).tolist()
        futures = self._client.compute([item for some in delayed for item in some])
        self._raw += futures
        return [futures[start:stop] for start, stop in pairwise(bounds)]

    def release(self) -> None:
        """Let go of what `compute` returned."""
        for future in self._raw:
            future.release()
        self._raw.clear()

    def completed(self, futures: Sequence[Any]) -> list[tuple[int, Any]]:
        """Wait until some of the futures have ended; return their places and results, raise what a task raised."""
        places = self._until_some_ended(dict(enumerate(futures)))
        return list(zip(places, self._fetch([futures[place] for place in places])))

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Return all results, in order; raise what a task raised."""
        waiting = dict(enumerate(futures))
        while waiting:
            for place in self._until_some_ended(waiting):
                if waiting.pop(place).status != "finished":
                    return self._fetch([futures[place]])
        return self._fetch(list(futures))

    def cancel(self) -> None:
        """Give up all that was submitted.

        Futures that nobody holds are given up. ``Client.cancel`` would cancel what others have computed from the same
        collections as well, and ends the connection when what was computed from a future is not held any more.
        """
        self._is_cancelled = True
        self.release()
        for future in list(self._futures):
            future.release()
        self._ended.set()

    def _until_some_ended(self, futures: dict[int, Any]) -> list[int]:
        """Return the names of those futures that have ended, when there are some."""
        for future in futures.values():
            if future not in self._watched:
                self._watched.add(future)
                future.add_done_callback(self._note)
        while True:
            self._ended.clear()
            if self._is_cancelled:
                raise ClusterError("the tasks were cancelled")
            if found := [name for name, future in futures.items() if future.status in _ENDS]:
                return found
            self._await(self._ended)

    def _note(self, future: Any) -> None:
        """Wake up who waits for futures."""
        self._ended.set()

    def _fetch(self, futures: list[Any]) -> list[Any]:
        """Return the results of futures that have ended."""
        ask = partial(self._client.gather, futures, direct=self._is_direct, asynchronous=True)
        return list(self._patiently(partial(self._sync, ask)))

    def _reaches_workers(self) -> bool:
        """Say whether all workers answer this process itself."""

        async def ask() -> None:
            await asyncio.gather(*(self._client.rpc(worker).identity() for worker in self._workers))

        try:
            self._sync(ask, _LOOK)
        except Exception:
            # Whatever it was: the scheduler reaches them.
            return False
        return True

    def _sync(self, ask: Callable[[], Any], timeout: float | None = None) -> Any:
        """Return what a question is answered; Dask fails with another error when the question is cancelled."""

        async def wait() -> Any:
            try:
                return await asyncio.wait_for(ask(), timeout)
            except asyncio.CancelledError:
                raise self._distributed.comm.CommClosedError("the connection was closed") from None

        # The second one is for a loop that has ended.
        return self._client.sync(wait, callback_timeout=None if timeout is None else timeout + _LOOK)

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """Return what Dask answers; in a thread, since nothing that waits in Dask wakes up when the cluster is gone."""
        done = threading.Event()
        found: list[tuple[Any, BaseException | None]] = []

        def call() -> None:
            try:
                found.append((ask(), None))
            except BaseException as error:
                found.append((None, error))
            done.set()

        threading.Thread(target=call, daemon=True).start()
        self._await(done)
        result, error = found[0]
        if error is not None:
            raise self._explain(error)
        return result

    def _await(self, event: threading.Event) -> None:
        """Wait for an event, or raise ClusterError when it will not come any more."""
        waited = 0.0
        while not event.wait(_LOOK):
            self._check_running()
            workers = self._ask(self._client.scheduler.identity)["workers"]
            self._hang_up(self._workers - set(workers))
            self._workers = set(workers)
            waited = 0.0 if any(map(_is_at_work, workers.values())) else waited + _LOOK
            if waited >= _NO_WORKERS:
                why = "the memory of all workers is full" if workers else "there are no workers"
                raise ClusterError(
                    f"the Dask cluster has done nothing for {waited:.0f} s: {why}. {self.advice}".strip()
                )

    def _hang_up(self, workers: set[str]) -> None:
        """End the connections to workers that the scheduler has given up: one that is frozen does not end its own."""
        for worker in workers:
            self._client.loop.add_callback(self._client.rpc.remove, worker)

    def _ask(self, question: Callable[[], Any]) -> Any:
        """Return what the scheduler answers; ClusterError if it does not."""
        try:
            return self._sync(question, _NO_WORKERS)
        except (OSError, RuntimeError, self._distributed.TimeoutError) as error:
            raise ClusterError(f"the Dask scheduler does not answer: {error}") from error

    def _check_running(self) -> None:
        """Raise ClusterError when the client has lost its cluster."""
        if self._client.status != "running":
            raise ClusterError(f"the Dask client is {self._client.status}: it has no connection to a scheduler")

    def _explain(self, error: BaseException) -> BaseException:
        """Return what to raise for an error of a future: that of the task itself, or what happened to the cluster."""
        if isinstance(error, self._distributed.scheduler.KilledWorker | MemoryError):
            explained = ClusterError(f"a worker died or ran out of memory: {error} {self.advice}".strip())
        elif self._client.status != "running" or isinstance(error, self._lost):
            explained = ClusterError(f"the Dask futures were cancelled or lost: {error}")
        else:
            return error
        explained.__cause__ = error
        return explained


def import_distributed() -> Any:
    """Import Dask's scheduler."""
    return import_optional("distributed", purpose="Dask", extra="dask")


def default_client(client: Any) -> Any:
    """Return the client given, or the one in use.

    Raises
    ------
    ClusterError
        Without either.
    """
    distributed = import_distributed()
    if client is not None:
        return client
    try:
        return distributed.default_client()
    except ValueError:
        raise ClusterError("there is no Dask client: make a distributed.Client, or give one as client") from None


class WorkerStop:
    """Looks like the array by which trees are told to stop: says whether its task was cancelled, without a message."""

    def __init__(self) -> None:
        worker = import_distributed().get_worker()
        self._task = worker.state.tasks[worker.get_current_task()]

    def __getitem__(self, place: int) -> bool:
        return self._task.state == "cancelled"


def _run(versions: dict[str, str], function: Callable[..., Any], *args: Any) -> Any:
    """Call a function on a worker that may have come when others had begun."""
    check_versions(versions, find_versions(), "a worker that was added")
    return function(*map(_writable, args))


def _writable(value: Any) -> Any:
    """Return a value whose arrays may be written to: others are another type, for which all is compiled again."""
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else value.copy()
    if isinstance(value, tuple):
        parts = [_writable(item) for item in value]
        if all(map(is_, parts, value)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [_writable(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        parts_by_name = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        changed = {name: new for name, old in parts_by_name.items() if (new := _writable(old)) is not old}
        return replace(value, **changed) if changed else value
    return value


def _report(dask_worker: Any) -> tuple[dict[str, str], int]:
    """Return the versions of a worker, and the bytes of its memory."""
    memory = dask_worker.memory_manager.memory_limit or import_distributed().system.MEMORY_LIMIT
    return find_versions(), int(memory)


def _is_at_work(worker: dict[str, Any]) -> bool:
    """Say whether a worker takes tasks, or has one: those whose memory is full end theirs and take no more."""
    counts = worker["metrics"].get("task_counts", {})
    return worker["status"] == "running" or counts.get("executing", 0) > 0


def _identity(value: Any) -> Any:
    """Return what is given."""
    return value

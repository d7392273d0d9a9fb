"""The interface for running tasks in threads or on a cluster."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, Protocol


class Executor(Protocol):
    """Runs tasks. A task may run twice, so it must not change its arguments.

    Arguments may be futures and lists of futures, which are replaced by their results.
    """

    @property
    def n_workers(self) -> int:
        """Number of tasks that run at the same time."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return the future of a call."""

    def share(self, value: Any) -> Any:
        """Return a future of a value that is an argument of many tasks."""

    def as_completed(self, futures: Iterable[Any] = ()) -> Any:
        """Iterate over futures and results in the order of completion, and raise errors; futures can be added."""


def merge_by_groups(
    submit: Callable[..., Any], merge: Callable[..., Any], futures: list[Any], n: int, *args: Any
) -> Any:
    """Return the future of the merged results; merge(list of up to n results, *args) merges some of them."""
    while len(futures) > 1:
        futures = [submit(merge, futures[i : i + n], *args) for i in range(0, len(futures), n)]
    return futures[0]


class LocalExecutor:
    """Threads of this process, which share its memory.

    Tasks start in the order of their submission, so a task starts after those whose results it needs.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._threads = ThreadPoolExecutor(n_workers)

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return the future of a call."""
        return self._threads.submit(lambda: function(*map(_result, args)))

    def share(self, value: Any) -> Any:
        """Return the value, because threads share memory."""
        return value

    def as_completed(self, futures: Iterable[Any] = ()) -> "_Completed":
        """Iterate over futures and results in the order of completion."""
        return _Completed(futures)

    def gather(self, futures: list[Any]) -> list[Any]:
        """Return all results, in order."""
        return [future.result() for future in futures]

    def close(self) -> None:
        """Cancel the tasks that have not started."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Completed:
    """Iterator over futures and results in the order of completion."""

    def __init__(self, futures: Iterable[Future[Any]]) -> None:
        self._ended: SimpleQueue[Future[Any]] = SimpleQueue()
        self._n_waiting = 0
        for future in futures:
            self.add(future)

    def add(self, future: Future[Any]) -> None:
        """Add a future to wait for."""
        self._n_waiting += 1
        future.add_done_callback(self._ended.put)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        while self._n_waiting > 0:
            future = self._ended.get()
            self._n_waiting -= 1
            yield future, future.result()


def _result(argument: Any) -> Any:
    """Return the argument with results in place of futures."""
    if isinstance(argument, Future):
        return argument.result()
    return [_result(item) for item in argument] if isinstance(argument, list) else argument

"""Where tasks run: the interface of threads and clusters that growing over parts uses."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, Protocol


class Executor(Protocol):
    """Runs tasks; a task may run twice, so it changes nothing that it is given.

    Arguments of tasks may be futures, and lists of futures: tasks get their results.
    """

    @property
    def n_workers(self) -> int:
        """How many tasks run at once."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return the future of a call."""

    def share(self, value: Any) -> Any:
        """Return a future of a value that many tasks are given."""

    def as_completed(self, futures: Iterable[Any] = ()) -> Any:
        """Iterate over futures and their results, as they end, to which one can `add`; raise what a task raised."""


def merge_by_groups(
    submit: Callable[..., Any], merge: Callable[..., Any], futures: list[Any], n: int, *args: Any
) -> Any:
    """Return the future of all results merged, up to n at a time: by a call of merge with a list of them, and args."""
    while len(futures) > 1:
        futures = [submit(merge, futures[i : i + n], *args) for i in range(0, len(futures), n)]
    return futures[0]


class LocalExecutor:
    """Threads of this process, which share its memory.

    Tasks are begun in the order of their submission, so what a task waits for has begun before it.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._threads = ThreadPoolExecutor(n_workers)

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return the future of a call."""
        return self._threads.submit(lambda: function(*map(_result, args)))

    def share(self, value: Any) -> Any:
        """Return the value: threads share it anyway."""
        return value

    def as_completed(self, futures: Iterable[Any] = ()) -> "_Completed":
        """Iterate over futures and their results, as they end."""
        return _Completed(futures)

    def gather(self, futures: list[Any]) -> list[Any]:
        """Return all results, in order."""
        return [future.result() for future in futures]

    def close(self) -> None:
        """Cancel the tasks that have not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Completed:
    """Futures and their results, as they end."""

    def __init__(self, futures: Iterable[Future[Any]]) -> None:
        self._ended: SimpleQueue[Future[Any]] = SimpleQueue()
        self._n_waiting = 0
        for future in futures:
            self.add(future)

    def add(self, future: Future[Any]) -> None:
        """Wait for one more."""
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

"""Where tasks run: the few things that growing over parts asks of threads, or of a cluster."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import as_completed as completed
from typing import Any, Protocol


class Executor(Protocol):
    """Runs tasks; a task may run twice, so it changes nothing that it is given.

    Arguments of tasks may be futures, and lists of futures: tasks get their results.
    """

    @property
    def n_workers(self) -> int:
        """How many tasks run at once."""

    @property
    def memory(self) -> int:
        """Bytes of memory of the smallest worker."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return the future of a call."""

    def share(self, value: Any) -> Any:
        """Return a future of a value that many tasks are given."""

    def as_completed(self, futures: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield places among the futures and their results, as they end; raise what a task raised."""

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Return all results, in order; raise what a task raised."""

    def cancel(self) -> None:
        """Give up all that was submitted."""


class LocalExecutor:
    """Threads of this process, which share its memory.

    Tasks are begun in the order of their submission, so what a task waits for has begun before it.
    """

    def __init__(self, n_workers: int, memory: int) -> None:
        self.n_workers, self.memory = n_workers, memory
        self._threads = ThreadPoolExecutor(n_workers)

    def __enter__(self) -> "LocalExecutor":
        return self

    def __exit__(self, *error: Any) -> None:
        self.cancel()

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return the future of a call."""
        return self._threads.submit(lambda: function(*map(_result, args)))

    def share(self, value: Any) -> Any:
        """Return the value: threads share it anyway."""
        return value

    def as_completed(self, futures: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield places among the futures and their results, in the order in which they end."""
        places = {future: place for place, future in enumerate(futures)}
        for future in completed(futures):
            yield places.pop(future), future.result()

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """Return all results, in order."""
        return [future.result() for future in futures]

    def cancel(self) -> None:
        """Give up what has not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _result(argument: Any) -> Any:
    """Return what a task is given for an argument."""
    if isinstance(argument, Future):
        return argument.result()
    return [_result(item) for item in argument] if isinstance(argument, list) else argument

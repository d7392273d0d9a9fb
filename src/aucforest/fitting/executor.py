"""Where tasks run: the few things that growing over parts asks of threads, or of a cluster."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
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

    def completed(self, futures: Sequence[Any]) -> list[tuple[int, Any]]:
        """Wait until some of the futures have ended; return their places and results, raise what a task raised."""


def as_completed(executor: Executor, futures: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Yield places among the futures and their results, as they end; raise what a task raised."""
    waiting = dict(enumerate(futures))
    while waiting:
        places = list(waiting)
        for place, result in executor.completed(list(waiting.values())):
            del waiting[places[place]]
            yield places[place], result


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

    def __enter__(self) -> "LocalExecutor":
        return self

    def __exit__(self, *error: Any) -> None:
        """Give up what has not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return the future of a call."""
        return self._threads.submit(lambda: function(*map(_result, args)))

    def share(self, value: Any) -> Any:
        """Return the value: threads share it anyway."""
        return value

    def completed(self, futures: Sequence[Any]) -> list[tuple[int, Any]]:
        """Wait until some of the futures have ended; return their places and results."""
        ended = wait(futures, return_when=FIRST_COMPLETED).done
        return [(place, future.result()) for place, future in enumerate(futures) if future in ended]


def _result(argument: Any) -> Any:
    """Return what a task is given for an argument."""
    if isinstance(argument, Future):
        return argument.result()
    return [_result(item) for item in argument] if isinstance(argument, list) else argument

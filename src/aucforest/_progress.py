"""Progress bars, and messages that are only shown if standard error is a terminal or a notebook."""

import sys
from multiprocessing import parent_process
from typing import Any

from tqdm import tqdm

_LOG_INTERVAL = 60.0  # seconds between updates of a bar in a log, where each update is a line


def is_watched() -> bool:
    """Return whether standard error is a terminal or the output of a notebook, and not a file or a pipe.

    In processes of multiprocessing the result is False, because each of them would write the same message.
    """
    stream = sys.stderr
    if stream is None or parent_process() is not None:
        return False
    return stream.isatty() or type(stream).__module__.startswith("ipykernel")


def say(sentence: str) -> None:
    """Write a sentence to standard error if it is watched, above progress bars."""
    if is_watched():
        tqdm.write(sentence, file=sys.stderr)


def progress_bar(*iterable: Any, verbose: int, **options: Any) -> Any:
    """Return a tqdm bar, not shown if `verbose` is 0. In a log, it is updated once a minute and at the end."""
    interval = {} if is_watched() else {"mininterval": _LOG_INTERVAL, "maxinterval": _LOG_INTERVAL}
    return tqdm(*iterable, disable=not verbose, **interval, **options)

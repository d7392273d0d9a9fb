"""Progress bars, and sentences for whoever watches standard error: a terminal or a notebook, not a log."""

import sys
from multiprocessing import parent_process
from typing import Any

from tqdm import tqdm

# Seconds between two states of a bar in a log, where every state takes room.
_LOG_INTERVAL = 60.0


def is_watched() -> bool:
    """Return whether standard error is a terminal or the output of a notebook, and not a file or a pipe.

    That of a process which another one has started is watched by nobody, as many would write the same.
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
    """Return a tqdm bar, which is not shown if `verbose` is 0; a log gets its state once a minute and at the end."""
    interval = {} if is_watched() else {"mininterval": _LOG_INTERVAL, "maxinterval": _LOG_INTERVAL}
    return tqdm(*iterable, disable=not verbose, **interval, **options)

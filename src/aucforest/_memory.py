"""The memory of the machine, and a check that an operation takes at most half of it."""

from functools import cache
from pathlib import Path

import psutil

_PART = 0.5
_LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_GIB = 2**30


@cache
def machine_memory() -> int:
    """Return the bytes of memory of the machine, or of the container if it has a lower limit."""
    limits = [psutil.virtual_memory().total]
    for path in map(Path, _LIMIT_FILES):
        if path.exists() and (text := path.read_text().strip()).isdigit():
            limits.append(int(text))
    return min(limits)


def check_memory(n_bytes: float, what: str, advice: str) -> None:
    """Raise ValueError, with `what` and `advice` in the message, if n_bytes are more than half of the memory."""
    memory = machine_memory()
    if n_bytes > _PART * memory:
        raise ValueError(
            f"{what} would take about {n_bytes / _GIB:,.1f} GiB, more than half of the {memory / _GIB:,.1f} GiB of"
            f" memory: {advice}"
        )

"""Memory: size and use, a check before large allocations, and numbers of bytes as text."""

import ctypes
import re
import sys
from fractions import Fraction
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import psutil

_LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_GIB = 2**30
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


@cache
def machine_memory() -> int:
    """Return the bytes of memory of the machine, or of the container if it has a lower limit."""
    limits = [psutil.virtual_memory().total]
    for path in map(Path, _LIMIT_FILES):
        if path.exists() and (text := path.read_text().strip()).isdigit():
            limits.append(int(text))
    return min(limits)


def process_memory() -> int:
    """Return the bytes of memory that this process uses, including its libraries."""
    return int(psutil.Process().memory_info().rss)


def return_freed_memory() -> None:
    """Return freed memory to the operating system. On Linux, the C library would keep it."""
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)


def check_memory(n_bytes: float, what: str, advice: str) -> None:
    """Raise ValueError if `n_bytes`, the memory that `what` would take, is more than half of the machine's memory."""
    memory = machine_memory()
    if n_bytes > memory / 2:
        raise ValueError(
            f"{what} would take about {n_bytes / _GIB:,.1f} GiB, more than half of the {memory / _GIB:,.1f} GiB of"
            f" memory: {advice}"
        )


def parse_bytes(given: Any, name: str) -> int:
    """Return a positive number of bytes, given as an integer or as text such as "2GiB", "500MB" or "1.5 GB"."""
    n_bytes = 0
    if isinstance(given, Integral) and not isinstance(given, bool):
        n_bytes = int(given)
    elif isinstance(given, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*((?:[kmgt]i?)?)b?\s*", given.lower())
        n_bytes = int(Fraction(match[1]) * _UNITS[match[2]]) if match else 0
    if n_bytes < 1:
        raise ValueError(f"{name} must be a number of bytes, such as 2147483648 or '2GiB', but is {given!r}")
    return n_bytes


def format_bytes(n_bytes: float) -> str:
    """Return a number of bytes as text with a unit."""
    units = ["KiB", "MiB", "GiB", "TiB"]
    index = min(int(np.log2(max(n_bytes, 1024)) / 10), len(units))
    return f"{n_bytes / 1024**index:,.2f} {units[index - 1]}"

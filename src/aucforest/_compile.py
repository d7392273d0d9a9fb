"""The one door to numba: every compiled function of the package is made here.

``nogil`` lets a forest grow its trees in threads, ``error_model="numpy"`` leaves division by zero to the caller
(who rules it out) instead of paying a branch per division. No ``fastmath`` anywhere: it would reorder sums, which
moves ties, and delete the checks for NaN.
"""

from collections.abc import Callable
from typing import TypeVar

import numba

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile a function that Python calls; its machine code is cached on disk."""
    compiled: F = numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    return compiled


def device(function: F) -> F:
    """Compile a function that only other compiled functions call; it lives in their cache entry."""
    compiled: F = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled

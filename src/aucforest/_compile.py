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


@numba.extending.intrinsic
def _cttz(typing_context, word):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        is_zero_undefined = context.get_constant(numba.types.boolean, True)
        return builder.cttz(arguments[0], is_zero_undefined)

    return numba.types.uint64(numba.types.uint64), generate


@device
def lowest_bit(word: int) -> int:
    """Return the position of the lowest set bit of a uint64 that is not zero."""
    return _cttz(word)


def bare_kernel(function: F) -> F:
    """Compile a kernel without reference counting: it may slice arrays but not allocate any.

    An atomic count per array handed on costs more than the work on a small node, and much more when threads share
    the array. `_nrt` is numba's own switch for its internal kernels.
    """
    compiled: F = numba.njit(nogil=True, error_model="numpy", cache=True, _nrt=False)(function)
    return compiled


def bare_device(function: F) -> F:
    """Compile a function for bare kernels."""
    compiled: F = numba.njit(nogil=True, error_model="numpy", _nrt=False, forceinline=True)(function)
    return compiled

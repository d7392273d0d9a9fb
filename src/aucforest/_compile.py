"""The one door to numba: every compiled function of the package is made here.

``nogil`` lets a forest grow its trees in threads, ``error_model="numpy"`` leaves division by zero to the caller
(who rules it out) instead of paying a branch per division. No ``fastmath`` anywhere: it would reorder sums, which
moves ties, and delete the checks for NaN.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar
from uuid import uuid4

import numba
from llvmlite import ir

F = TypeVar("F", bound=Callable[..., object])


def _cache_apart(compiled: F) -> F:
    """Give every signature in the cache a file of a name of its own.

    numba counts the files of a kernel, without a lock: of two processes that compile it for different types at the
    same moment, one would put its code where the other's index points, and that would be run from then on.
    """
    if is_compiled(compiled):
        file = compiled._cache._cache_file  # type: ignore[attr-defined]
        base = file._index_name.removesuffix(".nbi")
        file._data_name = lambda number: f"{base}.{uuid4().hex}.nbc"
    return compiled


def kernel(function: F) -> F:
    """Compile a function that Python calls; its machine code is cached on disk."""
    return _cache_apart(numba.njit(nogil=True, error_model="numpy", cache=True)(function))


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
    return _cache_apart(numba.njit(nogil=True, error_model="numpy", cache=True, _nrt=False, no_cfunc_wrapper=True)(function))


def bare_device(function: F) -> F:
    """Compile a function for bare kernels."""
    compiled: F = numba.njit(nogil=True, error_model="numpy", _nrt=False, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return compiled


def by_code(functions: dict[int, Callable[..., Any]]) -> Callable[..., Any]:
    """Return a compiled f(code, *arguments) that calls the function of the code, or the last one for any other code.

    The functions take the same arguments and return the same types.
    """
    *others, last = functions.items()
    found = _without_code(last[1])
    for code, function in reversed(others):
        found = _if_code(code, function, found)
    return found


def _without_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled function that calls another one without its first argument."""

    @bare_device
    def call(code, *arguments):  # type: ignore[no-untyped-def]
        return function(*arguments)

    return call


def _if_code(own: int, function: Callable[..., Any], others: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled function that calls the first function for one code, and the second for all others."""

    @bare_device
    def call(code, *arguments):  # type: ignore[no-untyped-def]
        if code == own:
            return function(*arguments)
        return others(code, *arguments)

    return call


def is_compiled(function: object) -> bool:
    """Say whether a function is one that `numba.njit` made."""
    return isinstance(function, numba.core.dispatcher.Dispatcher)


_DOUBLES = numba.types.CPointer(numba.types.float64)
_SCORER = numba.types.int64(_DOUBLES, _DOUBLES, _DOUBLES, numba.types.int64, numba.types.int64)


@lru_cache(maxsize=64)
def compile_scorer(function: Any) -> Any:
    """Compile f(left, totals) -> score into a loop over cuts with a fixed address, its attribute `address`.

    The loop takes (lefts, totals, scores, n_cuts, n_classes), pointers to doubles and int64, and returns 1 if the
    function raised an exception, else 0.

    Raises
    ------
    ValueError
        If the function does not compile for two arrays of float64, or does not return a number.
    """

    def score(lefts, totals, scores, n_cuts, n_classes):  # type: ignore[no-untyped-def]
        left, total = numba.carray(lefts, (n_cuts, n_classes)), numba.carray(totals, (n_classes,))
        score = numba.carray(scores, (n_cuts,))
        try:
            for i in range(n_cuts):
                score[i] = function(left[i], total)
        except Exception:
            return 1
        return 0

    try:
        return numba.cfunc(_SCORER)(score)
    except numba.core.errors.NumbaError as error:
        name = function.py_func.__name__
        raise ValueError(
            f"criterion: {name} does not compile to a function of two float64 arrays that returns a number"
        ) from error


@numba.extending.intrinsic
def call_scorer(typing_context, address, lefts, totals, scores, n_cuts):  # type: ignore[no-untyped-def]
    """Call the loop at an address of `compile_scorer`; lefts has a row of class totals for each of the cuts."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        word, doubles = ir.IntType(64), ir.DoubleType().as_pointer()
        loop = ir.FunctionType(word, [doubles, doubles, doubles, word, word]).as_pointer()
        arrays = [context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (1, 2, 3)]
        n_classes = builder.extract_value(arrays[0].shape, 1)
        pointers = [array.data for array in arrays]
        return builder.call(builder.inttoptr(arguments[0], loop), [*pointers, arguments[4], n_classes])

    number = numba.types.int64
    return number(number, lefts, totals, scores, number), generate

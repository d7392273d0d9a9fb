"""Compilation with numba, for all compiled functions of the package.

``nogil`` lets a forest grow trees in threads. ``error_model="numpy"`` avoids a branch per division; callers exclude
division by zero. ``fastmath`` is never used: it would reorder sums, which changes ties, and remove checks for NaN.

kernel           called by Python; may allocate; cached on disk
device           called by kernels; may allocate; compiled into them
bare_kernel      called by Python; may not allocate; cached on disk
bare_device      called by bare kernels; may not allocate; inlined into them
outlined_device  called by bare kernels; may not allocate; compiled into them, but not inlined
"""

import gc
import hashlib
import os
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba.core import event
from numba.extending import intrinsic

from aucforest._progress import say

try:
    from aucforest import _numba_private
except (ImportError, AttributeError):
    _numba_private = None  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., object])

# Seconds of compiling before a notice; seconds of pause after which a new notice is due.
_NOTICEABLE, _PAUSE = 1.0, 3.0


def _digest_sources() -> str:
    """Return a digest of the sources with kernels (none in an archive) and of the versions of the package and numba."""
    # It covers all of these sources, because a kernel uses functions and constants of other files, and their contents,
    # because modification times are not reliable for copied or checked-out files. It takes 4 ms.
    digest = hashlib.sha256(f"{sys.modules['aucforest'].__version__} {numba.__version__}".encode())
    root = os.path.dirname(__file__)
    sources = (os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
    for path in sorted(path for path in sources if path.endswith(".py")):
        with open(path, "rb") as file:
            if b"_compile" in (content := file.read()):
                digest.update(path.removeprefix(root).encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()[:16]


def _is_ours(event: Any) -> bool:
    """Return whether the function that numba compiles is one of the package; others may be of no module."""
    return str(event.data["dispatcher"].py_func.__module__).startswith("aucforest.")


class _Watch(event.Listener):
    """Prints a notice if compiling kernels takes long, and keeps the garbage collector off meanwhile.

    The collector finds little and scans all objects of numba each time. Numba lets one thread compile at a time.
    """

    def __init__(self) -> None:
        self.how_often = "once"
        self._depth, self._is_said, self._started, self._ended = 0, False, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        """Take note that a function is compiled, perhaps while one that calls it is."""
        if not _is_ours(event):
            return
        now = time.monotonic()
        if self._depth == 0:
            self._collects = gc.isenabled()
            gc.disable()
            if now - self._ended > _PAUSE:
                self._is_said, self._started = False, now
        self._depth += 1
        if not self._is_said and now - self._started > _NOTICEABLE:
            self._is_said = True
            say(f"aucforest is compiled for this machine, which takes 10 to 30 seconds, {self.how_often}")

    def on_end(self, event: Any) -> None:
        """Take note of the end."""
        if not _is_ours(event):
            return
        self._depth -= 1
        if self._depth == 0:
            self._ended = time.monotonic()
            if self._collects:
                gc.enable()


_watch = _Watch()
event.register("numba:compile", _watch)

# computed at import, because the imported code is compiled and not later edits
_SOURCES = _digest_sources()
# None stands for numba's own compiler.
_KERNEL_COMPILER = None if _numba_private is None else _numba_private.KernelCompiler
_DEVICE_COMPILER = None if _numba_private is None else _numba_private.DeviceCompiler
_OPTIONS = {"nogil": True, "error_model": "numpy", "pipeline_class": _KERNEL_COMPILER}
# Without `_nrt` there is no reference counting: atomic counts of passed arrays cost more than the work on a small node.
_BARE_OPTIONS = {**_OPTIONS, "_nrt": False, "no_cfunc_wrapper": True}
_BARE_DEVICE_OPTIONS = {**_BARE_OPTIONS, "no_cpython_wrapper": True, "pipeline_class": _DEVICE_COMPILER}


def _compile_cached(function: F, options: dict[str, Any]) -> F:
    """Compile a function and cache its machine code on disk, if that is possible."""
    if numba.config.DISABLE_JIT:
        return function
    compiled: F
    if _numba_private is None:
        _watch.how_often = "in each process, because it cannot cache code of this version of numba"
    else:
        try:
            compiled = numba.njit(cache=True, **options)(function)
            _numba_private.use_code_files(compiled, _SOURCES)
            return compiled
        except RuntimeError:  # there is no folder for a cache
            _watch.how_often = "in each process: set NUMBA_CACHE_DIR to a folder for its cache"
    compiled = numba.njit(**options)(function)
    return compiled


def kernel(function: F) -> F:
    """Compile a function that Python calls; its machine code is cached on disk."""
    return _compile_cached(function, _OPTIONS)


def device(function: F) -> F:
    """Compile a function that only other compiled functions call; it is cached as a part of them."""
    compiled: F = numba.njit(**_OPTIONS)(function)
    return compiled


def bare_kernel(function: F) -> F:
    """Compile a kernel without reference counting: it may slice arrays but not allocate any."""
    return _compile_cached(function, _BARE_OPTIONS)


def bare_device(function: F) -> F:
    """Compile a function for bare kernels."""
    compiled: F = numba.njit(**_BARE_DEVICE_OPTIONS, forceinline=True)(function)
    return compiled


def outlined_device(function: F) -> F:
    """Compile a rarely used function for bare kernels, which is not inlined, so that its callers compile faster."""
    compiled: F = numba.njit(**_BARE_DEVICE_OPTIONS)(function)
    return compiled


def by_code(functions: dict[int, Callable[..., Any]]) -> Callable[..., Any]:
    """Return f(code, *arguments): the last function serves any code that is not that of another."""
    # A chain of conditions, because numba calls constant functions only.
    (code, first), *others = functions.items()
    if not others:
        return bare_device(lambda given, *arguments: first(*arguments))
    rest = by_code(dict(others))
    return bare_device(lambda given, *arguments: first(*arguments) if given == code else rest(given, *arguments))


def is_compiled(function: object) -> bool:
    """Return whether a function is compiled by `numba.njit`."""
    return bool(numba.extending.is_jitted(function))


_DOUBLES = numba.types.CPointer(numba.types.float64)
_SCORER = numba.types.int64(_DOUBLES, _DOUBLES, _DOUBLES, numba.types.int64, numba.types.int64)


@lru_cache(maxsize=64)
def compile_scorer(function: Any) -> Any:
    """Compile f(left, totals) -> score into a C function that scores many splits; `.address` is its address.

    It takes (lefts, totals, scores, n_splits, n_classes), pointers to doubles and int64, and returns 1 if f raised an
    exception, else 0. ValueError if f does not compile, or does not return a number.
    """

    def score_splits(lefts_address, totals_address, scores_address, n_splits, n_classes):
        lefts = numba.carray(lefts_address, (n_splits, n_classes))
        totals = numba.carray(totals_address, (n_classes,))
        scores = numba.carray(scores_address, (n_splits,))
        try:
            for i in range(n_splits):
                scores[i] = function(lefts[i], totals)
        except Exception:
            return 1
        return 0

    try:
        return numba.cfunc(_SCORER)(score_splits)
    except Exception as error:
        name = function.py_func.__name__
        raise ValueError(
            f"criterion: {name} does not compile to a function of two float64 arrays that returns a number"
        ) from error


@intrinsic
def _cttz(typing_context, word):
    def generate(context, builder, signature, arguments):
        is_zero_undefined = context.get_constant(numba.types.boolean, True)
        return builder.cttz(arguments[0], is_zero_undefined)

    return numba.types.uint64(numba.types.uint64), generate


@device
def lowest_bit(word: int) -> int:
    """Return the position of the lowest set bit of a uint64 that is not zero."""
    return _cttz(word)


@intrinsic
def prefetch(typing_context, array, row, column):
    """Prefetch array[row, column] of a matrix in C order into the caches."""

    def generate(context, builder, signature, arguments):
        matrix = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.mul(arguments[1], builder.extract_value(matrix.shape, 1))
        address = builder.gep(matrix.data, [builder.add(place, arguments[2])])
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        # read access, second-level cache, data
        builder.call(fetch, [builder.bitcast(address, byte), *(flag(number) for number in (0, 2, 1))])
        return context.get_dummy_value()

    return numba.types.void(array, numba.types.int64, numba.types.int64), generate


@intrinsic
def call_scorer(typing_context, address, lefts, totals, scores, n_splits):
    """Call the C function at an address from `compile_scorer`; `lefts` has a row of class totals for each split."""

    def generate(context, builder, signature, arguments):
        word, doubles = ir.IntType(64), ir.DoubleType().as_pointer()
        loop = ir.FunctionType(word, [doubles, doubles, doubles, word, word]).as_pointer()
        arrays = [context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (1, 2, 3)]
        n_classes = builder.extract_value(arrays[0].shape, 1)
        pointers = [array.data for array in arrays]
        return builder.call(builder.inttoptr(arguments[0], loop), [*pointers, arguments[4], n_classes])

    number = numba.types.int64
    return number(number, lefts, totals, scores, number), generate

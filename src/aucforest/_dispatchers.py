"""The objects of numba behind the functions of `aucforest._compile`: what needs numba to be imported.

``nogil`` lets a forest grow trees in threads. ``error_model="numpy"`` avoids a branch per division; callers exclude
division by zero. ``fastmath`` is never used: it would reorder sums, which changes ties, and remove checks for NaN.
"""

import gc
import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import event
from numba.core.compiler import Compiler
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from aucforest._progress import say

try:
    from aucforest import _machine_code
except ImportError as changed:
    _machine_code = None  # type: ignore[assignment]
    warnings.warn(
        f"aucforest is compiled in each process, because it does not know numba {numba.__version__}: {changed}",
        RuntimeWarning,
        stacklevel=2,
    )

# Seconds of compiling before a notice; seconds of pause after which a new notice is due.
_NOTICEABLE, _PAUSE = 1.0, 3.0


def _is_ours(event: Any) -> bool:
    """Return whether the function that numba compiles is one of the package; others may be of no module."""
    return str(event.data["dispatcher"].py_func.__module__).startswith("aucforest.")


class _Watch(event.Listener):
    """Prints a notice if compiling kernels takes long, and keeps the garbage collector off meanwhile.

    The collector finds little and scans all objects of numba each time. Numba lets one thread compile at a time.
    """

    def __init__(self) -> None:
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
            how_often = _machine_code.how_often() if _machine_code else "in each process"
            say(f"aucforest is compiled for this machine, which takes a minute or two, {how_often}")

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


@cache
def _device_compiler() -> Any:
    """Return what compiles devices; numba's own compiler if private parts of it are not as they were.

    It is called when the first device is compiled: code from disk needs no compiler.
    """
    try:
        from aucforest._numba_private import DeviceCompiler

        _try_compiler(DeviceCompiler)
        return DeviceCompiler
    except Exception as error:
        warnings.warn(
            f"aucforest is compiled more slowly, because it does not know numba {numba.__version__}:"
            f" {type(error).__name__}: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return Compiler


def _compile_device(*arguments: Any) -> Any:
    """Return the compiler of a device, as numba makes it of its arguments."""
    return _device_compiler()(*arguments)


_PLAIN = {"nogil": True, "error_model": "numpy"}
# Without `_nrt` there is no reference counting: atomic counts of passed arrays cost more than the work on a small node.
_BARE = {**_PLAIN, "_nrt": False, "no_cfunc_wrapper": True}
_BARE_DEVICE = {**_BARE, "no_cpython_wrapper": True, "pipeline_class": _compile_device}
_OPTIONS = {
    "kernel": _PLAIN,
    "device": _PLAIN,
    "bare_kernel": _BARE,
    "bare_device": {**_BARE_DEVICE, "forceinline": True},
    "outlined_device": _BARE_DEVICE,
}


def _try_compiler(device_compiler: Any) -> None:
    """Raise an exception if the compiler of devices does not compile a small one for a kernel."""

    @numba.njit(**{**_BARE_DEVICE, "pipeline_class": device_compiler})
    def read(values, index):
        return values[index]

    @numba.njit(**_BARE)
    def add(values):
        return read(values, 1) + read(values, 2)

    if add(np.arange(3.0)) != 3.0:
        raise RuntimeError("a compiled sum is wrong")


def make(function: Callable[..., Any], kind: str) -> Any:
    """Return the object of numba for a function of a kind of `_compile`.

    The code of a kernel is kept on disk if it has a name in the package, whose sources are in the name of its file.
    """
    if numba.config.DISABLE_JIT:
        return function
    made = numba.njit(**_OPTIONS[kind])(function)
    has_name = function.__module__.startswith("aucforest.") and "<" not in function.__qualname__
    if kind.endswith("kernel") and has_name and _machine_code:
        made._cache = _machine_code.KernelCode(function)
    return made


def type_of(made: Any) -> Any:
    """Return the type of an object of numba for type inference."""
    return cpu_target.typing_context.resolve_value_type(made)


# The parts of numba that make no machine code by themselves are made before anything is compiled.


@intrinsic
def lowest_bit(typing_context, word):
    """Return the position of the lowest set bit of a uint64 that is not zero."""

    def generate(context, builder, signature, arguments):
        is_zero_undefined = context.get_constant(numba.types.boolean, True)
        return builder.cttz(arguments[0], is_zero_undefined)

    return numba.types.uint64(numba.types.uint64), generate


@intrinsic
def prefetch(typing_context, array, index):
    """Prefetch an item of an array into the caches, given its index in C order."""

    def generate(context, builder, signature, arguments):
        given = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(given.data, [arguments[1]])
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        # read access, second-level cache, data
        builder.call(fetch, [builder.bitcast(address, byte), *(flag(number) for number in (0, 2, 1))])
        return context.get_dummy_value()

    return numba.types.void(array, numba.types.int64), generate


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

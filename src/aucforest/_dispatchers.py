"""The numba dispatchers of compiled functions, with a notice that compiling takes long. Also numba intrinsics.

``nogil`` lets a forest grow trees in threads. ``error_model="numpy"`` avoids a branch per division, but division
by zero raises no exception. ``fastmath`` is never used: it removes checks for NaN, and it reorders sums, so that equal
scores could differ by rounding.
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

_NOTICEABLE = 1.0  # seconds of compiling before a notice
_PAUSE = 3.0  # seconds without compiling after which the notice is printed again


def _is_ours(event: Any) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).startswith("aucforest.")


class _Watch(event.Listener):
    """Listener that prints a notice if compiling takes long, and disables the garbage collector during compiling.

    The collector would scan all objects of numba repeatedly, and free few. numba compiles in one thread at a time, so
    no lock is needed.
    """

    def __init__(self) -> None:
        self._depth, self._is_said, self._started, self._ended = 0, False, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        """Start timing, or print the notice. Calls are nested: numba compiles a function while it compiles a caller."""
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
    """Return the compiler class for devices: `DeviceCompiler`, or numba's own if `DeviceCompiler` fails.

    The test takes time, so it is done when the first device is compiled. Machine code from disk needs no compiler.
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


_PLAIN = {"nogil": True, "error_model": "numpy"}
# Reference counting (`_nrt`) is off: on a small node, its atomic operations would take longer than the work itself.
_BARE = {**_PLAIN, "_nrt": False, "no_cfunc_wrapper": True}
_BARE_DEVICE = {**_BARE, "no_cpython_wrapper": True, "pipeline_class": lambda *given: _device_compiler()(*given)}
_OPTIONS = {
    "kernel": _PLAIN,
    "device": _PLAIN,
    "bare_kernel": _BARE,
    "bare_device": {**_BARE_DEVICE, "forceinline": True},
    "outlined_device": _BARE_DEVICE,
}


def _try_compiler(device_compiler: Any) -> None:
    """Raise an exception if the compiler class fails for a small kernel that calls a device."""

    @numba.njit(**{**_BARE_DEVICE, "pipeline_class": device_compiler})
    def read(values, index):
        return values[index]

    @numba.njit(**_BARE)
    def add(values):
        return read(values, 1) + read(values, 2)

    if add(np.arange(3.0)) != 3.0:
        raise RuntimeError("a compiled sum is wrong")


def make(function: Callable[..., Any], kind: str) -> Any:
    """Return the dispatcher of a function, or the function itself if numba is disabled. `kind` is a key of _OPTIONS.

    The machine code of kernels is stored on disk, except for lambdas, local functions and functions outside aucforest.
    """
    if numba.config.DISABLE_JIT:
        return function
    dispatcher = numba.njit(**_OPTIONS[kind])(function)
    has_name = function.__module__.startswith("aucforest.") and "<" not in function.__qualname__
    if kind.endswith("kernel") and has_name and _machine_code:
        dispatcher._cache = _machine_code.KernelCode(function)
    return dispatcher


def type_of(dispatcher: Any) -> Any:
    return cpu_target.typing_context.resolve_value_type(dispatcher)


# Intrinsics, which `_compile` describes. They generate machine code when a function that uses them is compiled.


@intrinsic
def lowest_bit(typing_context, word):
    def generate(context, builder, signature, arguments):
        is_zero_undefined = context.get_constant(numba.types.boolean, True)
        return builder.cttz(arguments[0], is_zero_undefined)

    return numba.types.uint64(numba.types.uint64), generate


@intrinsic
def prefetch(typing_context, array, index):
    def generate(context, builder, signature, arguments):
        given = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(given.data, [arguments[1]])
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        options = (0, 2, 1)  # read access, second-level cache, data
        builder.call(fetch, [builder.bitcast(address, byte), *(flag(number) for number in options)])
        return context.get_dummy_value()

    return numba.types.void(array, numba.types.int64), generate


@intrinsic
def call_scorer(typing_context, address, lefts, totals, scores, n_splits):
    def generate(context, builder, signature, arguments):
        word, doubles = ir.IntType(64), ir.DoubleType().as_pointer()
        loop = ir.FunctionType(word, [doubles, doubles, doubles, word, word]).as_pointer()
        arrays = [context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (1, 2, 3)]
        n_classes = builder.extract_value(arrays[0].shape, 1)
        pointers = [array.data for array in arrays]
        return builder.call(builder.inttoptr(arguments[0], loop), [*pointers, arguments[4], n_classes])

    number = numba.types.int64
    return number(number, lefts, totals, scores, number), generate

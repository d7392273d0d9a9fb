"""Compilation with numba, for all compiled functions of the package.

``nogil`` lets a forest grow trees in threads. ``error_model="numpy"`` avoids a branch per division; callers exclude
division by zero. ``fastmath`` is never used: it would reorder sums, which changes ties, and remove checks for NaN.
"""

import gc
import hashlib
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import numba

from aucforest._files import write_whole
from aucforest._progress import say

try:
    from llvmlite import ir
    from numba.extending import intrinsic
except ImportError:
    intrinsic = None

F = TypeVar("F", bound=Callable[..., object])


def _private(path: str) -> Any:
    """Return a private part of numba, or None if this version lacks it; private parts only make compilation faster."""
    try:
        return attrgetter(path)(numba)
    except AttributeError:
        return None


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


# Seconds of compilation that are not worth a sentence, and without any, after which the next one is news.
_NOTICEABLE, _PAUSE = 1.0, 3.0


class _Notice:
    """What whoever watches is told while code is compiled, once that is noticeable."""

    def __init__(self) -> None:
        self.is_cached, self._is_said = True, False
        self._since: float | None = None  # the start of the outermost compilation; functions that it calls are inner
        self._spent, self._ended = 0.0, 0.0

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """Compile a function; numba lets one thread compile at a time."""
        now, is_outermost = time.monotonic(), self._since is None
        if self._since is None:
            self._since = now
            if now - self._ended > _PAUSE:
                self._spent, self._is_said = 0.0, False
        if not self._is_said and self._spent + now - self._since > _NOTICEABLE:
            self._is_said = True
            how_often = "once" if self.is_cached else "in each process: set NUMBA_CACHE_DIR to a folder for its cache"
            say(f"aucforest is compiled for this machine, which takes 10 to 30 seconds, {how_often}")
        try:
            yield
        finally:
            if is_outermost:
                self._ended = time.monotonic()
                self._spent, self._since = self._spent + self._ended - self._since, None


_notice = _Notice()

# computed at import, because the imported code is compiled and not later edits
_SOURCES = _digest_sources()
_dumps = _private("core.serialize.dumps")
_DIGEST_BYTES = hashlib.sha256().digest_size


class _CodeFiles:
    """Cache of machine code with one file per signature, named by signature and sources. It replaces numba's cache."""

    # numba's cache has an index that depends on the kernel's file only, so it would miss edits of called functions. It
    # is written without a lock: if two processes compile a kernel for different types at the same time, one of them
    # could overwrite the code of the other. A file begins with a digest of the rest, as damaged code would crash.

    def __init__(self, folder: str, kernel: str) -> None:
        self._folder, self._kernel = Path(folder), kernel

    def load(self, key: Any) -> Any:
        """Return the code for a key of numba, or None if there is none that can be read; then it is compiled anew."""
        key, path = self._find(key)
        with suppress(Exception):
            content = memoryview(path.read_bytes())
            digest, saved = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
            if hashlib.sha256(saved).digest() == digest:
                saved_key, code = pickle.loads(saved)
                return code if saved_key == key else None
        return None

    def save(self, key: Any, code: Any) -> None:
        """Write the code for a key, and remove the code of other versions of the sources."""
        key, path = self._find(key)
        with suppress(OSError):  # without a file, the kernel is compiled again
            saved = _dumps((key, code))
            write_whole(path, hashlib.sha256(saved).digest() + saved)
            for other in self._folder.glob(f"*.{self._kernel.rpartition('.')[2]}.*nb[ci]*"):
                if _SOURCES not in other.name:
                    other.unlink(missing_ok=True)

    def flush(self) -> None:
        """Remove all code of the kernel."""
        for path in self._folder.glob(f"{self._kernel}.*.nbc"):
            path.unlink(missing_ok=True)

    def _find(self, key: Any) -> tuple[Any, Path]:
        """Return the complete key (that of numba lacks whether bounds are checked) and its file."""
        key = key, getattr(numba.config, "BOUNDSCHECK", None)
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return key, self._folder / f"{self._kernel}.{_SOURCES}.{digest}.nbc"


def _compile_cached(function: F, **options: Any) -> F:
    """Compile a function and cache its machine code on disk, if there is a cache folder and numba supports it."""
    compiled: F
    try:
        compiled = numba.njit(cache=True, **options)(function)
        cache = compiled._cache  # type: ignore[attr-defined]
        if _dumps and all(hasattr(cache._cache_file, method) for method in ("load", "save")):
            cache._cache_file = _CodeFiles(cache.cache_path, cache._impl.filename_base)
            return compiled
    except (AttributeError, RuntimeError):  # RuntimeError: numba found no cache folder
        pass
    _notice.is_cached = False
    compiled = numba.njit(**options)(function)
    return compiled


@lru_cache(maxsize=1)
def _remember_types(context: Any) -> Any:
    """Return a typing context that caches the types of calls, each of which inference resolves about ten times."""
    context, found = copy(context), {}
    resolve = context.resolve_function_type

    def resolve_once(function: Any, args: Any, kws: Any) -> Any:
        key = function, tuple(args), tuple(dict(kws).items())
        try:
            hash(key)
        except TypeError:  # a literal slice
            return resolve(function, args, kws)
        if key not in found:
            found[key] = resolve(function, args, kws)
        return found[key]

    context.resolve_function_type = resolve_once
    return context


def _find_compiler() -> Any:
    """Return a compiler that makes the same code in less time, or None if numba has changed."""
    compiler, models = _private("core.compiler.Compiler"), _private("core.datamodel.models")
    manager, context = _private("core.datamodel.default_manager"), _private("core.typing.Context")
    names = "TupleModel", "UniTupleModel"
    needed = [(manager, "copy"), (context, "resolve_function_type"), *((models, name) for name in names)]
    if compiler is None or not all(hasattr(*one) for one in needed):
        return None

    class Whole:
        """Data model that passes a named tuple as a whole; numba would split it, and the callee would join it again."""

        def get_argument_type(self) -> Any:
            return self.get_value_type()  # type: ignore[attr-defined]

        def as_argument(self, builder: Any, value: Any) -> Any:
            return value

        get_return_type = get_argument_type
        from_argument = as_return = from_return = as_argument

    manager = manager.copy()
    for name in names:
        model = type(name, (Whole, getattr(models, name)), {})
        manager.register(getattr(numba.types, f"Named{name.removesuffix('Model')}"), model)

    class Compiler(compiler):  # type: ignore[misc, valid-type]
        def __init__(self, typingctx: Any, *others: Any) -> None:
            super().__init__(typingctx, *others)
            self.state.typingctx = _remember_types(typingctx)
            self.state.targetctx.data_model_manager = manager

        def compile_extra(self, function: Any) -> Any:
            """Compile without the garbage collector, which finds little and scans all objects of numba each time."""
            was_enabled = gc.isenabled()
            gc.disable()
            try:
                with _notice.compiling():
                    return super().compile_extra(function)
            finally:
                if was_enabled:
                    gc.enable()

    return Compiler


# Passes that bare functions do not need, because they contain no inner functions and no arithmetic of whole arrays.
_NEEDLESS_PASSES = {"InlineClosureLikes", "InlineOverloads", "NopythonRewrites"}


def _find_device_compiler(compiler: Any) -> dict[str, Any]:
    """Return the option that compiles devices without machine code, or no option if numba has changed."""
    # numba would make machine code of every function in twice the time, but only that of the kernels is executed
    library = _private("core.codegen.JITCodeLibrary")
    needed = "_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals", "get_pointer_to_function"
    if compiler is None or not all(hasattr(library, method) for method in (*needed, "codegen")):
        return {}

    class NoMachineCode:
        def set_env(self, *_: object) -> None:
            """Do nothing: a function that is never called from Python needs no environment."""

    class DeviceLibrary(library):  # type: ignore[misc, valid-type]
        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

        codegen = NoMachineCode()

    class DeviceCompiler(compiler):
        def __init__(self, typingctx: Any, targetctx: Any, _: None, *others: Any) -> None:
            super().__init__(typingctx, targetctx, DeviceLibrary(targetctx.codegen(), "device"), *others)

        def define_pipelines(self) -> Any:
            pipelines = super().define_pipelines()
            for pipeline in pipelines:
                pipeline.passes = [step for step in pipeline.passes if step[0].__name__ not in _NEEDLESS_PASSES]
                pipeline.finalize()
            return pipelines

    return {"pipeline_class": DeviceCompiler}


_COMPILER = _find_compiler()
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_OPTIONS |= {} if _COMPILER is None else {"pipeline_class": _COMPILER}


def _supported(**options: bool) -> dict[str, Any]:
    """Return the internal options that this version of numba supports."""
    target = _private("core.cpu.CPUTargetOptions")
    return {name: value for name, value in options.items() if hasattr(target, name)}


_DEVICE_OPTIONS = _supported(_nrt=False, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
if "no_cpython_wrapper" in _DEVICE_OPTIONS:
    _DEVICE_OPTIONS |= _find_device_compiler(_COMPILER)


def kernel(function: F) -> F:
    """Compile a function that Python calls; its machine code is cached on disk."""
    return _compile_cached(function, **_OPTIONS)


def device(function: F, **options: Any) -> F:
    """Compile a function that only other compiled functions call; it is cached as a part of them."""
    compiled: F = numba.njit(**_OPTIONS | options)(function)
    return compiled


def bare_kernel(function: F) -> F:
    """Compile a kernel without reference counting: it may slice arrays but not allocate any."""
    # Atomic reference counts of passed arrays cost more than the work on a small node. `_nrt` is an internal option.
    return _compile_cached(function, **_OPTIONS, **_supported(_nrt=False, no_cfunc_wrapper=True))


def bare_device(function: F) -> F:
    """Compile a function for bare kernels."""
    return device(function, **_DEVICE_OPTIONS)


def outlined_device(function: F) -> F:
    """Compile a rarely used function for bare kernels, which is not inlined, so that its callers compile faster."""
    return device(function, **_DEVICE_OPTIONS | _supported(forceinline=False))


def by_code(functions: dict[int, Callable[..., Any]]) -> Callable[..., Any]:
    """Return a compiled f(code, *arguments) that calls the function of the code, or the last one for any other code."""
    # numba has no tables of functions, and in a recursive chain of functions each would be compiled with all later ones
    *others, last = functions
    lines = [f"    if code == {code}:\n        return f_{place}(*arguments)" for place, code in enumerate(others)]
    source = "\n".join(["def call(code, *arguments):", *lines, f"    return f_{len(others)}(*arguments)"])
    names: dict[str, Any] = {"__name__": __name__} | {
        f"f_{place}": functions[code] for place, code in enumerate((*others, last))
    }
    exec(source, names)
    return bare_device(names["call"])


def is_compiled(function: object) -> bool:
    """Return whether a function is compiled by `numba.njit`."""
    return bool(numba.extending.is_jitted(function))


_DOUBLES = numba.types.CPointer(numba.types.float64)
_SCORER = numba.types.int64(_DOUBLES, _DOUBLES, _DOUBLES, numba.types.int64, numba.types.int64)


@lru_cache(maxsize=64)
def compile_scorer(function: Any) -> Any:
    """Compile f(left, totals) -> score into a loop over splits with a fixed address, its attribute `address`.

    The loop takes (lefts, totals, scores, n_splits, n_classes), pointers to doubles and int64, and returns 1 if the
    function raised an exception, else 0. ValueError if the function does not compile, or does not return a number.
    """
    if intrinsic is None:
        raise ValueError("criterion: a function cannot be called with this version of numba")

    def score(lefts, totals, scores, n_splits, n_classes):
        left, total = numba.carray(lefts, (n_splits, n_classes)), numba.carray(totals, (n_classes,))
        score = numba.carray(scores, (n_splits,))
        try:
            for i in range(n_splits):
                score[i] = function(left[i], total)
        except Exception:
            return 1
        return 0

    try:
        return numba.cfunc(_SCORER)(score)
    except Exception as error:
        name = function.py_func.__name__
        raise ValueError(
            f"criterion: {name} does not compile to a function of two float64 arrays that returns a number"
        ) from error


if intrinsic is None:

    @device
    def lowest_bit(word: int) -> int:
        """Return the position of the lowest set bit of a uint64 that is not zero."""
        position = 0
        while not word >> numba.uint64(position) & numba.uint64(1):
            position += 1
        return numba.uint64(position)

    @bare_device
    def prefetch(array, row, column):
        """Do nothing."""

    @bare_device
    def call_scorer(address, lefts, totals, scores, n_splits):
        """Not called: `compile_scorer` refuses the function."""
        return 1

else:

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
        """Call the loop at an address from `compile_scorer`; `lefts` has a row of class totals for each split."""

        def generate(context, builder, signature, arguments):
            word, doubles = ir.IntType(64), ir.DoubleType().as_pointer()
            loop = ir.FunctionType(word, [doubles, doubles, doubles, word, word]).as_pointer()
            arrays = [context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (1, 2, 3)]
            n_classes = builder.extract_value(arrays[0].shape, 1)
            pointers = [array.data for array in arrays]
            return builder.call(builder.inttoptr(arguments[0], loop), [*pointers, arguments[4], n_classes])

        number = numba.types.int64
        return number(number, lefts, totals, scores, number), generate

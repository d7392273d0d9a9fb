"""Compilation with numba, for all compiled functions of the package.

The dispatcher of a function, numba's object that compiles and calls it, is created when the function is first called or
compiled into another one. numba is imported only then: otherwise, importing the package would take more than twice the
time.
"""

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import Any, TypeVar, cast

from aucforest._sources import digest_sources

F = TypeVar("F", bound=Callable[..., object])


# The digest is computed and cached at import, because the files may be edited before the imported code is compiled.
digest_sources()


class Compiled:
    """A compiled function with the attributes of its numba dispatcher, which is created at the first use."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        """Create the attribute `dispatcher`, or return an attribute of the dispatcher."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name != "dispatcher":
            return getattr(self.dispatcher, name)
        # If two threads create a dispatcher at the same time, both get the first one.
        return self.__dict__.setdefault("dispatcher", self._make())

    def __reduce__(self) -> Any:
        """Pickle the function by its name, or by its dispatcher if it is a lambda or a local function."""
        return (_unpickle, (self.dispatcher,)) if "<" in self.__qualname__ else self.__qualname__

    @property
    def _numba_type_(self) -> Any:
        """The type of the dispatcher. numba reads this attribute if a compiled function uses this object."""
        return _dispatchers().type_of(self.dispatcher)


def _unpickle(dispatcher: Any) -> Any:
    return dispatcher


def _dispatchers() -> Any:
    from aucforest import _dispatchers  # imports numba

    return _dispatchers


def _compiled(function: F, kind: str) -> F:
    compiled = Compiled(lambda: _dispatchers().make(function, kind))
    return cast(F, update_wrapper(compiled, function))


def kernel(function: F) -> F:
    """Compile a function that Python code calls. It may allocate arrays. Its machine code is cached on disk."""
    return _compiled(function, "kernel")


def device(function: F) -> F:
    """Compile a function that only compiled functions call (on the CPU). It is compiled as a part of each caller."""
    return _compiled(function, "device")


def bare_kernel(function: F) -> F:
    """Compile a kernel without reference counting. It may slice arrays, but it may not allocate arrays."""
    return _compiled(function, "bare_kernel")


def bare_device(function: F) -> F:
    """Compile a function that only bare kernels call. It is inlined, and it may not allocate arrays."""
    return _compiled(function, "bare_device")


def outlined_device(function: F) -> F:
    """Compile a `bare_device` that is not inlined: callers compile faster, but each call takes time."""
    return _compiled(function, "outlined_device")


def by_code(functions: dict[int, Callable[..., Any]]) -> Callable[..., Any]:
    """Return a compiled f(key, *arguments) that calls functions[key], or the last function if the key is unknown."""
    # numba can only call functions that are constants, so the result is a chain of conditions.
    (key, first), *others = functions.items()
    if not others:
        return bare_device(lambda given, *arguments: first(*arguments))
    rest = by_code(dict(others))
    return bare_device(lambda given, *arguments: first(*arguments) if given == key else rest(given, *arguments))


def replacing(kind: Any, *names: str) -> Callable[..., Any]:
    """Return a compiled f(given, *values) that replaces fields of a `kind`, a named tuple: numba has no `_replace`."""
    fields = ", ".join(name if name in names else f"given.{name}" for name in kind._fields)
    return bare_device(eval(f"lambda given, {', '.join(names)}: kind({fields})", {"kind": kind, "__name__": __name__}))


def is_compiled(function: object) -> bool:
    """Return whether a function is compiled by `numba.njit`."""
    from numba.extending import is_jitted

    return bool(is_jitted(function))


# lowest_bit(word): return the index of the lowest set bit of a nonzero uint64
lowest_bit: Any = Compiled(lambda: _dispatchers().lowest_bit)
# prefetch(array, index): prefetch an element of an array into the CPU caches, given its index in C order
prefetch: Any = Compiled(lambda: _dispatchers().prefetch)
# call_scorer(address, lefts, totals, scores, n_splits): call the C function of `compile_scorer` at `address`.
# `lefts` has a row for each split: the class totals left of the split.
call_scorer: Any = Compiled(lambda: _dispatchers().call_scorer)


@lru_cache(maxsize=64)
def compile_scorer(function: Any) -> Any:
    """Compile f(left, totals) -> score into a C function that scores many splits; `.address` is its address.

    The C function takes (lefts, totals, scores, n_splits, n_classes): three pointers to doubles and two int64. It
    returns 1 if f raised an exception, else 0. Raises ValueError if f does not compile or does not return a number.
    """
    import numba

    doubles = numba.types.CPointer(numba.types.float64)
    signature = numba.types.int64(doubles, doubles, doubles, numba.types.int64, numba.types.int64)

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
        return numba.cfunc(signature)(score_splits)
    except Exception as error:
        name = function.py_func.__name__
        raise ValueError(
            f"criterion: {name} does not compile to a function of two float64 arrays that returns a number"
        ) from error

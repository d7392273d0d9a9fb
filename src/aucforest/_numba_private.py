"""The private parts of numba that are used for the functions of `aucforest._compile`: the parts it can do without.

They save time only: without this module, kernels compute the same. `_dispatchers` does without it if numba has changed
such that it cannot be imported, or fails when it is first used.
"""

import hashlib
import pickle
from contextlib import suppress
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.datamodel.models import TupleModel, UniTupleModel
from numba.core.serialize import dumps

from aucforest._files import write_whole

_DIGEST_BYTES = hashlib.sha256().digest_size


class CodeFiles:
    """The machine code of a kernel on disk, one file for each signature.

    It offers numba's cache file interface: load, save, flush.
    It replaces the index that numba keeps for a kernel, which has two faults. It only depends on the file of the
    kernel, so it would miss edits of the functions that the kernel calls; here, file names have a digest of all
    sources. And two processes that compile a kernel for different types at once could overwrite each other's code.
    """

    def __init__(self, cache: Any, sources: str) -> None:
        self._folder, self._kernel, self._sources = Path(cache.cache_path), cache._impl.filename_base, sources

    def path(self, key: Any) -> Path:
        """Return the file for a key of numba, which lacks whether bounds are checked."""
        digest = hashlib.sha256(repr((key, numba.config.BOUNDSCHECK)).encode()).hexdigest()[:32]
        return self._folder / f"{self._kernel}.{self._sources}.{digest}.nbc"

    def load(self, key: Any) -> Any:
        """Return the code for a key, or None if there is none that can be read; then it is compiled anew."""
        with suppress(Exception):
            content = self.path(key).read_bytes()
            # Damaged code would end the process.
            if hashlib.sha256(content[_DIGEST_BYTES:]).digest() == content[:_DIGEST_BYTES]:
                return pickle.loads(content[_DIGEST_BYTES:])
        return None

    def save(self, key: Any, code: Any) -> None:
        """Write the code for a key, and remove the code of other versions of the sources."""
        with suppress(Exception):  # without a file, the kernel is compiled again
            saved = dumps(code)
            write_whole(self.path(key), hashlib.sha256(saved).digest() + saved)
            python_tag = self._kernel.rpartition(".")[2]  # code of other versions of Python stays
            for path in self._folder.glob(f"*.{python_tag}.*nb[ci]*"):
                if self._sources not in path.name:
                    path.unlink(missing_ok=True)

    def flush(self) -> None:
        """Remove all code of the kernel, as `recompile` of numba asks for."""
        for path in self._folder.glob(f"{self._kernel}.*.nbc"):
            path.unlink(missing_ok=True)


def use_code_files(compiled: Any, sources: str) -> None:
    """Let a compiled kernel, of `cache=True`, keep its machine code in `CodeFiles`."""
    if not hasattr(compiled._cache, "_cache_file"):
        raise AttributeError("the cache of numba has no _cache_file")
    compiled._cache._cache_file = CodeFiles(compiled._cache, sources)


@lru_cache(maxsize=1)
def _remembering_context(context: Any) -> Any:
    """Return a typing context that keeps the types of calls, each of which type inference resolves about ten times."""
    context, types = copy(context), {}
    resolve = context.resolve_function_type

    def resolve_once(function: Any, args: Any, kws: Any) -> Any:
        key = function, tuple(args), tuple(dict(kws).items())
        try:
            is_known = key in types
        except TypeError:  # a literal slice has no hash
            return resolve(function, args, kws)
        if not is_known:
            types[key] = resolve(function, args, kws)
        return types[key]

    context.resolve_function_type = resolve_once
    return context


class _Whole:
    """The model of a named tuple that is passed as it is: numba passes each number in it, and callees join them again.

    A value, an argument and a result have the same type, so no conversion is needed. Only functions that are compiled
    by this package may be called with such tuples.
    """

    def get_argument_type(self) -> Any:
        return self.get_value_type()  # type: ignore[attr-defined]

    def as_argument(self, builder: Any, value: Any) -> Any:
        return value

    get_return_type = get_argument_type
    from_argument = as_return = from_return = as_argument


class _WholeTuple(_Whole, TupleModel):
    """Of several types."""


class _WholeUniTuple(_Whole, UniTupleModel):
    """Of one type."""


@lru_cache(maxsize=1)
def _models(manager: Any) -> Any:
    """Return the data models of numba, but for named tuples."""
    models = manager.copy()
    models.register(numba.types.NamedTuple, _WholeTuple)
    models.register(numba.types.NamedUniTuple, _WholeUniTuple)
    return models


_DEFAULT_FLAGS = {name: option.default for name, option in Flags.options.items()}


class _Flags(Flags):
    """Flags that are compared in less time, which type inference does some 50,000 times."""

    __slots__ = ()

    def values(self) -> dict[str, Any]:
        return {**_DEFAULT_FLAGS, **self._values}


class KernelCompiler(Compiler):
    """Compiles in less time, and to machine code that computes the same."""

    def __init__(self, typing_context: Any, *others: Any) -> None:
        super().__init__(typing_context, *others)
        self.state.typingctx = _remembering_context(typing_context)
        target = self.state.targetctx
        target.data_model_manager = _models(target.data_model_manager)
        self.state.flags = _Flags(self.state.flags)


class _NoMachineCode:
    """Stands for the machine code of a function that is never called from Python."""

    def set_env(self, *_: object) -> None:
        """Do nothing."""


class _DeviceLibrary(JITCodeLibrary):
    """The code of a device, which is neither optimized nor made into machine code before it is part of a kernel."""

    codegen = _NoMachineCode()

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class DeviceCompiler(KernelCompiler):
    """Compiles functions that only kernels call: numba would make machine code of each, in twice the time."""

    def __init__(self, typing_context: Any, target_context: Any, _: None, *others: Any) -> None:
        library = _DeviceLibrary(target_context.codegen(), "device")
        super().__init__(typing_context, target_context, library, *others)

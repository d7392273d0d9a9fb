"""The machine code of kernels on disk: what a wheel brings, and what is compiled on this machine.

A wheel has code for some levels of processors in the folder ``compiled``. The build hook compiles it, with
``NUMBA_CPU_NAME`` set to the level. Code that is compiled on this machine is in numba's folder for its cache.
"""

import hashlib
import json
import os
import pickle
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba
from numba.core.caching import NullCache
from numba.core.codegen import get_host_cpu_features
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from aucforest._files import write_whole
from aucforest._sources import digest_sources

_V2 = frozenset({"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"})
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
_X86: dict[str, frozenset[str]] = {"x86-64-v3": _V3, "x86-64-v2": _V2}
_ARM: dict[str, frozenset[str]] = {"generic": frozenset()}
# Levels by the architecture, the best first, and the features that a processor of a level has. numpy needs x86-64-v2.
LEVELS = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}

SHIPPED_FOLDER = Path(__file__).with_name("compiled")
MANIFEST = "compiled_with.json"

_PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
# What the names of files have of the versions of Python, numba and the sources
_VERSION = f"{_PYTHON}.{hashlib.sha256(f'{digest_sources()} {numba.__version__}'.encode()).hexdigest()[:16]}"
_MACHINE = f"{sys.platform} {platform.machine().lower()}"
_DIGEST_BYTES = hashlib.sha256().digest_size


class Shipped(NamedTuple):
    """The code that came with the package: the level that this processor can run; none for the reason `why_not`."""

    level: str = ""
    why_not: str = ""


def levels() -> list[str]:
    """Return the levels that this processor can run, the best first."""
    # those of LLVM, without what NUMBA_ENABLE_AVX=0 takes away
    features = {name[1:] for name in get_host_cpu_features().split(",") if name.startswith("+")}
    return [level for level, needed in LEVELS.get(platform.machine().lower(), {}).items() if needed <= features]


def compiled_with() -> dict[str, str]:
    """Return what all machine code of this process depends on, with a digest of the sources."""
    return {"Python": _PYTHON, "numba": numba.__version__, "a machine": _MACHINE, "sources": digest_sources()}


@cache
def shipped() -> Shipped:
    """Return which of the shipped code this process can use; none at all if AUCFOREST_NATIVE is set."""
    if os.environ.get("AUCFOREST_NATIVE"):
        return Shipped()
    try:
        given = json.loads((SHIPPED_FOLDER / MANIFEST).read_text())
    except (OSError, ValueError):
        return Shipped()
    for name, here in compiled_with().items():
        if given.get(name) != here:
            of = "other sources" if name == "sources" else f"{name} {given.get(name)}, not {here}"
            return Shipped(why_not=f"the installed machine code is of {of}")
    for level in levels():
        if (SHIPPED_FOLDER / level).is_dir():
            return Shipped(level)
    return Shipped(why_not="there is no installed machine code for this processor")


def _locate() -> None:
    """Let numba say where it would keep the code of this function."""


@cache
def _own_folder(setting: str) -> Path | None:
    """Return the folder for code that is compiled here, given NUMBA_CACHE_DIR; None if none can be written to."""
    try:
        return Path(numba.njit(cache=True)(_locate).stats.cache_path)
    except RuntimeError:
        return None


def own_folder() -> Path | None:
    """Return the folder for code that is compiled on this machine; None if numba finds none that can be written to."""
    return _own_folder(numba.config.CACHE_DIR)


def status() -> str:
    """Return a sentence on where the machine code of this installation comes from."""
    found, own = shipped(), own_folder()
    n_own = 0 if own is None else sum(1 for _ in own.glob(f"aucforest.*.{_VERSION}.*.nbc"))
    parts = [f"shipped for {found.level}"] if found.level else []
    parts += [f"compiled for this machine ({n_own} kernels)"] if n_own else []
    none = f"none yet, because {found.why_not}" if found.why_not else "none yet"
    return f"machine code: {' and '.join(parts) or none}"


def how_often() -> str:
    """Return how often code is compiled on this machine, and why, as the end of a sentence."""
    if own_folder() is None:
        return "in each process: set NUMBA_CACHE_DIR to a folder for its cache"
    why_not = shipped().why_not
    return f"once, because {why_not}" if why_not else "once"


class KernelCode(NullCache):
    """The machine code of a kernel, one file for each signature: what numba asks of a cache.

    It replaces the files that numba keeps for a kernel, which depend on the file of the kernel only, so that edits of
    the functions that it calls would be missed, and whose index two processes could overwrite at once. Here, the names
    of files have a digest of all sources, the signature, and the processor.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        name = f"{function.__module__}.{function.__qualname__}".translate({ord("<"): None, ord(">"): None})
        self._name = f"{name}-{code.co_firstlineno}.{_VERSION}"
        self._bytecode = hashlib.sha256(code.co_code).hexdigest()

    @property
    def cache_path(self) -> Path | None:
        """The folder for code that is compiled on this machine."""
        return own_folder()

    def _file(self, signature: Any, processor: tuple[str, str]) -> str:
        """Return the name of a file; processor: its name and its features."""
        key = signature, _MACHINE, processor, self._bytecode, numba.config.BOUNDSCHECK
        return f"{self._name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.nbc"

    def _own_file(self, signature: Any, context: Any) -> Path | None:
        """Return the path of code that is compiled on this machine."""
        folder, (_, *processor) = own_folder(), context.codegen().magic_tuple()
        return folder and folder / self._file(signature, tuple(processor))

    def _files(self, signature: Any, context: Any) -> Iterator[Path]:
        """Yield the files that may have the code for a signature, the best first."""
        if own := self._own_file(signature, context):
            yield own
        if level := shipped().level:
            yield SHIPPED_FOLDER / level / self._file(signature, (level, ""))

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the code for a signature, or None if there is none that can be read; then it is compiled."""
        context.refresh()
        for path in self._files(signature, context):
            with suppress(Exception):
                content = path.read_bytes()
                # Damaged code would end the process.
                if hashlib.sha256(content[_DIGEST_BYTES:]).digest() == content[:_DIGEST_BYTES]:
                    return CompileResult._rebuild(context, *pickle.loads(content[_DIGEST_BYTES:]))
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write the code for a signature, and remove the code of other versions of the sources."""
        with suppress(Exception):  # without a file, the kernel is compiled again
            path = self._own_file(signature, compiled.target_context)
            if path is None or compiled.library.has_dynamic_globals:
                return
            saved = dumps(compiled._reduce())
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, hashlib.sha256(saved).digest() + saved)
            # code of other versions of Python stays
            for other in path.parent.glob(f"aucforest.*.{_PYTHON}.*.nbc"):
                if f".{_VERSION}." not in other.name:
                    other.unlink(missing_ok=True)

    def flush(self) -> None:
        """Remove all code of the kernel that was compiled on this machine, as `recompile` of numba asks for."""
        if folder := own_folder():
            for path in folder.glob(f"{self._name}.*.nbc"):
                path.unlink(missing_ok=True)

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
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba
from numba.core.caching import FunctionCache, NullCache
from numba.core.codegen import get_host_cpu_features
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from aucforest._files import write_whole
from aucforest._sources import digest_sources

_V2 = frozenset({"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"})
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
_X86: dict[str, frozenset[str]] = {"x86-64-v3": _V3, "x86-64-v2": _V2}
_ARM: dict[str, frozenset[str]] = {"generic": frozenset()}
# Levels by the architecture, the best first, and the features that a processor of a level has.
LEVELS = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}

SHIPPED_FOLDER = Path(__file__).with_name("compiled")
MANIFEST = "compiled_with.json"

_MACHINE = f"{sys.platform} {platform.machine().lower()}"
_DIGEST_BYTES = hashlib.sha256().digest_size


def _digest(*values: object) -> str:
    """Return a short digest of values, for the names of files."""
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


_PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
_VERSION = f"{_PYTHON}.{_digest(digest_sources(), numba.__version__)}"


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
    """Return what all shipped machine code depends on."""
    return {"Python": _PYTHON, "numba": numba.__version__, "machine": _MACHINE, "sources": digest_sources()}


def is_set(variable: str) -> bool:
    """Return whether an environment variable is set to something other than 0."""
    return os.environ.get(variable, "0") not in ("", "0")


@cache
def shipped() -> Shipped:
    """Return which of the shipped code this process can use; none at all if AUCFOREST_NATIVE is set."""
    if is_set("AUCFOREST_NATIVE"):
        return Shipped()
    try:
        given = dict(json.loads((SHIPPED_FOLDER / MANIFEST).read_text()))
    except OSError:
        return Shipped()
    except (ValueError, TypeError):
        return Shipped(why_not=f"{SHIPPED_FOLDER / MANIFEST} is damaged")
    if "error" in given:
        return Shipped(why_not=f"the package was installed, but could not be compiled: {given['error']}")
    for name, here in compiled_with().items():
        if given.get(name) != here:
            of = "from other sources" if name == "sources" else f"for {name} {given.get(name)}, and this is {here}"
            return Shipped(why_not=f"the installed machine code was compiled {of}")
    for level in levels():
        if (SHIPPED_FOLDER / level).is_dir():
            return Shipped(level)
    return Shipped(why_not="the installed machine code is for other processors")


def _locate() -> None:
    """Let numba say where it would keep the code of this function."""


@cache
def _own_folder(setting: str) -> Path | None:
    """Return the folder for code that is compiled here, given NUMBA_CACHE_DIR; None if none can be written to."""
    try:
        return Path(FunctionCache(_locate).cache_path)
    except RuntimeError:
        return None


def own_folder() -> Path | None:
    """Return the folder for code that is compiled on this machine; None if numba finds none that can be written to."""
    return _own_folder(numba.config.CACHE_DIR)


def _processor(name: str, features: str) -> str:
    """Return what the names of files have of the processor."""
    return _digest(_MACHINE, name, features, numba.config.BOUNDSCHECK)


def _own_processor() -> str:
    """Return the same for the processor that numba compiles for."""
    return _processor(*cpu_target.target_context.codegen().magic_tuple()[1:])


def status() -> str:
    """Return a sentence on where the machine code of this installation comes from."""
    found, own = shipped(), own_folder()
    n_own = 0 if own is None else sum(1 for _ in own.glob(f"*.{_VERSION}.{_own_processor()}.*.nbc"))
    if numba.config.DISABLE_JIT:
        text = "not used, because NUMBA_DISABLE_JIT is set"
    elif found.level:
        text = f"shipped for {found.level}" + (f", and {n_own} files compiled for this machine" if n_own else "")
    elif n_own:
        text = f"compiled for this machine, {n_own} files so far"
    else:
        text = f"none yet, because {found.why_not}" if found.why_not else "none yet"
    return f"machine code: {text}"


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
    of files have a digest of all sources, the processor and the signature.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}".removeprefix("aucforest.") + f".{_VERSION}"

    @property
    def cache_path(self) -> Path | None:
        """The folder for code that is compiled on this machine."""
        return own_folder()

    def _own_file(self, signature: Any) -> Path | None:
        """Return the path of code that is compiled on this machine."""
        folder = own_folder()
        return folder and folder / f"{self._name}.{_own_processor()}.{_digest(signature)}.nbc"

    def _files(self, signature: Any) -> Iterator[Path]:
        """Yield the files that may have the code for a signature, the best first."""
        if own := self._own_file(signature):
            yield own
        if level := shipped().level:
            yield SHIPPED_FOLDER / level / f"{self._name}.{_processor(level, '')}.{_digest(signature)}.nbc"

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the code for a signature, or None if there is none that can be read; then it is compiled."""
        context.refresh()
        for path in self._files(signature):
            with suppress(Exception):
                content = path.read_bytes()
                # Damaged code would end the process.
                if hashlib.sha256(content[_DIGEST_BYTES:]).digest() == content[:_DIGEST_BYTES]:
                    return CompileResult._rebuild(context, *pickle.loads(content[_DIGEST_BYTES:]))
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write the code for a signature, and remove the code of other versions of the sources."""
        path = self._own_file(signature)
        if path is None or compiled.library.has_dynamic_globals:
            return
        try:
            saved = dumps(compiled._reduce())
        except Exception as error:
            reason = f"it cannot be kept with numba {numba.__version__}: {type(error).__name__}: {error}"
            warnings.warn(f"aucforest is compiled in each process, because {reason}", RuntimeWarning, stacklevel=2)
            return
        with suppress(OSError):  # without a file, the kernel is compiled again
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, hashlib.sha256(saved).digest() + saved)
            # with what was half written; code of other versions of Python stays
            for other in path.parent.glob(f"*.{_PYTHON}.*.nbc*"):
                if f".{_VERSION}." not in other.name:
                    other.unlink(missing_ok=True)

    def flush(self) -> None:
        """Remove all code of the kernel that was compiled on this machine, as `recompile` of numba asks for."""
        if folder := own_folder():
            for path in folder.glob(f"{self._name}.*.nbc"):
                path.unlink(missing_ok=True)

"""The machine code of kernels on disk: shipped in a wheel, or compiled on this machine.

A wheel contains code for several processor levels, such as x86-64-v3, in the folder ``compiled``. To compile it, the
build hook sets ``NUMBA_CPU_NAME`` to the level. Code that is compiled on this machine is in numba's cache folder.
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
# The processor levels of each architecture, the best first, with the processor features (LLVM names) of each level.
LEVELS = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}

SHIPPED_FOLDER = Path(__file__).with_name("compiled")
MANIFEST = "compiled_with.json"

_MACHINE = f"{sys.platform} {platform.machine().lower()}"
_DIGEST_BYTES = hashlib.sha256().digest_size


def _digest(*values: object) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


_PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
_VERSION = f"{_PYTHON}.{_digest(digest_sources(), numba.__version__)}"


class Shipped(NamedTuple):
    """The processor level of the usable shipped code, or "" if there is none. `why_not` may give the reason."""

    level: str = ""
    why_not: str = ""


def levels() -> list[str]:
    """Return the levels that this processor can run, the best first."""
    # If NUMBA_ENABLE_AVX is 0, numba's features do not include AVX.
    features = {name[1:] for name in get_host_cpu_features().split(",") if name.startswith("+")}
    return [level for level, needed in LEVELS.get(platform.machine().lower(), {}).items() if needed <= features]


def compiled_with() -> dict[str, str]:
    """Return what shipped machine code depends on, by name: versions, the machine, and the digest of the sources."""
    return {"Python": _PYTHON, "numba": numba.__version__, "machine": _MACHINE, "sources": digest_sources()}


def is_set(variable: str) -> bool:
    """Return whether an environment variable is neither missing nor empty nor 0."""
    return os.environ.get(variable, "0") not in ("", "0")


@cache
def shipped() -> Shipped:
    """Return which shipped code this process can use: none if AUCFOREST_NATIVE is set."""
    if is_set("AUCFOREST_NATIVE"):
        return Shipped()
    try:
        manifest = dict(json.loads((SHIPPED_FOLDER / MANIFEST).read_text()))
    except OSError:
        return Shipped()
    except (ValueError, TypeError):
        return Shipped(why_not=f"{SHIPPED_FOLDER / MANIFEST} is damaged")
    if "error" in manifest:
        return Shipped(why_not=f"the package was installed, but could not be compiled: {manifest['error']}")
    for name, here in compiled_with().items():
        if (there := manifest.get(name)) != here:
            how = "from other sources" if name == "sources" else f"for {name} {there}, and this is {here}"
            return Shipped(why_not=f"the installed machine code was compiled {how}")
    for level in levels():
        if (SHIPPED_FOLDER / level).is_dir():
            return Shipped(level)
    return Shipped(why_not="the installed machine code is for other processors")


@cache
def own_folder() -> Path | None:
    """Return the folder for code that is compiled on this machine, or None if numba finds no writable folder."""
    try:
        # numba determines the folder from the file that defines a function. Any function of this file will do.
        return Path(FunctionCache(_digest).cache_path)
    except RuntimeError:
        return None


def _processor(name: str, features: str) -> str:
    """Return the part of file names that identifies a processor."""
    return _digest(_MACHINE, name, features, numba.config.BOUNDSCHECK)


def _own_processor() -> str:
    return _processor(*cpu_target.target_context.codegen().magic_tuple()[1:])


def status() -> str:
    """Return a sentence on where the machine code comes from."""
    (level, why_not), folder = shipped(), own_folder()
    n_own = 0 if folder is None else sum(1 for _ in folder.glob(f"*.{_VERSION}.{_own_processor()}.*.nbc"))
    if numba.config.DISABLE_JIT:
        text = "not used, because NUMBA_DISABLE_JIT is set"
    elif level:
        text = f"shipped for {level}" + (f", and {n_own} files compiled for this machine" if n_own else "")
    elif n_own:
        text = f"compiled for this machine, {n_own} files so far"
    else:
        text = f"none yet, because {why_not}" if why_not else "none yet"
    return f"machine code: {text}"


def how_often() -> str:
    """Return how often code is compiled on this machine, and why, as the end of a sentence."""
    if own_folder() is None:
        return "in each process: set NUMBA_CACHE_DIR to a folder for its cache"
    why_not = shipped().why_not
    return f"once, because {why_not}" if why_not else "once"


class KernelCode(NullCache):
    """The cache of a kernel for numba. It stores the machine code of each signature in one file.

    numba's own cache only checks the source file of the kernel, so it would miss edits of functions that the kernel
    calls. Two processes could also overwrite its index at the same time. The file names of this cache contain digests
    of all sources, the processor and the signature.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}".removeprefix("aucforest.") + f".{_VERSION}"

    def _own_file(self, signature: Any) -> Path | None:
        folder = own_folder()
        return folder and folder / f"{self._name}.{_own_processor()}.{_digest(signature)}.nbc"

    def _files(self, signature: Any) -> Iterator[Path]:
        """Yield the files that may contain the code for a signature, the best first."""
        if own := self._own_file(signature):
            yield own
        if level := shipped().level:
            yield SHIPPED_FOLDER / level / f"{self._name}.{_processor(level, '')}.{_digest(signature)}.nbc"

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the code for a signature. If no file can be read, return None: then numba compiles the kernel."""
        context.refresh()
        for path in self._files(signature):
            with suppress(Exception):
                content = path.read_bytes()
                # Damaged code could crash the process.
                if hashlib.sha256(content[_DIGEST_BYTES:]).digest() == content[:_DIGEST_BYTES]:
                    return CompileResult._rebuild(context, *pickle.loads(content[_DIGEST_BYTES:]))
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write the code for a signature, and remove code that was compiled from other versions of the sources."""
        path = self._own_file(signature)
        if path is None or compiled.library.has_dynamic_globals:  # such as addresses in this process
            return
        try:
            saved = dumps(compiled._reduce())
        except Exception as error:
            reason = f"it cannot be kept with numba {numba.__version__}: {type(error).__name__}: {error}"
            warnings.warn(f"aucforest is compiled in each process, because {reason}", RuntimeWarning, stacklevel=2)
            return
        with suppress(OSError):  # without a file, the next process compiles the kernel again
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, hashlib.sha256(saved).digest() + saved)
            # The pattern includes partially written files, and excludes code for other versions of Python.
            for old_path in path.parent.glob(f"*.{_PYTHON}.*.nbc*"):
                if f".{_VERSION}." not in old_path.name:
                    old_path.unlink(missing_ok=True)

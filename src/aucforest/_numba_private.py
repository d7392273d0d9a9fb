"""An optional, faster compiler for devices, the functions that only kernels call. It uses private parts of numba.

With numba's own compiler, the kernels are the same, but take twice the time to compile. If numba has changed and this
compiler fails for a test function, `_dispatchers` uses numba's compiler.
"""

from types import SimpleNamespace
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _DeviceLibrary(JITCodeLibrary):
    """The code of a device. It is optimized, and compiled to machine code, only as a part of kernels."""

    codegen = SimpleNamespace(set_env=lambda *_: None)  # there is no machine code to set an address in

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class DeviceCompiler(Compiler):
    """Compiler that generates no machine code for devices."""

    def __init__(self, typing_context: Any, target_context: Any, _: None, *others: Any) -> None:
        library = _DeviceLibrary(target_context.codegen(), "device")
        super().__init__(typing_context, target_context, library, *others)

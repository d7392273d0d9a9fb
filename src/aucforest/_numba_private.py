"""An optional, faster compiler for the functions that only kernels call, which uses private parts of numba.

With numba's own compiler, the kernels are the same, but take twice the time to compile. If numba has changed and this
compiler fails for a first function, `_dispatchers` uses numba's compiler.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _NoMachineCode:
    """Replacement for the machine code of a function that is never called from Python."""

    def set_env(self, *_: object) -> None:
        """Do nothing."""


class _DeviceLibrary(JITCodeLibrary):
    """The code of a device, which is optimized and compiled to machine code only as a part of kernels."""

    codegen = _NoMachineCode()

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class DeviceCompiler(Compiler):
    """Compiler of devices that generates no machine code for them. numba's compiler does, and takes twice the time."""

    def __init__(self, typing_context: Any, target_context: Any, _: None, *others: Any) -> None:
        library = _DeviceLibrary(target_context.codegen(), "device")
        super().__init__(typing_context, target_context, library, *others)

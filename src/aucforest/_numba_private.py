"""The compiler of the functions that only kernels call, on private parts of numba, which it can do without.

It saves time only: with numba's own compiler, kernels are the same, but compiled in twice the time. `_dispatchers` does
without it if numba has changed such that it fails when the first function is compiled.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


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


class DeviceCompiler(Compiler):
    """Compiles functions that only kernels call: numba would make machine code of each, in twice the time."""

    def __init__(self, typing_context: Any, target_context: Any, _: None, *others: Any) -> None:
        library = _DeviceLibrary(target_context.codegen(), "device")
        super().__init__(typing_context, target_context, library, *others)

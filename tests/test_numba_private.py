"""The compiler for devices. If private parts of numba have changed, numba's own compiler is used."""

from unittest.mock import Mock

import numpy as np
import pytest

from aucforest import _dispatchers, _numba_private
from aucforest._compile import bare_device, bare_kernel


@pytest.fixture(autouse=True)
def compilers():
    """Choose the compiler again, in these tests and after them."""
    _dispatchers._device_compiler.cache_clear()
    yield
    _dispatchers._device_compiler.cache_clear()


def second_and_third():
    element = bare_device(lambda values, index: values[index])
    return bare_kernel(lambda values: element(values, 1) + element(values, 2))(np.arange(4))


def test_a_device_is_not_made_into_machine_code():
    element = bare_device(lambda values, index: values[index])
    bare_kernel(lambda values: element(values, 1))(np.arange(4))
    (library,) = [compiled.library for compiled in element.overloads.values()]
    assert isinstance(library, _numba_private._DeviceLibrary)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (_numba_private.DeviceCompiler, "__init__"), (_numba_private._DeviceLibrary, "_finalize_final_module"),
        (_numba_private, "DeviceCompiler"),
    ],
    ids=lambda part: getattr(part, "__name__", part),
)  # fmt: skip
def test_without_a_part_that_numba_has_changed_code_is_compiled_by_numba_alone(owner, name, monkeypatch):
    refuse = Mock(side_effect=TypeError("it takes another argument now"))
    monkeypatch.delattr(owner, name) if owner is _numba_private else monkeypatch.setattr(owner, name, refuse)
    sentence = r"^aucforest is compiled more slowly, because it does not know numba .*: .+"
    with pytest.warns(RuntimeWarning, match=sentence) as said:
        assert second_and_third() == 3
    assert len(said) == 1


def test_a_compiler_that_computes_something_else_is_not_used(monkeypatch):
    class Wrong(_numba_private.DeviceCompiler):
        def compile_extra(self, function):
            return super().compile_extra(lambda values, index: values[0])

    monkeypatch.setattr(_numba_private, "DeviceCompiler", Wrong)
    with pytest.warns(RuntimeWarning, match="a compiled sum is wrong$"):
        assert second_and_third() == 3

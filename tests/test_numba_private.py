"""Machine code on disk, and named tuples as arguments."""

from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

from aucforest import _dispatchers, _numba_private
from aucforest._compile import bare_kernel, device, kernel


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def add_one(x):
    return x + 1


def element(values, i):
    return values[i]


def test_processes_that_compile_at_the_same_moment_keep_their_code_apart(cache, monkeypatch):
    first, second, later = (bare_kernel(add_one)._cache._cache_file for _ in range(3))
    first.path("").parent.mkdir(exist_ok=True)
    write_whole = _numba_private.write_whole

    def write_after_the_second(path, content):
        monkeypatch.setattr(_numba_private, "write_whole", write_whole)
        second.save("int64", "code for int64")
        write_whole(path, content)

    monkeypatch.setattr(_numba_private, "write_whole", write_after_the_second)
    first.save("float64", "code for float64")
    assert later.load("int64") == "code for int64"
    assert later.load("float64") == "code for float64"


def spoil(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-400] ^= 0x80
    file.write_bytes(content)


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b""), spoil])
def test_code_is_found_again_unless_it_is_damaged(damage, cache):
    for n_hits in (0, 1, 0, 1):
        compiled = kernel(add_one)
        assert compiled(1) == 2
        assert sum(compiled.stats.cache_hits.values()) == n_hits
        (file,) = cache.rglob("*.nbc")
        if n_hits == 1:
            damage(file)
    compiled.recompile()
    assert sum(compiled.stats.cache_misses.values()) == 1


def test_code_that_checks_bounds_is_other_code(cache, monkeypatch):
    values = np.arange(3)
    assert kernel(element)(values, 1) == 1
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    with pytest.raises(IndexError):
        kernel(element)(values, 3)
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", None)
    again = kernel(element)
    again(values, 1)
    assert sum(again.stats.cache_hits.values()) == 1


class Ends(NamedTuple):
    low: int
    high: float


def test_a_named_tuple_is_one_argument(cache):
    middle = device(lambda ends: 0.5 * (ends.low + ends.high))
    assert middle(Ends(1, 2.0)) == 1.5
    (text,) = middle.inspect_llvm().values()
    assert "{ i64, double } %arg.ends" in text


PARTS = [
    (_numba_private.KernelCompiler, "__init__"),
    (_numba_private.DeviceCompiler, "__init__"),
    (_numba_private._Flags, "values"),
    (_numba_private._DeviceLibrary, "_finalize_final_module"),
    (_numba_private._Whole, "as_argument"),
    (_numba_private, "_remembering_context"),
    (_numba_private, "_models"),
    (_numba_private, "use_code_files"),
    (_numba_private.CodeFiles, "__init__"),
]


@pytest.fixture
def compilers(monkeypatch):
    """Let compilers be chosen anew, here and in the tests after this one."""
    monkeypatch.setattr(_dispatchers, "_watch", _dispatchers._Watch())
    monkeypatch.setattr(_dispatchers, "_numba_private", _numba_private)
    _dispatchers._compilers.cache_clear()
    yield
    _dispatchers._compilers.cache_clear()


def refuse(*_, **__):
    raise TypeError("it takes another argument now")


@pytest.mark.parametrize(("owner", "name"), PARTS, ids=lambda part: getattr(part, "__name__", part))
def test_without_a_part_that_numba_has_changed_code_is_compiled_by_numba_alone(
    owner, name, cache, compilers, monkeypatch
):
    monkeypatch.setattr(owner, name, refuse)
    first = device(lambda ends: ends.low)
    call = bare_kernel(lambda ends: first(ends) + 1)
    sentence = r"^aucforest is compiled more slowly and anew in each process, because it does not know numba .*: .+"
    with pytest.warns(RuntimeWarning, match=sentence) as said:
        assert [kernel(add_one)(1), call(Ends(1, 2.0))] == [2, 2]
    assert len(said) == 1
    assert "cannot cache code of this version of numba" in _dispatchers._watch.how_often


def test_a_file_that_cannot_be_written_is_no_error(cache, monkeypatch):
    monkeypatch.setattr(_numba_private, "dumps", refuse)
    assert kernel(add_one)(1) == 2
    assert not list(cache.rglob("*.nbc"))


def test_another_name_of_the_cache_file_is_noticed(cache, compilers, monkeypatch):
    made = numba.njit(cache=True)(add_one)
    del made._cache._cache_file
    with pytest.raises(AttributeError, match="the cache of numba has no _cache_file"):
        _numba_private.use_code_files(made, "0")

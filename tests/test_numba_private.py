"""Machine code on disk, and named tuples as arguments."""

from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

from aucforest import _numba_private
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

"""Compiled code is kept apart: no process finds another's in the place of its own."""

import numba
import pytest

from aucforest._compile import bare_kernel, kernel


def add_one(x):
    return x + 1


@pytest.mark.parametrize("make", [kernel, bare_kernel])
def test_processes_that_compile_at_the_same_moment_keep_their_code_apart(make, tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    one, other, later = (make(add_one)._cache._cache_file for _ in range(3))
    save_code = one._save_data

    def save_after_the_other(name, code):
        # it has read the index before this one wrote there
        with monkeypatch.context() as before:
            before.setattr(other, "_load_index", dict)
            other.save("int64", "code for int64")
        save_code(name, code)

    one._save_data = save_after_the_other
    one.save("float64", "code for float64")
    assert later.load("int64") == "code for int64"
    # its entry is lost: it is compiled again
    assert later.load("float64") is None


def test_compiled_code_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    for n_hits in (0, 1):
        compiled = kernel(add_one)
        assert compiled(1) == 2
        assert compiled(1.5) == 2.5
        assert sum(compiled.stats.cache_hits.values()) == 2 * n_hits
    assert len(list(tmp_path.rglob("*.nbc"))) == 2

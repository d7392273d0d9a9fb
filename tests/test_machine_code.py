"""Machine code on disk: compiled on this machine, or shipped with an installation."""

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numba
import numpy as np
import pytest

from aucforest import _machine_code
from aucforest._compile import kernel
from aucforest._machine_code import LEVELS, MANIFEST, how_often, levels, status
from tests.test_compile import small_package


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(_machine_code, "own_folder", lambda: tmp_path)
    return tmp_path


def add_one(x):
    return x + 1


def element(values, i):
    return values[i]


# Only the code of functions of the package is stored.
add_one.__module__ = element.__module__ = "aucforest._compile"


def n_hits(compiled):
    return sum(compiled.stats.cache_hits.values())


def test_processes_that_compile_at_the_same_time_do_not_overwrite_code(cache, monkeypatch):
    first, second, later = (kernel(add_one) for _ in range(3))
    write_whole = _machine_code.write_whole

    def write_after_the_second(path, content):
        monkeypatch.setattr(_machine_code, "write_whole", write_whole)
        second(1)
        write_whole(path, content)

    monkeypatch.setattr(_machine_code, "write_whole", write_after_the_second)
    assert first(1.5) == 2.5
    assert [later(1.5), later(1), n_hits(later)] == [2.5, 2, 2]


def spoil(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x80
    file.write_bytes(content)


DAMAGES = [Path.unlink, spoil, *(lambda file, n=n: file.write_bytes(file.read_bytes()[:n]) for n in (0, 999))]


@pytest.mark.parametrize("damage", DAMAGES)
def test_code_is_found_again_unless_it_is_damaged(damage, cache):
    for expected in (0, 1, 0, 1):
        compiled = kernel(add_one)
        assert compiled(1) == 2
        assert n_hits(compiled) == expected
        (file,) = cache.rglob("*.nbc")
        if expected == 1:
            damage(file)


def test_code_with_bounds_checks_has_its_own_file(cache, monkeypatch):
    values = np.arange(3)
    assert kernel(element)(values, 1) == 1
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    with pytest.raises(IndexError):
        kernel(element)(values, 3)
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", None)
    again = kernel(element)
    again(values, 1)
    assert n_hits(again) == 1


def test_a_file_that_cannot_be_written_is_no_error(cache, monkeypatch):
    monkeypatch.setattr(_machine_code, "write_whole", Mock(side_effect=OSError("the disk is full")))
    assert kernel(add_one)(1) == 2
    assert not list(cache.rglob("*.nbc"))


def test_there_is_a_warning_if_the_code_of_numba_cannot_be_pickled(cache, monkeypatch):
    monkeypatch.setattr(_machine_code, "dumps", lambda: None)
    with pytest.warns(RuntimeWarning, match=r"^aucforest is compiled in each process, because it cannot be kept with "):
        assert kernel(add_one)(1) == 2


def test_code_of_functions_outside_the_package_and_of_closures_is_not_kept(cache):
    for module in ("tests.test_compile", "aucforest._compile"):
        for number in (1, 2):
            add = lambda x: x + number  # noqa: B023, E731
            add.__module__ = module
            assert kernel(add)(1) == 1 + number
    of_tests = type(add_one)(add_one.__code__, {}, "add_one")
    of_tests.__module__ = "tests.test_compile"
    assert kernel(of_tests)(1) == 2
    assert not list(cache.rglob("*.nbc"))


def test_without_a_folder_code_is_compiled_in_each_process(monkeypatch):
    monkeypatch.setattr(_machine_code, "own_folder", lambda: None)
    assert kernel(add_one)(1) == 2
    assert how_often() == "in each process: set NUMBA_CACHE_DIR to a folder for its cache"


def test_the_levels_are_those_whose_features_a_processor_has(monkeypatch):
    def have(machine, *features):
        monkeypatch.setattr(_machine_code.platform, "machine", lambda: machine)
        monkeypatch.setattr(_machine_code, "get_host_cpu_features", lambda: ",".join(features))
        return levels()

    first, second = ([f"+{name}" for name in sorted(features)] for features in LEVELS["x86_64"].values())
    assert have("x86_64", *first) == ["x86-64-v3", "x86-64-v2"]
    assert have("AMD64", *(name.replace("+avx2", "-avx2") for name in first)) == ["x86-64-v2"]
    assert have("x86_64", *(name for name in second if name != "+popcnt")) == []
    assert have("arm64", "+neon") == have("aarch64") == ["generic"]
    assert have("riscv64", "+m") == []


SUM = """
import json, os
from aucforest import _dispatchers, _machine_code
from aucforest.caller import caller
called = os.environ.get("AUCFOREST_CALL", "1") == "1"
result = caller(1) if called else None
hits = sum(caller.stats.cache_hits.values()) if called and hasattr(caller.dispatcher, "stats") else 0
print(json.dumps([result, hits, _machine_code.shipped().level, _machine_code.how_often(), _machine_code.status()]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the folder of shipped code of a small package, and a function that runs a program with an empty cache.

    The code is compiled for all levels of this processor.
    """
    package, program = small_package(tmp_path_factory.mktemp("installed"))
    program.write_text(SUM)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "AUCFOREST_"))}
    inherited["PYTHONPATH"] = str(package.parent)

    def run(**settings):
        cache = tmp_path_factory.mktemp("cache")
        given = inherited | {"NUMBA_CACHE_DIR": str(cache), **settings}
        finished = subprocess.run([sys.executable, program], env=given, capture_output=True, text=True, check=True)
        said = dict(zip(("result", "hits", "level", "how_often", "status"), json.loads(finished.stdout)))
        return SimpleNamespace(**said, files=list(cache.rglob("*.nbc")))

    for level in levels():
        compiled = run(NUMBA_CPU_NAME=level, NUMBA_CPU_FEATURES="")
        assert (compiled.result, compiled.hits, compiled.level) == (2, 0, "")
        (file,) = compiled.files
        (package / "compiled" / level).mkdir(parents=True)
        file.rename(package / "compiled" / level / file.name)
    manifest = "import json; from aucforest._machine_code import *; print(json.dumps(compiled_with()))"
    made = subprocess.run([sys.executable, "-c", manifest], env=inherited, capture_output=True, check=True)
    (package / "compiled" / MANIFEST).write_bytes(made.stdout)
    return SimpleNamespace(run=run, folder=package / "compiled")


@contextmanager
def changed(file, change):
    content = file.read_bytes()
    try:
        change(file)
        yield
    finally:
        file.write_bytes(content)


def is_shipped(found, level):
    return (found.result, found.hits, found.level, found.files) == (2, 1, level, [])


COMPILED = "the installed machine code was compiled"


@pytest.mark.skipif(len(levels()) < 2, reason="the processor has one level only")
def test_a_processor_without_avx_takes_the_code_of_the_next_level(installed):
    assert is_shipped(installed.run(NUMBA_ENABLE_AVX="0"), "x86-64-v2")


def test_code_of_the_best_level_is_loaded(installed):
    found = installed.run()
    assert is_shipped(found, levels()[0])
    assert found.status == f"machine code: shipped for {levels()[0]}"


def test_code_is_compiled_for_this_machine_on_request(installed):
    found = installed.run(AUCFOREST_NATIVE="1")
    assert (found.result, found.hits, len(found.files)) == (2, 0, 1)
    assert found.status == "machine code: compiled for this machine, 1 files so far"
    assert is_shipped(installed.run(AUCFOREST_NATIVE="0"), levels()[0])


@pytest.mark.parametrize("damage", DAMAGES)
def test_shipped_code_that_is_damaged_is_passed_over(damage, installed):
    (file,) = (installed.folder / levels()[0]).iterdir()
    with changed(file, damage):
        found = installed.run()
    assert (found.result, found.hits, len(found.files)) == (2, 0, 1)
    assert found.status == f"machine code: shipped for {levels()[0]}, and 1 files compiled for this machine"


@pytest.mark.parametrize(("manifest", "reason"), [
    *((text, r"\S*compiled_with.json is damaged$") for text in ("[1]", "{")),
    ({"error": "no memory"}, "the package was installed, but could not be compiled: no memory$"),
    ({"numba": "0.1.0"}, f"{COMPILED} for numba 0.1.0, and this is {re.escape(numba.__version__)}"),
    ({"machine": "amiga m68k"}, f"{COMPILED} for machine amiga m68k, and this is "),
    ({"sources": "0"}, f"{COMPILED} from other sources"),
])  # fmt: skip
def test_code_of_other_versions_is_not_loaded_and_the_notice_says_why(manifest, reason, installed):
    def change(file):
        is_text = isinstance(manifest, str)
        file.write_text(manifest if is_text else json.dumps({**json.loads(file.read_text()), **manifest}))

    with changed(installed.folder / MANIFEST, change):
        found = installed.run()
    assert (found.result, found.hits, found.level, len(found.files)) == (2, 0, "", 1)
    assert re.match(f"once, because {reason}", found.how_often)
    assert found.status == "machine code: compiled for this machine, 1 files so far"


def test_the_status_leaves_out_code_that_this_process_would_not_load(installed, tmp_path):
    where = {"NUMBA_CACHE_DIR": str(tmp_path), "AUCFOREST_NATIVE": "1"}
    assert installed.run(**where).status == "machine code: compiled for this machine, 1 files so far"
    without = installed.run(**where, NUMBA_DISABLE_JIT="1")
    assert without.status == "machine code: not used, because NUMBA_DISABLE_JIT is set"
    (file,) = tmp_path.rglob("*.nbc")
    for n_files, setting in enumerate(({"NUMBA_CPU_NAME": "generic"}, {"NUMBA_BOUNDSCHECK": "1"}), 2):
        installed.run(**where, **setting)
        assert len(list(tmp_path.rglob("*.nbc"))) == n_files
    file.unlink()
    assert installed.run(AUCFOREST_CALL="0", **where).status == "machine code: none yet"


def test_an_installation_that_cannot_be_written_to_needs_no_cache(installed):
    found = installed.run(NUMBA_CACHE_LOCATOR_CLASSES="IPythonCacheLocator")
    assert is_shipped(found, levels()[0])
    assert found.how_often == "in each process: set NUMBA_CACHE_DIR to a folder for its cache"


def test_the_status_without_machine_code(monkeypatch, cache):
    monkeypatch.setattr(_machine_code, "shipped", lambda: _machine_code.Shipped(why_not="it is of numba 0.1"))
    assert status() == "machine code: none yet, because it is of numba 0.1"

"""Compiled code is kept apart: no process finds another's in the place of its own, nor that of other sources."""

import ast
import compileall
import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import aucforest
from aucforest import AUCForestClassifier, _compile
from aucforest._compile import bare_kernel, kernel
from tests.test_imports import module_name

PACKAGE = Path(aucforest.__file__).parent


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def add_one(x):
    return x + 1


def element(values, i):
    return values[i]


def run(program: Path, sources: Path = PACKAGE.parent, stderr: Any = subprocess.PIPE, **environment: str) -> list:
    """Return what a program prints as JSON, in a process of its own with a cache of its own."""
    environment = {"NUMBA_CACHE_DIR": str(program.parent / "cache"), "PYTHONPATH": str(sources), **environment}
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_BOUNDSCHECK"} | environment
    command = [sys.executable, program]
    finished = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


@pytest.mark.parametrize("make", [kernel, bare_kernel])
def test_processes_that_compile_at_the_same_moment_keep_their_code_apart(make, cache, monkeypatch):
    one, other, later = (make(add_one)._cache._cache_file for _ in range(3))
    one._folder.mkdir(exist_ok=True)
    write_whole = _compile.write_whole

    def write_after_the_other(path, content):
        monkeypatch.setattr(_compile, "write_whole", write_whole)
        other.save("int64", "code for int64")
        write_whole(path, content)

    monkeypatch.setattr(_compile, "write_whole", write_after_the_other)
    one.save("float64", "code for float64")
    assert later.load("int64") == "code for int64"
    assert later.load("float64") == "code for float64"


def test_compiled_code_is_found_again(cache):
    for n_hits in (0, 1):
        compiled = kernel(add_one)
        assert compiled(1) == 2
        assert compiled(1.5) == 2.5
        assert sum(compiled.stats.cache_hits.values()) == 2 * n_hits
    assert len(list(cache.rglob("*.nbc"))) == 2
    compiled.recompile()
    assert sum(compiled.stats.cache_misses.values()) == 2


def flip(place):
    def spoil(file: Path) -> None:
        content = bytearray(file.read_bytes())
        content[place] ^= 0x80
        file.write_bytes(content)

    return spoil


SPOILED = {
    "lost": Path.unlink, "empty": lambda file: file.write_bytes(b""),
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-9]), "not written by us": flip(0),
    "damaged in front": flip(33), "damaged": flip(60), "damaged machine code": flip(-400), "longer": flip(-1),
}  # fmt: skip


@pytest.mark.parametrize("how", SPOILED)
def test_code_that_cannot_be_read_is_compiled_anew_and_replaced(how, cache):
    for n_hits in (0, 0, 1):
        compiled = kernel(add_one)
        assert compiled(1) == 2
        assert sum(compiled.stats.cache_hits.values()) == n_hits
        (file,) = cache.rglob("*.nbc")
        if n_hits == 0 and not (file.parent / "spoiled").exists():
            (file.parent / "spoiled").touch()
            SPOILED[how](file)


def test_code_for_another_signature_is_not_taken(cache):
    files = kernel(add_one)._cache._cache_file
    files.save("float64", "code for float64")
    (file,) = cache.rglob("*.nbc")
    file.rename(files._find("int64")[1])
    assert files.load("int64") is None


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


NOTICE = """
import json
from aucforest import _compile
_compile._NOTICEABLE = -1.0
from aucforest._compile import kernel

@kernel
def first(x):
    return x + 1

@kernel
def second(x):
    return x + 2

first(1), first(1.5), second(1)
_compile._PAUSE = -1.0
second(1.5)
print(json.dumps([]))
"""


def test_compilation_is_told_where_somebody_watches_and_only_when_it_happens(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(NOTICE)
    sentence = "aucforest is compiled for this machine, which takes 10 to 30 seconds, once"
    # the last call is after a pause
    for expected in ([sentence] * 2, []):
        ours, theirs = os.openpty()
        run(program, stderr=theirs)
        os.close(theirs)
        assert read_all(ours).splitlines() == expected
    shutil.rmtree(tmp_path / "cache")
    with (tmp_path / "log").open("w+") as log:
        run(program, stderr=log)
        log.seek(0)
        assert log.read() == ""


def read_all(terminal: int) -> str:
    """Return what was written to a terminal that is closed."""
    with open(terminal, "rb", buffering=0) as file:
        parts = []
        with contextlib.suppress(OSError):  # at its end
            while part := file.read(2**16):
                parts.append(part)
    return b"".join(parts).decode()


CALLER = """
from aucforest._compile import kernel
from aucforest.callee import callee

@kernel
def caller(x):
    return callee(x)
"""

CALLEE = """
from aucforest._compile import device

@device
def callee(x):
    return x + {}
"""

CALL = """
import json
from aucforest.caller import caller
print(json.dumps([caller(1), sum(caller.stats.cache_hits.values())]))
"""


def small_package(folder: Path) -> tuple[Path, Path]:
    """Write the compiler of the package and a kernel that calls a function of another file; return it and a program."""
    package = folder / "sources" / "aucforest"
    package.mkdir(parents=True)
    for name in ("__init__.py", "_compile.py", "_files.py", "_progress.py"):
        shutil.copy(PACKAGE / name, package)
    (package / "caller.py").write_text(CALLER)
    (package / "callee.py").write_text(CALLEE.format(1))
    program = folder / "call.py"
    program.write_text(CALL)
    return package, program


def test_an_edit_of_any_kernel_is_seen_and_leaves_no_orphans(tmp_path):
    package, program = small_package(tmp_path)
    assert run(program, package.parent) == [2, 0]
    os.utime(package / "callee.py", (0, 0))
    (package / "__init__.py").write_text((package / "__init__.py").read_text() + "# a comment\n")
    assert run(program, package.parent) == [2, 1]
    (first,) = tmp_path.rglob("*.nbc")
    for left in ("caller.caller-5.py{}{}.nbi", ".caller.gone-5.py{}{}.0123456789abcdef.0123456789abcdef.nbc.0f"):
        first.with_name(left.format(*sys.version_info)).touch()
    of_another_python = first.with_name("caller.caller-5.py20.1.nbc")
    of_another_python.touch()
    (package / "callee.py").write_text(CALLEE.format(2))
    assert run(program, package.parent) == [3, 0]
    (second,) = set(first.parent.iterdir()) - {of_another_python}
    assert second != first


def test_kernels_use_only_what_their_digest_covers():
    texts = {module_name(path, PACKAGE.parent): path.read_text() for path in PACKAGE.rglob("*.py")}
    covered = {name for name, text in texts.items() if "_compile" in text}
    outside = []
    for name in covered:
        module = ast.parse(texts[name])
        imports = [node for node in module.body if isinstance(node, ast.ImportFrom)]
        imports = [node for node in imports if node.module in texts and node.module not in covered]
        names = {alias.asname or alias.name for node in imports for alias in node.names}
        for function in (node for node in module.body if isinstance(node, ast.FunctionDef)):
            if any("kernel" in ast.dump(one) or "device" in ast.dump(one) for one in function.decorator_list):
                used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} & names
                outside += [f"{name}.{function.name} uses {one}" for one in used]
    assert len(covered) > 20
    assert not outside


@pytest.mark.slow
def test_without_sources_nothing_is_cached(tmp_path):
    package, program = small_package(tmp_path)
    compileall.compile_dir(package, quiet=1, legacy=True)
    for source in package.glob("*.py"):
        source.unlink()
    # numba finds no place for it
    for _ in range(2):
        assert run(program, package.parent) == [2, 0]


@pytest.mark.slow
def test_an_archive_has_a_cache(tmp_path):
    package, program = small_package(tmp_path)
    archive = shutil.make_archive(tmp_path / "archive", "zip", package.parent)
    shutil.rmtree(package)
    places = {name: str(tmp_path / "user") for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA")}
    for n_hits in (0, 1):
        assert run(program, Path(archive), **places) == [2, n_hits]


def without(owner: str, name: str) -> str:
    """Return a program that takes a name out of numba."""
    owners = f"getattr({owner}, '__mro__', [{owner}])"
    return f"for owner in {owners}: vars(owner).get({name!r}) and delattr(owner, {name!r})"


# numba needs the last two itself, as it compiles
WITHOUT = {
    "cache file": """
make = numba.core.caching.Cache.__init__
def without_file(self, function):
    make(self, function)
    del self._cache_file
numba.core.caching.Cache.__init__ = without_file
""",
    "load": without("numba.core.caching.IndexDataCacheFile", "load"),
    "file names": without("numba.core.caching.CacheImpl", "filename_base"),
    "a place": "numba.core.caching.CacheImpl._locator_classes = []; numba.config.CACHE_DIR = ''",
    "reference counts to switch off": without("numba.core.cpu.CPUTargetOptions", "_nrt"),
    "inlining": without("numba.core.cpu.CPUTargetOptions", "forceinline"),
    "target options": without("numba.core.cpu", "CPUTargetOptions"),
    "intrinsics": without("numba.extending", "intrinsic"),
    "dumps": """
dumps = numba.core.serialize.__dict__.pop("dumps")
import aucforest._compile
numba.core.serialize.dumps = dumps
""",
    "data models": """
models = numba.core.datamodel.__dict__.pop("models")
import aucforest._compile
numba.core.datamodel.models = models
""",
    "llvmlite": """
import sys, llvmlite
ir = llvmlite.__dict__.pop("ir")
sys.modules["llvmlite.ir"] = None
import aucforest._compile
sys.modules["llvmlite.ir"] = llvmlite.ir = ir
""",
}
CACHED = {"reference counts to switch off", "inlining", "target options", "intrinsics", "data models", "llvmlite"}

LOWEST_BITS = """
import json
import numpy as np
from aucforest._compile import bare_device, bare_kernel, call_scorer, compile_scorer, lowest_bit

@bare_device
def set_lowest(words, bits):
    for i in range(len(words)):
        bits[i] = lowest_bit(words[i])

@bare_kernel
def lowest_bits(words, bits):
    set_lowest(words[1:], bits[1:])

@bare_kernel
def score_one(address, lefts, totals, scores):
    return call_scorer(address, lefts, totals, scores, 1)

@numba.njit
def first(left, totals):
    return left[0]

if __name__ == "__main__":
    words = np.array([2, 1, 2, 12, 2**63], dtype=np.uint64)
    bits = np.zeros(5, dtype=np.uint64)
    lowest_bits(words, bits)
    try:
        scores = np.zeros(1)
        score_one(compile_scorer(first).address, np.full((1, 2), 3.0), np.ones(2), scores)
        score = scores[0]
    except ValueError as error:
        score = str(error)
    print(json.dumps([bits.tolist(), score]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("missing", WITHOUT)
def test_private_names_of_numba_may_go(missing, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"import numba\n{WITHOUT[missing]}\n{LOWEST_BITS}")
    bits, score = run(program)
    assert bits == [0, 0, 1, 2, 63]
    can_score = missing not in ("intrinsics", "llvmlite")
    assert score == (3.0 if can_score else "criterion: a function cannot be called with this version of numba")
    n_files = len(list(tmp_path.rglob("*.nb[ci]")))
    assert n_files == (1 + can_score if missing in CACHED else 0)


FOREST = """
import json
import numpy as np
from aucforest import AUCForestClassifier
X = np.random.default_rng(0).normal(size=(300, 4))
forest = AUCForestClassifier(5, random_state=0).fit(X, X[:, 0] > X[:, 1] ** 2)
print(json.dumps(forest.predict_proba(X)[:, 1].tolist()))
"""


@pytest.mark.slow
def test_a_forest_is_the_same_without_any_private_name_of_numba(tmp_path):
    program = tmp_path / "program.py"
    names = "\n".join(WITHOUT[name] for name in ("cache file", "target options", "intrinsics"))
    program.write_text(f"import numba\n{names}\n{FOREST}")
    X = np.random.default_rng(0).normal(size=(300, 4))
    forest = AUCForestClassifier(5, random_state=0).fit(X, X[:, 0] > X[:, 1] ** 2)
    assert run(program) == forest.predict_proba(X)[:, 1].tolist()
    assert not list(tmp_path.rglob("*.nb[ci]"))

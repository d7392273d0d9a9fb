"""Compiled functions: dispatchers are created late, pickled by name, and compiled again after an edit."""

import ast
import copy
import json
import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numba
import numpy as np
import pytest

import aucforest
from aucforest._compile import Compiled, compile_scorer, device
from aucforest.tree.binning import midway
from tests.test_imports import module_name

PACKAGE = Path(aucforest.__file__).parent


def run(program: Path, sources: Path = PACKAGE.parent) -> list:
    """Return the JSON that a program prints. It runs in a new process, with a cache folder beside the program."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_BOUNDSCHECK"}
    environment |= {"NUMBA_CACHE_DIR": str(program.parent / "cache"), "PYTHONPATH": str(sources)}
    finished = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def test_the_dispatcher_is_created_once_and_has_the_other_attributes():
    made = []
    compiled = Compiled(lambda: made.append(np.float64(len(made))) or made[-1])
    assert made == []
    assert compiled.dispatcher is compiled.dispatcher
    assert (compiled.itemsize, made) == (8, [0.0])
    assert not hasattr(compiled, "__array__")


def test_threads_that_create_a_dispatcher_at_the_same_time_use_the_same_one():
    barrier = Barrier(2)
    compiled = Compiled(lambda: (barrier.wait(), object()))
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: compiled.dispatcher, range(2))
    assert first is second


def test_copies():
    assert pickle.loads(pickle.dumps(midway)) is midway
    assert copy.deepcopy(midway) is midway
    twice = device(lambda x: 2 * x)
    assert pickle.loads(pickle.dumps(numba.njit(lambda x: twice(x))))(4) == 8


def test_numba_is_imported_when_a_function_is_first_called(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import json, sys\n"
        "import aucforest.estimators, aucforest.metrics, aucforest.losses\n"
        "from aucforest.tree.binning import midway\n"
        "before = [name for name in ('numba', 'llvmlite') if name in sys.modules]\n"
        "print(json.dumps([before, midway(1.0, 3.0), 'numba' in sys.modules]))\n"
    )
    assert run(program) == [[], 2.0, True]


@pytest.mark.parametrize("function", [lambda left, node: None, lambda left, node: "much", lambda left: 1.0])
def test_functions_that_do_not_score(function):
    with pytest.raises(ValueError, match=r"^criterion: <lambda> does not compile to a function of two float64 arrays"):
        compile_scorer(numba.njit(function))


def test_a_function_is_compiled_once():
    criterion = numba.njit(lambda left, node: left[0])
    assert compile_scorer(criterion) is compile_scorer(criterion)


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


COMPILER = "__init__ _compile _dispatchers _files _machine_code _numba_private _progress _sources"


def small_package(folder: Path) -> tuple[Path, Path]:
    """Write a package with the compiler modules and a kernel, and a program that calls the kernel; return both paths.

    The kernel calls a function of another file.
    """
    package, program = folder / "sources" / "aucforest", folder / "call.py"
    package.mkdir(parents=True)
    for name in COMPILER.split():
        shutil.copy(PACKAGE / f"{name}.py", package)
    (package / "caller.py").write_text(CALLER)
    (package / "callee.py").write_text(CALLEE.format(1))
    program.write_text(CALL)
    return package, program


def test_an_edit_of_any_kernel_is_seen_and_leaves_no_orphans(tmp_path):
    package, program = small_package(tmp_path)
    assert run(program, package.parent) == [2, 0]
    os.utime(package / "callee.py", (0, 0))
    (package / "__init__.py").write_text((package / "__init__.py").read_text() + "# a comment\n")
    assert run(program, package.parent) == [2, 1]
    (first,) = tmp_path.rglob("*.nbc")
    for left in ("gone.gone.py{}{}.0123456789abcdef.0f.0f.nbc", ".gone.gone.py{}{}.0123456789abcdef.0f.0f.nbc.0f"):
        first.with_name(left.format(*sys.version_info)).touch()
    of_another_python = first.with_name("caller.caller.py201.1.0f.0f.nbc")
    of_another_python.touch()
    (package / "callee.py").write_text(CALLEE.format(2))
    assert run(program, package.parent) == [3, 0]
    (second,) = set(first.parent.iterdir()) - {of_another_python}
    assert second != first


def test_kernels_use_only_what_their_digest_covers():
    texts = {module_name(path, PACKAGE.parent): path.read_text() for path in PACKAGE.rglob("*.py")}
    covered, outside = {name for name, text in texts.items() if "_compile" in text}, []
    for name in covered:
        body = ast.parse(texts[name]).body
        imports = [node for node in body if isinstance(node, ast.ImportFrom) and node.module in {*texts} - covered]
        names = {alias.asname or alias.name for node in imports for alias in node.names}
        for function in (node for node in body if isinstance(node, ast.FunctionDef)):
            if any("kernel" in ast.dump(one) or "device" in ast.dump(one) for one in function.decorator_list):
                used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} & names
                outside += [f"{name}.{function.name} uses {one}" for one in used]
    assert len(covered) > 20
    assert not outside


def test_without_private_parts_of_numba_code_is_compiled_but_not_stored(tmp_path):
    package, program = small_package(tmp_path)
    before = "import sys, warnings\nwarnings.simplefilter('ignore')\nsys.modules['aucforest._machine_code'] = None\n"
    program.write_text(before + CALL)
    assert run(program, package.parent) == [2, 0]
    assert not list(tmp_path.rglob("*.nb[ci]"))

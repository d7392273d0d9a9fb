"""The content of sdist and wheel, and tests of the installed wheel, also with other versions of Python and packages.

One wheel is built from the sdist with the packages of this environment, and one without machine code for other Pythons.
"""

import importlib.util
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from llvmlite.binding import ObjectFileRef
from packaging.requirements import Requirement

import aucforest
from aucforest._machine_code import levels

ROOT = Path(__file__).parents[1]
BUILD = [sys.executable, "-m", "build", "--no-isolation"]
pytestmark = pytest.mark.slow

FIT = """
from aucforest import AUCForestClassifier, load
from aucforest.datasets import load_abalone, load_flights

X, rings = load_abalone(return_X_y=True)
forest = AUCForestClassifier(50, oob_score=True, random_state=0).fit(X, rings >= 18)
forest.save("forest.aucforest")
assert (load("forest.aucforest").predict_proba(X) == forest.predict_proba(X)).all()
assert len(load_flights().target) == 40_000
print(f"out-of-bag ROC AUC {forest.oob_score_:.3f}")
"""


# With other versions, all kernels are compiled again, with little optimization in half the time. With none, numba would
# leave unused addresses in the larger kernels, so that they could not be stored, and each process would compile them.
LITTLE_OPTIMISED = {"NUMBA_OPT": "1"}

# The quick tests need these extras, and these tools of the extra dev.
EXTRAS = ["cli", "xlsx", "onnx", "dask"]
TOOLS = ["pytest", "hypothesis", "openpyxl", "polars"]

# Each file uses other libraries: frames and Arrow, numba, Typer, matplotlib, ONNX, Dask. The deselected test compiles
# the most kernels, and uses no other library.
QUICK_TESTS = [
    *(f"tests/{name}.py" for name in ("estimators/test_golden", "columns/test_categorical", "metrics/test_roc")),
    *(f"tests/{name}.py" for name in ("cli/test_fit", "exports/test_onnx", "distributed/test_prediction")),
    "--deselect=tests/cli/test_fit.py::test_few_integers_and_text_are_classes",
]


def run(*command, settings=None, code=0, **options):
    """Return the output of a process that exits with `code`, without this checkout on its path.

    `settings` are environment variables.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    finished = subprocess.run(command, env=environment | (settings or {}), **output, **options)
    assert finished.returncode == code, finished.stdout[-5000:]
    return finished.stdout


def run_tests(python, *options, **settings):
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, cwd=ROOT, settings=settings)


def newest_python():
    """Return the newest Python on the path that can create environments; by default this one."""
    for minor in range(20, sys.version_info.minor, -1):
        found = shutil.which(f"python3.{minor}")
        if found and subprocess.run([found, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return found
    return sys.executable


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a folder with the sdist and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("built")
    assert f"Machine code for {' and '.join(levels())} is compiled" in run(*BUILD, "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    return next(built.glob("*.whl"))


@pytest.fixture(scope="module")
def pure_wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pure")
    run(*BUILD, "--wheel", "--outdir", folder, ROOT, settings={"AUCFOREST_PURE": "1"})
    return next(folder.glob("*-py3-none-any.whl"))


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    """Return environment variables that put the package of the wheel first on the path, with an empty cache."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "package")
    return {"PYTHONPATH": str(folder / "package"), "NUMBA_CACHE_DIR": str(folder / "cache")}


def lowest_versions():
    """Return constraints for pip: the lowest versions in pyproject.toml of dependencies, extras and tools."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"], *(text for extra in EXTRAS for text in extras[extra])]
    texts += [text for text in extras["dev"] if Requirement(text).name in TOOLS]
    constraints = set()
    for requirement in map(Requirement, texts):
        (bound,) = requirement.specifier
        assert bound.operator == ">=", requirement
        constraints.add(f"{requirement.name}=={bound.version}")
    return "\n".join(sorted(constraints))


def environment(folder, python, constraints):
    """Return the interpreter of a new environment, and a function that installs packages there."""
    run(python, "-m", "venv", folder)
    interpreter = folder / "bin" / "python"
    (folder / "constraints.txt").write_text(constraints)

    def install(*packages):
        quiet = ["--quiet", "--no-compile", "--disable-pip-version-check"]
        run(interpreter, "-m", "pip", "install", *quiet, "--constraint", folder / "constraints.txt", *packages)

    return interpreter, install


@pytest.fixture(scope="module", params=["the lowest versions", "the newest Python"])
def clean(request, wheel, pure_wheel, tmp_path_factory):
    """Return the interpreter, the installer and the wheel of an environment that has the wheel without extras."""
    folder = tmp_path_factory.mktemp("installed")
    if request.param == "the lowest versions":
        given, (python, install) = wheel, environment(folder, sys.executable, lowest_versions())
    else:
        given, (python, install) = pure_wheel, environment(folder, newest_python(), "")
    install(given)
    return python, install, given


def test_twine_finds_no_fault(built):
    assert run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir()).count("PASSED") == 2


def test_the_description_has_no_relative_links(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        description = archive.read(name).decode()
    assert "# aucforest" in description
    assert [link for link in re.findall(r"\]\(([^)]*)\)", description) if not link.startswith("https://")] == []


def test_the_versions_agree():
    assert f"version: {aucforest.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {aucforest.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    code = {name for name in held if name.startswith("aucforest/compiled/")}
    tracked = run("git", "ls-files", "src/aucforest", cwd=ROOT).split()
    assert held - code == {name.removeprefix("src/") for name in tracked}
    assert "aucforest/py.typed" in held
    assert code >= {"aucforest/compiled/compiled_with.json"}
    numbers = {sum(f"/{level}/" in name for name in code) for level in levels()}
    assert len(numbers) == 1
    assert min(numbers) > 60
    assert wheel.stat().st_size < 15e6


def undefined_symbols(object_file):
    """Return the names of functions and variables that an ELF file needs from elsewhere."""
    sections = {section.name(): section.data() for section in ObjectFileRef.from_data(object_file).sections()}
    names, symbols = sections[b".strtab"], struct.iter_unpack("<IBBHQQ", sections[b".symtab"])
    starts = [start for start, _, _, section, _, _ in symbols if start and section == 0]
    return {names[start : names.index(b"\0", start)].decode() for start in starts}


@pytest.mark.skipif(sys.platform != "linux", reason="object files of Linux")
def test_machine_code_needs_nothing_that_may_be_absent_elsewhere(wheel):
    """Machine code calls only functions of the C library, of Python and of numba."""
    needed = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".nbc"):
                (_, _, (machine_code, _)), *_ = pickle.loads(archive.read(name)[32:])
                needed |= undefined_symbols(machine_code)
    others = {name for name in needed if not name.startswith(("Py", "_Py", "NRT_", "numba_"))}
    assert others <= {"exp", "log", "log2", "memcpy", "memset"}


def test_a_first_day_of_the_wheel_compiles_nothing(unpacked):
    assert run(sys.executable, "-P", ROOT / "tests" / "first_day.py", settings=unpacked) == ""


def test_first_calls_of_the_wheel_compile_nothing(unpacked):
    """benchmarks/first_calls.py tries all levels, and folders that cannot be written."""
    command = [sys.executable, ROOT / "benchmarks" / "first_calls.py", "--sources", unpacked["PYTHONPATH"]]
    run(*command, "--rounds", "1", "--calls", "fit, two")


@pytest.mark.parametrize("level", levels())
def test_golden_forests_are_the_same_with_shipped_code(level, unpacked):
    settings = {**unpacked, "NUMBA_ENABLE_AVX": str(int(level != "x86-64-v2"))}
    said = run(sys.executable, "-m", "aucforest", settings=settings)
    assert said.startswith(f"machine code: shipped for {level}")
    run_tests(sys.executable, "tests/estimators/test_golden.py", **settings)


@pytest.mark.parametrize(("codes", "reason"), [
    (["print('fine')", "raise SystemExit('no room')"], "^second: no room$"),
    (["import os; os._exit(9)", "import time; time.sleep(600)"], "^first: the process ended with 9$"),
])  # fmt: skip
def test_levels_that_are_still_compiled_are_ended_with_one_that_fails(codes, reason, tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    started = []

    def start(_, **options):
        started.append(popen([sys.executable, "-c", codes[len(started)]], **options))
        return started[-1]

    popen = subprocess.Popen
    monkeypatch.setattr(hook.subprocess, "Popen", start)
    with pytest.raises(RuntimeError, match=reason):
        hook._warm_up(["first", "second"], tmp_path, ROOT / "src")
    assert all(process.poll() is not None for process in started)


def test_a_wheel_is_pure_if_compiling_fails(built, tmp_path):
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    with (folder / "src" / "aucforest" / "cli" / "warm_up.py").open("a") as warm_up:
        warm_up.write("\n\nraise RuntimeError('no compiler here')\n")
    said = run(*BUILD, "--wheel", "--outdir", tmp_path, folder)
    with zipfile.ZipFile(next(tmp_path.glob("*-py3-none-any.whl"))) as archive:
        assert "no compiler here" in archive.read("aucforest/compiled/compiled_with.json").decode()
    sentence = f"is built without machine code, so its first fit compiles: {levels()[0]}: RuntimeError: no compiler"
    assert sentence in " ".join(said.split())


def test_it_needs_its_dependencies_alone(clean, tmp_path):
    said = run(clean[0], "-W", "ignore", "-c", FIT, cwd=tmp_path, settings=LITTLE_OPTIMISED)
    assert re.fullmatch(r"out-of-bag ROC AUC 0\.\d{3}\n", said), said


def test_the_command_line_says_how_to_get_it(clean, tmp_path):
    python, _, _ = clean
    sentence = "the command line needs typer: pip install aucforest[cli]\n"
    said = run(python, "-m", "aucforest", cwd=tmp_path)
    assert re.fullmatch(f"machine code: (none yet|compiled for this machine).*\n{re.escape(sentence)}", said)
    assert run(python.with_name("aucforest"), "fit", cwd=tmp_path, code=1) == sentence


def test_quick_tests_pass(clean):
    """The last test, because it installs extras. Warnings are ignored: they come from packages of different years."""
    python, install, wheel = clean
    install(f"{wheel}[{','.join(EXTRAS)}]", *TOOLS)
    run_tests(python, "-o", "filterwarnings=", *QUICK_TESTS, **LITTLE_OPTIMISED)

"""sdist and wheel: what is in them, and that the wheel works with the lowest versions and with the newest Python."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import aucforest

ROOT = Path(__file__).parents[1]
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


# What the quick tests need beside the dependencies: extras, and tools of the extra dev.
EXTRAS = ["cli", "xlsx", "onnx", "dask"]
TOOLS = ["pytest", "hypothesis", "openpyxl", "polars"]

# Each asks other libraries: frames and Arrow, numba, Typer, matplotlib, ONNX, Dask.
QUICK_TESTS = [
    "tests/estimators/test_golden.py",
    "tests/tables/test_columns.py",
    "tests/metrics/test_roc.py",
    "tests/cli/test_fit.py",
    "tests/exports/test_onnx.py",
    "tests/distributed/test_prediction.py",
]


def run(*command, **options):
    """Return a finished process; nothing of this checkout is on its path."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(command, env=environment, capture_output=True, text=True, **options)


def newest_python():
    """Return the newest Python on the path that works, this one if there is no newer."""
    for minor in range(20, sys.version_info.minor, -1):
        found = shutil.which(f"python3.{minor}")
        if found and run(found, "-c", "import venv, ensurepip").returncode == 0:
            return found
    return sys.executable


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("built")
    finished = run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    assert finished.returncode == 0, finished.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    return next(built.glob("*.whl"))


def lowest_versions():
    """Return constraints of pip: the lowest versions that pyproject.toml allows of dependencies, extras and tools."""
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
    """Return the interpreter of a new environment, and what installs packages there."""
    run(python, "-m", "venv", folder, check=True)
    interpreter = folder / "bin" / "python"
    (folder / "constraints.txt").write_text(constraints)

    def install(*packages):
        command = [interpreter, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
        installed = run(*command, "--constraint", folder / "constraints.txt", *packages)
        assert installed.returncode == 0, installed.stderr

    return interpreter, install


@pytest.fixture(scope="module", params=["the lowest versions", "the newest Python"])
def clean(request, wheel, tmp_path_factory):
    """Return the interpreter and the installer of an environment that has the wheel without extras."""
    lowest = request.param == "the lowest versions"
    folder = tmp_path_factory.mktemp("installed")
    python, install = environment(
        folder, sys.executable if lowest else newest_python(), lowest_versions() if lowest else ""
    )
    install(wheel)
    return python, install


def test_twine_finds_no_fault(built):
    finished = run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir())
    assert finished.returncode == 0, finished.stdout
    assert finished.stdout.count("PASSED") == 2


def test_the_description_has_no_relative_links(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        description = archive.read(name).decode()
    assert "# aucforest" in description
    links = re.findall(r"\]\(([^)]*)\)", description)
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_versions_agree():
    version = f"version: {aucforest.__version__}\n"
    assert version in (ROOT / "CITATION.cff").read_text()
    assert f"## {aucforest.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = run("git", "ls-files", "src/aucforest", cwd=ROOT, check=True).stdout.split()
    assert held == {name.removeprefix("src/") for name in tracked}
    assert "aucforest/py.typed" in held


def test_it_needs_its_dependencies_alone(clean, tmp_path):
    finished = run(clean[0], "-c", FIT, cwd=tmp_path)
    assert re.fullmatch(r"out-of-bag ROC AUC 0\.\d{3}\n", finished.stdout), finished.stderr


def test_the_command_line_says_how_to_get_it(clean, tmp_path):
    python, _ = clean
    finished = run(python, "-m", "aucforest", cwd=tmp_path)
    assert finished.returncode == 1
    assert finished.stderr == "the command line needs typer: pip install aucforest[cli]\n"
    assert run(python.with_name("aucforest"), cwd=tmp_path).stderr == finished.stderr


def test_quick_tests_pass(clean, wheel):
    """Last of all, since extras are installed. Warnings are none of ours: versions that are years apart meet there."""
    python, install = clean
    install(f"{wheel}[{','.join(EXTRAS)}]", *TOOLS)
    options = ["-q", "-p", "no:cacheprovider", "-o", "filterwarnings="]
    finished = run(python, "-m", "pytest", *options, *QUICK_TESTS, cwd=ROOT)
    assert finished.returncode == 0, finished.stdout[-5000:]

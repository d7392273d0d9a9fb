"""sdist and wheel: what is in them, and that the wheel works in a clean environment without extras."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module", params=sorted({sys.executable, newest_python()}))
def python(request, wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    run(request.param, "-m", "venv", folder, check=True)
    interpreter = folder / "bin" / "python"
    installed = run(interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    assert installed.returncode == 0, installed.stderr
    return interpreter


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


def test_it_needs_its_dependencies_alone(python, tmp_path):
    finished = run(python, "-c", FIT, cwd=tmp_path)
    assert re.fullmatch(r"out-of-bag ROC AUC 0\.\d{3}\n", finished.stdout), finished.stderr


def test_the_command_line_says_how_to_get_it(python, tmp_path):
    finished = run(python, "-m", "aucforest", cwd=tmp_path)
    assert finished.returncode == 1
    assert finished.stderr == "the command line needs typer: pip install aucforest[cli]\n"
    assert run(python.with_name("aucforest"), cwd=tmp_path).stderr == finished.stderr

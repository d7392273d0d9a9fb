"""The wheel: what is in it, and that it works in an environment of its own with the core dependencies alone."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.test_readme import PROGRAMS

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


def run(*command, **options):
    """Return a finished process; nothing of this checkout is on its path."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(command, env=environment, capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT)
    assert built.returncode == 0, built.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=True)
    interpreter = folder / "bin" / "python"
    installed = run(interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    assert installed.returncode == 0, installed.stderr
    return interpreter


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = run("git", "ls-files", "src/aucforest", cwd=ROOT, check=True).stdout.split()
    assert held == {name.removeprefix("src/") for name in tracked}
    assert "aucforest/py.typed" in held


def test_it_needs_its_dependencies_alone(python, tmp_path):
    finished = run(python, "-c", PROGRAMS[0], cwd=tmp_path)
    assert re.fullmatch(r"out-of-bag ROC AUC 0\.\d{3}\n", finished.stdout), finished.stderr


def test_the_command_line_says_how_to_get_it(python, tmp_path):
    finished = run(python, "-m", "aucforest", cwd=tmp_path)
    assert finished.returncode == 1
    assert finished.stderr == "the command line needs typer: pip install aucforest[cli]\n"
    assert run(python.with_name("aucforest"), cwd=tmp_path).stderr == finished.stderr

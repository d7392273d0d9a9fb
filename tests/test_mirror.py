"""Tests mirror the sources file by file."""

from pathlib import Path

ROOT = Path(__file__).parents[1]

# Test files of no module, which walk through all of a folder or of the package.
WITHOUT_A_MODULE = {
    "docs": "the pages",
    "imports": "the imports of all modules",
    "mirror": "this file",
    "packaging": "the sdist and the wheel",
    "readme": "the README",
    "cli/stranger": "messy tables through all commands",
    "estimators/golden": "recorded models",
    "report/templates": "the templates of the page, which are no modules",
    "tables/forms": "all forms of a column, through all ways to a forest",
}


def modules() -> set[str]:
    """Return the modules of the package without leading underscores; `__init__` and `__main__` only hand on."""
    folder = ROOT / "src" / "aucforest"
    paths = (path.relative_to(folder) for path in folder.rglob("*.py") if not path.name.startswith("__"))
    return {path.with_name(path.stem.lstrip("_")).as_posix() for path in paths}


def names_of_tests() -> set[str]:
    """Return what stands after ``test_`` in the names of test files, with their folders."""
    paths = (path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py"))
    return {path.with_name(path.stem.removeprefix("test_")).as_posix() for path in paths if path.parts[0] != "peers"}


def test_every_module_has_a_test_file_of_its_name():
    assert modules() - names_of_tests() == set()


def test_every_test_file_belongs_to_a_module():
    """Or it is a further file on one: ``test_forest_ties`` beside ``test_forest``."""
    known = modules()
    own = {name for name in names_of_tests() if any(f"{name}_".startswith(f"{module}_") for module in known)}
    assert names_of_tests() - own == {*WITHOUT_A_MODULE}

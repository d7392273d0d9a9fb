"""Each module has a test file of its name, and each test file has a module."""

from pathlib import Path

ROOT = Path(__file__).parents[1]

# Test files that do not belong to one module, and what they test.
WITHOUT_A_MODULE = {
    "docs": "the pages", "imports": "the imports of all modules", "mirror": "this file",
    "packaging": "the sdist and the wheel", "readme": "the README",
    "cli/stranger": "messy tables through all commands", "estimators/golden": "recorded models",
    "report/templates": "the templates of the page, which are no modules",
    "tables/forms": "all forms of a column, through all ways to a forest",
}  # fmt: skip


def modules() -> set[str]:
    """Return the names of modules without leading underscores, except `__init__` and `__main__`."""
    folder = ROOT / "src" / "aucforest"
    paths = (path.relative_to(folder) for path in folder.rglob("*.py") if not path.name.startswith("__"))
    return {path.with_name(path.stem.lstrip("_")).as_posix() for path in paths}


def names_of_tests() -> set[str]:
    """Return the names of test files without ``test_``, with their folders."""
    paths = (path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py"))
    return {path.with_name(path.stem.removeprefix("test_")).as_posix() for path in paths if path.parts[0] != "peers"}


def test_every_module_has_a_test_file_of_its_name():
    assert modules() - names_of_tests() == set()


def test_every_test_file_belongs_to_a_module():
    """A module may have several test files: ``test_forest_ties`` belongs to the same module as ``test_forest``."""
    known = modules()
    own = {name for name in names_of_tests() if any(f"{name}_".startswith(f"{module}_") for module in known)}
    assert names_of_tests() - own == {*WITHOUT_A_MODULE}

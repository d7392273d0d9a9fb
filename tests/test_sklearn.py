"""Only one module imports private names of scikit-learn."""

from aucforest import _sklearn
from tests.test_imports import SOURCES, imported_names

# The export to scikit-learn creates trees of scikit-learn, whose classes are private.
NODES = {"sklearn.tree._tree.NODE_DTYPE", "sklearn.tree._tree.Tree"}


def test_private_names_of_scikit_learn_are_imported_in_one_file():
    private = {
        name
        for path in SOURCES.rglob("*.py")
        if path.name != "_sklearn.py"
        for name in imported_names(path)
        if name.startswith("sklearn.") and any(part.startswith("_") for part in name.split("."))
    }
    assert {name for name in private if not name.endswith("__version__")} == NODES


def test_every_name_is_used():
    used = {name for path in SOURCES.rglob("*.py") for name in imported_names(path)}
    assert {f"aucforest._sklearn.{name}" for name in vars(_sklearn) if not name.startswith("_")} <= used

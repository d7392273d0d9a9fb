"""The floors of the package: imports point down, never in a circle, and numba has one door."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

import aucforest

SOURCES = Path(__file__).parents[1] / "src"

FLOORS = {
    "_caller": 0, "_compile": 0, "_dispatchers": 0, "_display": 0, "_files": 0, "_machine_code": 0, "_memory": 0,
    "_numba_private": 0, "_optional": 0,
    "_progress": 0, "_restoring": 0, "_sklearn": 0, "_sources": 0,
    "tree": 1, "metrics": 1, "datasets": 1,
    "losses": 2, "persistence": 2, "exports": 2, "tables": 2,
    "fitting": 3,
    "estimators": 4, "monitoring": 4,
    "inspection": 5, "distributed": 5,
    "report": 6,
    "cli": 7,
    "": 8, "__main__": 8,  # aucforest/__init__.py only hands names on: nothing below may import from it
}  # fmt: skip

# What is private to a room by its name, but used by others.
OPEN_SECRETS = {"estimators._base", "estimators._model_files"}

OPTIONAL = {
    "pandas", "pyarrow", "matplotlib", "typer", "rich", "dask", "distributed", "jinja2", "onnx", "onnxruntime", "skops",
    "python_calamine", "duckdb",
}  # fmt: skip


def module_name(path: Path, sources: Path) -> str:
    """Return the dotted name of a source file."""
    parts = path.relative_to(sources).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imported_names(path: Path, sources: Path) -> list[str]:
    """Return every dotted name that a file imports anywhere, functions and type checking included."""
    found: list[str] = []
    name = module_name(path, sources)
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            found.extend(f"{origin}.{alias.name}" for alias in node.names)
    return found


def import_graph(sources: Path) -> dict[str, set[str]]:
    """Return the modules of aucforest and, of each, the modules of aucforest that it imports."""
    paths = {module_name(path, sources): path for path in sorted(sources.rglob("*.py"))}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        imports = (imported for imported in imported_names(path, sources) if imported.startswith("aucforest"))
        # the last part is a module, or a name defined in the module before it
        graph[name] = {found if found in paths else found.rpartition(".")[0] for found in imports}
    return graph


def part(module: str) -> str:
    """Return the first name below aucforest, such as "tree"; "" for the package itself."""
    return module.partition(".")[2].partition(".")[0]


def upward_imports(graph: dict[str, set[str]]) -> list[str]:
    """Return the imports that point to a higher floor."""
    return [
        f"{module} (floor {FLOORS[part(module)]}) imports {target} (floor {FLOORS[part(target)]})"
        for module, targets in graph.items()
        for target in sorted(targets)
        if FLOORS[part(target)] > FLOORS[part(module)]
    ]


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules, or else the packages, of one import circle; nothing when there is none."""
    packages: dict[str, set[str]] = {}
    for module, targets in graph.items():
        packages.setdefault(part(module), set()).update({part(target) for target in targets} - {part(module)})
    for edges in (graph, packages):
        try:
            TopologicalSorter(edges).prepare()
        except CycleError as error:
            return list(error.args[1])
    return []


def test_imports_point_down_and_not_in_a_circle():
    graph = import_graph(SOURCES)
    assert upward_imports(graph) == []
    assert circle(graph) == []


@pytest.mark.parametrize(
    ("files", "upward", "in_circle"),
    [
        ({"tree/a.py": "def f():\n    from aucforest.estimators import b", "estimators/b.py": ""}, 1, False),
        ({"tree/a.py": "from aucforest import __version__"}, 1, False),
        ({"tree/a.py": "from . import b", "tree/b.py": "from .a import f"}, 0, True),
        ({"tree/a.py": "import aucforest.metrics.b", "metrics/b.py": "import aucforest.tree.c"}, 0, True),
        ({"tree/a.py": "from aucforest.tree import f", "tree/__init__.py": "from .a import f"}, 0, True),
        ({"tree/a.py": "import numpy", "estimators/b.py": "from aucforest.tree.a import f"}, 0, False),
    ],
)  # fmt: skip
def test_the_walk_sees_what_it_should(tmp_path, files, upward, in_circle):
    for name, text in {"__init__.py": "__version__ = '0'", **files}.items():
        path = tmp_path / "aucforest" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    graph = import_graph(tmp_path)
    assert len(upward_imports(graph)) == upward
    assert bool(circle(graph)) == in_circle


def private_imports(sources: Path) -> set[str]:
    """Return the underscored modules and names that some room imports from another one."""
    found = set()
    for path in sources.rglob("*.py"):
        for name in imported_names(path, sources):
            parts = name.split(".")
            other = parts[0] == "aucforest" and len(parts) > 2 and parts[1] != part(module_name(path, sources))
            if other and FLOORS.get(parts[1]) and any(word[0] == "_" for word in parts[2:]):
                found.add(".".join(parts[1:] if parts[-1][0] == "_" and parts[-2][0] != "_" else parts[1:-1]))
    return found


def test_no_room_imports_what_is_private_to_another():
    # and every exception is one: a name that is gone, or that nobody imports, leaves the list
    assert private_imports(SOURCES) == OPEN_SECRETS


def test_every_floor_and_every_optional_package_is_used():
    assert {part(module) for module in import_graph(SOURCES)} == set(FLOORS)
    assert third_party(SOURCES) >= OPTIONAL


def test_private_imports_are_seen(tmp_path):
    (tmp_path / "aucforest" / "cli").mkdir(parents=True)
    (tmp_path / "aucforest" / "cli" / "a.py").write_text(
        "from aucforest.tree._a import b\nimport aucforest.tree._c\n"
        "def f():\n    from aucforest.metrics.d import _e, g\n"
        "from aucforest.cli._h import i\nfrom aucforest._files import j\nfrom aucforest import _memory\n"
    )
    assert private_imports(tmp_path) == {"tree._a", "tree._c", "metrics.d._e"}


def test_numba_has_one_door():
    users = {
        path.name
        for path in SOURCES.rglob("*.py")
        if any(name.partition(".")[0] == "numba" for name in imported_names(path, SOURCES))
    }
    assert users == {"_compile.py", "_dispatchers.py", "_machine_code.py", "_numba_private.py"}


def packages(requirements: list[str]) -> set[str]:
    """Return what requirements are imported as."""
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}
    return {{"scikit-learn": "sklearn"}.get(name, name.replace("-", "_")) for name in names}


def third_party(sources: Path) -> set[str]:
    """Return the packages of others that the sources import, whether at the top or where they are used."""
    found = {name for path in sources.rglob("*.py") for name in imported_names(path, sources)}
    for path in sources.rglob("*.py"):
        found.update(re.findall(r'import_optional\("([\w.]+)", purpose', path.read_text()))
    return {name.partition(".")[0] for name in found} - sys.stdlib_module_names - {"aucforest"}


def test_what_is_imported_is_declared():
    # the example of import_optional
    found = third_party(SOURCES) - {"no_such_module"}
    project = tomllib.loads((SOURCES.parent / "pyproject.toml").read_text())["project"]
    assert found - OPTIONAL == packages(project["dependencies"])
    extras = [requirement for extra in project["optional-dependencies"].values() for requirement in extra]
    assert found & OPTIONAL <= packages(extras)


# in a process of its own, without the extras: scikit-learn itself imports pandas where it finds it, so that a look at
# sys.modules would not tell
PROGRAM = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(OPTIONAL)}))
import aucforest
print(sorted({{"numba", "numpy", "sklearn"}} & set(sys.modules)))
print([getattr(aucforest, name).__name__ for name in aucforest.__all__])
"""


@pytest.fixture(scope="module")
def said() -> list[str]:
    """Return what a process prints that imports the package, then its public names, then all but the command line."""
    modules = sorted(name for name in import_graph(SOURCES) if part(name) not in ("tables", "cli", "__main__"))
    program = f"{PROGRAM}\nimport {', '.join(modules)}\nprint('all')"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return [*finished.stdout.splitlines(), finished.stderr]


def test_the_package_itself_imports_nothing_until_it_is_asked(said):
    assert said[0] == "[]", said


def test_every_public_name_is_there_when_it_is_asked_for(said):
    assert [name.split(".")[-1] for name in ast.literal_eval(said[1])] == aucforest.__all__, said
    assert set(aucforest.__all__) <= set(dir(aucforest))


def test_everything_but_the_command_line_imports_without_the_extras(said):
    assert said[2:-1] == ["all"], said[-1]


def test_other_names_are_not_there():
    assert not hasattr(aucforest, "AUCBoostClassifier")
    with pytest.raises(ImportError, match="cannot import name 'forest'"):
        from aucforest import forest  # noqa: F401

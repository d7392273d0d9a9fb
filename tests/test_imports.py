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

ROOMS = [
    "_caller _compile _dispatchers _display _files _machine_code _memory _numba_private _optional _progress _restoring"
    " _sklearn _sources",
    "tree metrics datasets",
    "losses persistence exports columns",
    "tables",
    "fitting",
    "estimators monitoring",
    "inspection distributed",
    "report",
    "cli",
    "__main__",
]
# aucforest/__init__.py only hands names on: nothing below may import from it
FLOORS = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms.split()} | {"": len(ROOMS) - 1}

# What is private to a room by its name, but used by others.
OPEN_SECRETS = {"estimators._base", "estimators._model_files"}

OPTIONAL = {
    "pandas", "pyarrow", "matplotlib", "typer", "rich", "dask", "distributed", "jinja2", "onnx", "onnxruntime", "skops",
    "python_calamine", "duckdb",
}  # fmt: skip


def module_name(path: Path, sources: Path) -> str:
    parts = path.relative_to(sources).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imported_names(path: Path) -> list[str]:
    """Return every dotted name that a file imports anywhere, functions and type checking included."""
    found: list[str] = []
    name = module_name(path, SOURCES)
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            found.extend(f"{origin}.{alias.name}" for alias in node.names)
    return found


def import_graph() -> dict[str, set[str]]:
    """Return the modules of aucforest and, of each, the modules of aucforest that it imports."""
    paths = {module_name(path, SOURCES): path for path in sorted(SOURCES.rglob("*.py"))}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        imports = (imported for imported in imported_names(path) if imported.startswith("aucforest"))
        # the last part is a module, or a name defined in the module before it
        graph[name] = {found if found in paths else found.rpartition(".")[0] for found in imports}
    return graph


def part(module: str) -> str:
    """Return the first name below aucforest, such as "tree"; "" for the package itself."""
    return module.partition(".")[2].partition(".")[0]


def upward_imports(graph: dict[str, set[str]]) -> list[str]:
    pairs = [(module, target) for module, targets in graph.items() for target in sorted(targets)]
    return [f"{module} imports {target}" for module, target in pairs if FLOORS[part(target)] > FLOORS[part(module)]]


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
    graph = import_graph()
    assert sum(map(len, graph.values())) > 500
    assert upward_imports(graph) == []
    assert circle(graph) == []
    assert {part(module) for module in graph} == set(FLOORS)


def private_imports() -> set[str]:
    """Return the underscored modules and names that some room imports from another one."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        for name in imported_names(path):
            parts = name.split(".")
            other = parts[0] == "aucforest" and len(parts) > 2 and parts[1] != part(module_name(path, SOURCES))
            if other and FLOORS.get(parts[1]) and any(word[0] == "_" for word in parts[2:]):
                found.add(".".join(parts[1:] if parts[-1][0] == "_" and parts[-2][0] != "_" else parts[1:-1]))
    return found


def test_no_room_imports_what_is_private_to_another():
    # and every exception is one: a name that is gone, or that nobody imports, leaves the list
    assert private_imports() == OPEN_SECRETS


def test_numba_has_one_door():
    imports = [(path.name, name.split(".")[0]) for path in SOURCES.rglob("*.py") for name in imported_names(path)]
    users = {"_compile.py", "_dispatchers.py", "_machine_code.py", "_numba_private.py"}
    assert {file for file, package in imports if package == "numba"} == users


def packages(requirements: list[str]) -> set[str]:
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}
    return {{"scikit-learn": "sklearn"}.get(name, name.replace("-", "_")) for name in names}


def third_party() -> set[str]:
    """Return the packages of others that the sources import, whether at the top or where they are used."""
    found = {name for path in SOURCES.rglob("*.py") for name in imported_names(path)}
    for path in SOURCES.rglob("*.py"):
        found.update(re.findall(r'import_optional\("([\w.]+)", purpose', path.read_text()))
    return {name.partition(".")[0] for name in found} - sys.stdlib_module_names - {"aucforest"}


def test_what_is_imported_is_declared():
    # the example of import_optional
    found = third_party() - {"no_such_module"}
    project = tomllib.loads((SOURCES.parent / "pyproject.toml").read_text())["project"]
    extras = [requirement for extra in project["optional-dependencies"].values() for requirement in extra]
    assert found - OPTIONAL == packages(project["dependencies"])
    assert found >= OPTIONAL <= packages(extras)


# in a process of its own, without the extras: scikit-learn itself imports pandas where it finds it, so that a look at
# sys.modules would not tell
PROGRAM = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(OPTIONAL)}))
import aucforest
print(sorted({{"numba", "numpy", "sklearn"}} & set(sys.modules)))
print([getattr(aucforest, name).__name__.split(".")[-1] for name in aucforest.__all__])
import """


def test_a_process_imports_what_it_asks_for_and_all_but_the_command_line_without_the_extras():
    modules = sorted(name for name in import_graph() if part(name) not in ("tables", "cli", "__main__"))
    finished = subprocess.run([sys.executable, "-c", PROGRAM + ", ".join(modules)], capture_output=True, text=True)
    assert finished.stdout.splitlines() == ["[]", str(aucforest.__all__)]
    assert finished.returncode == 0, finished.stderr
    assert set(aucforest.__all__) <= set(dir(aucforest))


def test_other_names_are_not_there():
    assert not hasattr(aucforest, "AUCBoostClassifier")
    with pytest.raises(ImportError, match="cannot import name 'forest'"):
        from aucforest import forest  # noqa: F401

"""Loading of a test module of a peer with stand-ins, and the reasons for which tests are left out."""

from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module, metadata
from importlib.util import module_from_spec, spec_from_file_location
from unittest.mock import patch

import pytest

from tests.peers.stand_ins import Missing

REGRESSOR = "regressor, or a transformer: aucforest has classifiers only"
SEVERAL_TARGETS = "other parameter: y of several columns, or its class weights"
PARAMETER = "other parameter: aucforest lacks it"
ATTRIBUTE = "other attribute: aucforest lacks it"
WORDING = "messages are in other words"


def adopt(package, version, module, stand_ins):
    """Return the names of a peer's test module, loaded anew with stand-ins in place of what it imports.

    The calling module is skipped unless the package has the minor version that the list was made for.
    """
    original = pytest.importorskip(module)
    installed = metadata.version(package)
    if installed.split(".")[:2] != version.split("."):
        pytest.skip(f"the list is of {package} {version}, not of {installed}", allow_module_level=True)
    # Modules are imported before their names are replaced, or they would import stand-ins themselves.
    replaced = [patch.multiple(import_module(home), **names) for home, names in stand_ins.items()]
    spec = spec_from_file_location(f"with_ours.{module}", original.__file__)
    loaded = module_from_spec(spec)
    with ExitStack() as stack:
        for names in replaced:
            stack.enter_context(names)
        spec.loader.exec_module(loaded)
    for name, value in vars(loaded).items():
        if name.endswith("_CONTAINERS") or name == "SPARSE_SPLITTERS":
            setattr(loaded, name, [])
        elif type(value) is dict:  # loops use our classes only
            setattr(loaded, name, {key: item for key, item in value.items() if not _is_missing(item)})
        elif hasattr(value, "pytestmark"):
            value.pytestmark = [_repeatable(mark) for mark in value.pytestmark]
    tests = {name: value for name, value in vars(loaded).items() if not name.startswith("_")}
    # a warning is no error to the peers
    return {**tests, "pytestmark": [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]}


def _is_missing(value):
    return isinstance(value, type) and issubclass(value, Missing)


def _repeatable(mark):
    """Return a mark whose parameters can be iterated several times: pytest warns about iterators."""
    arguments = [list(argument) if isinstance(argument, Iterator) else argument for argument in mark.args]
    return getattr(pytest.mark, mark.name).with_args(*arguments, **mark.kwargs).mark

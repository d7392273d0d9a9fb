"""Loading of a test module of a peer with stand-ins, and the reasons for which tests are left out."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module, metadata
from importlib.util import module_from_spec, spec_from_file_location
from unittest.mock import patch

import pytest

from tests.peers.stand_ins import Missing, NoCounterpart, NothingOfOurs

_PREFIX = "with_ours."
# How `pytest.raises` and `pytest.warns` fail.
_Failed = pytest.fail.Exception


@dataclass(frozen=True)
class Reason:
    """Why a test is left out: it is expected to fail, with one of these exceptions and this message."""

    sentence: str
    raises: tuple[type[BaseException], ...]
    message: str = ""  # a regular expression

    def explains(self, error):
        """Return whether a test that raises this error is left out for this reason."""
        return isinstance(error, self.raises) and re.search(self.message, str(error)) is not None


REGRESSOR = Reason("regressor, or a transformer: aucforest has classifiers only", (NoCounterpart, _Failed))
UNRELATED = Reason("unrelated: it uses nothing that aucforest has a counterpart of", (NothingOfOurs,))
# a search says so in a ValueError
SPARSE = Reason("sparse: y must be dense", (TypeError, ValueError), "Sparse data was passed for")
SPARSE_ONLY = Reason("sparse: a loop over containers of sparse arrays, which has none of them here", (NothingOfOurs,))
# where a refusal comes before the warning that a test waits for, pytest misses the warning
SEVERAL_TARGETS = Reason(
    "other parameter: y of several columns, or its class weights",
    (ValueError, _Failed),
    "y should be a 1d array|The 'class_weight' parameter|Regex: 'Warm-start fitting without increasing n_estimators",
)
PARAMETER = Reason("other parameter: aucforest lacks it", (TypeError,), "unexpected keyword argument|has no parameter")
ATTRIBUTE = Reason("other attribute: aucforest lacks it", (AttributeError,), "has no attribute|has no setter")
# The reasons of tests that must pass; those of WORDING with `in_other_words`.
WORDING = Reason("deliberate difference: messages are in other words, which are not compared", ())
NONE = Reason("none", ())


def deliberate(sentence, *raises, message=""):
    """Return the reason of a test that expects another behaviour; by default its assertions fail."""
    return Reason(f"deliberate difference: {sentence}", raises or (AssertionError, _Failed), message)


def find(item, left_out):
    """Return the pattern that applies to a test, and its reason: the first of `left_out` that matches its name.

    The patterns of a reason are parted by spaces; a name without parameters stands for all of them.
    """
    for reason, patterns in left_out.items():
        for pattern in patterns.split():
            if item.originalname == pattern or fnmatchcase(item.name, pattern.replace("[", "[[]")):
                return pattern, reason
    return None


class _OnlyOurs(dict):
    """A dict of classes without those that have no counterpart, so that loops use our classes only."""

    def __missing__(self, name):
        raise NoCounterpart(name)


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
    spec = spec_from_file_location(_PREFIX + module, original.__file__)
    loaded = module_from_spec(spec)
    with ExitStack() as stack:
        for names in replaced:
            stack.enter_context(names)
        spec.loader.exec_module(loaded)
    for name, value in vars(loaded).items():
        if name.endswith("_CONTAINERS") or name == "SPARSE_SPLITTERS":
            setattr(loaded, name, [])
        elif isinstance(value, dict) and any(map(_is_missing, value.values())):
            setattr(loaded, name, _OnlyOurs({key: item for key, item in value.items() if not _is_missing(item)}))
        elif hasattr(value, "pytestmark"):
            value.pytestmark = [_repeatable(mark) for mark in value.pytestmark]
    tests = {name: value for name, value in vars(loaded).items() if not name.startswith("_")}
    # a warning is no error to the peers
    marks = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
    return {**tests, "pytestmark": marks, "test_the_list_is_up_to_date": _test_the_list_is_up_to_date}


def _is_missing(value):
    return isinstance(value, type) and issubclass(value, Missing)


def _repeatable(mark):
    """Return a mark whose parameters can be iterated several times: pytest warns about iterators."""
    arguments = [list(argument) if isinstance(argument, Iterator) else argument for argument in mark.args]
    return getattr(pytest.mark, mark.name).with_args(*arguments, **mark.kwargs).mark


def is_of_peer(item):
    return isinstance(item, pytest.Function) and item.function.__module__.startswith(_PREFIX)


def _test_the_list_is_up_to_date(request):
    """Check that each pattern applies to a test; whether these fail for their reason is checked when they run."""
    left_out = request.module.LEFT_OUT
    tests = filter(is_of_peer, request.node.parent.collect())
    applied = {entry[0] for test in tests if (entry := find(test, left_out)) is not None}
    assert [pattern for patterns in left_out.values() for pattern in patterns.split() if pattern not in applied] == []


@contextmanager
def in_other_words():
    """Let `pytest.raises` and `pytest.warns` take any message; raise AssertionError if all are as expected."""
    differ = []

    def any_message(function):
        @contextmanager
        def call(*expected, match=None, **kwargs):
            with function(*expected, **kwargs) as caught:
                yield caught
            said = [str(caught.value)] if hasattr(caught, "value") else [str(warning.message) for warning in caught]
            if match is not None and not any(re.search(match, message) for message in said):
                differ.append(match)

        return call

    with patch.multiple(pytest, raises=any_message(pytest.raises), warns=any_message(pytest.warns)):
        yield
    assert differ, "all messages are in the peer's words: take the test off the list"

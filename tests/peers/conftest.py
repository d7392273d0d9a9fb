"""What the peers' tests need of pytest, and what becomes of those on the lists."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from tests.peers import stand_ins
from tests.peers.suite import WORDING, find, in_other_words, is_of_peer


@pytest.fixture
def global_random_seed() -> int:
    """Return scikit-learn's own default of this fixture."""
    return 42


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "thread_unsafe: a mark of scikit-learn's tests, without effect here")
    # of the peers' marks, while they are collected
    config.addinivalue_line("filterwarnings", "ignore:Passing a non-Collection iterable to parametrize")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that are left out: they must fail, for their reason."""
    for item in filter(is_of_peer, items):
        _, reason = find(item, item.module.LEFT_OUT) or (None, WORDING)
        if reason is not WORDING:
            item.add_marker(pytest.mark.xfail(reason=reason.sentence, raises=reason.raises, strict=True))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[Any]:
    """Make sure that a peer's test tests something of ours."""
    if not is_of_peer(pyfuncitem):
        return (yield)
    stand_ins.used.clear()
    _, reason = find(pyfuncitem, pyfuncitem.module.LEFT_OUT) or (None, None)
    with in_other_words() if reason is WORDING else nullcontext():
        result = yield
    if not stand_ins.used:
        raise stand_ins.NothingOfOurs(pyfuncitem.name)
    return result

"""What the peers' tests need of pytest, and what becomes of those on the lists."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from tests.peers import stand_ins
from tests.peers.suite import NONE, WORDING, find, in_other_words, is_of_peer


@pytest.fixture
def global_random_seed() -> int:
    """Return scikit-learn's own default of this fixture."""
    return 42


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "thread_unsafe: a mark of scikit-learn's tests, without effect here")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[Any]:
    """Make sure that a peer's test tests something of ours, and that one that is left out fails for its reason.

    Such a test is reported as skipped: a traceback for each of a thousand takes minutes, which xfail would write.
    """
    if not is_of_peer(pyfuncitem):
        return (yield)
    _, reason = find(pyfuncitem, pyfuncitem.module.LEFT_OUT) or (None, NONE)
    stand_ins.used.clear()
    try:
        with in_other_words() if reason is WORDING else nullcontext():
            result = yield
        if not stand_ins.used:
            raise stand_ins.NothingOfOurs(f"{pyfuncitem.name} uses nothing of ours")
    except reason.raises as error:
        if not reason.explains(error):
            raise
        pytest.skip(reason.sentence)
    if reason.raises:
        pytest.fail(f"{pyfuncitem.name} passes: take it off the list")
    return result

"""A fixture, a marker and a hook for the tests of peers; tests on the lists must fail for the given reason."""

from contextlib import nullcontext

import pytest

from tests.peers import stand_ins
from tests.peers.suite import NONE, WORDING, find, in_other_words, is_of_peer


@pytest.fixture
def global_random_seed():
    return 42


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: a mark of scikit-learn's tests, without effect here")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Check that a peer's test uses a stand-in, and that a test that is left out fails for its reason.

    Such a test is reported as skipped and not as xfail, which would write a traceback for each; this takes minutes.
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

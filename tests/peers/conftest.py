"""A fixture and a marker for the tests of peers. Tests in `LEFT_OUT` must fail."""

from fnmatch import fnmatchcase

import pytest


@pytest.fixture
def global_random_seed():
    return 42


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: a mark of scikit-learn's tests, without effect here")


def _reason(item):
    """Return why `LEFT_OUT` has a test, or None. A pattern without parameters matches all parameters."""
    for reason, patterns in getattr(item.module, "LEFT_OUT", {}).items():
        for pattern in patterns.split():
            if item.originalname == pattern or fnmatchcase(item.name, pattern.replace("[", "[[]")):
                return reason
    return None


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Skip a test in `LEFT_OUT` if it fails. The mark xfail would write all tracebacks, which takes minutes."""
    reason = _reason(pyfuncitem)
    if reason is None:
        return (yield)
    try:
        yield
    except (Exception, pytest.fail.Exception):
        pytest.skip(reason)
    pytest.fail(f"{pyfuncitem.name} passes: take it off the list")

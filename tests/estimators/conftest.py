"""Fixtures. Short tasks are run by threads in these tests, although tables are small."""

import pytest

from aucforest.estimators._forest_fit import ForestFit
from aucforest.fitting import growing as _growing


@pytest.fixture(autouse=True)
def threads_for_little_work(monkeypatch):
    monkeypatch.setattr(_growing, "_LEAST_TASK_SECONDS", 0.0)


@pytest.fixture
def nothing_grows(monkeypatch):
    def grow(*_):
        raise AssertionError("a forest is grown")

    monkeypatch.setattr(ForestFit, "_grow", grow)

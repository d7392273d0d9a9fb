"""The database engine, with which tests evaluate SQL."""

import pytest

from aucforest.tables.database import connect


@pytest.fixture(scope="session")
def engine():
    with connect() as connection:
        yield connection

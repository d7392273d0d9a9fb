"""Versions that all workers must have in common."""

import pytest

from aucforest.distributed import VersionMismatchError
from aucforest.distributed._errors import check_versions
from aucforest.fitting.job import find_versions


def test_the_first_difference_is_named():
    here = find_versions()
    check_versions(here, dict(here), "worker 1")
    assert set(here) >= {"numpy", "numba"}
    with pytest.raises(VersionMismatchError, match=r"numpy is .* here, but 1\.0 on worker 1"):
        check_versions(here, here | {"numpy": "1.0"}, "worker 1")
    with pytest.raises(VersionMismatchError, match=r"numba is .* here, but missing on worker 1"):
        check_versions(here, {name: value for name, value in here.items() if name != "numba"}, "worker 1")

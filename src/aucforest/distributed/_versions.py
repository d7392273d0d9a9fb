"""What workers must have in common: the results of all of them make one forest."""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

from aucforest.distributed._errors import VersionMismatchError


@cache
def find_versions() -> dict[str, str]:
    """Return the versions of what trees depend on, and a digest of the sources of this package."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    packages = {name: version(name) for name in ("numpy", "numba", "scikit-learn")}
    return {"the digest of aucforest's sources": digest.hexdigest()[:16], **packages}


def check_versions(here: dict[str, str], there: dict[str, str], worker: str) -> None:
    """Refuse a worker whose versions differ.

    Raises
    ------
    VersionMismatchError
        With the first difference.
    """
    for name, value in here.items():
        if there.get(name) != value:
            found = there.get(name, "missing")
            raise VersionMismatchError(f"{name} is {value} here, but {found} on {worker}: install the same everywhere")

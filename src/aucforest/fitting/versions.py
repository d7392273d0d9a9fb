"""Versions of what decides the trees: those who grow some of a forest must have the same."""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path


@cache
def find_versions() -> dict[str, str]:
    """Return the versions of what trees depend on, and a digest of the sources of this package."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    packages = {name: version(name) for name in ("numpy", "numba", "scikit-learn")}
    return {"the digest of aucforest's sources": digest.hexdigest()[:16], **packages}

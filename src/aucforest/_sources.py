"""A digest of the source files of the package, by default of those that use `aucforest._compile`."""

import hashlib
import os
import sys
from functools import cache


@cache
def digest_sources(word: bytes = b"_compile") -> str:
    """Return a digest of the package version and of the source files that contain `word`."""
    # A kernel uses functions and constants of several files, so all of them are read. This takes 4 ms. Modification
    # times of copied or checked-out files are not reliable. A package in a zip archive has no such files.
    digest = hashlib.sha256(sys.modules["aucforest"].__version__.encode())
    root = os.path.dirname(__file__)
    sources = (os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
    for path in sorted(path for path in sources if path.endswith(".py")):
        with open(path, "rb") as file:
            if word in (content := file.read()):
                digest.update(path.removeprefix(root).encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()

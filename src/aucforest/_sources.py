"""A digest of the source files of the package, by default of those that use `aucforest._compile`."""

import hashlib
import os
import sys
from functools import cache


@cache
def digest_sources(word: bytes = b"_compile") -> str:
    """Return a digest of the package version and of the source files that contain `word`."""
    # The digest is of many files, because a kernel uses functions and constants of other files. Their content is read,
    # in 4 ms, because modification times of copied files are not reliable. In a zip archive, no files are found.
    digest = hashlib.sha256(sys.modules["aucforest"].__version__.encode())
    root = os.path.dirname(__file__)
    sources = (os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
    for path in sorted(path for path in sources if path.endswith(".py")):
        with open(path, "rb") as file:
            if word in (content := file.read()):
                digest.update(path.removeprefix(root).encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()

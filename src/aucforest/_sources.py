"""A digest of the source files of the package, by default of those that use `aucforest._compile`."""

import hashlib
import os
import sys
from functools import cache


@cache
def digest_sources(word: bytes = b"_compile") -> str:
    """Return a digest of the version of the package and of the sources that contain `word` (none in an archive)."""
    # All files are included, because a kernel uses functions and constants of other files. Their contents are included,
    # because modification times are not reliable for copied or checked-out files. This takes 4 ms.
    digest = hashlib.sha256(sys.modules["aucforest"].__version__.encode())
    root = os.path.dirname(__file__)
    sources = (os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
    for path in sorted(path for path in sources if path.endswith(".py")):
        with open(path, "rb") as file:
            if word in (content := file.read()):
                digest.update(path.removeprefix(root).encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()

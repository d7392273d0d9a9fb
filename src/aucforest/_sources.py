"""A digest of the sources of machine code: those that use `aucforest._compile`, and so may be compiled."""

import hashlib
import os
import sys
from functools import cache


@cache
def digest_sources() -> str:
    """Return a digest of the sources with kernels (none in an archive) and of the version of the package."""
    # It covers all of these sources, because a kernel uses functions and constants of other files, and their contents,
    # because modification times are not reliable for copied or checked-out files. It takes 4 ms.
    digest = hashlib.sha256(sys.modules["aucforest"].__version__.encode())
    root = os.path.dirname(__file__)
    sources = (os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
    for path in sorted(path for path in sources if path.endswith(".py")):
        with open(path, "rb") as file:
            if b"_compile" in (content := file.read()):
                digest.update(path.removeprefix(root).encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()

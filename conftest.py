"""Give every state of the sources a numba cache of its own: numba looks at the called kernel's file only."""

import hashlib
import os
import sys
import tempfile
from pathlib import Path

if "numba" not in sys.modules and "NUMBA_CACHE_DIR" not in os.environ:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.joinpath("src").rglob("*.py")):
        digest.update(path.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"aucforest-numba-{digest.hexdigest()[:16]}"
    os.environ["NUMBA_CACHE_DIR"] = str(folder)

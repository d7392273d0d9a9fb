"""The digest of the sources. tests/test_compile.py tests that edits change it."""

import hashlib
from pathlib import Path

import aucforest
from aucforest._sources import digest_sources


def test_it_is_a_digest_of_the_version_and_of_all_files_that_name_the_compiler():
    package, digest = Path(aucforest.__file__).parent, hashlib.sha256(aucforest.__version__.encode())
    for path in sorted(package.rglob("*.py"), key=str):
        if b"_compile" in path.read_bytes():
            name = str(path).removeprefix(str(package))
            digest.update(name.encode() + hashlib.sha256(path.read_bytes()).digest())
    assert digest_sources() == digest.hexdigest()

"""A fixture: a function that writes files of text."""

import gzip
import json

import pyarrow as pa
import pytest


@pytest.fixture
def written(tmp_path):
    """Return a function that writes bytes, text or JSON lines to a file, compressed if its name ends in .gz or .zst."""

    def write(content, name="table.csv"):
        if isinstance(content, list):
            content = "".join(f"{json.dumps(row)}\n" for row in content)
        content = content if isinstance(content, bytes) else content.encode()
        if name.endswith(".zst"):
            with pa.CompressedOutputStream(str(tmp_path / name), "zstd") as stream:
                stream.write(content)
        else:
            (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return tmp_path / name

    return write

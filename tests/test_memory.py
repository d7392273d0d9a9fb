"""Memory of machines, and numbers of bytes as text."""

import numpy as np
import pytest

from aucforest import _memory
from aucforest._memory import format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("2GiB", 2**31), ("500MB", 5 * 10**8), (" 1.5 gb ", 1_500_000_000), ("100", 100), (7, 7), (np.int64(8), 8),
     ("3kB", 3000), ("2 TiB", 2**41), ("16k", 16000), ("1.9", 1), ("2.3GB", 23 * 10**8), ("9" * 400, 10**400 - 1)],
)  # fmt: skip
def test_bytes(text, n_bytes):
    assert parse_bytes(text, "memory_limit") == n_bytes


@pytest.mark.parametrize("text", [
    "", "GiB", "-1GB", "0", "0.5", "0.0009kB", 0, -5, True, None, 1.5, "2XB", "1 2", "2iB", "1e3MB", "nan", "1.5.2",
])  # fmt: skip
def test_what_is_no_number_of_bytes(text):
    with pytest.raises(ValueError, match="memory_limit must be a number of bytes"):
        parse_bytes(text, "memory_limit")


def test_numbers_of_bytes_are_readable():
    texts = ["0.00 KiB", "1.00 KiB", "35.16 KiB", "476.84 MiB", "8.00 GiB", "32.00 TiB"]
    assert [format_bytes(n) for n in (0, 1024, 36_000, 500e6, 8 * 2**30, 2**45)] == texts


def test_memory_of_a_container(monkeypatch, tmp_path):
    machine_memory = _memory.machine_memory.__wrapped__  # without the cache
    whole = machine_memory()
    (tmp_path / "max").write_text("max\n")
    monkeypatch.setattr(_memory, "_LIMIT_FILES", (str(tmp_path / "none"), str(tmp_path / "max")))
    assert machine_memory() >= whole
    (tmp_path / "max").write_text("1048576\n")
    assert machine_memory() == 2**20

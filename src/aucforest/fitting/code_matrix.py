"""The codes of all rows in a memory-mapped temporary file."""

import mmap
import os
import tempfile
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from aucforest.tree.binning import code_dtype

# On a system without a function to allocate a file, blocks of zeros of this size are written.
_BLOCK_BYTES = 2**24


class CodeMatrix:
    """A matrix of codes in a temporary file; `codes`, (len(n_codes), n_rows), is an array mapped to the file.

    `n_codes` is `Coding.n_codes`. The default folder is the system's folder for temporary files.
    """

    def __init__(self, n_codes: NDArray[np.int64], n_rows: int, folder: Path | None = None) -> None:
        dtype = code_dtype(int(n_codes.max()))
        n_bytes = len(n_codes) * n_rows * np.dtype(dtype).itemsize
        with _allocate(n_bytes, folder) as file:
            self._map = mmap.mmap(file.fileno(), n_bytes)
        codes: NDArray[np.unsignedinteger] = np.frombuffer(self._map, dtype)
        self.codes = codes.reshape(len(n_codes), n_rows)

    def release(self) -> None:
        """Remove the codes from memory, if the system can; the next access reads them from the file again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


def _allocate(n_bytes: int, folder: Path | None) -> IO[bytes]:
    """Open a temporary file and allocate n_bytes, because writing to its map on a full disk would end the process.

    The system removes the file when the file and its map are closed, even if the process is killed. This package does
    not remove it, because Windows refuses that for mapped files, and arrays may keep the map open.
    """
    file: IO[bytes] = tempfile.TemporaryFile(prefix="aucforest-", dir=folder)  # noqa: SIM115
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        else:
            for start in range(0, n_bytes, _BLOCK_BYTES):
                file.write(bytes(min(_BLOCK_BYTES, n_bytes - start)))
            file.flush()
    except OSError as error:
        file.close()
        name = str(folder or tempfile.gettempdir())
        raise OSError(error.errno, f"no room for {n_bytes:,} bytes of binned data: {error.strerror}", name) from error
    return file

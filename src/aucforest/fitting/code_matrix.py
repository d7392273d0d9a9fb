"""The codes of all rows in a memory-mapped file, with a record of the written rows.

A process may be killed while it writes, or the power may fail. So the record has a checksum of every chunk of rows.
Chunks are written again from the first chunk that does not match its checksum.
"""

import mmap
import os
import tempfile
from functools import reduce
from pathlib import Path
from typing import IO
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.job import JobFolder
from aucforest.persistence.model_file import ModelFormatError
from aucforest.tree.binning import code_dtype

# Files of the job folder.
CODES, RECORD = "codes.bin", "codes.safetensors"
# A file is filled with blocks of zeros of this size, if the system cannot allocate it.
_BLOCK_BYTES = 2**24


class CodeMatrix:
    """A matrix of codes, (n_features + n_digits, n_rows), that is filled from the first row to the last.

    Its file is in the job folder. Without a job folder, the file is temporary and nothing is recorded. `codes` is an
    array that is mapped to the file. `values` has the feature values of the rows `FitSpec.rows_with_values`, which are
    predicted out of bag. The first `n_read` rows of the source are encoded. Without those of weight 0, they are the
    first `n_written` rows of the matrix.
    """

    def __init__(
        self,
        job: JobFolder | None,
        n_codes: NDArray[np.int64],
        n_rows: int,
        rows_with_values: NDArray[np.int64],
        n_digits: int = 0,
    ) -> None:
        self._job, self._n_codes, self._rows_with_values = job, n_codes, rows_with_values
        dtype = code_dtype(int(n_codes.max()))
        self._chunks: list[list[int]] = []
        n_bytes = len(n_codes) * n_rows * np.dtype(dtype).itemsize
        path = None if job is None else job.folder / CODES
        exists = path is not None and path.exists() and path.stat().st_size == n_bytes
        if job is not None and not exists:
            (job.folder / RECORD).unlink(missing_ok=True)
        with path.open("r+b") if path is not None and exists else _allocate(path, n_bytes) as file:
            self._map = mmap.mmap(file.fileno(), n_bytes)
        codes: NDArray[np.unsignedinteger] = np.frombuffer(self._map, dtype)
        self.codes = codes.reshape(len(n_codes), n_rows)
        self.values = np.zeros((len(rows_with_values), len(n_codes) - n_digits))
        self.n_read = self.n_written = 0
        if job is not None and exists:
            self._resume(job)

    def _resume(self, job: JobFolder) -> None:
        """Keep the rows of the file up to the first chunk that does not match the record."""
        try:
            record = job.read(RECORD)
            chunks = record.take_array("chunks", "q", (-1, 3))
            values = record.take_array("scored", "d", self.values.shape)
            rows = record.take_array("rows", "q", self._rows_with_values.shape)
        except (FileNotFoundError, ModelFormatError):
            return
        if not np.array_equal(rows, self._rows_with_values):  # a fit with other parameters
            return
        self.values = values
        for n_read, n_written, checksum in chunks.tolist():
            if not (self.n_written < n_written <= self.codes.shape[1] and self.n_read < n_read):
                return
            codes = self.codes[:, self.n_written : n_written]
            # Compiled code does not check indices, so with a greater code it would read outside its arrays.
            if checksum != self._checksum(self.n_written, n_written) or np.any(codes.max(axis=1) > self._n_codes):
                return
            self._chunks.append([n_read, n_written, checksum])
            self.n_read, self.n_written = n_read, n_written
            self.release()

    def _checksum(self, start: int, stop: int) -> int:
        return reduce(lambda checksum, column: crc32(column[start:stop].data, checksum), self.codes, 0)

    def write(self, start: int, codes: NDArray[np.unsignedinteger]) -> None:
        """Write the codes of rows from `start` on; several threads may call it at the same time."""
        self.codes[:, start : start + codes.shape[1]] = codes

    def release(self) -> None:
        """Remove the codes from memory, if the system can; they are read from the file when they are used again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def record(self, n_read: int, n_written: int) -> None:
        """Record that n_read rows of the source are the first n_written rows of the matrix."""
        if self._job is not None and n_written > self.n_written:
            self._chunks.append([n_read, n_written, self._checksum(self.n_written, n_written)])
            chunks, rows = np.array(self._chunks, dtype=np.int64), self._rows_with_values
            self._job.write(RECORD, {"chunks": chunks, "scored": self.values.copy(), "rows": rows})
        self.n_read, self.n_written = n_read, n_written


def _allocate(path: Path | None, n_bytes: int) -> IO[bytes]:
    """Open a new file and allocate its size, because writing to its map on a full disk would end the process.

    Without a path, the file is temporary, and the system removes it when the file and its map are closed. This process
    cannot remove it: Windows does not remove mapped files, and nobody knows when the last array of the map is released.
    """
    if path is None:
        file: IO[bytes] = tempfile.TemporaryFile(prefix="aucforest-")  # noqa: SIM115
    else:
        path.unlink(missing_ok=True)
        file = path.open("w+b")
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        else:
            for start in range(0, n_bytes, _BLOCK_BYTES):
                file.write(bytes(min(_BLOCK_BYTES, n_bytes - start)))
            file.flush()
    except OSError as error:
        file.close()
        if path is not None:
            path.unlink()
        name = tempfile.gettempdir() if path is None else str(path)
        raise OSError(error.errno, f"no room for {n_bytes:,} bytes of binned data: {error.strerror}", name) from error
    return file

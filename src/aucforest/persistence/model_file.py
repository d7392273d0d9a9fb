"""Model files: arrays and metadata in one safetensors file, with a checksum.

The header of a safetensors file describes the arrays and can contain named strings. Model files have only one
string, named ``aucforest``, because safetensors writes several in random order, and equal models should give equal
files. The string has the version of the format, the CRC-32 of arrays and metadata, and the metadata as JSON, separated
by spaces.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from aucforest._files import write_whole

VERSION = 1

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")

_NAME = "aucforest"
# The maximum size of the header in bytes, because it is parsed before the checksum can be verified.
_MOST_HEADER = 2**24
# The maximum number of lists and dicts in the metadata. An empty list takes 3 bytes in a file, but 64 in memory.
_MOST_BRACKETS = 2**18


class ModelFormatError(ValueError):
    """Raised if a file is not a model file, is damaged, or was written by a newer version of aucforest."""


class ModelTooLargeError(ModelFormatError):
    """Raised if the content of a file would take too much memory."""


def require(holds: Any, sentence: str) -> None:
    """Raise ModelFormatError with the message `sentence` unless `holds` is true."""
    if not holds:
        raise ModelFormatError(sentence)


class StoredModel:
    """The arrays and the metadata of a model file, which are validated when they are taken by name."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        self._arrays, self._metadata = dict(arrays), dict(metadata)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays or name in self._metadata

    def change(self, name: str, function: Callable[[Any], Any]) -> None:
        """Replace the array or the metadata item `name`, if it exists, by `function` of it."""
        for items in (self._arrays, self._metadata):
            if name in items:
                items[name] = function(items[name])

    def take_array(self, name: str, dtypes: str, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
        """Remove an array and return it; raise ModelFormatError unless it has one of the dtypes and the shape.

        `dtypes` are characters such as "BHI". In a shape, -1 stands for any length. None stands for any shape.
        """
        require(name in self._arrays, f"the array {name} is missing")
        array = self._arrays.pop(name)
        fits = shape is None or (
            array.ndim == len(shape) and all(size in (-1, n) for size, n in zip(shape, array.shape))
        )
        if not fits or array.dtype not in map(np.dtype, dtypes):
            types = " or ".join(np.dtype(dtype).name for dtype in dtypes)
            raise ModelFormatError(f"{name} must be {types} of shape {shape}, but is {array.dtype} of {array.shape}")
        return array

    def take(self, name: str, kind: type[T]) -> T:
        """Remove an item of the metadata and return it; raise ModelFormatError unless its type is `kind`."""
        require(name in self._metadata, f"{name} is missing")
        value = self._metadata.pop(name)
        require(type(value) is kind, f"{name} must be {kind.__name__}, but is {type(value).__name__}")
        return value

    def take_list(self, name: str, kind: type[T]) -> list[T]:
        """Remove a list from the metadata and return it; raise ModelFormatError unless all its items are of `kind`."""
        items = self.take(name, list)
        require(all(type(item) is kind for item in items), f"each item of {name} must be {kind.__name__}")
        return items

    def take_model(self, name: str) -> "StoredModel":
        """Remove a nested model and return it: the metadata item `name`, and the arrays with the prefix "name/"."""
        names = [array for array in self._arrays if array.startswith(f"{name}/")]
        arrays = {array.removeprefix(f"{name}/"): self._arrays.pop(array) for array in names}
        return StoredModel(arrays, self.take(name, dict))

    def check_taken(self) -> None:
        """Raise ModelFormatError if there is an array or an item of the metadata that was not taken."""
        for name in (*self._arrays, *self._metadata):
            raise ModelFormatError(f"{name} is unknown")


def narrow(values: NDArray[Any], dtypes: str) -> NDArray[Any]:
    """Convert integers of at least -1 to the first of `dtypes`, such as "BHI", that can represent the largest one."""
    most = int(values.max()) if values.size else 0
    for dtype in dtypes:
        if most <= np.iinfo(dtype).max:
            return values.astype(dtype)
    raise ValueError(f"{most} is too large for a model file")


def _checksum(arrays: Arrays, metadata: str) -> str:
    """Return the CRC-32 of the metadata and of the names, dtypes, shapes and contents of the arrays."""
    checksum = crc32(metadata.encode())
    for name in sorted(arrays):
        array = arrays[name]
        checksum = crc32(f"{name} {array.dtype} {array.shape}".encode(), checksum)
        checksum = crc32(array.reshape(-1).view(np.uint8).data, checksum)
    return f"{checksum:08x}"


def write_model(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
    """Write a model file, completely or not at all; raise ValueError if the metadata are too large."""
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    text = json.dumps(metadata, allow_nan=False)
    _check_brackets(text)
    content = save(arrays, {_NAME: f"{VERSION} {_checksum(arrays, text)} {text}"})
    if int.from_bytes(content[:8], "little") > _MOST_HEADER:
        raise ValueError(f"the labels and parameters of the model are larger than {_MOST_HEADER >> 20} MiB")
    write_whole(path, content)


def read_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read a model file into memory; raise ModelFormatError if it is damaged or not in a format up to `VERSION`."""
    with open(path, "rb") as start:
        length = start.read(8)
    require(int.from_bytes(length, "little") <= _MOST_HEADER, "not a model file: its header is too large")
    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            _, checksum, text = _split(file.metadata() or {})
            arrays = {name: file.get_tensor(name) for name in list(file.keys())}
    except (SafetensorError, AttributeError, TypeError) as error:  # the latter two for dtypes that numpy does not have
        raise ModelFormatError(f"not a model file: {error}") from None
    require(checksum == _checksum(arrays, text), "the file is damaged: the checksum does not match")
    _check_brackets(text)
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"the metadata cannot be read: {error}") from None
    require(isinstance(metadata, dict), "the metadata are not a JSON object")
    return StoredModel(arrays, metadata)


def _check_brackets(text: str) -> None:
    """Raise ModelFormatError if the metadata have so many lists and dicts that they could exhaust the memory."""
    n_brackets = text.count("[") + text.count("{")
    require(n_brackets <= _MOST_BRACKETS, f"the metadata have more than {_MOST_BRACKETS} lists and dicts")


def read_version(path: str | os.PathLike[str]) -> int:
    """Return the version of the format of a valid model file."""
    with safe_open(os.fspath(path), framework="numpy") as file:
        return _split(file.metadata() or {})[0]


def _split(header: Mapping[str, str]) -> tuple[int, str, str]:
    """Return version, checksum and metadata; raise ModelFormatError for an unknown or newer format."""
    match = re.fullmatch("([1-9][0-9]{0,8}) ([0-9a-f]{8}) (.*)", header.get(_NAME, ""))
    if match is None:
        raise ModelFormatError("not a model file of aucforest")
    version, checksum, text = match.groups()
    newer = f"written by a newer aucforest: format {version}, but this one supports up to {VERSION}"
    require(int(version) <= VERSION, newer)
    return int(version), checksum, text

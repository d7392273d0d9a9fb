"""Model files: arrays and metadata in one safetensors file, with a checksum.

The header of a safetensors file holds strings by name beside the description of the arrays. Here it is one, named
``aucforest`` (of several the order would be random): the version of the format, the CRC-32 of all that was stored, and
the metadata as JSON, with spaces between. Nothing in a file is executed.
"""

import json
import os
import re
from collections.abc import Mapping
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
# Bytes of the header, which is parsed before anything is known of it.
_MOST_HEADER = 2**24
# Lists and dicts of the metadata, or brackets in labels: an empty list is 3 bytes in a file, and 64 in memory.
_MOST_BRACKETS = 2**18
_DTYPES = {"F64", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8"}


class ModelFormatError(ValueError):
    """Raised if a file is not a model file, is damaged, or was written by a newer version of aucforest."""


class ModelTooLargeError(ModelFormatError):
    """Raised if the content of a file would take too much memory."""


class StoredModel:
    """What a file holds, to be taken out by name with what it must be: arrays, and metadata that JSON can hold."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        self._arrays, self._metadata = dict(arrays), dict(metadata)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays or name in self._metadata

    def take_array(self, name: str, dtypes: str, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
        """Take out an array of one of these types, such as "BHI", and this shape: -1 for any length, None for all."""
        if name not in self._arrays:
            raise ModelFormatError(f"the array {name} is missing")
        array = self._arrays.pop(name)
        fits = shape is None or (
            array.ndim == len(shape) and all(n in (-1, found) for n, found in zip(shape, array.shape))
        )
        if not fits or array.dtype not in map(np.dtype, dtypes):
            wanted = " or ".join(np.dtype(dtype).name for dtype in dtypes)
            raise ModelFormatError(f"{name} must be {wanted} of shape {shape}, but is {array.dtype} of {array.shape}")
        return array

    def take(self, name: str, kind: type[T]) -> T:
        """Take out metadata of one type."""
        if name not in self._metadata:
            raise ModelFormatError(f"{name} is missing")
        value = self._metadata.pop(name)
        if type(value) is not kind:
            raise ModelFormatError(f"{name} must be {kind.__name__}, but is {type(value).__name__}")
        return value

    def check_taken(self) -> None:
        """Refuse what nobody asked for."""
        if left := [*self._arrays, *self._metadata]:
            raise ModelFormatError(f"{left[0]} is unknown")


def _checksum(arrays: Arrays, metadata: str) -> str:
    """Return the CRC-32 of names, types, shapes and contents."""
    checksum = crc32(metadata.encode())
    for name in sorted(arrays):
        array = arrays[name]
        checksum = crc32(f"{name} {array.dtype} {array.shape}".encode(), checksum)
        checksum = crc32(array.reshape(-1).view(np.uint8).data, checksum)
    return f"{checksum:08x}"


def write_model(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
    """Write a model file, whole or not at all; ValueError for metadata that are too large."""
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    text = json.dumps(metadata, allow_nan=False)
    _check_brackets(text)
    content = save(arrays, {_NAME: f"{VERSION} {_checksum(arrays, text)} {text}"})
    if int.from_bytes(content[:8], "little") > _MOST_HEADER:
        raise ValueError(f"the labels and parameters of the model are larger than {_MOST_HEADER >> 20} MiB")
    write_whole(path, content)


def read_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read a model file into copies; ModelFormatError for what no version up to this one of `write_model` writes."""
    with open(path, "rb") as start:
        length = start.read(8)
    if int.from_bytes(length, "little") > _MOST_HEADER:
        raise ModelFormatError("not a model file: its header is too large")
    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            _, checksum, text = _split(file.metadata() or {})
            names = list(file.keys())
            for name in names:
                if (dtype := file.get_slice(name).get_dtype()) not in _DTYPES:
                    raise ModelFormatError(f"{name} has the unknown type {dtype}")
            arrays = {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        raise ModelFormatError(f"not a model file: {error}") from None
    if checksum != _checksum(arrays, text):
        raise ModelFormatError("the file is damaged: the checksum does not match")
    _check_brackets(text)
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"the metadata cannot be read: {error}") from None
    if not isinstance(metadata, dict):
        raise ModelFormatError("the metadata are not a JSON object")
    return StoredModel(arrays, metadata)


def read_version(path: str | os.PathLike[str]) -> int:
    """Return the version of the format of a model file, which `read_model` has read."""
    with safe_open(os.fspath(path), framework="numpy") as file:
        return _split(file.metadata() or {})[0]


def _check_brackets(text: str) -> None:
    """Refuse metadata of so many parts that they take much more memory than room in the file."""
    if text.count("[") + text.count("{") > _MOST_BRACKETS:
        raise ModelFormatError(f"the metadata have more than {_MOST_BRACKETS} lists and dicts")


def _split(header: Mapping[str, str]) -> tuple[int, str, str]:
    """Return version, checksum and metadata; refuse what is not of this format, or newer."""
    found = re.fullmatch("([1-9][0-9]{0,8}) ([0-9a-f]{8}) (.*)", header.get(_NAME, ""))
    if found is None:
        raise ModelFormatError("not a model file of aucforest")
    version, checksum, text = found.groups()
    if int(version) > VERSION:
        raise ModelFormatError(f"written by a newer aucforest: format {version}, but this one supports up to {VERSION}")
    return int(version), checksum, text

"""Folders of what a fit leaves for the case that it is killed: a manifest says of which fit."""

import json
import os
import re
from collections.abc import Container, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np

from aucforest._files import half_written, lock, write_whole
from aucforest.fitting.versions import find_versions
from aucforest.persistence.plain_values import from_plain, to_plain

# Parameters of a forest that trees do not depend on before they are shrunk.
_FREE = {
    "n_estimators", "warm_start", "n_jobs", "verbose", "oob_score", "threshold", "shrinkage", "prior_correction",
}  # fmt: skip
_MANIFEST, _LOCK = "manifest.json", "lock"
_FORMAT = 1
# Characters of a value in a message.
_MOST_SHOWN = 80


def describe_fit(
    params: Mapping[str, Any], seed: int, folder: str, free: Container[str] = frozenset()
) -> dict[str, Any]:
    """Return what tells the trees of a fit from others, beside its data.

    Parameters
    ----------
    params : dict
        The parameters of the forest.
    seed : int
        What trees are drawn by: those that are added to others by the seed of these, whatever random_state is now.
    folder : str
        The parameter that names the folder.
    free : container of str
        More parameters that trees do not depend on.

    Raises
    ------
    ValueError
        If random_state is no integer: a fit that goes on would draw otherwise.
    """
    if not isinstance(params["random_state"], int | np.integer):
        raise ValueError(
            f"{folder} needs an integer random_state, so that trees are drawn alike when the fit goes on; it is"
            f" {params['random_state']!r}"
        )
    given = {name: value for name, value in params.items() if name not in _FREE and name not in free}
    return {**given, "the seed": seed, **find_versions()}


class Claim:
    """A folder of one fit, which one process has at a time; a context manager.

    Parameters
    ----------
    folder : path-like
        Made where it is missing.
    manifest : dict of str to plain values
        All that the files depend on.
    names : pattern
        What the files are called; half-written ones are removed.

    Attributes
    ----------
    folder : Path
    fit : str
        A digest of the manifest.

    Raises
    ------
    ValueError
        When the folder is that of another fit, holds other files, or is a file.
    TypeError
        For a value in the manifest that is not made of numbers, text, lists, dicts and None.
    BlockingIOError
        When another fit is using the folder.
    OSError
        When the folder cannot be read or written.
    """

    def __init__(self, folder: str | os.PathLike[str], manifest: Mapping[str, Any], names: re.Pattern[str]) -> None:
        self.folder = Path(folder)
        plain = {name: _to_plain(name, value) for name, value in manifest.items()}
        # the order of names says nothing
        self.fit = sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"the checkpoint {self.folder} is a file, not a folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        # once before anything is put into a folder of others, and once when nobody else begins it
        _is_begun(self.folder, plain)
        self._lock = lock(self.folder / _LOCK)
        try:
            if not _is_begun(self.folder, plain):
                write_whole(self.folder / _MANIFEST, _manifest_text(plain))
            for path in self.folder.iterdir():
                name = half_written(path)
                if name is not None and (name in (_MANIFEST, _LOCK) or names.fullmatch(name)):
                    path.unlink()
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Let others use the folder."""
        self._lock.close()


def _to_plain(name: str, value: Any) -> Any:
    """Return a value as JSON can hold it."""
    try:
        return to_plain(value)
    except TypeError as error:
        raise TypeError(f"{name}={value!r} cannot be stored in a checkpoint: {error}") from None


def _manifest_text(plain: Mapping[str, Any]) -> bytes:
    """Return what is in the manifest."""
    return (json.dumps({"checkpoint": _FORMAT, "fit": plain}, indent=1) + "\n").encode()


def _is_begun(folder: Path, plain: Mapping[str, Any]) -> bool:
    """Say whether a fit has been begun in a folder; refuse one that holds another fit, or files of others."""
    if (folder / _MANIFEST).exists():
        _compare(folder, _read_manifest(folder / _MANIFEST), plain)
        return True
    for path in folder.iterdir():
        if path.name != _LOCK and half_written(path) != _MANIFEST:
            raise ValueError(f"the folder {folder} holds {path.name}, but no checkpoint: name a new or empty one")
    return False


def _read_manifest(path: Path) -> dict[str, Any]:
    """Return what is fitted."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or set(content) != {"checkpoint", "fit"} or not isinstance(content["fit"], dict):
        raise ValueError(f"{path} is damaged, or not of a checkpoint: name a new or empty folder")
    if content["checkpoint"] != _FORMAT:
        raise ValueError(f"{path} is of format {content['checkpoint']}, but this aucforest knows {_FORMAT}")
    return content["fit"]


def _compare(folder: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse a folder in which something else is fitted."""
    for name in dict.fromkeys([*here, *there]):
        one, other = (repr(from_plain(fit[name])) if name in fit else "missing" for fit in (there, here))
        # as text: 1 and 1.0 are equal, but not the same max_features
        if one != other:
            raise ValueError(
                f"{folder} is the checkpoint of another fit: {name} is {one[:_MOST_SHOWN]} there,"
                f" but {other[:_MOST_SHOWN]} here"
            )

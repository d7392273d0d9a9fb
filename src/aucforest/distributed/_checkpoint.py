"""Finished trees in files: a fit that was killed goes on where it was.

A folder holds ``manifest.json``, which says what is fitted, and model files of some trees each. All are written beside
and renamed. A tree is a function of what is fitted and its number, so nothing is lost but time when a file is.
"""

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._files import half_written, lock, write_whole
from aucforest.interop.folded_trees import FoldedTrees, fold
from aucforest.interop.model_file import ModelFormatError, read_model, write_model
from aucforest.interop.plain_values import from_plain, to_plain
from aucforest.tree.structure import Tree

_MANIFEST, _LOCK = "manifest.json", "lock"
_TREES = re.compile(r"trees-\d+-\d+\.safetensors")
_FORMAT = 1
# Characters of a value in a message.
_MOST_SHOWN = 80


class Checkpoint:
    """The finished trees of a fit, in a folder that one process has at a time; a context manager.

    Parameters
    ----------
    folder : path-like
        Made where it is missing. What it holds of the same fit is gone on from.
    manifest : dict of str to plain values
        All that trees depend on but their number: parameters, seed, digests of the data, versions. What may change
        from one run to the next, such as the number of trees, does not belong here.
    n_features, n_classes : int
        What the trees read and predict.
    by_set : ndarray of shape (n_features,), bool, or None
        The features that are cut by sets; None when all are cut by thresholds.

    Raises
    ------
    ValueError
        When the folder holds the trees of another fit, files that are no checkpoint's, or is a file.
    TypeError
        For a value in the manifest that is not made of numbers, text, lists, dicts and None.
    BlockingIOError
        When another fit is using the folder.
    OSError
        When the folder cannot be read or written.

    Notes
    -----
    A kill of the process leaves every file whole; after a failure of power, or of the disk, checksums tell.

    Examples
    --------
    >>> import tempfile
    >>> import aucforest
    >>> from sklearn.datasets import load_iris
    >>> forest = aucforest.AUCForestClassifier(n_estimators=3, random_state=0).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Checkpoint(folder, {"seed": 0}, 4, 3, None) as checkpoint:
    ...         checkpoint.save([0, 2], [forest.trees_[0], forest.trees_[2]])
    ...     with Checkpoint(folder, {"seed": 0}, 4, 3, None) as checkpoint:
    ...         sorted(checkpoint.trees())
    [0, 2]
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        manifest: Mapping[str, Any],
        n_features: int,
        n_classes: int,
        by_set: NDArray[np.bool_] | None,
    ) -> None:
        self.folder = Path(folder)
        set_features = np.flatnonzero([] if by_set is None else by_set)
        self._shape = n_features, n_classes, set_features
        plain = {name: _to_plain(name, value) for name, value in manifest.items()}
        # the order of names says nothing
        self._fit = sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
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
                if _is_ours(half_written(path)):
                    path.unlink()
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Let others use the folder."""
        self._lock.close()

    def trees(self) -> dict[int, Tree]:
        """Read the trees that are there, by number: to the last bit those that were saved.

        Raises
        ------
        OSError
            When a file cannot be read.

        Warns
        -----
        UserWarning
            For a file that is damaged, which is removed: its trees are to be grown again.
        """
        trees: dict[int, Tree] = {}
        for path in sorted(self.folder.iterdir()):
            if _TREES.fullmatch(path.name):
                try:
                    trees.update(self._read(path))
                except ModelFormatError as error:
                    warnings.warn(f"{path} is left out, its trees are grown again: {error}", stacklevel=2)
                    path.unlink()
        return trees

    def _read(self, path: Path) -> Iterator[tuple[int, Tree]]:
        """Return numbers and trees of a file, after everything in it is checked."""
        stored = read_model(path)
        if stored.take("fit", str) != self._fit:
            raise ModelFormatError("its trees are of another fit")
        folded = FoldedTrees.check(stored, *self._shape)
        numbers = stored.take_array("numbers", "q", (len(folded),)).tolist()
        stored.check_taken()
        if numbers[0] < 0 or sorted(set(numbers)) != numbers:
            raise ModelFormatError("the numbers of its trees are not in rising order from 0")
        return zip(numbers, folded.unfold())

    def save(self, numbers: Sequence[int], trees: Sequence[Tree]) -> None:
        """Write some trees into a file of their own; threads may do so at the same time.

        Parameters
        ----------
        numbers : sequence of int
            Of trees that are not there, in rising order.
        trees : sequence of Tree
            As many; not shrunk, and of the numbers of features and classes of the checkpoint.

        Raises
        ------
        OSError
            When the file cannot be written; nothing of it is left behind.
        """
        path = self.folder / f"trees-{numbers[0]:06d}-{numbers[-1]:06d}.safetensors"
        arrays = fold(trees) | {"numbers": np.array(numbers, dtype=np.int64)}
        try:
            write_model(path, arrays, {"fit": self._fit})
        except OSError as error:
            what = f"trees {numbers[0]} to {numbers[-1]} cannot be saved: {error.strerror}"
            raise OSError(error.errno, what, str(path)) from error


def _to_plain(name: str, value: Any) -> Any:
    """Return a value as JSON can hold it."""
    try:
        return to_plain(value)
    except TypeError as error:
        raise TypeError(f"{name}={value!r} cannot be stored in a checkpoint: {error}") from None


def _manifest_text(plain: Mapping[str, Any]) -> bytes:
    """Return what is in the manifest."""
    return (json.dumps({"checkpoint": _FORMAT, "fit": plain}, indent=1) + "\n").encode()


def _is_ours(name: str | None) -> bool:
    """Say whether a file of this name is of a checkpoint."""
    return name is not None and (name in (_MANIFEST, _LOCK) or _TREES.fullmatch(name) is not None)


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

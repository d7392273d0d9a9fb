"""Finished trees in files: a fit that was killed goes on where it was.

A folder holds ``manifest.json``, which says what is fitted, and model files of some trees each. All are written beside
and renamed. A tree is a function of what is fitted and its number, so nothing is lost but time when a file is.
"""

import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.claims import Claim
from aucforest.fitting.spec import FitSpec
from aucforest.persistence.folded_trees import FoldedTrees, fold
from aucforest.persistence.model_file import ModelFormatError, read_model, write_model
from aucforest.tree.features import NUMERIC
from aucforest.tree.tree import Tree

_TREES = re.compile(r"trees-\d+-\d+\.safetensors")


class Checkpoint(Claim):
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
    kinds : ndarray of shape (n_features,), int8, or None
        Of the features; None when all are numeric.

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
        kinds: NDArray[np.int8] | None,
    ) -> None:
        super().__init__(folder, manifest, _TREES)
        set_features = np.flatnonzero([] if kinds is None else kinds != NUMERIC)
        self._shape = n_features, n_classes, set_features

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
        if stored.take("fit", str) != self.fit:
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
            write_model(path, arrays, {"fit": self.fit})
        except OSError as error:
            what = f"trees {numbers[0]} to {numbers[-1]} cannot be saved: {error.strerror}"
            raise OSError(error.errno, what, str(path)) from error


def grow_missing(
    spec: FitSpec,
    checkpoint: Checkpoint | None,
    grow: Callable[[list[int]], Iterator[tuple[Sequence[int], list[Tree]]]],
) -> list[Tree]:
    """Grow the trees that a checkpoint does not have, and leave them there as they are done.

    Parameters
    ----------
    spec : FitSpec
    checkpoint : Checkpoint or None
    grow : callable
        Takes keys; yields places among them and the trees there, as they are done.

    Returns
    -------
    list of Tree
        One for every key.
    """
    trees = {} if checkpoint is None else checkpoint.trees()
    missing = {number: key for number, key in zip(spec.numbers, spec.keys) if number not in trees}
    names = list(missing)
    for places, grown in grow(list(missing.values())) if missing else ():
        grown_numbers = [names[place] for place in places]
        if checkpoint is not None:
            checkpoint.save(grown_numbers, grown)
        trees.update(zip(grown_numbers, grown, strict=True))
    return [trees[number] for number in spec.numbers]

"""The job folder of a fit, with which the same fit can be resumed if it is killed.

``manifest.json`` describes the fit. Other files contain finished trees. A file is written under another name and then
renamed, so that no file is incomplete if the process is killed. Checksums reveal damage by a power failure. The trees
of a lost or damaged file are grown again.
"""

import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from aucforest._caller import warn
from aucforest._files import half_written, lock, write_whole
from aucforest.fitting.bootstrap import BLOCK_ROWS
from aucforest.fitting.parts import Part
from aucforest.fitting.target import Target
from aucforest.persistence.folded_trees import fold, unfold
from aucforest.persistence.model_file import ModelFormatError, ModelTooLargeError, read_model, write_model
from aucforest.persistence.plain_values import from_plain, to_plain
from aucforest.tree.features import NUMERIC
from aucforest.tree.tree import Tree

_MANIFEST, _LOCK = "manifest.json", "lock"
_TREES = re.compile(r"trees-(\d+)-(\d+)-[0-9a-f]{8}\.safetensors")
# The format of these files. Increase it if the files or the trees of a fit change without a new version of the package.
_FORMAT = 7
# Maximum number of characters of a value in an error message.
_MOST_SHOWN = 80
# Parameters that have no effect on the stored trees. Trees are stored before shrinkage.
_PARAMS_WITHOUT_EFFECT = {
    "n_estimators", "warm_start", "n_jobs", "verbose", "oob_score", "pos_label", "threshold", "shrinkage",
    "calibration", "random_state", "strategy", "checkpoint_dir", "client",
}  # fmt: skip


def find_versions() -> dict[str, str]:
    """Return the versions of the packages that determine the trees."""
    versions = {name: version(name) for name in ("numpy", "numba", "scikit-learn")}
    versions["Python"] = platform.python_version().rpartition(".")[0]
    return {"aucforest": sys.modules["aucforest"].__version__, **versions}


def check_seed(params: Mapping[str, Any], parameter: str) -> None:
    """Raise ValueError if random_state is not an integer, because a resumed fit would have another seed."""
    if not isinstance(params["random_state"], int | np.integer):
        raise ValueError(
            f"{parameter} needs an integer random_state, so that the fit can be resumed, but it is"
            f" {params['random_state']!r}"
        )


def describe_fit(params: Mapping[str, Any], seed: int, target: Target) -> dict[str, Any]:
    """Return what determines the trees besides the values of the features: parameters, digests and versions."""
    weights = target.sample_weight
    return {
        "the classes": target.classes,
        "the digest of the labels": sha256(target.labels.data).hexdigest(),
        "the digest of the weights": None if weights is None else sha256(weights.data).hexdigest(),
        **{name: value for name, value in params.items() if name not in _PARAMS_WITHOUT_EFFECT},
        "the seed": seed,
        **find_versions(),
    }


def digest_codes(part: Part) -> bytes:
    """Return the joined digests of a part's blocks, which are the same however the rows are divided into parts."""
    blocks = (part.codes[:, start : start + BLOCK_ROWS] for start in range(0, part.n_rows, BLOCK_ROWS))
    return b"".join(sha256(block.tobytes()).digest() for block in blocks)


class JobFolder:
    """The folder of one fit, which only one process can use at a time, until it calls `close`.

    The folder is created if it does not exist. If it has results of the same fit, the fit is resumed. `manifest` is a
    description of the fit by `describe_fit` and digests of the features. Raises ValueError for the folder of another
    fit, and BlockingIOError if another process is using the folder.
    """

    def __init__(self, folder: str | os.PathLike[str], manifest: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        fit = {}
        for name, value in manifest.items():
            try:
                fit[name] = to_plain(value)
            except TypeError as error:
                raise TypeError(f"{name}={value!r} cannot be stored in a checkpoint: {error}") from None
        # The digest does not depend on the order of names.
        self._fit_digest = sha256(json.dumps(fit, sort_keys=True).encode()).hexdigest()
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"the checkpoint {self.folder} is a file, not a folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        # The fit is checked before the lock file is written, and again when no other process can write to the folder.
        self._has_fit(fit)
        self._lock = lock(self.folder / _LOCK)
        try:
            if not self._has_fit(fit):
                text = json.dumps({"checkpoint": _FORMAT, "fit": fit}, indent=1)
                write_whole(self.folder / _MANIFEST, f"{text}\n".encode())
            for path in self.folder.iterdir():
                name = half_written(path) or ""
                if name == _MANIFEST or _TREES.fullmatch(name):
                    path.unlink()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the folder."""
        self._lock.close()

    def _has_fit(self, fit: Mapping[str, Any]) -> bool:
        """Return whether the folder has this fit, False if it is empty; ValueError for another fit or other files."""
        path = self.folder / _MANIFEST
        if not path.exists():
            for path in self.folder.iterdir():
                if path.name != _LOCK and half_written(path) != _MANIFEST:
                    raise ValueError(
                        f"the folder {self.folder} holds {path.name}, but no checkpoint: use a new or empty one"
                    )
            return False
        stored = _read_manifest(path)
        for name in dict.fromkeys([*fit, *stored]):
            # Values are compared as text, because 1 and 1.0 are equal, but they mean different max_features.
            stored_value, value = _as_text(stored, name), _as_text(fit, name)
            if stored_value != value:
                raise ValueError(
                    f"{self.folder} is the checkpoint of another fit: {name} is {stored_value[:_MOST_SHOWN]} there,"
                    f" but {value[:_MOST_SHOWN]} here"
                )
        return True

    def trees(self, kinds: NDArray[np.int8], n_classes: int, variant_of: Mapping[int, int]) -> dict[int, Tree]:
        """Return those of the requested trees that are saved, by index, given the variant of each requested index.

        Saved trees of other variants are left out: with a warm start, an index may have another variant than in a
        single fit. A damaged file is removed with a warning, and its trees must be grown again. Raises
        ModelTooLargeError, and keeps the file, if the trees of a file take too much memory.
        """
        trees: dict[int, Tree] = {}
        for path in sorted(self.folder.iterdir()):
            match = _TREES.fullmatch(path.name)
            if match and any(int(match[1]) <= number <= int(match[2]) for number in variant_of):
                try:
                    stored = self._read_trees(path, kinds, n_classes)
                    trees |= {number: tree for number, variant, tree in stored if variant_of.get(number) == variant}
                except ModelTooLargeError:
                    raise
                except ModelFormatError as error:
                    warn(f"{path} is ignored and its trees are grown again: {error}")
                    path.unlink()
        return trees

    def _read_trees(self, path: Path, kinds: NDArray[np.int8], n_classes: int) -> Iterator[tuple[int, int, Tree]]:
        """Return the indices, variants and trees of a file; raise ModelFormatError if it is not valid."""
        stored = read_model(path)
        if stored.take("fit", str) != self._fit_digest:
            raise ModelFormatError("it belongs to another fit")
        trees = unfold(stored, len(kinds), n_classes, np.flatnonzero(kinds != NUMERIC))
        numbers, variants = (stored.take_array(name, "q", (len(trees),)).tolist() for name in ("numbers", "variants"))
        stored.check_taken()
        if numbers[0] < 0 or sorted(set(numbers)) != numbers:
            raise ModelFormatError("its tree numbers are negative or unsorted")
        return zip(numbers, variants, trees)

    def save(self, numbers: Sequence[int], trees: Sequence[Tree], variants: Sequence[int]) -> None:
        """Write trees without shrinkage, in ascending order, to a new file; threads may call this concurrently."""
        # The name has a digest, because another file may have trees of the same indices but other variants.
        digest = crc32(np.array([numbers, variants], dtype=np.int64).tobytes())
        path = self.folder / f"trees-{numbers[0]:06d}-{numbers[-1]:06d}-{digest:08x}.safetensors"
        arrays = {"numbers": np.array(numbers, dtype=np.int64), "variants": np.array(variants, dtype=np.int64)}
        try:
            write_model(path, fold(trees) | arrays, {"fit": self._fit_digest})
        except OSError as error:
            message = f"trees {numbers[0]} to {numbers[-1]} cannot be saved: {error.strerror}"
            raise OSError(error.errno, message, str(path)) from error


def _as_text(fit: Mapping[str, Any], name: str) -> str:
    return repr(from_plain(fit[name])) if name in fit else "missing"


def _read_manifest(path: Path) -> dict[str, Any]:
    """Return the description of the fit in a manifest; raise ValueError if it is damaged or of another format."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or set(content) != {"checkpoint", "fit"} or not isinstance(content["fit"], dict):
        raise ValueError(f"{path} is damaged or not a checkpoint file: use a new or empty folder")
    if content["checkpoint"] != _FORMAT:
        raise ValueError(
            f"{path} is of format {content['checkpoint']}, but this aucforest knows {_FORMAT}: use a new or empty"
            " folder"
        )
    return content["fit"]

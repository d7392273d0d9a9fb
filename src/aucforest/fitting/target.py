"""The labels and weights of the training data."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from aucforest._caller import warn
from aucforest._sklearn import is_pandas_na
from aucforest.columns.texts import alike_note
from aucforest.metrics.validation import class_codes, count_classes, unmask
from aucforest.tree.samples import MAX_CLASSES

# Out-of-bag scores choose parameters only if each class has samples in at least LEAST_GROUPS groups. Without groups,
# each of two classes needs at least LEAST_SAMPLES samples; with more classes there is no minimum. The numbers were
# chosen with benchmarks/grouped_oob.py and benchmarks/few_positives.py.
LEAST_GROUPS = LEAST_SAMPLES = 10
_NO_ORDER = "y has labels that cannot be sorted, such as numbers and strings, or a missing label"


def code_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint16]]:
    """Validate labels, and return the sorted classes and the class index of each row."""
    _refuse_bytes(y)
    try:
        check_classification_targets(y)
    except TypeError as error:
        raise TypeError(_NO_ORDER) from error
    classes, codes = number_classes(y)
    if classes.dtype.kind in "OU" and (note := alike_note(classes.tolist(), np.bincount(codes).tolist(), "classes")):
        warn(f"y: {note}")
    return classes, codes


def code_part(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint16]]:
    """Validate the labels of a part of the rows, and encode them as `code_classes` does, but without its warnings."""
    classes, codes = number_classes(y)
    # One label that is not an integer is enough for the error that y is a regression target.
    checked = classes[classes != np.rint(classes)] if classes.dtype.kind == "f" else classes
    with np.errstate(invalid="ignore"):
        check_classification_targets(checked[:1])
    return classes, codes


def number_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint16]]:
    """Return the sorted classes and the class index of each row; raise ValueError if there are too many classes."""
    _refuse_bytes(y)
    try:
        codes, classes = class_codes(y, len(y), name="y")
    except TypeError as error:
        raise TypeError(_NO_ORDER) from error
    if len(classes) > MAX_CLASSES:
        raise ValueError(f"y has {len(classes)} classes, more than the {MAX_CLASSES} supported")
    return classes, codes.astype(np.uint16)


def _refuse_bytes(y: NDArray[Any]) -> None:
    for label in y[:1].tolist():
        if isinstance(label, bytes):
            raise TypeError(f"y has bytes as labels, such as {label!r}: decode them to str")


def kept_rows(sample_weight: NDArray[np.float64] | None) -> NDArray[np.int64] | None:
    """Return the indices of the rows of positive weight, or None if all rows have positive weight."""
    return None if sample_weight is None or np.all(sample_weight > 0) else np.flatnonzero(sample_weight)


def check_groups(groups: Any, n_rows: int) -> NDArray[Any]:
    """Return the groups of rows as an array; raise ValueError if one is missing."""
    values = np.asarray(unmask(groups))
    if values.ndim != 1:
        raise ValueError(f"groups must be one-dimensional, but has the shape {values.shape}")
    if len(values) != n_rows:
        raise ValueError(f"groups has {len(values)} values, but X has {n_rows} samples")
    missing = np.isnan(values) if values.dtype.kind in "fmM" else np.zeros(n_rows, dtype=np.bool_)
    if values.dtype.kind == "O":
        missing = np.array([group is None or is_pandas_na(group) or group != group for group in values.tolist()])
    if np.any(missing):
        raise ValueError(f"groups has a missing value in row {np.argmax(missing)}: give every sample a group")
    return values


def number_groups(groups: NDArray[Any]) -> NDArray[np.int32]:
    """Return the group index of each row; groups are indexed in the order of their first rows."""
    if groups.dtype.kind in "iu":
        # As Python objects, many integers would take much memory.
        _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
        codes = np.argsort(np.argsort(first)).astype(np.int32)[inverse]
    else:
        numbers: dict[Any, int] = {}
        numbered = (numbers.setdefault(group, len(numbers)) for group in groups.tolist())
        codes = np.fromiter(numbered, dtype=np.int32, count=len(groups))
    if codes.max() == 0:
        raise ValueError(f"groups has only one group, {groups.tolist()[0]!r}: out-of-bag samples need at least 2")
    return codes


class FewGroups(NamedTuple):
    """A class that occurs in only few groups, and the number of these groups."""

    label: Any
    n_groups: int


def find_few_groups(classes: NDArray[Any], labels: NDArray[np.uint16], groups: NDArray[Any] | None) -> FewGroups | None:
    """Return the class with the fewest groups if it has fewer than LEAST_GROUPS, else None.

    If a group is out of bag, its classes are rarer in the sample of the tree, and the tree favors the others. This
    lowers the out-of-bag ROC AUC, most of all if there are few groups: see benchmarks/grouped_oob.py.
    """
    if groups is None:
        return None
    counts = np.bincount(np.unique(np.stack((labels, groups)), axis=1)[0], minlength=len(classes))
    rarest = int(np.argmin(np.where(counts > 0, counts, len(groups) + 1)))
    return FewGroups(classes.tolist()[rarest], int(counts[rarest])) if counts[rarest] < LEAST_GROUPS else None


@dataclass(eq=False)
class Target:
    """The labels of all training rows, and their finite and non-negative weights."""

    classes: NDArray[Any]  # sorted
    labels: NDArray[np.uint16]  # the index of each row's class
    sample_weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None = None  # replaced by the group indices of the rows of positive weight
    cost: Any = None  # the costs of errors, (n_rows, 2, 2), if given

    def __post_init__(self) -> None:
        if self.sample_weight is not None and not np.any(self.sample_weight > 0):
            raise ValueError("sample_weight is zero for all samples")
        # The indices of the rows of positive weight, on which trees grow; None for all.
        self.kept = kept_rows(self.sample_weight)
        if self.groups is not None:
            self.groups = number_groups(self.groups if self.kept is None else self.groups[self.kept])

    @classmethod
    def from_parts(
        cls, parts: Sequence[tuple[NDArray[Any], NDArray[np.uint16]]], sample_weight: NDArray[np.float64] | None
    ) -> "Target":
        """Join the labels of parts of the rows, which are results of `code_part`."""
        known = [classes for classes, _ in parts if len(classes) > 0]
        if not known:
            raise ValueError("X has no samples")
        if len({classes.dtype.kind in "biuf" for classes in known}) > 1:
            raise TypeError("y has labels that cannot be sorted: numbers and strings")
        classes = number_classes(np.concatenate(known))[0]
        indices = [np.searchsorted(classes, known_classes).astype(np.uint16) for known_classes, _ in parts]
        labels = np.concatenate([index[codes] for index, (_, codes) in zip(indices, parts)])
        return cls(classes, labels, sample_weight)

    @property
    def nbytes(self) -> int:
        """The bytes of the labels, weights and groups."""
        arrays = (self.labels, self.sample_weight, self.groups)
        return sum(array.nbytes for array in arrays if array is not None)

    def rows_at(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the indices of rows among all rows, given their indices among the rows of positive weight."""
        return indices if self.kept is None else self.kept[indices]

    @cached_property
    def kept_labels(self) -> NDArray[np.uint16]:
        """The labels of the rows of positive weight."""
        return self.labels if self.kept is None else self.labels[self.kept]

    @cached_property
    def kept_weight(self) -> NDArray[np.float64] | None:
        """The sample weights of the rows of positive weight."""
        return self.sample_weight if self.sample_weight is None or self.kept is None else self.sample_weight[self.kept]

    @cached_property
    def few_groups(self) -> FewGroups | None:
        """The result of `find_few_groups`."""
        return find_few_groups(self.classes, self.kept_labels, self.groups)

    @property
    def has_enough_samples(self) -> bool:
        """Whether there are enough samples, or groups, of each class for choices by out-of-bag scores."""
        if self.groups is not None:
            return self.few_groups is None
        counts = count_classes(self.kept_labels, len(self.classes))
        counts = counts[counts > 0]
        return len(counts) != 2 or int(counts.min()) >= LEAST_SAMPLES

    def check_classes(self) -> None:
        """Raise ValueError if all training rows have the same class."""
        labels = self.kept_labels
        if np.all(labels == labels[0]):
            label = self.classes.tolist()[labels[0]]
            raise ValueError(f"y has only one class, {label!r}; a classifier needs at least 2 classes")

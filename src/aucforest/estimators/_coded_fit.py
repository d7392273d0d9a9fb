"""A fit of rows that are elsewhere, as codes: what `AUCForestClassifier.fit` does, but for reading."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from aucforest.estimators._base import number_classes
from aucforest.estimators._out_of_bag import Bags, SumRows, Sums, sum_places
from aucforest.estimators._shrinkage import rows_to_score
from aucforest.estimators._thresholds import check_threshold
from aucforest.estimators._training_data import KeptRows, TrainingData, kept_rows
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.fitting.class_weights import weights_by_class
from aucforest.fitting.coding import Coding, KnownRows
from aucforest.fitting.growing import TrainingSet, combine_weights, tree_keys
from aucforest.fitting.growth_params import GrowthParams
from aucforest.tree.binning import SAMPLE_ROWS, BinnedMatrix, sample_rows
from aucforest.tree.prediction import PackedTrees
from aucforest.tree.samples import exact_weights
from aucforest.tree.tree import Tree

# Takes what trees need to know, their keys, and what rows of positive weight count in trees.
Grow = Callable[[GrowthParams, list[int], NDArray[np.float64] | None], list[Tree]]


def code_part(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint16]]:
    """Return the sorted classes of some rows, and the number of each row's; few rows may have many classes."""
    classes, codes = number_classes(y)
    suspects = classes[classes != np.rint(classes)] if classes.dtype.kind == "f" else classes
    with np.errstate(invalid="ignore"):
        check_classification_targets(suspects[:1])
    return classes, codes


class Target(KeptRows):
    """The labels and weights of all rows.

    Parameters
    ----------
    parts : sequence of (classes, labels)
        Of some rows after the others: the sorted classes there and their numbers, as `code_part` returns them.
    sample_weight : ndarray of shape (n_rows,), float64, or None
        Checked already: finite and not negative.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted.
    labels : ndarray of shape (n_rows,), uint16
    kept : ndarray of int64, or None
        The rows of positive weight, None for all.
    """

    def __init__(
        self, parts: Sequence[tuple[NDArray[Any], NDArray[np.uint16]]], sample_weight: NDArray[np.float64] | None
    ) -> None:
        known = [classes for classes, _ in parts if len(classes) > 0]
        if not known:
            raise ValueError("X has no rows")
        if len({classes.dtype.kind in "biuf" for classes in known}) > 1:
            raise TypeError("y has labels without an order: numbers beside text")
        self.classes = number_classes(np.concatenate(known))[0]
        places = [np.searchsorted(self.classes, classes).astype(np.uint16) for classes, _ in parts]
        self.labels = np.concatenate([place[codes] for place, (_, codes) in zip(places, parts)])
        self.sample_weight = sample_weight
        if sample_weight is not None and not np.any(sample_weight > 0):
            raise ValueError("sample_weight is zero for all rows")
        self.kept = kept_rows(sample_weight)

    def training_set(
        self, codes: NDArray[np.unsignedinteger], coding: Coding, weights: NDArray[np.float64] | None
    ) -> TrainingSet:
        """Return the rows of positive weight as trees grow from them, given their codes and what they count."""
        binned = BinnedMatrix(codes, coding.n_bins, coding.values)
        return TrainingSet(binned, self.kept_labels, weights, len(self.classes), coding.kinds)


class Source(NamedTuple):
    """Rows as codes, and how trees grow from them.

    names : list of str, or None
        The features, where they have names.
    coding : Coding
    scored : ndarray of shape (len(CodedFit.scored), n_features)
        The rows of these places, as `Coding.read` returns them.
    grow : callable
    sum_rows : callable
        Sums out of bag over all rows.
    """

    names: list[str] | None
    coding: Coding
    scored: NDArray[Any]
    grow: Grow
    sum_rows: SumRows


class CodedFit:
    """A fit of rows that are not in memory: bit for bit the forest that ``forest.fit`` grows from them.

    Parameters
    ----------
    forest : AUCForestClassifier
    target : Target

    Attributes
    ----------
    sample : ndarray of int64
        The places, among the rows of positive weight, that bins are chosen by; rising.
    scored : ndarray of int64
        The places that shrinkage is chosen by; rising, none where it is not chosen.
    seed : int
        What trees are drawn by.

    Raises
    ------
    ValueError
        For parameters and labels that a fit refuses.
    """

    def __init__(self, forest: AUCForestClassifier, target: Target) -> None:
        forest._validate_params()
        check_threshold(forest.threshold, len(target.classes))
        if callable(forest.oob_score):
            raise ValueError("oob_score: a function reads all rows at once; give the name of a scorer instead")
        self._forest, self._target = forest, target
        self.seed, self._trees = forest._seed_and_trees()
        labels = target.kept_labels
        self.sample = sample_rows(len(labels), len(labels) if forest.max_bins is None else SAMPLE_ROWS)
        self.scored = np.empty(0, dtype=np.int64)
        if forest.shrinkage == "auto" and forest.bootstrap:
            self.scored = rows_to_score(labels, len(target.classes), tree_keys(self.seed, [0])[0])

    @property
    def sample_weight(self) -> NDArray[np.float64] | None:
        """The weights of the sampled rows, shape (n_sampled,); None where bins do not depend on them."""
        weight = self._target.kept_weight
        return None if weight is None or self._forest.max_bins is None else exact_weights(weight[self.sample])

    @cached_property
    def class_weights(self) -> NDArray[np.float64] | None:
        """The weights of classes, as `weights_by_class` returns them."""
        target = self._target
        return weights_by_class(self._forest.class_weight, target.classes, target.kept_labels, target.kept_weight)

    def finish(self, source: Source) -> None:
        """Grow the forest.

        Raises
        ------
        ValueError
            As ``forest.fit`` does. A fit that fails or is interrupted leaves the forest unfitted; with
            ``warm_start=True`` it leaves all as it was.
        """
        forest, target, trees = self._forest, self._target, self._trees
        known = (forest.classes_, forest.categories_) if trees else (None, {})
        with forest._fitting(keep=forest.warm_start):
            forest.classes_, forest.categories_ = target.classes, source.coding.categories
            forest.n_features_in_ = len(source.coding.n_bins)
            if source.names is not None:
                forest.feature_names_in_ = np.array(source.names, dtype=object)
            forest._check_classes(target.kept_labels)
            weights = combine_weights(target.kept_labels, target.kept_weight, self.class_weights)
            scored = self.scored if target.kept is None else target.kept[self.scored]
            data = TrainingData(
                X=KnownRows(scored, source.scored),
                n_features=forest.n_features_in_,
                labels=target.labels,
                sample_weight=target.sample_weight,
                kept=target.kept,
                weights=weights,
                grow=partial(_grow_weighted, source.grow, weights),
                sum_rows=source.sum_rows,
            )
            forest._grow(data, self.seed, trees, *known)


def _grow_weighted(
    grow: Grow, weights: NDArray[np.float64] | None, params: GrowthParams, keys: list[int]
) -> list[Tree]:
    """Grow the trees there are keys for, which may be none."""
    return grow(params, keys, weights) if keys else []


class RunningSums:
    """Out-of-bag sums over all rows, a table at a time.

    Parameters
    ----------
    bags, packed, ranges
        What `TrainingData.sum_rows` is called with.
    n_rows : int
        All rows, those of weight 0 as well.
    """

    def __init__(self, bags: Bags, packed: PackedTrees, ranges: Sequence[range], n_rows: int) -> None:
        self._arguments, self._kept = (bags, packed, ranges), bags.kept
        self.sums = [Sums.zero(n_rows, packed.values.shape[1]) for _ in ranges]

    def add(self, first: int, matrix: NDArray[Any]) -> None:
        """Add the rows from a place on, as `Coding.read` returns them; threads may do so at the same time."""
        self.put(first, sum_places(*self._arguments, first, matrix))

    def put(self, first: int, found: list[Sums]) -> None:
        """Take over what was summed elsewhere for the rows from a place on."""
        n_rows = len(found[0].n_trees)
        rows: Any = slice(first, first + n_rows) if self._kept is None else self._kept[first : first + n_rows]
        for sums, some in zip(self.sums, found):
            sums.total[rows], sums.n_trees[rows] = some

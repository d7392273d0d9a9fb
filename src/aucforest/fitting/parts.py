"""Coded rows in parts, and the parameters that trees grow by. In memory there is one part."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.bootstrap import BootstrapSampler
from aucforest.fitting.coding import Coding
from aucforest.fitting.spec import FitSpec, GrowthParams, tree_keys
from aucforest.tree.binning import SAMPLE_ROWS, BinValues
from aucforest.tree.features import NUMERIC
from aucforest.tree.samples import FixedPoint
from aucforest.tree.splitter import Rules
from aucforest.tree.tree import Tree

# Places of keys, and the trees of these, as they are done.
Grown = Iterator[tuple[Sequence[int], list[Tree]]]


class Part(NamedTuple):
    """Rows that follow each other, at least one; all parts but the last are of whole blocks, `bootstrap.BLOCK_ROWS`."""

    codes: NDArray[np.unsignedinteger]  # (n_features, n_rows)
    labels: NDArray[np.uint16]
    weights: NDArray[np.float64] | None  # None when every row counts 1
    sampler: BootstrapSampler | None = None  # None where each tree sees all rows

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def some(self, start: int, stop: int) -> "Part":
        """Return some rows, as views; they begin with a block where trees sample rows, with the sizes of trees."""
        return Part(
            self.codes[:, start:stop],
            self.labels[start:stop],
            None if self.weights is None else self.weights[start:stop],
            None if self.sampler is None else self.sampler.of_part(start, stop - start),
        )

    def counts(self, key: int) -> NDArray[np.uint16]:
        """Return how often each row is in the sample of a tree."""
        return np.ones(self.n_rows, dtype=np.uint16) if self.sampler is None else self.sampler.counts(key)

    @classmethod
    def joined(cls, parts: Sequence["Part"]) -> "Part":
        """Return the rows of all, in order, without a sampler."""
        weights = [part.weights for part in parts if part.weights is not None]
        codes = np.concatenate([part.codes for part in parts], axis=1)
        labels = np.concatenate([part.labels for part in parts])
        return cls(codes, labels, np.concatenate(weights) if weights else None)


@dataclass(frozen=True)
class Growth:
    """Parameters and sizes that the trees of a fit share, without the rows."""

    variants: tuple[GrowthParams, ...]
    params: GrowthParams  # those of the tree that grows
    n_bins: NDArray[np.int64]  # (n_features,)
    values: BinValues
    kinds: NDArray[np.int8]  # (n_features,), see `tree.features`
    n_classes: int
    n_rows: int  # of the fit
    n_sampled: int  # the size of the bootstrap sample of a tree, or all rows: a tree has at most so many samples
    most_weight: int  # the most that all samples of a tree can weigh, in units
    fixed: FixedPoint | None  # None where every row counts 1, or where the units of weights differ from tree to tree
    weighted: bool  # whether samples weigh something else than how often they are in the sample of the tree
    variant_of: Mapping[int, int] = field(default_factory=dict)  # of each tree, by key; else the first

    @classmethod
    def of(cls, spec: FitSpec, coding: Coding, n_rows: int, n_classes: int) -> "Growth":
        """Return what the trees of a fit share; all are of the first variant."""
        n_sampled = n_rows if spec.sampler is None else spec.sampler.n_sampled
        fixed, most_weight, weights = None, n_sampled, spec.weights
        if weights is not None and not spec.params.balanced_subsample:
            fixed = FixedPoint.of(weights, n_sampled)
            most_weight *= int(fixed.apply(weights.max(keepdims=True))[0])
        return cls(
            variants=spec.variants,
            params=spec.params,
            n_bins=coding.n_bins,
            values=coding.values,
            kinds=coding.kinds,
            n_classes=n_classes,
            n_rows=n_rows,
            n_sampled=n_sampled,
            most_weight=most_weight,
            fixed=fixed,
            weighted=weights is not None or spec.params.balanced_subsample,
        )

    def of_trees(self, seed: int, variant_of: Mapping[int, int]) -> "Growth":
        """Return the same for trees of these variants, by number."""
        if len(self.variants) == 1:
            return self
        return replace(self, variant_of=dict(zip(tree_keys(seed, variant_of), variant_of.values())))

    def of_tree(self, key: int) -> "Growth":
        """Return the same with the parameters of a tree."""
        return self._of_variants[self.variant_of[key]] if self.variant_of else self

    @cached_property
    def _of_variants(self) -> list["Growth"]:
        return [replace(self, params=params) for params in self.variants]

    @cached_property
    def rules(self) -> Rules:
        """The rules of the splits; a minimum weight of leaves depends on the weight of the tree and is set there."""
        params = self.params
        return Rules(
            criterion=params.criterion,
            is_random=params.random_splits,
            max_features=params.max_features,
            min_samples_leaf=params.min_samples_leaf,
            min_weight_leaf=0,
            signs=np.array(params.signs, dtype=np.int8),
            kinds=self.kinds,
            values=self.values,
            is_sampled=self.is_sampled,
        )

    @property
    def is_sampled(self) -> bool:
        """Whether rows may have values outside all bins, since the bins come from some of the rows."""
        return int(self.n_bins.max()) < 2**8 and self.n_rows > SAMPLE_ROWS

    @cached_property
    def by_set(self) -> NDArray[np.bool_]:
        """Which features are split by sets."""
        return self.kinds != NUMERIC

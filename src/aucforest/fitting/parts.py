"""Parts of the coded rows, and the parameters of growing. In memory there is one part."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.bootstrap import BLOCK_ROWS, BootstrapSampler, GroupSampler, copy_sampled
from aucforest.fitting.coding import Coding
from aucforest.fitting.spec import FitSpec, GrowthParams, resolve_max_features, tree_keys
from aucforest.fitting.target_rates import Digits, bins_of_rates, encodings_of
from aucforest.tables.target_rates import SETS, TargetRates
from aucforest.tree.binning import SAMPLE_ROWS, BinValues, find_edges, join_bins
from aucforest.tree.features import NUMERIC
from aucforest.tree.samples import FixedPoint, SparseCodes
from aucforest.tree.splitter import TreeParams
from aucforest.tree.tree import Tree

# Indices of keys and their trees, in the order of completion.
Grown = Iterator[tuple[Sequence[int], list[Tree]]]


class Part(NamedTuple):
    """Consecutive rows, at least one. All parts except the last have whole blocks of `bootstrap.BLOCK_ROWS` rows."""

    codes: NDArray[np.unsignedinteger]  # (n_features, n_rows), or (n_features, 0) if they are sparse
    labels: NDArray[np.uint16]
    weights: NDArray[np.float64] | None  # None if all weights are 1
    sampler: BootstrapSampler | None = None  # None where each tree sees all rows
    copies_rows: bool = False  # whether a tree grows from a copy of the rows in its sample
    sparse: SparseCodes | None = None
    groups: NDArray[np.int32] | None = None  # of the rows of a sample, if whole groups are sampled
    rate_weights: NDArray[np.float64] | None = None  # in target rates, in samples; None if all are 1

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def counts(self, keys: Sequence[int]) -> NDArray[np.uint16]:
        """Return the number of times that each row is in the sample of each of some trees, (n_trees, n_rows)."""
        if self.sampler is None:
            return np.ones((len(keys), self.n_rows), dtype=np.uint16)
        return self.sampler.counts_of_trees(keys)

    def sample(self, key: int) -> tuple["Part", NDArray[np.uint16]]:
        """Return the rows that a tree grows from, and the number of times that each is in its sample."""
        counts = self.counts([key])[0]
        if not self.copies_rows:
            return self, counts
        rows = np.flatnonzero(counts > 0)  # numpy finds what is true much faster than what is not 0
        codes = np.empty((len(self.codes), len(rows)), dtype=self.codes.dtype)
        copy_sampled(self.codes, counts, np.empty(BLOCK_ROWS, dtype=np.uint16), codes)
        return self._of_rows(rows, codes), counts[rows]

    def some(self, rows: NDArray[np.int64]) -> "Part":
        """Return some of the rows, in ascending order, without a sampler."""
        return self._of_rows(rows, np.take(self.codes, rows, axis=1))  # in the order of C, as kernels are compiled

    def _of_rows(self, rows: NDArray[np.int64], codes: NDArray[np.unsignedinteger]) -> "Part":
        """Return some of the rows, given their codes."""
        groups = self.sampler.groups if isinstance(self.sampler, GroupSampler) else self.groups
        weights, rate_weights = (None if w is None else w[rows] for w in (self.weights, self.rate_weights))
        groups = None if groups is None else groups[rows]
        return Part(codes, self.labels[rows], weights, groups=groups, rate_weights=rate_weights)

    @classmethod
    def joined(cls, parts: Sequence["Part"]) -> "Part":
        """Return the rows of all parts, in order, without a sampler."""
        codes = np.concatenate([part.codes for part in parts], axis=1)
        labels = np.concatenate([part.labels for part in parts])
        weights = [part.weights for part in parts if part.weights is not None]
        in_rates = [part.rate_weights for part in parts if part.rate_weights is not None]
        joined = (np.concatenate(of_all) if of_all else None for of_all in (weights, in_rates))
        return cls(codes, labels, next(joined), rate_weights=next(joined))


@dataclass(frozen=True)
class Growth:
    """Parameters and sizes for growing the trees of a fit, without the rows."""

    variants: tuple[GrowthParams, ...]
    params: GrowthParams  # of the current variant
    n_bins: NDArray[np.int64]  # (n_features,)
    most_bins: int  # maximum number of bins of a feature of any tree
    values: BinValues
    kinds: NDArray[np.int8]  # (n_features,), see `tree.features`
    n_classes: int
    n_rows: int  # number of rows of the fit
    n_trees: int  # number of trees of the fit
    n_sampled: int  # maximum number of samples of a tree: the size of the bootstrap sample, or all rows
    fixed: FixedPoint | None  # None if all weights are 1, or if units differ between trees
    weighted: bool  # whether the weight of a sample is not just its count in the bootstrap sample
    variant_of: Mapping[int, int] = field(default_factory=dict)  # variants by key; empty if there is one
    encodings: tuple[str, ...] = (SETS,)  # of columns of many categories; each variant has trees of every encoding
    encoding: str = SETS  # of the current tree
    rates: TargetRates | None = None  # without totals
    digits: Digits | None = None
    given_max_features: Any = None  # the parameter of the estimator

    @classmethod
    def of(cls, spec: FitSpec, coding: Coding, n_rows: int, n_classes: int) -> "Growth":
        """Return the parameters for trees of the first variant."""
        n_sampled, fixed = n_rows if spec.sampler is None else spec.sampler.n_sampled, None
        if spec.weights is not None and not spec.params.balanced_subsample:
            fixed = FixedPoint.of(spec.weights, n_sampled)
        values, rates = coding.values, coding.rates
        if rates is not None:
            made = join_bins(bins_of_rates(rates))
            first = np.concatenate((values.first, values.first[-1] + made.first[1:]))
            values = BinValues(first, np.append(values.lower, made.lower), np.append(values.upper, made.upper))
        encodings = encodings_of(spec.encodings, rates)
        n_made = 0 if rates is None else rates.n_features
        return cls(
            variants=spec.variants,
            params=spec.params,
            n_bins=np.diff(values.first),
            most_bins=int(np.diff(values.first).max()),
            values=values,
            kinds=np.append(coding.kinds, np.full(n_made, NUMERIC, dtype=np.int8)),
            encodings=encodings,
            encoding=encodings[0],
            rates=None if rates is None else rates.without_totals(),
            digits=None if rates is None else coding.digits,
            given_max_features=spec.max_features,
            n_classes=n_classes,
            n_rows=n_rows,
            n_trees=len(spec.numbers),
            n_sampled=n_sampled,
            fixed=fixed,
            weighted=spec.weights is not None or spec.params.balanced_subsample,
        )

    def of_trees(self, seed: int, variant_of: Mapping[int, int]) -> "Growth":
        """Return the parameters for trees with the given variants by tree number."""
        if len(self.variants) * len(self.encodings) == 1:
            return self
        return replace(self, variant_of=dict(zip(tree_keys(seed, variant_of), variant_of.values())))

    def of_tree(self, key: int) -> "Growth":
        """Return the parameters of a tree."""
        return self._of_variants[self.variant_of[key]] if self.variant_of else self

    @cached_property
    def _of_variants(self) -> list["Growth"]:
        return [
            replace(self, params=params, encoding=encoding) for params in self.variants for encoding in self.encodings
        ]

    @cached_property
    def _edges(self) -> NDArray[np.float64]:
        edges = np.empty(len(self.values.lower))
        find_edges(self.values, self.n_bins, edges)
        return edges

    def edges_of(self, feature: int) -> NDArray[np.float64]:
        """Return the edges between the bins of a feature."""
        first, stop = self.values.first[feature], self.values.first[feature + 1]
        return self._edges[first : max(stop - 1, first)]

    def of_features(self, features: NDArray[np.int64]) -> "Growth":
        """Return the parameters of a tree that grows on some of the features."""
        n_bins, first = self.n_bins[features], self.values.first
        bins = np.concatenate([np.arange(first[feature], first[feature + 1]) for feature in features.tolist()])
        values = BinValues(np.append(0, np.cumsum(n_bins)), self.values.lower[bins], self.values.upper[bins])
        signs, n_made = self.params.signs, len(self.n_bins) - len(self.params.signs)
        if signs:
            signs = tuple(np.array(signs + (0,) * n_made)[features].tolist())
        most = resolve_max_features(self.given_max_features, len(features))
        params = replace(self.params, max_features=most, signs=signs)
        kinds = self.kinds[features]
        return replace(self, params=params, n_bins=n_bins, values=values, kinds=kinds, variant_of={})

    def tree_params(self) -> TreeParams:
        """Return the parameters that trees of all variants share, with a minimum weight of 0."""
        params = self.params
        return TreeParams(
            criterion=params.criterion,
            random_splits=params.random_splits,
            max_features=params.max_features,
            max_depth=params.max_depth,
            # Both children must have the minimum size.
            min_samples_split=max(params.min_samples_split, 2 * params.min_samples_leaf),
            min_samples_leaf=params.min_samples_leaf,
            min_weight_leaf=0,
            min_gain=params.min_gain,
            max_leaf_nodes=params.max_leaf_nodes or 0,
            signs=np.array(params.signs, dtype=np.int8),
            kinds=self.kinds,
            values=self.values,
            # Bins were computed from a sample of the rows, so that values may be outside all bins.
            is_sampled=int(self.n_bins.max()) < 2**8 and self.n_rows > SAMPLE_ROWS,
        )

    @property
    def is_custom(self) -> bool:
        """Whether a variant has a user-defined criterion."""
        return any(variant.custom_criterion is not None for variant in self.variants)

    @cached_property
    def by_set(self) -> NDArray[np.bool_]:
        """Which features are split by sets."""
        return self.kinds != NUMERIC

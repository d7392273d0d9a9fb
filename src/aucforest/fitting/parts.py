"""Parts of the encoded rows, and the parameters of growing trees. In memory there is one part."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.columns.target_rates import TargetRates
from aucforest.fitting.bootstrap import BLOCK_ROWS, BootstrapSampler, GroupSampler, copy_sampled
from aucforest.fitting.coding import Coding
from aucforest.fitting.spec import FitSpec, resolve_max_features, tree_keys
from aucforest.fitting.target_rates import Digits, choose_rate_bins, possible_encodings
from aucforest.tree.binning import SAMPLE_ROWS, BinValues, find_edges, join_bins
from aucforest.tree.features import NUMERIC
from aucforest.tree.samples import NO_RANKS, NO_SPARSE, CodeBins, Codes, Columns, FixedPoint, SparseCodes
from aucforest.tree.splitter import TreeParams
from aucforest.tree.tree import Tree

# Number of bytes of mapped codes that a thread reads before it calls `Part.release`.
MAPPED_BYTES = 2**24
# Yields indices of keys, and the trees with these keys, in the order of completion.
Grown = Iterator[tuple[Sequence[int], list[Tree]]]


class Part(NamedTuple):
    """Consecutive encoded rows. All parts of a fit but the last have whole blocks of `bootstrap.BLOCK_ROWS` rows."""

    codes: NDArray[np.unsignedinteger]  # (n_features, n_rows), or (n_features, 0) if they are sparse
    labels: NDArray[np.uint16]
    weights: NDArray[np.float64] | None  # None if all weights are 1
    sampler: BootstrapSampler | None = None  # None if each tree is grown on all rows
    copies_rows: bool = False  # whether a tree grows from a copy of the rows in its sample
    sparse: SparseCodes | None = None
    groups: NDArray[np.int32] | None = None  # only in copies of rows: their groups, if groups are sampled
    rate_weights: NDArray[np.float64] | None = None  # weights in target rates, of mean 1 over all parts; None if all 1
    release: Callable[[], None] | None = None  # removes the codes from memory if they are in a mapped file

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def sample(self, keys: Sequence[int]) -> "TreeRows":
        """Return the rows that trees grow from: all rows or, if `copies_rows`, copies of the rows in each sample."""
        if self.sampler is None:
            counts = np.ones((len(keys), self.n_rows), dtype=np.uint16)
        else:
            counts = self.sampler.counts_of_trees(keys)
        if not self.copies_rows:
            return TreeRows(self, counts.ravel(), np.arange(len(keys) + 1) * self.n_rows)
        rows = np.flatnonzero(counts > 0)  # much faster than np.flatnonzero(counts)
        starts, row_counts = np.searchsorted(rows, np.arange(len(keys) + 1) * self.n_rows), counts.ravel()[rows]
        for tree in range(1, len(keys)):
            rows[starts[tree] : starts[tree + 1]] -= tree * self.n_rows  # indices of counts become indices of rows
        weights, rate_weights = (None if w is None else w[rows] for w in (self.weights, self.rate_weights))
        groups = self.sampler.groups[rows] if isinstance(self.sampler, GroupSampler) else None
        codes = self._copy_codes(counts, len(rows))
        part = Part(codes, self.labels[rows], weights, groups=groups, rate_weights=rate_weights)
        return TreeRows(part, row_counts, starts)

    def _copy_codes(self, counts: NDArray[np.uint16], n_sampled: int) -> NDArray[np.unsignedinteger]:
        """Return the codes of the rows in each sample; mapped codes are released after every `MAPPED_BYTES`."""
        copied = np.empty((len(self.codes), n_sampled), dtype=self.codes.dtype)
        positions, n_copied = np.empty(BLOCK_ROWS, dtype=np.uint16), 0
        step = max(MAPPED_BYTES // max(copied[:, :1].nbytes, 1), 1) if self.release is not None else self.n_rows
        for tree_counts in counts:
            for start in range(0, self.n_rows, step):
                block = tree_counts[start : start + step]
                n_copied = copy_sampled(self.codes, start, block, positions, copied, n_copied)
                if self.release is not None:
                    self.release()
        return copied

    @classmethod
    def joined(cls, parts: Sequence["Part"]) -> "Part":
        """Return the rows of all parts, in order, without a sampler."""
        codes = np.concatenate([part.codes for part in parts], axis=1)
        labels = np.concatenate([part.labels for part in parts])
        weights = [part.weights for part in parts if part.weights is not None]
        rate_weights = [part.rate_weights for part in parts if part.rate_weights is not None]
        joined = [np.concatenate(arrays) if arrays else None for arrays in (weights, rate_weights)]
        return cls(codes, labels, joined[0], rate_weights=joined[1])


class TreeRows(NamedTuple):
    """The rows that several trees grow from: the same rows for all trees, or separate rows for each tree."""

    part: Part
    counts: NDArray[np.uint16]  # (n_counts,) how often each row is in the sample of a tree, tree by tree
    starts: NDArray[np.int64]  # (n_trees + 1,) where the counts of each tree start

    @classmethod
    def of_tree(cls, part: Part, counts: NDArray[np.uint16]) -> "TreeRows":
        """Return the rows of a single tree, given their counts, (n_rows,)."""
        return cls(part, counts, np.array([0, part.n_rows]))

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """The first row of each tree, (n_trees,)."""
        return self.starts[:-1] if len(self.counts) == self.part.n_rows else np.zeros_like(self.starts[:-1])

    @property
    def slices(self) -> list[slice]:
        """The rows of each tree, if each tree has separate rows."""
        return list(map(slice, self.starts[:-1].tolist(), self.starts[1:].tolist()))


@dataclass(frozen=True)
class Growth:
    """All that the growing of the trees of a fit depends on besides the rows: parameters, bins and sizes."""

    spec: FitSpec  # without the rows
    params: TreeParams  # of one variant, like the next two
    custom_criterion: Any
    encoding: str
    encodings: tuple[str, ...]  # possible encodings of columns of many categories
    values: BinValues
    kinds: NDArray[np.int8]  # (n_features,), see `tree.features`
    most_bins: int  # maximum number of bins of a feature of any tree
    n_classes: int
    n_rows: int  # number of rows of the fit
    n_sampled: int  # maximum number of samples of a tree: the size of the bootstrap sample, or all rows
    fixed: FixedPoint | None  # the unit of weights; None if all weights are 1 or the unit differs between trees
    weighted: bool  # whether rows have weights besides their counts in the bootstrap sample
    rates: TargetRates | None  # without totals
    digits: Digits | None
    # The index in `_of_variants` by tree key; empty if there is only one variant and one encoding.
    variant_of: Mapping[int, int] = field(default_factory=dict)
    # A cache of `fitting.encodings` for all variants: the features of trees by the indices of their tables of rates.
    tree_features: dict[tuple[int, ...], Any] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: FitSpec, coding: Coding, n_rows: int, n_classes: int) -> "Growth":
        """Return the parameters for trees of the first variant, given the resolved parameters and the coding."""
        n_sampled, fixed = n_rows if spec.sampler is None else spec.sampler.n_sampled, None
        if spec.weights is not None and not spec.balanced_subsample:
            fixed = FixedPoint.of(spec.weights, n_sampled)
        values, kinds, rates = coding.values, coding.kinds, coding.rates
        if rates is not None:
            values = join_bins([values, *choose_rate_bins(rates, coding.digits.prefixes)])
            kinds = np.append(kinds, np.full(rates.n_features, NUMERIC, dtype=np.int8))
        encodings = possible_encodings(spec.encodings, rates)
        return cls(
            spec=spec.without_rows(),
            params=spec.variants[0],
            custom_criterion=spec.custom_criteria[0],
            encoding=encodings[0],
            encodings=encodings,
            values=values,
            kinds=kinds,
            most_bins=int(values.n_bins.max()),
            n_classes=n_classes,
            n_rows=n_rows,
            n_sampled=n_sampled,
            fixed=fixed,
            weighted=spec.weights is not None or spec.balanced_subsample,
            rates=None if rates is None else rates.without_totals(),
            digits=None if rates is None else coding.digits,
        )

    def for_trees(self, seed: int, variant_of: Mapping[int, int]) -> "Growth":
        """Return the parameters with `variant_of`, given the variant of each tree by the index of the tree."""
        if len(self.spec.variants) * len(self.encodings) == 1:
            return self
        return replace(self, variant_of=dict(zip(tree_keys(seed, variant_of), variant_of.values())))

    def for_tree(self, key: int) -> "Growth":
        """Return the parameters of the tree with this key."""
        return self._of_variants[self.variant_of[key]] if self.variant_of else self

    @cached_property
    def _of_variants(self) -> list["Growth"]:
        """The parameters for each variant of the spec and each encoding."""
        return [
            replace(self, params=params, custom_criterion=criterion, encoding=encoding)
            for params, criterion in zip(self.spec.variants, self.spec.custom_criteria)
            for encoding in self.encodings
        ]

    def bins_of(self, features: NDArray[np.int64]) -> BinValues:
        """Return the bins of the given features."""
        first = self.values.first
        bins = np.concatenate([np.arange(first[feature], first[feature + 1]) for feature in features.tolist()])
        return BinValues.of(self.n_bins[features], self.values.lower[bins], self.values.upper[bins])

    def with_features(self, features: NDArray[np.int64], values: BinValues) -> "Growth":
        """Return the parameters of trees that grow only on the given features, whose bins are `values`."""
        signs = self.params.signs
        if len(signs) > 0:  # target rates, which are the last features, have no constraints
            signs = np.append(signs, np.zeros(len(self.n_bins) - len(signs), dtype=np.int8))[features]
        max_features = resolve_max_features(self.spec.max_features, len(features))
        params = self.params._replace(max_features=max_features, signs=signs)
        return replace(self, params=params, values=values, kinds=self.kinds[features], variant_of={})

    @cached_property
    def n_bins(self) -> NDArray[np.int64]:
        """Numbers of bins, (n_features,)."""
        return self.values.n_bins

    @cached_property
    def _edges(self) -> NDArray[np.float64]:
        return find_edges(self.values)

    def edges_of(self, feature: int) -> NDArray[np.float64]:
        """Return the edges between the bins of a feature."""
        first, stop = self.values.first[feature], self.values.first[feature + 1]
        return self._edges[first : max(stop - 1, first)]

    def columns(self, part: Part, weights: NDArray[np.int64]) -> Columns:
        """Return the columns that kernels read; `weights` are fixed-point, or empty."""
        # If bins were chosen from a sample of the rows, values of other rows may be outside all bins.
        is_sampled = int(self.n_bins.max()) < 2**8 and self.n_rows > SAMPLE_ROWS
        bins, sparse = CodeBins(NO_RANKS, self.values), part.sparse or NO_SPARSE
        return Columns(Codes.of(part.codes), self.n_bins, weights, bins, self.kinds, is_sampled, sparse)

    @property
    def is_custom(self) -> bool:
        """Whether a variant has a user-defined criterion."""
        return any(criterion is not None for criterion in self.spec.custom_criteria)


def indices_within(rows: NDArray[np.int64], first: int, n_rows: int) -> NDArray[np.int64]:
    """Return which of the rows, in ascending order, are in [first, first + n_rows), as indices in this interval."""
    return rows[slice(*np.searchsorted(rows, (first, first + n_rows)))] - first

"""Bootstrap samples and subsamples: the number of times that each row is in the sample of a tree.

Rows are sampled in blocks with counter-based random numbers. The key of a tree determines how many rows of each block
are sampled, and which ones. So a block can be sampled again at any time without the other blocks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.random import BLOCK, BLOCK_SIZES, HALF_SAMPLES, ROW, bounded, derive_key

# The size of a block is fixed, so that samples do not depend on how the rows are distributed over workers.
BLOCK_ROWS = 4096

HALVES = "half-samples"
SCHEMES = ("bootstrap", "stratified", "balanced", "subsample", HALVES)

# Schemes that sample rows of all classes with the same probability.
_UNSTRATIFIED = ("bootstrap", "subsample", HALVES)

# The size of a subsample without replacement is the proportion of distinct rows in a bootstrap sample, 1 - 1 / e.
_SUBSAMPLE = 0.632
# The number of half-samples of a forest, and the minimum number of trees of a forest with half-samples.
N_HALVES, _LEAST_TREES_OF_HALVES = 25, 100
# The generator of this package, with the first version that takes the same samples as the current one.
_STREAM = "aucforest 0.3"
# Maximum mean number of times that a row of a class is sampled for a tree, because counts have 16 bits.
_MOST_COPIES = 10_000
# NumPy can divide a sample without replacement among blocks only if there are fewer rows than this.
_TOO_MANY_ROWS = 10**9


@bare_device
def _row_at(members, i):
    """Return the row members[i], or row i if `members` is empty, because all rows are in one stratum."""
    return i if len(members) == 0 else np.int64(members[i])


@bare_device
def _sample_block(block, rows, sizes, starts, replace, key):
    """Sample sizes[s] rows of each stratum s of a block, and add their counts to `block`.

    `rows` are the members of the block. Sampling without replacement is Floyd's algorithm (Bentley, Floyd 1987): if a
    row was already sampled, the last row of the range from which it was sampled is used instead.
    """
    n_chosen = 0
    for s in range(len(sizes)):
        start, end = starts[s], starts[s + 1]
        for j in range(sizes[s]):
            last = end if replace else end - sizes[s] + j + 1
            row = _row_at(rows, start + bounded(derive_key(key, ROW, n_chosen), last - start))
            if not replace and block[row] > 0:
                row = _row_at(rows, last - 1)
            block[row] += np.uint16(1)
            n_chosen += 1


@bare_kernel
def _sample_blocks(keys, sizes, strata, replace, first_block, counts):
    """Sample sizes[t, i, s] rows of stratum s from block first_block + i for tree t; arrays start with this block."""
    members, starts = strata
    for t in range(len(keys)):
        counts[t] = 0
        for i in range(sizes.shape[1]):
            block = counts[t, i * BLOCK_ROWS : (i + 1) * BLOCK_ROWS]
            rows, key = members[i * BLOCK_ROWS :], derive_key(keys[t], BLOCK, first_block + i)
            _sample_block(block, rows, sizes[t, i], starts[i], replace, key)


@bare_kernel
def copy_sampled(codes, first_row, counts, positions, copied, n_copied):
    """Append codes of rows to the first n_copied rows of `copied`, and return the new number of copied rows.

    `codes` has the shape (n_features, n_rows). `counts` are the counts of consecutive rows from `first_row` on. Rows of
    positive count are copied. `positions` is a buffer for a block of rows.
    """
    for start in range(0, len(counts), BLOCK_ROWS):
        block, n_sampled = counts[start : start + BLOCK_ROWS], 0
        for row in range(len(block)):
            positions[n_sampled] = row
            n_sampled += block[row] > 0
        for feature in range(len(codes)):
            column, copy = codes[feature, first_row + start :], copied[feature, n_copied:]
            for i in range(n_sampled):
                copy[i] = column[positions[i]]
        n_copied += n_sampled
    return n_copied


@dataclass(frozen=True, eq=False)
class BootstrapSampler:
    """Samples, for each tree, a given number of rows of each stratum. A stratum is a class, or all rows."""

    n_rows: int  # number of rows to sample from
    sizes: NDArray[np.int64]  # (n_strata,), number of sampled rows of a tree, counted with repetitions
    replace: bool  # whether to sample with replacement (bootstrap) or without (subsample)
    # The rows of each block as indices in the block, sorted by stratum; empty if there is a single stratum.
    members: NDArray[np.uint16]
    starts: NDArray[np.int64]  # (n_blocks, n_strata + 1), the starts of the strata in `members`
    halves: tuple[int, ...] = ()  # the keys of the half-samples that trees share; empty without half-samples
    first_block: int = 0  # the index of the first block, if the sampler is for a part of the rows
    keys: Sequence[int] = ()  # the keys of the trees whose block sizes are stored
    stored_sizes: NDArray[Any] | None = None  # the results of `block_sizes` for these trees

    @classmethod
    def for_rows(cls, n_rows: int, n_sampled: int, *, replace: bool = True) -> "BootstrapSampler":
        """Return a sampler of n_sampled of n_rows rows, all with equal probability."""
        ends = np.minimum(BLOCK_ROWS, n_rows - np.arange(0, n_rows, BLOCK_ROWS))
        starts = np.stack((np.zeros_like(ends), ends), axis=1)
        return cls(n_rows, np.array([n_sampled]), replace, np.empty(0, dtype=np.uint16), starts)

    @classmethod
    def for_halves(cls, n_rows: int, seed: int) -> "BootstrapSampler":
        """Return the sampler of a forest with this seed, which samples half of the rows without replacement."""
        generator = np.random.Philox(key=np.array([seed, HALF_SAMPLES], dtype=np.uint64))
        sampler = cls.for_rows(n_rows, max(1, n_rows // 2), replace=False)
        return replace(sampler, halves=tuple(generator.random_raw(N_HALVES).tolist()))

    @classmethod
    def for_strata(cls, strata: NDArray[np.uint16], sizes: NDArray[np.int64]) -> "BootstrapSampler":
        """Return a sampler with replacement of sizes[s] rows of each stratum s, given the stratum of each row."""
        blocks = [strata[start : start + BLOCK_ROWS] for start in range(0, len(strata), BLOCK_ROWS)]
        members = [np.argsort(block, kind="stable").astype(np.uint16) for block in blocks]
        ends = np.cumsum([np.bincount(block, minlength=len(sizes)) for block in blocks], axis=1)
        starts = np.concatenate((np.zeros((len(blocks), 1), dtype=np.int64), ends), axis=1)
        return cls(len(strata), sizes, True, np.concatenate(members), starts)

    @property
    def n_sampled(self) -> int:
        """Total number of sampled rows of a tree."""
        return int(self.sizes.sum())

    @property
    def n_blocks(self) -> int:
        """Number of blocks of rows."""
        return len(self.starts)

    @property
    def n_distinct(self) -> int:
        """Approximate number of distinct rows in the sample of a tree, rounded up."""
        if not self.replace:
            return self.n_sampled
        rows = np.diff(self.starts, axis=1).sum(axis=0)
        return int(np.sum(np.ceil(1.01 * rows * -np.expm1(-self.sizes / np.maximum(rows, 1)))))

    @property
    def tree_bytes(self) -> int:
        """Bytes of the `block_sizes` of a tree."""
        return 4 * self.n_blocks * len(self.sizes)

    @property
    def rates(self) -> NDArray[np.float64]:
        """Mean number of times that a row of a stratum is sampled, (n_strata,); NaN for a stratum without rows."""
        with np.errstate(invalid="ignore"):
            return self.sizes / np.diff(self.starts, axis=1).sum(axis=0)

    @cached_property
    def _stored_index(self) -> dict[int, int]:
        return {key: index for index, key in enumerate(self.keys)}

    def _random_key(self, key: int) -> int:
        """Return the key of the random numbers of a sample, which is the key of its tree or half-sample."""
        return self.halves[half_of(key)] if self.halves else key

    def block_sizes(self, key: int) -> NDArray[Any]:
        """Return the number of sampled rows of a tree by block and stratum, shape (n_blocks, n_strata)."""
        if self.stored_sizes is not None:
            return self.stored_sizes[self._stored_index[key]]
        if self.n_blocks == 1:
            return self.sizes[None, :].astype(np.int32)
        words = np.array([self._random_key(key), BLOCK_SIZES], dtype=np.uint64)
        generator = np.random.Generator(np.random.Philox(key=words))
        columns = []
        for size, rows in zip(self.sizes, np.diff(self.starts, axis=1).T):
            if self.replace:
                columns.append(generator.multinomial(size, rows / max(rows.sum(), 1)))
            else:
                columns.append(generator.multivariate_hypergeometric(rows, int(size), method="marginals"))
        return np.stack(columns, axis=1, dtype=np.int32, casting="same_kind")

    def store_sizes(self, keys: Sequence[int]) -> Self:
        """Return a sampler that stores the block sizes of trees; it would be slow to compute them for each block."""
        sizes: NDArray[Any] | None = None
        for index, key in enumerate(keys):
            tree_sizes = self.block_sizes(key)
            if sizes is None:
                sizes = np.empty((len(keys), *tree_sizes.shape), dtype=tree_sizes.dtype)
            sizes[index] = tree_sizes
        return replace(self, keys=keys, stored_sizes=sizes)

    def counts(self, key: int) -> NDArray[np.uint16]:
        """Return the number of times that each row is in the sample of a tree, shape (n_rows,)."""
        return self.counts_of_trees([key])[0]

    def counts_of_trees(self, keys: Sequence[int]) -> NDArray[np.uint16]:
        """Return the number of times that each row is in the samples of trees, (n_trees, n_rows)."""
        counts = np.empty((len(keys), self.n_rows), dtype=np.uint16)
        words = np.array([self._random_key(key) for key in keys], dtype=np.uint64)
        sizes = np.stack([self.block_sizes(key) for key in keys])
        _sample_blocks(words, sizes, (self.members, self.starts), self.replace, self.first_block, counts)
        return counts

    def part(self, first_row: int, n_rows: int) -> Self:
        """Return the sampler of consecutive rows from the start of a block, only for trees whose sizes are stored."""
        assert self.stored_sizes is not None
        stop = min(first_row + n_rows, self.n_rows)
        blocks = slice(first_row // BLOCK_ROWS, -(-stop // BLOCK_ROWS))
        return replace(
            self,
            n_rows=stop - first_row,
            members=self.members[first_row:stop],
            starts=self.starts[blocks],
            first_block=self.first_block + blocks.start,
            stored_sizes=self.stored_sizes[:, blocks],
        )


def half_of(key: int) -> int:
    """Return the index of the half-sample of a tree, given its key, which is a random number."""
    return key % N_HALVES


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupSampler(BootstrapSampler):
    """Samples whole groups (cluster bootstrap): a row is in the sample of a tree as often as its group."""

    groups: NDArray[np.int32]  # the index of each row's group
    group_sampler: BootstrapSampler

    @classmethod
    def of(cls, groups: NDArray[np.int32], group_sampler: BootstrapSampler) -> "GroupSampler":
        """Return the sampler of rows, given the sampler of groups."""
        sampler = BootstrapSampler.for_rows(len(groups), group_sampler.n_sampled, replace=group_sampler.replace)
        return cls(**vars(sampler), groups=groups, group_sampler=group_sampler)

    @property
    def max_group_rows(self) -> int:
        """Number of rows of the largest group."""
        return int(np.bincount(self.groups).max())

    @property
    def n_sampled(self) -> int:
        """Maximum number of sampled rows of a tree."""
        return self.group_sampler.n_sampled * self.max_group_rows

    @property
    def n_distinct(self) -> int:
        """Approximate maximum number of distinct rows in the sample of a tree."""
        return min(self.n_rows, self.group_sampler.n_distinct * self.max_group_rows)

    @property
    def tree_bytes(self) -> int:
        """Bytes of the `block_sizes` of a tree."""
        return 2 * self.group_sampler.n_rows

    @property
    def rates(self) -> NDArray[np.float64]:
        """Mean number of times that a group, and so a row, is sampled, shape (1,)."""
        return self.group_sampler.rates

    def block_sizes(self, key: int) -> NDArray[Any]:
        """Return how often each group is in the sample of a tree; this takes the place of the sizes by block."""
        return super().block_sizes(key) if self.stored_sizes is not None else self.group_sampler.counts(key)

    def part(self, first_row: int, n_rows: int) -> Self:
        """Return the sampler of consecutive rows from the start of a block, only for trees whose sizes are stored."""
        groups = self.groups[first_row : first_row + n_rows]
        return replace(super().part(first_row, n_rows), groups=groups, stored_sizes=self.stored_sizes)

    def counts_of_trees(self, keys: Sequence[int]) -> NDArray[np.uint16]:
        """Return the number of times that each row is in the samples of trees, (n_trees, n_rows)."""
        return np.stack([self.block_sizes(key)[self.groups] for key in keys])


def resolve_sampler(
    params: Mapping[str, Any],
    labels: NDArray[np.uint16],
    classes: NDArray[Any],
    groups: NDArray[np.int32] | None = None,
    seed: int = 0,
) -> BootstrapSampler | None:
    """Return the sampler of a forest with the given parameters, or None if each tree is fitted to all rows.

    `groups` are the indices of the groups of rows if whole groups are sampled. Half-samples depend on `seed`.
    """
    sampling, max_samples = params["sampling"], params["max_samples"]
    if not params["bootstrap"]:
        for name, value in (("sampling", "bootstrap"), ("max_samples", None)):
            if params[name] != value:
                raise ValueError(f"{name}={params[name]!r} needs bootstrap=True")
        if groups is not None:
            raise ValueError("groups need bootstrap=True: without it every tree is grown on all groups")
        return None
    if groups is not None:
        if sampling not in _UNSTRATIFIED:
            what = "whole groups cannot be sampled by class"
            names = f"{', '.join(map(repr, _UNSTRATIFIED[:-1]))} or {_UNSTRATIFIED[-1]!r}"
            raise ValueError(f"groups need sampling={names}, but it is {sampling!r}: {what}")
        return GroupSampler.of(groups, _unstratified_sampler(params, int(groups.max()) + 1, "groups", seed))
    if sampling in _UNSTRATIFIED:
        return _unstratified_sampler(params, len(labels), "samples", seed)
    if isinstance(sampling, dict):
        if max_samples is not None:
            raise ValueError(f"max_samples={max_samples} cannot be combined with a dict as sampling")
        sizes = _sizes_of_rates(sampling, labels, classes)
    else:
        sizes = _sizes_of_classes(sampling, max_samples, np.bincount(labels, minlength=len(classes)))
    sampler = BootstrapSampler.for_strata(labels, sizes)
    if np.nanmax(sampler.rates) > _MOST_COPIES:
        k = int(np.nanargmax(sampler.rates))
        raise ValueError(
            f"sampling: a bootstrap sample would hold each sample of class {classes.tolist()[k]!r}"
            f" {sampler.rates[k]:.0f} times, more than {_MOST_COPIES}"
        )
    return sampler


def _unstratified_sampler(params: Mapping[str, Any], n_units: int, units: str, seed: int) -> BootstrapSampler:
    sampling, max_samples, n_trees = params["sampling"], params["max_samples"], params["n_estimators"]
    if sampling != "bootstrap" and n_units >= _TOO_MANY_ROWS:
        raise ValueError(
            f"sampling={sampling!r} needs fewer than {_TOO_MANY_ROWS:,} {units}, but there are {n_units:,}: set"
            " sampling='bootstrap'"
        )
    if sampling == HALVES:
        if max_samples is not None:
            raise ValueError(f"max_samples={max_samples} must be None with sampling={HALVES!r}")
        if n_trees < _LEAST_TREES_OF_HALVES:
            least = f"at least {_LEAST_TREES_OF_HALVES}"
            raise ValueError(f"n_estimators={n_trees} must be {least} with sampling={HALVES!r}")
        return BootstrapSampler.for_halves(n_units, seed)
    replace = sampling == "bootstrap"
    default = n_units if replace else max(1, round(_SUBSAMPLE * n_units))
    return BootstrapSampler.for_rows(n_units, _n_sampled(max_samples, n_units, default, units), replace=replace)


def _n_sampled(max_samples: Any, n_units: int, default: int, units: str = "samples") -> int:
    if max_samples is None:
        return default
    if isinstance(max_samples, Integral):
        if int(max_samples) > n_units:
            raise ValueError(f"max_samples={max_samples} must be at most {n_units}, the number of {units}")
        return int(max_samples)
    return max(1, round(n_units * max_samples))


def _sizes_of_classes(sampling: str, max_samples: Any, n_rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of sampled rows of each class, which is equal for all classes if `sampling` is "balanced"."""
    present = n_rows > 0
    proportions = n_rows / n_rows.sum() if sampling == "stratified" else present / np.count_nonzero(present)
    balanced = int(n_rows[present].min()) * int(np.count_nonzero(present))
    n_sampled = _n_sampled(max_samples, int(n_rows.sum()), balanced if sampling == "balanced" else int(n_rows.sum()))
    return np.where(present, np.maximum(np.rint(proportions * n_sampled), 1), 0).astype(np.int64)


def _sizes_of_rates(rates: dict[Any, float], labels: NDArray[np.uint16], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of sampled rows of each class, given its sampling rate, which is 1 by default."""
    unknown = [label for label in rates if label not in classes.tolist()]
    if unknown:
        raise ValueError(f"sampling has a rate for class {unknown[0]!r}, but y has the classes {classes.tolist()}")
    for label, rate in rates.items():
        if not (isinstance(rate, Real) and 0.0 < float(rate) < np.inf):
            raise ValueError(f"sampling: the rate of class {label!r} must be a positive number, but is {rate!r}")
    n_rows = np.bincount(labels, minlength=len(classes))
    expected = n_rows * np.array([rates.get(label, 1.0) for label in classes.tolist()])
    return np.where(n_rows > 0, np.maximum(np.rint(expected), 1), 0).astype(np.int64)


class SampleRecord(NamedTuple):
    """A description of a sampler. Samplers with equal records take the same samples from the same rows."""

    n_rows: int  # number of rows to sample from
    sizes: tuple[int, ...]  # number of sampled rows of a tree by stratum; empty if each tree is fitted to all rows
    replace: bool  # whether to sample with replacement
    stream: str  # the random generators, with their versions; "" if each tree is fitted to all rows
    n_groups: int = 0  # number of groups if groups are sampled, else 0; with groups, `sizes` counts groups
    groups: str = ""  # a digest of the rows' groups
    n_halves: int = 0  # number of half-samples that trees share; else 0

    @classmethod
    def of(cls, sampler: BootstrapSampler | None, n_rows: int) -> "SampleRecord":
        """Return the record of a sampler."""
        if sampler is None:
            return cls(n_rows, (), True, "")
        if isinstance(sampler, GroupSampler):
            record = cls.of(sampler.group_sampler, sampler.group_sampler.n_rows)
            return record._replace(n_rows=n_rows, n_groups=record.n_rows, groups=digest_groups(sampler.groups))
        sizes = tuple(sampler.sizes.tolist())
        return cls(n_rows, sizes, sampler.replace, stream_of(n_rows), n_halves=len(sampler.halves))

    @property
    def n_units(self) -> int:
        """The number of units to sample from: of groups if groups are sampled, else of rows."""
        return self.n_groups or self.n_rows

    def __str__(self) -> str:
        sizes = " + ".join(map(str, self.sizes)) or "all"
        units = f"{self.n_groups} groups ({self.n_rows} samples)" if self.n_groups else f"{self.n_rows} samples"
        shared = f", {self.n_halves} times for all trees" if self.n_halves else ""
        return f"{sizes} of {units}{'' if self.replace else ' without replacement'}{shared}"

    def to_sampler(self, groups: NDArray[np.int32] | None, seed: int) -> BootstrapSampler:
        """Return the sampler of a fit without strata, given the groups of rows, or None if rows were sampled.

        Raises ValueError if the samples may differ from those in the fit.
        """
        self.check_stream()
        sampler = BootstrapSampler.for_rows(self.n_units, self.sizes[0], replace=self.replace)
        if self.n_halves:
            sampler = BootstrapSampler.for_halves(self.n_units, seed)
        return sampler if groups is None else GroupSampler.of(groups, sampler)

    def check_stream(self) -> None:
        """Raise ValueError if other versions of the random generators may take other samples than those of the fit."""
        here = stream_of(self.n_units)
        if self.sizes and self.stream != here:
            raise ValueError(
                f"the bootstrap samples of this forest were taken with {self.stream}, and {here} may take different"
                f" ones: use {self.stream}, or fit the forest again"
            )


def digest_groups(groups: NDArray[np.int32]) -> str:
    """Return a digest of the group indices of rows."""
    return sha256(groups.astype("<i4").tobytes()).hexdigest()[:16]


def stream_of(n_rows: int) -> str:
    """Return the names and versions of the random generators of a bootstrap sample.

    The generator of this package samples the rows of a block. NumPy's generator divides a sample among several blocks,
    and its random numbers are the same only within a feature release of NumPy.
    """
    return _STREAM if n_rows <= BLOCK_ROWS else f"{_STREAM} and numpy " + ".".join(np.__version__.split(".")[:2])

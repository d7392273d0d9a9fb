"""Ordered target rates: class frequencies in the category of a sample, computed from preceding samples of the tree.

Each tree has a random order of its samples. The target rates of a sample do not depend on its label, so they do not
reveal the class of a sample that is alone in its category (Prokhorenkova et al. 2018, CatBoost: unbiased boosting with
categorical features, NeurIPS). All columns have the same order, because with two orders, the rates of two samples could
each reveal the label of the other one. Preceding samples of the same group are not used.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.binning import encode_values
from aucforest.tree.random import RATE_ORDER, bounded, derive_key

_TILE = 512  # number of samples whose rates are computed and encoded together
_LOW_32 = np.uint64(0xFFFFFFFF)
_LABEL_SHIFT = np.uint64(32)


class RateRule(NamedTuple):
    """How the target rates of one column are computed and encoded.

    Table 0 has the rates of the categories alone. Each further table is for an interaction with another feature, whose
    codes are grouped into parts, and has the rates of each category and part. The rates are the features of the trees:
    feature t * n_classes + c is the rate of the c-th class in table t.
    """

    classes: NDArray[np.int64]  # (n_classes,) the classes that have features
    prior: NDArray[np.float64]  # (n_classes,) the frequencies of these classes
    smoothing: NDArray[np.float64]  # (n_tables,) the weight of the prior as a number of samples
    code_rows: NDArray[np.int64]  # (n_tables,) the row of the other feature in `SampleData.codes`; unused for table 0
    parts: NDArray[np.int64]  # (n_tables, n_codes) code of the other feature -> part, or -1 for none
    edges: NDArray[np.float64]  # the edges between the codes of rates, for all features
    first_edge: NDArray[np.int64]  # (n_features + 1,) where the edges of each feature begin
    prior_codes: NDArray[np.int64]  # (n_features, 1), the codes of the priors, for samples without a category

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.first_edge) - 1


class CategorySamples(NamedTuple):
    """The samples of each category in random order; category c has the slice starts[c]:starts[c + 1]."""

    starts: NDArray[np.int64]  # (n_categories + 1,)
    samples: NDArray[np.uint64]  # the index of a sample in the lower 32 bits, and its class in the upper 32 bits


@bare_kernel
def shuffle(key, first, numbers):
    """Shuffle `numbers` (Fisher and Yates); position i uses the random number of the tree with index `first` + i."""
    for i in range(len(numbers) - 1, 0, -1):
        j = bounded(derive_key(key, RATE_ORDER, first + i), i + 1)
        numbers[i], numbers[j] = numbers[j], numbers[i]


def sample_order(key: int, n_samples: int, groups: NDArray[np.int64] | None) -> NDArray[np.int32]:
    """Return a random order of the samples of a tree, given its key and their groups; groups stay together."""
    if groups is None:
        order = np.arange(n_samples, dtype=np.int32)
        shuffle(np.uint64(key), 0, order)
        return order
    rank_of = np.arange(int(groups.max(initial=-1)) + 1, dtype=np.int32)
    shuffle(np.uint64(key), 0, rank_of)
    return np.argsort(rank_of[groups], kind="stable").astype(np.int32)


@bare_kernel
def read_categories(digits, categories):
    """Write categories from their digits in base 256; if all digits are 255, the category is missing, -1."""
    missing = (np.int64(1) << (8 * len(digits))) - 1
    for i in range(len(categories)):
        category = np.int64(0)
        for digit in range(len(digits)):
            category += np.int64(digits[digit, i]) << (8 * digit)
        categories[i] = category if category != missing else -1


@bare_kernel
def _sort_by_category(categories, order, labels, indices, samples):
    """Write the samples of each category in the given order; `indices`, the starts of categories, is overwritten."""
    for i in range(len(order)):
        category = categories[order[i]]
        if category >= 0:
            label = np.uint64(labels[order[i]])
            samples[indices[category]] = np.uint64(order[i]) | (label << _LABEL_SHIFT)
            indices[category] += 1


def sort_by_category(
    categories: NDArray[np.int32], n_categories: int, order: NDArray[np.int32], labels: NDArray[np.uint16]
) -> CategorySamples:
    """Return the samples of each category in the given order."""
    counts = np.bincount(categories + 1, minlength=n_categories + 1)
    counts[0] = 0  # samples without a category, which is -1
    starts = np.cumsum(counts)
    samples = np.empty(starts[-1], dtype=np.uint64)
    _sort_by_category(categories, order, labels, starts[:-1].copy(), samples)
    return CategorySamples(starts, samples)


class SampleData(NamedTuple):
    """Codes of the features of interactions; and groups, weights and priors, which are empty if there are none."""

    codes: NDArray[np.unsignedinteger]  # (n_rows_of_codes, n_samples)
    groups: NDArray[np.int64]  # (n_samples,)
    weights: NDArray[np.float64]  # (n_samples,)
    priors: NDArray[np.float64] = np.empty((0, 0))  # (n_samples, n_classes), in place of the prior of a rule

    @classmethod
    def of(
        cls,
        codes: NDArray[np.unsignedinteger],
        groups: NDArray[np.int64] | None,
        weights: NDArray[np.float64] | None,
    ) -> Self:
        """Return the data; `groups` and `weights`, (n_samples,), may be None."""
        return cls(
            codes,
            np.empty(0, dtype=np.int64) if groups is None else groups,
            np.empty(0) if weights is None else weights,
        )


class _Buffers(NamedTuple):
    """Buffers for the totals of preceding samples of a category, and for a tile, which is some consecutive samples.

    `written` is for the rates in table 0 of all samples, or empty.
    """

    totals: NDArray[np.float64]  # (n_tables, n_parts) weights of samples
    counts: NDArray[np.float64]  # (n_tables, n_parts, n_classes) weights of the samples of each class
    last: NDArray[np.int64]  # (n_tables, 2) the last category and, with groups, its first sample not yet in the totals
    parts: NDArray[np.int64]  # (_TILE,)
    rates: NDArray[np.float64]  # (n_tables * n_classes, _TILE)
    indices: NDArray[np.uint64]  # (_TILE,) of edges
    codes: NDArray[np.uint64]  # (_TILE,)
    written: NDArray[np.float64]  # (n_samples, n_classes)

    @classmethod
    def of(cls, rule: RateRule, written: NDArray[np.float64] | None = None) -> Self:
        """Return the buffers before the first sample."""
        n_tables, n_parts = len(rule.smoothing), int(rule.parts.max(initial=0)) + 1
        return cls(
            totals=np.empty((n_tables, n_parts)),
            counts=np.empty((n_tables, n_parts, len(rule.classes))),
            last=np.tile(np.array([-1, 0]), (n_tables, 1)),
            parts=np.empty(_TILE, dtype=np.int64),
            rates=np.empty((n_tables * len(rule.classes), _TILE)),
            indices=np.empty(_TILE, dtype=np.uint64),
            codes=np.empty(_TILE, dtype=np.uint64),
            written=np.empty((0, 0)) if written is None else written,
        )


@bare_device
def _part_of(rule, data, table, sample):
    """Return the part that a sample belongs to in a table: 0 in table 0, -1 if no part contains its code."""
    return np.int64(0) if table == 0 else rule.parts[table, data.codes[rule.code_rows[table], sample]]


@bare_device
def _count_sample(rule, data, table, part, packed, buffers):
    """Add a sample, given its part and its packed index and class, to the totals."""
    if part >= 0:
        weight = data.weights[packed & _LOW_32] if len(data.weights) > 0 else 1.0
        label = np.int64(packed >> _LABEL_SHIFT)
        buffers.totals[table, part] += weight
        for c in range(len(rule.classes)):
            buffers.counts[table, part, c] += weight * (label == rule.classes[c])


@bare_device
def _find_rates(rule, data, by_category, table, tile, buffers):
    """Write the rates of the samples from tile[0] to tile[1]. The rates in table 0 are the priors of other tables."""
    starts, samples = by_category
    category, uncounted = buffers.last[table]
    smoothing, has_groups, (first, stop) = rule.smoothing[table], len(data.groups) > 0, tile
    has_priors, is_written = table == 0 and len(data.priors) > 0, table == 0 and len(buffers.written) > 0
    for index in range(first, stop):
        buffers.parts[index - first] = _part_of(rule, data, table, samples[index] & _LOW_32)
    for index in range(first, stop):
        packed, part, in_tile = samples[index], buffers.parts[index - first], index - first
        if index == starts[category + 1]:
            while index == starts[category + 1]:
                category += 1
            buffers.totals[table] = 0.0
            buffers.counts[table] = 0.0
            uncounted = index
        elif has_groups and data.groups[samples[uncounted] & _LOW_32] != data.groups[packed & _LOW_32]:
            while uncounted < index:
                part_of_group = _part_of(rule, data, table, samples[uncounted] & _LOW_32)
                _count_sample(rule, data, table, part_of_group, samples[uncounted], buffers)
                uncounted += 1
        for c in range(len(rule.classes)):
            rate = rule.prior[c] if table == 0 else buffers.rates[c, in_tile]
            if has_priors:
                rate = data.priors[packed & _LOW_32, c]
            if part >= 0:
                rate = (buffers.counts[table, part, c] + smoothing * rate) / (buffers.totals[table, part] + smoothing)
            buffers.rates[table * len(rule.classes) + c, in_tile] = rate
            if is_written:
                buffers.written[packed & _LOW_32, c] = rate
        if not has_groups:
            _count_sample(rule, data, table, part, packed, buffers)
    buffers.last[table, 0], buffers.last[table, 1] = category, uncounted


@bare_device
def _encode(rule, samples, buffers, encoded):
    """Write the codes of rates: a code is the number of edges below the rate."""
    for feature in range(len(rule.first_edge) - 1):
        edges = rule.edges[rule.first_edge[feature] : rule.first_edge[feature + 1]]
        rates = buffers.rates[feature, : len(samples)]
        encode_values(edges, rates, np.uint64(0), buffers.indices, buffers.codes)
        for i in range(len(samples)):
            encoded[feature, samples[i] & _LOW_32] = buffers.codes[i]


@bare_kernel
def _encode_rates(rule, data, by_category, buffers, encoded):
    samples = by_category.samples
    for first in range(0, len(samples), _TILE):
        stop = min(first + _TILE, len(samples))
        for table in range(len(rule.smoothing)):
            _find_rates(rule, data, by_category, table, (first, stop), buffers)
        _encode(rule, samples[first:stop], buffers, encoded)


def ordered_rates(rule: RateRule, data: SampleData, by_category: CategorySamples) -> NDArray[np.float64]:
    """Return the ordered rates of the categories of a column, (n_samples, n_classes)."""
    rates = np.tile(rule.prior, (data.codes.shape[1], 1))
    no_codes = np.empty((0, len(rates)), dtype=data.codes.dtype)
    _encode_rates(rule._replace(first_edge=rule.first_edge[:1]), data, by_category, _Buffers.of(rule, rates), no_codes)
    return rates


def encode_rates(
    rule: RateRule, data: SampleData, by_category: CategorySamples, encoded: NDArray[np.unsignedinteger]
) -> None:
    """Write the codes of the ordered rates of a column to `encoded`, (rule.n_features, n_samples).

    The samples of a category are in the order of the tree, which is the same for all columns.
    """
    encoded[:] = rule.prior_codes
    _encode_rates(rule, data, by_category, _Buffers.of(rule), encoded)

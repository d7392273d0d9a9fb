"""Ordered target rates: the class frequencies of the category of a sample among the preceding samples of a tree.

Each tree has a random order of its samples. The target rates of a sample do not depend on its label, so a tree cannot
learn from them that a category with a single sample has the class of this sample (Prokhorenkova et al. 2018, CatBoost:
unbiased boosting with categorical features, NeurIPS). All columns have the same order, because with two orders, the
rates of two samples could each reveal the label of the other one. Samples of the same group are not used either.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.random import RATE_ORDER, bounded, derive_key

_LOW_32 = np.uint64(0xFFFFFFFF)
_LABEL_SHIFT = np.uint64(32)


class RateRule(NamedTuple):
    """How the target rates of one column are computed and encoded, with a table for each interaction.

    An interaction combines the category with the part of another feature that contains its code. Feature
    t * n_classes + c is the rate of the c-th class in table t. Table 0 is for the categories alone.
    """

    classes: NDArray[np.int64]  # (n_classes,) the classes that have features
    prior: NDArray[np.float64]  # (n_classes,) the frequencies of these classes
    smoothing: NDArray[np.float64]  # (n_tables,) the weight of the prior as a number of samples
    others: NDArray[np.int64]  # (n_tables,) the row of the other feature in `codes`; unused for table 0
    parts: NDArray[np.int64]  # (n_tables, n_codes) the part that contains a code of the other feature, or -1
    edges: NDArray[np.float64]  # the edges between the codes of rates, for all features
    first_edge: NDArray[np.int64]  # (n_features + 1,) where the edges of each feature begin

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
    """Shuffle `numbers` (Fisher and Yates) with the random numbers of a tree, from the index `first` on."""
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
    """Write categories, given by digits in base 256; a missing one, -1, has the greatest number of so many digits."""
    missing = (np.int64(1) << (8 * len(digits))) - 1
    for i in range(len(categories)):
        category = np.int64(0)
        for digit in range(len(digits)):
            category += np.int64(digits[digit, i]) << (8 * digit)
        categories[i] = category if category != missing else -1


@bare_kernel
def _find_starts(categories, starts):
    """Write where the samples of each category start and end; samples of category -1 are left out."""
    for i in range(len(categories)):
        starts[categories[i] + 1] += categories[i] >= 0
    for category in range(1, len(starts)):
        starts[category] += starts[category - 1]


@bare_kernel
def _sort_by_category(categories, order, labels, indices, samples):
    """Write the samples of each category in the given order; `indices` are the starts, and afterwards the ends."""
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
    starts = np.zeros(n_categories + 1, dtype=np.int64)
    _find_starts(categories, starts)
    samples = np.empty(starts[-1], dtype=np.uint64)
    _sort_by_category(categories, order, labels, starts[:-1].copy(), samples)
    return CategorySamples(starts, samples)


@bare_device
def _part_of(rule, codes, table, sample):
    """Return the part of a sample in a table: 0 in the table of categories alone, -1 if no part contains its code."""
    return np.int64(0) if table == 0 else rule.parts[table, codes[rule.others[table], sample]]


@bare_device
def _encode_sample(rule, codes, sample, totals, counts, encoded):
    """Write the codes of the rates of a sample."""
    n_classes = len(rule.classes)
    for c in range(n_classes):
        prior, smoothing = rule.prior[c], rule.smoothing[0]
        alone = (counts[0, 0, c] + smoothing * prior) / (totals[0, 0] + smoothing)
        for table in range(len(rule.smoothing)):
            part, rate = _part_of(rule, codes, table, sample), alone
            if table > 0 and part >= 0:
                smoothing = rule.smoothing[table]
                rate = (counts[table, part, c] + smoothing * alone) / (totals[table, part] + smoothing)
            feature = table * n_classes + c
            first, stop = rule.first_edge[feature], rule.first_edge[feature + 1]
            encoded[feature, sample] = np.searchsorted(rule.edges[first:stop], rate)


@bare_device
def _count_sample(rule, codes, sample, label, weight, totals, counts):
    """Add a sample to the totals of its category and of its parts."""
    for table in range(len(rule.smoothing)):
        part = _part_of(rule, codes, table, sample)
        if part >= 0:
            totals[table, part] += weight
            for c in range(len(rule.classes)):
                counts[table, part, c] += weight * (label == rule.classes[c])


@bare_device
def _forget_sample(rule, codes, sample, totals, counts):
    """Set the totals of the category of a sample and of its parts to 0."""
    for table in range(len(rule.smoothing)):
        part = _part_of(rule, codes, table, sample)
        if part >= 0:
            totals[table, part] = 0.0
            for c in range(len(rule.classes)):
                counts[table, part, c] = 0.0


@bare_kernel
def _encode_rates(rule, starts, samples, codes, groups, weights, totals, counts, encoded):
    """Write the codes of the rates of all samples with a category; `groups` and `weights` may be empty."""
    for category in range(len(starts) - 1):
        start, end = starts[category], starts[category + 1]
        while start < end:
            stop = start + 1
            if len(groups) > 0:
                group = groups[samples[start] & _LOW_32]
                while stop < end and groups[samples[stop] & _LOW_32] == group:
                    stop += 1
            for index in range(start, stop):
                _encode_sample(rule, codes, np.int64(samples[index] & _LOW_32), totals, counts, encoded)
            for index in range(start, stop):
                sample, label = np.int64(samples[index] & _LOW_32), np.int64(samples[index] >> _LABEL_SHIFT)
                weight = weights[sample] if len(weights) > 0 else 1.0
                _count_sample(rule, codes, sample, label, weight, totals, counts)
            start = stop
        for index in range(starts[category], end):
            _forget_sample(rule, codes, np.int64(samples[index] & _LOW_32), totals, counts)


def encode_rates(
    rule: RateRule,
    sorted_samples: CategorySamples,
    codes: NDArray[np.unsignedinteger],
    groups: NDArray[np.int64] | None,
    weights: NDArray[np.float64] | None,
    encoded: NDArray[np.unsignedinteger],
) -> None:
    """Write the codes of the ordered rates of a column to `encoded`, (rule.n_features, n_samples).

    The samples are in the order of the tree, which is the same for all columns. `codes`, (n_rows_of_codes, n_samples),
    has the codes of the other features. `groups` and `weights`, (n_samples,), may be None.
    """
    n_tables, n_classes = len(rule.smoothing), len(rule.classes)
    for feature in range(rule.n_features):
        edges = rule.edges[rule.first_edge[feature] : rule.first_edge[feature + 1]]
        # Samples without a category get the code of the prior.
        encoded[feature] = np.searchsorted(edges, rule.prior[feature % n_classes])
    n_parts = int(rule.parts.max(initial=0)) + 1
    _encode_rates(
        rule,
        *sorted_samples,
        codes,
        np.empty(0, dtype=np.int64) if groups is None else groups,
        np.empty(0) if weights is None else weights,
        np.zeros((n_tables, n_parts)),
        np.zeros((n_tables, n_parts, n_classes)),
        encoded,
    )

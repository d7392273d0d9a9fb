"""First characters of text that are categories, such as those of postal codes or diagnoses, and how they are found.

Postal codes of the same region have the same first characters. If the label of a row is estimated better from the rows
with the same first characters, or from these and the rows with the same text, than from the rows with the same text
alone, the first characters become a further feature. An unknown text has the rate of its first characters.
"""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.integer_categories import (
    LEAST_GAIN,
    CountedRows,
    IntegerCounts,
    LabelEstimates,
    starts_of_groups,
)
from aucforest.fitting.target_rates import MOST_IN_SETS
from aucforest.tables.columns import Column, Counted, Factor, order_categories

_MOST_CHARACTERS = 24  # maximum number of first characters


def count_texts(column: Column, rows: NDArray[np.int64] | None, counted_rows: CountedRows) -> IntegerCounts | None:
    """Return the class counts of the hashes of text, or None if a known value is not text.

    `counted_rows` has the labels of the given rows, or of all rows if `rows` is None.
    """
    if not isinstance(column, Factor) or not all(value is None or isinstance(value, str) for value in column.values):
        return None
    indices = column.indices if rows is None else column.indices[rows]
    hashes = np.array([-1 if value is None else _hash(value) for value in [*column.values, None]])[indices]
    known = hashes >= 0
    return IntegerCounts.of(hashes[known], counted_rows._replace(labels=counted_rows.labels[known]), shift=0)


def _hash(text: str) -> int:
    """Return an integer less than 2**53 that depends only on the text. Two texts rarely have the same."""
    return crc32(text.encode(errors="surrogatepass")) + (len(text) % 2**20 << 32)


def find_prefixes(
    counted: Mapping[int, Counted], by_hash: Mapping[int, IntegerCounts | None]
) -> dict[tuple[int, int], NDArray[Any]]:
    """Return the categories of the first characters that are found, by the index of the column and their number.

    `counted` has the values of categorical columns and their counts, `by_hash` the class counts of `count_texts`.
    """
    found = dict[tuple[int, int], NDArray[Any]]()
    for feature, (values, n_rows) in counted.items():
        counts = by_hash.get(feature)
        n_characters = 0 if counts is None else find_length(values, counts)
        if n_characters > 0:
            prefixes, index = np.unique([text[:n_characters] for text in values], return_inverse=True)
            of_prefixes = Counted(prefixes.astype(object), np.bincount(index, n_rows).astype(np.int64))
            found[feature, n_characters] = order_categories(of_prefixes, f"feature {feature}")
    return found


def find_length(texts: NDArray[np.object_], by_hash: IntegerCounts) -> int:
    """Return the number of first characters that estimate labels best together with the text.

    It is 0 if the text alone is not worse by `LEAST_GAIN`, or if there are at most `MOST_IN_SETS` different texts.
    """
    if len(by_hash.values) <= MOST_IN_SETS:
        return 0
    hashes = np.array([*map(_hash, texts)])
    index = np.searchsorted(by_hash.values, hashes).clip(max=len(by_hash.values) - 1)
    is_counted = by_hash.values[index] == hashes
    counted, rows = zip(*sorted(zip(texts[is_counted].tolist(), index[is_counted].tolist())))
    estimates, longest = LabelEstimates.of(by_hash.counts[list(rows)]), max(map(len, counted))
    lengths = range(1, min(longest, _MOST_CHARACTERS + 1))
    starts_of_length = {n: starts_of_groups(np.array(counted, dtype=f"U{n}")) for n in lengths}
    # Of several lengths with the same groups, the first one is kept.
    tried = {len(starts): n for n, starts in reversed(starts_of_length.items()) if 1 < len(starts) < len(counted)}
    likelihoods = {n: estimates.by_value_and_group(estimates.by_group(starts_of_length[n])) for n in tried.values()}
    by_text = estimates.by_value()
    length, likelihood = max(likelihoods.items(), key=itemgetter(1), default=(0, by_text))
    return length if likelihood - by_text >= LEAST_GAIN else 0

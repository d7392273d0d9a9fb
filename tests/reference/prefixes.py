"""How many first characters of text are categories, by definition."""

import numpy as np

from tests.reference.integer_categories import find_groups


def find_length(texts, labels, smoothings, text_smoothings):
    """Return the number of first characters of texts that estimate labels best together with the text, or 0."""
    lengths = [n for n in range(1, max(map(len, texts))) if 1 < len({text[:n] for text in texts}) < len(set(texts))]
    group_of = {length: lambda text, length=length: text[:length] for length in lengths}
    return find_groups(texts, labels, np.ones(len(texts), dtype=bool), group_of, smoothings, text_smoothings)

"""How many first characters of text are categories, by definition: each label is estimated from other single rows."""

import numpy as np


def find_length(texts, labels, smoothings):
    """Return the number of first characters of texts that estimate labels best together with the text, or 0."""
    texts, is_class = np.array(texts), labels[:, None] == np.unique(labels)
    others = ~np.eye(len(texts), dtype=bool)

    def by_equal(keys, priors):
        is_used = (keys[:, None] == keys) & others
        counts, n = is_used @ is_class.astype(float), is_used.sum(axis=1, keepdims=True)
        return max((np.sum(np.log(((counts + s * priors) / (n + s))[is_class])), -s) for s in smoothings)

    frequencies = is_class.mean(axis=0)
    by_text, likelihoods = by_equal(texts, frequencies)[0], {}
    for length in range(1, 25):
        prefixes = np.array([text[:length] for text in texts.tolist()])
        if 1 < len(set(prefixes)) < len(set(texts)):
            likelihood, smoothing = by_equal(prefixes, frequencies)
            is_used = (prefixes[:, None] == prefixes) & (texts[:, None] != texts)
            counts, n = is_used @ is_class.astype(float), is_used.sum(axis=1, keepdims=True)
            priors = (counts - smoothing * frequencies) / (n - smoothing)
            likelihoods[length] = max(likelihood, by_equal(texts, priors)[0])
    length = max(likelihoods, key=likelihoods.__getitem__, default=0)
    return length if length > 0 and likelihoods[length] - by_text >= 10 else 0

"""How many first characters of text are categories, by definition: each label is estimated from other single rows."""

import numpy as np


def find_length(texts, labels, smoothings, text_smoothings):
    """Return the number of first characters of texts that estimate labels best together with the text, or 0."""
    texts, is_class = np.array(texts, dtype=object), labels[:, None] == np.unique(labels)
    same = (texts[:, None] == texts) & ~np.eye(len(texts), dtype=bool)
    counts, n_rows = same @ is_class.astype(float), same.sum(axis=1, keepdims=True)
    shares = {text: is_class[[other == text for other in texts]].mean(axis=0) for text in set(texts)}
    frequencies = np.mean(list(shares.values()), axis=0)

    def likelihood(priors):
        return max(np.sum(np.log(((counts + s * priors) / (n_rows + s))[is_class])) for s in smoothings)

    def priors(text, length, smoothing):
        others = [shares[other] for other in shares if other != text and other[:length] == text[:length]]
        return (np.sum(others, axis=0) + smoothing * frequencies) / (len(others) + smoothing)

    best, found = likelihood(np.tile(frequencies, (len(texts), 1))) + 10, 0
    for length in range(1, max(map(len, shares))):
        if len({text[:length] for text in shares}) > 1:
            for smoothing in text_smoothings:
                of_text = {text: priors(text, length, smoothing) for text in shares}
                by_length = likelihood(np.array([of_text[text] for text in texts]))
                if by_length > best + 1e-9:
                    best, found = by_length, length
    return found

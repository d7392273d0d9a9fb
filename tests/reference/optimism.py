"""How much a choice by ROC AUC flatters itself, by repeating the choice without each part of the rows."""

import numpy as np
from sklearn.metrics import roc_auc_score

from tests.reference.metrics import hand_till


def score(labels, proba, weights, n_classes) -> float:
    """Return the ROC AUC of the rows of positive weight that have probabilities."""
    rows = (weights > 0) & ~np.isnan(proba[:, 0])
    if n_classes == 2:
        return roc_auc_score(labels[rows], proba[rows, 1], sample_weight=weights[rows])
    return hand_till(labels[rows], proba[rows], n_classes, weights[rows])


def mean_out_of_bag(values, is_out, factors):
    """Return the weighted mean over trees of their values for each row that is out of bag; NaN without such trees.

    `values` are (n_trees, n_rows, n_classes), `is_out` (n_trees, n_rows), and `factors` the weights of the trees.
    """
    weights = is_out * factors[:, None]
    total = weights.sum(axis=0)
    return np.einsum("tnk,tn->nk", values, weights) / np.where(total > 0, total, np.nan)[:, None]


def optimism(by_amount, is_out, encodings, labels, parts, prior, strength, weights=None, is_chosen=True) -> float:
    """Return the mean over parts of the AUC by the choice from all rows less that by the choice without the part.

    `by_amount` has the values of all trees for each amount of shrinkage, and `encodings` the encoding of each tree.
    """
    weights, n_classes = np.ones(len(labels)) if weights is None else weights, by_amount[0].shape[2]
    all_parts, known = range(parts.max() + 1), np.unique(encodings)
    n_of = np.array([np.count_nonzero(encodings == encoding) for encoding in known])

    def scores(factors, rows):
        return np.array(
            [score(labels, mean_out_of_bag(values, is_out, factors), weights * rows, n_classes) for values in by_amount]
        )

    def jackknife_error(differences):
        n = len(differences)
        return np.sqrt((n - 1) / n * np.sum((differences - np.mean(differences, axis=0)) ** 2, axis=0))

    def more_of(encoding, n):
        return 1.0 + (encodings == encoding) * n_of.mean() / n

    def encoding_scores(rows):
        return np.array([scores(more_of(encoding, n), rows) for encoding, n in zip(known, n_of)])

    everything = np.ones(len(labels))
    without = [parts != part for part in all_parts]
    whole, others = encoding_scores(everything), [encoding_scores(rows) for rows in without]
    at_best = np.array([[of_part[e, whole[e].argmax()] for e in range(len(known))] for of_part in others])
    errors = np.maximum(jackknife_error(at_best - at_best[:, [int(np.argmax(whole.max(axis=1)))]]), 1e-6)

    def choose(encoding_scores, rows):
        """Return the weight of each tree, and the index of an amount."""
        best_scores = encoding_scores.max(axis=1)
        shares = np.exp(strength * (best_scores - best_scores.max()) / errors)
        shares = shares / shares.sum()
        factors = sum(share / n * (encodings == encoding) for encoding, share, n in zip(known, shares, n_of))
        found = scores(factors, rows)
        best = int(np.argmax(found))
        if best == prior or not is_chosen:
            return factors, prior
        gains = np.array([np.diff(scores(factors, one)[[prior, best]])[0] for one in without])
        return factors, best if found[best] - found[prior] > 1.5 * jackknife_error(gains) else prior

    chosen, differences = choose(whole, everything), []
    for part, of_part in zip(all_parts, others):
        by_all, by_others = (
            scores(factors, parts == part)[amount] for factors, amount in (chosen, choose(of_part, without[part]))
        )
        differences.append(by_all - by_others)
    return float(np.nanmean(differences))

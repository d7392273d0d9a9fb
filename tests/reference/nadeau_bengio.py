"""The corrected resampled t-test by its definition (Nadeau and Bengio 2003)."""

import math

from scipy.stats import t as student


def corrected_resampled_ttest(differences, n_train, n_test):
    """Return t and the two-sided p-value for the mean of differences from overlapping folds being zero."""
    n_folds = len(differences)
    mean = sum(differences) / n_folds
    variance = sum((value - mean) ** 2 for value in differences) / (n_folds - 1)
    t = mean / math.sqrt((1 / n_folds + n_test / n_train) * variance)
    return t, 2 * student.sf(abs(t), n_folds - 1)

"""The corrected resampled t-test by its definition (Nadeau and Bengio 2003), Student's density summed."""

import math


def corrected_resampled_ttest(differences, n_train, n_test):
    """Return t and the two-sided p-value for the mean of differences from overlapping folds being zero."""
    n_folds = len(differences)
    mean = sum(differences) / n_folds
    variance = sum((value - mean) ** 2 for value in differences) / (n_folds - 1)
    t = mean / math.sqrt((1 / n_folds + n_test / n_train) * variance)
    return t, 1 - 2 * area(abs(t), n_folds - 1)


def area(t, df, steps=20_000):
    """Return the area under Student's density from 0 to t, by Simpson's rule."""
    scale = math.gamma((df + 1) / 2) / (math.sqrt(df * math.pi) * math.gamma(df / 2))
    heights = [(1 + (t * i / steps) ** 2 / df) ** (-(df + 1) / 2) for i in range(steps + 1)]
    return scale * t / steps / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]))

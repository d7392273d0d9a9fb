"""Realised metrics of labels drawn from their chances: a parametric bootstrap."""

import numpy as np

from aucforest.metrics.roc import precision_area
from aucforest.monitoring._influence import Rows
from aucforest.monitoring._ranked import FloatArray

CELLS = 1 << 22  # labels held at once


def draw_aucs(rows: Rows, n_draws: int, random: np.random.Generator) -> FloatArray:
    """Return the AUC of drawn labels of two classes, NaN for draws of one class.

    The AUC depends on the labels through two sums, so only the rarer class is drawn, row by row where it falls:
    a row has the rare label when a Poisson variable of mean -log(1 - q) is positive, which has chance q exactly.
    """
    midranks, p, n_rows = rows.columns[0].midranks, rows.p[:, 0], rows.p.shape[0]
    flipped = bool(p.sum() > n_rows / 2)
    rare = 1.0 - p if flipped else p
    certain = rare >= 1.0
    rates = np.cumsum(-np.log1p(-np.where(certain, 0.0, rare)))
    counts = random.poisson(rates[-1], n_draws)
    draw = np.repeat(np.arange(n_draws), counts)
    row = np.searchsorted(rates, random.random(draw.size) * rates[-1], side="right")
    draw, row = np.divmod(np.unique(draw * n_rows + row), n_rows)
    drawn = np.bincount(draw, minlength=n_draws) + float(certain.sum())
    ranks = np.bincount(draw, weights=midranks[row], minlength=n_draws) + midranks[certain].sum()
    pairs = drawn * (n_rows - drawn)
    excess = np.divide(ranks, pairs, out=np.full(n_draws, np.nan), where=pairs > 0)
    return 0.5 - excess if flipped else 0.5 + excess


def draw_average_precisions(rows: Rows, n_draws: int, random: np.random.Generator) -> FloatArray:
    """Return the average precision of drawn labels, the mean over classes; NaN for draws without some class."""
    batch = max(1, CELLS // rows.p.size)
    sizes = [min(batch, n_draws - start) for start in range(0, n_draws, batch)]
    return np.concatenate([_average_precisions(rows, size, random) for size in sizes])


def _average_precisions(rows: Rows, n_draws: int, random: np.random.Generator) -> FloatArray:
    """Return the average precision of so many draws at once."""
    uniform = random.random((n_draws, rows.p.shape[0]))
    total = np.zeros(n_draws)
    bound = np.zeros(rows.p.shape[0])
    for k, column in enumerate(rows.columns):
        lower, bound = bound, bound + rows.p[:, k]
        labels = ((uniform >= lower) & (uniform < bound))[:, column.order[::-1]]
        called = column.order.size - column.edges[-2::-1]
        above = np.cumsum(labels, axis=1)[:, called - 1]
        total += precision_area(above, above / called)
    return total / len(rows.columns)

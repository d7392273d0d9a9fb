"""AUCs and average precision of expected labels, with their influences, and of drawn labels (parametric bootstrap)."""

from collections.abc import Callable

import numpy as np

from aucforest.metrics.roc import precision_area
from aucforest.monitoring._rows import Estimate, FloatArray, RankedColumn, Rows, dot, undefined

CELLS = 1 << 22  # labels drawn at once
# For the expectation of average precision: Gauss and Legendre's rule on [0, 1], for what falls as fast as exp(-REACH x)
REACH = 30.0
NODES = tuple(0.5 * (part + shift) for part, shift in zip(np.polynomial.legendre.leggauss(20), (1.0, 0.0)))


def soft_roc_auc(rows: Rows) -> Estimate:
    """Return the AUC of two classes; its expectation is a second-order expansion of that of the realised AUC."""
    p = np.ascontiguousarray(rows.p[:, 0])
    positive, negative = float(p.sum()), float((1.0 - p).sum())
    pairs = positive * negative  # 0 where a class has no chance at all
    if pairs <= 0.0:
        return undefined(rows.p)
    midranks = rows.columns[0].midranks
    excess = dot(midranks, p) / pairs
    influence = (midranks - excess * (negative - positive)) / pairs
    noise = p * (1.0 - p)
    bias = (excess * noise.sum() - (negative - positive) * dot(noise, influence)) / pairs
    return Estimate(0.5 + excess, 0.5 + excess + bias, influence[:, None])


def one_vs_rest_auc(rows: Rows) -> Estimate:
    """Return the mean AUC of a class against the others."""
    return _mean_of_columns(soft_roc_auc, rows)


def soft_average_precision(rows: Rows) -> Estimate:
    """Return the average precision, the mean over classes if there are more than two; its expectation is exact."""
    return _mean_of_columns(_column_precision, rows)


def _mean_of_columns(metric: Callable[[Rows], Estimate], rows: Rows) -> Estimate:
    """Return the mean over columns of a metric of two classes."""
    values, expected, influences = zip(*(metric(one) for one in rows.by_column()))
    return Estimate(float(np.mean(values)), float(np.mean(expected)), np.hstack(influences) / len(values))


def _column_precision(rows: Rows) -> Estimate:
    """Return the average precision of one class: sum over distinct scores of (its share of P) * precision there."""
    (column,), p = rows.columns, rows.p[:, 0]
    positive = float(p.sum())
    if positive <= 0.0:
        return undefined(rows.p)
    precision, steps, called = _precision_steps(column, p)
    value = float(precision_area(np.cumsum(steps[::-1]), precision[::-1]))
    # a positive raises its own step by 1, and the precision at its own and all lower scores by 1 / rows called
    lower = np.cumsum(steps / called)
    influence = (precision + lower - value) / positive
    return Estimate(value, _expected_precision(column, p), column.to_rows(influence)[:, None])


def _expected_precision(column: RankedColumn, p: FloatArray) -> float:
    """Return the expectation of the average precision of labels drawn with chances p, given that one is positive.

    It is W / N with N positives and W a sum of products of labels, and 1 / N is the integral of t^(N - 1) over t from 0
    to 1. E[W t^N] = E[t^N] E_t[W], where under E_t the chances are p t / (1 - p + p t), and E[t^N] is at most
    exp(-P (1 - t)): below 1 - REACH / P nothing is left to integrate.
    """
    nodes, weights = NODES
    reach = min(1.0, REACH / float(p.sum()))
    expected = 0.0
    for step, weight in zip(reach * nodes, reach * weights):
        kept = 1.0 - p * step
        tilted = p * (1.0 - step) / kept
        precision, steps, called = _precision_steps(column, tilted)
        # a positive counts itself, too: the variance of the steps comes on top of the product of the means
        won = dot(precision, steps) + float((column.sums(tilted * (1.0 - tilted)) / called).sum())
        expected += weight * won * np.exp(np.log(kept).sum()) / (1.0 - step)
    with np.errstate(divide="ignore"):
        return float(expected / -np.expm1(np.log1p(-p).sum()))


def _precision_steps(column: RankedColumn, p: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return precision, positives and rows at or above, of every distinct score in ascending order."""
    steps = column.sums(p)
    called = (column.order.size - column.edges[:-1]).astype(np.float64)
    return np.cumsum(steps[::-1])[::-1] / called, steps, called


def ordered_pairs(columns: list[RankedColumn], p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return A(c, d) with ties half, (K, K) with a NaN diagonal, and the influence of p on its off-diagonal sum.

    All classes must have weight. A pair of a class-c row i and a class-d row j weighs share[c, d] = 1 / (P_c P_d); by
    column c it is won where i ranks above j, so that the K^2 sums over pairs are one product of matrices.
    """
    by_class = np.ascontiguousarray(p.T)
    totals = by_class.sum(axis=1)
    share = 1.0 / np.outer(totals, totals)
    np.fill_diagonal(share, 0.0)
    # einsum, for the reason that `dot` gives
    weighted = np.einsum("cd,di->ci", share, by_class)
    above, won = np.empty_like(by_class), np.empty_like(by_class)
    for c, column in enumerate(columns):
        above[c] = totals[c] - column.below(by_class[c])
        won[c] = column.below(weighted[c])
    matrix = np.einsum("ci,di->cd", above, by_class) * share
    # each A(c, d) also falls with the totals in its denominator
    won += np.einsum("cd,ci->di", share, above) - ((matrix.sum(axis=0) + matrix.sum(axis=1)) / totals)[:, None]
    np.fill_diagonal(matrix, np.nan)
    return matrix, won.T


def one_vs_one_auc(rows: Rows) -> Estimate:
    """Return Hand and Till's mean; its expectation counts no row as a pair of two classes with itself."""
    totals = rows.p.sum(axis=0)
    if totals.min() <= 0.0:
        return undefined(rows.p)
    matrix, influence = ordered_pairs(rows.columns, rows.p)
    pairs = np.outer(totals, totals)
    # one row with itself would tie; with known labels there are no such pairs
    selves = np.einsum("ic,id->cd", rows.p, rows.p)
    others = matrix.copy()
    np.divide(matrix * pairs - 0.5 * selves, pairs - selves, out=others, where=pairs - selves > 1e-9 * pairs)
    n_pairs = totals.size * (totals.size - 1)
    return Estimate(float(np.nansum(matrix)) / n_pairs, float(np.nansum(others)) / n_pairs, influence / n_pairs)


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

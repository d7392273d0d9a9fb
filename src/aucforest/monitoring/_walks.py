"""The one compiled walk of this part: a column's ranking against all other classes at once."""

import numpy as np

from aucforest._compile import kernel
from aucforest.monitoring._ranked import FloatArray, RankedColumn


@kernel
def _walk_column(order, edges, c, p, share, won, influence):  # type: ignore[no-untyped-def]
    """Add the pairs that column c orders, to `won` by class and to the influence of the rows.

    share[d] = 1 / (P_c P_d), and 0 for d = c: the weight of a pair of a class-c row and a class-d row.
    """
    n_classes = share.size
    below = np.zeros(n_classes)
    placed = np.empty(n_classes)
    total_c = p[:, c].sum()
    for g in range(edges.size - 1):
        placed[:] = below
        for i in range(edges[g], edges[g + 1]):
            row = order[i]
            for d in range(n_classes):
                below[d] += p[row, d]
        of_c = 0.0
        for d in range(n_classes):
            placed[d] = 0.5 * (placed[d] + below[d])
            of_c += share[d] * placed[d]
        above_c = total_c - placed[c]
        for i in range(edges[g], edges[g + 1]):
            row = order[i]
            for d in range(n_classes):
                won[d] += p[row, c] * placed[d] * share[d]
                influence[row, d] += share[d] * above_c
            influence[row, c] += of_c


def ordered_pairs(columns: list[RankedColumn], p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return A(c, d) with ties half, (K, K) with a NaN diagonal, and the influence of p on its off-diagonal sum.

    All classes must have weight. O(K n log n + K^2 n).
    """
    totals = p.sum(axis=0)
    n_classes = totals.size
    matrix = np.zeros((n_classes, n_classes))
    influence = np.zeros(p.shape)
    p = np.ascontiguousarray(p)
    for c, column in enumerate(columns):
        share = 1.0 / (totals[c] * totals)
        share[c] = 0.0
        _walk_column(column.order, column.edges, c, p, share, matrix[c], influence)
    # each A(c, d) also falls with the totals in its denominator
    influence -= (matrix.sum(axis=0) + matrix.sum(axis=1)) / totals
    np.fill_diagonal(matrix, np.nan)
    return matrix, influence

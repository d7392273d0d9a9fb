"""Hierarchical shrinkage: what a node predicts leans on its ancestors.

With p_t the class frequencies of node t and n_t its rows, h_root = p_root and
h_t = h_parent + (p_t - p_parent) / (1 + lambda / n_parent): nodes of few rows move little from their parents. The
structure of the tree stays as it is.

References
----------
Agarwal, Tan, Ronen, Singh, Yu (2022). Hierarchical shrinkage: improving the accuracy and interpretability of
tree-based models. ICML.
"""

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_kernel
from aucforest.tree.structure import Tree


@bare_kernel
def _shrink(left_child, n_rows, value, amounts, shrunk):  # type: ignore[no-untyped-def]
    """Fill shrunk, (n_nodes, n_amounts, n_columns), from the root down: children come after their parent."""
    n_columns = value.shape[1]
    for i in range(len(amounts)):
        for k in range(n_columns):
            shrunk[0, i, k] = value[0, k]
    for node in range(len(left_child)):
        if left_child[node] < 0:
            continue
        for child in range(left_child[node], left_child[node] + 2):
            for i in range(len(amounts)):
                share = n_rows[node] / (n_rows[node] + amounts[i])
                for k in range(n_columns):
                    shrunk[child, i, k] = shrunk[node, i, k] + (value[child, k] - value[node, k]) * share


def shrink(
    tree: Tree, amounts: NDArray[np.float64], n_rows: float, value: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return what nodes predict when shrunk by several amounts.

    Parameters
    ----------
    tree : Tree
    amounts : ndarray of shape (n_amounts,), float64
        Values of lambda, in rows; 0 changes nothing.
    n_rows : float
        What the root counts; other nodes count by their weight.
    value : ndarray of shape (n_nodes, n_columns), float64, or None
        What to shrink in place of ``tree.value``.

    Returns
    -------
    ndarray of shape (n_nodes, n_amounts, n_columns), float64
    """
    value = tree.value if value is None else value
    shrunk = np.empty((tree.n_nodes, len(amounts), value.shape[1]))
    _shrink(tree.left_child, tree.weight * (n_rows / tree.weight[0]), value, amounts, shrunk)
    return shrunk

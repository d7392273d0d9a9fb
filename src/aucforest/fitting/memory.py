"""How much memory a fit takes, known before it starts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aucforest._memory import check_memory
from aucforest.fitting.growth_params import GrowthParams
from aucforest.tree.growing import branch_rows
from aucforest.tree.tree import Tree

# Bytes that a thread takes for each row, and for each node of the tree that it grows; a weight more for weighted rows.
ROW_BYTES, NODE_BYTES, WEIGHT_BYTES = 26, 49, 8
# The same for each class of a node: its total, as an integer and as a frequency.
_CLASS_BYTES = 16
# Bytes of histograms and what is listed of them, for each code, and for each cell, which holds a class of a code.
_CODE_BYTES, _CELL_BYTES = 48, 21
# One code in so many is copied for the branches of a tree that grows: an eighth, an eighth of that, and so on.
_COPIED = 7


def distinct_rows(params: GrowthParams, n_rows: int) -> int:
    """Return about how many different rows a tree draws, rather more."""
    draws = params.draws
    if draws is None:
        return n_rows
    if not draws.replace:
        return draws.n_draws
    rows = np.diff(draws.starts, axis=1).sum(axis=0)
    return int(np.sum(np.ceil(1.01 * rows * -np.expm1(-draws.sizes / np.maximum(rows, 1)))))


def most_nodes(params: GrowthParams, n_drawn: int, n_classes: int) -> int:
    """Return how many nodes a tree may have; of two classes, leaves of a single row everywhere are not to be feared."""
    leaves = min(
        n_drawn // 2 if n_classes == 2 else n_drawn, n_drawn // params.min_samples_leaf, 2 ** min(params.max_depth, 40)
    )
    return 2 * (leaves if params.max_leaf_nodes is None else min(leaves, params.max_leaf_nodes))


class FitSize(NamedTuple):
    """What decides how much memory a fit takes, beside its parameters.

    n_rows, n_features, n_classes : int
    n_codes : int
        Most codes of a feature.
    n_trees : int
    n_threads : int
        How many grow trees at a time.
    weighted : bool
        Whether rows have weights.
    n_sums : int
        How many sums of probabilities over trees out of bag are kept for every row.
    """

    n_rows: int
    n_features: int
    n_classes: int
    n_codes: int
    n_trees: int
    n_threads: int
    weighted: bool
    n_sums: int = 0


def bytes_of_growing(
    params: GrowthParams, n_rows: int, n_features: int, n_classes: int, code_bytes: int, *, weighted: bool
) -> int:
    """Return about how many bytes a thread takes to grow trees of a fit of so many rows, beside the codes."""
    copied = code_bytes * n_features / _COPIED if branch_rows(n_features, params.max_features) > 0 else 0.0
    row_bytes = ROW_BYTES + (WEIGHT_BYTES if weighted else 0) + copied
    # Two classes are in the bytes of a node.
    node_bytes = NODE_BYTES + _CLASS_BYTES * (n_classes - 2)
    return int(row_bytes * n_rows) + node_bytes * most_nodes(params, distinct_rows(params, n_rows), n_classes)


def bytes_of_sum(n_rows: int, n_classes: int) -> int:
    """Return the bytes of a sum of class frequencies over trees, and of their number, for every row."""
    return 8 * (n_classes + 1) * n_rows


def bytes_of_fit(size: FitSize, params: GrowthParams) -> int:
    """Return about how many bytes a fit takes beside the table and the trees, whose size only growing tells."""
    code_bytes = 1 if size.n_codes <= 2**8 else 2 if size.n_codes <= 2**16 else 4
    of_thread = bytes_of_growing(
        params, size.n_rows, size.n_features, size.n_classes, code_bytes, weighted=size.weighted
    )
    n_cells = size.n_codes << (size.n_classes - 1).bit_length()
    growing = min(size.n_threads, size.n_trees) * (of_thread + _CODE_BYTES * size.n_codes + _CELL_BYTES * n_cells)
    sums = size.n_sums * bytes_of_sum(size.n_rows, size.n_classes)
    return code_bytes * size.n_features * size.n_rows + growing + sums


def check_fit(size: FitSize, params: GrowthParams) -> None:
    """Refuse a fit that takes too much memory, before it starts; a ValueError."""
    what = (
        f"growing {size.n_trees} trees of {size.n_rows:,} rows, {size.n_features} features and"
        f" {size.n_classes:,} classes"
    )
    advice = "set max_depth, max_leaf_nodes, max_samples or a larger min_samples_leaf, or a smaller n_jobs"
    if size.n_classes > size.n_rows // 10:
        advice = "y looks like a quantity rather than classes: predict whether it exceeds a threshold, y > threshold"
    check_memory(bytes_of_fit(size, params), what, advice)


def check_trees(trees: Sequence[Tree], n_trees: int) -> None:
    """Refuse so many trees when all, as large as those that there are, would take too much memory; a ValueError."""
    check_memory(
        n_trees * sum(tree.nbytes for tree in trees) / len(trees),
        f"{n_trees} trees as large as the first {len(trees)}, of {trees[0].n_nodes:,} nodes,",
        "set max_depth, max_leaf_nodes, max_samples or a larger min_samples_leaf, or fewer n_estimators",
    )

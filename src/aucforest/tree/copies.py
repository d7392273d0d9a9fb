"""Local copies of the rows of a branch: a branch is grown from memory that it has for itself.

In the matrix of all rows the rows of a small node lie far apart, and every code that is looked at costs a wait for
the memory. So a node with an eighth of the rows of its matrix is copied, all features, into a smaller one, and again
further down; the smallest matrix stays in a core's own cache, and there wide codes are ranked anew: then histograms
are short and stay in the cache as well.

The copies share one matrix, a range of its columns each. Levels count them: 0 is the matrix of all rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device
from aucforest.tree.histogram import list_codes, row_of, with_row
from aucforest.tree.splitter import Columns

# Where one row in so many is needed, waiting for memory costs as much as copying once saves.
_RATIO = 8


class Copies(NamedTuple):
    """The copies of the branches that are being grown, and what tells where each begins and ends."""

    most_rows: NDArray[np.int64]  # (n_levels,) up to how many rows are copied; of all rows at level 0
    first: NDArray[np.int64]  # (n_levels,) the first row of a level in the matrix
    height: NDArray[np.int64]  # (n_levels,) the height of the stack at which a branch is done
    codes: NDArray[np.unsignedinteger]  # (n_features, n_copied)
    weights: NDArray[np.int64]  # (n_copied,), or empty
    n_bins: NDArray[np.int64]  # (n_features,) of the last level
    names: NDArray[np.uint32]  # (n_features, rows of the last level + 1) local code -> code, when codes are ranked anew
    rank_of: NDArray[np.uint32]  # (max n_codes,) code -> local code


def make_copies(columns: Columns, n_rows: int, last_rows: int) -> Copies:
    """Allocate the copies for trees of up to n_rows rows, the last level for branches of up to last_rows."""
    n_features = len(columns.codes)
    most_rows = [n_rows]
    while last_rows > 0 and most_rows[-1] // _RATIO >= 2 * last_rows:
        most_rows.append(most_rows[-1] // _RATIO)
    most_rows.append(last_rows)
    sizes = np.array(most_rows, dtype=np.int64)
    n_copied = int(sizes[1:].sum())
    ranked = columns.codes.dtype != np.uint8
    return Copies(
        most_rows=sizes,
        first=n_copied + n_rows - np.cumsum(sizes),
        height=np.zeros(len(sizes), dtype=np.int64),
        codes=np.empty((n_features, n_copied), dtype=columns.codes.dtype),
        weights=np.empty(n_copied if len(columns.weights) > 0 else 0, dtype=np.int64),
        n_bins=columns.n_bins.copy(),
        names=np.empty((n_features, last_rows + 1) if ranked else (0, 0), dtype=np.uint32),
        rank_of=np.empty(int(columns.n_bins.max()) + 1 if ranked else 0, dtype=np.uint32),
    )


@bare_device
def level_of(n_rows, level, last_rows, copies):  # type: ignore[no-untyped-def]
    """Return at which level to grow a node that lies in one."""
    last = len(copies.most_rows) - 1
    if n_rows <= last_rows:
        return last
    while level + 1 < last and n_rows <= copies.most_rows[level + 1]:
        level += 1
    return level


@bare_device
def columns_at(level, columns, names, copies):  # type: ignore[no-untyped-def]
    """Return the columns of a level, and the names of their codes."""
    if level == 0:
        return columns, names
    if level + 1 == len(copies.most_rows):
        return Columns(copies.codes, copies.n_bins, copies.weights), copies.names
    return Columns(copies.codes, columns.n_bins, copies.weights), names


@bare_device
def _rank_codes(column, elements, feature, missing_code, first, copies, scratch):  # type: ignore[no-untyped-def]
    """Copy a column with the ranks of its codes among themselves in place of them."""
    n_codes = list_codes(column, elements, missing_code + 1, scratch.mask, scratch.listed)
    for t in range(n_codes):
        copies.names[feature, t] = scratch.listed[t]
        copies.rank_of[scratch.listed[t]] = t
    copies.n_bins[feature] = n_codes - 1 if scratch.listed[n_codes - 1] == missing_code else n_codes
    local = copies.codes[feature, first : first + len(elements)]
    for i in range(len(elements)):
        local[i] = copies.rank_of[column[row_of(elements[i])]]


@bare_device
def copy_branch(columns, elements, level, copies, scratch):  # type: ignore[no-untyped-def]
    """Copy the rows of a branch to a level and number them by their places there."""
    first = copies.first[level]
    ranked = level + 1 == len(copies.most_rows) and len(copies.names) > 0
    for feature in range(len(columns.codes)):
        column = columns.codes[feature]
        if ranked:
            _rank_codes(column, elements, feature, columns.n_bins[feature], first, copies, scratch)
            continue
        local = copies.codes[feature, first : first + len(elements)]
        for i in range(len(elements)):
            local[i] = column[row_of(elements[i])]
    for i in range(len(elements)):
        if len(copies.weights) > 0:
            copies.weights[first + i] = columns.weights[row_of(elements[i])]
        elements[i] = with_row(elements[i], first + i)

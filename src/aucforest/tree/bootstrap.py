"""How often a tree draws each row.

Rows are drawn block by block, in each block by counters: so a row's count is a function of the tree's key and of the
row's global position, and a block can be drawn anew at any time without the others.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.random import bounded, derive_key

# A fixed size: the draws of a block depend on its global position, however the rows are spread over workers.
BLOCK_ROWS = 4096


@bare_device
def _member(members, i):
    """Return the i-th row of a stratum in its block."""
    return i if len(members) == 0 else np.int64(members[i])


@bare_kernel
def _draw_blocks(key, draws, members, starts, replace, first_block, counts):
    """Draw draws[i, s] rows of stratum s from block first_block + i; members and counts start with that block.

    Without replacement by Floyd's algorithm (Bentley, Floyd 1987): a row that is drawn again stands for the last one.
    """
    counts[:] = 0
    for i in range(len(draws)):
        block = counts[i * BLOCK_ROWS : (i + 1) * BLOCK_ROWS]
        rows = members[i * BLOCK_ROWS : i * BLOCK_ROWS + len(block)]
        block_key = derive_key(key, first_block + i)
        n_drawn = 0
        for s in range(draws.shape[1]):
            start = starts[first_block + i, s]
            size = starts[first_block + i, s + 1] - start
            for j in range(draws[i, s]):
                last = size if replace else size - draws[i, s] + j + 1
                row = _member(rows, start + bounded(derive_key(block_key, n_drawn), last))
                if not replace and block[row] > 0:
                    row = _member(rows, start + last - 1)
                block[row] += np.uint16(1)
                n_drawn += 1


@dataclass(frozen=True, eq=False)
class RowDraws:
    """How many rows every tree draws of every stratum.

    Attributes
    ----------
    n_rows : int
        Rows to draw from.
    sizes : ndarray of shape (n_strata,), int64
        Draws of a tree by stratum.
    replace : bool
        Whether a row may be drawn again.
    members : ndarray of shape (n_rows,), uint16, or empty for a single stratum
        The rows of every block, by their positions in it, stratum after stratum; of a part, those of its blocks.
    starts : ndarray of shape (n_blocks, n_strata + 1), int64
        Where the strata begin among the members of a block.
    first_block : int
        The block that the members begin with.
    """

    n_rows: int
    sizes: NDArray[np.int64]
    replace: bool
    members: NDArray[np.uint16]
    starts: NDArray[np.int64]
    first_block: int = 0

    @classmethod
    def of_all(cls, n_rows: int, n_draws: int, *, replace: bool = True) -> "RowDraws":
        """Draw from all rows alike: an ordinary bootstrap, or a subsample."""
        ends = np.minimum(BLOCK_ROWS, n_rows - np.arange(0, n_rows, BLOCK_ROWS))
        starts = np.stack((np.zeros_like(ends), ends), axis=1)
        return cls(n_rows, np.array([n_draws]), replace, np.empty(0, dtype=np.uint16), starts)

    @classmethod
    def of_strata(cls, strata: NDArray[np.uint16], sizes: NDArray[np.int64]) -> "RowDraws":
        """Draw with replacement, so many rows of every stratum."""
        blocks = [strata[start : start + BLOCK_ROWS] for start in range(0, len(strata), BLOCK_ROWS)]
        members = [np.argsort(block, kind="stable").astype(np.uint16) for block in blocks]
        ends = np.cumsum([np.bincount(block, minlength=len(sizes)) for block in blocks], axis=1)
        starts = np.concatenate((np.zeros((len(blocks), 1), dtype=np.int64), ends), axis=1)
        return cls(len(strata), sizes, True, np.concatenate(members), starts)

    @property
    def n_draws(self) -> int:
        """Draws of a tree in all."""
        return int(self.sizes.sum())

    @property
    def rates(self) -> NDArray[np.float64]:
        """How often a row of each stratum is drawn in the mean, shape (n_strata,); NaN where there is no row."""
        with np.errstate(invalid="ignore"):
            rates: NDArray[np.float64] = self.sizes / np.diff(self.starts, axis=1).sum(axis=0)
        return rates

    def by_block(self, key: int) -> NDArray[np.int64]:
        """Share the draws of a tree out to the blocks, shape (n_blocks, n_strata), as if all were drawn at once."""
        if len(self.starts) == 1:
            return self.sizes[None, :]
        generator = np.random.Generator(np.random.Philox(key=key))
        present = np.diff(self.starts, axis=1)
        columns = []
        for size, rows in zip(self.sizes, present.T):
            if self.replace:
                columns.append(generator.multinomial(size, rows / max(rows.sum(), 1)))
            else:
                columns.append(generator.multivariate_hypergeometric(rows, size, method="marginals"))
        return np.stack(columns, axis=1)

    def counts(self, key: int) -> NDArray[np.uint16]:
        """Return how often a tree draws each row, shape (n_rows,)."""
        return self.counts_of_blocks(key, self.by_block(key), 0)

    def counts_of_blocks(self, key: int, draws: NDArray[np.int64], first_block: int) -> NDArray[np.uint16]:
        """Return the counts of some blocks, given what a tree draws from each of them."""
        first_row = first_block * BLOCK_ROWS
        counts = np.empty(min(len(draws) * BLOCK_ROWS, self.n_rows - first_row), dtype=np.uint16)
        members = self.members[(first_block - self.first_block) * BLOCK_ROWS :]
        _draw_blocks(np.uint64(key), draws, members, self.starts, self.replace, first_block, counts)
        return counts

    def of_part(self, first_row: int, n_rows: int) -> "RowDraws":
        """Return the same draws with the members of some rows alone, which begin with a block."""
        return replace(self, members=self.members[first_row : first_row + n_rows], first_block=first_row // BLOCK_ROWS)

"""How much memory a fit out of core takes, and how it is kept to a limit."""

import re
from numbers import Integral
from typing import Any, NamedTuple

from joblib import effective_n_jobs

from aucforest.fitting.bootstrap import BLOCK_ROWS
from aucforest.fitting.growth_params import GrowthParams
from aucforest.fitting.level import needs_all_rows
from aucforest.fitting.memory import NODE_BYTES, ROW_BYTES, WEIGHT_BYTES, bytes_of_growing, bytes_of_sum
from aucforest.tree.binning import MAX_BINS, SAMPLE_ROWS
from aucforest.tree.samples import MOST_ROWS

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
# Bytes of a sampled value that has a weight while the bins of its feature are chosen: both, their order, both sorted.
_WEIGHED_BYTES = 40
# Bytes of batches on their way, for each thread and what is read ahead.
_BATCH_BYTES = 2**26
# The level setting: bytes beside its codes of a row that is handed over, and how many tasks of each thread hold some.
_HANDED_BYTES, _HANDED_OVER = 12, 4
# How often the histograms of a part are there: two rounds, and sums of them.
_HISTOGRAMS = 3


class Levels(NamedTuple):
    """The level setting, for codes that do not fit into memory: rows of a part, and arguments of `grow_by_level`."""

    part_rows: int
    local_rows: int
    max_hist_bytes: int


class Plan(NamedTuple):
    """How a fit keeps to its limit.

    n_bytes : int
        What it may take beside the trees.
    n_threads : int
        How many grow trees.
    levels : Levels or None
        None where the codes fit into memory.
    """

    n_bytes: int
    n_threads: int
    levels: Levels | None = None

    def __str__(self) -> str:
        how = "" if self.levels is None else f", level by level down to {self.levels.local_rows:,} rows"
        return f"up to {self.n_bytes / 2**20:,.0f} MiB beside the trees, {self.n_threads} threads{how}"


def parse_bytes(given: Any, name: str) -> int:
    """Return a number of bytes that is given as such, or as text such as "2GiB", "500MB" or "1.5 GB".

    Examples
    --------
    >>> [parse_bytes(given, "memory_limit") for given in ("2GiB", "500MB", 10**9)]
    [2147483648, 500000000, 1000000000]
    """
    if isinstance(given, Integral) and not isinstance(given, bool) and int(given) > 0:
        return int(given)
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]?i?)b?\s*", str(given).lower())
    if found is None or found[2] not in _UNITS or float(found[1]) == 0 or not isinstance(given, str):
        raise ValueError(f"{name} must be bytes, such as 2147483648 or '2GiB', but is {given!r}")
    return int(float(found[1]) * _UNITS[found[2]])


def plan_fit(forest: Any, target: Any, params: GrowthParams, n_features: int, limit: int) -> Plan:
    """Choose how trees are grown within a limit.

    Parameters
    ----------
    forest : AUCForestClassifier
    target : Target
    params : GrowthParams
    n_features : int
    limit : int
        Bytes beside the trees.

    Raises
    ------
    ValueError
        When the limit is too small for any way.
    """
    n_rows, n_kept, n_classes = len(target.labels), len(target.kept_labels), len(target.classes)
    n_threads = effective_n_jobs(forest.n_jobs)
    weighted = target.sample_weight is not None or forest.class_weight is not None
    of_rows = 2 * n_rows + (8 * n_rows if target.sample_weight is not None else 0) + (8 * n_kept if weighted else 0)
    of_rows += 0 if target.kept is None else 18 * n_kept
    of_rows += 0 if params.draws is None else params.draws.members.nbytes
    code_bytes = 1 if forest.max_bins is not None else 2 if n_kept < 2**16 else 4
    sampled = n_kept if forest.max_bins is None else min(n_kept, SAMPLE_ROWS)
    sorting = n_threads * (_WEIGHED_BYTES if weighted else 8) * sampled
    reading = 2 * 8 * sampled * n_features + (n_threads + 2) * _BATCH_BYTES + sorting
    codes = code_bytes * n_features * n_kept
    sums = bytes_of_sum(n_rows, n_classes) * forest._n_sums(n_classes)
    of_tree = bytes_of_growing(params, n_kept, n_features, n_classes, code_bytes, weighted=weighted)

    def needed(n_threads: int) -> int:
        return of_rows + max(reading, codes + max(n_threads * of_tree, sums))

    for n in range(n_threads, 0, -1):
        if needed(n) <= limit and n_kept <= MOST_ROWS:
            return Plan(needed(n), n)
    if forest.max_bins is None or needs_all_rows(params) is not None:
        raise _too_small(limit, needed(1), n_kept, n_features)
    levels = _Levels(n_kept, n_features, params.max_features, n_classes, weighted, n_threads)
    fixed = of_rows + max(reading, sums)
    plan = levels.plan(limit, of_rows) if fixed <= limit else None
    if plan is None:
        low, high = fixed, max(needed(1), fixed)  # the least limit with a plan is between them
        while high - low > 2**20:
            middle = (low + high) // 2
            low, high = (low, middle) if levels.plan(middle, of_rows) else (middle, high)
        raise _too_small(limit, high, n_kept, n_features)
    return plan


def _too_small(limit: int, least: int, n_rows: int, n_features: int) -> ValueError:
    return ValueError(
        f"memory_limit={limit:,} bytes is too small for {n_rows:,} rows of {n_features} features: beside the trees"
        f" {least:,} bytes are needed"
    )


class _Levels(NamedTuple):
    """What the level setting depends on."""

    n_rows: int
    n_features: int
    max_features: int
    n_classes: int
    weighted: bool
    n_threads: int

    def plan(self, limit: int, of_rows: int) -> Plan | None:
        """Share out what is left: half to branches, a quarter each to parts and histograms; None for too little.

        Pages of the map do not count: it is read from end to end, and they may go at any time.
        """
        room = (limit - of_rows) // 4
        row_bytes = ROW_BYTES + (WEIGHT_BYTES if self.weighted else 0)
        n_blocks = room // (row_bytes * self.n_threads * BLOCK_ROWS)
        if n_blocks == 0:
            return None
        n_parts = -(-self.n_rows // (n_blocks * BLOCK_ROWS))
        max_hist_bytes = room // (_HISTOGRAMS * n_parts)
        a_row = _HANDED_OVER * (self.n_features + _HANDED_BYTES) + row_bytes + NODE_BYTES
        local_rows = min(2 * room // (a_row * self.n_threads), MOST_ROWS)
        if local_rows < BLOCK_ROWS or max_hist_bytes < self.max_features * (MAX_BINS + 1) * (self.n_classes + 1) * 8:
            return None
        return Plan(limit, self.n_threads, Levels(n_blocks * BLOCK_ROWS, local_rows, max_hist_bytes))

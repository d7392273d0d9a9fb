"""How much the nodes of a forest lean on their ancestors, chosen by its own out-of-bag AUC."""

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.estimators._paths import add_shrunk
from aucforest.estimators.thresholds import Finish
from aucforest.fitting.growing import run_in_threads
from aucforest.fitting.out_of_bag import TrainingRows
from aucforest.metrics.roc import class_roc_auc
from aucforest.tree.prediction import PackedTrees, find_leaves
from aucforest.tree.tree import Tree

# The evidence for all of these is in benchmarks/rare_classes.py and benchmarks/noisy_sets.py.
AMOUNTS = np.array([0.0, 1.0, 2.0, 5.0, 15.0, 50.0, 200.0, 1000.0])
# What is right on small sets, where out-of-bag scores say little: left only for what is better by so many standard
# errors of the difference.
PRIOR = 5.0
_STANDARD_ERRORS = 1.5
# Parts of the rows that take turns in being left out (Tukey's jackknife).
_N_PARTS = 10
# Rows to score by in all: more make the choice no better but slower. Each costs a sum for every class, so of many
# classes fewer rows do, as far as there are so many of each.
_ROWS, _ROWS_TIMES_CLASSES, _ROWS_OF_CLASS = 4096, 2**16, 16
# Rows that are looked through at a time for those of a class.
_MASK_ROWS = 2**20
# Groups of trees that are summed apart, fewer where sums are more numbers than these.
_GROUPS, _MOST_SUMS = 8, 2**25
# Seconds that a row takes in a tree, or so.
_ROW_TIME = 2e-8

PackSome = Callable[[range], tuple[PackedTrees, range]]


def row_weight(
    weights: NDArray[np.float64] | None, sample_weight: NDArray[np.float64] | None, *, bootstrap: bool
) -> float:
    """Return the weight in trees of what shrinkage counts as a row, given the weights of rows in trees and as such.

    That is a row in the mean. Only where trees see all rows is a row of integer weight that many copies of it: draws
    do not take copies apart.
    """
    if weights is None:
        return 1.0
    if not bootstrap and sample_weight is not None and np.all(sample_weight == np.rint(sample_weight)):
        return float(weights.sum() / sample_weight.sum())
    # Rounding must not make another number of constant weights.
    return float(np.clip(weights.mean(), weights.min(), weights.max()))


def choose_amount(
    trees: list[Tree],
    pack: PackSome,
    training: TrainingRows,
    wanted: NDArray[np.int64],
    unit: float,
    finish: Finish,
    n_jobs: int | None,
) -> float:
    """Choose one of `AMOUNTS` by ROC AUC, of more than two classes Hand and Till's, of out-of-bag probabilities.

    `wanted` are the rows to score by, see `rows_to_score`, and `unit` is the weight of what counts as a row. `pack`
    lays some trees out for walking, among others or not, and says where they are there. `finish` turns sums over trees
    and their number into class probabilities. It is `PRIOR` unless another is better by `_STANDARD_ERRORS`.
    """
    n_classes = trees[0].n_classes
    if len(wanted) == 0:
        return PRIOR
    sums, n_trees = _sum_amounts(trees, pack, training, AMOUNTS * unit, wanted, n_jobs)
    seen = n_trees > 0
    truth, weights = training.labels[wanted[seen]], training.weights_of(wanted[seen])
    if np.sort(np.bincount(truth, minlength=n_classes))[-2] < 2:
        return PRIOR
    sums, n_trees = sums[seen], n_trees[seen, None]
    if n_classes == 2:
        scores = list(np.ascontiguousarray((sums[:, 0] / n_trees).T))
    else:
        scores = [finish(np.ascontiguousarray(sums[:, :, i]), n_trees) for i in range(len(AMOUNTS))]

    def measure_rows(rows: Any, amount: int) -> float:
        weight = None if weights is None else weights[rows]
        return class_roc_auc(truth[rows], scores[amount][rows], weight)

    means = [measure_rows(slice(None), amount) for amount in range(len(AMOUNTS))]
    best, prior = int(np.argmax(means)), int(np.searchsorted(AMOUNTS, PRIOR))
    if best == prior:
        return PRIOR
    part = np.empty(len(truth), dtype=np.int64)
    for k in np.unique(truth):
        part[truth == k] = np.arange(np.count_nonzero(truth == k)) % _N_PARTS
    gains = [measure_rows(part != i, best) - measure_rows(part != i, prior) for i in range(_N_PARTS)]
    error = np.sqrt((_N_PARTS - 1) * np.var(gains))
    return float(AMOUNTS[best]) if means[best] - means[prior] > _STANDARD_ERRORS * error else PRIOR


def rows_to_score(labels: NDArray[np.uint16], n_classes: int, seed: int) -> NDArray[np.int64]:
    """Return the places of the rows that amounts are judged by: some of every class, at random, in rising order.

    None where they would be fewer than two of a class. `seed` is the key of the first tree.
    """
    enough = max(_ROWS_TIMES_CLASSES // n_classes, _ROWS_OF_CLASS * n_classes)
    most = min(_ROWS, enough, _MOST_SUMS // (n_classes * len(AMOUNTS))) // n_classes
    if most < 2:
        return np.empty(0, dtype=np.int64)
    generator, chosen = np.random.default_rng(seed), []
    for k in range(n_classes):
        is_class = labels == k
        n_rows = np.count_nonzero(is_class)
        ranks = np.arange(n_rows) if n_rows <= most else generator.choice(n_rows, most, replace=False, shuffle=False)
        chosen.append(_places(is_class, np.sort(ranks)))
    return np.sort(np.concatenate(chosen))


def _places(mask: NDArray[np.bool_], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the r-th True of a mask is, for rising ranks; a little of the mask at a time."""
    places, passed = [np.empty(0, dtype=np.int64)], 0
    for start in range(0, len(mask), _MASK_ROWS):
        found = np.flatnonzero(mask[start : start + _MASK_ROWS])
        here = slice(*np.searchsorted(ranks, (passed, passed + len(found))))
        places.append(start + found[ranks[here] - passed])
        passed += len(found)
    return np.concatenate(places)


def _sum_amounts(
    trees: list[Tree],
    pack: PackSome,
    training: TrainingRows,
    amounts: NDArray[np.float64],
    wanted: NDArray[np.int64],
    n_jobs: int | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum the shrunk class frequencies over the trees that did not draw a row; of two classes the second alone."""
    n_columns = 1 if trees[0].n_classes == 2 else trees[0].n_classes
    bags, shape = training.bags, (len(wanted), n_columns, len(amounts))
    table = np.ascontiguousarray(training.X[wanted], dtype=np.float64)
    places = [bags.find(block, wanted)[1] for block in range(bags.n_blocks)]

    def add_group(group: range) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        total, n_trees = np.zeros(shape), np.zeros(len(wanted), dtype=np.int64)
        blocks = [bags.counts(block, group)[:, chosen] for block, chosen in enumerate(places) if len(chosen) > 0]
        counts = np.ascontiguousarray(np.concatenate(blocks, axis=1))
        leaves = np.empty(counts.shape, dtype=np.int64)
        scratch = np.empty(len(wanted), dtype=np.uint64), np.empty(len(wanted), dtype=np.uint32)
        packed, some = pack(group)
        find_leaves(*(*packed.arguments(packed.names, some), table, counts, *scratch, leaves))
        for i, tree in enumerate(trees[group.start : group.stop]):
            add_shrunk(tree, amounts, leaves[i], counts[i], total, n_trees)
        return total, n_trees

    # As many groups whatever n_jobs is: sums are rounded alike.
    n_groups = min(len(trees), max(1, min(_GROUPS, _MOST_SUMS // int(np.prod(shape)))))
    bounds = np.linspace(0, len(trees), n_groups + 1).astype(int).tolist()
    seconds = _ROW_TIME * len(wanted) * len(trees) / n_groups
    groups = run_in_threads(n_jobs, seconds)(add_group, [range(*pair) for pair in pairwise(bounds)])
    totals, all_n_trees = zip(*groups)
    return reduce(np.add, totals), reduce(np.add, all_n_trees)

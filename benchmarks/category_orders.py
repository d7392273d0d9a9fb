"""How often does an order of categories miss the best subset? Simulated nodes of more than two classes.

    python benchmarks/category_orders.py [N_NODES]

With more than two classes the forest orders the categories of a node along the first principal component of their
class frequencies, and searches the splits of that order. Here that order and others are compared with all subsets, in
nodes of 3 to 8 categories: every class is drawn for each sample at rates by category, which come from a Dirichlet
distribution (alpha 0.3: categories that tell much; 3: little). "Missed" are nodes where no split of an order gains as
much as the best subset; "lost" is how much less it gains, of the best, in the mean over all nodes and at worst.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]  # (n_categories, n_classes) counts


def splits(table: Table) -> tuple[Table, NDArray[np.bool_]]:
    """Return the class totals on the left of all splits by a subset, and the subsets."""
    sides = np.array(list(product((False, True), repeat=len(table) - 1)))[1:]
    sides = np.column_stack((np.zeros(len(sides), dtype=bool), sides))
    return sides @ table, sides


def pairs(fractions: Table, distance: Callable[[Table, Table], Table]) -> Table:
    """Return the mean over pairs of classes of a distance of their fractions on the left."""
    i, j = np.triu_indices(fractions.shape[1], 1)
    return distance(fractions[:, i], fractions[:, j]).mean(axis=1)


def hellinger(a: Table, b: Table) -> Table:
    return np.sqrt((np.sqrt(a) - np.sqrt(b)) ** 2 + (np.sqrt(1 - a) - np.sqrt(1 - b)) ** 2)


def decrease(left: Table, total: Table, impurity: Callable[[Table], Table]) -> Table:
    """Return the decrease of an impurity of class frequencies."""
    right, n = total - left, total.sum()
    weights = left.sum(axis=1), right.sum(axis=1)
    children = [w * impurity(side / w[:, None]) for side, w in zip((left, right), weights)]
    return impurity(total[None] / n) - sum(children) / n


def entropy(q: Table) -> Table:
    return -np.sum(q * np.log2(np.where(q > 0, q, 1.0)), axis=1)


GAINS: dict[str, Callable[[Table, Table], Table]] = {
    "auc": lambda left, total: pairs(left / total, lambda a, b: np.abs(a - b) / 2),
    "gini": lambda left, total: decrease(left, total, lambda q: 1 - np.sum(q * q, axis=1)),
    "entropy": lambda left, total: decrease(left, total, entropy),
    "hellinger": lambda left, total: pairs(left / total, hellinger),
}


def frequencies(table: Table, criterion: str) -> tuple[Table, Table]:
    """Return the class frequencies of the categories and their weights, of classes that weigh alike where they do."""
    scaled = table / table.sum(axis=0) if criterion in ("auc", "hellinger") else table
    weights = scaled.sum(axis=1)
    return scaled / weights[:, None], weights


def along_component(table: Table, criterion: str) -> list[Table]:
    """Return the scores along the first principal component."""
    shares, weights = frequencies(table, criterion)
    centred = shares - weights @ shares / weights.sum()
    return [centred @ np.linalg.eigh(centred.T * weights @ centred)[1][:, -1]]


def by_class(table: Table, criterion: str) -> list[Table]:
    """Return the frequencies of the class whose frequencies differ most."""
    shares, weights = frequencies(table, criterion)
    centred = shares - weights @ shares / weights.sum()
    return [shares[:, np.argmax(weights @ centred**2)]]


def by_all_classes(table: Table, criterion: str) -> list[Table]:
    """Return the frequencies of every class, an order each."""
    return list(frequencies(table, criterion)[0].T)


ORDERS = {
    "component": along_component,
    "class": by_class,
    "component, class": lambda *given: along_component(*given) + by_class(*given),
    "every class": by_all_classes,
    "component, every class": lambda *given: along_component(*given) + by_all_classes(*given),
}


def nodes(n_nodes: int, n_classes: int, alpha: float, n_rows: int) -> Iterator[Table]:
    """Yield tables of counts in which all classes, and at least three categories, occur."""
    random = np.random.default_rng([n_classes, n_rows, round(10 * alpha)])
    while n_nodes > 0:
        n_categories = random.integers(3, 9)
        rates = random.dirichlet(np.full(n_classes, alpha), n_categories)
        sizes = random.multinomial(n_rows, random.dirichlet(np.full(n_categories, 2.0)))
        table = np.array([random.multinomial(n, p) for n, p in zip(sizes, rates)], dtype=np.float64)
        table = table[table.sum(axis=1) > 0]
        table = table[:, table.sum(axis=0) > 0]
        if len(table) >= 3 and table.shape[1] == n_classes:
            yield table
            n_nodes -= 1


def losses(table: Table, criterion: str) -> list[float]:
    """Return how much less than the best subset the best split of each order gains, of the former."""
    total = table.sum(axis=0)
    best = GAINS[criterion](splits(table)[0], total).max()
    lost = []
    for order in ORDERS.values():
        lefts = [table[np.argsort(scores, kind="stable")].cumsum(axis=0)[:-1] for scores in order(table, criterion)]
        lost.append(1 - GAINS[criterion](np.concatenate(lefts), total).max() / best)
    return lost


def main() -> None:
    n_nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"{'criterion':<10} {'classes':>7} {'rows':>5} {'alpha':>5}  " + "  ".join(f"{n:>28}" for n in ORDERS))
    print(" " * 32 + "  ".join(f"{'missed    lost  at worst':>28}" for _ in ORDERS))
    everything: dict[str, list[list[float]]] = {}
    for criterion, n_classes, n_rows, alpha in product(GAINS, (3, 5, 8), (20, 100), (0.3, 3.0)):
        lost = [losses(table, criterion) for table in nodes(n_nodes, n_classes, alpha, n_rows)]
        everything.setdefault(criterion, []).extend(lost)
        print_row(f"{criterion:<10} {n_classes:>7} {n_rows:>5} {alpha:>5}", lost)
    for criterion, lost in everything.items():
        print_row(f"{criterion + ', all nodes':<30}", lost)


def print_row(name: str, lost: list[list[float]]) -> None:
    """Print a row for some nodes."""
    table = np.array(lost)
    cells = [
        f"{np.mean(of > 1e-9):>12.1%} {of.mean():>7.2%} {of.max():>7.1%}" for of in table.T
    ]  # rounding is not a loss
    print(name + "  " + "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()

"""Recorded forests: small fits with all options of trees, to see whether a change of the code changes a forest.

`python -m tests.estimators.golden` records them again. The nodes of a tree are recorded in pre-order, so that their
indices do not matter.
"""

from collections import defaultdict, namedtuple
from itertools import product
from pathlib import Path
from zlib import crc32

import numpy as np

from aucforest import AUCForestClassifier, AUCTreeClassifier
from aucforest.fitting.target_rates import MOST_IN_SETS

from .data import own_auc

FILE = Path(__file__).parents[1] / "data" / "golden_forests.npz"

# A fit: the arguments of `make_table`, the kind of sample weights, and the parameters of the estimator.
Case = namedtuple("Case", "table weights params estimator")


def draw(n, n_values, seed):
    """Return n pseudo-random integers below n_values (splitmix64), which do not depend on the version of numpy."""
    state = (np.arange(1, n + 1, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((state ^ (state >> np.uint64(31))) % np.uint64(n_values)).astype(np.int64)


# Number of values of a kind of column; a "c" stands for categories.
N_VALUES = {"wide": 2**40, "few": 7, "two": 2, "thousand": 1000, "one": 1, "c5": 5, "c30": 30, "c300": 300}
KINDS = {
    "numeric": ("wide", "few", "wide", "copy", "two", "one"),
    "sets": ("c30", "c5", "c300", "c5"),
    "both": ("wide", "c30", "few", "c5", "wide"),
}


def make_table(n=300, kind="numeric", n_classes=2, missing=None, infinite=False, dtype=np.float64):
    """Return X, y and the indices of categorical columns; `kind` is a key of KINDS, or a tuple of kinds of columns."""
    columns, score = [], draw(n, 96, 1000)
    names = KINDS.get(kind, kind)
    for i, name in enumerate(names):
        if name == "copy":
            columns.append(columns[0])
            continue
        n_values = N_VALUES[name]
        drawn, is_category = draw(n, n_values, i), name.startswith("c")
        columns.append(drawn.astype(np.float64) if is_category else (drawn - n_values // 2) / 8.0)
        if i < 3:
            index = drawn * 37 % n_values if is_category else drawn
            score = score + index * 64 // n_values
    rank = np.empty(n, dtype=np.int64)
    rank[np.argsort(score, kind="stable")] = np.arange(n)
    y, X = n_classes * rank**2 // n**2, np.stack(columns, axis=1).astype(dtype)
    for i in range(X.shape[1]):
        if infinite:
            extreme = draw(n, 16, 100 + i)
            X[extreme == 0, i], X[extreme == 1, i] = np.inf, -np.inf
        gone = draw(n, 6, 200 + i) == 0
        if missing == "some" or (missing == "one column" and i == 0):
            X[gone, i] = np.nan
        elif missing == "one class":
            X[(y == 0) & (draw(n, 2, 200 + i) == 0), i] = np.nan
        elif missing == "a whole column" and i == 0:
            X[:, i] = np.nan
    return X, y, [i for i, name in enumerate(names) if name.startswith("c") and name != "copy"]


WEIGHTS = {
    None: lambda n: None, "integers": lambda n: draw(n, 5, 300).astype(np.float64),
    "multiples": lambda n: 0.3 * (1 + draw(n, 4, 300)), "floats": lambda n: (1 + draw(n, 1000, 300)) / 7.0,
    "large": lambda n: (1 + draw(n, 2**40, 300)) * 1e20,
    "spread": lambda n: np.ldexp(1.0 + draw(n, 7, 300), -draw(n, 50, 301)),
}  # fmt: skip


CASES = {}


def add(name, weights=None, *, estimator=AUCForestClassifier, table=None, **params):
    assert name not in CASES
    CASES[name] = Case(table or {}, weights, params, estimator)


# Every criterion, with both splitters, for several numbers of classes; tables and weights alternate.
criteria = ("auc", "gini", "entropy", "hellinger", own_auc)
for i, (criterion, splitter, n_classes) in enumerate(product(criteria, ("best", "random"), (2, 3, 8, 26))):
    kind, weight = list(KINDS)[i % 3], (None, "floats", "integers", "multiples")[(i + i // 4) % 4]
    name = criterion if isinstance(criterion, str) else "own"
    table = {"kind": kind, "n_classes": n_classes, "missing": "some" if i % 2 else None}
    name = f"{name}, {splitter}, {n_classes} classes, {kind}, {weight}"
    add(name, weight, table=table, criterion=criterion, splitter=splitter)

# Weights, constraints and widths of codes: one fit of each, because tests/tree compares all of them.
add("large weights, auc", "large", criterion="auc")
add("spread weights, gini, 3 classes", "spread", criterion="gini", table={"n_classes": 3})
add("40 classes, both kinds, gini", table={"n": 500, "kind": "both", "n_classes": 40}, criterion="gini")
add("class weights, floats", "floats", class_weight="balanced", criterion="entropy", table={"n_classes": 3})
add("class weights of every bootstrap", class_weight="balanced_subsample", criterion="gini")
three, missing = {"kind": "both", "n_classes": 3, "missing": "some"}, {"missing": "some"}
add("least weight of a leaf, drawn, three", table=three, splitter="random", min_weight_fraction_leaf=0.03)
add("best first, floats, three", "floats", table=three, max_leaf_nodes=20, criterion="gini")
add("least samples of a leaf, sets", table={"kind": "sets"}, min_samples_leaf=20, criterion="entropy")
add("least share of a split, depth", min_samples_split=0.1, max_depth=4)
add("least gain, best first", min_gain=0.04, max_leaf_nodes=4, max_features=None, criterion="gini")
add("monotonic, floats", "floats", table=missing, monotonic_cst=[1, -1, 0, 0, 1, 0], min_samples_leaf=4)
add("best first, own, sets", table={"kind": "sets", "n_classes": 3}, criterion=own_auc, max_leaf_nodes=15)
sets = {"n": 700, "kind": ("wide", "c30", "few", "c300"), "missing": "some"}
add("exact, 16 bits, sets, 3 classes", max_bins=None, table=sets | {"n_classes": 3}, criterion="entropy")
widest = {"n": 70_000, "kind": ("wide", "few", "wide"), "n_classes": 3}
add("exact, 32 bits, 3 classes, floats", "floats", max_bins=None, table=widest, max_samples=600)
add("few bins, floats", "floats", max_bins=20, table={"n_classes": 3}, criterion="gini")
add("missing in one class, 2 classes, auc", table={"missing": "one class"}, criterion="auc")
add("missing in a whole column, 3 classes, gini", table={"missing": "a whole column", "n_classes": 3}, criterion="gini")
add("infinite, drawn", table={"infinite": True}, splitter="random", criterion="gini")
add("float32", table={"dtype": np.float32, "missing": "some"})
duplicates = {"kind": ("thousand", "copy", "copy", "few", "one", "one")}
add("duplicates and constants", table=duplicates, max_features=1)
many = {"kind": ("wide", "few", "two", "one", "thousand") * 6}
add("30 features, 0.3 of them", table=many, max_features=0.3)

# Ways of sampling, choices by out-of-bag predictions, single trees, and many samples.
add("no bootstrap, integers", "integers", bootstrap=False, criterion="gini", shrinkage=3.0)
add("share of the samples", max_samples=0.4)
add("balanced", sampling="balanced", table={"n_classes": 3})
add("stratified", sampling="stratified", table={"kind": "both"})
add("subsample", sampling="subsample", criterion="entropy")
add("rates", sampling={0: 0.5, 1: 2.0})
blocks = {"n": 9000, "kind": ("wide", "few", "c5")}
add("blocks of samples", table=blocks, max_depth=5)
out_of_bag = {"n_estimators": 24, "shrinkage": "auto", "oob_score": True, "max_depth": 6}
add("out of bag", **out_of_bag, threshold="youden")
add("out of bag, floats", "floats", **out_of_bag, threshold="gmean", criterion="gini")
add("out of bag, 3 classes, sets", **out_of_bag, table={"kind": "sets", "n_classes": 3}, threshold="prevalence")
# Variants are evaluated after 32 or 16 of the 40 trees.
mixed = {"criterion": "auto", "n_estimators": 40, "max_depth": 3}
add("mixed", **mixed, shrinkage="auto", table={"kind": "both", "missing": "some"})
add("mixed, 3 classes, floats", "floats", **mixed, table={"n_classes": 3})
add("mixed, without out-of-bag samples", **mixed | {"n_estimators": 10}, bootstrap=False)
some = mixed | {"criterion": ["hellinger", "gini"]}
add("mixed, two criteria", **some, table={"kind": "sets", "n_classes": 3}, sampling="balanced")
for kind, n_classes in (("numeric", 2), ("both", 3)):
    table = {"kind": kind, "n_classes": n_classes, "missing": "some"}
    add(f"tree, {kind}", estimator=AUCTreeClassifier, table=table)
    add(f"tree, {kind}, best first", estimator=AUCTreeClassifier, table=table, max_leaf_nodes=9, criterion="gini")
large = {"n": 70_000, "kind": ("wide", "few", "c30", "thousand"), "missing": "one column"}
add("70,000 samples", table=large, n_estimators=1, max_depth=11)
add("70,000 samples, 3 classes", table=large | {"n_classes": 3}, n_estimators=1, max_depth=8)
coded = {"n": 70_000, "kind": ("thousand", "few", "thousand")}
add("70,000 samples, 16 bits", table=coded, n_estimators=1, max_depth=11, max_bins=None)
wide = {"n": 20_000, "kind": ("few", "wide", "two") * 30, "dtype": np.float32}
add("20,000 samples, 90 features", table=wide, n_estimators=1, max_depth=9, max_features=10)
largest = {"n": 530_000, "kind": ("thousand", "thousand"), "dtype": np.float32}
add("530,000 samples", table=largest, n_estimators=1, max_depth=9, bootstrap=False)
add("530,000 samples, drawn", table=largest, n_estimators=1, max_depth=8, max_samples=0.2, splitter="random")


def grow(name, fit=lambda model, *data: model.fit(*data)):
    """Return the fitted estimator of a case and samples to predict, with missing, infinite and unseen values."""
    table, weights, params, estimator = CASES[name]
    X, y, categorical = make_table(**table)
    defaults = {"random_state": 0, "categorical_features": categorical}
    if estimator is AUCForestClassifier:
        defaults |= {"n_estimators": 2, "criterion": "auc", "shrinkage": 0.0, "calibration": None, "n_jobs": 1}
        if any(len(np.unique(X[:, i])) > MOST_IN_SETS for i in categorical):
            defaults["categorical_encoding"] = "sets"
    model, probe = fit(estimator(**defaults | params), X, y, WEIGHTS[weights](len(X))), X[:15].copy()
    for i in range(len(probe)):  # each sample has one such value
        probe[i, i % X.shape[1]] = (np.nan, np.inf, 777.0, -np.inf)[(i + i // X.shape[1]) % 4]
    return model, probe


def pre_order(tree, node=0):
    """Yield the nodes of a tree in pre-order."""
    yield node
    if tree.left_child[node] >= 0:
        yield from pre_order(tree, tree.left_child[node])
        yield from pre_order(tree, tree.right_child[node])


def describe(model, probe):
    """Return a fitted estimator as arrays: a checksum of each node, predictions, and the numbers that `fit` chose."""
    checksums = []
    for number, tree in enumerate(model.trees_):
        order = list(pre_order(tree))
        assert len(order) == tree.n_nodes
        goes_left = np.zeros((tree.n_nodes, 32), dtype=np.uint8)  # the codes that go left, as bits
        for node in tree.set_nodes:
            goes_left[node] = np.packbits(np.append(tree.goes_left(node), False))
        fields = (tree.feature, tree.threshold, tree.missing_left, tree.gain, tree.n_samples, tree.weight, tree.value)
        for row in zip(*(values[order] for values in (*fields, goes_left))):
            checksums.append(crc32(b"".join(value.tobytes() for value in (np.int64(number), *row))))
    chosen = [getattr(model, name, None) for name in ("shrinkage_", "threshold_", "oob_score_")]
    numbers = np.concatenate([np.ravel(np.nan if value is None else value) for value in chosen])
    return {"node": np.array(checksums, np.uint32), "proba": model.predict_proba(probe), "chosen": numbers}


def record():
    described = {name: describe(*grow(name)) for name in CASES}
    arrays = {f"{name}/{part}": array for name, parts in described.items() for part, array in parts.items()}
    np.savez_compressed(FILE, **arrays)


def read():
    """Return the recorded arrays of each case, by name."""
    cases = defaultdict(dict)
    with np.load(FILE) as file:
        for name, array in file.items():
            case, _, part = name.rpartition("/")
            cases[case][part] = array
    return cases


if __name__ == "__main__":
    record()

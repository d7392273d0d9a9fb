"""Trees over rows in parts are those of one process, bit for bit."""

from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest._compile import kernel
from aucforest.fitting.bootstrap import BLOCK_ROWS, BootstrapSampler
from aucforest.fitting.executor import LocalExecutor
from aucforest.fitting.level import grow_by_level
from aucforest.fitting.level_tasks import histogram_dtype
from aucforest.fitting.spec import tree_keys
from aucforest.tree.binning import SAMPLE_ROWS
from tests.fitting.rows import grow_trees, make_tied_rows, prepare

KEYS = tree_keys(7, range(3))
NEVER, LATE, ROOT = 1, 700, 100_000


VARIANTS = (("gini", "random"), ("auc", "best"), ("entropy", "random"))


def make_rows(n_rows=3 * BLOCK_ROWS + 100, n_classes=2, seed=0):
    """Make columns of all kinds: many values, few, one, missing ones, one-hot; the last two for categories."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 9))
    X[:, 1] = rng.integers(0, 4, n_rows)
    X[:, 2] = 3.0
    X[rng.random(n_rows) < 0.2, 3] = np.nan
    X[:, 4:7] = rng.integers(0, 40, n_rows)[:, None] == np.array([0, 1, 2])
    X[:, 7:] = rng.integers(0, 30, (n_rows, 2))
    X[rng.random(n_rows) < 0.1, 8] = np.nan
    lean = X[:, 0] + X[:, 1] * (X[:, 7] % 3 == 0) + np.nan_to_num(X[:, 3], nan=-1) + rng.normal(size=n_rows)
    edges = np.quantile(lean, np.linspace(0.6, 1, n_classes, endpoint=False)[: n_classes - 1])
    return X, np.searchsorted(edges, lean).astype(np.uint16)


def bounds_of(n_parts, n_rows):
    """Cut rows into parts of whole blocks, at most as many as there are."""
    n_blocks = -(-n_rows // BLOCK_ROWS)
    blocks = np.linspace(0, n_blocks, min(n_parts, n_blocks) + 1).astype(int) * BLOCK_ROWS
    return [*blocks[:-1].tolist(), n_rows]


def assert_same_tree(tree, other):
    """Compare two trees array by array, bit by bit."""
    for name, array in vars(other).items():
        if isinstance(array, np.ndarray):
            assert getattr(tree, name).dtype == array.dtype, name
            np.testing.assert_array_equal(getattr(tree, name), array, err_msg=name)
    assert tree.n_features == other.n_features


def grow_parts(growth, whole, bounds, local_rows, max_hist_bytes=2**28, keys=KEYS):
    """Grow trees over parts, in threads."""
    if whole.sampler is not None:
        whole = whole._replace(sampler=whole.sampler.of_trees(keys))
    parts = [whole.some(start, stop) for start, stop in pairwise(bounds)]
    with closing(LocalExecutor(2)) as executor:
        futures = [executor.submit(lambda part: part, part) for part in parts]
        options = SimpleNamespace(local_rows=local_rows, max_hist_bytes=max_hist_bytes)
        grown = grow_by_level(futures, growth, keys, executor, **vars(options))
        trees = {place: tree for places, some in grown for place, tree in zip(places, some)}
    return [trees[place] for place in range(len(keys))]


def check(growth, whole, n_parts=(1, 2, 7), local_rows=(NEVER, LATE, ROOT)):
    """Compare trees over parts with those over all rows."""
    expected = grow_trees(growth, whole, KEYS)
    assert min(tree.n_nodes for tree in expected) > 1
    for parts in n_parts:
        for rows in local_rows:
            grown = grow_parts(growth, whole, bounds_of(parts, whole.n_rows), rows)
            for tree, other in zip(grown, expected):
                tree.validate()
                assert_same_tree(tree, other)


def test_two_classes():
    check(*prepare(*make_rows()))


def test_more_classes():
    check(*prepare(*make_rows(n_classes=4), min_samples_leaf=20), n_parts=(3,))


@pytest.mark.parametrize("criterion", ["gini", "entropy", "hellinger"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_criteria(criterion, n_classes):
    check(
        *prepare(*make_rows(n_classes=n_classes), criterion=criterion, min_samples_leaf=5),
        n_parts=(3,),
        local_rows=(300,),
    )


@given(
    seed=st.integers(0, 10**6),
    n_classes=st.sampled_from([2, 3, 5]),
    weighted=st.booleans(),
    by_set=st.sampled_from([(), (0, 2)]),
    params=st.fixed_dictionaries(
        {
            "criterion": st.sampled_from(["auc", "gini", "entropy", "hellinger"]),
            "splitter": st.sampled_from(["best", "random"]),
            "min_samples_leaf": st.sampled_from([1, 8]),
            "min_weight_fraction_leaf": st.sampled_from([0.0, 0.02]),
            "min_gain": st.sampled_from([0.0, 0.1]),
            "max_features": st.integers(1, 4),
        }
    ),
)
def test_ties_down_to_the_smallest_node(seed, n_classes, weighted, by_set, params):
    X, labels = make_tied_rows(seed, n_classes)
    weights = np.random.default_rng(seed).random(len(labels)) if weighted else None
    growth, whole = prepare(X, labels, weights, np.isin(np.arange(4), by_set), **params)
    grown = grow_parts(growth, whole, [0, len(labels)], NEVER)
    for tree, other in zip(grown, grow_trees(growth, whole, KEYS)):
        assert_same_tree(tree, other)


@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_sets(n_classes, splitter):
    by_set, options = np.arange(9) >= 7, {"min_samples_leaf": 3, "splitter": splitter}
    check(*prepare(*make_rows(n_classes=n_classes), by_set=by_set, **options), n_parts=(3,))


@pytest.mark.parametrize("n_rows", [None, SAMPLE_ROWS + 1])
def test_variants(n_rows):
    """Trees of several criteria and splitters, also where bins come from some of the rows."""
    growth, whole = prepare(*make_rows(), min_samples_leaf=3)
    variants = [
        prepare(*make_rows(), min_samples_leaf=3, criterion=criterion, splitter=splitter)[0].params
        for criterion, splitter in VARIANTS
    ]
    growth = replace(growth, variants=tuple(variants), variant_of={key: i % 3 for i, key in enumerate(KEYS)})
    if n_rows is not None:
        growth = replace(growth, n_rows=n_rows)
    check(growth, whole, n_parts=(3,))
    for i, tree in enumerate(grow_trees(growth, whole, KEYS)):
        alone = replace(growth, params=variants[i % 3], variants=(variants[i % 3],), variant_of={})
        assert_same_tree(tree, grow_trees(alone, whole, [KEYS[i]])[0])


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("criterion", ["auc", "gini"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_weights(whole, criterion, n_classes):
    X, labels = make_rows(n_classes=n_classes)
    weights = np.random.default_rng(1).integers(1, 9, len(labels)) * (1.0 if whole else 1 / 7)
    options = {"criterion": criterion, "min_weight_fraction_leaf": 1e-3}
    check(*prepare(X, labels, weights, **options), n_parts=(3,), local_rows=(NEVER, LATE))


@pytest.mark.parametrize(("weight", "dtype"), [(None, np.uint32), (3.0, np.uint32), (np.sqrt(2), np.int64)])
def test_histograms_are_small_where_sums_are(weight, dtype):
    X, labels = make_tied_rows(0, 2)
    weights = None if weight is None else np.where(labels == 0, 1.0, weight)
    assert histogram_dtype(prepare(X, labels, weights)[0]) is dtype


def test_draws():
    X, labels = make_rows()
    strata = BootstrapSampler.of_strata(labels, np.array([900, 800]))
    check(*prepare(X, labels, sampler=strata), n_parts=(3,))
    check(*prepare(X, labels, sampler=None, max_features=None, max_depth=6), n_parts=(3,))
    check(*prepare(X, labels, sampler=BootstrapSampler.of_all(len(labels), 3000, replace=False)), n_parts=(3,))


def test_a_part_without_the_rare_class():
    X, labels = make_rows()
    order = np.argsort(labels, kind="stable")
    check(*prepare(X[order], labels[order]), n_parts=(3,), local_rows=(LATE,))


def test_many_constant_columns():
    X, labels = make_rows()
    X = np.hstack([X, np.zeros((len(X), 20))])
    check(*prepare(X, labels, max_features=2), n_parts=(2,), local_rows=(LATE,))


def test_small_messages():
    growth, whole = prepare(*make_rows(), max_depth=5)
    expected = grow_trees(growth, whole, KEYS)
    bounds = bounds_of(3, whole.n_rows)
    for tree, other in zip(grow_parts(growth, whole, bounds, NEVER, max_hist_bytes=10_000), expected):
        assert_same_tree(tree, other)
    with pytest.raises(ValueError, match=r"max_hist_bytes=100 is too small: .* up to 6516 bytes"):
        grow_parts(growth, whole, bounds, NEVER, max_hist_bytes=100)


@kernel
def second_frequency(left, totals):
    """Score a split by the distance of the class frequencies sent left."""
    return abs(left[0] / totals[0] - left[1] / totals[1])


# What works only where all rows of a tree are in one place.
AT_THE_ROOT = {
    "max_leaf_nodes": {"max_leaf_nodes": 20},
    "criterion": {"criterion": second_frequency},
    "monotonic_cst": {"monotonic_cst": [1, 0, 0, -1, 0, 0, 0, 0, 0]},
    "class_weight": {"class_weight": "balanced_subsample"},
    "max_bins": {"max_bins": None},
}


@pytest.mark.parametrize("name", list(AT_THE_ROOT))
def test_all_parameters_at_the_root_and_none_below(name):
    growth, whole = prepare(*make_rows(), **AT_THE_ROOT[name])
    check(growth, whole, n_parts=(3,), local_rows=(ROOT,))
    with pytest.raises(ValueError, match=f"^{name}.* rows of a tree on one worker: increase local_rows, which is 700"):
        grow_parts(growth, whole, [0, whole.n_rows], LATE)


def test_trees_that_draw_many_times_their_rows_are_all_grown():
    """Branches are of many draws but few rows, and trees ask one after the other."""
    X, labels = make_rows(BLOCK_ROWS)
    sampler = BootstrapSampler.of_all(BLOCK_ROWS, 30 * BLOCK_ROWS)
    growth, whole = prepare(X, labels, sampler=sampler, max_depth=2)
    keys = tree_keys(7, range(20))
    grown = grow_parts(growth, whole, bounds_of(1, BLOCK_ROWS), BLOCK_ROWS, 2**14, keys)
    for tree, other in zip(grown, grow_trees(growth, whole, keys)):
        assert_same_tree(tree, other)

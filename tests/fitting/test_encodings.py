"""The features that trees of each encoding grow on, and trees that grow in one call."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from aucforest import AUCForestClassifier
from aucforest.fitting import encodings, growing
from aucforest.fitting.target_rates import INTERACTIONS_OF_TREE
from tests.estimators.data import small_forest
from tests.persistence.trees import assert_same_trees


def make_table(seed=0, n_rows=3000, n_features=6):
    """Return a table with 100 shops and numbers, whose signs flip effects of the shop, and labels."""
    random = np.random.default_rng(seed)
    shop, X = random.integers(0, 100, n_rows), random.normal(size=(n_rows, n_features))
    effects = random.normal(size=(100, n_features))
    logit = 1.5 * (effects[shop] * np.sign(X)).sum(axis=1)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_features)])
    table.insert(2, "shop", pd.Categorical(shop))
    return table, random.logistic(size=n_rows) < logit


@pytest.fixture(scope="module")
def forest():
    X, y = make_table()
    return AUCForestClassifier(24, random_state=0, n_jobs=1).fit(X, y)


def features_of(tree):
    return set(tree.feature[~tree.is_leaf].tolist())


def test_trees_split_on_features_of_their_encoding(forest):
    names = forest.split_features_.tolist()
    alone = names.index("shop: rate")
    interactions = {index for index, name in enumerate(names) if name.startswith("shop x ")}
    assert len(interactions) > INTERACTIONS_OF_TREE
    seen = {encoding: set() for encoding in ("sets", "rates", "interactions")}
    for tree, encoding in zip(forest.trees_, forest.encodings_):
        seen[encoding] |= features_of(tree)
        assert len(features_of(tree) & interactions) <= INTERACTIONS_OF_TREE
        tree.validate()
    assert 2 in seen["sets"]
    assert not seen["sets"] & ({alone} | interactions)
    assert alone in seen["rates"]
    assert not seen["rates"] & ({2} | interactions)
    assert {alone} | interactions <= seen["interactions"]
    assert 2 not in seen["interactions"]


def test_features_that_are_not_cached_are_computed_again(forest, monkeypatch):
    sizes, find_features = [], encodings._find_features

    def find(growth, tables):
        found = find_features(growth, tables)
        sizes.append(2 * sum(kept.values.lower.nbytes for kept in growth.tree_features.values()))
        return found

    monkeypatch.setattr(encodings, "_find_features", find)
    monkeypatch.setattr(encodings, "_MOST_CACHED", 4 * (2 * 8 * 255 * 9))  # four times the bins of 9 features
    again = AUCForestClassifier(24, random_state=0, n_jobs=1).fit(*make_table())
    assert 0 < max(sizes) <= encodings._MOST_CACHED
    assert_same_trees(again.trees_, forest.trees_)


@pytest.mark.parametrize("extra", [{}, {"sample_weight": True}, {"groups": True}], ids=["", "weights", "groups"])
def test_trees_of_a_call_are_those_that_grow_alone(extra, monkeypatch):
    X, y = make_table(n_rows=700)
    X["shop"] = X["shop"].where(X.index % 9 > 0)  # some are missing
    X["place"] = pd.Categorical(np.random.default_rng(2).integers(0, 60, len(X)))
    values = {"sample_weight": np.random.default_rng(1).random(len(y)), "groups": np.arange(len(y)) // 3}
    given, sizes, grow_rows = {name: values[name] for name in extra}, [], growing.grow_rows

    def count_trees(growth, rows, keys, buffers):
        sizes.append(len(keys))
        return grow_rows(growth, rows, keys, buffers)

    monkeypatch.setattr(growing, "grow_rows", count_trees)
    together = AUCForestClassifier(60, random_state=0, n_jobs=1).fit(X, y, **given)
    assert {"sets", "interactions"} <= set(together.encodings_)
    assert max(sizes) > 4
    sizes.clear()
    monkeypatch.setattr(growing, "rows_per_call", lambda n_classes, n_row_codes=1: 0)
    alone = AUCForestClassifier(60, random_state=0, n_jobs=1).fit(X, y, **given)
    assert set(sizes) == {1}
    assert_same_trees(alone.trees_, together.trees_)


def test_groups_stay_together_in_the_order_of_a_tree():
    groups = np.random.default_rng(0).integers(0, 9, 60)
    order = encodings._order_of_tree(5, slice(20, 50), groups)
    assert sorted(order.tolist()) == list(range(20, 50))
    assert np.count_nonzero(np.diff(groups[order])) == len(set(groups[20:50].tolist())) - 1


def test_calls_have_few_trees_where_categories_are_many(monkeypatch):
    given, trees_per_call = [], growing.trees_per_call
    monkeypatch.setattr(growing, "trees_per_call", lambda *args: given.append(args) or trees_per_call(*args))
    small_forest(40, categorical_encoding="rates").fit(*make_table(n_rows=400))
    growth, part = given[0]
    n_trees = []
    for n_categories in (100, 20_000, 70_000):
        digits = replace(growth.digits, n_categories=dict.fromkeys(growth.digits.n_categories, n_categories))
        n_trees.append(trees_per_call(replace(growth, digits=digits), part))
    assert n_trees == [40, 3, 1]


def test_trees_of_rates_do_not_depend_on_labels_out_of_bag():
    X, y = make_table(n_rows=600)
    params = {"categorical_encoding": "rates", "shrinkage": 0, "calibration": None, "criterion": "gini"}
    forest = small_forest(3, **params).fit(X, y)
    sampled = set(forest.estimators_samples_[0].tolist())
    # The labels of two samples of one category change places, so that no total, prior or smoothing differs.
    out = [i for i in range(len(y)) if i not in sampled]
    pair = next((i, j) for i in out for j in out if X.shop[i] == X.shop[j] and y[i] and not y[j])
    other = y.copy()
    other[list(pair)] = other[list(pair)][::-1]
    again = small_forest(3, **params).fit(X, other)
    first, second = forest.trees_[0], again.trees_[0]
    np.testing.assert_array_equal(first.feature, second.feature)
    np.testing.assert_array_equal(first.threshold, second.threshold)
    np.testing.assert_array_equal(first.value, second.value)
    assert any(not np.array_equal(a.value, b.value) for a, b in zip(forest.trees_, again.trees_))

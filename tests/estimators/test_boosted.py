"""Boosted trees of a stack: out-of-fold scores, early stopping, weights, groups, target rates, and interruption."""

import threading
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from aucforest.estimators import _boosted
from aucforest.estimators._boosted import fit_boosted
from aucforest.fitting.boosted import Booster
from aucforest.tree.prediction import PackedTrees

from .data import small_forest
from .rated import make_rated
from .stacks import small_stack


def make_rows(n_rows=300, n_classes=2, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 4))
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=n_rows)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def fit(X, y, fold, *, weights=None, groups=None, **params):
    """Return the boosted trees for a fitted forest with these parameters."""
    forest = small_forest(3, random_state=0, **params).fit(X, y)

    def find_table(model):
        table = model._validate_rows(X, y, weights, groups)
        table.rates, table.rate_weight = forest.target_rates_, weights
        return table

    return fit_boosted(forest, find_table, fold)


def folds(n_rows, n_folds=5):
    return np.arange(n_rows) % n_folds


def differences(scores):
    return scores - scores[:, :1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_a_fold_are_those_of_its_own_trees(n_classes):
    X, y = make_rows(n_classes=n_classes)
    fold = folds(len(y))
    found = fit(X, y, fold)
    trees = found.model.trees_
    leaves = PackedTrees(trees).find_leaves(X)
    by_tree = [found.scale * tree.frequencies[of_tree] for tree, of_tree in zip(trees, leaves)]
    by_fold = [differences(np.mean(of_fold, axis=0)) for of_fold in np.split(np.array(by_tree), 5)]
    for k in range(5):
        np.testing.assert_allclose(differences(found.scores)[fold == k], by_fold[k][fold == k], atol=1e-9)
    mean = differences(found.scale * found.model.predict_proba(X))
    np.testing.assert_allclose(mean, np.mean(by_fold, axis=0), atol=1e-9)
    for tree in trees:
        np.testing.assert_allclose(tree.frequencies.sum(axis=1), 1.0)
        assert tree.frequencies.min() >= 0.0


def test_scores_do_not_depend_on_labels_of_the_same_fold(monkeypatch):
    monkeypatch.setattr(_boosted, "_MOST_STAGES", 5)
    X, y = make_rows(400)
    fold, other = folds(len(y)), y.copy()
    other[fold == 0] = np.random.default_rng(1).permutation(y[fold == 0])
    one, two = (fit(X, labels, fold) for labels in (y, other))
    assert len(one.model.trees_) == len(two.model.trees_) == 25
    np.testing.assert_array_equal(one.scores[fold == 0], two.scores[fold == 0])
    assert not np.array_equal(one.scores[fold == 1], two.scores[fold == 1])


def test_the_number_of_stages_has_the_lowest_loss_of_all_folds(monkeypatch):
    """Series that stopped early get more stages, and are then the same as without early stopping."""
    monkeypatch.setattr(_boosted, "_PATIENCE", 3)
    X, y = make_rows(200, seed=2)
    add_stage, n_stages, losses = Booster.add_stage, [], []

    def record(booster, keys):
        losses.append(add_stage(booster, keys))
        n_stages.append(len(booster.state.trees))
        return losses[-1]

    monkeypatch.setattr(Booster, "add_stage", record)
    found = fit(X, y, folds(len(y)), n_jobs=1)
    # Where the number of stages does not increase by one, a series starts, or a series that stopped is continued.
    starts, n_longest = np.flatnonzero(np.diff(n_stages, prepend=0) != 1), max(n_stages)
    assert len(starts) > 4  # so some series were continued
    assert max(n_stages[: starts[4]]) == n_longest
    monkeypatch.setattr(_boosted, "_PATIENCE", 1000)
    losses.clear()
    fit(X, y, folds(len(y)), n_jobs=1)
    total = np.reshape(losses, (5, -1))[:, :n_longest].sum(axis=0)
    assert len(found.model.trees_) == 5 * (1 + np.argmin(total))


def test_rows_of_weight_0_have_no_scores():
    X, y = make_rows()
    kept, fold = np.arange(len(y)) % 7 != 0, folds(len(y))
    weighted = fit(X, y, np.where(kept, fold, -1), weights=1.0 * kept)
    np.testing.assert_array_equal(np.isnan(weighted.scores[:, 0]), ~kept)
    few = fit(X[kept], y[kept], fold[kept])
    assert roc_auc_score(few.scores[:, 1] > 0.0, weighted.scores[kept, 1]) > 0.99


def test_groups_with_target_rates():
    """The category of a row is its group, so the other rows of the group would reveal its label."""
    aucs, groups = [], np.arange(400) // 5
    for seed in range(4):
        X, _ = make_rated(400, seed=seed)
        y = np.random.default_rng(seed).permutation(np.arange(80) % 2)[groups]
        X["merchant"] = pd.Categorical([f"m{group}" for group in groups])
        aucs.append(roc_auc_score(y, differences(fit(X, y, groups % 5, groups=groups).scores)[:, 1]))
    assert abs(np.mean(aucs) - 0.5) < 0.1


@pytest.mark.parametrize("sampling", ["bootstrap", "balanced"])
def test_target_rates_are_those_of_the_forest(sampling, monkeypatch):
    """The rates of fitted and held-out rows have one scale, even if the forest samples classes at different rates."""
    random, means = np.random.default_rng(0), []

    def record(growth, rows, state):
        means.append((rows.values[:, -1].mean(), rows.held_out[:, -1].mean()))
        return Booster(growth, rows, state)

    monkeypatch.setattr(_boosted, "Booster", record)
    shop, rates = random.integers(0, 60, 1500), random.beta(0.3, 4.0, 60)
    X = pd.DataFrame({"x": random.normal(size=1500), "shop": pd.Categorical(shop)})
    fit(X, (random.random(1500) < rates[shop]).astype(int), folds(1500), sampling=sampling)
    fitted, held_out = np.mean(means, axis=0)
    assert fitted == pytest.approx(held_out, rel=0.1)


def test_noise_has_no_score():
    found = []
    for seed in range(8):
        random, X = np.random.default_rng(seed), make_rated(400, seed=seed)[0].sort_values("merchant")
        y = random.permutation(np.arange(400) % 2)
        boosted = fit(X, y, random.permutation(folds(400)))
        assert len(boosted.model.trees_) <= 5 * 20
        found.append(roc_auc_score(y, differences(boosted.scores)[:, 1]))
    assert abs(np.mean(found) - 0.5) < 0.04


def test_boosting_helps_a_forest():
    X, y = make_rows(1500)
    params = {"residual": False, "linear": None, "random_state": 0}
    stacks = (small_stack(30, stack={"boosted": boosted, **params}) for boosted in (False, True))
    alone, both = (log_loss(y[1000:], stack.fit(X[:1000], y[:1000]).predict_proba(X[1000:])) for stack in stacks)
    assert both < 0.9 * alone


def test_other_threads_stop_after_an_interruption(monkeypatch):
    add_stage, n_added, started = Booster.add_stage, [0], threading.Event()

    def interrupted(booster, keys):
        if threading.current_thread() is threading.main_thread():
            started.wait(10)
            raise KeyboardInterrupt
        n_added[0] += 1
        started.set()
        time.sleep(0.02)
        return add_stage(booster, keys)

    monkeypatch.setattr(Booster, "add_stage", interrupted)
    monkeypatch.setattr(_boosted, "_PATIENCE", 1000)
    X, y = make_rows()
    with pytest.raises(KeyboardInterrupt):
        fit(X, y, folds(len(y)), n_jobs=2)
    time.sleep(0.1)
    n_before = n_added[0]
    time.sleep(0.2)
    assert n_added[0] == n_before

"""Shrinkage: given amounts, the choice by out-of-bag scores, and the optimism of this choice."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from aucforest import AUCForestClassifier, AUCStackingClassifier
from aucforest.estimators import _evidence
from aucforest.estimators._calibration import MIN_PROBA
from aucforest.estimators._evidence import AMOUNTS, ENCODING_FACTOR, PRIOR, SCORED_TREES
from aucforest.estimators.out_of_bag import training_rows
from aucforest.fitting.out_of_bag import parts_of_rows
from aucforest.tree.prediction import PackedTrees
from tests.estimators.data import UNSCORED, assert_same_fit, digest, make_noisy, make_table, small_forest
from tests.reference import shrinkage as reference
from tests.reference.metrics import hand_till
from tests.reference.optimism import Trees, chosen_amount, optimism

pytestmark = pytest.mark.filterwarnings(UNSCORED)
X, Y = make_table(n_rows=240, missing=0.1)
X3, Y3 = make_table(n_rows=240, n_classes=3, seed=1)
WEIGHT = np.random.default_rng(0).choice([0.25, 0.7, 1.9], 240)
NOISE_PARAMS = {"criterion": "gini", "calibration": None, "oob_score": True, "random_state": 1}


def by_hand(forest, table, amount):
    """Return the mean over trees of the shrunk class frequencies of leaves."""
    shrunk = [reference.shrink(tree.left_child, tree.weight, tree.value, amount) for tree in forest.trees_]
    return np.mean([np.array(values)[leaves] for values, leaves in zip(shrunk, forest.apply(table).T)], axis=0)


@pytest.mark.parametrize(("amount", "bootstrap"), [(None, True), (0, False), (0.5, True), (30, False)])
@pytest.mark.parametrize(("table", "labels"), [(X, Y), (X3, Y3)], ids=["two", "three"])
def test_amounts_that_are_given(amount, bootstrap, table, labels):
    forest = small_forest(3, shrinkage=amount, bootstrap=bootstrap, max_depth=4).fit(table, labels)
    assert forest.shrinkage_ == (amount or 0.0)
    np.testing.assert_allclose(forest.predict_proba(table), by_hand(forest, table, amount or 0.0), atol=1e-14)
    assert digest(forest) == digest(small_forest(3, bootstrap=bootstrap, max_depth=4).fit(table, labels))


def test_no_rows_to_choose_by():
    forest = small_forest(bootstrap=False).fit(X, Y)
    assert forest.shrinkage_ == PRIOR == 5.0
    np.testing.assert_allclose(forest.predict_proba(X), by_hand(forest, X, PRIOR))


@pytest.mark.parametrize("params", [{}, {"class_weight": "balanced"}, {"class_weight": "balanced_subsample"}], ids=str)
def test_integer_weights_are_copies_where_trees_see_all_rows(params):
    copies = 1 + np.arange(240) % 3
    params = {"bootstrap": False, "shrinkage": 20, "max_features": None, "max_depth": 3, **params}
    weighted = small_forest(2, **params).fit(X3, Y3, copies)
    repeated = small_forest(2, **params).fit(np.repeat(X3, copies, axis=0), np.repeat(Y3, copies))
    np.testing.assert_allclose(weighted.predict_proba(X3), repeated.predict_proba(X3), rtol=1e-9)


@pytest.mark.parametrize(("class_weight", "weight", "unit"), [
    (None, None, 1.0), (None, WEIGHT, WEIGHT.mean()), ({0: 1.0, 1: 5.0}, None, np.where(Y == 1, 5.0, 1.0).mean()),
    (None, np.where(np.arange(240) < 40, 0.0, WEIGHT), WEIGHT[40:].mean()),
])  # fmt: skip
def test_an_amount_counts_mean_rows(class_weight, weight, unit):
    forest = small_forest(3, shrinkage=10.0, class_weight=class_weight).fit(X, Y, weight)
    assert [tree.shrinkage for tree in forest.trees_] == pytest.approx([10.0 * unit] * 3, rel=1e-15)


def trees_of(forest, X, y, weight, amounts, groups=None):
    """Return the scored trees of a forest for the reference, with these amounts of shrinkage."""
    rows, kept = training_rows(forest, X, y, weight), np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    trees, weights = forest.trees_[:SCORED_TREES], np.ones(len(y)) if weight is None else weight[kept]
    leaves = PackedTrees(trees).find_leaves(np.require(rows.take(kept), np.float64, "C"))
    by_amount = [
        np.array([
            np.array(reference.shrink(tree.left_child, tree.weight, tree.value, amount * weights.mean()))[of_tree]
            for tree, of_tree in zip(trees, leaves)
        ])
        for amount in amounts
    ]  # fmt: skip
    names = forest.encodings_ or ["sets"] * len(trees)
    encodings = np.array([("sets", "rates", "interactions").index(name) for name in names])
    is_out, parts = (rows.counts(range(len(trees)))[kept] == 0).T, parts_of_rows(y[kept], groups)
    return Trees(by_amount, is_out, encodings, y[kept], weights, parts)


class BalancedTrees(Trees):
    """Trees whose mean is divided by the sampling rates of classes."""

    def score(self, amount, factors, weights):
        factors = self.is_out * factors[:, None]
        rows = (weights > 0) & factors.any(axis=0)
        mean = np.einsum("tnk,tn->nk", self.by_amount[amount], factors)[rows] / factors.sum(axis=0)[rows, None]
        proba = np.maximum(mean, MIN_PROBA) * np.bincount(self.labels)
        return hand_till(self.labels[rows], proba / proba.sum(axis=1, keepdims=True), 3, weights[rows])


def chosen(table, labels, weight=None, **params):
    """Return the shrinkage of a forest, and assert that the reference chooses it."""
    forest = small_forest(**params, max_features=None).fit(table, labels, weight)
    trees = trees_of(forest, table, labels, weight, AMOUNTS)
    trees = BalancedTrees(*trees) if params.get("sampling") == "balanced" else trees
    ones, prior = np.ones(len(trees.encodings)), list(AMOUNTS).index(PRIOR)
    assert forest.shrinkage_ == AMOUNTS[chosen_amount(trees, prior, ones, trees.weights, len(forest))]
    return forest.shrinkage_


@pytest.mark.parametrize(("n_classes", "seed"), [(2, 0), (2, 1), (3, 2)])
def test_an_amount_without_clear_evidence(n_classes, seed):
    table, labels = make_table(n_rows=150, n_classes=n_classes, seed=seed, missing=0.1)
    weight = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], 150) if seed % 2 else None
    params = {"n_estimators": [12, SCORED_TREES + 20][seed % 2], "sampling": ["bootstrap", "balanced"][seed // 2]}
    assert chosen(table, labels, weight, criterion="auc", **params) == PRIOR


def chequered(n_rows):
    """Return a chequerboard and its colors, which large nodes cannot predict, so that no shrinkage is best."""
    table = np.random.default_rng(0).random((n_rows, 2))
    return table, np.floor(8 * table).sum(axis=1) % 2 == 1


def test_the_choice_depends_on_the_data():
    params = {"n_estimators": 100, "criterion": "gini", "random_state": 1}
    assert chosen(*make_noisy(1500), **params) >= 50.0
    assert chosen(*chequered(600), **params) == 0.0


@pytest.mark.parametrize("kind", ["dense", "sparse", "weights"])
def test_sums_do_not_depend_on_the_number_of_threads(kind, monkeypatch):
    """5 threads sum each half of the trees for three parts of the rows, which begin within blocks."""
    monkeypatch.setattr(_evidence, "_LEAST_TASK", 1e-9)
    table, labels = make_table(n_rows=9000, n_classes=3, seed=0, missing=0.0 if kind == "sparse" else 0.1)
    weight = np.arange(9000) % 3 if kind == "weights" else None
    table[table < 0.5] = 0.0
    given, params = csr_array(table) if kind == "sparse" else table, {"max_depth": 4, "oob_score": True}
    one, *others = (small_forest(40, n_jobs=n, **params).fit(given, labels, weight) for n in (1, 2, 5))
    for other in others:
        assert_same_fit(one, other)


def noise_table(n_classes, kind):
    """Return features, independent labels, weights or None, and groups or None."""
    random = np.random.default_rng(8)
    if kind == "numbers":
        X = random.normal(size=(240, 2))
    else:
        shop = pd.Categorical(random.integers(0, 60, 240).astype(str))
        X = pd.DataFrame({"x": random.normal(size=240), "shop": shop})
    weight = random.choice([0.0, 0.5, 1.0, 2.0], 240) if kind == "weights" else None
    groups = np.arange(240) // 3 if kind == "groups" else None
    return X, random.permutation(np.arange(240) * n_classes // 240), weight, groups


@pytest.mark.parametrize("shrinkage", ["auto", 2.0])
@pytest.mark.parametrize(("n_classes", "kind"), [
    (2, "numbers"), (2, "categories"), (2, "weights"), (2, "groups"), (3, "categories"),
], ids=["numbers", "two", "weights", "groups", "three"])  # fmt: skip
def test_the_optimism_of_choices_equals_that_by_definition(n_classes, kind, shrinkage):
    X, y, weight, groups = noise_table(n_classes, kind)
    forest = AUCForestClassifier(60, shrinkage=shrinkage, **NOISE_PARAMS).fit(X, y, weight, groups=groups)
    is_auto = shrinkage == "auto"
    trees = trees_of(forest, X, y, weight, AMOUNTS if is_auto else [_evidence.COMPARISON_AMOUNT, shrinkage], groups)
    prior = list(AMOUNTS).index(forest._prior_amount) if is_auto else 1
    expected = optimism(trees, prior, ENCODING_FACTOR, chooses_amount=is_auto)
    assert (forest.oob_optimism_ != 0.0) == (kind != "numbers" or is_auto)
    assert forest.oob_optimism_ == pytest.approx(expected, abs=1e-12)
    forest.set_params(oob_score=False).fit(X, y, weight)
    assert not hasattr(forest, "oob_optimism_")


def test_encodings_that_were_not_chosen_have_no_optimism():
    """Encodings are chosen after four trees of each."""
    X, y, _, _ = noise_table(2, "categories")
    assert AUCForestClassifier(8, shrinkage=2.0, **NOISE_PARAMS).fit(X, y).oob_optimism_ == 0.0


@pytest.mark.parametrize("sampling", ["bootstrap", "balanced"])
def test_the_choice_from_all_rows_is_that_of_the_fit(sampling, monkeypatch):
    """With three classes the AUC depends on calibration."""
    amounts, choose = [], _evidence.OutOfBagSelector.choose_amount

    def record(self, *args):
        amounts.append(choose(self, *args))
        return amounts[-1]

    monkeypatch.setattr(_evidence.OutOfBagSelector, "choose_amount", record)
    table, labels = make_table(n_rows=400, n_classes=3, seed=2, missing=0.1)
    forest = small_forest(110, sampling=sampling, oob_score=True, random_state=3).fit(table, labels)
    assert len(amounts) == 12  # by the fit, and in `optimism` by all rows and without each tenth
    assert amounts[0] == amounts[1] == forest.shrinkage_


def test_the_optimism_is_subtracted_from_the_score_of_a_stack(monkeypatch):
    X, y, _, _ = noise_table(2, "categories")
    scores = []
    for value in (0.0, 0.125):
        monkeypatch.setattr(_evidence.OutOfBagSelector, "optimism", lambda *args, value=value, **params: value)
        stack = AUCStackingClassifier(AUCForestClassifier(60), oob_score=True, random_state=1)
        scores.append(stack.fit(X, y).oob_score_)
    assert scores[1] == pytest.approx(scores[0] - 0.125, abs=1e-12)


def test_parts_without_a_class_are_left_out_of_the_optimism():
    """Each part has one or two positive rows, some of which are in the samples of all trees."""
    X, *_ = noise_table(2, "numbers")
    forest = AUCForestClassifier(5, oob_score=True, random_state=1).fit(X, np.arange(240) % 20 == 0)
    assert np.isfinite(forest.oob_optimism_)


def test_a_warm_start_chooses_anew():
    table, labels = make_noisy(1200)
    forest, whole = (small_forest(n, max_features=None, random_state=1).fit(table, labels) for n in (1, 20))
    assert whole.shrinkage_ != forest.shrinkage_
    forest.set_params(n_estimators=20, warm_start=True).fit(table, labels)
    assert forest.shrinkage_ == whole.shrinkage_
    np.testing.assert_array_equal(forest.predict_proba(table), whole.predict_proba(table))
    plain = forest.set_params(shrinkage=None, calibration=None, n_estimators=21).fit(table, labels)
    np.testing.assert_allclose(plain.predict_proba(table), by_hand(plain, table, 0.0), atol=1e-14)


def test_classes_of_few_rows():
    assert small_forest(30).fit(X, np.where(np.arange(240) == 7, 2, Y)).shrinkage_ in AMOUNTS
    assert small_forest(1).fit(X[:2], [0, 1]).shrinkage_ == PRIOR


@pytest.mark.filterwarnings("ignore:y has")
def test_too_many_classes_to_choose_by():
    table = np.random.default_rng(0).normal(size=(3000, 3))
    assert small_forest(1, max_depth=3).fit(table, np.arange(3000) // 2).shrinkage_ == PRIOR


@pytest.mark.parametrize("criterion", ["auc", "auto"])
@pytest.mark.parametrize("shrinkage", ["auto", None, _evidence.COMPARISON_AMOUNT, 7.5])
@pytest.mark.parametrize(("table", "labels"), [(X, Y), (X3, Y3)], ids=["two", "three"])
def test_a_plan_reserves_what_scores_take(table, labels, shrinkage, criterion, monkeypatch):
    selectors, add = [], _evidence.OutOfBagSelector.add

    def record(selector, *args):
        selectors.append(selector)
        add(selector, *args)

    monkeypatch.setattr(_evidence.OutOfBagSelector, "add", record)
    forest = small_forest(shrinkage=shrinkage, criterion=criterion)
    rows = forest._validate_rows(table, labels, None)
    forest._fit_rows(rows, forest._start())
    sums = selectors[0]._sums
    # For each half and for both, means are scored. The sums of both are computed, too.
    n_bytes = sum(array.nbytes for array in sums) + 4 * sums.whole[0].nbytes
    assert n_bytes == rows._spec.evidence_bytes > 0


@pytest.mark.parametrize(
    ("n_classes", "n_rows", "n_variants", "n_scored"),
    [(2, 1_000, 8, 500), (2, 20_000, 8, 2048), (26, 5_200, 8, 48), (26, 20_800, 8, 100), (26, 260_000, 8, 157),
     (362, 7_240, 8, 2), (363, 7_260, 8, 0), (512, 10_240, 1, 2), (513, 10_260, 1, 0)],
)  # fmt: skip
def test_numbers_of_scored_rows_of_a_class(n_classes, n_rows, n_variants, n_scored):
    """With 26 classes, 2**15 / 26 rows are scored, or an eighth of the rows if this is more, but at most 4096.

    No rows are scored with more classes than the docstring of `calibration` says.
    """
    labels = np.arange(n_rows, dtype=np.uint16) % n_classes
    rows = _evidence.rows_to_score(labels, n_classes, n_variants, seed=3)
    assert np.array_equal(rows, np.unique(rows))
    assert set(np.bincount(labels[rows], minlength=n_classes)) == {n_scored}

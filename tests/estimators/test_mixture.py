"""Mixed forests: the variant of every tree, and `mixture_`."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from aucforest import AUCForestClassifier
from aucforest.distributed import fit_out_of_core
from aucforest.estimators._evidence import SCORED_TREES, OutOfBagSelector
from aucforest.estimators._mixture import stages_of
from aucforest.estimators.out_of_bag import training_rows
from aucforest.fitting.spec import BUILT_IN, SPLITTERS
from tests.estimators.data import assert_same_fit, make_noisy, make_table, own_auc
from tests.reference.metrics import auc, hand_till

X, Y = make_table(n_rows=400, n_features=6, missing=0.1)
X3, Y3 = make_table(n_rows=400, n_classes=3, seed=1)
ALL = [(criterion, splitter) for splitter in SPLITTERS for criterion in BUILT_IN]


def mixed(n_estimators=120, **params):
    return AUCForestClassifier(n_estimators, **{"random_state": 0, "max_depth": 5, **params})


def weights_by_hand(forest, table, labels, n_trees, weight=None):
    """Return the weights of the variants after n_trees trees, by the definition in docs/mathematics/forests.md."""
    n_classes = len(forest.classes_)
    values = np.stack([tree.predict_proba(table) for tree in forest.estimators_[:n_trees]])
    out = (training_rows(forest, table, labels, weight).counts(range(n_trees)) == 0).T
    index = np.array([ALL.index(variant) for variant in forest.variants_[:n_trees]])
    n_of = np.bincount(index, minlength=8)

    def score(times):
        n = np.einsum("t,tn->n", times, out)
        seen = n > 0
        proba = np.einsum("t,tn,tnk->nk", times, out, values)[seen] / n[seen, None]
        weights = None if weight is None else weight[seen]
        if n_classes == 2:
            return auc(labels[seen] == 1, proba[:, 1], weights)
        return hand_till(labels[seen], proba, n_classes, weights)

    ones = np.ones(n_trees)
    gains = np.array([score(ones + (index == v) * n_of.mean() / n_of[v]) for v in range(8)]) - score(ones)
    n_rows = n_classes**2 / (4 * np.sum(1 / np.bincount(labels)))
    weights = np.exp(2 * n_rows * (gains - gains.max()))
    return weights / weights.sum()


@pytest.mark.parametrize(("table", "labels", "weight"), [
    (X, Y, None), (X3, Y3, None), (X, Y, np.random.default_rng(0).choice([0.5, 1.0, 3.0], len(X))),
], ids=["two", "three", "weights"])  # fmt: skip
def test_trees_go_to_the_variants_that_earn_them(table, labels, weight):
    forest = mixed(shrinkage=1.0).fit(table, labels, weight)
    assert forest.variants_[:32] == ALL * 4
    n_trees = np.full(8, 4)
    for start, stop in ((32, SCORED_TREES), (SCORED_TREES, 120)):
        weights = weights_by_hand(forest, table, labels, start, weight)
        assert np.ptp(weights) > 0.01
        for number in range(start, stop):
            variant = int(np.argmax(weights * (number + 1) - n_trees))
            assert forest.variants_[number] == ALL[variant], number
            n_trees[variant] += 1
    assert list(zip(forest.mixture_["criterion"], forest.mixture_["splitter"])) == ALL
    np.testing.assert_array_equal(forest.mixture_["n_trees"], n_trees)
    np.testing.assert_allclose(forest.mixture_["proportion"], n_trees / 120)


def test_variants_do_not_depend_on_what_is_chosen_afterwards():
    first, *others = (
        mixed(60, sampling="balanced", **params).fit(X3, Y3).variants_
        for params in ({}, {"shrinkage": 0.0}, {"calibration": None}, {"threshold": "prevalence"})
    )
    assert others == [first] * 3


def test_a_class_without_weight_is_as_if_absent():
    weight = np.where(Y3 == 1, 0.0, 1.0)
    forest, two = mixed(60).fit(X3, Y3, weight), mixed(60).fit(X3[Y3 != 1], Y3[Y3 != 1])
    assert forest.variants_ == two.variants_


def test_a_fit_that_finds_half_of_its_trees_is_the_same(tmp_path):
    pd.DataFrame(X).add_prefix("x").assign(y=Y).to_parquet(tmp_path / "table.parquet")
    whole, again = mixed(120), mixed(120)
    for forest in (whole, again):
        fit_out_of_core(forest, tmp_path / "table.parquet", "y", folder=tmp_path / "folder")
        for path in sorted((tmp_path / "folder").glob("trees-*"))[::2]:
            path.unlink()
    assert_same_fit(again, whole)


def test_scores_of_variants():
    forest = mixed(96, shrinkage=1.0, criterion=["auc", "gini"], splitter="best").fit(X, Y)
    out = training_rows(forest, X, Y, None).counts(range(96)) == 0
    values = np.stack([tree.predict_proba(X)[:, 1] for tree in forest.estimators_])
    for index, criterion in enumerate(["auc", "gini"]):
        some = np.array([name == criterion for name, _ in forest.variants_])
        n = out[:, some].sum(axis=1)
        mean = np.einsum("tn,nt->n", values[some], out[:, some])[n > 0] / n[n > 0]
        score = forest.mixture_["oob_score"][index]
        assert score == pytest.approx(auc(Y[n > 0] == 1, mean))
        # Hanley and McNeil (1982), equation 1
        n1, n0 = np.count_nonzero(Y == 1), np.count_nonzero(Y == 0)
        q1, q2 = score / (2 - score), 2 * score**2 / (1 + score)
        variance = (score * (1 - score) + (n1 - 1) * (q1 - score**2) + (n0 - 1) * (q2 - score**2)) / (n1 * n0)
        assert forest.mixture_["oob_score_std"][index] == pytest.approx(np.sqrt(variance))


@pytest.mark.parametrize("n_first", [10, 40, 100])
def test_a_forest_begins_with_the_trees_of_a_smaller_one(n_first):
    whole, grown = mixed(120).fit(X, Y), mixed(n_first, warm_start=True).fit(X, Y)
    assert grown.variants_ == whole.variants_[:n_first]
    assert_same_fit(grown.set_params(n_estimators=120).fit(X, Y), whole)


def test_trees_of_other_criteria_come_before():
    forest = mixed(20, criterion="hellinger", warm_start=True).fit(X, Y)
    forest.set_params(criterion=["auc", "gini"], n_estimators=60).fit(X, Y)
    assert forest.variants_[:20] == [("hellinger", "best")] * 20
    mixture = forest.mixture_
    counted = zip(zip(mixture["criterion"], mixture["splitter"]), mixture["n_trees"])
    assert {name: n for name, n in counted if n > 0} == Counter(forest.variants_[20:])
    assert np.all(np.isfinite(mixture["oob_score"][mixture["n_trees"] > 0]))
    with pytest.warns(UserWarning, match="no tree is added"):
        forest.set_params(criterion="auto").fit(X, Y)
    assert forest.mixture_["n_trees"].sum() == 60


def test_trees_of_other_criteria_are_scored_for_shrinkage():
    table, labels = make_noisy(1500)
    forest = AUCForestClassifier(100, criterion="gini", max_features=None, warm_start=True, random_state=0)
    first = forest.fit(table, labels).shrinkage_
    assert first > 5.0
    assert forest.set_params(criterion="auc", n_estimators=101).fit(table, labels).shrinkage_ == first


def test_without_evidence_all_variants_have_as_many_trees():
    forest = mixed(40, bootstrap=False).fit(X, Y)
    assert forest.variants_ == ALL * 5
    assert np.all(np.isnan(forest.mixture_["oob_score"]))
    assert set(mixed(40).fit(X, np.where(np.arange(400) == 7, 1, 0)).mixture_["n_trees"]) <= {4, 5, 6}


def test_a_tree_of_the_forest_knows_its_variant():
    forest = mixed(10, criterion=["auc", own_auc], splitter="best", warm_start=True).fit(X, Y)
    assert forest.variants_[:2] == [("auc", "best"), ("own_auc()", "best")]
    assert [tree.criterion for tree in forest.estimators_[:2]] == ["auc", own_auc]
    forest.set_params(criterion="gini", splitter=["random"], n_estimators=11).fit(X, Y)
    tree = forest.estimators_[10]
    assert (tree.criterion, tree.splitter) == ("gini", "random")
    assert (forest.estimators_[0].criterion, forest.estimators_[0].splitter) == ("auc", "best")


@pytest.mark.parametrize(("encoding", "n_scored"), [("sets", SCORED_TREES), ("auto", 200)])
def test_all_trees_are_scored_if_they_have_several_encodings(encoding, n_scored, monkeypatch):
    scored, add = set(), OutOfBagSelector.add

    def record(selector, first, trees, variants, encodings):
        scored.update(range(first, first + len(trees)))
        add(selector, first, trees, variants, encodings)

    monkeypatch.setattr(OutOfBagSelector, "add", record)
    shop = pd.Categorical(np.arange(len(Y)) % 60)
    forest = AUCForestClassifier(200, criterion="auc", categorical_encoding=encoding, random_state=0)
    forest.fit(pd.DataFrame(X).add_prefix("x").assign(shop=shop), Y)
    assert scored == set(range(n_scored))


def test_stages_end_where_variants_are_evaluated():
    assert stages_of(8, 1, 300) == [range(32), range(32, 96), range(96, 300)]
    assert stages_of(8, 3, 300) == [range(32), range(32, 96), range(96, 192), range(192, 300)]
    assert stages_of(1, 2, 100) == [range(8), range(8, 96), range(96, 100)]
    assert stages_of(1, 1, 300) == [range(300)]

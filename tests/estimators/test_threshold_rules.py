"""Threshold rules: tuned out of bag, tuned on other samples, and fixed."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from aucforest import load
from aucforest.metrics.thresholds import decide
from tests.estimators.data import UNSCORED, WEIGHT, X3, Y3, best_threshold, make_rare, refuse, small_forest
from tests.estimators.test_out_of_bag import take
from tests.persistence.trees import assert_same_trees

X, Y = make_rare(300, seed=2)

LABELS = "common", "rare"
COST = {"cost": [[-1, 2], [9, 0.5]]}
BOUNDS = [{"alerts": 0.1}, {"alerts": 40}, {"precision": 0.15}, {"recall": 0.8}, {"fpr": 0.2}]
BUDGET = {"alerts": 0.1} | COST
RULES = ["gmean", "youden", "f1", COST, *BOUNDS, BUDGET]


@pytest.mark.filterwarnings(UNSCORED)
@pytest.mark.parametrize(("rule", "params", "weight"), [
    *((rule, {"sampling": "balanced"}, None) for rule in ("gmean", COST, *BOUNDS[:4], BUDGET)),
    *((rule, {"n_estimators": 6, "shrinkage": 0}, WEIGHT) for rule in ("youden", "f1", *BOUNDS[1:3], BOUNDS[4])),
], ids=lambda value: "weighted" if value is WEIGHT else str(value))  # fmt: skip
def test_rules_that_are_tuned(rule, params, weight):
    forest = small_forest(threshold=rule, oob_score=True, **{"n_estimators": 30, **params}).fit(X, Y, weight)
    seen = ~np.isnan(forest.oob_decision_function_[:, 1])
    # The number of alerts is for all training rows.
    n_rows = 300 if weight is None else np.count_nonzero(weight)
    known = Y[seen] == "rare", forest.oob_decision_function_[seen, 1], take(weight, seen)
    assert forest.threshold_ == best_threshold(rule, *known, n_rows=n_rows)
    assert forest.threshold_std_ > 0
    proba = forest.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(forest.predict(X), np.where(proba >= forest.threshold_, "rare", "common"))
    assert_same_trees(forest.trees_, clone(forest).set_params(threshold=None).fit(X, Y, weight).trees_)
    jobs = clone(forest).set_params(n_jobs=2).fit(X, Y, weight)
    assert (jobs.threshold_, jobs.threshold_std_) == (forest.threshold_, forest.threshold_std_)


@pytest.mark.slow
def test_the_spread_of_a_threshold():
    """The threshold varies less with more trees, and about as much as between forests of other seeds."""

    def fit(n_trees, seed):
        return small_forest(n_trees, threshold="gmean", random_state=seed).fit(X, Y)

    spreads = [np.mean([fit(n_trees, seed).threshold_std_ for seed in range(3)]) for n_trees in (20, 200)]
    assert 0 < 1.3 * spreads[1] < spreads[0]
    assert 0.5 < spreads[0] / np.std([fit(20, seed).threshold_ for seed in range(20)]) < 2.0


def test_many_rows_have_the_spread_of_some_of_them(monkeypatch):
    """The threshold itself is tuned on all rows."""
    for rule in ("gmean", {"alerts": 40}):
        whole = small_forest(threshold=rule, n_estimators=60).fit(X, Y, WEIGHT)
        with monkeypatch.context() as fewer:
            fewer.setattr("aucforest.estimators._forest_fit.THRESHOLD_STD_ROWS", 120)
            some, again = (small_forest(threshold=rule, n_estimators=60, n_jobs=n).fit(X, Y, WEIGHT) for n in (1, 2))
        assert some.threshold_ == whole.threshold_
        assert some.threshold_std_ == again.threshold_std_ != whole.threshold_std_
        assert whole.threshold_std_ / 4 < some.threshold_std_ < whole.threshold_std_ * 4


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "weighted"])
@pytest.mark.parametrize("alerts", [{}, {"alerts": 0.08}], ids=["any", "few"])
def test_costs_of_rows(alerts, weight, tmp_path):
    """Costs are in the rule or an argument of fit, with and without a maximum number of alerts."""
    costs = np.zeros((300, 2, 2))
    costs[:, 0, 1], costs[:, 1, 0] = np.random.default_rng(1).exponential([1.0, 20.0], (300, 2)).T
    rule, rule_of_file = alerts | {"cost": costs}, alerts | {"cost": "fit"} if alerts else "cost"
    forest = small_forest(30, oob_score=True, threshold=rule).fit(X, Y, weight)
    seen = ~np.isnan(forest.oob_decision_function_[:, 1])
    known = Y[seen] == "rare", forest.oob_decision_function_[seen, 1], take(weight, seen)
    assert 0.0 < forest.threshold_ == best_threshold(alerts | {"cost": costs[seen]}, *known) < 1.0
    routed = clone(forest).set_params(threshold=rule_of_file).fit(X, Y, weight, cost=costs)
    assert routed.oob_score_ == forest.oob_score_
    later = small_forest(30).fit(X, Y, weight).set_threshold(rule, X, Y, weight)
    for model in (later, routed):
        assert (model.threshold_, model.threshold_std_) == (forest.threshold_, forest.threshold_std_)
        model.save(tmp_path / "model")
        loaded = load(tmp_path / "model").set_params(warm_start=True, n_estimators=40)
        assert (loaded.threshold_, loaded.threshold) == (forest.threshold_, rule_of_file)
        # The costs of the rows are not in the file.
        with pytest.raises(ValueError, match=f"^threshold={rule_of_file!r} needs the costs of errors for each sample"):
            loaded.fit(X, Y, weight)
        assert len(loaded) == 30
    grown = loaded.fit(X, Y, weight, cost=costs)
    assert grown.threshold_ == clone(forest).set_params(n_estimators=40).fit(X, Y, weight).threshold_


@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_threshold_of_other_samples(bootstrap):
    (table, y), weights = make_rare(200, seed=5), WEIGHT[:200]
    forest = small_forest(20, threshold="gmean" if bootstrap else None, bootstrap=bootstrap).fit(X, Y)
    scores = forest.predict_proba(table)[:, 1]
    for rule in RULES:
        assert forest.set_threshold(rule, table, y, weights, oob=False) is forest
        best = best_threshold(rule, y == "rare", scores, weights, n_rows=np.count_nonzero(weights))
        assert (forest.threshold, forest.threshold_) == (rule, best)
        assert not hasattr(forest, "threshold_std_")
    assert forest.set_threshold("prevalence", oob=False).threshold_ == np.mean(Y == "rare")


def test_the_spread_of_one_tree_is_unknown():
    assert np.isnan(small_forest(1, threshold="f1").fit(X, Y).threshold_std_)
    assert small_forest(2, threshold="f1").fit(X, Y).threshold_std_ >= 0


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "weighted"])
def test_prevalence(weight):
    weights = np.ones(300) if weight is None else weight
    forest = small_forest(30, threshold="prevalence").fit(X, Y, weight)
    share = weights[Y == "rare"].sum() / weights.sum()
    assert forest.threshold_ == pytest.approx(share)
    np.testing.assert_allclose(forest.class_prior_, [1 - share, share])
    assert not hasattr(forest, "threshold_std_")
    np.testing.assert_array_equal(forest.predict(X) == "rare", forest.predict_proba(X)[:, 1] >= share)
    many = small_forest(30, threshold="prevalence").fit(X3, Y3, weight)
    np.testing.assert_allclose(many.threshold_, np.bincount(Y3, weights) / weights.sum())
    np.testing.assert_array_equal(many.predict(X3), (many.predict_proba(X3) / many.class_prior_).argmax(axis=1))
    assert np.any(many.predict(X3) != many.predict_proba(X3).argmax(axis=1))


def test_costs_of_many_classes():
    cost = np.array([[0, 1, 2], [2, 0, 1], [4, 3, 1]])
    forest = small_forest(10, threshold={"cost": cost.tolist()}).fit(X3, Y3)
    expected = np.argmin([row @ cost for row in forest.predict_proba(X3)], axis=1)
    np.testing.assert_array_equal(forest.predict(X3), expected)
    assert np.bincount(expected, minlength=3).min() > 0
    np.testing.assert_array_equal(forest.threshold_, cost)
    assert forest.pos_label_ is None
    small_forest(3, threshold={"cost": cost}, bootstrap=False).fit(X3, Y3)


def test_ties_and_absent_classes():
    def decided(proba, threshold, **fitted):
        model = SimpleNamespace(classes_=np.arange(len(proba[0])), threshold_=threshold, **fitted)
        return decide(model, np.array(proba)).tolist()

    assert decided([[0.5, 0.5], [0.6, 0.4]], 0.4) == [1, 1]
    assert decided([[0.5, 0.5], [0.4, 0.6], [0.3, 0.7]], 0.4, pos_label_=0) == [0, 0, 1]
    assert decided([[0.5, 0.5]], None) == decided([[0.5, 0.5]], None, pos_label_=0) == [0]
    assert decided([[0.7, 0.0, 0.3], [0.9, 0.0, 0.1]], np.array([0.8, 0.0, 0.2])) == [2, 0]


BAD = [
    *(({"threshold": rule}, f"'threshold' parameter .* Got {rule!r} instead") for rule in ("best", 1.5, np.nan)),
    ({"threshold": {"costs": 1}}, r"^threshold must be a dict with .* 'alerts', 'cost', but has the keys \['costs'\]$"),
    ({"threshold": {"fpr": 0.1} | COST}, r"has the keys \['fpr', 'cost'\]$"),
    ({"threshold": {"alerts": 5, "cost": 1}}, "^threshold: cost must be a 2 x 2 matrix"),
    ({"threshold": {"recall": 2}}, r"^threshold: recall must be in \(0, 1\], but is 2$"),
    ({"threshold": {}}, r"^threshold must be a dict with a single key, .* has the keys \[\]$"),
    ({"threshold": {"alerts": 301}}, "^threshold: alerts must be from 1 to 300, the number"),
    ({"threshold": {"cost": np.ones((5, 2, 2)) - np.eye(2)}}, "^threshold: cost has 5 matrices, but there are 300"),
    ({"threshold": {"cost": [[0, np.nan], [1, 0]]}}, "^threshold: cost must be a 2 x 2 matrix of finite numbers"),
    ({"threshold": {"cost": [[0, -1], [1, 0]]}}, r"^threshold: cost\[i\]\[j\] of an error must be"),
    ({"threshold": {"fpr": 0.1}, "bootstrap": False}, "^threshold={'fpr': 0.1} needs out-of-bag samples: set"),
    ({"threshold": "f1", "sampling": "subsample", "max_samples": 1.0}, "^threshold='f1' needs out-of-bag samples of"),
]
BAD_COSTS = [
    ("cost", None, Y, r"^threshold='cost' needs the costs of errors for each sample: fit\(X, y, cost=...\), or"),
    ("gmean", np.ones((300, 2, 2)), Y, "^cost needs threshold='cost' or .*, but threshold is 'gmean'$"),
    ({"alerts": 9}, np.ones((300, 2, 2)), Y, "'cost': 'fit'}, but threshold is {'alerts': 9}$"),
    ("cost", [[0, 1], [9, 0]], Y, r"^cost must have the shape \(300, 2, 2\), but has the shape \(2, 2\): pass one"),
    ("cost", np.zeros((299, 2, 2)), Y, "^cost has 299 matrices, but there are 300 samples$"),
    ("cost", np.zeros((300, 2, 2)), Y, "^cost is the same for errors and correct predictions$"),
    ("cost", np.zeros((300, 2, 2)), Y3, "^threshold='cost' needs two classes, but y has 3$"),
]
OF_TWO = [*(("threshold", rule) for rule in ("gmean", 0.3, {"alerts": 5}, {"alerts": 5, "cost": 1})), ("pos_label", 1)]


@pytest.mark.parametrize(("params", "message", "y", "cost"), [
    *((params, message, Y, None) for params, message in BAD),
    *(({"threshold": rule}, message, y, cost) for rule, cost, y, message in BAD_COSTS),
    *(({name: value}, f"^{name}={value!r} needs two classes, but y has 3$", Y3, None) for name, value in OF_TWO),
])  # fmt: skip
def test_bad_thresholds(params, message, y, cost):
    refuse(small_forest(**params), message, X, y, cost=cost)


def test_a_warm_start_tunes_anew():
    forest = small_forest(10, threshold="f1", warm_start=True).fit(X, Y).set_params(n_estimators=30).fit(X, Y)
    assert forest.threshold_ == small_forest(30, threshold="f1").fit(X, Y).threshold_
    with pytest.raises(ValueError, match=r"^warm_start: threshold='f1' needs the same bootstrap .*, not 300 of 300"):
        forest.set_params(n_estimators=40, max_samples=0.5).fit(X, Y)
    assert len(forest) == 30
    cost = small_forest(3, threshold={"cost": 1 - np.eye(3)}, warm_start=True, calibration=None).fit(X3, Y3)
    assert len(cost.set_params(n_estimators=5, max_samples=0.5).fit(X3, Y3)) == 5


@pytest.mark.filterwarnings(UNSCORED)
@pytest.mark.parametrize("rule", ["f1", COST, {"alerts": 40}, BUDGET, "prevalence", 0.3], ids=str)
def test_the_positive_class_may_be_the_first(rule):
    y, is_positive = np.where(Y == "rare", "a rare one", "common"), Y == "rare"
    # costs are in the order of the classes
    given = rule | {"cost": [[0.5, 9], [2, -1]]} if rule in (COST, BUDGET) else rule
    forest = small_forest(20, threshold=given, pos_label="a rare one", oob_score="recall").fit(X, y)
    assert (forest.classes_.tolist(), forest.pos_label_) == (["a rare one", "common"], "a rare one")
    expected = is_positive.mean() if rule == "prevalence" else rule
    for is_out_of_bag, scores in ((True, forest.oob_decision_function_[:, 0]), (False, forest.predict_proba(X)[:, 0])):
        if rule in RULES:
            seen = np.isfinite(scores)
            expected = best_threshold(rule, is_positive[seen], scores[seen], n_rows=300)
            forest.set_threshold(given, X, y, oob=is_out_of_bag)
        assert forest.threshold_ == pytest.approx(expected, rel=1e-15)
    assert 0.0 < forest.oob_score_ < 1.0 or rule == BUDGET  # with few alerts the recall may be 0
    np.testing.assert_array_equal(forest.predict(X) == "a rare one", scores >= forest.threshold_)


def test_trees_and_probabilities_do_not_depend_on_it():
    first, other, again = (small_forest(10, threshold="f1", pos_label=label).fit(X, Y) for label in (None, *LABELS))
    for forest in (other, again):
        assert_same_trees(first.trees_, forest.trees_)
    assert (first.pos_label_, other.pos_label_, again.pos_label_) == ("rare", "common", "rare")
    assert first.threshold_ == again.threshold_
    labels = other.predict(X)
    other.set_params(pos_label=None)  # changes nothing before the next fit
    np.testing.assert_array_equal(other.predict(X), labels)
    assert other.pos_label_ == "common"


def test_alerts_beyond_the_rows_of_positive_weight_are_all_rows():
    forest = small_forest(20, threshold={"alerts": 150}).fit(X, Y, np.where(np.arange(300) < 100, 1.0, 0.0))
    assert forest.threshold_ <= forest.predict_proba(X[:100])[:, 1].max()

"""The members of a stack, the evidence for them, and their combination."""

import tracemalloc

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.utils.class_weight import compute_sample_weight

from aucforest import AUCForestClassifier
from aucforest.estimators import _boosted, _stack_fit
from aucforest.estimators._boosted import fit_boosted
from aucforest.fitting.out_of_bag import parts_of_rows
from tests.estimators.data import GROUPS, WEIGHT, X3, Y3, assert_same, make_table, small_forest
from tests.estimators.rated import make_interaction
from tests.estimators.stacks import fitted_state, small_stack
from tests.estimators.test_calibration import rarer_size
from tests.persistence.trees import assert_same_trees
from tests.reference import stacking as reference

X, Y = make_table(n_rows=300, missing=0.05)
FILLED = np.nan_to_num(X)


class Recorder(LogisticRegression):
    """Records the groups that it is fitted to and predicts, which are in the last column."""

    calls: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.calls.append(("fit", set(X[:, -1])))
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X):
        self.calls.append(("predict", set(X[:, -1])))
        return super().predict_proba(X)


@pytest.mark.parametrize(("n_classes", "weight", "params"), [
    (2, None, {}), (3, WEIGHT, {}), (3, None, {"class_weight": {0: 1.0, 1: 5.0, 2: 2.0}}),
    (3, WEIGHT, {"class_weight": "balanced"}), (3, None, {"class_weight": "balanced_subsample"}),
    (2, WEIGHT, {"sampling": "balanced"}), (2, None, {"calibration": None, "criterion": "gini"}),
])  # fmt: skip
def test_members_and_combination_are_those_by_hand(n_classes, weight, params, monkeypatch):
    boosted = []
    monkeypatch.setattr(_stack_fit, "fit_boosted", lambda *given: boosted.append(fit_boosted(*given)) or boosted[0])
    table, y = (FILLED, Y) if n_classes == 2 else (X3, Y3)
    stack = small_stack(stack={"linear": LogisticRegression(), "penalty": 2.0}, **params).fit(table, y, weight)
    forest = small_forest(30, oob_score=True, **params).fit(table, y, weight)
    p = forest.oob_decision_function_
    given, of_class = np.ones(300) if weight is None else weight, params.get("class_weight")
    # "balanced" is by the sample weights
    balanced = given.sum() / (n_classes * np.bincount(y, given))[y]
    given = given * (balanced if isinstance(of_class, str) else compute_sample_weight(of_class, y))
    kept = given > 0.0
    given = given / given[kept].mean()
    residual = clone(stack.members_["residual"]).fit(table, y, given * np.where(kept, 1.0 - p[np.arange(300), y], 0.0))
    assert_same_trees(residual.trees_, stack.members_["residual"].trees_)
    linear, of_kept = np.full_like(p, np.nan), (table[kept], y[kept], given[kept])
    for fold in range(5):
        inside = parts_of_rows(y[kept], None) % 5 == fold
        fitted = LogisticRegression().fit(*(values[~inside] for values in of_kept))
        linear[np.flatnonzero(kept)[inside]] = fitted.predict_proba(table[kept][inside])
    expected = LogisticRegression().fit(*of_kept)
    np.testing.assert_allclose(stack.members_["linear"].predict_proba(table), expected.predict_proba(table), rtol=1e-5)

    def scores(p, q, s, r):
        return [np.log(p), reference.residual_score(np.clip(q, 1e-9, None), p), s, np.log(r)]

    of_rows = [score[kept] for score in scores(p, residual.oob_decision_function_, boosted[0].scores, linear)]
    weights = given[kept] * (given[kept].sum() / np.sum(given[kept] ** 2))
    coef, intercept = reference.combine(of_rows, y[kept], weights, 2.0 * (1.0 + 600.0 / rarer_size(y, given)))
    np.testing.assert_allclose(stack.weights_, coef, atol=1e-3)
    np.testing.assert_allclose(stack.intercepts_, intercept, atol=1e-3)
    sums = boosted[0].scale * stack.members_["boosted"].predict_proba(table)
    of_new = scores(*(model.predict_proba(table) for model in (forest, residual)), sums, expected.predict_proba(table))
    for found, members, rows in ((stack.oob_decision_function_[kept], of_rows, range(kept.sum())),
                                 (stack.predict_proba(table), of_new, range(300))):  # fmt: skip
        by_hand = np.exp([reference.class_scores(coef, intercept, members, row) for row in rows])
        np.testing.assert_allclose(found, by_hand / by_hand.sum(axis=1, keepdims=True), atol=1e-3)
    assert np.isnan(stack.oob_decision_function_[~kept]).all()
    np.testing.assert_array_equal(np.isfinite(boosted[0].scores), np.repeat(kept[:, None], n_classes, axis=1))


class Other(LogisticRegression):
    """Returns something else in place of its probabilities, or has other classes."""

    def __init__(self, change=None, classes=None):
        super().__init__()
        self.change, self.classes = change, classes

    def fit(self, X, y):
        super().fit(X, y)
        self.classes_ = self.classes_ if self.classes is None else np.array(self.classes)
        return self

    def predict_proba(self, X):
        return self.change(super().predict_proba(X))


@pytest.mark.parametrize(("linear", "sentence"), [
    (Other(np.log), "predict_proba returned -.*, which is no probability"),
    (Other(lambda proba: 9 * proba), "predict_proba returned .*, which is no probability"),
    (Other(lambda proba: proba[:, 1:]), r"predict_proba returned .* \(60, 1\), but must .* \(60, 2\)"),
    (Other(lambda proba: proba.astype(str)), "predict_proba returned <U"),
    (Other(np.array, [1, 2]), r"has the classes_ \[1, 2\], which are not labels from 0 to 1"),
], ids=["logarithms", "scores", "one column", "text", "other classes"])  # fmt: skip
@pytest.mark.usefixtures("nothing_grows")
def test_a_linear_model_that_predicts_no_probabilities(linear, sentence):
    with pytest.raises(ValueError, match=f"^linear: Other:? {sentence}"):
        small_stack(stack={"linear": linear}).fit(FILLED, Y)


def test_a_linear_model_that_predicts_none_for_new_rows():
    stack = small_stack(20, stack={"linear": Other(np.array), "residual": False, "boosted": False}).fit(FILLED, Y)
    stack.members_["linear"].change = lambda proba: np.where(proba > 0.5, np.nan, proba)
    with pytest.raises(ValueError, match=r"^linear: Other: predict_proba returned nan, which is no probability$"):
        stack.predict_proba(FILLED)


@pytest.mark.parametrize(("params", "data", "sentence"), [
    ({"threshold": "gmean"}, (X3, Y3), "^threshold='gmean' needs two classes, but y has 3$"),
    ({"linear": LogisticRegression()}, (X, Y), "Input X contains NaN"),
    ({"linear": Other(np.array)}, (FILLED, Y, WEIGHT), r"^linear: Other\.fit takes no sample_weight"),
    ({}, (X, np.zeros(300)), "^y has only one class"),
    ({}, (X, Y, np.zeros(300)), "^Sample weights must contain at least one non-zero number"),
], ids=lambda value: str(value)[:20] if isinstance(value, str) else "")  # fmt: skip
@pytest.mark.usefixtures("nothing_grows")
def test_what_can_be_known_before_the_forest_is_grown(params, data, sentence):
    with pytest.raises(ValueError, match=sentence):
        small_stack(stack=params).fit(*data)


def test_boosted_trees_that_do_not_fit_into_memory(monkeypatch):
    monkeypatch.setattr(_boosted, "_ROW_BYTES", 10**15)
    monkeypatch.setattr(_boosted, "Booster", None)  # nothing is grown
    stack = small_stack()
    with pytest.raises(ValueError, match=r"^the boosted trees of the stack: growing 5 trees .*; or set boosted=False$"):
        stack.fit(X, Y)
    assert not hasattr(stack, "members_")


def test_memory_of_boosted_trees_is_planned(monkeypatch):
    """The plan is within a third of the peak of the memory while trees are grown."""
    found, code = [], AUCForestClassifier._code
    monkeypatch.setattr(_boosted, "_MOST_STAGES", 2)
    small_stack(stack={"n_jobs": 1}).fit(X, Y)  # compiles

    def code_and_trace(model, table, spec):
        found.append(spec.evidence_bytes)
        coding = code(model, table, spec)
        tracemalloc.stop()
        tracemalloc.start()
        return coding

    monkeypatch.setattr(AUCForestClassifier, "_code", code_and_trace)
    table, y = make_table(20_000, 30)
    try:
        small_stack(max_depth=3, stack={"n_jobs": 1, "linear": None, "residual": False}).fit(table, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.75 < found[-1] / peak < 1.5


@pytest.mark.parametrize("names", [["residual"], ["boosted"], ["linear"], []], ids=str)
@pytest.mark.parametrize(("table", "y"), [(X, Y), (X3, Y3)], ids=["two", "three"])
def test_members_that_are_left_out(table, y, names):
    without = {"linear": None, "residual": False, "boosted": False}.items()
    stack = small_stack(stack={name: value for name, value in without if name not in names}).fit(table, y)
    assert list(stack.members_) == ["forest", *names]
    assert stack.weights_.shape == (len(stack.members_),)
    assert stack.intercepts_.sum() == pytest.approx(0.0, abs=1e-12)
    proba, of_forest = (model.predict_proba(table) for model in (stack, stack.members_["forest"]))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert names or len(stack.classes_) > 2 or spearmanr(proba[:, 1], of_forest[:, 1])[0] == 1.0


@pytest.mark.parametrize("n_rare", [9, 10])
def test_a_rare_class_is_little_evidence(n_rare):
    stack = small_stack(50).fit(FILLED, np.isin(np.arange(300), np.argsort(-FILLED[:, 0])[:n_rare]).astype(int))
    # fewer than 10 samples choose nothing
    np.testing.assert_allclose(stack.weights_, [1.0] if n_rare == 9 else [1, 0, 0, 0], atol=0.15)
    assert list(stack.members_)[:2] == (["forest"] if n_rare == 9 else ["forest", "residual"])
    np.testing.assert_allclose(stack.predict_proba(FILLED), stack.members_["forest"].predict_proba(FILLED), atol=0.15)


def test_few_groups_are_no_evidence():
    groups, noise = np.repeat(np.arange(60), 5), np.random.default_rng(0).normal(size=(60, 3))
    enough, y = (np.where(groups < n, "yes", "no") for n in (10, 9))
    table = np.column_stack((noise[groups], y == "yes"))
    assert small_stack(stack={"threshold": "gmean"}).fit(table, enough, groups=groups).weights_.shape == (4,)
    sentence = "^groups: only 9 groups have samples of class 'yes', fewer than 10: its out-of-bag probabilities are"
    with pytest.warns(UserWarning, match=sentence) as caught:
        stack = small_stack().fit(table, y, groups=groups)
    assert [warning.filename for warning in caught] == [__file__]
    assert stack.weights_.tolist() == [1.0]
    np.testing.assert_allclose(stack.predict_proba(table), stack.members_["forest"].predict_proba(table))
    refused = "^threshold='gmean' cannot be tuned out of bag: only 9 groups have samples of class 'yes', fewer than 10"
    with pytest.raises(ValueError, match=refused):
        small_stack(stack={"threshold": "gmean"}).fit(table, y, groups=groups)
    with pytest.raises(ValueError, match=refused):
        stack.set_threshold("gmean", table, y)


@pytest.mark.parametrize(("params", "groups"), [({}, GROUPS), ({"class_weight": "balanced"}, None)], ids=["groups", ""])
def test_samples_of_weight_0_change_nothing(params, groups):
    kept, stack = WEIGHT > 0, small_stack(**params).fit(X3, Y3, WEIGHT, groups)
    fewer = small_stack(**params).fit(X3[kept], Y3[kept], WEIGHT[kept], None if groups is None else groups[kept])
    np.testing.assert_array_equal(np.isfinite(stack.oob_decision_function_), np.repeat(kept[:, None], 3, axis=1))
    stack.oob_decision_function_ = stack.oob_decision_function_[kept]
    assert_same(fitted_state(stack, X3), fitted_state(fewer, X3))


def test_noise_of_rows_sorted_by_customer_is_noise_out_of_bag():
    """If folds were blocks of rows, the additive member alone would reach an out-of-fold ROC AUC of about 0.6."""
    rng, customer = np.random.default_rng(0), np.repeat(np.arange(150), 12)
    table, labels = np.column_stack((customer, rng.normal(size=len(customer)))), rng.integers(0, 2, len(customer))
    stack = small_stack(categorical_features=[0], stack={"residual": False, "oob_score": True}).fit(table, labels)
    assert abs(stack.oob_score_ - 0.5) < 0.04


def test_groups_stay_together():
    Recorder.calls.clear()
    table = np.column_stack((FILLED, GROUPS))
    small_stack(stack={"linear": Recorder()}).fit(table, Y, groups=np.array([f"group {g}" for g in GROUPS]))
    whole, *folds = Recorder.calls
    assert whole == ("fit", set(GROUPS))
    assert [what for what, _ in folds] == ["fit", "predict"] * 5
    for (_, fitted), (_, predicted) in zip(folds[::2], folds[1::2], strict=True):
        assert not fitted & predicted
        assert fitted | predicted == set(GROUPS)
    # Without groups they are in both.
    Recorder.calls.clear()
    small_stack(stack={"linear": Recorder()}).fit(table, Y)
    assert Recorder.calls[1][1] & Recorder.calls[2][1]


def test_a_member_of_weight_0_is_not_asked():
    stack = small_stack(stack={"linear": Recorder()}).fit(FILLED, Y)
    stack.weights_[-1] = 0.0
    Recorder.calls.clear()
    assert stack.predict_proba(FILLED).shape == (300, 2)
    assert Recorder.calls == []


def test_one_warning_of_samples_that_are_never_out_of_bag():
    with pytest.warns(UserWarning, match="ignored in oob_score_") as caught:
        stack = small_stack(4).fit(X, Y)
    n_unknown = np.count_nonzero(np.isnan(stack.oob_decision_function_[:, 0]))
    (warning,) = caught
    assert str(warning.message) == (
        f"{n_unknown} of 300 samples are in the training sample of every one of the 4 trees, so they have no out-of-bag"
        " probability and are ignored in oob_score_ and the choice of weights_: use more trees"
    )
    assert warning.filename == __file__


def test_copies_of_a_sample_in_a_group_are_one_sample():
    rng, groups = np.random.default_rng(0), np.repeat(np.arange(150), 20)
    table = rng.normal(size=(150, 3))
    y = (table.sum(axis=1) + rng.normal(size=150) > 0.0).astype(int)
    stack = small_stack(20).fit(table[groups], y[groups], groups=groups)
    np.testing.assert_allclose(stack.weights_, small_stack(20).fit(table, y).weights_, atol=0.35)


def test_the_unit_of_weights_does_not_matter():
    one, *others = (small_stack(20, random_state=1).fit(X, Y, np.full(300, w)).weights_ for w in (1.0, 1e-4, 1e-99))
    np.testing.assert_allclose(others, [one, one], atol=1e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n_trees", "seed"), [(1, 7), (3, 9)])
def test_a_class_without_a_sample_that_all_members_can_score(n_trees, seed):
    assert np.abs(small_stack(n_trees, random_state=seed).fit(X, np.arange(300) < 4).intercepts_).max() < 6.0


def test_no_sample_out_of_bag():
    stack = small_stack(5, sampling="subsample", max_samples=1.0, stack={"oob_score": True})
    with pytest.warns(UserWarning, match="^300 of 300 samples are in the training sample .* weights_$"):
        assert np.isnan(stack.fit(X, Y).oob_score_)


@pytest.mark.parametrize(("n_rows", "n_classes"), [(499, 2), (500, 2), (600, 51)])
def test_few_rows_and_many_classes_have_no_boosted_trees(n_rows, n_classes, monkeypatch):
    monkeypatch.setattr(_stack_fit, "LEAST_ROWS", _boosted.LEAST_ROWS)
    X, y = np.random.default_rng(0).normal(size=(n_rows, 2)), np.arange(n_rows) % n_classes
    stack = small_stack(max_depth=2, stack={"linear": None, "residual": False}).fit(X, y)
    assert ("boosted" in stack.members_) == (n_rows == 500)


@pytest.mark.parametrize("is_first", [False, True])
def test_the_linear_model_with_the_lower_log_loss_of_the_combination_is_kept(is_first, monkeypatch):
    random = np.random.default_rng(0)
    proba = {"good": np.clip(Y + random.normal(0.0, 0.3, len(Y)), 0.05, 0.95), "bad": random.random(len(Y))}
    models = [(name, np.column_stack((1.0 - proba[name], proba[name]))) for name in ("good", "bad")]
    monkeypatch.setattr(_stack_fit, "_fit_linear", lambda *given: models[:: 1 if is_first else -1])
    stack = small_stack().fit(FILLED, Y)
    assert stack.members_["linear"] == "good"
    assert stack.weights_[-1] > 0.5


def test_interactions_of_the_additive_model_rank_better():
    X, y = make_interaction()
    found = []
    for encodings, others in (("auto", [1]), (["sets", "rates"], [])):
        options = {"residual": False, "boosted": False}
        stack = small_stack(60, categorical_encoding=encodings, stack=options).fit(X[:900], y[:900])
        member, encoded = stack.members_["linear"], stack.encode(X[900:]).to_numpy()[:, :3]
        assert [one.other for one in member.interactions] == others
        found.append(roc_auc_score(y[900:], member.predict_proba(encoded)[:, 1]))
    assert found[0] > found[1] + 0.03

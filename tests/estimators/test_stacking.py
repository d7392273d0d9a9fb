"""The stack: its parameters, the data that it takes, and what it predicts."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from aucforest import AUCForestClassifier, AUCStackingClassifier
from tests.estimators.data import GROUPS, WEIGHT, X3, Y3, assert_same, best_threshold, make_table, refuse, small_forest
from tests.estimators.rated import make_rated
from tests.estimators.stacks import fitted_state, small_stack
from tests.estimators.test_forest import inherent
from tests.estimators.test_out_of_bag import MANY, TWO, check, take
from tests.persistence.trees import assert_same_trees

X, Y = make_table(n_rows=300, missing=0.05)
FILLED = np.nan_to_num(X)
NAMES = np.array(["a", "b", "c"])


@pytest.fixture(scope="module")
def fitted():
    return small_stack(20).fit(X, Y)


@pytest.mark.slow  # the checks of forests are those of the members
@parametrize_with_checks(
    [AUCStackingClassifier(AUCForestClassifier(4))], expected_failed_checks=lambda stack: inherent(stack.forest)
)
@pytest.mark.filterwarnings("ignore:.* no out-of-bag probability", "ignore:(ROC AUC|Hand and Till's M) is not defined")
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("params", [{}, {"class_weight": "balanced", "criterion": ["auc", "gini"]}], ids=str)
def test_the_forest_is_a_forest(params):
    alone = small_forest(30, oob_score=True, **params).fit(X3, Y3, WEIGHT, GROUPS)
    stack = small_stack(**params).fit(X3, Y3, WEIGHT, GROUPS)
    member, residual, boosted, _ = stack.members_.values()
    assert_same_trees(member.trees_, alone.trees_)
    assert np.any(residual.apply(X3) != alone.apply(X3))
    np.testing.assert_array_equal(member.predict_proba(X3), alone.predict_proba(X3))
    np.testing.assert_array_equal(stack.class_prior_, alone.class_prior_)
    assert member.calibration_.slope == alone.calibration_.slope
    # The combination calibrates the others, which have the class weights in their samples.
    assert {(other.calibration_, other.class_weight) for other in (residual, boosted)} == {(None, None)}


def test_the_seed_of_the_stack_is_for_forests_without_one():
    def fit(forest, seed):
        return AUCStackingClassifier(forest, random_state=seed, linear=None, residual=False, boosted=False).fit(X, Y)

    for seed in (0, 1):
        alone = AUCForestClassifier(20, random_state=seed).fit(X, Y)
        assert_same_trees(fit(AUCForestClassifier(20), seed).members_["forest"].trees_, alone.trees_)
    assert_same(*(fitted_state(fit(small_forest(20), seed), X) for seed in (0, 1)))


def test_results_do_not_depend_on_n_jobs():
    table, y = make_rated(900, 3)
    one, two = (small_stack(20, max_depth=5, stack={"n_jobs": n_jobs}).fit(table, y) for n_jobs in (1, 2))
    assert_same(fitted_state(one, table), fitted_state(two, table))
    for name in ("residual", "boosted"):
        assert (one.members_[name].n_jobs, two.members_[name].n_jobs) == (1, 2)


@pytest.mark.parametrize(("effect", "gain"), [(1.5, 0.02), pytest.param(0.0, -0.02, marks=pytest.mark.slow)])
def test_stacks_rank_simulated_classes_better_than_their_forests(effect, gain):
    """A sum of effects is clearly better ranked; noise is not ranked worse; probabilities are not worse."""
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        table = rng.normal(size=(1400, 8))
        y = (rng.random(1400) < 1.0 / (1.0 + np.exp(-effect * table @ np.linspace(1.0, 0.3, 8)))).astype(int)
        stack = small_stack(50, stack={"oob_score": True}).fit(table[:400], y[:400])
        forest, new = stack.members_["forest"], y[400:]
        ours, theirs = (model.predict_proba(table[400:])[:, 1] for model in (stack, forest))
        auc, loss = roc_auc_score(new, ours) - roc_auc_score(new, theirs), log_loss(new, ours) - log_loss(new, theirs)
        found.append((auc, loss, stack.oob_score_ - forest.oob_score_ - auc))
    auc, loss, optimism = np.mean(found, axis=0)
    assert auc > gain
    assert loss < (-0.02 if effect > 0.0 else 0.003)
    assert -0.01 < optimism < 0.03


def test_labels_of_text_and_masked_values_give_the_same_stack(fitted):
    masked = np.ma.masked_invalid(X)
    stack = small_stack(20).fit(masked, np.array(["no", "yes"])[Y])
    assert_same(fitted_state(stack, masked), fitted_state(fitted, X))
    np.testing.assert_array_equal(stack.predict(X), np.where(stack.predict_proba(X)[:, 1] > 0.5, "yes", "no"))


def test_float32_and_infinite_values():
    table = np.where(X > 1.5, np.inf, np.where(X < -1.5, -np.inf, X))
    one, other = (small_stack(20).fit(table.astype(dtype), Y) for dtype in (np.float32, np.float64))
    assert_same(fitted_state(one, table), fitted_state(other, table.astype(np.float32)))
    assert np.isfinite(one.predict_proba(table)).all()


def test_columns_that_are_not_those_of_fit():
    frame = pd.DataFrame(X, columns=list("abcde"))
    stack = small_stack(20, stack={"linear": None, "residual": False}).fit(frame, Y)
    for method in (stack.predict_proba, stack.encode):
        with pytest.raises(ValueError, match="\nFeature names unseen at fit time:\n- extra\n"):
            method(pl.from_pandas(frame.assign(extra=1.0)))
        with pytest.warns(UserWarning, match="names, but AUCStackingClassifier was fitted with") as caught:
            method(X)
        assert len(caught) == 1
    assert stack.split_features_.tolist() == list("abcde")


def make_frame():
    """Return a frame with numbers, missing values, a category that matters, and dates."""
    rng = np.random.default_rng(3)
    kinds = rng.choice(["ash", "elm", "fir", "oak", "rare"], 300, p=[0.3, 0.3, 0.2, 0.19, 0.01]).astype(object)
    kinds[::31] = None
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, 300), unit="D")
    frame = pd.DataFrame(X[:, :3], columns=list("abc")).assign(kind=pd.Categorical(kinds), day=days)
    score = FILLED[:, 0] + 2.0 * np.isin(kinds, ["ash", "elm"]) + (days.year > 2024) + rng.logistic(size=300)
    return frame, np.where(score > 2.0, "yes", "no")


FRAME, ANSWERS = make_frame()


def test_frames_of_every_library_give_the_same_stack():
    first = small_stack().fit(FRAME, ANSWERS)
    assert first.weights_[-1] > 0.1
    assert roc_auc_score(ANSWERS, first.oob_decision_function_[:, 1]) > 0.72
    for table in (pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME)):
        stack = small_stack().fit(table, ANSWERS)
        assert stack.feature_names_in_.tolist() == ["a", "b", "c", "kind", "day"]
        assert_same(fitted_state(stack, table), fitted_state(first, FRAME))
        np.testing.assert_array_equal(first.predict_proba(table), stack.predict_proba(FRAME))
    assert np.isfinite(first.predict_proba(FRAME.assign(kind=["no such", None] * 150))).all()
    with pytest.raises(ValueError, match="feature names"):
        first.predict(FRAME[["day", "kind", "c", "b", "a"]])


@pytest.mark.parametrize(
    "to_matrix", [sp.csc_matrix, *(pytest.param(form, marks=pytest.mark.slow) for form in (sp.csr_array, sp.coo_array))]
)
def test_sparse_rows(to_matrix):
    dense = np.where(X > 0.3, X, 0.0)
    sparse, other = small_stack(20).fit(to_matrix(dense), Y), small_stack(20).fit(dense, Y)
    for stack in (sparse, other):
        np.testing.assert_allclose(stack.predict_proba(dense), stack.predict_proba(to_matrix(dense)), rtol=1e-12)
    assert_same_trees(sparse.members_["forest"].trees_, other.members_["forest"].trees_)
    assert list(sparse.members_) == ["forest", "residual", "linear"]
    assert list(other.members_) == ["forest", "residual", "boosted", "linear"]


@pytest.mark.parametrize("form", ["coo", "dia"])
@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
def test_sparse_rows_without_an_index(form):
    """A user's linear model and scorer get them as CSR, because the rows of other formats cannot be indexed."""

    def scorer(estimator, table, y):
        return -log_loss(y, estimator.predict_proba(table))

    dense = np.where(FILLED > 0.3, FILLED, 0.0)
    linear = make_pipeline(StandardScaler(with_mean=False), LogisticRegression())
    stack = small_stack(20, stack={"linear": linear, "residual": False, "boosted": False, "oob_score": scorer})
    matrix = sp.csr_matrix(dense)
    by_dense, expected = (fitted_state(stack.fit(table, Y), table) for table in (dense, matrix))
    np.testing.assert_allclose(expected[-1], by_dense[-1], atol=1e-5)
    assert_same(fitted_state(stack.fit(matrix.asformat(form), Y), matrix.asformat(form)), expected)
    assert stack.oob_score_ == pytest.approx(-log_loss(Y, stack.oob_decision_function_))


def test_a_pipeline_by_names_of_columns():
    encoders = [("kind", OneHotEncoder(handle_unknown="ignore"), ["kind"]), ("numbers", StandardScaler(), ["a", "b"])]
    filled = FRAME.fillna({"a": 0.0, "b": 0.0})
    linear = make_pipeline(ColumnTransformer(encoders), LogisticRegression())
    stack = small_stack(stack={"linear": linear}).fit(filled, ANSWERS)
    assert stack.weights_[-1] > 0.1
    member = stack.members_["linear"]
    assert member[0].feature_names_in_.tolist() == filled.columns.tolist()
    expected = clone(member).fit(filled, ANSWERS)
    np.testing.assert_allclose(member.predict_proba(filled), expected.predict_proba(filled))
    assert stack.predict(filled.iloc[:3]).shape == (3,)
    # Weights that are equal are none.
    assert stack.fit(filled, ANSWERS, np.where(np.arange(300) < 20, 0.0, 2.0)).weights_.shape == (4,)
    with pytest.raises(ValueError, match=r"^linear: Pipeline\.fit takes no sample_weight, but samples or [^\n]*$"):
        stack.fit(filled, ANSWERS, np.linspace(1.0, 2.0, 300))


def test_monotonic_constraints_stay():
    """Only forests are left, and what they predict rises with the first feature and falls with the second."""
    signs, table = [1, -1, 0, 0, 0], np.random.default_rng(0).normal(size=(1500, 5))
    y = (np.sin(3 * table[:, 2]) + table[:, 0] - table[:, 1] + table[:, 3] * table[:, 4] > 0).astype(int)
    stack = small_stack(monotonic_cst=signs).fit(table, y)
    assert list(stack.members_) == ["forest", "residual"]
    assert stack.weights_[1] > 0.05
    for feature, sign in ((0, 1), (1, -1)):
        rows = np.repeat(table[:40], 21, axis=0)
        rows[:, feature] = np.tile(np.linspace(-3, 3, 21), 40)
        steps = sign * np.diff(stack.predict_proba(rows)[:, 1].reshape(40, 21), axis=1)
        assert steps.min() > -1e-12
        assert steps.max() > 0.01
    own = small_stack(monotonic_cst=signs, stack={"linear": LogisticRegression()}).fit(table, y)
    assert list(own.members_) == ["forest", "residual", "linear"]


@pytest.mark.parametrize(("rule", "weight"), [
    ("f1", WEIGHT), ({"alerts": 40}, WEIGHT), ({"precision": 0.7}, None),
], ids=lambda value: "weighted" if value is WEIGHT else str(value))  # fmt: skip
def test_tuned_thresholds(rule, weight):
    stack = small_stack(20, stack={"threshold": rule}).fit(X, Y, weight)
    seen = np.isfinite(stack.oob_decision_function_[:, 0])
    known = Y[seen], stack.oob_decision_function_[seen, 1], take(weight, seen)
    assert stack.threshold_ == best_threshold(rule, *known, n_rows=300 if weight is None else np.count_nonzero(weight))
    other = copy.copy(stack).set_threshold("gmean", X, Y, oob=False)
    assert other.threshold_ == best_threshold("gmean", Y, stack.predict_proba(X)[:, 1])
    np.testing.assert_array_equal(stack.predict(X), (stack.predict_proba(X)[:, 1] >= stack.threshold_).astype(int))


def test_costs_of_samples():
    costs = np.zeros((300, 2, 2))
    costs[:, 0, 1], costs[:, 1, 0] = np.random.default_rng(1).exponential([1.0, 4.0], (300, 2)).T
    stack = small_stack(20, stack={"threshold": "cost"}).fit(X, Y, cost=costs)
    assert stack.threshold_ == best_threshold({"cost": costs}, Y, stack.oob_decision_function_[:, 1])


@pytest.mark.parametrize(
    ("scoring", "weight", "threshold", "n_classes"),
    [("average_precision", WEIGHT, "gmean", 2), ("f1", WEIGHT, "gmean", 2), ("f1", None, None, 2),
     ("neg_log_loss", None, None, 2), ("precision_at_0.1", WEIGHT, "gmean", 2), ("neg_log_loss", WEIGHT, None, 3),
     ("f1_macro", WEIGHT, None, 3)],
    ids=lambda value: "weighted" if value is WEIGHT else str(value),
)  # fmt: skip
def test_out_of_bag_scores(scoring, weight, threshold, n_classes):
    data = (X, Y, weight, TWO[scoring]) if n_classes == 2 else (X3, NAMES[Y3], weight, MANY[scoring])
    check(small_stack(4, stack={"oob_score": scoring, "threshold": threshold}), *data)


@pytest.mark.parametrize("make", [lambda stack: stack, lambda stack: stack.members_["linear"]])
def test_there_are_no_coefficients_of_features(make, fitted):
    """Other libraries, such as shap, would read such attributes as coefficients of the columns of X."""
    for name in ("coef_", "intercept_", "feature_importances_"):
        assert not hasattr(make(fitted), name)


def test_threads_of_fitted_members(fitted):
    stack = pickle.loads(pickle.dumps(fitted))
    assert_same(stack, fitted)
    copied = copy.copy(stack).set_params(n_jobs=3)
    assert (copied.members_["forest"].n_jobs, stack.members_["forest"].n_jobs) == (3, small_stack(20).forest.n_jobs)
    stack.set_params(forest__n_jobs=2)
    assert stack.members_["residual"].n_jobs == stack.members_["boosted"].n_jobs == 2


def test_members_and_parameters_that_are_misused():
    frame = pd.DataFrame(FILLED, columns=list("abcde"))
    stack = small_stack(20).fit(frame, Y)
    with pytest.raises(TypeError, match=r"^linear: X must be an array .* but is a DataFrame: pass"):
        stack.members_["linear"].predict_proba(frame)
    assert stack.members_["linear"].predict_proba(np.asarray(stack.encode(frame))).shape == (300, 2)
    with pytest.raises(ValueError, match=r"^forest__max_depth cannot be set, as forest is None: set forest=AUCForest"):
        AUCStackingClassifier().set_params(forest__max_depth=3)
    assert AUCStackingClassifier().set_params(forest=AUCForestClassifier(), forest__max_depth=3).forest.max_depth == 3


def test_parameters_are_nested():
    stack = small_stack(7, stack={"linear": LogisticRegression()})
    stack = clone(stack.set_params(forest__n_estimators=20, linear__C=0.5)).fit(FILLED, Y)
    assert (stack.get_params()["forest__n_estimators"], stack.members_["linear"].C) == (20, 0.5)
    assert len(stack.members_["forest"]) == len(stack.members_["residual"]) == 20
    # The parameters are cloned, not fitted.
    assert not hasattr(stack.forest, "trees_")
    assert not hasattr(stack.linear, "coef_")


def test_a_failed_fit_leaves_it_as_it_was(fitted):
    stack = copy.deepcopy(fitted)
    before = fitted_state(stack, X)
    with pytest.raises(ValueError, match="needs two classes, but y has 3"):
        stack.set_params(threshold="gmean").fit(X3, Y3)
    assert_same(fitted_state(stack, X), before)
    stack.set_params(threshold=None, residual=False).fit(X3, Y3)
    assert list(stack.members_) == ["forest", "boosted", "linear"]
    assert stack.intercepts_.shape == (3,)


@pytest.mark.parametrize(("make", "error", "sentence"), [
    (lambda: {"forest": small_forest(bootstrap=False)}, ValueError, "bootstrap=False is not available in a stack"),
    (lambda: {"forest": small_forest(warm_start=True)}, ValueError, "warm_start=True is not available in a stack"),
    (lambda: {"forest": type("Own", (AUCForestClassifier,), {})()}, TypeError, "in memory, but is a Own$"),
    (lambda: {"forest": AUCForestClassifier(min_gain=-1.0)}, ValueError, "'min_gain' parameter of AUCForestCl"),
    (lambda: {"forest": LogisticRegression()}, ValueError, "'forest' parameter .* must be an instance of"),
    (lambda: {"linear": LinearSVC()}, ValueError, "'linear' parameter .* implementing 'fit' and 'predict_proba'"),
    (lambda: {"linear": "spline"}, ValueError, "'linear' parameter .* must be a str among {'auto'}"),
    (lambda: {"penalty": -1.0}, ValueError, "'penalty' parameter .* must be a float in the range"),
    (lambda: {"residual": "yes"}, ValueError, "'residual' parameter .* must be an instance of 'bool'"),
    (lambda: {"threshold": "no such"}, ValueError, "'threshold' parameter .* must be a str among"),
])  # fmt: skip
def test_bad_parameters(make, error, sentence):
    refuse(AUCStackingClassifier(**{"forest": small_forest(4), **make()}), sentence, X, Y, error=error)

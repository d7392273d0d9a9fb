from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info

from aucforest import LinearAUCClassifier
from aucforest.estimators import linear
from aucforest.losses.pairwise import value_and_gradient
from aucforest.metrics import hand_till_score, roc_auc_score
from tests.reference.losses import smooth_auc

# The example of the reference [1] in the docstring of the class.
X_ALL, Y_ALL = make_classification(n_samples=2000, n_informative=9, n_redundant=0, n_repeated=0, random_state=2)
X_TRAIN, X_TEST, Y_TRAIN, Y_TEST = train_test_split(X_ALL, Y_ALL, test_size=0.4, random_state=4)


@parametrize_with_checks([LinearAUCClassifier()])
def test_scikit_learn(estimator, check):
    check(estimator)


def auc(model, X, y):
    return roc_auc_score(y, model.decision_function(X))


def test_the_published_example():
    model = LinearAUCClassifier().fit(X_TRAIN, Y_TRAIN)
    assert auc(model, X_TEST, Y_TEST) >= 0.8955
    assert auc(model, X_TRAIN, Y_TRAIN) > auc(LogisticRegression().fit(X_TRAIN, Y_TRAIN), X_TRAIN, Y_TRAIN)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("eps", [0.1, 0.5])
def test_it_ends_where_the_smoothed_auc_is_flat(weighted, eps):
    X, y = X_TRAIN[:300], Y_TRAIN[:300]
    weights = np.random.default_rng(0).exponential(size=300) if weighted else np.ones(300)
    model = LinearAUCClassifier(eps=eps, alpha=0.01, tol=1e-8).fit(X, y, sample_weight=weights)
    deviations = np.sqrt(np.cov(X, rowvar=False, aweights=weights, ddof=0).diagonal())
    units = X / deviations

    def objective(theta):
        score = units @ theta
        length = np.sqrt(np.average((score - np.average(score, weights=weights)) ** 2, weights=weights))
        value, _ = smooth_auc(y == 1, score / length, eps, weights)
        return 1 - value + 0.005 * (theta @ theta) / length**2

    theta = model.coef_[0] * deviations
    assert objective(theta) == pytest.approx(model.loss_curve_[-1], rel=1e-9)
    steps = 1e-4 * np.linalg.norm(theta) * np.eye(theta.size)
    slopes = [(objective(theta + step) - objective(theta - step)) / 2e-4 for step in steps]
    np.testing.assert_allclose(slopes, 0.0, atol=1e-6)


def test_loss_curves():
    X, y = make_classification(n_samples=300, flip_y=0.2, random_state=0)
    model = LinearAUCClassifier(eps=0.1, tol=1e-5).fit(X, y)
    assert model.n_iter_.tolist() == [len(model.loss_curve_)]
    # Four stages: the logistic loss, and the widths 1, 0.32 and 0.1. The loss may only rise where a stage begins.
    assert (np.diff(model.loss_curve_) > 1e-12).sum() <= 3
    assert model.loss_curve_[-1] < model.loss_curve_[0]


def test_units_do_not_matter():
    model = LinearAUCClassifier()
    expected = model.fit(X_TRAIN, Y_TRAIN).predict_proba(X_TRAIN)
    units = 2.0 ** np.arange(-10, 10)  # powers of two, so that nothing is rounded: the ascent is chaotic
    np.testing.assert_allclose(model.fit(X_TRAIN * units, Y_TRAIN).predict_proba(X_TRAIN * units), expected, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_are_calibrated(weighted):
    weights = np.where(Y_TRAIN == 1, 1.0, 4.0) if weighted else None
    model = LinearAUCClassifier().fit(X_TRAIN, Y_TRAIN, sample_weight=weights)
    proba = model.predict_proba(X_TRAIN)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    # The fitted intercept makes the means equal, but Platt's targets change them by about one row in a thousand.
    assert np.average(proba[:, 1], weights=weights) == pytest.approx(np.average(Y_TRAIN, weights=weights), abs=2e-3)
    high = proba[:, 1] > 0.7
    assert np.average(Y_TRAIN[high], weights=None if weights is None else weights[high]) > 0.75
    margin = model.decision_function(X_TRAIN)
    np.testing.assert_allclose(np.log(proba[:, 1] / proba[:, 0]), margin, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X_TRAIN), (margin > 0).astype(int))


def test_outliers_cannot_turn_the_order_around():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=200) + 1, [-300.0] * 5, rng.normal(size=200) - 1, [300.0] * 5])
    y = np.repeat([1, 0], 205)
    assert x[y == 1].mean() < x[y == 0].mean()
    assert auc(LinearAUCClassifier().fit(x[:, None], y), x[:, None], y) == roc_auc_score(y, x) > 0.85


def test_rows_of_weight_zero_are_left_out():
    weights, model = (np.arange(Y_TRAIN.size) % 3 > 0).astype(float), LinearAUCClassifier(max_iter=100)
    expected = model.fit(X_TRAIN[weights > 0], Y_TRAIN[weights > 0], sample_weight=weights[weights > 0]).coef_
    # A class whose rows all have weight 0 is not a class.
    model.fit(X_TRAIN, np.where((weights == 0) & (np.arange(Y_TRAIN.size) % 2 == 0), 7, Y_TRAIN), sample_weight=weights)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-9)
    assert model.classes_.tolist() == [0, 1]


def test_features_that_tell_nothing_give_the_base_rate():
    X, y = np.ones((50, 2)), np.arange(50) < 10
    model = LinearAUCClassifier().fit(X, y)
    np.testing.assert_array_equal(model.coef_, 0.0)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 0.2, atol=0.02)  # Platt's targets again


def test_pairs_of_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    X_train, X_test, y_train, y_test = train_test_split(X, names, random_state=0, stratify=y)
    model = LinearAUCClassifier().fit(X_train, y_train)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == model.n_iter_.shape == (3,)
    assert [len(curve) for curve in model.loss_curve_] == model.n_iter_.tolist()
    proba = model.predict_proba(X_test)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(proba), model.decision_function(X_test))
    assert hand_till_score(y_test, proba) > 0.99
    assert model.score(X_test, y_test) > 0.9
    # The coefficients of a pair are those of a model of its two classes.
    two = y_train != "setosa"
    np.testing.assert_allclose(LinearAUCClassifier().fit(X_train[two], y_train[two]).coef_[0], model.coef_[2])


def test_coupling_finds_the_probabilities_behind_the_pairs():
    truth = np.random.default_rng(0).dirichlet(np.ones(4), size=10)
    # one feature a row, so that the margins of a row are a column of coefficients
    model = LinearAUCClassifier().fit(np.repeat(np.eye(4, 10), 5, axis=0), np.repeat(np.arange(4), 5))
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    model.coef_ = np.array([np.log(truth[:, j] / truth[:, i]) for i, j in pairs])
    model.intercept_ = np.zeros(6)
    np.testing.assert_allclose(model.predict_proba(np.eye(10)), truth, rtol=1e-12)
    # Large margins, which no class probabilities have, still give probabilities.
    model.coef_ *= 1e4
    np.testing.assert_allclose(model.predict_proba(np.eye(10)).sum(axis=1), 1.0)


def test_too_few_iterations_are_told():
    X, y = make_classification(n_samples=300, flip_y=0.2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="L-BFGS did not converge in max_iter=2 iterations"):
        LinearAUCClassifier(max_iter=2).fit(X, y)


@pytest.mark.parametrize(("y", "weights", "params", "message"), [
    ([1, 1], None, {}, "y has 1 class with positive weight; a classifier needs at least 2 classes"),
    ([0, 1], [1.0, 0.0], {}, "y has 1 class with positive weight"),
    ([0, 1], [1.0, -1.0], {}, "Negative values in data passed to `sample_weight`"),
    ([b"a", b"b"], None, {}, "^y has bytes as labels"),
    *(
        ([0, 1], None, {name: value}, f"The '{name}' parameter of LinearAUCClassifier must be")
        for name, value in {"eps": 0.0, "alpha": -1.0, "max_iter": 0, "tol": -1.0}.items()
    ),
])  # fmt: skip
def test_bad_data_and_parameters_are_refused(y, weights, params, message):
    with pytest.raises((TypeError, ValueError), match=message):
        LinearAUCClassifier(**params).fit([[0.0], [1.0]], y, sample_weight=weights)


@pytest.mark.parametrize("unit", [1e-150, 1.0, 9e99])
def test_large_numbers_are_scaled_or_refused(unit):
    X, y = make_classification(n_samples=100, n_features=4, n_redundant=0, random_state=0)
    X = pd.DataFrame(X * unit / np.abs(X).max(), columns=list("abcd"))
    model = LinearAUCClassifier().fit(X, y)
    assert auc(model, X, y) > 0.8
    largest = pd.DataFrame(np.full((2, 4), [[9e99], [-9e99]]), columns=list("abcd"))
    assert np.isfinite(model.predict_proba(largest)).all()
    with pytest.raises(ValueError, match=r"^X: column 'c' has the value -1e\+160 in row 1, .* must be below 1e\+100"):
        model.predict(largest.assign(c=[1.0, -1e160]))
    with pytest.raises(ValueError, match=r"^X: column 0 has the value 1e\+100"):
        model.fit([[1e100], [0.0]], [0, 1])


def test_a_fit_that_fails_leaves_all_as_it_was(monkeypatch):
    model = LinearAUCClassifier().fit(pd.DataFrame(X_TRAIN[:, :3], columns=["a", "b", "c"]), Y_TRAIN)
    before = dict(vars(model))
    with monkeypatch.context() as patch:
        patch.setattr(linear, "_calibrate", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X_TRAIN, Y_TRAIN)
    assert vars(model) == before
    assert not hasattr(model.fit(X_TRAIN, Y_TRAIN), "feature_names_in_")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_the_first_stage_is_logistic_regression_on_differences(weighted, alpha):
    X, y = make_classification(n_samples=60, n_features=4, random_state=0)
    weights = np.random.default_rng(0).exponential(size=60) if weighted else np.ones(60)
    model = LinearAUCClassifier(alpha=alpha, tol=1e-9).fit(X, y, sample_weight=weights if weighted else None)
    units = StandardScaler().fit(X, sample_weight=weights).transform(X)
    pairs = (units[y == 1][:, None] - units[y == 0]).reshape(-1, 4)
    of_pairs = np.outer(weights[y == 1], weights[y == 0]).ravel()
    peer = LogisticRegression(C=0.5 / alpha / of_pairs.sum(), fit_intercept=False, tol=1e-10)
    peer.fit(np.vstack((pairs, -pairs)), np.repeat([1, 0], len(pairs)), np.tile(of_pairs, 2))
    loss = np.average(np.logaddexp(0.0, -pairs @ peer.coef_[0]), weights=of_pairs) + alpha / 2 * np.sum(peer.coef_**2)
    assert np.min(np.abs(np.array(model.loss_curve_) / loss - 1.0)) < 1e-9


@pytest.mark.parametrize(("eps", "n_widths"), [(2.0, 1), (1.0, 1), (0.1, 3), (0.02, 5)])
def test_widths_fall_in_steps(monkeypatch, eps, n_widths):
    seen = {}

    def spy(pairs, scores, loss, width):
        seen[loss, width] = True
        return value_and_gradient(pairs, scores, loss, width)

    monkeypatch.setattr(linear, "value_and_gradient", spy)
    LinearAUCClassifier(eps=eps).fit(*make_classification(n_samples=100, flip_y=0.2, random_state=0))
    losses, (_, *path) = zip(*seen)
    assert list(losses) == ["logistic"] + n_widths * ["sigmoid"]
    np.testing.assert_allclose(path, np.geomspace(max(eps, 1.0), eps, n_widths))
    assert min(np.divide(path[1:], path[:-1]), default=1.0) >= 10**-0.5 * (1 - 1e-12)


def test_tiny_matrices_are_not_handed_to_threads():
    def blas_threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before, during = blas_threads(), []

    def objective(theta):
        during.extend(blas_threads())
        return float(theta @ theta), 2.0 * theta

    linear._lbfgs(objective, np.ones(2))
    assert set(during) == {1}
    assert blas_threads() == before

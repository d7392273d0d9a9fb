import pickle
from functools import partial

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from aucforest.losses import boosting_objective, pairwise_loss
from aucforest.metrics import roc_auc_score
from tests.losses.test_pairwise import LOSSES


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)


LIGHTGBM = partial(lightgbm.LGBMClassifier, n_jobs=1, verbose=-1, random_state=0)
XGBOOST = partial(xgboost.XGBClassifier, n_jobs=1, random_state=0)


@pytest.mark.parametrize(
    ("make", "raw", "log_loss"), [(LIGHTGBM, "raw_score", "binary"), (XGBOOST, "output_margin", "binary:logistic")]
)
def test_models_rank_as_well_as_with_log_loss(cancer, make, raw, log_loss):
    X_train, X_test, y_train, y_test = cancer
    auc, objectives = {}, {loss: boosting_objective(loss) for loss in LOSSES} | {"log loss": log_loss}
    for name, objective in objectives.items():
        model = make(objective=objective, n_estimators=30).fit(X_train, y_train)
        auc[name] = roc_auc_score(y_test, model.predict(X_test, **{raw: True}))
    assert min(auc.values()) >= auc["log loss"] - 0.02
    assert auc["exp"] >= auc["log loss"] - 0.01


@pytest.mark.parametrize("weighted", [False, True])
def test_scikit_learn_and_native_interfaces_agree(cancer, weighted):
    X, _, y, _ = cancer
    weights = np.random.default_rng(0).exponential(size=y.size) if weighted else None
    objective = boosting_objective("exp")
    ours = LIGHTGBM(objective=objective, n_estimators=10).fit(X, y, sample_weight=weights)
    options = {"objective": objective, "verbose": -1, "num_threads": 1, "seed": 0}
    native = lightgbm.train(options, lightgbm.Dataset(X, y, weight=weights), 10)
    np.testing.assert_array_equal(ours.predict(X, raw_score=True), native.predict(X))
    ours = XGBOOST(objective=objective, n_estimators=10).fit(X, y, sample_weight=weights)
    data = xgboost.DMatrix(X, y, weight=weights)
    native = xgboost.train({"nthread": 1, "base_score": 0.0}, data, 10, obj=objective)
    difference = ours.predict(X, output_margin=True) - native.predict(data, output_margin=True)
    np.testing.assert_allclose(difference, difference[0], atol=1e-4)  # The base score is added to all scores.


@pytest.mark.parametrize("eps", [0.5, 2.0])
def test_derivatives_are_those_of_the_loss_times_half_the_weight(eps):
    y, scores = np.array([0, 1, 1, 0, 0]), np.array([0.3, -0.2, 1.0, 0.4, 0.0])
    weights = np.array([1.0, 2.0, 0.5, 1.0, 1.5])
    for loss in LOSSES:
        _, expected, expected_hessian = pairwise_loss(y, scores, loss=loss, eps=eps, sample_weight=weights)
        gradient, hessian = boosting_objective(loss, eps=eps)(y, scores, weights)
        np.testing.assert_allclose(gradient, expected * 3.0)
        if loss == "sigmoid":
            assert (hessian >= np.abs(expected_hessian) * 3.0).all()
            np.testing.assert_allclose(hessian, np.abs(gradient) / eps)
        else:
            np.testing.assert_allclose(hessian, expected_hessian * 3.0)


def test_groups_are_sizes_in_every_interface():
    y, scores, sizes = np.array([0.0, 1.0, 1.0, 0.0, 0.0, 1.0]), np.linspace(-1, 1, 6), [2, 4]
    _, expected, _ = pairwise_loss(y, scores, group=[0, 0, 1, 1, 1, 1])
    lightgbm_data, xgboost_data = lightgbm.Dataset(y[:, None], y, group=sizes), xgboost.DMatrix(y[:, None], y)
    xgboost_data.set_group(sizes)
    for arguments in ((y, scores, None, sizes), (scores, lightgbm_data.construct()), (scores, xgboost_data)):
        np.testing.assert_allclose(boosting_objective()(*arguments)[0], expected * 3.0)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_auc_metrics_of_the_libraries_are_exact():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5)).round()  # so that there are ties
    y = (X[:, 0] + rng.normal(scale=2.0, size=600) > 0).astype(int)
    (train, held_out), weights = np.split(np.arange(600), 2), rng.exponential(size=300)
    test = [(X[held_out], y[held_out])]
    model = LIGHTGBM(objective=boosting_objective(), n_estimators=9, metric="auc")
    model.fit(X[train], y[train], eval_set=test, eval_sample_weight=[weights])
    other = XGBOOST(objective=boosting_objective(), n_estimators=9, eval_metric="auc")
    other.fit(X[train], y[train], eval_set=test, sample_weight_eval_set=[weights], verbose=False)
    found = model.evals_result_["valid_0"]["auc"][-1], other.evals_result()["validation_0"]["auc"][-1]
    of_models = model.predict(X[held_out], raw_score=True), other.predict(X[held_out], output_margin=True)
    expected = [roc_auc_score(y[held_out], scores, sample_weight=weights) for scores in of_models]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_objectives_can_be_cloned_and_pickled(cancer):
    X, _, y, _ = cancer
    objective = boosting_objective("logistic", eps=0.5)
    assert repr(objective) == "boosting_objective(loss='logistic', eps=0.5)"
    for make, raw in ((LIGHTGBM, "raw_score"), (XGBOOST, "output_margin")):
        model = clone(make(objective=objective, n_estimators=3)).fit(X, y)
        copied = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copied.predict(X, **{raw: True}), model.predict(X, **{raw: True}))


def test_invalid_options_and_rows():
    for options, sentence in (({"loss": "hinge"}, "loss must be one of"), ({"eps": 0.0}, "eps must be positive")):
        with pytest.raises(ValueError, match=sentence):
            boosting_objective(**options)
    for y, scores, sentence in (([1, 1], [0, 0], "y has only one class"), ([0, 1], [0, np.nan], "must be finite")):
        with pytest.raises(ValueError, match=sentence):
            boosting_objective()(np.array(y), np.array(scores))

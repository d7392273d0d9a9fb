"""The forest in the hands of scikit-learn's own tools: what they give, not only that they run."""

import matplotlib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay, calibration_curve
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from aucforest import AUCStackingClassifier
from tests.estimators.data import make_table, small_forest

matplotlib.use("Agg")

X, Y = make_table(n_rows=300, missing=0.05)
X3, Y3 = make_table(n_rows=300, n_classes=3, seed=1)
FILLED = np.nan_to_num(X)


def test_html_shows_the_parameters_and_links_nowhere_else():
    html = small_forest().fit(X, Y)._repr_html_()
    assert "n_estimators" in html
    assert "href=" not in html


@pytest.fixture
def pyplot():
    module = pytest.importorskip("matplotlib.pyplot")
    yield module
    module.close("all")


def forest(**params):
    return small_forest(20, min_samples_leaf=5, **params)


@pytest.fixture(scope="module")
def fitted():
    return forest().fit(FILLED, Y)


@pytest.fixture(scope="module")
def stack():
    return AUCStackingClassifier(forest()).fit(FILLED, Y)


@pytest.mark.parametrize("name", ["fitted", "stack"])
def test_partial_dependence_is_the_mean_prediction(name, request):
    fitted = request.getfixturevalue(name)
    found = partial_dependence(fitted, FILLED, [0], grid_resolution=4, kind="both", response_method="predict_proba")
    for i, value in enumerate(found["grid_values"][0]):
        table = FILLED.copy()
        table[:, 0] = value
        np.testing.assert_allclose(found["individual"][0, :, i], fitted.predict_proba(table)[:, 1])
    np.testing.assert_allclose(found["average"][0], found["individual"][0].mean(axis=0))
    assert found["average"][0, -1] > found["average"][0, 0] + 0.2


def test_partial_dependence_of_many_classes_and_two_features(pyplot):
    model = forest().fit(X3, Y3)
    options = {"grid_resolution": 4, "response_method": "predict_proba"}
    averages = partial_dependence(model, X3, [0], **options)["average"]
    np.testing.assert_allclose(averages.sum(axis=0), 1.0)
    display = PartialDependenceDisplay.from_estimator(model, X3, [0, (0, 1)], target=2, **options)
    np.testing.assert_allclose(display.lines_[0, 0].get_ydata(), averages[2])


def test_calibration_displays_and_curves(pyplot, fitted):
    display = CalibrationDisplay.from_estimator(fitted, FILLED, Y, n_bins=5)
    shares, predicted = calibration_curve(Y, fitted.predict_proba(FILLED)[:, 1], n_bins=5)
    np.testing.assert_array_equal(display.prob_true, shares)
    np.testing.assert_array_equal(display.prob_pred, predicted)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration(method):
    model = CalibratedClassifierCV(forest(), method=method, cv=3).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert roc_auc_score(Y, model.predict_proba(X)[:, 1]) > 0.8


@pytest.mark.parametrize(
    "search",
    [
        lambda model: GridSearchCV(model, {"max_depth": [1, 4]}, scoring="roc_auc", cv=3),
        lambda model: RandomizedSearchCV(
            model, {"max_depth": [1, 4], "min_samples_leaf": [1, 5]}, n_iter=3, scoring="roc_auc", cv=3, random_state=0
        ),
        lambda model: HalvingGridSearchCV(
            model,
            {"max_depth": [1, 4]},
            resource="n_estimators",
            min_resources=4,
            max_resources=8,
            scoring="roc_auc",
            cv=3,
            random_state=0,
        ),
    ],
    ids=["grid", "random", "halving"],
)
def test_searches(search):
    found = search(small_forest(5)).fit(X, Y)
    assert found.best_params_["max_depth"] == 4
    assert found.best_estimator_.max_depth == 4
    assert found.best_score_ == max(found.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(found.predict_proba(X), found.best_estimator_.predict_proba(X))


def test_pipelines_of_columns():
    pandas = pytest.importorskip("pandas")
    kinds = np.random.default_rng(0).choice(["a", "b", "c"], len(Y))
    frame = pandas.DataFrame(X, columns=list("vwxyz")).assign(kind=kinds)
    labels = np.where((Y == 1) ^ (kinds == "c"), "yes", "no")
    columns = ColumnTransformer(
        [("kinds", OneHotEncoder(sparse_output=False), ["kind"]), ("numbers", SimpleImputer(), list("vwxyz"))],
        verbose_feature_names_out=False,
    )
    model = make_pipeline(columns, forest()).set_output(transform="pandas").fit(frame, labels)
    assert model[-1].feature_names_in_.tolist() == ["kind_a", "kind_b", "kind_c", *"vwxyz"]
    assert roc_auc_score(labels == "yes", model.predict_proba(frame)[:, 1]) > 0.8
    assert cross_val_predict(model, frame, labels, cv=3).shape == (300,)


def test_unions_and_selection_by_importance():
    union = FeatureUnion([("as it is", "passthrough"), ("scaled", StandardScaler())])
    model = make_pipeline(union, SelectFromModel(forest(), max_features=4), forest()).fit(FILLED, Y)
    # The columns that matter, twice each.
    assert sorted(model[1].get_support(indices=True)) == [0, 1, 5, 6]
    assert model.score(FILLED, Y) > 0.8


def test_votes_stacks_and_one_against_the_rest():
    first, second = forest(criterion="gini").fit(FILLED, Y), LogisticRegression().fit(FILLED, Y)
    models = [("forest", forest(criterion="gini")), ("linear", LogisticRegression())]
    voted = VotingClassifier(models, voting="soft").fit(FILLED, Y).predict_proba(FILLED)
    np.testing.assert_allclose(voted, (first.predict_proba(FILLED) + second.predict_proba(FILLED)) / 2)
    assert StackingClassifier(models, cv=3).fit(FILLED, Y).score(FILLED, Y) > 0.75
    rest = OneVsRestClassifier(forest()).fit(X3, Y3)
    np.testing.assert_allclose(rest.predict_proba(X3).sum(axis=1), 1.0)


def test_thresholds_tuned_from_outside():
    model = TunedThresholdClassifierCV(forest(), scoring="balanced_accuracy", cv=3, random_state=0).fit(FILLED, Y)
    expected = model.estimator_.predict_proba(FILLED)[:, 1] >= model.best_threshold_
    np.testing.assert_array_equal(model.predict(FILLED), expected.astype(int))


@pytest.mark.parametrize("name", ["fitted", "stack"])
def test_permutation_importance(name, request):
    model = request.getfixturevalue(name)
    drop = permutation_importance(model, FILLED, Y, n_repeats=2, random_state=0, scoring="roc_auc")
    assert drop.importances_mean.argsort()[:-3:-1].tolist() == [0, 1]


def test_predictions_of_folds_are_those_of_fits():
    folds = [(np.arange(150), np.arange(150, 300)), (np.arange(150, 300), np.arange(150))]
    proba = cross_val_predict(forest(), X3, Y3, cv=folds, method="predict_proba")
    for train, test in folds:
        np.testing.assert_array_equal(proba[test], forest().fit(X3[train], Y3[train]).predict_proba(X3[test]))


def test_weights_are_routed():
    weight = np.where(Y == 1, 5.0, 1.0)
    folds = [(np.arange(200), np.arange(200, 300))]
    with config_context(enable_metadata_routing=True):
        model = forest().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        scorer = get_scorer("neg_brier_score").set_score_request(sample_weight=True)
        options = {"cv": folds, "params": {"sample_weight": weight}, "return_estimator": True}
        found = cross_validate(make_pipeline(scaler, model), X, Y, scoring=scorer, **options)
    expected = forest().fit(StandardScaler().fit(X[:200]).transform(X[:200]), Y[:200], weight[:200])
    scaled = StandardScaler().fit(X[:200]).transform(X[200:])
    np.testing.assert_array_equal(found["estimator"][0][-1].predict_proba(scaled), expected.predict_proba(scaled))
    errors = (expected.predict_proba(scaled)[:, 1] - Y[200:]) ** 2
    assert found["test_score"][0] == pytest.approx(-np.average(errors, weights=weight[200:]))

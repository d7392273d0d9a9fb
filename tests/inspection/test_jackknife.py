"""Standard errors against the formulas by loops, and against the spread over training sets."""

import numpy as np
import pytest

from aucforest.estimators.out_of_bag import training_rows
from aucforest.inspection import predict_proba_stderr
from aucforest.inspection.jackknife import _estimate_variances
from tests.estimators.data import make_table, small_forest
from tests.reference import jackknife as reference

X, Y = make_table(n_rows=80, n_classes=3, missing=0.1)
NEW, _ = make_table(n_rows=12, seed=7, missing=0.1)


@pytest.mark.parametrize("max_samples", [None, 0.4])
@pytest.mark.parametrize("weight", [None, np.where(np.arange(80) % 9 == 0, 0.0, 1.0)])
@pytest.mark.filterwarnings("ignore:.* standard errors are NaN")
def test_the_formula(max_samples, weight):
    forest = small_forest(60, max_samples=max_samples, max_depth=3, calibration=None).fit(X, Y, weight)
    rows = training_rows(forest, X, Y, weight)
    draws = rows.counts(range(60))[rows.bags.kept].T.tolist()
    leaves = forest.apply(NEW)
    errors = predict_proba_stderr(forest, NEW)
    variances = []
    for i in range(len(NEW)):
        for k in range(3):
            shares = [float(tree.prediction[leaves[i, b], k]) for b, tree in enumerate(forest.trees_)]
            both = reference.infinitesimal(draws, shares), reference.after_bootstrap(draws, shares)
            variances.append(reference.mean(both))
    expected = np.reshape(variances, errors.shape)
    np.testing.assert_array_equal(np.isnan(errors), expected < 0)
    assert np.isfinite(errors).any()
    kept = expected >= 0
    np.testing.assert_allclose(errors[kept] ** 2, expected[kept], rtol=1e-9, atol=1e-15)


def test_blocks_of_training_and_of_new_rows():
    table, labels = make_table(n_rows=4500)
    forest = small_forest(30, max_depth=2, calibration=None).fit(table, labels)
    with pytest.warns(UserWarning, match="standard errors are NaN: 30 trees are too few"):
        errors = predict_proba_stderr(forest, table[:1300])
    expected = np.concatenate([_estimate_variances(forest, part) for part in (table[:700], table[700:1300])])
    np.testing.assert_array_equal(np.isnan(errors), expected < 0)
    np.testing.assert_allclose(errors[expected >= 0] ** 2, expected[expected >= 0], rtol=1e-9)
    rows = training_rows(forest, table, labels, None)
    draws, leaves = rows.counts(range(30)).T, forest.apply(table[:3])
    for i in range(3):
        shares = np.array([tree.prediction[leaves[i, b], 0] for b, tree in enumerate(forest.trees_)])
        away = shares - shares.mean()
        variance = 0.0
        for each, factor in ((draws, 1.0), (draws == 0, 4499 / 4500 / (1 - 1 / 4500) ** 9000)):
            first = np.sum(((each - each.mean(axis=0)) * away[:, None]).mean(axis=0) ** 2)
            variance += factor * (first - each.var(axis=0).sum() * away.var() / 30) / 2
        np.testing.assert_allclose(errors[i, 0], np.sqrt(variance) if variance >= 0 else np.nan, rtol=1e-9)


def test_what_all_trees_agree_on_does_not_vary():
    table = np.repeat([[0.0], [1.0]], 50, axis=0)
    forest = small_forest(20, shrinkage=None).fit(table, table[:, 0] > 0)
    np.testing.assert_array_equal(predict_proba_stderr(forest, [[0.0], [1.0]]), np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("params", "drawn"),
    [
        ({"bootstrap": False}, "all of 80"),
        ({"sampling": "subsample"}, "51 of 80 samples without replacement"),
        ({"sampling": "balanced"}, r"\d+ \+ \d+ \+ \d+ of 80"),
    ],
)
def test_other_draws_are_refused(params, drawn):
    forest = small_forest(**params).fit(X, Y)
    forest.set_params(bootstrap=True, sampling="bootstrap")
    with pytest.raises(ValueError, match=f"^standard errors need bootstrap=True .*, but these were grown on {drawn}"):
        predict_proba_stderr(forest, NEW)


def test_trees_of_unequal_bootstraps_are_refused():
    forest = small_forest(2, warm_start=True, calibration=None).fit(X[:60], Y[:60])
    forest.set_params(n_estimators=4).fit(X, Y)
    with pytest.raises(ValueError, match="these were grown on 60 of 60 samples, 80 of 80 samples"):
        predict_proba_stderr(forest, NEW)


@pytest.mark.slow
@pytest.mark.parametrize("params", [{"shrinkage": None}, {"min_samples_leaf": 5}])
def test_the_spread_over_training_sets(params):
    """Squared standard errors are near the variance of predictions over independent training sets.

    Of fully grown trees the infinitesimal jackknife alone has a ratio of 0.5.
    """
    new, _ = make_table(n_rows=40, n_features=3, seed=10_000)
    proba, variances = [], []
    for seed in range(60):
        table, labels = make_table(n_rows=150, n_features=3, seed=seed)
        forest = small_forest(800, criterion="auc", random_state=seed, n_jobs=2, **params).fit(table, labels)
        proba.append(forest.predict_proba(new)[:, 1])
        # Negative estimates among them, or the mean would be too large.
        variances.append(_estimate_variances(forest, new)[:, 1])
    expected = np.var(proba, axis=0, ddof=1)
    ratio = np.mean(variances, axis=0).sum() / expected.sum()
    # The variance over 60 sets has a standard error of a fifth at each point, and points vary together.
    assert 0.75 < ratio < 1.3

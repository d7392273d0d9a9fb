"""The additive model: its columns, coefficients and effects, and unusual rows and classes."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from aucforest.columns.target_rates import RateTable
from aucforest.estimators import _additive
from aucforest.estimators._additive import AdditiveClassifier
from aucforest.estimators._category_ridge import fit_category_ridge
from tests.memory import peak_below
from tests.reference.stacking import additive_columns

CATEGORICAL = (1, 4)
NO_TOTALS = np.empty((0, 2), dtype=np.int64)
# With a numeric feature of two parts, with another categorical feature, and with a numeric feature of missing values.
INTERACTIONS = (
    RateTable(1, 2, np.array([0.5]), 2, 1.0, NO_TOTALS),
    RateTable(4, 1, np.empty(0), 4, 1.0, NO_TOTALS),
    RateTable(4, 0, np.array([-0.5, 0.5]), 3, 1.0, NO_TOTALS),
)


def make(n_rows=300, seed=0):
    """Return numbers with outliers and missing values, codes of categories, and a constant and an empty column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 8))
    X[:, 1] = rng.choice(4, n_rows, p=[0.5, 0.3, 0.18, 0.02])
    X[:, 2] = rng.permutation(n_rows) % 2  # the median is between two values
    X[:, 3] = np.exp(2.0 * X[:, 3])
    X[:, 4] = np.where(rng.random(n_rows) < 0.1, np.nan, rng.choice(12, n_rows))
    X[:, 5] = 7.0
    X[:, 6] = np.where(rng.random(n_rows) < 0.7, 0.0, X[:, 6])  # quartiles that are equal
    X[rng.random(n_rows) < 0.2, 0] = np.nan
    X[:, 7] = np.nan
    X[:2, 3] = np.inf, -np.inf
    return X, np.nan_to_num(X[:, 0]) + (X[:, 1] == 1) - X[:, 2] + np.abs(X[:, 6])


X, SCORE = make()
NEW, _ = make(50, seed=1)
NEW[:3, 1], NEW[3:6, 3], NEW[6, 0], NEW[7, 0] = 9, np.nan, np.inf, -np.inf
LABELS = {2: (SCORE > 0.4).astype(int), 3: np.digitize(SCORE, [-0.3, 0.8])}


def cells_of(rows):
    """Return the category of the pair of each interaction, NaN if it is missing."""
    parts = np.column_stack((rows[:, 2] > 0.5, rows[:, 1], np.digitize(rows[:, 0], [-0.5, 0.5], right=True)))
    return np.where(np.isnan(rows[:, [2, 1, 0]]), np.nan, rows[:, [1, 4, 4]] * [2, 4, 3] + parts)


def indicators_of_cells(train, rows):
    """Return the indicators of the cells of the training rows for other rows, and the interaction of each cell."""
    known = [np.unique(cells[~np.isnan(cells)]) for cells in cells_of(train).T]
    found = [cells[:, None] == of_one for cells, of_one in zip(cells_of(rows).T, known)]
    return np.hstack(found).astype(np.float64), np.repeat(np.arange(3), list(map(len, known)))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("interactions", [(), INTERACTIONS], ids=["alone", "interactions"])
@pytest.mark.parametrize("weight", [None, np.random.default_rng(0).uniform(0.1, 3.0, 300)], ids=["alike", "weighted"])
def test_predictions_equal_logistic_regression_on_columns_by_loops(n_classes, interactions, weight):
    """A column divided by the root of p has the penalty p."""
    y, constants = LABELS[n_classes], {"normal_range": _additive._NORMAL_RANGE, "most": AdditiveClassifier.MOST_SCALED}
    model = AdditiveClassifier(CATEGORICAL, interactions).fit(X, y, weight)

    def peer_columns(rows):
        table, features = additive_columns(X.tolist(), rows.tolist(), CATEGORICAL, **constants)
        coded = np.searchsorted(CATEGORICAL, features)
        if interactions:
            of_cells, interaction = indicators_of_cells(X, rows)
            table, coded = np.hstack((table, of_cells)), np.append(coded, 2 + interaction)
        penalties = np.ones(table.shape[1])
        penalties[-len(coded) :] = model.penalties_[coded]
        return table / np.sqrt(penalties)

    scaled = None if weight is None else weight / weight.mean()
    peer = LogisticRegression(tol=1e-9, max_iter=10_000).fit(peer_columns(X), y, scaled)
    assert model.column_weights_.shape == peer.coef_.shape
    for rows in (X, NEW):
        expected = peer.predict_proba(peer_columns(rows))
        np.testing.assert_allclose(model.predict_proba(rows), expected, atol=4e-4 if interactions else 2e-4)
    np.testing.assert_array_equal(model.classes_, np.arange(n_classes))
    scores = model.decision_function(NEW)
    assert scores.shape == (50, n_classes)
    if n_classes == 2:
        np.testing.assert_allclose(expit(scores[:, 1] - scores[:, 0]), model.predict_proba(NEW)[:, 1])


def test_the_prior_of_interactions_is_stronger(monkeypatch):
    def strengths():
        return np.abs(np.log(AdditiveClassifier(CATEGORICAL, INTERACTIONS).fit(X, LABELS[2]).penalties_[2:]))

    strong = strengths()
    monkeypatch.setattr(_additive, "_INTERACTION_PRIOR", _additive._CATEGORY_PRIOR)
    assert np.all(strong < strengths())


def test_without_categories_coefficients_equal_those_of_scikit_learn():
    table = np.nan_to_num(X[:, [0, 2, 6]])
    model = AdditiveClassifier().fit(table, LABELS[2])
    peer = LogisticRegression(solver="newton-cholesky").fit(model._columns(table), LABELS[2], np.ones(300))
    np.testing.assert_array_equal(model.column_weights_, peer.coef_)
    assert model.penalties_.shape == (0,)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["dense", "sparse", "interactions"])
def test_effects_of_features_add_up_and_have_the_mean_0(kind, n_classes):
    weight = np.random.default_rng(0).uniform(0.1, 3.0, 300)
    table, rows, categorical = X, NEW, CATEGORICAL
    if kind == "sparse":
        table, categorical = sp.csr_matrix(np.nan_to_num(X[:, [0, 2, 6]])), ()
        rows = np.nan_to_num(NEW[:, [0, 2, 6]], posinf=9.0, neginf=-9.0)
    model = AdditiveClassifier(categorical, INTERACTIONS if kind == "interactions" else ())
    effects, means = model.fit(table, LABELS[n_classes], weight).effects(rows)
    assert effects.shape == (n_classes, *rows.shape)
    np.testing.assert_allclose(means[:, None] + effects.sum(axis=2), model.decision_function(rows).T, atol=1e-12)
    np.testing.assert_allclose(np.average(model.effects(table)[0], axis=1, weights=weight), 0.0, atol=1e-12)
    for feature in range(rows.shape[1]):
        others = rows[::-1].copy()
        others[:, feature] = rows[:, feature]
        if kind == "interactions" and feature in CATEGORICAL:  # its effect also depends on the features 0 to 2
            others[:, :3] = rows[:, :3]
        np.testing.assert_allclose(model.effects(others)[0][:, :, feature], effects[:, :, feature], atol=1e-12)


def with_categories(n_rows=4000, n_categories=1000):
    """Return codes of many categories beside a number, and labels that depend on both."""
    rng = np.random.default_rng(0)
    codes, number = rng.integers(n_categories, size=n_rows), rng.normal(size=n_rows)
    effect = 1.5 * rng.normal(size=n_categories)
    score = effect[codes] + number + rng.logistic(size=n_rows)
    return np.column_stack((codes, number)), (score > 0.0).astype(int), effect


def test_every_category_has_a_coefficient_however_rare():
    table, y, effect = with_categories()
    model = AdditiveClassifier((0,)).fit(table, y)
    codes, counts = np.unique(table[:, 0], return_counts=True)
    assert counts.min() == 1
    np.testing.assert_array_equal(model.codes_, codes)
    of_categories = model.column_weights_[0, -len(codes) :]
    assert np.all(of_categories != 0.0)
    assert np.corrcoef(of_categories, effect[codes.astype(int)])[0, 1] > 0.6
    # Coefficients of rare categories are shrunk more.
    assert np.abs(of_categories[counts == 1]).mean() < 0.7 * np.abs(of_categories[counts > 5]).mean()


def test_many_categories_take_little_memory():
    """A matrix of all rows and categories would take 8 GB."""
    table, y, _ = with_categories(20_000, 10**5)
    with peak_below(100e6):
        model = AdditiveClassifier((0,)).fit(table, y)
        model.predict_proba(table)
    assert len(model.codes_) > 15_000


@pytest.mark.parametrize("categorical", [(), (60,)], ids=["numbers", "categories"])
def test_the_same_to_the_last_bit_for_every_number_of_threads_of_blas(categorical):
    rng = np.random.default_rng(0)
    table = np.column_stack((rng.normal(size=(3000, 60)), rng.integers(400, size=3000)))
    y, found = (table[:, :5].sum(axis=1) + (table[:, 60] % 2) > 0.5).astype(int), []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(AdditiveClassifier(categorical).fit(table, y).predict_proba(table))
    np.testing.assert_array_equal(*found)


def test_rows_are_predicted_one_by_one_as_together():
    many = np.tile(X, (-(-_additive._BLOCK_ROWS // 300) + 1, 1))
    model = AdditiveClassifier(CATEGORICAL).fit(X, LABELS[3])
    expected = np.vstack([model.predict_proba(row[None]) for row in X])
    np.testing.assert_allclose(model.predict_proba(many), np.tile(expected, (len(many) // 300, 1)), rtol=1e-12)
    assert model.predict_proba(X[:0]).shape == (0, 3)


def test_a_class_without_samples():
    model, expected = (AdditiveClassifier(CATEGORICAL).fit(X, y) for y in (3 * LABELS[2], LABELS[2]))
    assert model.classes_.tolist() == [0, 3]
    np.testing.assert_allclose(model.predict_proba(NEW), expected.predict_proba(NEW), atol=0.01)


def test_of_many_rows_a_sample_is_fitted(monkeypatch):
    table, score = make(6000, seed=2)
    y = (score > 1.5).astype(int)
    whole, seen = AdditiveClassifier(CATEGORICAL).fit(table, y), []

    def record(dense, *others):
        seen.append((len(dense), np.bincount(*others[-2:])))
        return fit_category_ridge(dense, *others)

    monkeypatch.setattr(_additive, "fit_category_ridge", record)
    monkeypatch.setattr(_additive, "_MOST_ROWS", 2000)
    monkeypatch.setattr(_additive, "_LEAST_ROWS", 0)
    part = AdditiveClassifier(CATEGORICAL).fit(table, y)
    ((n_rows, weights),) = seen
    assert 1300 < n_rows == y.sum() + 1000 < 2000
    np.testing.assert_allclose(weights / weights.sum(), np.bincount(y) / 6000)
    of_part, of_whole = (model.predict_proba(table)[:, 1] for model in (part, whole))
    assert of_part.mean() == pytest.approx(y.mean(), abs=0.01)
    assert roc_auc_score(y, of_part) > roc_auc_score(y, of_whole) - 0.005 > 0.9


def test_sparse_rows():
    """Only scaled numbers are used, which are not centered. Sparse models predict dense rows, and vice versa."""
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((400, 12)) < 0.2, rng.normal(size=(400, 12)) * 10.0 ** np.arange(-6, 6), 0.0)
    dense[:, 11] = 0.0
    dense[0, 0] = np.nan
    y = (np.nan_to_num(dense[:, 0]) * 1e6 + rng.normal(size=400) > 0.3).astype(int)
    matrix = sp.csr_array(dense)
    model = AdditiveClassifier().fit(matrix, y)
    # the root mean square of the stored values
    scale = np.sqrt(np.nansum(dense**2, axis=0) / np.maximum(np.count_nonzero(np.nan_to_num(dense), axis=0), 1))
    scaled = np.nan_to_num(np.clip(dense / np.where(scale > 0, scale, 1.0), -model.MOST_SCALED, model.MOST_SCALED))
    expected = LogisticRegression().fit(scaled, y).predict_proba(scaled)
    np.testing.assert_allclose(model.predict_proba(matrix), expected, atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(dense), model.predict_proba(matrix))
    by_dense = AdditiveClassifier().fit(dense, y)
    np.testing.assert_allclose(by_dense.predict_proba(matrix), by_dense.predict_proba(dense))


def test_sparse_numbers_far_from_0_and_beyond_all_bounds():
    """Numbers far from 0, such as years, stay informative, and infinite or huge values do not determine a scale."""
    rng = np.random.default_rng(0)
    years = 2000.0 + rng.normal(scale=10.0, size=(400, 1))
    y = (years[:, 0] + rng.normal(scale=5.0, size=400) > 2000.0).astype(int)
    model = AdditiveClassifier().fit(sp.csr_array(years), y)
    assert roc_auc_score(y, model.predict_proba(sp.csr_array(years))[:, 1]) > 0.9
    years[:3, 0] = np.inf, -np.inf, 1e200
    model = AdditiveClassifier().fit(sp.csr_array(years), y)
    assert model.scale_[0] == pytest.approx(2000.0, rel=0.01)
    assert np.isfinite(model.predict_proba(sp.csr_array(years))).all()


def test_rows_are_few_where_columns_are_many():
    assert AdditiveClassifier()._most_rows(np.zeros((3, 100_000)), 2) * 8 * 400_000 <= 2**30
    assert AdditiveClassifier()._most_rows(np.zeros((3, 1000)), 2) == 4096
    assert AdditiveClassifier()._most_rows(np.zeros((3, 1)), 2) == 2**16
    assert AdditiveClassifier((0,), INTERACTIONS[:1] * 90)._most_rows(np.zeros((3, 10)), 2) == 2**23 // 400

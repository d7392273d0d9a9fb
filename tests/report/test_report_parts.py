"""The figures of a report against scikit-learn, scipy and plain counting."""

import warnings
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from aucforest.estimators.out_of_bag import training_rows
from aucforest.metrics import compare_auc
from aucforest.report import plots
from aucforest.report.explorer import costs_of
from aucforest.report.importances import auc_by_trees, held_out_importance
from aucforest.report.metrics import RECALLS, _Curves, cumulate_class, reliability, resample, thin
from aucforest.report.page import interval, number, percent, signed
from aucforest.report.rows import score_rows
from tests.estimators.data import make_table, small_forest

X, Y = make_table(n_rows=600, missing=0.0, seed=3)
MODEL = RandomForestClassifier(25, min_samples_leaf=3, random_state=0).fit(X[:300], Y[:300])
WEIGHT = 1.0 + np.arange(300) % 3


def rows_of(weight=None):
    return score_rows(MODEL, X[300:], Y[300:], weight)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_bins_of_the_calibration_hold_what_lies_between_their_ends(weight):
    rows = rows_of(weight)
    bins, proba = reliability(rows, 1, 0.95), rows.scores[:, 1]
    assert sum(each.n_rows for each in bins) == len(proba)
    assert all(first.most < second.least for first, second in pairwise(bins))
    for each in bins:
        inside = (proba >= each.least) & (proba <= each.most)
        weights = rows.weights[inside]
        assert each.n_rows == inside.sum()
        assert each.mean == pytest.approx(np.average(proba[inside], weights=weights))
        assert each.observed == pytest.approx(np.average(rows.labels[inside], weights=weights))
        if weight is None:
            interval = binomtest(int(rows.labels[inside].sum()), int(inside.sum())).proportion_ci(method="wilson")
            assert (each.low, each.high) == pytest.approx(tuple(interval), abs=1e-12)


def test_bins_hold_like_parts_of_both_classes():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20_000, 1)), rng.random(20_000) < 0.01
    x[y] += 1.0
    rows = score_rows(LogisticRegression().fit(x, y), x, y, None)
    parts = [
        each.n_rows * (each.observed / y.sum() + (1.0 - each.observed) / np.sum(~y))
        for each in reliability(rows, 1, 0.95)
    ]
    assert parts == pytest.approx([0.2] * 10, abs=0.01)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_curves_of_drawn_rows_are_those_of_scikit_learn(weight):
    rows = rows_of(weight)
    drawn = np.random.default_rng(1).integers(0, 300, 300)
    found, precision = _Curves(rows).draw(rows.weights * np.bincount(drawn, minlength=300))
    known = (rows.labels[drawn], rows.scores[drawn, 1])
    assert found == pytest.approx(average_precision_score(*known, sample_weight=rows.weights[drawn]))
    expected, recall, _ = precision_recall_curve(*known, sample_weight=rows.weights[drawn])
    # of all points that find at least so much, the one of the greatest threshold
    firsts = [np.flatnonzero(recall[:-1] >= level - 1e-12)[-1] for level in RECALLS[1:]]
    assert precision[1:] == pytest.approx(expected[firsts])


def test_merging_scores_hardly_changes_a_curve():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40_000, 1)), rng.random(40_000) < 0.01
    x[y] += 1.5
    found, _ = _Curves(score_rows(LogisticRegression().fit(x, y), x, y, None)).draw(np.ones(y.size))
    assert found == pytest.approx(average_precision_score(y, x[:, 0]), abs=2e-3)


def test_thinned_curves_keep_their_area():
    cumulated = cumulate_class(rows_of(), 1)
    places = thin(cumulated, 60)
    assert len(places) <= 62
    fpr, tpr = cumulated.fps[places] / cumulated.fps[-1], cumulated.tps[places] / cumulated.tps[-1]
    exact = roc_auc_score(Y[300:], MODEL.predict_proba(X[300:])[:, 1])
    assert np.trapezoid(tpr, fpr) == pytest.approx(exact, abs=0.005)
    assert {0, cumulated.tps.size - 1, 7} <= set(thin(cumulated, 30, (7,)).tolist())


def test_intervals_of_drawn_rows_are_as_wide_as_the_spread_of_means():
    rows = rows_of()
    losses = np.square(rows.scores[:, 1] - rows.labels)
    within = [losses[rows.labels == k].var() * np.mean(rows.labels == k) for k in (0, 1)]
    resamples = resample(rows, 2000, 0)
    assert resamples.n_draws == 2000
    assert resamples.scores["Brier score"].std() == pytest.approx(np.sqrt(sum(within) / 300), rel=0.06)
    assert resamples.interval("Brier score", 0.5) == tuple(np.quantile(resamples.scores["Brier score"], [0.25, 0.75]))


def test_held_out_importances_are_those_of_scikit_learn():
    found = held_out_importance(rows_of(), 20, 0)
    expected = permutation_importance(MODEL, X[300:], Y[300:], scoring="roc_auc", n_repeats=20, random_state=1)
    error = np.hypot(found.importances_std, expected.importances_std) / np.sqrt(20)
    assert np.all(np.abs(found.importances_mean - expected.importances_mean) <= 4 * error + 1e-12)
    assert found.baseline_score == pytest.approx(roc_auc_score(Y[300:], MODEL.predict_proba(X[300:])[:, 1]))
    j = int(found.importances_mean.argmax())
    table = X[300:].copy()
    table[:, j] = np.random.default_rng(0).permutation(table[:, j])
    pair = compare_auc(Y[300:], MODEL.predict_proba(X[300:])[:, 1], MODEL.predict_proba(table)[:, 1])
    delong = pair.difference / pair.z
    assert 0.5 < found.importances_stderr[j] / delong < 2.0


def test_the_last_point_by_trees_is_the_score_of_the_forest():
    forest = small_forest(40, oob_score=True, threshold="gmean").fit(X, Y)
    points = auc_by_trees(forest, training_rows(forest, X, Y, None), 0.95)
    assert points[-1].n_trees == 40
    assert points[-1].auc == forest.oob_score_
    assert all(point.low < point.auc < point.high for point in points)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1.0, "1"), (0.88412, "0.884"), (0.00751, "0.0075"), (-8.26e-5, "−0.000083"), (12.365, "12.37"),
     (3.9e-5, "0.000039"), (1e-7, "1.0 × 10⁻⁷"), (-2.5e-12, "−2.5 × 10⁻¹²"),
     (1234.56, "1,235"), (-2.0, "−2"), (float("nan"), "–"), (float("inf"), "∞"), (-float("inf"), "−∞")],
)  # fmt: skip
def test_numbers_are_printed_to_a_few_digits_and_without_exponents(value, text):
    assert number(value) == text


def test_shares_and_differences():
    assert [percent(share) for share in (0.0, 1.0, 0.5, 0.0321, 0.00044)] == [
        "0.0 %", "100.0 %", "50.0 %", "3.2 %", "0.044 %",
    ]  # fmt: skip
    assert interval(-0.25, 0.75, signed) == "−0.250 to +0.750"
    assert interval(float("nan"), float("nan"), signed) == "–"


def test_costs_are_those_of_the_forest():
    assert costs_of(small_forest(threshold={"cost": [[1, 3], [7, 0]]})).tolist() == [[1, 3], [7, 0]]
    of_rows = [[[0, 1], [4, 0]], [[0, 3], [6, 0]]]
    assert costs_of(small_forest(threshold={"cost": of_rows})).tolist() == [[0, 2], [5, 0]]
    assert costs_of(small_forest(threshold={"alerts": 0.1})).tolist() == [[0, 1], [1, 0]]
    for model in (small_forest(threshold="gmean"), MODEL):
        assert costs_of(model).tolist() == [[0, 1], [1, 0]]


def test_control_characters_of_names_are_replaced():
    with plots.drawing(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a letter that the font does not have
        figure, ax = plt.subplots()
        ax.bar(["a\x01b"], [1.0])
        svg = plots.as_svg(figure, "bars", "bars")
    plt.close(figure)
    assert "a\N{REPLACEMENT CHARACTER}b" in svg

"""Soft AUCs against recorded cases, every threshold, every labelling and the ordinary AUC.

Expectations and variances against recorded closed forms, influences against differences; simulated labels.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score

from aucforest.metrics import hand_till_score, precision_at_k, recall_at_k
from aucforest.monitoring import soft_auc, soft_auc_interval, soft_auc_multiclass
from aucforest.monitoring._rows import Rows, label_variance, rank_columns
from aucforest.monitoring.soft import (
    FEW,
    one_vs_one_auc,
    one_vs_rest_auc,
    simulate_at_k,
    simulate_aucs,
    simulate_average_precisions,
    soft_at_k,
    soft_average_precision,
    soft_roc_auc,
)
from tests.monitoring.data import binary_cases, load
from tests.monitoring.strategies import many_classes, two_classes
from tests.reference.metrics import auc, average_precision
from tests.reference.soft import (
    at_k,
    auc_by_thresholds,
    average_precision_by_thresholds,
    over_all_labels,
    pair_matrix,
)


def ranked(scores, p):
    """Return ranked samples, given scores and probabilities."""
    p = np.array(p, dtype=float)
    return Rows(rank_columns(np.array(scores, dtype=float)), p.reshape(len(p), -1))


ROUNDING = 2e-6  # the peer rounds cumulative sums to 5 decimals; it is off by more where they are small
STEP = 1e-6
COARSE = {"rare, sum p = 0.0126 (nannyml rounds cumsum to 1e-5)": 1e-4}
CASES = [case for case in binary_cases() if case["closed_form"]["auc_soft"] is not None and len(case["p"]) > 1]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_recorded_cases(case):
    expected = case["closed_form"]
    assert soft_auc(y_score=case["score"], p=case["p"]) == pytest.approx(expected["auc_soft"], abs=1e-12)
    interval = soft_auc_interval(y_score=case["score"], p=case["p"], method="wald")
    assert interval.auc == pytest.approx(expected["auc_bias_corrected"], abs=1e-12)
    assert interval.standard_error**2 == pytest.approx(expected["auc_var"], abs=1e-12)
    peer = case["nannyml"]["roc_auc"]
    assert soft_auc(y_score=case["score"], p=case["p"]) == pytest.approx(peer, abs=COARSE.get(case["name"], ROUNDING))


def test_the_other_recorded_cases_are_undefined():
    undefined = [case for case in binary_cases() if case not in CASES]
    assert [case["name"] for case in undefined] == ["one row", "all p = 0"]
    for case in undefined:
        with pytest.warns(UndefinedMetricWarning, match="AUC is not defined"):
            assert np.isnan(soft_auc(y_score=case["score"], p=case["p"]))
        with pytest.warns(UndefinedMetricWarning):
            assert np.isnan(soft_auc_interval(y_score=case["score"], p=case["p"])).all()


@given(two_classes())
def test_soft_auc_is_the_area_under_the_curve_of_expected_rates(rows):
    scores, p = rows
    assert soft_auc(y_score=scores, p=p) == pytest.approx(auc_by_thresholds(scores, p), abs=1e-12)


@pytest.mark.parametrize("case", [case for case in CASES if case.get("exact_enumeration")], ids=lambda c: c["name"])
def test_enumeration_of_all_labels(case):
    defined, mean, variance = over_all_labels(auc, case["score"], case["p"])
    recorded = case["exact_enumeration"]
    assert (defined, mean, variance) == pytest.approx(tuple(recorded[k] for k in ("prob_defined", "mean", "var")))
    # the expansion leaves terms of order 1 / n^2
    soft = soft_auc(y_score=case["score"], p=case["p"])
    expected, _, _, error = soft_auc_interval(y_score=case["score"], p=case["p"], method="wald")
    if defined > 0.99:
        assert abs(expected - mean) < 0.25 * abs(soft - mean) or abs(soft - mean) < 1e-12
        assert error**2 == pytest.approx(variance, rel=0.25, abs=1e-12)


@given(two_classes())
def test_known_labels_give_the_ordinary_auc(rows):
    scores, p = rows
    labels = (p > 0.5).astype(float)
    labels[0], labels[1] = 1, 0
    auc, low, high, error = soft_auc_interval(y_score=scores, p=labels)
    assert auc == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    assert (low, high, error) == pytest.approx((auc, auc, 0.0), abs=1e-12)


def test_equal_scores_give_one_half_without_error():
    assert soft_auc_interval(y_score=np.full(100, 0.3), p=np.linspace(0, 1, 100)) == (0.5, 0.5, 0.5, 0.0)


def test_auto_simulates_if_a_class_is_expected_to_be_rare():
    random = np.random.default_rng(0)
    scores = random.random(200)
    for p, method in ((np.full(200, 0.9 * FEW / 200), "bootstrap"), (np.full(200, 1.1 * FEW / 200), "wald")):
        assert soft_auc_interval(y_score=scores, p=p) == soft_auc_interval(y_score=scores, p=p, method=method)
        other = {"bootstrap": "wald", "wald": "bootstrap"}[method]
        assert soft_auc_interval(y_score=scores, p=p) != soft_auc_interval(y_score=scores, p=p, method=other)


@pytest.mark.parametrize("method", ["wald", "bootstrap"])
def test_the_level_sets_the_width(method):
    p = np.random.default_rng(0).random(400)
    widths = [
        high - low
        for _, low, high, _ in (soft_auc_interval(y_score=p, p=p, level=x, method=method) for x in (0.5, 0.95))
    ]
    assert widths[0] / widths[1] == pytest.approx(0.6745 / 1.96, rel=0.05)


@given(many_classes())
def test_pairs_of_classes(rows):
    scores, p = rows
    matrix = soft_auc_multiclass(y_score=scores, p=p, average=None)
    np.testing.assert_allclose(matrix, pair_matrix(scores, p), atol=1e-12)
    assert soft_auc_multiclass(y_score=scores, p=p) == pytest.approx(np.nanmean(matrix), abs=1e-12)
    one_vs_rest = [auc_by_thresholds(scores[:, c], p[:, c]) for c in range(3)]
    assert soft_auc_multiclass(y_score=scores, p=p, multi_class="ovr", average=None) == pytest.approx(
        one_vs_rest, abs=1e-12
    )


@pytest.mark.parametrize("case", load("cbpe_unit")["multiclass"], ids=lambda case: f"tied {case['tied']}")
def test_recorded_cases_of_several_classes(case):
    p, y = np.array(case["P"]), np.array(case["y"])
    assert soft_auc_multiclass(y_score=p, p=p) == pytest.approx(case["ovo"], abs=1e-12)
    one_vs_rest = soft_auc_multiclass(y_score=p, p=p, multi_class="ovr")
    assert one_vs_rest == pytest.approx(case["ovr"], abs=1e-12)
    assert one_vs_rest == pytest.approx(case["nannyml_ovr"], abs=2e-6)
    matrix = [[np.nan if value is None else value for value in row] for row in case["ovo_matrix"]]
    np.testing.assert_allclose(soft_auc_multiclass(y_score=p, p=p, average=None), matrix, atol=1e-12)
    known = soft_auc_multiclass(y_score=p, p=np.eye(p.shape[1])[y])
    assert known == pytest.approx(hand_till_score(y, p), abs=1e-12)
    assert known == pytest.approx(case["onehot_ovo"], abs=1e-12)
    rows = ranked(p, p)
    estimate = one_vs_one_auc(rows)
    assert estimate.expected == pytest.approx(case["ovo_no_self_pairs"], abs=1e-12)
    assert label_variance(p, estimate.influence) == pytest.approx(case["ovo_var"], abs=1e-12)
    assert label_variance(p, one_vs_rest_auc(rows).influence) == pytest.approx(case["ovr_var"], abs=1e-12)
    by_class = [average_precision_by_thresholds(column, column) for column in p.T.tolist()]
    assert soft_average_precision(rows).value == pytest.approx(np.mean(by_class), abs=1e-12)


def test_an_impossible_class_is_undefined():
    p = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    for options, shape in (({"average": None}, (3, 3)), ({"average": None, "multi_class": "ovr"}, (3,)), ({}, ())):
        with pytest.warns(UndefinedMetricWarning, match="column 2 of p is 0"):
            value = soft_auc_multiclass(y_score=p, p=p, **options)
        assert np.shape(value) == shape
        assert np.isnan(value).all()


@pytest.mark.parametrize(
    ("scores", "p", "sentence"),
    [
        ([1.0, 2.0], [0.5, 1.5], r"p must be in \[0, 1\], but value 1 is 1.5"),
        ([1.0, 2.0], [0.5, -0.1], r"p must be in \[0, 1\], but value 1 is -0.1"),
        ([1.0, 2.0], [0.5, np.nan], "p must be finite, but value 1 is nan"),
        ([1.0, np.nan], [0.5, 0.5], "y_score must be finite, but value 1 is nan"),
        ([1.0, 2.0], [0.5], r"the same shape, but have \(2,\) and \(1,\)"),
        ([], [], "y_score is empty"),
    ],
)
def test_invalid_rows(scores, p, sentence):
    for function in (soft_auc, soft_auc_interval):
        with pytest.raises(ValueError, match=sentence):
            function(p=p, y_score=scores)


def test_invalid_options_and_columns():
    good = np.full((2, 3), 1 / 3)
    for options in ({"multi_class": "all"}, {"average": "micro"}):
        with pytest.raises(ValueError, match="must be"):
            soft_auc_multiclass(y_score=good, p=good, **options)
    with pytest.raises(ValueError, match=r"rows of p must sum to 1, but row 1 sums to 0\.9"):
        soft_auc_multiclass(y_score=good, p=[[0.5, 0.5, 0.0], [0.3, 0.3, 0.3]])
    with pytest.raises(ValueError, match="at least two columns"):
        soft_auc_multiclass(y_score=[[1.0]], p=[[1.0]])
    for options, name in (({"method": "logit"}, "method"), ({"level": 1.0}, "level")):
        with pytest.raises(ValueError, match=f"{name} must be"):
            soft_auc_interval(y_score=[1, 2], p=[0.2, 0.7], **options)
    with pytest.raises(TypeError, match="real numbers"):
        soft_auc(y_score=["a", "b"], p=[0.1, 0.2])


AT_K = [partial(soft_at_k, "precision", 0.3), partial(soft_at_k, "recall", 0.3)]


@pytest.mark.parametrize("metric", [one_vs_one_auc, one_vs_rest_auc, soft_average_precision, soft_roc_auc, *AT_K])
def test_influence_is_the_derivative(metric):
    p = np.array(load("cbpe_unit")["multiclass"][-1]["P"])
    rows = ranked(p, p)
    if metric is soft_roc_auc:
        rows = rows.by_column()[0]
    estimate = metric(rows)
    for i in (0, 7, 31):
        for c in range(rows.p.shape[1]):
            up, down = rows.p.copy(), rows.p.copy()
            up[i, c] += STEP
            down[i, c] -= STEP
            slope = (metric(rows._replace(p=up)).value - metric(rows._replace(p=down)).value) / (2 * STEP)
            assert slope == pytest.approx(estimate.influence[i, c], abs=1e-8)


@given(two_classes(max_size=8))
def test_expected_average_precision_is_that_of_all_labels(case):
    scores, p = case
    rows = ranked(scores, p)
    _, mean, _ = over_all_labels(average_precision, scores, p)
    assert soft_average_precision(rows).expected == pytest.approx(mean, abs=1e-12)


@given(two_classes(max_size=8), st.floats(0.01, 1.0))
def test_precision_and_recall_at_k_are_those_of_all_labels(case, k):
    scores, p = case
    rows = ranked(scores, p)
    _, mean, variance = over_all_labels(partial(at_k, "precision", k), scores, p)
    estimate = soft_at_k("precision", k, rows)
    assert estimate.value == estimate.expected == pytest.approx(mean, abs=1e-12)
    assert label_variance(rows.p, estimate.influence) == pytest.approx(variance, abs=1e-12)
    certain = ranked(scores, np.round(p))
    if certain.p.any():
        assert soft_at_k("precision", k, certain).value == pytest.approx(precision_at_k(np.round(p) == 1, scores, k))
        assert soft_at_k("recall", k, certain).expected == pytest.approx(recall_at_k(np.round(p) == 1, scores, k))


@pytest.mark.parametrize("k", [0.1, 0.25, 0.5])
def test_expected_recall_at_k_is_close_to_that_of_all_labels(k):
    score = np.round(np.random.default_rng(0).uniform(0.3, 0.95, 12), 1)
    rows = ranked(score, score)
    _, mean, _ = over_all_labels(partial(at_k, "recall", k), score, score)
    estimate = soft_at_k("recall", k, rows)
    assert abs(estimate.expected - mean) < 0.2 * abs(estimate.value - mean)


def test_expected_average_precision_of_very_rare_positives():
    """If positives are very improbable, there is only one, and the average precision is 1 / its rank."""
    score = np.random.default_rng(0).random(3000)
    p = 1e-9 * score
    expected = soft_average_precision(ranked(score, p)).expected
    rank = 3000 - np.argsort(np.argsort(score))
    assert expected == pytest.approx(np.average(1 / rank, weights=p), rel=1e-5)


@pytest.mark.parametrize("positives", [3.0, 40.0, 900.0])
def test_expected_average_precision_of_many_rows(positives):
    random = np.random.default_rng(0)
    score = random.beta(0.5, 3.0, 3000)
    rows = ranked(score, np.minimum(1.0, positives * score / score.sum()))
    simulated = simulate_average_precisions(rows, 2000, random)
    error = np.nanstd(simulated) / 2000**0.5
    assert soft_average_precision(rows).expected == pytest.approx(np.nanmean(simulated), abs=4 * error)


N_SIMULATIONS = 40_000
SMALL = [case for case in binary_cases() if 2 <= len(case["p"]) <= 12 and sum(case["p"]) > 0]
SMALL.append({"name": "rare negatives, one certain", "score": [1, 2, 2, 3], "p": [0.9, 0.8, 0.7, 1.0]})
SMALL.append({"name": "a certain positive among few", "score": [1, 2, 2, 3, 4], "p": [0.1, 0.0, 0.2, 1.0, 0.1]})


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case["name"])
@pytest.mark.parametrize(
    ("sample", "metric"),
    [
        (simulate_aucs, auc),
        (simulate_average_precisions, average_precision),
        (partial(simulate_at_k, "precision", 0.4), partial(at_k, "precision", 0.4)),
        (partial(simulate_at_k, "recall", 0.4), partial(at_k, "recall", 0.4)),
    ],
    ids=["auc", "average precision", "precision", "recall"],
)
def test_simulations_have_the_distribution_over_all_labels(sample, metric, case):
    """The share that is defined, mean and variance are each within five standard errors."""
    simulated = sample(ranked(case["score"], case["p"]), N_SIMULATIONS, np.random.default_rng(0))
    defined, mean, variance = over_all_labels(metric, case["score"], case["p"])
    known = simulated[~np.isnan(simulated)]
    assert known.size / N_SIMULATIONS == pytest.approx(defined, abs=5 * np.sqrt(0.25 / N_SIMULATIONS))
    assert known.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / known.size) + 1e-12)
    assert known.var() == pytest.approx(variance, rel=0.1, abs=1e-12)


def test_batches_do_not_change_the_simulated_classes():
    random = np.random.default_rng(1)
    p = random.dirichlet([1.0, 2.0, 3.0], size=40)
    rows = ranked(p, p)
    one = [np.nanmean(simulate_average_precisions(one, 20_000, random)) for one in rows.by_column()]
    assert np.nanmean(simulate_average_precisions(rows, 20_000, random)) == pytest.approx(np.mean(one), abs=0.003)


def test_metrics_of_simulations_without_a_positive_are_nan():
    rows = ranked(range(3), [0.0, 0.0, 1e-9])
    assert np.isnan(simulate_aucs(rows, 10, np.random.default_rng(0))).all()
    assert np.isnan(simulate_average_precisions(rows, 10, np.random.default_rng(0))).all()
    assert np.isnan(simulate_at_k("recall", 0.5, rows, 10, np.random.default_rng(0))).all()
    assert np.isnan(soft_at_k("recall", 0.5, ranked(range(3), np.zeros(3))).value)
    assert np.isnan(one_vs_one_auc(ranked(np.eye(3), [[0.5, 0.5, 0.0]] * 3)).value)

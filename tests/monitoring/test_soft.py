from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score

from aucforest.metrics import hand_till_score, precision_at_k, recall_at_k
from aucforest.monitoring import soft, soft_auc, soft_auc_interval, soft_auc_multiclass
from aucforest.monitoring._rows import RankedSamples, label_variance, rank_columns
from tests.monitoring.data import BINARY_CASES, labelled, load, many_classes, two_classes
from tests.reference.metrics import auc, average_precision
from tests.reference.soft import at_k, auc_by_thresholds, average_precision_by_thresholds, over_all_labels, pair_matrix


def ranked(scores, p):
    p = np.array(p, dtype=float)
    return RankedSamples(rank_columns(np.array(scores, dtype=float)), p.reshape(len(p), -1))


ROUNDING = 2e-6  # The peer, nannyml, rounds cumulative sums to 5 decimals.
STEP = 1e-6
BOTH = (soft_auc, soft_auc_interval)
COARSE = {"rare, sum p = 0.0126 (nannyml rounds cumsum to 1e-5)": 1e-4}
CASES = [case for case in BINARY_CASES if case["closed_form"]["auc_soft"] is not None and len(case["p"]) > 1]


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
    undefined = [case for case in BINARY_CASES if case not in CASES]
    assert [case["name"] for case in undefined] == ["one row", "all p = 0"]
    for case in undefined:
        for function in (soft_auc, soft_auc_interval):
            with pytest.warns(UndefinedMetricWarning, match="AUC is not defined"):
                assert np.isnan(function(y_score=case["score"], p=case["p"])).all()


@given(two_classes())
def test_soft_auc_is_the_area_under_the_curve_of_expected_rates(rows):
    scores, p = rows
    assert soft_auc(y_score=scores, p=p) == pytest.approx(auc_by_thresholds(scores, p), abs=1e-12)


@pytest.mark.parametrize("case", [case for case in CASES if case.get("exact_enumeration")], ids=lambda c: c["name"])
def test_enumeration_of_all_labels(case):
    rows, recorded = (case["score"], case["p"]), case["exact_enumeration"]
    defined, mean, variance = over_all_labels(auc, *rows)
    assert (defined, mean, variance) == pytest.approx(tuple(recorded[k] for k in ("prob_defined", "mean", "var")))
    # The approximation has an error of order 1 / n^2.
    bias = abs(soft_auc(y_score=rows[0], p=rows[1]) - mean)
    expected, _, _, error = soft_auc_interval(y_score=rows[0], p=rows[1], method="wald")
    if defined > 0.99:
        assert abs(expected - mean) < 0.25 * bias or bias < 1e-12
        assert error**2 == pytest.approx(variance, rel=0.25, abs=1e-12)


@given(labelled())
def test_known_labels_give_the_ordinary_auc(rows):
    scores, labels = rows
    expected, found = roc_auc_score(labels, scores), soft_auc_interval(y_score=scores, p=labels)
    assert found == pytest.approx((expected, expected, expected, 0.0), abs=1e-12)


def test_auto_simulates_if_a_class_is_expected_to_be_rare():
    scores = np.random.default_rng(0).random(200)
    for part, method, other in ((0.9, "bootstrap", "wald"), (1.1, "wald", "bootstrap")):
        rows = {"y_score": scores, "p": np.full(200, part * soft.FEW / 200)}
        assert soft_auc_interval(**rows) == soft_auc_interval(**rows, method=method)
        assert soft_auc_interval(**rows) != soft_auc_interval(**rows, method=other)


@pytest.mark.parametrize("method", ["wald", "bootstrap"])
def test_the_level_sets_the_width(method):
    p = np.random.default_rng(0).random(400)
    half, most = (soft_auc_interval(y_score=p, p=p, level=level, method=method) for level in (0.5, 0.95))
    assert (half.high - half.low) / (most.high - most.low) == pytest.approx(0.6745 / 1.96, rel=0.05)


@given(many_classes())
def test_pairs_of_classes(rows):
    scores, p = rows
    expected = np.nanmean(pair_matrix(scores, p))
    assert soft_auc_multiclass(y_score=scores, p=p) == pytest.approx(expected, abs=1e-12)
    expected = np.mean([auc_by_thresholds(scores[:, c], p[:, c]) for c in range(3)])
    assert soft_auc_multiclass(y_score=scores, p=p, multi_class="ovr") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("case", load("cbpe_unit")["multiclass"], ids=lambda case: f"tied {case['tied']}")
def test_recorded_cases_of_several_classes(case):
    p, y = np.array(case["P"]), np.array(case["y"])
    rows = ranked(p, p)
    one_vs_one, one_vs_rest = soft.one_vs_one_auc(rows), soft.one_vs_rest_auc(rows)
    by_class = [average_precision_by_thresholds(column, column) for column in p.T.tolist()]
    for found, expected in (
        (soft.soft_auc_multiclass(y_score=p, p=np.eye(p.shape[1])[y]), hand_till_score(y, p)),
        (one_vs_one.value, case["ovo"]),
        (one_vs_one.expected, case["ovo_no_self_pairs"]),
        (label_variance(p, one_vs_one.influence), case["ovo_var"]),
        (one_vs_rest.value, case["ovr"]),
        (label_variance(p, one_vs_rest.influence), case["ovr_var"]),
        (soft.soft_average_precision(rows).value, np.mean(by_class)),
    ):
        assert found == pytest.approx(expected, abs=1e-12)
    assert one_vs_rest.value == pytest.approx(case["nannyml_ovr"], abs=ROUNDING)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_an_impossible_class_is_undefined(multi_class):
    p = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    with pytest.warns(UndefinedMetricWarning, match="column 2 of p is 0"):
        assert np.isnan(soft_auc_multiclass(y_score=p, p=p, multi_class=multi_class))


@pytest.mark.parametrize(("functions", "y_score", "p", "options", "error", "sentence"), [
    (BOTH, [1.0, 2.0], [0.5, 1.5], {}, ValueError, r"p must be in \[0, 1\], but value 1 is 1.5"),
    (BOTH, [1.0, 2.0], [0.5, -0.1], {}, ValueError, r"p must be in \[0, 1\], but value 1 is -0.1"),
    (BOTH, [1.0, 2.0], [0.5, np.nan], {}, ValueError, "p must be finite, but value 1 is nan"),
    (BOTH, [1.0, np.nan], [0.5, 0.5], {}, ValueError, "y_score must be finite, but value 1 is nan"),
    (BOTH, [1.0, 2.0], [0.5], {}, ValueError, r"the same shape, but have \(2,\) and \(1,\)"),
    (BOTH, [], [], {}, ValueError, "y_score is empty"),
    (BOTH, ["a", "b"], [0.1, 0.2], {}, TypeError, "real numbers"),
    ([soft_auc_interval], [1, 2], [0.2, 0.7], {"method": "logit"}, ValueError, "method must be"),
    ([soft_auc_interval], [1, 2], [0.2, 0.7], {"level": 1.0}, ValueError, "level must be"),
    ([soft_auc_interval], [1, 2], [0.2, 0.7], {"n_simulations": 0}, ValueError, "n_simulations == 0, must be >= 1"),
    ([soft_auc_multiclass], np.eye(2), np.eye(2), {"multi_class": "all"}, ValueError, "multi_class must be"),
    ([soft_auc_multiclass], np.eye(2), [[1, 0], [0.3, 0.6]], {}, ValueError, "sum to 1, but row 1 sums to 0.9"),
    ([soft_auc_multiclass], [[1.0]], [[1.0]], {}, ValueError, "at least two columns"),
])  # fmt: skip
def test_invalid_rows_and_options(functions, y_score, p, options, error, sentence):
    for function in functions:
        with pytest.raises(error, match=sentence):
            function(p=p, y_score=y_score, **options)


AT_K = [partial(soft.soft_at_k, kind, 0.3) for kind in ("precision", "recall")]
AUCS = [soft.one_vs_one_auc, soft.one_vs_rest_auc, soft.soft_roc_auc]


@pytest.mark.parametrize("metric", [*AUCS, soft.soft_average_precision, *AT_K])
def test_influence_is_the_derivative(metric):
    p = np.array(load("cbpe_unit")["multiclass"][-1]["P"])
    rows = ranked(p, p)
    rows = rows.by_column()[0] if metric is soft.soft_roc_auc else rows
    influence = metric(rows).influence
    for cell in product((0, 7, 31), range(rows.p.shape[1])):
        change = np.zeros_like(rows.p)
        change[cell] = STEP
        up, down = (metric(rows._replace(p=rows.p + sign * change)).value for sign in (1, -1))
        assert (up - down) / (2 * STEP) == pytest.approx(influence[cell], abs=1e-8)


@given(two_classes(max_size=8), st.floats(0.01, 1.0))
def test_expected_metrics_of_the_highest_scores_are_those_of_all_labels(case, k):
    scores, p = case
    rows = ranked(scores, p)
    _, mean, _ = over_all_labels(average_precision, scores, p)
    assert soft.soft_average_precision(rows).expected == pytest.approx(mean, abs=1e-12)
    _, mean, variance = over_all_labels(partial(at_k, "precision", k), scores, p)
    estimate = soft.soft_at_k("precision", k, rows)
    assert estimate.value == estimate.expected == pytest.approx(mean, abs=1e-12)
    assert label_variance(rows.p, estimate.influence) == pytest.approx(variance, abs=1e-12)
    labels = np.round(p) == 1
    if labels.any():
        precision, recall = (soft.soft_at_k(kind, k, ranked(scores, labels)) for kind in ("precision", "recall"))
        assert precision.value == pytest.approx(precision_at_k(labels, scores, k))
        assert recall.expected == pytest.approx(recall_at_k(labels, scores, k))


@pytest.mark.parametrize("k", [0.1, 0.25, 0.5])
def test_expected_recall_at_k_is_close_to_that_of_all_labels(k):
    score = np.round(np.random.default_rng(0).uniform(0.3, 0.95, 12), 1)
    _, mean, _ = over_all_labels(partial(at_k, "recall", k), score, score)
    estimate = soft.soft_at_k("recall", k, ranked(score, score))
    assert abs(estimate.expected - mean) < 0.2 * abs(estimate.value - mean)


def test_expected_average_precision_of_very_rare_positives():
    """If positives are very improbable, there is only one, and the average precision is 1 / its rank."""
    score = np.sort(np.random.default_rng(0).random(3000))
    expected = np.average(1 / np.arange(3000, 0, -1), weights=score)
    assert soft.soft_average_precision(ranked(score, 1e-9 * score)).expected == pytest.approx(expected, rel=1e-5)


def test_expected_average_precision_of_many_rows():
    random = np.random.default_rng(0)
    score = random.beta(0.5, 3.0, 3000)
    rows = ranked(score, np.minimum(1.0, 900.0 * score / score.sum()))
    simulated = soft.simulate_average_precisions(rows, 2000, random)
    tolerance = 4 * np.nanstd(simulated) / 2000**0.5
    assert soft.soft_average_precision(rows).expected == pytest.approx(np.nanmean(simulated), abs=tolerance)


N_SIMULATIONS = 40_000
SMALL = [case for case in BINARY_CASES if 2 <= len(case["p"]) <= 12 and sum(case["p"]) > 0]
SMALL.append({"name": "rare negatives, one certain", "score": [1, 2, 2, 3], "p": [0.9, 0.8, 0.7, 1.0]})
SMALL.append({"name": "a certain positive among few", "score": [1, 2, 2, 3, 4], "p": [0.1, 0.0, 0.2, 1.0, 0.1]})


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case["name"])
@pytest.mark.parametrize("name", ["auc", "average precision", "precision", "recall"])
def test_simulations_have_the_distribution_over_all_labels(name, case):
    """The share that is defined, mean and variance are each within five standard errors."""
    sample, metric = {
        "auc": (soft.simulate_aucs, auc),
        "average precision": (soft.simulate_average_precisions, average_precision),
    }.get(name) or (partial(soft.simulate_at_k, name, 0.4), partial(at_k, name, 0.4))
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
    one = [np.nanmean(soft.simulate_average_precisions(one, 20_000, random)) for one in rows.by_column()]
    assert np.nanmean(soft.simulate_average_precisions(rows, 20_000, random)) == pytest.approx(np.mean(one), abs=0.003)


def test_metrics_of_simulations_without_a_positive_are_nan():
    rows = ranked(range(3), [0.0, 0.0, 1e-9])
    for simulate in (soft.simulate_aucs, soft.simulate_average_precisions, partial(soft.simulate_at_k, "recall", 0.5)):
        assert np.isnan(simulate(rows, 10, np.random.default_rng(0))).all()
    assert np.isnan(soft_auc_interval(y_score=range(3), p=rows.p[:, 0])[1:3]).all()
    assert np.isnan(soft.soft_at_k("recall", 0.5, ranked(range(3), np.zeros(3))).value)
    assert np.isnan(soft.one_vs_one_auc(ranked(np.eye(3), [[0.5, 0.5, 0.0]] * 3)).value)

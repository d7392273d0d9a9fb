"""Expectations and variances against recorded closed forms, influences against differences; drawn labels."""

import numpy as np
import pytest
from hypothesis import given, settings

from aucforest.monitoring._auc import (
    draw_aucs,
    draw_average_precisions,
    one_vs_one_auc,
    one_vs_rest_auc,
    soft_average_precision,
    soft_roc_auc,
)
from aucforest.monitoring._rows import Rows, label_variance, rank_columns
from tests.monitoring.golden import binary_cases, load
from tests.monitoring.strategies import two_classes
from tests.reference.metrics import average_precision
from tests.reference.soft import auc_over_all_labels, average_precision_by_thresholds, over_all_labels

STEP = 1e-6


def rows_of(case):
    """Return the rows of a recorded case, ranked by their chances."""
    p = np.array(case["P"])
    return Rows(rank_columns(p), p)


@pytest.mark.parametrize("case", load("cbpe_unit")["multiclass"], ids=lambda case: f"tied {case['tied']}")
def test_recorded_classes(case):
    rows = rows_of(case)
    estimate = one_vs_one_auc(rows)
    assert estimate.expected == pytest.approx(case["ovo_no_self_pairs"], abs=1e-12)
    assert label_variance(rows.p, estimate.influence) == pytest.approx(case["ovo_var"], abs=1e-12)
    variance = label_variance(rows.p, one_vs_rest_auc(rows).influence)
    assert variance == pytest.approx(case["ovr_var"], abs=1e-12)


@pytest.mark.parametrize("metric", [one_vs_one_auc, one_vs_rest_auc, soft_average_precision, soft_roc_auc])
@pytest.mark.parametrize("case", load("cbpe_unit")["multiclass"], ids=lambda case: f"tied {case['tied']}")
def test_influence_is_the_derivative(case, metric):
    rows = rows_of(case)
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


@pytest.mark.parametrize("case", load("cbpe_unit")["multiclass"], ids=lambda case: f"tied {case['tied']}")
def test_average_precision_of_every_class(case):
    rows = rows_of(case)
    by_class = [average_precision_by_thresholds(one.p[:, 0].tolist(), one.p[:, 0].tolist()) for one in rows.by_column()]
    assert soft_average_precision(rows).value == pytest.approx(np.mean(by_class), abs=1e-12)


@given(two_classes(max_size=8))
@settings(deadline=None)
def test_expected_average_precision_is_that_of_all_labels(case):
    scores, p = case
    rows = Rows(rank_columns(scores), p[:, None])
    defined, mean, _ = over_all_labels(average_precision, scores, p)
    # the enumeration leaves out all rows positive, whose average precision is 1
    mean = (mean * defined + p.prod()) / (1 - (1 - p).prod())
    assert soft_average_precision(rows).expected == pytest.approx(mean, abs=1e-12)


def test_one_positive_is_expected_at_any_rank():
    """Where positives are next to impossible, one is drawn, and the average precision is 1 / its rank."""
    score = np.random.default_rng(0).random(3000)
    p = 1e-9 * score
    expected = soft_average_precision(Rows(rank_columns(score), p[:, None])).expected
    rank = 3000 - np.argsort(np.argsort(score))
    assert expected == pytest.approx(np.average(1 / rank, weights=p), rel=1e-5)


@pytest.mark.parametrize("positives", [3.0, 40.0, 900.0])
def test_expected_average_precision_of_many_rows(positives):
    random = np.random.default_rng(0)
    score = random.beta(0.5, 3.0, 3000)
    rows = Rows(rank_columns(score), np.minimum(1.0, positives * score / score.sum())[:, None])
    drawn = draw_average_precisions(rows, 2000, random)
    error = np.nanstd(drawn) / 2000**0.5
    assert soft_average_precision(rows).expected == pytest.approx(np.nanmean(drawn), abs=4 * error)


N_DRAWS = 40_000
SMALL = [case for case in binary_cases() if 2 <= len(case["p"]) <= 12 and sum(case["p"]) > 0]
SMALL.append({"name": "rare negatives, one certain", "score": [1, 2, 2, 3], "p": [0.9, 0.8, 0.7, 1.0]})
SMALL.append({"name": "a certain positive among few", "score": [1, 2, 2, 3, 4], "p": [0.1, 0.0, 0.2, 1.0, 0.1]})


def scored_rows_of(case):
    """Return the rows of a case."""
    return Rows(rank_columns(np.array(case["score"], float)), np.array(case["p"], float)[:, None])


def assert_same_distribution(drawn, defined, mean, variance):
    """Compare share that is defined, mean and variance, each within five standard errors."""
    known = drawn[~np.isnan(drawn)]
    assert known.size / drawn.size == pytest.approx(defined, abs=5 * np.sqrt(0.25 / drawn.size))
    assert known.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / known.size) + 1e-12)
    assert known.var() == pytest.approx(variance, rel=0.1, abs=1e-12)


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case["name"])
def test_aucs(case):
    drawn = draw_aucs(scored_rows_of(case), N_DRAWS, np.random.default_rng(0))
    assert_same_distribution(drawn, *auc_over_all_labels(case["score"], case["p"]))


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case["name"])
def test_average_precisions(case):
    drawn = draw_average_precisions(scored_rows_of(case), N_DRAWS, np.random.default_rng(0))
    drawn = drawn[~np.isnan(drawn)]
    p = np.array(case["p"])
    defined, mean, _ = over_all_labels(average_precision, case["score"], case["p"])
    # the enumeration leaves out all rows positive, whose average precision is 1
    all_positive, none = p.prod(), (1 - p).prod()
    mean = (mean * defined + all_positive) / (1 - none)
    assert drawn.mean() == pytest.approx(mean, abs=5 * drawn.std() / np.sqrt(drawn.size) + 1e-12)


def test_batches_do_not_change_the_classes_drawn():
    random = np.random.default_rng(1)
    p = random.dirichlet([1.0, 2.0, 3.0], size=40)
    rows = Rows(rank_columns(p), p)
    one = [np.nanmean(draw_average_precisions(one, 20_000, random)) for one in rows.by_column()]
    assert np.nanmean(draw_average_precisions(rows, 20_000, random)) == pytest.approx(np.mean(one), abs=0.003)


def test_a_class_that_is_never_drawn_is_not_a_number():
    rows = Rows(rank_columns(np.arange(3.0)), np.array([[0.0], [0.0], [1e-9]]))
    assert np.isnan(draw_aucs(rows, 10, np.random.default_rng(0))).all()
    assert np.isnan(draw_average_precisions(rows, 10, np.random.default_rng(0))).all()

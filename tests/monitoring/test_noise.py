"""The noise of curves against numerical derivatives by every reference label, and against simulation."""

import numpy as np
import pytest

from aucforest.monitoring._influence import Rows
from aucforest.monitoring._metrics import find_metrics
from aucforest.monitoring._noise import CurveNoise, Curves
from aucforest.monitoring._validation import rank_columns
from aucforest.monitoring.calibration import Calibration
from tests.reference.isotonic import corrected_auc, estimated_auc, variance_by_block
from tests.reference.metrics import auc
from tests.reference.soft import auc_by_thresholds

(ROC_AUC,) = find_metrics(["roc_auc"], np.arange(2), "ovo", None, None)


def curves_of(scores, truth, weights=None):
    """Return fitted curves of all columns."""
    columns = rank_columns(scores)
    calibration = Calibration(columns, truth, np.full(len(columns), True), weights)
    return Curves(calibration, Rows(columns, truth), weights)


def two_classes(seed, n=60, decimals=1):
    """Return scores with ties and labels."""
    random = np.random.default_rng(seed)
    scores = np.round(random.random(n), decimals)
    labels = (random.random(n) < scores**2).astype(float)
    labels[:2] = [0.0, 1.0]
    return scores, labels


@pytest.mark.parametrize("seed", range(5))
def test_variance_and_offset_of_two_classes(seed):
    scores, labels = two_classes(seed)
    new = np.random.default_rng(100 + seed).random(40)
    curves = curves_of(scores, labels[:, None])
    rows = curves.calibration.apply(rank_columns(new))
    offset = curves.offset(ROC_AUC)
    estimate = ROC_AUC.estimate(Rows(rows.columns, rows.p))
    variance = curves.noise(rows, estimate.influence, offset).variance
    parts = variance_by_block(corrected_auc, list(scores), list(labels), list(new))
    assert variance == pytest.approx(sum(part for part, _ in parts), rel=1e-4)
    p = curves.calibration.apply(rank_columns(scores)).p
    in_sample = ROC_AUC.estimate(Rows(rank_columns(scores), p))
    assert in_sample.value == pytest.approx(auc_by_thresholds(scores, p[:, 0]))
    assert offset.value == pytest.approx(in_sample.expected - auc(labels, scores))


@pytest.mark.parametrize("seed", range(5))
def test_degrees_of_freedom(seed):
    scores, labels = two_classes(seed)
    new = np.random.default_rng(100 + seed).uniform(0.6, 1.0, 40)
    curves = curves_of(scores, labels[:, None])
    rows = curves.calibration.apply(rank_columns(new))
    estimate = ROC_AUC.estimate(Rows(rows.columns, rows.p))
    noise = curves.noise(rows, estimate.influence, curves.no_offset())
    parts = variance_by_block(estimated_auc, list(scores), list(labels), list(new))
    expected = noise.variance**2 / sum(part**2 / max(n_rows - 1, 0.5) for part, n_rows in parts)
    assert noise.freedom == pytest.approx(max(1.0, expected), rel=1e-4)
    # rows that all weigh twice as much are not more rows
    weighted = curves_of(scores, labels[:, None], np.full(scores.size, 2.0))
    assert weighted._freedom == pytest.approx(curves._freedom)


def test_one_row_that_decides_is_one_degree_of_freedom():
    scores, labels = np.array([0.0, 0.1, 0.2, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])
    curves = curves_of(scores, labels[:, None])
    assert curves.calibration.mass.tolist() == [1, 2, 1]
    rows = curves.calibration.apply(rank_columns(np.ones(5)))
    assert curves.noise(rows, np.ones((5, 1)), curves.no_offset()).freedom == 1.0


def test_noise_that_is_known_adds_degrees_of_freedom():
    assert CurveNoise(1.0, 4.0).with_labels(1.0) == (2.0, 16.0)
    assert CurveNoise(0.0, np.inf).with_labels(1.0) == (1.0, np.inf)


def test_a_metric_that_grows_has_a_larger_offset():
    scores, labels = two_classes(0)
    offset = curves_of(scores, labels[:, None]).offset(ROC_AUC)
    doubled = offset.scaled(2.0)
    assert (doubled.value, doubled.variance) == (2 * offset.value, 4 * offset.variance)
    assert doubled.spread.tolist() == (2 * offset.spread).tolist()
    assert doubled.cross.tolist() == (2 * offset.cross).tolist()


@pytest.mark.parametrize("weighted", [False, True])
def test_covariance_of_block_sums_in_simulation(weighted):
    random = np.random.default_rng(3)
    p = random.dirichlet([1.0, 1.0, 2.0], size=60)
    truth = np.eye(3)[(random.random(60)[:, None] > p.cumsum(axis=1)).sum(axis=1)]
    weights = random.uniform(0.5, 2.0, 60) if weighted else None
    curves = curves_of(np.round(p, 1), truth, weights)
    design = curves._design
    drawn = (random.random((20_000, 60, 1)) > design.p.cumsum(axis=1)).sum(axis=2)
    labels = np.eye(3)[np.minimum(drawn, 2)] * (1.0 if weights is None else weights[:, None])
    sums = np.array([design._by_block(one) for one in labels])
    influence = random.normal(size=(60, 3))
    realised = np.einsum("brc,rc->b", np.eye(3)[np.minimum(drawn, 2)], influence)
    simulated = np.cov(np.column_stack([sums, realised]).T)
    # five standard errors of a simulated covariance
    spread = np.sqrt(np.diag(simulated))
    tolerance = 5 * np.sqrt((np.outer(spread, spread) ** 2 + simulated**2) / 20_000) + 1e-9
    assert (np.abs(simulated[:-1, :-1] - curves._covariance) < tolerance[:-1, :-1]).all()
    assert (np.abs(simulated[-1, :-1] - design.cross(influence)) < tolerance[-1, :-1]).all()


def test_offset_of_a_metric_that_the_reference_does_not_define_is_nothing():
    scores, labels = two_classes(0)
    (precision,) = find_metrics(["precision"], np.arange(2), "ovo", None, None)
    columns = rank_columns(scores)
    calibration = Calibration(columns, labels[:, None], np.array([True]))
    never = np.zeros(scores.size, dtype=np.uint32)
    offset = Curves(calibration, Rows(columns, labels[:, None], never)).offset(precision)
    assert (offset.value, offset.variance, offset.spread.any(), offset.cross.any()) == (0.0, 0.0, False, False)

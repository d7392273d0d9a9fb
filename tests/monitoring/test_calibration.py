"""Isotonic curves against scikit-learn and plain loops; estimates and intervals against derivatives and simulations."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import t as student
from sklearn.isotonic import IsotonicRegression

from aucforest.monitoring import CBPE, Chunks
from aucforest.monitoring._rows import RankedColumn, Rows, rank_columns
from aucforest.monitoring.calibration import (
    Curves,
    IsotonicCurve,
    _brier_improves,
    columns_to_fit,
    evaluate,
    is_rising,
    needs_calibration,
)
from aucforest.monitoring.metrics import find_metrics
from tests.monitoring.data import ONE, load
from tests.monitoring.simulation import share_that_fires
from tests.monitoring.strategies import labelled
from tests.reference.isotonic import corrected_auc, curve_at, estimated_auc, pooled_blocks, variance_by_block
from tests.reference.metrics import auc
from tests.reference.soft import auc_by_thresholds

GRID = np.linspace(-6, 6, 49)


def values(curve, scores):
    """Return a curve at scores, in their order."""
    (column,) = rank_columns(np.asarray(scores, dtype=float))
    return column.to_rows(curve.at(curve.locate(column)))


@given(labelled())
def test_rising_curves(rows):
    scores, labels = rows
    scores = scores if is_rising(RankedColumn(scores), labels) else -scores
    curve = IsotonicCurve(RankedColumn(scores), labels)
    peer = IsotonicRegression(out_of_bounds="clip").fit(scores, labels)
    np.testing.assert_allclose(values(curve, GRID), peer.predict(GRID), atol=1e-12)
    blocks = pooled_blocks(scores, labels)
    np.testing.assert_allclose(values(curve, GRID), [curve_at(blocks, labels, score) for score in GRID], atol=1e-12)
    assert curve.mass.tolist() == [len(members) for _, _, members in blocks]
    assert curve.hits.tolist() == [labels[members].sum() for _, _, members in blocks]


@given(labelled(), st.data())
def test_falling_and_weighted_curves(rows, data):
    scores, labels = rows
    scores = -scores if is_rising(RankedColumn(scores), labels) else scores
    assume(not is_rising(RankedColumn(scores), labels))
    drawn = st.lists(st.sampled_from([0.5, 1.0, 2.5]), min_size=labels.size, max_size=labels.size)
    weights = np.array(data.draw(drawn))
    peer = IsotonicRegression(out_of_bounds="clip", increasing=False).fit(scores, labels, sample_weight=weights)
    curve = IsotonicCurve(RankedColumn(scores), labels, weights)
    np.testing.assert_allclose(values(curve, GRID), peer.predict(GRID), atol=1e-12)


MOST_FALSE_ALARMS = 0.06


@pytest.mark.parametrize("case", load("cbpe_unit")["calibration"][:2], ids=lambda case: case["name"])
def test_recorded_decisions(case):
    column = RankedColumn(np.array(case["score"]))
    assert needs_calibration(column, np.array(case["y"], dtype=float)) == case["needs"]


def test_squared_scores_are_calibrated():
    assert share_that_fires(1000, 2.0, 20) == 1.0
    assert share_that_fires(200, 2.0, 40) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 5000])
def test_calibrated_scores_are_not_calibrated_again(n):
    assert share_that_fires(n, 1.0, 400) <= MOST_FALSE_ALARMS


def test_the_auc_test_detects_what_the_brier_test_does_not():
    """A slightly too steep curve changes the Brier score little, and the expected AUC significantly."""
    fired = {_brier_improves: 0, needs_calibration: 0}
    for seed in range(10):
        random = np.random.default_rng(seed)
        logit = random.normal(0, 1.5, 20_000)
        labels = (random.random(logit.size) < 1 / (1 + np.exp(-1.1 * logit))).astype(float)
        column = RankedColumn(1 / (1 + np.exp(-logit)))
        for test in fired:
            fired[test] += test(column, labels, random_state=seed)
    assert fired[needs_calibration] >= 9
    assert fired[needs_calibration] > fired[_brier_improves]


def test_which_columns_are_calibrated():
    random = np.random.default_rng(0)
    p = random.dirichlet([1.0, 2.0, 3.0], size=3000)
    truth = np.eye(3)[(random.random(3000)[:, None] > p.cumsum(axis=1)).sum(axis=1)]
    distorted = p**2 / (p**2).sum(axis=1, keepdims=True)

    def chosen(scores, calibration):
        return columns_to_fit(rank_columns(scores), truth, calibration, 0).tolist()

    assert chosen(p, "auto") == [False] * 3
    assert chosen(distorted, "auto") == [True] * 3
    assert chosen(3 * p, "auto") == [True] * 3  # no probabilities, so nothing to test
    assert chosen(p, "isotonic") == [True] * 3
    assert chosen(distorted, "none") == [False] * 3
    assert chosen(p, [True, False, True]) == [True, False, True]
    with pytest.raises(ValueError, match="one bool for each of 3 columns"):
        chosen(p, [True])


def fitted(metrics, n_reference=600, **options):
    """Return a CBPE with a curve, and scores of new rows."""
    random = np.random.default_rng(0)
    score = random.random(n_reference)
    labels = random.random(n_reference) < score**2
    cbpe = CBPE(metrics, calibration="isotonic", **options).fit(y_score=score, y_true=labels, y_pred=score > 0.5)
    return cbpe, random.random(150)


def test_estimated_counts_are_proportions_times_rows():
    """The reference has four times the rows, so the correction of a count must be a quarter."""
    counts, new = fitted(["confusion_matrix"])
    shares, _ = fitted(["confusion_matrix"], normalize="all")
    rows = zip(*(cbpe.estimate(new, y_pred=new > 0.45, chunks=ONE).estimates for cbpe in (counts, shares)))
    for count, share in rows:
        assert count[5:9] == pytest.approx(150 * np.array(share[5:9]), abs=1e-9)


def test_simulated_intervals_contain_the_noise_of_the_curve():
    """Intervals of average precision use simulated labels; they must be wider for a small reference."""
    widths = []
    for n_reference in (200, 20_000):
        cbpe, _ = fitted(["average_precision"], n_reference, n_simulations=2000)
        (row,) = cbpe.estimate(np.linspace(0, 1, 3000), chunks=ONE).estimates
        assert row.high - row.low == pytest.approx(2 * 1.96 * row.standard_error, rel=0.1)
        widths.append(row.high - row.low)
    assert widths[0] > 1.5 * widths[1]


@pytest.mark.filterwarnings("ignore:no shift could be beyond its limits:UserWarning")
def test_intervals_are_nan_with_fewer_than_two_simulations_of_both_classes():
    """Positives are possible but never occur in simulations: there is an expectation, but no interval."""
    random = np.random.default_rng(0)
    score = random.random(400)
    cbpe = CBPE(calibration="none").fit(y_score=score, y_true=random.random(400) < score)
    (row,) = cbpe.estimate(np.array([0.0, 0.0, 1e-12, 0.0]), chunks=ONE).estimates
    assert row.estimate == pytest.approx((3 + 0.5) / 4, abs=1e-4)
    assert np.isnan([row.standard_error, row.low, row.high]).all()


def test_equal_chunks_have_different_simulations():
    cbpe, new = fitted(["average_precision"])
    first, second = cbpe.estimate(np.tile(new, 2), chunks=Chunks.by_size(150)).estimates
    assert first.low != second.low
    again, _ = cbpe.estimate(np.tile(new, 2), chunks=Chunks.by_size(150)).estimates
    assert again[5:9] == first[5:9]


@pytest.mark.parametrize(("metric", "reach"), [("accuracy", 0.0), ("average_precision", 0.1)])
def test_few_influential_reference_rows_widen_the_interval(metric, reach):
    """All new scores are at the upper edge of 40 reference rows."""
    random = np.random.default_rng(2)
    score = random.random(40)
    truth = (random.random(40) < score)[:, None].astype(float)
    curves = Curves(Rows(rank_columns(score), truth), np.array([True]))
    predicted = np.arange(1000, dtype=np.uint32) // 500
    scored = applied(curves, np.linspace(0.9, 1.0, 1000), predicted)
    (evaluated_metric,) = find_metrics([metric], np.arange(2), "ovo", None, None)
    unbounded, options = evaluated_metric._replace(low=-np.inf, high=np.inf), CBPE(level=0.8, n_simulations=5_000)
    evaluated = evaluate(unbounded, scored, curves, None, options, np.random.default_rng(0))
    influence = evaluated_metric.estimate(scored.rows).influence
    _, freedom = curves.noise(scored, influence, curves.no_offset)
    assert freedom < 10
    width = 2 * student.ppf(0.9, freedom) * evaluated.standard_error
    assert evaluated.high - evaluated.low == pytest.approx(width, rel=max(reach, 0.01))
    assert width > 1.05 * 2 * 1.2816 * evaluated.standard_error


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_the_level_sets_the_width(level):
    cbpe, new = fitted(["accuracy"], level=level)
    (row,) = cbpe.estimate(new, y_pred=new > 0.5, chunks=ONE).estimates
    z = {0.5: 0.6745, 0.9: 1.6449, 0.99: 2.5758}[level]
    assert row.high - row.low == pytest.approx(2 * z * row.standard_error, rel=1e-4)
    assert (row.high + row.low) / 2 == pytest.approx(row.estimate)


(ROC_AUC,) = find_metrics(["roc_auc"], np.arange(2), "ovo", None, None)


def fit_curves(scores, truth, weights=None):
    """Return fitted curves of all columns."""
    columns = rank_columns(scores)
    return Curves(Rows(columns, truth), np.full(len(columns), True), weights)


def applied(curves, scores, predicted=None):
    """Return calibrated rows."""
    return curves.apply(Rows(rank_columns(scores), scores, predicted))


def two_classes(seed, n=60, decimals=1):
    """Return scores with ties and labels."""
    random = np.random.default_rng(seed)
    scores = np.round(random.random(n), decimals)
    labels = (random.random(n) < scores**2).astype(float)
    labels[:2] = [0.0, 1.0]
    return scores, labels


@given(labelled(), st.lists(st.floats(-6, 6), min_size=1, max_size=10))
def test_spread_is_the_derivative_by_the_levels(rows, new):
    """If the level of a block increases by 1, a weighted sum of new probabilities increases by its spread."""
    scores, labels = rows
    curves = fit_curves(scores, labels[:, None])
    new = np.array(new)
    influence = np.arange(1.0, new.size + 1)[:, None]
    before = applied(curves, new)
    spread = curves.spread(before, influence)
    assert spread.sum() == pytest.approx(influence.sum())
    (curve,) = curves.curves.values()
    for block in range(curve.levels.size):
        curve.levels[block] += 1.0
        gained = ((applied(curves, new).rows.p - before.rows.p) * influence).sum()
        curve.levels[block] -= 1.0
        assert gained == pytest.approx(spread[block], abs=1e-9)


def test_several_columns_are_divided_by_their_sum():
    random = np.random.default_rng(0)
    p = random.dirichlet([1.0, 2.0, 3.0], size=500)
    truth = np.eye(3)[(random.random(500)[:, None] > p.cumsum(axis=1)).sum(axis=1)]
    columns = rank_columns(p)
    curves = Curves(Rows(columns, truth), np.array([True, False, True]))
    scored = applied(curves, p)
    single = []
    for k in (0, 2):
        curve = IsotonicCurve(columns[k], truth[:, k])
        single.append(columns[k].to_rows(curve.at(curve.locate(columns[k]))))
    raw = np.column_stack([single[0], p[:, 1], single[1]])
    np.testing.assert_allclose(scored.rows.p, raw / raw.sum(axis=1, keepdims=True), atol=1e-12)
    influence = random.normal(size=p.shape)
    spread = curves.spread(scored, influence)
    curve, step, block = curves.curves[0], 1e-6, 1
    curve.levels[block] += step
    gained = ((applied(curves, p).rows.p - scored.rows.p) * influence).sum() / step
    assert gained == pytest.approx(spread[block], rel=1e-3)


def test_classes_are_equally_probable_if_all_curves_are_0():
    truth = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    scores = np.where(truth > 0, 0.9, 0.05)
    curves = fit_curves(scores, truth)
    np.testing.assert_allclose(applied(curves, np.zeros((1, 3))).rows.p, [[1 / 3] * 3])


@pytest.mark.parametrize("seed", range(2))
def test_variance_and_offset_of_two_classes(seed):
    scores, labels = two_classes(seed)
    new = np.random.default_rng(100 + seed).random(40)
    curves = fit_curves(scores, labels[:, None])
    scored = applied(curves, new)
    offset = curves.offset(ROC_AUC)
    estimate = ROC_AUC.estimate(scored.rows)
    variance, _ = curves.noise(scored, estimate.influence, offset)
    parts = variance_by_block(corrected_auc, list(scores), list(labels), list(new))
    assert variance == pytest.approx(sum(part for part, _ in parts), rel=1e-4)
    rows = applied(curves, scores).rows
    in_sample = ROC_AUC.estimate(rows)
    assert in_sample.value == pytest.approx(auc_by_thresholds(scores, rows.p[:, 0]))
    assert offset.value == pytest.approx(in_sample.expected - auc(labels, scores))


@pytest.mark.parametrize("seed", range(2))
def test_degrees_of_freedom(seed):
    scores, labels = two_classes(seed)
    new = np.random.default_rng(100 + seed).uniform(0.6, 1.0, 40)
    curves = fit_curves(scores, labels[:, None])
    scored = applied(curves, new)
    estimate = ROC_AUC.estimate(scored.rows)
    variance, freedom = curves.noise(scored, estimate.influence, curves.no_offset)
    parts = variance_by_block(estimated_auc, list(scores), list(labels), list(new))
    expected = variance**2 / sum(part**2 / max(n_rows - 1, 0.5) for part, n_rows in parts)
    assert freedom == pytest.approx(max(1.0, expected), rel=1e-4)
    # Doubling all weights does not change the degrees of freedom.
    weighted = fit_curves(scores, labels[:, None], np.full(scores.size, 2.0))
    assert weighted._freedom == pytest.approx(curves._freedom)


def test_one_dominant_block_has_one_degree_of_freedom():
    scores, labels = np.array([0.0, 0.1, 0.2, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])
    curves = fit_curves(scores, labels[:, None])
    assert curves.curves[0].mass.tolist() == [1, 2, 1]
    assert curves.noise(applied(curves, np.ones(5)), np.ones((5, 1)), curves.no_offset)[1] == 1.0


@pytest.mark.parametrize("weighted", [False, True])
def test_covariance_of_block_sums_in_simulation(weighted):
    random = np.random.default_rng(3)
    p = random.dirichlet([1.0, 1.0, 2.0], size=60)
    truth = np.eye(3)[(random.random(60)[:, None] > p.cumsum(axis=1)).sum(axis=1)]
    weights = random.uniform(0.5, 2.0, 60) if weighted else None
    curves = fit_curves(np.round(p, 1), truth, weights)
    drawn = (random.random((20_000, 60, 1)) > curves.p.cumsum(axis=1)).sum(axis=2)
    labels = np.eye(3)[np.minimum(drawn, 2)] * (1.0 if weights is None else weights[:, None])
    sums = np.array([curves._by_block(cells) for cells in labels])
    influence = random.normal(size=(60, 3))
    realized = np.einsum("brc,rc->b", np.eye(3)[np.minimum(drawn, 2)], influence)
    simulated = np.cov(np.column_stack([sums, realized]).T)
    # five standard errors of a simulated covariance
    spread = np.sqrt(np.diag(simulated))
    tolerance = 5 * np.sqrt((np.outer(spread, spread) ** 2 + simulated**2) / 20_000) + 1e-9
    assert (np.abs(simulated[:-1, :-1] - curves._covariance) < tolerance[:-1, :-1]).all()
    assert (np.abs(simulated[-1, :-1] - curves.cross(influence)) < tolerance[-1, :-1]).all()


def test_offset_is_zero_if_undefined_on_the_reference():
    scores, labels = two_classes(0)
    (precision,) = find_metrics(["precision"], np.arange(2), "ovo", None, None)
    never = np.zeros(scores.size, dtype=np.uint32)
    offset = Curves(Rows(rank_columns(scores), labels[:, None], never), np.array([True])).offset(precision)
    assert (offset.value, offset.variance, offset.spread.any(), offset.cross.any()) == (0.0, 0.0, False, False)

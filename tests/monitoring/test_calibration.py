import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student
from sklearn.isotonic import IsotonicRegression

from aucforest.monitoring import CBPE, calibration
from aucforest.monitoring._rows import RankedColumn, RankedSamples, label_variance, rank_columns
from aucforest.monitoring.calibration import Curves, IsotonicCurve, is_rising
from aucforest.monitoring.metrics import find_metrics
from tests.monitoring.data import ONE, figures, fit, labelled, load, one_hot_drawn, only
from tests.monitoring.simulation import share_that_fires
from tests.reference.isotonic import corrected_auc, curve_at, estimated_auc, pooled_blocks, variance_by_block
from tests.reference.metrics import auc
from tests.reference.soft import auc_by_thresholds

GRID = np.linspace(-6, 6, 49)


def values(curve, scores):
    (column,) = rank_columns(np.asarray(scores, dtype=float))
    return column.to_rows(curve.at(curve.locate(column)))


@given(labelled(), st.lists(st.sampled_from([0.5, 1.0, 2.5]), min_size=25, max_size=25))
def test_curves(rows, weights):
    scores, labels = rows
    for directed in (scores, -scores):
        column, rising = RankedColumn(directed), auc(labels, directed) >= 0.5
        assert is_rising(column, labels) == rising
        for known in (np.array(weights[: labels.size]), None):
            curve = IsotonicCurve(column, labels, known)
            peer = IsotonicRegression(out_of_bounds="clip", increasing=rising)
            peer.fit(directed, labels, sample_weight=known)
            np.testing.assert_allclose(values(curve, GRID), peer.predict(GRID), atol=1e-12)
        if rising:
            blocks = pooled_blocks(directed, labels)
            expected = [curve_at(blocks, labels, score) for score in GRID]
            np.testing.assert_allclose(values(curve, GRID), expected, atol=1e-12)
            assert curve.mass.tolist() == [len(members) for _, _, members in blocks]
            assert curve.hits.tolist() == [labels[members].sum() for _, _, members in blocks]


@pytest.mark.parametrize("case", load("cbpe_unit")["calibration"][:2], ids=lambda case: case["name"])
def test_recorded_decisions(case):
    column = RankedColumn(np.array(case["score"]))
    assert calibration.needs_calibration(column, np.array(case["y"], dtype=float)) == case["needs"]


def test_squared_scores_are_calibrated():
    assert share_that_fires(1000, 2.0, 20) == 1.0
    assert share_that_fires(200, 2.0, 40) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 5000])
def test_calibrated_scores_are_not_calibrated_again(n):
    assert share_that_fires(n, 1.0, 400) <= 0.06


def test_the_auc_test_detects_what_the_brier_test_does_not():
    """A slightly too steep curve changes the Brier score little, and the expected AUC significantly."""
    fired = {calibration._brier_improves: 0, calibration.needs_calibration: 0}
    for seed in range(10):
        random = np.random.default_rng(seed)
        logit = random.normal(0, 1.5, 20_000)
        labels = (random.random(logit.size) < 1 / (1 + np.exp(-1.1 * logit))).astype(float)
        column = RankedColumn(1 / (1 + np.exp(-logit)))
        for test in fired:
            fired[test] += test(column, labels, random_state=seed)
    assert fired[calibration.needs_calibration] >= 9
    assert fired[calibration.needs_calibration] > fired[calibration._brier_improves]


def test_which_columns_are_calibrated():
    p, truth = one_hot_drawn(3000)
    distorted = p**2 / (p**2).sum(axis=1, keepdims=True)

    def chosen(scores, how):
        return calibration.columns_to_fit(rank_columns(scores), truth, how, 0).tolist()

    for scores, how, expected in (
        (p, "auto", [False] * 3),
        (distorted, "auto", [True] * 3),
        (3 * p, "auto", [True] * 3),  # no probabilities
        (p, "isotonic", [True] * 3),
        (distorted, "none", [False] * 3),
        (p, [True, False, True], [True, False, True]),
    ):
        assert chosen(scores, how) == expected
    with pytest.raises(ValueError, match="one bool for each of 3 columns"):
        chosen(p, [True])


def test_estimated_counts_are_proportions_times_rows():
    """The reference has more rows than the chunk, so its correction of a count is scaled down."""
    results = []
    for normalize in (None, "all"):
        cbpe, (new, _) = fit(["confusion_matrix"], calibration="isotonic", normalize=normalize)
        results.append(figures(cbpe.estimate(new[:150], y_pred=new[:150] > 0.45, chunks=ONE)))
    np.testing.assert_allclose(results[0], 150 * np.array(results[1]), atol=1e-9)


@pytest.mark.filterwarnings("ignore:no shift could be beyond its limits:UserWarning")
def test_intervals_are_nan_with_fewer_than_two_simulations_of_both_classes():
    """Positives are possible but never occur in simulations: there is an expectation, but no interval."""
    cbpe, _ = fit(calibration="none")
    row = only(cbpe.estimate(np.array([0.0, 0.0, 1e-12, 0.0]), chunks=ONE))
    assert row.estimate == pytest.approx((3 + 0.5) / 4, abs=1e-4)
    assert np.isnan([row.standard_error, row.low, row.high]).all()


@pytest.mark.parametrize(("metric", "reach"), [("accuracy", 0.01), ("average_precision", 0.1)])
def test_few_influential_reference_rows_widen_the_interval(metric, reach):
    """All new scores are at the upper edge of 40 reference rows."""
    random = np.random.default_rng(2)
    score = random.random(40)
    curves = fit_curves(score, (random.random(40) < score)[:, None].astype(float))
    scored = applied(curves, np.linspace(0.9, 1.0, 1000), np.arange(1000, dtype=np.uint32) // 500)
    (one,) = find_metrics([metric], np.arange(2), "ovo", None, None)
    unbounded, options = one._replace(low=-np.inf, high=np.inf), CBPE(level=0.8, n_simulations=5_000)
    found = calibration.evaluate(unbounded, scored, curves, None, options, np.random.default_rng(0))
    influence = one.estimate(scored.samples).influence
    noise, freedom = curves.noise(scored, influence, curves.no_offset)
    assert freedom < 10
    assert found.standard_error**2 == pytest.approx(noise + label_variance(scored.samples.p, influence), rel=reach)
    width = 2 * student.ppf(0.9, freedom) * found.standard_error
    assert found.high - found.low == pytest.approx(width, rel=reach)
    assert width > 1.05 * 2 * 1.2816 * found.standard_error


def test_the_level_sets_the_width():
    cbpe, (new, _) = fit(["accuracy"], calibration="isotonic", level=0.99)
    (row,) = cbpe.estimate(new[:150], y_pred=new[:150] > 0.5, chunks=ONE).estimates
    assert row.high - row.low == pytest.approx(2 * 2.5758 * row.standard_error, rel=1e-4)
    assert (row.high + row.low) / 2 == pytest.approx(row.estimate)


(ROC_AUC,) = find_metrics(["roc_auc"], np.arange(2), "ovo", None, None)


def fit_curves(scores, truth, weights=None):
    columns = rank_columns(scores)
    return Curves(RankedSamples(columns, truth), np.full(len(columns), True), weights)


def applied(curves, scores, predicted=None):
    return curves.apply(RankedSamples(rank_columns(scores), scores, predicted))


def two_classes(seed, n=60, decimals=1):
    random = np.random.default_rng(seed)
    scores = np.round(random.random(n), decimals)
    labels = (random.random(n) < scores**2).astype(float)
    labels[:2] = [0.0, 1.0]
    return scores, labels


@given(labelled(), st.lists(st.floats(-6, 6), min_size=1, max_size=10).map(np.array))
def test_spread_is_the_derivative_by_the_levels(rows, new):
    """If the level of a block increases by 1, a weighted sum of new probabilities increases by its spread."""
    scores, labels = rows
    curves, influence = fit_curves(scores, labels[:, None]), np.arange(1.0, new.size + 1)[:, None]
    before = applied(curves, new)
    spread = curves.spread(before, influence)
    assert spread.sum() == pytest.approx(influence.sum())
    levels = curves.curves[0].levels
    for block in range(levels.size):
        levels[block] += 1.0
        gained = ((applied(curves, new).samples.p - before.samples.p) * influence).sum()
        levels[block] -= 1.0
        assert gained == pytest.approx(spread[block], abs=1e-9)


def test_several_columns_are_divided_by_their_sum():
    p, truth = one_hot_drawn(500)
    columns, raw, step, block = rank_columns(p), p.copy(), 1e-6, 1
    curves = Curves(RankedSamples(columns, truth), np.array([True, False, True]))
    for k in (0, 2):
        raw[:, k] = values(IsotonicCurve(columns[k], truth[:, k]), p[:, k])
    scored, influence = applied(curves, p), np.random.default_rng(0).normal(size=p.shape)
    np.testing.assert_allclose(scored.samples.p, raw / raw.sum(axis=1, keepdims=True), atol=1e-12)
    spread = curves.spread(scored, influence)
    curves.curves[0].levels[block] += step
    gained = ((applied(curves, p).samples.p - scored.samples.p) * influence).sum() / step
    assert gained == pytest.approx(spread[block], rel=1e-3)


def test_classes_are_equally_probable_if_all_curves_are_0():
    truth = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    curves = fit_curves(np.where(truth > 0, 0.9, 0.05), truth)
    np.testing.assert_allclose(applied(curves, np.zeros((1, 3))).samples.p, [[1 / 3] * 3])


@pytest.mark.parametrize("seed", range(2))
def test_noise_and_offset_of_two_classes(seed):
    scores, labels = two_classes(seed)
    random, curves = np.random.default_rng(100 + seed), fit_curves(scores, labels[:, None])

    def noise(new, metric, offset):
        scored = applied(curves, new)
        found, freedom = curves.noise(scored, ROC_AUC.estimate(scored.samples).influence, offset)
        parts = variance_by_block(metric, list(scores), list(labels), list(new))
        assert found == pytest.approx(sum(part for part, _ in parts), rel=1e-4)
        return found**2 / sum(part**2 / max(n_rows - 1, 0.5) for part, n_rows in parts), freedom

    offset = curves.offset(ROC_AUC)
    noise(random.random(40), corrected_auc, offset)
    expected, freedom = noise(random.uniform(0.6, 1.0, 40), estimated_auc, curves.no_offset)
    assert freedom == pytest.approx(max(1.0, expected), rel=1e-4)
    rows = applied(curves, scores).samples
    in_sample = ROC_AUC.estimate(rows)
    assert in_sample.value == pytest.approx(auc_by_thresholds(scores, rows.p[:, 0]))
    assert offset.value == pytest.approx(in_sample.expected - auc(labels, scores))
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
    p, truth = one_hot_drawn(60)
    weights, influence = random.uniform(0.5, 2.0, 60) if weighted else np.ones(60), random.normal(size=(60, 3))
    curves = fit_curves(np.round(p, 1), truth, weights if weighted else None)
    drawn = (random.random((20_000, 60, 1)) > curves.p.cumsum(axis=1)).sum(axis=2)
    labels = np.eye(3)[np.minimum(drawn, 2)]
    sums = [curves._by_block(cells * weights[:, None]) for cells in labels]
    simulated = np.cov(np.column_stack([sums, np.einsum("brc,rc->b", labels, influence)]).T)
    # This is five standard errors of a simulated covariance.
    variances = np.diag(simulated)
    tolerance = 5 * np.sqrt((np.outer(variances, variances) + simulated**2) / 20_000) + 1e-9
    assert (np.abs(simulated[:-1, :-1] - curves._covariance) < tolerance[:-1, :-1]).all()
    assert (np.abs(simulated[-1, :-1] - curves.cross(influence)) < tolerance[-1, :-1]).all()


def test_offset_is_zero_if_undefined_on_the_reference():
    scores, labels = two_classes(0)
    (precision,) = find_metrics(["precision"], np.arange(2), "ovo", None, None)
    never = RankedSamples(rank_columns(scores), labels[:, None], np.zeros(scores.size, dtype=np.uint32))
    offset = Curves(never, np.array([True])).offset(precision)
    assert (offset.value, offset.variance, offset.spread.any(), offset.cross.any()) == (0.0, 0.0, False, False)

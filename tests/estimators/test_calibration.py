"""Calibration of probabilities, against references and for forests."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_sample_weight
from threadpoolctl import threadpool_limits

import aucforest
from aucforest.estimators._calibration import MIN_PROBA, Calibration, CalibrationSample, calibrate, prior_correction
from aucforest.estimators.out_of_bag import training_rows
from aucforest.fitting.bootstrap import BootstrapSampler
from aucforest.fitting.out_of_bag import Sums
from aucforest.persistence.model_file import write_model
from tests.estimators.data import UNSCORED, assert_same, digest, make_table, small_forest
from tests.estimators.stacks import small_stack
from tests.estimators.test_model_files import read
from tests.reference import calibration as reference


def simulate(n_classes, n_rows=4000, *, slope=1.7, n_trees=10, seed=0):
    """Return a sample and the probabilities that all trees predict; the true ones are a known calibration of them."""
    rng = np.random.default_rng(seed)
    proba = softmax(rng.normal(size=(n_rows, n_classes)), axis=1)
    true = Calibration(slope, np.linspace(0, -2, n_classes)).apply(proba)
    labels = (true.cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1).astype(np.uint32)
    half = Sums(proba * n_trees, np.full(n_rows, n_trees))
    return CalibrationSample(labels, np.ones(n_rows), None, [half, half]), proba


def fit(sample):
    """Return the calibration of a sample for its class frequencies."""
    return calibrate(sample, np.bincount(sample.labels, sample.weights) / sample.weights.sum(), None, 300)


def rarer_size(labels, weights):
    """Return about the effective number of samples of the rarer class."""
    of_classes = [weights[(labels == k) & (weights > 0.0)] for k in np.unique(labels)]
    return len(of_classes) ** 2 / (4 * sum(np.sum(w**2) / w.sum() ** 2 for w in of_classes))


@pytest.mark.parametrize(("sizes", "n_sampled"), [([90, 10], [10, 10]), ([60, 30, 10], [10, 10, 20])], ids=str)
def test_the_formula_divides_odds_by_rates(sizes, n_sampled):
    n_classes = len(sizes)
    labels = np.repeat(np.arange(n_classes, dtype=np.uint16), sizes)
    calibration = prior_correction(BootstrapSampler.for_strata(labels, np.array(n_sampled)), n_classes)
    proba = np.random.default_rng(0).dirichlet(np.ones(n_classes), 5)
    expected = proba * sizes / n_sampled
    np.testing.assert_allclose(calibration.apply(proba), expected / expected.sum(axis=1, keepdims=True))
    assert np.isnan(calibration.slope_std)
    assert calibration.n_samples == 0
    for equal_rates in (BootstrapSampler.for_rows(100, 50), BootstrapSampler.for_strata(labels, np.array(sizes) // 2)):
        assert prior_correction(equal_rates, n_classes) is None


def test_two_classes_are_a_logistic_regression():
    sample, proba = simulate(2, 40_000, seed=3)
    fitted, odds = fit(sample), np.log(proba[:, 1] / proba[:, 0])[:, None]
    peer = LogisticRegression(C=np.inf, tol=1e-10).fit(odds, sample.labels)
    # The penalty has a small effect.
    np.testing.assert_allclose(fitted.apply(proba), peer.predict_proba(odds), atol=1e-3)
    p, design = peer.predict_proba(odds)[:, 1], np.hstack((odds, np.ones_like(odds)))
    information = design.T @ (design * (p * (1 - p))[:, None])
    assert fitted.slope_std == pytest.approx(np.sqrt(np.linalg.inv(information)[0, 0]), rel=0.01)


@pytest.mark.parametrize(("n_classes", "slope"), [(2, 0.4), (3, 2.5)])
@pytest.mark.parametrize("rates", [None, [1.0, 3.0, 0.5]], ids=["as they are", "sampled at rates"])
def test_calibration_equals_the_reference(n_classes, slope, rates):
    """The samples are few, so that the penalty matters."""
    rng = np.random.default_rng(n_classes)
    sample, proba = simulate(n_classes, 60, slope=slope, seed=4)
    halves = []
    for _ in range(2):
        noisy = proba * np.exp(rng.normal(scale=0.3, size=proba.shape))
        halves.append((noisy / noisy.sum(axis=1, keepdims=True), rng.integers(3, 9, len(proba))))
    weights, frequencies = rng.uniform(0.5, 1.5, 60), rng.dirichlet(np.full(n_classes, 9.0))
    start = None if rates is None else Calibration(1.0, -np.log(rates[:n_classes]))
    known = sample._replace(weights=weights, halves=[Sums(p * n[:, None], n) for p, n in halves])
    fitted = calibrate(known, frequencies, start, 50)
    offsets = np.zeros(n_classes) if start is None else start.intercepts
    known = sample.labels, weights, frequencies, offsets, rarer_size(sample.labels, weights)
    slope, intercepts = reference.calibrate(halves, *known, 50)
    assert fitted.slope == pytest.approx(slope, rel=1e-4)
    np.testing.assert_allclose(fitted.intercepts - fitted.intercepts[0], intercepts - intercepts[0], atol=1e-4)


def test_samples_of_one_class_or_tree_give_the_prior_correction():
    sample, _ = simulate(2, 12)
    start = Calibration(1.0, np.array([0.0, -3.0]))
    one_class, one_tree = {"labels": np.zeros(12, dtype=np.uint32)}, {"halves": [sample.halves[0], Sums.zero(12, 2)]}
    for other in (one_class, one_tree):
        assert calibrate(sample._replace(**other), np.array([0.9, 0.1]), start, 300) is start


@pytest.mark.parametrize("n_classes", [2, 26, 40_000])
def test_rows_are_calibrated_in_blocks_by_threads(n_classes):
    """Blocks have the same bits as all rows at once, also if a block is a single row; probabilities of 0 are raised."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), max(7, 70_000 // n_classes))
    proba[0, 1:] = 0.0
    calibration = Calibration(1.4, rng.normal(size=n_classes))
    expected = softmax(1.4 * np.log(np.maximum(proba, MIN_PROBA)) + calibration.intercepts, axis=1)
    for n_jobs in (3, 1):
        np.testing.assert_array_equal(calibration.apply(proba, n_jobs), expected)
    assert calibration.apply(proba[:0]).shape == (0, n_classes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_default_forest_is_calibrated(n_classes):
    """The forest is under-confident. Calibration lowers its log loss and does not change the ranking of two classes."""
    X, y = make_table(n_rows=3000, n_classes=n_classes)
    forest, plain = (small_forest(100, calibration=each).fit(X[:1000], y[:1000]) for each in ("auto", None))
    assert plain.calibration_ is None
    assert digest(forest) == digest(plain)
    assert forest.calibration_.slope > 1.0 + 2.0 * forest.calibration_.slope_std
    assert forest.calibration_.n_samples == 1000
    ours, theirs = forest.predict_proba(X[1000:]), plain.predict_proba(X[1000:])
    np.testing.assert_array_equal(ours, forest.calibration_.apply(theirs))
    loss = [-np.mean(np.log(np.maximum(proba, MIN_PROBA)[np.arange(2000), y[1000:]])) for proba in (ours, theirs)]
    assert loss[0] < loss[1] - 0.01
    if n_classes == 2:
        np.testing.assert_array_equal(np.argsort(ours[:, 1], kind="stable"), np.argsort(theirs[:, 1], kind="stable"))


@pytest.mark.filterwarnings(UNSCORED)
@pytest.mark.parametrize("params", [
    {"sampling": "stratified", "class_weight": {0: 1, 1: 5, 2: 2}}, {"sampling": "balanced", "criterion": "gini"},
])  # fmt: skip
def test_calibration_of_a_forest_equals_the_reference_on_its_out_of_bag_samples(params):
    X, y = make_table(n_rows=200, n_classes=3)
    weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0], 200)
    forest, kept = small_forest(40, **params).fit(X, y, weight), np.flatnonzero(weight)
    counts = training_rows(forest, X, y, weight).counts(range(40))[kept]
    votes = np.stack([tree.predict_proba(X[kept]) for tree in forest.estimators_], axis=1)
    n_parts = max(8 // len(set(forest.variants_)), 2)
    halves, variants, means = ([], []), list(dict.fromkeys(forest.variants_)), []
    for tree, variant in enumerate(forest.variants_):
        n_before = forest.variants_[:tree].count(variant)
        halves[(variants.index(variant) * n_parts + n_before % n_parts) % 2].append(tree)
    for trees in halves:
        out = counts[:, trees] == 0
        means.append((np.einsum("nt,ntk->nk", out, votes[:, trees]) / out.sum(axis=1)[:, None], out.sum(axis=1)))
    frequencies = np.bincount(y, weight) * list(params.get("class_weight", {0: 1.0, 1: 1.0, 2: 1.0}).values())
    frequencies /= frequencies.sum()
    weights = weight[kept] * (frequencies / np.bincount(y, weight))[y[kept]]
    weights /= weights.mean()
    offsets = np.log(np.bincount(y[kept])) if params["sampling"] == "balanced" else np.zeros(3)
    known = y[kept], weights, frequencies, offsets, rarer_size(y, weight)
    slope, intercepts = reference.calibrate(means, *known, 40)
    assert forest.calibration_.slope == pytest.approx(slope, rel=1e-4)
    found = forest.calibration_.intercepts
    np.testing.assert_allclose(found - found[0], intercepts - intercepts[0], atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 20.0, 2: 3.0}, "balanced", "balanced_subsample"], ids=str)
@pytest.mark.parametrize("sampling", ["bootstrap", "balanced"])
def test_probabilities_have_the_frequencies_of_weighted_classes(n_classes, class_weight, sampling):
    X, y = make_table(n_rows=1200, n_classes=n_classes)
    y = np.where(np.arange(1200) % 4 == 0, y, 0)
    if n_classes == 2 and isinstance(class_weight, dict):
        class_weight = {0: 1.0, 1: 20.0}
    forest = small_forest(100, sampling=sampling, class_weight=class_weight, oob_score=True).fit(X, y)
    # Balanced samples are not changed by "balanced_subsample".
    given = None if (class_weight, sampling) == ("balanced_subsample", "balanced") else class_weight
    weight = compute_sample_weight("balanced" if given == "balanced_subsample" else given, y)
    mean = np.average(forest.oob_decision_function_, axis=0, weights=weight)
    np.testing.assert_allclose(mean, np.bincount(y, weight) / weight.sum(), atol=0.03)
    np.testing.assert_allclose(forest.class_prior_, np.bincount(y) / len(y))
    raw = forest.set_params(calibration=None, oob_score=False).fit(X, y)
    np.testing.assert_allclose(raw.class_prior_, 1 / n_classes if sampling == "balanced" else np.bincount(y) / len(y))


def test_copies_in_a_group_are_no_more_evidence():
    sample, _ = simulate(2, 500)
    once, half = fit(sample), Sums(*(np.repeat(part, 8, axis=0) for part in sample.halves[0]))
    copies = CalibrationSample(np.repeat(sample.labels, 8), np.ones(4000), np.repeat(np.arange(500), 8), [half, half])
    grouped, apart = fit(copies), fit(copies._replace(groups=None))
    assert grouped.slope_std == pytest.approx(once.slope_std, rel=0.1)
    assert grouped.slope == pytest.approx(once.slope, rel=0.02)
    assert apart.slope_std < 0.5 * once.slope_std


def test_rows_of_nearly_no_weight_are_no_evidence():
    sample, _ = simulate(2, 400, slope=3.0)
    halves = [Sums(*(part[:60] for part in half)) for half in sample.halves]
    few = CalibrationSample(sample.labels[:60], np.ones(60), None, halves)
    light = sample._replace(weights=np.where(np.arange(400) < 60, 1.0, 1e-9))
    one, other = (calibrate(each, np.array([0.5, 0.5]), None, 300) for each in (few, light))
    assert one.slope == pytest.approx(other.slope, rel=0.05)
    assert one.slope_std == pytest.approx(other.slope_std, rel=0.15)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("make", [small_forest, small_stack])
def test_weights_of_very_different_sizes(make, n_classes):
    X, y = make_table(n_rows=200, n_classes=n_classes)
    assert np.isfinite(make(30).fit(X, y, np.where(y == 0, 1e-90, 1e90)).predict_proba(X)).all()


def test_sums_do_not_depend_on_the_threads_of_blas():
    sample, _ = simulate(6, 4000)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            found.append(fit(sample))
    assert_same(*found)


def test_without_out_of_bag_samples_or_with_few_trees_there_is_no_map():
    X, y = make_table(n_rows=200)
    assert small_forest(20, bootstrap=False).fit(X, y).calibration_ is None
    assert small_forest(3).fit(X, y).calibration_ is None


@pytest.mark.parametrize("flag", [True, False])
def test_files_with_the_old_name_of_the_parameter(flag, tmp_path):
    X, y = make_table(n_rows=200)
    forest = small_forest(30, sampling="balanced", calibration="auto" if flag else None).fit(X, y)
    forest.save(tmp_path / "old.aucforest")
    arrays, metadata = read(tmp_path / "old.aucforest")
    del metadata["parameters"]["calibration"]
    metadata["parameters"]["prior_correction"] = flag
    if flag:
        arrays["prior_correction"] = np.delete(arrays.pop("calibration"), [1, 2])
    write_model(tmp_path / "old.aucforest", arrays, metadata)
    loaded = aucforest.load(tmp_path / "old.aucforest")
    assert loaded.calibration == ("auto" if flag else None)
    np.testing.assert_array_equal(loaded.predict_proba(X), forest.predict_proba(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_forest_of_balanced_samples_keeps_the_class_frequencies(n_classes):
    X, y = make_table(n_rows=1200, n_classes=n_classes)
    y = np.where(np.arange(1200) % 4 == 0, y, 0)
    forest = small_forest(100, sampling="balanced", oob_score=True).fit(X, y)
    frequencies = np.bincount(y) / len(y)
    np.testing.assert_allclose(forest.class_prior_, frequencies)
    # The calibration is for all trees of the forest, but a row is out of bag for only a third of them.
    np.testing.assert_allclose(forest.oob_decision_function_.mean(axis=0), frequencies, atol=0.01)
    raw = small_forest(100, sampling="balanced", calibration=None, shrinkage=forest.shrinkage_).fit(X, y)
    np.testing.assert_allclose(raw.class_prior_, 1 / n_classes)
    assert raw.predict_proba(X).mean(axis=0)[0] < frequencies[0] - 0.1

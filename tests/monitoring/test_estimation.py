import inspect
import re
from contextlib import nullcontext
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

from aucforest import AUCForestClassifier, AUCStackingClassifier, metrics, monitoring
from aucforest.metrics.streaming import AUCSketch
from aucforest.metrics.thresholds import decide
from aucforest.monitoring import CBPE, Chunks, soft_auc, soft_auc_interval
from aucforest.monitoring.metrics import NAMES
from tests.monitoring.data import ONE, THREE, classes_drawn, drawn, figures, fit, only
from tests.monitoring.simulation import AT_K, OF_ROWS, SHAPES, coverage, errors

ALL = [name for name in NAMES if not name.startswith("cost")]


def test_estimates_of_the_reference_equal_its_realized_metrics():
    cbpe, _ = fit(ALL, calibration="isotonic")
    score, y_true = drawn()
    for row in cbpe.estimate(score, y_pred=score > 0.4, y_true=y_true, chunks=ONE).estimates:
        assert row.estimate == pytest.approx(row.realized, abs=1e-9), row.metric


def test_all_functions_have_the_same_order_of_parameters():
    """Metrics take y_true before y_score; functions with p or y_pred take keyword arguments only."""
    public = [getattr(module, name) for module in (metrics, monitoring) for name in module.__all__]
    functions = [function for function in public if inspect.isfunction(function)]
    for function in [*functions, CBPE.fit, CBPE.estimate, AUCSketch.update]:
        parameters = inspect.signature(function).parameters
        names = [name for name in ("y_true", "p", "y_score", "y_pred") if name in parameters]
        assert [name for name in parameters if name in names] in (names, ["y_score", "y_true", "y_pred"]), function
    y = [0, 1, 0, 1]
    multiclass, confusion = monitoring.soft_auc_multiclass, monitoring.expected_confusion_matrix
    for function in (CBPE().fit, soft_auc, soft_auc_interval, multiclass, confusion):
        with pytest.raises(TypeError, match="positional argument"):
            function(y, y)


def test_an_interrupted_fit_restores_the_attributes(monkeypatch):
    estimator, (scores, y) = fit()
    before = dict(vars(estimator))
    monkeypatch.setattr(CBPE, "_set_limits", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(y_true=y, y_score=scores)
    assert vars(estimator) == before


def test_estimates_without_corrections_or_curves_are_soft_aucs():
    plain, (new, _) = fit(calibration="isotonic", bias_correction=False)
    p = IsotonicRegression(out_of_bounds="clip").fit(*drawn()).predict(new)
    assert only(plain.estimate(new, chunks=ONE)).estimate == pytest.approx(soft_auc(y_score=new, p=p), abs=1e-12)
    calibrated, (new, _) = fit(power=1.0)
    assert not calibrated.calibrated_.any()
    row = only(calibrated.estimate(new, chunks=ONE))
    expected = soft_auc_interval(y_score=new, p=new, method="wald")
    assert (row.estimate, row.low, row.high, row.standard_error) == pytest.approx(expected)


def test_estimates_of_a_chunk_do_not_depend_on_other_chunks():
    cbpe, (new, _) = fit(["average_precision"])
    first, second, *_ = figures(cbpe.estimate(np.tile(new[:100], 4), chunks=Chunks.by_size(100)))
    assert first != second
    assert figures(cbpe.estimate(new[:100], chunks=Chunks.by_size(100))) == [first]


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_several_classes(multi_class):
    p, y_true, y_pred = classes_drawn()
    new, labels, predicted = classes_drawn(seed=1)
    cbpe = CBPE(ALL, multi_class=multi_class).fit(y_score=p, y_true=y_true, y_pred=y_pred)
    result = cbpe.estimate(new, y_pred=predicted, y_true=labels, chunks=ONE)
    assert len(result.metrics) == 7 + 9
    for row in result.estimates:
        assert abs(row.estimate - row.realized) < 5 * row.standard_error, row
    assert only(result).realized == pytest.approx(roc_auc_score(labels, new, multi_class=multi_class))


def test_labels_determine_the_order_of_columns():
    p, y_true, _ = classes_drawn()
    expected = CBPE().fit(y_score=p, y_true=y_true).estimate(p, y_true=y_true, chunks=ONE)
    turned = CBPE(labels=["c", "b", "a"]).fit(y_score=p[:, ::-1], y_true=y_true)
    assert only(turned.estimate(p[:, ::-1], y_true=y_true, chunks=ONE))[5:] == pytest.approx(only(expected)[5:])
    score, binary = drawn()
    ill = CBPE(labels=["well", "ill"]).fit(y_score=score, y_true=np.where(binary == 1, "ill", "well"))
    assert figures(ill.estimate(score)) == figures(CBPE().fit(y_score=score, y_true=binary).estimate(score))


def test_few_expected_positives_use_simulations():
    cbpe, _ = fit(calibration="none")
    few = np.random.default_rng(1).uniform(0.0, 0.05, 300)
    row, wald = only(cbpe.estimate(few, chunks=ONE)), soft_auc_interval(y_score=few, p=few, method="wald")
    assert row.estimate == wald.auc
    assert row.low != pytest.approx(wald.low, abs=1e-4)
    assert row.low == pytest.approx(soft_auc_interval(y_score=few, p=few).low, abs=0.04)


@pytest.mark.slow
def test_importance_weights_make_a_curve_for_the_chunk():
    """P(y | X) does not change, but the score does not depend on a feature whose distribution shifts."""
    random = np.random.default_rng(0)

    def rows(n, share):
        group, score = random.random(n) < share, random.random(n)
        return np.column_stack([score, group]), score, np.where(group, score**3, score**0.5)

    X, score, chance = rows(4000, 0.5)
    y_true = random.random(4000) < chance
    X_new, new, chance = rows(2000, 0.95)
    accuracy, errors = np.where(new > 0.5, chance, 1 - chance).mean(), []
    for options in ({"calibration": "isotonic"}, {"importance_weighted": True}):
        cbpe = CBPE(["accuracy"], **options)
        cbpe.fit(y_score=score, y_true=y_true, y_pred=score > 0.5, X=X, chunks=THREE)
        row = only(cbpe.estimate(new, y_pred=new > 0.5, X=X_new, chunks=ONE), "accuracy")
        errors.append(abs(row.estimate - accuracy))
    assert errors[1] < 0.5 * errors[0]


def payments(n, seed, shifted=False):
    """Return features, and labels of which about 3 % are positive. If shifted, amounts are smaller, in one channel."""
    random = np.random.default_rng(seed)
    amount, channel = random.lognormal(4.0, 1.0, n), random.choice(3, n)
    y_true = random.random(n) < expit(np.log(amount) - 9.0 + 1.2 * (channel == 0))
    return np.column_stack([amount / 10, np.full(n, 2)] if shifted else [amount, channel]), y_true


@pytest.mark.filterwarnings("ignore:the alert limits of roc_auc")
def test_a_shift_is_an_alert():
    """The shift is an alert even though the limits of the metric, of chunks with about seven positives, are wide."""
    X, y_true = payments(1600, 0)
    cbpe = CBPE().fit(y_score=X[:, 0], y_true=y_true, X=X, chunks=Chunks.by_number(8))
    assert y_true.sum() / 8 < 8
    for shifted in (False, True):
        X_new, _ = payments(400, 1, shifted)
        result = cbpe.estimate(X_new[:, 0], X=X_new, chunks=Chunks.by_size(200))
        for row, record in zip(result.estimates, result.records()):
            assert row.lower_limit < row.estimate < row.upper_limit
            assert row.alert == shifted
            assert record["valid"] == (not shifted)
            assert (record["psi"] > record["psi_limit"]) == shifted
            assert (record["domain_auc"] > record["domain_auc_limit"]) == shifted
            assert (record["effective_sample_size"] < record["effective_sample_size_limit"]) == shifted
    # Limits depend on the size of the chunk: without a shift, one of 50 samples may differ more.
    small = cbpe.estimate(X[:50, 0], X=X[:50], chunks=ONE).shifts["[0:49]"]
    assert small.psi_limit > 2 * record["psi_limit"]
    assert small.valid
    assert np.isnan(cbpe.estimate(X[:50, 0], chunks=ONE).shifts["[0:49]"].domain_auc)


def test_limits_that_nothing_could_cross_are_reported():
    X, y_true = payments(1600, 0)
    score, chunks = -X[:, 1], Chunks.by_number(8)  # a poor score
    with pytest.warns(UserWarning, match="the alert limits of roc_auc") as caught:
        cbpe = CBPE().fit(y_score=score, y_true=y_true, chunks=chunks)
    message = str(caught.pop().message)
    assert "roc_auc ({:.3g} to {:.3g})".format(*cbpe.limits_["roc_auc"]) in message
    assert "but the reference has only 1600" in message
    CBPE(threshold=np.inf).fit(y_score=score, y_true=y_true, chunks=chunks)  # no alerts are wanted, so no warning
    (size,) = re.findall("chunks of about ([0-9]+) samples", message)
    X, y_true = payments(8 * int(size), 1)
    CBPE().fit(y_score=-X[:, 1], y_true=y_true, chunks=chunks)


def test_an_inverted_ranking_is_a_warning():
    score, y_true = drawn()
    with pytest.warns(UserWarning, match=r"ranking is inverted: the scores have an AUC of 0\.1\d* on the reference"):
        cbpe = CBPE().fit(y_score=1 - score, y_true=y_true)
    new, labels = drawn(seed=1)
    row = only(cbpe.estimate(1 - new, y_true=labels, chunks=ONE))
    assert row.low <= row.realized <= row.high < 0.3


@pytest.mark.parametrize("n_labelled", [2000, 1500, 0])
def test_estimates_do_not_depend_on_labels(n_labelled):
    """New rows without a label are kept."""
    cbpe, (new, y_true) = fit(ALL, on_nan="drop")
    options = {"y_pred": new > 0.4, "chunks": Chunks.by_size(1000)}
    missing = pytest.warns(UserWarning, match=f"y_true {2000 - n_labelled} missing values")
    with missing if n_labelled < 2000 else nullcontext():
        result = cbpe.estimate(new, y_true=np.where(np.arange(2000) < n_labelled, y_true, np.nan), **options)
    assert [row.n_rows for row in result.of("roc_auc")] == [1000, 1000]
    assert [np.isnan(row.realized) for row in result.of("f1")] == [n_labelled < 1000, n_labelled < 2000]
    without = cbpe.estimate(new, **options)
    assert figures(result) == figures(without)
    assert all(np.isnan(row.realized) for row in without.estimates)


def test_estimates_of_equal_scores_and_of_rows_with_labels_of_one_class():
    cbpe, (new, _) = fit(calibration="isotonic")
    assert figures(cbpe.estimate(np.full(200, 0.3), chunks=ONE)) == [(0.5, 0.0, 0.5, 0.5)]
    row = only(cbpe.estimate(new, y_true=np.zeros(new.size, dtype=int), chunks=ONE))
    assert np.isnan(row.realized)
    assert 0.5 < row.estimate < 1


def test_estimates_without_positive_predictions():
    cbpe, (new, y_true) = fit(["precision", "recall", "f1"])
    with pytest.warns(UndefinedMetricWarning, match="not defined: precision of"):
        result = cbpe.estimate(new, y_pred=np.zeros(new.size, dtype=int), y_true=y_true, chunks=ONE)
    precision, recall, f1 = result.estimates
    assert np.isnan(precision.estimate)
    assert recall.realized == f1.realized == 0.0 <= recall.estimate < 0.01


@pytest.mark.filterwarnings("ignore:no shift could be beyond its limits:UserWarning")
@pytest.mark.parametrize(
    ("new", "chunk"), [([0.3, 0.4, 0.5], 1), ([0.0, 0.0, 0.1], 0)], ids=["one row", "no positives"]
)
def test_chunks_without_an_estimate(new, chunk):
    cbpe, _ = fit(calibration="none", power=1.0)
    with pytest.warns(UndefinedMetricWarning, match="not defined: roc_auc of"):
        row = cbpe.estimate(new, chunks=Chunks.by_size(2)).estimates[chunk]
    assert np.isnan(row[5:9]).all()
    assert row.alert is None


@pytest.mark.filterwarnings("ignore:the alert limits of .* are so wide:UserWarning")
@pytest.mark.parametrize("metric", ["average_precision", "recall_at_0.1"])
def test_metrics_of_the_highest_scores_warn_of_few_positives(metric):
    score, y_true = drawn()
    rare = y_true * (np.cumsum(y_true) <= 49)
    sentence = f"{metric} is unreliable: the reference has 49 samples of class 1, fewer than 50"
    with pytest.warns(UserWarning, match=sentence):
        CBPE(["roc_auc", metric], calibration="isotonic").fit(y_score=score, y_true=rare)
    CBPE(["roc_auc"], calibration="isotonic").fit(y_score=score, y_true=rare)
    CBPE([metric], calibration="none").fit(y_score=score, y_true=rare)
    CBPE([metric], calibration="isotonic").fit(y_score=score, y_true=y_true * (np.cumsum(y_true) <= 50))
    p, labels, _ = classes_drawn(200)
    with pytest.warns(UserWarning, match="the reference has [0-9]+ samples of class a, fewer than 50"):
        CBPE([metric], calibration=[True, False, False]).fit(y_score=p, y_true=labels)


@pytest.mark.parametrize(("rows", "sentence"), [
    (([], []), "y_score is empty"), (([0.1, 0.2], [0, 1, 1]), "y_true has 3 samples"),
    (([0.1, 0.2], [1, 1]), "the reference must have samples of all classes, two or more"),
    (([0.1, np.inf], [0, 1]), "infinite"), (([0.1, 0.2], [np.nan, np.nan]), "all 2 labels of y_true are missing"),
    (([[0.1, 0.2, 0.7]] * 2, [0, 1]), "y_score has 3 columns, but there are 2 classes"),
])  # fmt: skip
def test_invalid_rows_of_fit(rows, sentence):
    with pytest.raises(ValueError, match=sentence):
        CBPE().fit(y_true=rows[1], y_score=rows[0], chunks=ONE)


@pytest.mark.parametrize(("parameter", "value", "error", "sentence"), [
    ("labels", ["a", "b"], ValueError, "y_true has the label 0"),
    ("labels", [0, 1, 2], ValueError, "the reference must have samples of all"),
    ("metrics", ["auc"], ValueError, "metrics must be among"),
    ("metrics", "roc_auc", ValueError, "metrics must be a sequence"),
    ("metrics", ["f1"], ValueError, "needs y_pred"),
    ("metrics", ["roc_auc", "roc_auc"], ValueError, "metrics must not contain duplicates"),
    ("calibration", "platt", ValueError, "calibration must be one of"),
    ("multi_class", "all", ValueError, "multi_class must be one of"),
    ("on_nan", "ignore", ValueError, "on_nan must be one of"), ("level", 0.0, ValueError, "level must be in"),
    ("threshold", -1.0, ValueError, "threshold must not be negative"),
    ("importance_weighted", True, ValueError, "needs X"),
    ("n_simulations", 1, ValueError, "n_simulations == 1, must be >= 2"),
    ("n_simulations", 2.5, TypeError, "n_simulations must be an instance of int"),
    ("random_state", -1, ValueError, "random_state == -1, must be >= 0"),
    ("random_state", 2.5, TypeError, "random_state must be an instance of int"),
])  # fmt: skip
def test_invalid_parameters(parameter, value, error, sentence):
    with pytest.raises(error, match=sentence):
        CBPE(**{parameter: value}).fit(y_true=[0, 1], y_score=[0.1, 0.2], chunks=ONE)


def test_invalid_arguments_of_estimate():
    cbpe, (score, _) = fit(["accuracy"], calibration="none")
    for (y_score, y_pred), options, sentence in [
        (([0.2, 1.5], [0, 1]), {}, r"y_score must be in \[0, 1\], but value 1 is 1\.5"),
        (([0.2, np.nan], [0, 1]), {}, "y_score has 1 and y_true 0 missing values"),
        (([0.2, 0.3], None), {}, "'accuracy' needs y_pred"),
        (([0.2, 0.3], [0, 7]), {}, "y_pred has the label 7"),
        (([0.2, 0.3], [0, 1]), {"y_true": [0, 3]}, "y_true has the label 3"),
        (([0.2, 0.3], [0, 1]), {"X": [[1.0]]}, "X is passed, but the reference has no X: pass X to fit, too"),
        (([[0.2, 0.3, 0.5]], [0]), {}, "y_score has 3 columns"),
        (([0.2, 0.3], [0, 1]), {"chunks": Chunks.by_number(3)}, "2 samples cannot be split into 3 chunks"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            cbpe.estimate(y_score, y_pred=y_pred, **{"chunks": ONE, **options})
    p, labels, _ = classes_drawn()
    several = CBPE(calibration="none").fit(y_score=p, y_true=labels)
    with pytest.raises(ValueError, match="rows of y_score must sum to 1, but row 0 sums to 2"):
        several.estimate(np.full((2, 3), 2 / 3), chunks=ONE)
    with pytest.raises(NotFittedError):
        CBPE().estimate(score)
    with pytest.raises(TypeError, match="real numbers"):
        CBPE().fit(y_score=["a", "b"], y_true=[0, 1])


@pytest.fixture(scope="module")
def forest_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(1200, 3))
    y = np.where(random.random(1200) < expit(2 * X[:, 0]), "yes", "no")
    forest = AUCForestClassifier(30, oob_score=True, min_samples_leaf=5, random_state=0)
    return forest.fit(X[:800], y[:800]), X, y


@pytest.mark.parametrize("make", [clone, lambda forest: AUCStackingClassifier(clone(forest), threshold="gmean")])
def test_from_a_forest_or_a_stack(forest_rows, make):
    """The out-of-bag probabilities and the threshold of a stack are not those of its forest."""
    forest, X, y = forest_rows
    model, metrics = make(forest).fit(X[:800], y[:800]), ["roc_auc", "accuracy"]
    cbpe = CBPE.from_forest(model, y[:800], X[:800], chunks=THREE, metrics=metrics)
    assert cbpe.classes_.tolist() == ["no", "yes"]
    proba = model.oob_decision_function_
    labels = model.classes_[decide(model, proba)]
    expected = CBPE(metrics).fit(y_score=proba, y_true=y[:800], y_pred=labels, X=X[:800], chunks=THREE)
    new = {"y_score": model.predict_proba(X[800:]), "y_pred": model.predict(X[800:]), "y_true": y[800:], "X": X[800:]}
    result = cbpe.estimate(**new, chunks=ONE)
    assert result.estimates == expected.estimate(**new, chunks=ONE).estimates
    for row in result.estimates:
        assert row.low <= row.realized <= row.high
    assert result.shifts["[0:399]"].domain_auc > 0


def test_from_a_forest_of_another_prevalence():
    """The reference has the class frequencies of `set_prevalence`, so that precision is that of the population."""
    random = np.random.default_rng(0)
    X = random.normal(size=(16_000, 3))
    y, new = random.random(16_000) < expit(1.5 * X[:, 0] - 3.0), np.arange(16_000) >= 10_000
    train = ~new & (y | (random.random(16_000) < 0.2))
    forest = AUCForestClassifier(60, threshold=0.3, oob_score=True, random_state=0).fit(X[train], y[train])
    forest.set_prevalence(y.mean())
    cbpe = CBPE.from_forest(forest, y[train], chunks=THREE, metrics=["precision", "recall"])
    labels = forest.predict(X[new])
    for row in cbpe.estimate(forest.predict_proba(X[new]), y_pred=labels, y_true=y[new], chunks=ONE).estimates:
        assert abs(row.estimate - row.realized) < 0.07  # 0.29 with all training samples


def test_invalid_arguments_of_from_forest(forest_rows):
    forest, X, y = forest_rows
    without = clone(forest).set_params(oob_score=False).fit(X, y)
    for arguments, options, error, sentence in (
        ((without, y), {}, ValueError, "oob_score=True"),
        ((forest, y[:800]), {"labels": ["yes", "no"]}, TypeError, "labels"),
        ((forest, y[:3]), {}, ValueError, "y_true has 3 samples, but the forest was trained on 800"),
        ((forest, y[:800], X), {}, ValueError, "X_ref has 1200 samples, but the forest was trained on 800"),
    ):
        with pytest.raises(error, match=sentence):
            CBPE.from_forest(*arguments, **options)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the alert limits of .* are so wide")
@pytest.mark.parametrize(
    ("shape", "n_reference", "shifted"),
    # Every shape and every size has one case with a shift and one without.
    [(shape, n, (i + j) % 2 == 1) for i, shape in enumerate(SHAPES) for j, n in enumerate((500, 2000))],
)
def test_intervals_with_curves(shape, n_reference, shifted):
    # Metrics at k have fewer repeats, because they simulate labels. Their coverage was 0.917 to 0.988 in 400 repeats.
    for names, repeats, around in ((OF_ROWS, 200, 0.0), (AT_K, 60, 0.03)):
        slack = around + 2.6 * np.sqrt(0.05 * 0.95 / repeats)  # 99 % of simulations of a true 0.95 are that close
        for metric, held in coverage(shape, n_reference, 5000, repeats, shifted, names).items():
            assert min(0.93, 0.95 - slack) <= held <= max(0.97, 0.95 + slack), metric


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the alert limits of .* are so wide")
@pytest.mark.filterwarnings("ignore:average_precision is unreliable:UserWarning")
@pytest.mark.parametrize(("calibration", "positives", "n_reference", "n_new", "shift", "most"), [
    ("none", 20, 2000, 1000, 0.0, 0.0),
    ("isotonic", 20, 2000, 1000, 0.0, 0.0),
    ("isotonic", 100, 5000, 2000, 1.0, 0.05),  # benchmarks/monitoring_bias.py 200: 0.047, standard error 0.007
])  # fmt: skip
def test_average_precision_of_rare_positives(calibration, positives, n_reference, n_new, shift, most):
    """Estimates are unbiased if new scores are distributed as in the reference; else curves are too high at the top."""
    difference, _ = errors(positives, n_reference, n_new, shift, calibration, 100, ["average_precision"])
    difference = difference[~np.isnan(difference)]
    slack = 2.6 * difference.std() / difference.size**0.5  # 99 % of simulations are that close
    assert -slack <= difference.mean() <= most + slack

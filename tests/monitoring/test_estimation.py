"""Estimates, corrections, alerts, warnings and errors of CBPE."""

import copy
import inspect
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

from aucforest import AUCForestClassifier, AUCStackingClassifier, metrics, monitoring
from aucforest.metrics.streaming import AUCSketch
from aucforest.metrics.thresholds import decide
from aucforest.monitoring import (
    CBPE,
    Chunks,
    expected_confusion_matrix,
    soft_auc,
    soft_auc_interval,
    soft_auc_multiclass,
)
from aucforest.monitoring.metrics import NAMES
from tests.monitoring.data import ONE, THREE, classes_drawn, drawn, figures, fit, only

COST = {"cost": [[0, 1, 9], [2, 0, 1], [1, 5, 0]]}
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
    for function in (CBPE().fit, soft_auc, soft_auc_interval, soft_auc_multiclass, expected_confusion_matrix):
        with pytest.raises(TypeError, match="positional argument"):
            function(y, y)


def test_an_interrupted_fit_restores_the_attributes(monkeypatch):
    estimator, (scores, y) = fit()
    before = dict(vars(estimator))

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(CBPE, "_set_limits", interrupt)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(y_true=y, y_score=scores)
    assert vars(estimator) == before


def test_estimates_without_corrections_are_soft_aucs():
    plain, (new, _) = fit(calibration="isotonic", bias_correction=False)
    p = IsotonicRegression(out_of_bounds="clip").fit(*drawn()).predict(new)
    assert only(plain.estimate(new, chunks=ONE)).estimate == pytest.approx(soft_auc(y_score=new, p=p), abs=1e-12)


def test_calibrated_scores_are_unchanged():
    cbpe, (new, _) = fit(power=1.0)
    assert not cbpe.calibrated_.any()
    row = only(cbpe.estimate(new, chunks=ONE))
    expected = soft_auc_interval(y_score=new, p=new, method="wald")
    assert (row.estimate, row.low, row.high, row.standard_error) == pytest.approx(expected)


def test_order_of_rows_does_not_matter():
    score, y_true = drawn()
    new, _ = drawn(500, seed=1)
    order, new_order = np.random.default_rng(0).permutation(score.size), np.random.default_rng(1).permutation(500)
    options = {"calibration": "isotonic"}
    row = only(CBPE(**options).fit(y_score=score, y_true=y_true).estimate(new, chunks=ONE))
    same = only(CBPE(**options).fit(y_score=score[order], y_true=y_true[order]).estimate(new[new_order], chunks=ONE))
    assert tuple(row)[5:9] == pytest.approx(tuple(same)[5:9], abs=1e-10)


def test_estimates_do_not_depend_on_labels():
    cbpe, (new, labels) = fit(ALL)
    without = cbpe.estimate(new, y_pred=new > 0.4)
    with_labels = cbpe.estimate(new, y_pred=new > 0.4, y_true=labels)
    assert figures(without) == figures(with_labels)
    assert all(np.isnan(row.realized) for row in without.estimates)
    assert with_labels.estimates[0].realized == pytest.approx(roc_auc_score(labels[:200], new[:200]))


def test_estimates_of_a_chunk_do_not_depend_on_other_chunks():
    cbpe, (new, _) = fit(["average_precision"])
    first, *_ = figures(cbpe.estimate(new[:400], chunks=Chunks.by_size(100)))
    assert figures(cbpe.estimate(new[:100], chunks=Chunks.by_size(100))) == [first]


def test_several_classes():
    p, y_true, y_pred = classes_drawn()
    for multi_class in ("ovo", "ovr"):
        cbpe = CBPE(ALL, multi_class=multi_class).fit(y_score=p, y_true=y_true, y_pred=y_pred)
        new, labels, predicted = classes_drawn(seed=1)
        result = cbpe.estimate(new, y_pred=predicted, y_true=labels, chunks=ONE)
        assert len(result.metrics) == 7 + 9
        for row in result.estimates:
            assert abs(row.estimate - row.realized) < 5 * row.standard_error, row
        auc = roc_auc_score(labels, new, multi_class=multi_class)
        assert only(result).realized == pytest.approx(auc)


def test_labels_determine_the_order_of_columns():
    p, y_true, _ = classes_drawn()
    expected = CBPE().fit(y_score=p, y_true=y_true).estimate(p, y_true=y_true, chunks=ONE)
    turned = CBPE(labels=["c", "b", "a"]).fit(y_score=p[:, ::-1], y_true=y_true)
    assert only(turned.estimate(p[:, ::-1], y_true=y_true, chunks=ONE))[5:] == pytest.approx(only(expected)[5:])
    score, binary = drawn()
    names = np.where(binary == 1, "ill", "well")
    ill = CBPE(labels=["well", "ill"]).fit(y_score=score, y_true=names)
    assert figures(ill.estimate(score)) == figures(CBPE().fit(y_score=score, y_true=binary).estimate(score))


def test_few_expected_positives_use_simulations():
    cbpe, _ = fit(calibration="none")
    few = np.random.default_rng(1).uniform(0.0, 0.05, 300)
    row = only(cbpe.estimate(few, chunks=ONE))
    wald = soft_auc_interval(y_score=few, p=few, method="wald")
    assert row.estimate == wald.auc
    assert row.low != pytest.approx(wald.low, abs=1e-4)
    assert row.low == pytest.approx(soft_auc_interval(y_score=few, p=few).low, abs=0.04)


@pytest.mark.slow
def test_importance_weights_make_a_curve_for_the_chunk():
    """P(y | x) is the same everywhere, but the score misses a feature whose distribution moves."""
    random = np.random.default_rng(0)

    def rows(n, share):
        group = random.random(n) < share
        score = random.random(n)
        return np.column_stack([score, group]), score, np.where(group, score**3, score**0.5)

    X, score, chance = rows(4000, 0.5)
    y_true = (random.random(4000) < chance).astype(int)
    X_new, new, chance = rows(2000, 0.95)
    accuracy = np.where(new > 0.5, chance, 1 - chance).mean()
    plain = CBPE(["accuracy"], calibration="isotonic").fit(
        y_score=score, y_true=y_true, y_pred=score > 0.5, X=X, chunks=THREE
    )
    weighted = CBPE(["accuracy"], importance_weighted=True).fit(
        y_score=score, y_true=y_true, y_pred=score > 0.5, X=X, chunks=THREE
    )
    errors = [
        abs(only(cbpe.estimate(new, y_pred=new > 0.5, X=X_new, chunks=ONE), "accuracy").estimate - accuracy)
        for cbpe in (plain, weighted)
    ]
    assert errors[1] < 0.5 * errors[0]


def payments(n, seed, shifted=False):
    """Return features and labels, about 3 % positive; if shifted, smaller amounts in a single channel."""
    random = np.random.default_rng(seed)
    amount, channel = random.lognormal(4.0, 1.0, n), random.choice(3, n)
    y_true = random.random(n) < expit(np.log(amount) - 9.0 + 1.2 * (channel == 0))
    return np.column_stack([amount / 10, np.full(n, 2)] if shifted else [amount, channel]), y_true


@pytest.mark.filterwarnings("ignore:the alert limits of roc_auc")
def test_a_shift_is_an_alert():
    """Also if the limits of the metric are too wide, as those of eight chunks with about seven positives each."""
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
    # the limits are those of chunks of the same size: without a shift, one of 50 samples may differ more
    small = cbpe.estimate(X[:50, 0], X=X[:50], chunks=ONE).shifts["[0:49]"]
    assert small.psi_limit > 2 * record["psi_limit"]
    assert small.valid
    assert np.isnan(cbpe.estimate(X[:50, 0], chunks=ONE).shifts["[0:49]"].domain_auc)


def test_limits_that_nothing_could_cross_are_reported():
    X, y_true = payments(1600, 0)
    score = -X[:, 1]  # of little use
    with pytest.warns(UserWarning, match="the alert limits of roc_auc") as caught:
        cbpe = CBPE().fit(y_score=score, y_true=y_true, chunks=Chunks.by_number(8))
    lower, upper = cbpe.limits_["roc_auc"]
    (warned,) = caught
    assert f"roc_auc ({lower:.3g} to {upper:.3g})" in str(warned.message)
    (size,) = re.findall("chunks of about ([0-9]+) samples", str(warned.message))
    assert "but the reference has only 1600" in str(warned.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CBPE(threshold=np.inf).fit(y_score=score, y_true=y_true, chunks=Chunks.by_number(8))  # no alerts are wanted
        X, y_true = payments(8 * int(size), 1)
        lower, _ = CBPE().fit(y_score=-X[:, 1], y_true=y_true, chunks=Chunks.by_number(8)).limits_["roc_auc"]


def test_an_inverted_ranking_is_a_warning():
    score, y_true = drawn()
    with pytest.warns(
        UserWarning, match=r"the ranking is inverted: the scores have an AUC of 0\.1\d* on the reference"
    ):
        cbpe = CBPE().fit(y_score=1 - score, y_true=y_true)
    new, labels = drawn(seed=1)
    row = only(cbpe.estimate(1 - new, y_true=labels, chunks=ONE))
    assert row.estimate < 0.3
    assert row.low <= row.realized <= row.high


def test_missing_values_are_errors_or_dropped():
    score, y_true = drawn()
    gap, labels = score.copy(), y_true.astype(float)
    gap[:3], labels[3:5] = np.nan, np.nan
    with pytest.raises(ValueError, match="y_score has 3 and y_true 2 missing values"):
        CBPE().fit(y_score=gap, y_true=labels)
    with pytest.raises(ValueError, match="y_score has 1 and y_true 0 missing values"):
        CBPE().fit(y_score=np.array([None, *score[1:]], dtype=object), y_true=y_true)
    with pytest.warns(UserWarning, match="y_score has 3 and y_true 2 missing values: dropped"):
        dropped = CBPE(on_nan="drop").fit(y_score=gap, y_true=labels, chunks=Chunks.by_size(500))
    clean = CBPE().fit(y_score=score[5:], y_true=y_true[5:])
    assert only(dropped.estimate(score, chunks=ONE))[5:9] == only(clean.estimate(score, chunks=ONE))[5:9]
    y_true = y_true.astype(object)
    for none in (
        np.array([None, *y_true[1:]], dtype=object),
        np.array([np.nan, *y_true[1:]], dtype=float),
        np.array([pd.NA, *y_true[1:]], dtype=object),
    ):
        with pytest.raises(ValueError, match="y_score has 0 and y_true 1 missing values"):
            CBPE().fit(y_score=score, y_true=none)


@pytest.mark.parametrize("n_labelled", [1500, 0])
def test_new_rows_without_a_label_are_kept(n_labelled):
    cbpe, (new, y_true) = fit(on_nan="drop")
    labels = np.where(np.arange(2000) < n_labelled, y_true, np.nan)
    with pytest.warns(UserWarning, match=f"y_true {2000 - n_labelled} missing values"):
        result = cbpe.estimate(new, y_true=labels, chunks=Chunks.by_size(1000))
    assert [row.n_rows for row in result.estimates] == [1000, 1000]
    assert [np.isnan(row.realized) for row in result.estimates] == [n_labelled == 0, True]
    assert figures(result) == figures(cbpe.estimate(new, chunks=Chunks.by_size(1000)))


def test_estimates_of_equal_scores():
    row = only(fit(calibration="isotonic")[0].estimate(np.full(200, 0.3), chunks=ONE))
    assert (row.estimate, row.standard_error, row.low, row.high) == (0.5, 0.0, 0.5, 0.5)


def test_estimates_without_positive_predictions():
    cbpe, (new, y_true) = fit(["precision", "recall", "f1"])
    with pytest.warns(UndefinedMetricWarning, match="not defined: precision of"):
        result = cbpe.estimate(new, y_pred=np.zeros(new.size, dtype=int), y_true=y_true, chunks=ONE)
    assert np.isnan(only(result, "precision").estimate)
    assert only(result, "recall").estimate < 0.01
    assert only(result, "recall").realized == only(result, "f1").realized == 0.0


def test_new_rows_with_labels_of_one_class():
    cbpe, (new, _) = fit()
    row = only(cbpe.estimate(new, y_true=np.zeros(new.size, dtype=int), chunks=ONE))
    assert np.isnan(row.realized)
    assert 0.5 < row.estimate < 1


@pytest.mark.filterwarnings("ignore:no shift could be beyond its limits:UserWarning")
@pytest.mark.parametrize("new", [[0.3, 0.4, 0.5], [0.0, 0.0, 0.1]], ids=["one row", "no positives"])
def test_chunks_without_an_estimate(new):
    cbpe, _ = fit(calibration="none", power=1.0)
    with pytest.warns(UndefinedMetricWarning, match="not defined: roc_auc of"):
        rows = cbpe.estimate(new, chunks=Chunks.by_size(2)).estimates
    undefined = [row for row in rows if np.isnan(row.estimate)]
    assert undefined
    for row in undefined:
        assert np.isnan([row.standard_error, row.low, row.high]).all()
        assert row.alert is None


@pytest.mark.filterwarnings("ignore:the alert limits of .* are so wide:UserWarning")
@pytest.mark.parametrize("metric", ["average_precision", "recall_at_0.1"])
def test_metrics_of_the_highest_scores_warn_of_few_positives(metric):
    score, y_true = drawn()
    rare = y_true * (np.cumsum(y_true) <= 49)
    sentence = f"{metric} is unreliable: the reference has 49 samples of class 1, fewer than 50"
    with pytest.warns(UserWarning, match=sentence):
        CBPE(["roc_auc", metric], calibration="isotonic").fit(y_score=score, y_true=rare)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*unreliable")
        CBPE(["roc_auc"], calibration="isotonic").fit(y_score=score, y_true=rare)
        CBPE([metric], calibration="none").fit(y_score=score, y_true=rare)
        CBPE([metric], calibration="isotonic").fit(y_score=score, y_true=y_true * (np.cumsum(y_true) <= 50))
    p, labels, _ = classes_drawn(200)
    with pytest.warns(UserWarning, match="the reference has [0-9]+ samples of class a, fewer than 50"):
        CBPE([metric], calibration=[True, False, False]).fit(y_score=p, y_true=labels)


INVALID_IN_FIT = [
    (([], []), {}, "y_score is empty"),
    (([0.1, 0.2], [0, 1, 1]), {}, "y_true has 3 samples"),
    (([0.1, 0.2], [1, 1]), {}, "the reference must have samples of all classes, two or more"),
    (([0.1, np.inf], [0, 1]), {}, "infinite"),
    (([0.1, 0.2], [np.nan, np.nan]), {}, "all 2 labels of y_true are missing"),
    (([[0.1, 0.2, 0.7]] * 2, [0, 1]), {}, "y_score has 3 columns, but there are 2 classes"),
    (([0.1, 0.2], [0, 1]), {"labels": ["a", "b"]}, "y_true has the label 0"),
    (([0.1, 0.2], [0, 1]), {"labels": [0, 1, 2]}, "the reference must have samples of all"),
    (([0.1, 0.2], [0, 1]), {"metrics": ["auc"]}, "metrics must be among"),
    (([0.1, 0.2], [0, 1]), {"metrics": "roc_auc"}, "metrics must be a sequence"),
    (([0.1, 0.2], [0, 1]), {"metrics": ["f1"]}, "needs y_pred"),
    (([0.1, 0.2], [0, 1]), {"calibration": "platt"}, "calibration must be one of"),
    (([0.1, 0.2], [0, 1]), {"multi_class": "all"}, "multi_class must be one of"),
    (([0.1, 0.2], [0, 1]), {"on_nan": "ignore"}, "on_nan must be one of"),
    (([0.1, 0.2], [0, 1]), {"level": 0.0}, "level must be in"),
    (([0.1, 0.2], [0, 1]), {"threshold": -1.0}, "threshold must not be negative"),
    (([0.1, 0.2], [0, 1]), {"n_simulations": 1}, "n_simulations == 1, must be >= 2"),
    (([0.1, 0.2], [0, 1]), {"importance_weighted": True}, "needs X"),
    (([0.1, 0.2], [0, 1]), {"metrics": ["roc_auc", "roc_auc"]}, "metrics must not contain duplicates"),
    (([0.1, 0.2], [0, 1]), {"random_state": -1}, "random_state == -1, must be >= 0"),
]


@pytest.mark.parametrize(("rows", "options", "sentence"), INVALID_IN_FIT)
def test_invalid_arguments_of_fit(rows, options, sentence):
    y_score, y_true = rows
    with pytest.raises(ValueError, match=sentence):
        CBPE(**options).fit(y_true=y_true, y_score=y_score, chunks=ONE)


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
    for name in ("n_simulations", "random_state"):
        with pytest.raises(TypeError, match=f"{name} must be an instance of int"):
            CBPE(**{name: 2.5}).fit(y_score=[0.1, 0.2], y_true=[0, 1])


@pytest.fixture(scope="module")
def forest_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(1200, 3))
    y = np.where(random.random(1200) < expit(2 * X[:, 0]), "yes", "no")
    forest = AUCForestClassifier(30, oob_score=True, min_samples_leaf=5, random_state=0)
    return forest.fit(X[:800], y[:800]), X, y


def test_from_forest(forest_rows):
    forest, X, y = forest_rows
    cbpe = CBPE.from_forest(forest, y[:800], X[:800], chunks=THREE, metrics=["roc_auc", "accuracy"])
    assert cbpe.classes_.tolist() == ["no", "yes"]
    result = cbpe.estimate(
        forest.predict_proba(X[800:]), y_pred=forest.predict(X[800:]), y_true=y[800:], X=X[800:], chunks=ONE
    )
    for row in result.estimates:
        assert row.low <= row.realized <= row.high
    assert result.shifts["[0:399]"].domain_auc > 0


def test_from_a_stack(forest_rows):
    """The out-of-bag probabilities and the threshold are those of the stack, not of its forest."""
    forest, X, y = forest_rows
    stack = AUCStackingClassifier(clone(forest), threshold="gmean").fit(X[:800], y[:800])
    cbpe = CBPE.from_forest(stack, y[:800], chunks=THREE, metrics=["roc_auc", "accuracy"])
    proba = stack.oob_decision_function_
    labels = stack.classes_[decide(stack, proba)]
    expected = CBPE(["roc_auc", "accuracy"]).fit(y_score=proba, y_true=y[:800], y_pred=labels, chunks=THREE)
    new = {"y_score": stack.predict_proba(X[800:]), "y_pred": stack.predict(X[800:]), "y_true": y[800:]}
    rows = cbpe.estimate(**new, chunks=ONE).estimates
    assert rows == expected.estimate(**new, chunks=ONE).estimates
    for row in rows:
        assert row.low <= row.realized <= row.high


def test_from_a_forest_of_another_prevalence():
    """The reference has the class frequencies of `set_prevalence`, so that precision is that of the population."""
    random = np.random.default_rng(0)
    X = random.normal(size=(16_000, 3))
    y = random.random(16_000) < 1.0 / (1.0 + np.exp(3.0 - 1.5 * X[:, 0]))
    train, new = np.arange(16_000) < 10_000, np.arange(16_000) >= 10_000
    train &= y | (random.random(16_000) < 0.2)
    forest = AUCForestClassifier(60, threshold=0.3, oob_score=True, random_state=0).fit(X[train], y[train])
    forest.set_prevalence(y.mean())
    cbpe = CBPE.from_forest(forest, y[train], chunks=THREE, metrics=["precision", "recall"])
    assert len(cbpe._reference.p) < 0.8 * train.sum()
    assert abs(cbpe._reference.p.mean() - y.mean()) < 0.02
    labels = forest.predict(X[new])
    for row in cbpe.estimate(forest.predict_proba(X[new]), y_pred=labels, y_true=y[new], chunks=ONE).estimates:
        assert abs(row.estimate - row.realized) < 0.07  # 0.29 with all training samples


def test_invalid_arguments_of_from_forest(forest_rows):
    forest, X, y = forest_rows
    with pytest.raises(ValueError, match="oob_score=True"):
        CBPE.from_forest(clone(forest).set_params(oob_score=False).fit(X, y), y)
    with pytest.raises(TypeError, match="labels"):
        CBPE.from_forest(forest, y[:800], labels=["yes", "no"])
    with pytest.raises(ValueError, match="y_true has 3 samples, but the forest was trained on 800"):
        CBPE.from_forest(forest, y[:3])
    with pytest.raises(ValueError, match="X_ref has 1200 samples, but the forest was trained on 800"):
        CBPE.from_forest(forest, y[:800], X)


@pytest.mark.filterwarnings("ignore:the alert limits of .* are so wide:UserWarning")
@pytest.mark.parametrize(("n_classes", "threshold"), [(2, None), (2, "f1"), (2, np.inf), (3, "prevalence"), (3, COST)])
def test_from_forest_uses_the_threshold_of_the_forest(n_classes, threshold):
    """Alert limits are those of the labels that the forest predicts, not of the most probable classes."""
    random = np.random.default_rng(1)
    X = random.normal(size=(600, 3))
    y = np.digitize(X[:, 0] + random.normal(size=600), [1.2, 2.0][: n_classes - 1])
    never = threshold == np.inf  # a result of tuning, but not a valid parameter
    params = {"criterion": "auc", "threshold": None if never else threshold, "oob_score": True, "random_state": 0}
    forest = AUCForestClassifier(20, **params).fit(X, y)
    forest.threshold_ = np.inf if never else forest.threshold_
    chances = forest.oob_decision_function_
    out_of_bag = copy.copy(forest)
    out_of_bag.predict_proba = lambda X: chances
    metrics = ["accuracy", "recall", "confusion_matrix"]
    limits = [
        CBPE(metrics, calibration="none").fit(y_score=chances, y_true=y, y_pred=labels).limits_
        for labels in (out_of_bag.predict(X), chances.argmax(axis=1))
    ]
    assert CBPE.from_forest(forest, y, metrics=metrics, calibration="none").limits_ == limits[0]
    assert (limits[0] == limits[1]) == (threshold is None)

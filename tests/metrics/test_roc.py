from functools import partial

import numpy as np
import pytest
from hypothesis import given
from sklearn import metrics as sklearn_metrics
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.metrics import average_precision_score, hand_till_score, roc_auc_score, roc_curve
from aucforest.metrics.roc import class_average_precision, class_roc_auc, precision_area
from tests.metrics.strategies import random_rows, two_classes
from tests.reference import metrics as reference

# a sum of n products of weights is good to a few n * 2**-53; the largest n here is 2000
CLOSE = {"rtol": 1e-12, "atol": 1e-13}


@given(two_classes())
def test_auc_counts_pairs_and_is_the_area_under_the_curve(rows):
    positive, scores, weights = rows
    assert roc_auc_score(positive, scores) == reference.auc(positive, scores)
    for sample_weight in (None, weights):
        auc = roc_auc_score(positive, scores, sample_weight=sample_weight)
        np.testing.assert_allclose(auc, reference.auc(positive, scores, sample_weight), **CLOSE)
        fpr, tpr, _ = roc_curve(positive, scores, sample_weight=sample_weight)
        assert abs(auc - np.trapezoid(tpr, fpr)) <= 1e-12


@given(two_classes())
def test_curve_is_the_rates_at_each_threshold(rows):
    positive, scores, weights = rows
    for sample_weight in (None, weights):
        fpr, tpr, thresholds = roc_curve(positive, scores, sample_weight=sample_weight, drop_intermediate=False)
        points = np.array(reference.roc_points(positive, scores, sample_weight))
        np.testing.assert_allclose(fpr, points[:, 0] / points[-1, 0], **CLOSE)
        np.testing.assert_allclose(tpr, points[:, 1] / points[-1, 1], **CLOSE)
        np.testing.assert_array_equal(thresholds, points[:, 2])


@given(two_classes())
def test_average_precision_sums_steps(rows):
    positive, scores, weights = rows
    for sample_weight in (None, weights):
        np.testing.assert_allclose(
            average_precision_score(positive, scores, sample_weight=sample_weight),
            reference.average_precision(positive, scores, sample_weight),
            **CLOSE,
        )


@pytest.mark.parametrize(
    ("dtype", "levels", "weighted"),
    [(np.float16, None, True), (np.float32, 20, False), (np.float64, None, False), (np.float64, 20, True)],
)
def test_two_classes_as_scikit_learn(dtype, levels, weighted):
    positive, scores, weights = random_rows(2000, levels=levels, dtype=dtype)
    sample_weight = weights * (weights > 0.1) if weighted else None
    for max_fpr in (None, 1.0, 0.37, 0.01):
        ours = roc_auc_score(positive, scores, sample_weight=sample_weight, max_fpr=max_fpr)
        theirs = sklearn_metrics.roc_auc_score(positive, scores, sample_weight=sample_weight, max_fpr=max_fpr)
        np.testing.assert_allclose(ours, theirs, rtol=1e-11)
    for drop in (True, False):
        options = {"sample_weight": sample_weight, "drop_intermediate": drop}
        ours_curve = roc_curve(positive, scores, **options)
        theirs_curve = sklearn_metrics.roc_curve(positive, scores, **options)
        if drop and weighted:
            # whether a point lies on a line hangs on the last bit of a weighted sum, so compare the areas
            ours_curve, theirs_curve = ([np.trapezoid(c[1], c[0])] for c in (ours_curve, theirs_curve))
        for ours_array, theirs_array in zip(ours_curve, theirs_curve):
            np.testing.assert_allclose(ours_array, theirs_array, rtol=1e-11)
    np.testing.assert_allclose(
        average_precision_score(positive, scores, sample_weight=sample_weight),
        sklearn_metrics.average_precision_score(positive, scores, sample_weight=sample_weight),
        rtol=1e-11,
    )


@pytest.mark.parametrize(
    ("multi_class", "averages"), [("ovo", ["macro", "weighted"]), ("ovr", ["macro", "weighted", "micro", None])]
)
@pytest.mark.parametrize("labels", [None, ["a", "b", "c", "d"]])
def test_many_classes_as_scikit_learn(multi_class, averages, labels):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, 300)
    proba = rng.dirichlet(np.ones(4), 300).round(2) + np.eye(4)[codes] * 0.2
    proba /= proba.sum(axis=1, keepdims=True)
    y_true = codes if labels is None else np.array(labels)[codes]
    sample_weight = rng.exponential(size=300)
    for average in averages:
        for weights in (None, sample_weight) if multi_class == "ovr" else (None,):
            options = {"average": average, "sample_weight": weights, "multi_class": multi_class}
            options["labels"] = labels
            np.testing.assert_allclose(
                roc_auc_score(y_true, proba, **options),
                sklearn_metrics.roc_auc_score(y_true, proba, **options),
                rtol=1e-12,
            )


@pytest.mark.parametrize("average", ["macro", "weighted", "micro", "samples", None])
def test_label_matrix_as_scikit_learn(average):
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, (60, 4))
    truth[:, 0], truth[:, 1] = 0, 1  # every row has both, as "samples" needs
    truth[0, 0], truth[0, 1] = 1, 0
    scores = rng.normal(size=(60, 4)).round(1)
    for max_fpr, weights in ((None, None), (0.4, None), (0.4, rng.exponential(size=60))):
        options = {"average": average, "max_fpr": max_fpr, "sample_weight": weights}
        expected = sklearn_metrics.roc_auc_score(truth, scores, **options)
        np.testing.assert_allclose(roc_auc_score(truth, scores, **options), expected, rtol=1e-12)


@pytest.mark.parametrize("weights", [None, [0.0, 0.0, 1.0]])
def test_one_class_is_undefined(weights):
    y_true = [1, 1, 1] if weights is None else [0, 0, 1]
    for options in ({}, {"max_fpr": 0.5}):
        with pytest.warns(UndefinedMetricWarning, match="a class has no weight"):
            assert np.isnan(roc_auc_score(y_true, [0.1, 0.2, 0.3], sample_weight=weights, **options))
    with pytest.warns(UndefinedMetricWarning, match="no negative sample has weight"):
        fpr, tpr, _ = roc_curve(y_true, [0.1, 0.2, 0.3], sample_weight=weights)
    assert np.isnan(fpr).all()
    assert tpr[-1] == 1.0
    with pytest.warns(UndefinedMetricWarning, match="no positive sample has weight"):
        assert np.isnan(average_precision_score(y_true, [0.1, 0.2, 0.3], sample_weight=[0, 0, 0]))


def test_patients_after_a_haemorrhage():
    """Outcome by WFNS grade of Turck et al. 2010, against results of the R package pROC."""
    good, poor = [37, 20, 3, 8, 4], [2, 12, 1, 8, 18]
    grade = np.repeat([1, 2, 3, 4, 5] * 2, good + poor)
    outcome = np.repeat(["good", "poor"], [sum(good), sum(poor)])
    assert roc_auc_score(outcome, grade) == pytest.approx(0.823678861788618, abs=1e-15)
    area_to_a_tenth = 0.0334417344173442
    standardised = 0.5 * (1.0 + (area_to_a_tenth - 0.005) / (0.1 - 0.005))
    assert roc_auc_score(outcome, grade, max_fpr=0.1) == pytest.approx(standardised, abs=1e-14)


def test_scores_must_be_finite_even_without_weight():
    for metric in (roc_auc_score, roc_curve, average_precision_score):
        with pytest.raises(ValueError, match="y_score must be finite, but value 1 is nan"):
            metric([0, 1, 1], [1, np.nan, 2], sample_weight=[1, 0, 1])


@pytest.mark.parametrize(
    ("y_true", "y_score", "options", "message"),
    [
        *(([0, 1], [1, 2], {"max_fpr": most}, "max_fpr must be in") for most in (0.0, np.nan, 1.5)),
        ([0, 1], [1, 2], {"average": "mean"}, "average must be"),
        ([0, 1], [1, 2], {"multi_class": "raise"}, "multi_class must be"),
        ([0, 1], [1, 2], {"labels": [0, 1, 2]}, "labels must have two elements"),
        ([0, 1], [1, 2], {"labels": [0, 2]}, "y_true has the label 1, which is not in labels"),
        ([0, 1], [1, 2], {"labels": [1, 1]}, "labels must be one-dimensional without duplicates"),
        ([0, 1, 2], np.eye(3), {"max_fpr": 0.5}, "max_fpr must be None"),
        ([0, 1, 2], np.eye(3), {"average": "samples"}, "average='samples' is not available"),
        ([0, 1, 2], np.eye(3), {"average": "micro"}, "average='micro' is not available"),
        (np.eye(2), np.ones((2, 3)), {}, "y_true has shape"),
        (2 * np.eye(2), np.ones((2, 2)), {}, "zeros and ones"),
    ],
)
def test_invalid_labels_and_options(y_true, y_score, options, message):
    with pytest.raises(ValueError, match=message):
        roc_auc_score(y_true, y_score, **options)


def test_labels_say_which_one_is_positive():
    y_true, y_score = ["sick", "well", "sick"], [0.9, 0.1, 0.05]
    assert roc_auc_score(y_true, y_score) == 0.5
    assert roc_auc_score(y_true[:2], y_score[:2], labels=["well", "sick"]) == 1.0
    assert roc_auc_score(y_true[:2], y_score[:2]) == 0.0
    assert average_precision_score(y_true[:2], y_score[:2], pos_label="sick") == 1.0
    assert roc_curve(y_true[:2], y_score[:2], pos_label="sick")[1].tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-600, 2.0**600, 2.0**1000])
def test_the_scale_of_the_weights_does_not_matter(scale):
    positive, scores, weights = random_rows(50, levels=5)
    two_columns = np.column_stack([-scores, scores])
    for metric, values in (
        (roc_auc_score, scores),
        (partial(roc_auc_score, max_fpr=0.3), scores),
        (average_precision_score, scores),
        (roc_auc_score, two_columns),
        (partial(roc_auc_score, multi_class="ovr"), two_columns),
    ):
        assert metric(positive, values, sample_weight=scale * weights) == metric(
            positive, values, sample_weight=weights
        )


def test_no_area_above_one():
    positive, noise, weights = random_rows(2000)
    scores = 100.0 * positive + noise
    for n_rows in range(20, 200):
        rows = slice(n_rows)
        options = {"sample_weight": weights[rows]}
        for metric in (roc_auc_score, partial(roc_auc_score, max_fpr=0.3), average_precision_score):
            assert 1.0 - 1e-13 <= metric(positive[rows], scores[rows], **options) <= 1.0
        mirrored = np.column_stack([scores, -scores])[rows]
        assert 0.0 <= roc_auc_score(positive[rows], mirrored, **options) <= 1e-13


def test_matrices_of_one_or_two_columns_as_scikit_learn():
    positive, scores, _ = random_rows(30)
    expected = sklearn_metrics.roc_auc_score(positive[:, None], scores[:, None])
    assert roc_auc_score(positive[:, None], scores[:, None]) == expected
    assert roc_auc_score(positive, scores[:, None]) == roc_auc_score(positive[:, None], scores) == expected
    matrix = np.column_stack([-scores, scores])
    assert roc_auc_score(positive[:, None], matrix) == roc_auc_score(positive, matrix)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("average", ["macro", "weighted", None])
def test_a_column_without_positives_as_scikit_learn(average):
    rng = np.random.default_rng(3)
    codes, scores = np.arange(30) % 2, rng.dirichlet(np.ones(3), 30)
    options = {"average": average, "multi_class": "ovr", "labels": [0, 1, 2]}
    expected = sklearn_metrics.roc_auc_score(codes, scores, **options)
    np.testing.assert_allclose(roc_auc_score(codes, scores, **options), expected, rtol=1e-12)
    truth = codes[:, None] == np.arange(3)
    expected = sklearn_metrics.roc_auc_score(truth, scores, average=average)
    np.testing.assert_allclose(roc_auc_score(truth, scores, average=average), expected, rtol=1e-12)


@pytest.mark.parametrize("average", ["macro", "weighted", "micro", "samples"])
def test_no_weight_in_any_column_is_undefined(average):
    for truth, weights in ((np.zeros((4, 3)), None), (np.eye(4)[:, :3], np.zeros(4))):
        with pytest.warns(UndefinedMetricWarning, match="a class has no weight") as caught:
            assert np.isnan(roc_auc_score(truth, np.ones((4, 3)), average=average, sample_weight=weights))
        assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(UndefinedMetricWarning, match="a class has no weight"):
        assert np.isnan(roc_auc_score([0, 0], np.eye(2), labels=[0, 1]))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_class_probabilities(n_classes, weighted):
    rng = np.random.default_rng(0)
    codes, proba = rng.integers(0, n_classes, 200), rng.dirichlet(np.ones(n_classes), 200).round(2)
    weights = rng.exponential(size=200) if weighted else None
    truth = codes[:, None] == np.arange(n_classes)
    if n_classes == 2:
        auc = sklearn_metrics.roc_auc_score(codes, proba[:, 1], sample_weight=weights)
        precision = sklearn_metrics.average_precision_score(codes, proba[:, 1], sample_weight=weights)
        assert class_roc_auc(codes, proba[:, 1], weights) == pytest.approx(auc, rel=1e-12)
    else:
        auc = hand_till_score(codes, proba, sample_weight=weights)
        precision = sklearn_metrics.average_precision_score(truth, proba, sample_weight=weights)
    assert class_roc_auc(codes, proba, weights) == pytest.approx(auc, rel=1e-12)
    assert class_average_precision(codes, proba, weights) == pytest.approx(precision, rel=1e-12)


def test_areas_of_many_precision_recall_curves_at_once():
    """Thresholds without further positives add nothing; a curve without a positive has no area."""
    tps = np.array([[0, 1, 1, 2], [0, 0, 0, 0]])
    precision = np.array([[1.0, 1.0, 0.5, 0.5], np.zeros(4)])
    np.testing.assert_allclose(precision_area(tps, precision), [0.75, np.nan])

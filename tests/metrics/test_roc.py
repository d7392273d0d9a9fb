from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics
from sklearn.exceptions import UndefinedMetricWarning

from aucforest import metrics
from aucforest.metrics import average_precision_score, hand_till_score, roc_auc_score, roc_curve
from aucforest.metrics.roc import auc_by_weights, class_average_precision, class_roc_auc, hand_till_by_weights
from tests.metrics.strategies import random_rows, two_classes
from tests.reference import metrics as reference

# The relative error of a sum of n products of weights is a few n * 2**-53; the largest n here is 2000.
CLOSE = {"rtol": 1e-12, "atol": 1e-13}


def assert_as_scikit_learn(name, *rows, rtol=1e-12, **options):
    ours, theirs = (getattr(module, name)(*rows, **options) for module in (metrics, sklearn_metrics))
    np.testing.assert_allclose(ours, theirs, rtol=rtol)


@given(two_classes())
def test_auc_counts_pairs_and_is_the_area_under_the_curve(rows):
    positive, scores, weights = rows
    assert roc_auc_score(positive, scores) == reference.auc(positive, scores)
    for weight in (None, weights):
        auc = roc_auc_score(positive, scores, sample_weight=weight)
        np.testing.assert_allclose(auc, reference.auc(positive, scores, weight), **CLOSE)
        fpr, tpr, _ = roc_curve(positive, scores, sample_weight=weight)
        assert abs(auc - np.trapezoid(tpr, fpr)) <= 1e-12
        precision = average_precision_score(positive, scores, sample_weight=weight)
        np.testing.assert_allclose(precision, reference.average_precision(positive, scores, weight), **CLOSE)


@given(two_classes())
def test_curve_is_the_rates_at_each_threshold(rows):
    positive, scores, weights = rows
    for weight in (None, weights):
        found = np.transpose(roc_curve(positive, scores, sample_weight=weight, drop_intermediate=False))
        points = np.array(reference.roc_points(positive, scores, weight))
        np.testing.assert_allclose(found[:, :2], points[:, :2] / points[-1, :2], **CLOSE)
        np.testing.assert_array_equal(found[:, 2], points[:, 2])


@pytest.mark.parametrize(("dtype", "levels", "weighted"), [
    (np.float16, None, True), (np.float32, 20, False), (np.float64, None, False), (np.float64, 20, True),
])  # fmt: skip
def test_two_classes_as_scikit_learn(dtype, levels, weighted):
    positive, scores, weights = random_rows(2000, levels=levels, dtype=dtype)
    options = {"sample_weight": weights * (weights > 0.1) if weighted else None, "rtol": 1e-11}
    for max_fpr in (None, 1.0, 0.37, 0.01):
        assert_as_scikit_learn("roc_auc_score", positive, scores, max_fpr=max_fpr, **options)
    assert_as_scikit_learn("average_precision_score", positive, scores, **options)
    # With weights, the last bit of a sum decides whether a point is on a line.
    for drop in (False,) if weighted else (False, True):
        assert_as_scikit_learn("roc_curve", positive, scores, drop_intermediate=drop, **options)


@pytest.mark.parametrize("labels", [None, ["a", "b", "c", "d"]])
def test_many_classes_as_scikit_learn(labels):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, 300)
    proba = rng.dirichlet(np.ones(4), 300).round(2) + np.eye(4)[codes] * 0.2
    proba /= proba.sum(axis=1, keepdims=True)
    rows, weights = (codes if labels is None else np.array(labels)[codes], proba), rng.exponential(size=300)
    for average in ("macro", "weighted", "micro", None):
        for weight in (None, weights):
            options = {"average": average, "sample_weight": weight, "labels": labels}
            assert_as_scikit_learn("roc_auc_score", *rows, multi_class="ovr", **options)
        if average in ("macro", "weighted"):
            assert_as_scikit_learn("roc_auc_score", *rows, multi_class="ovo", average=average, labels=labels)


@pytest.mark.parametrize("average", ["macro", "weighted", "micro", "samples", None])
def test_label_matrix_as_scikit_learn(average):
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, (60, 4))
    truth[:, 0], truth[:, 1] = 0, 1  # every row has both, as "samples" needs
    truth[0, 0], truth[0, 1] = 1, 0
    scores = rng.normal(size=(60, 4)).round(1)
    for max_fpr, weights in ((None, None), (0.4, None), (0.4, rng.exponential(size=60))):
        options = {"average": average, "max_fpr": max_fpr, "sample_weight": weights}
        assert_as_scikit_learn("roc_auc_score", truth, scores, **options)


@pytest.mark.parametrize(("y_true", "weights"), [([1, 1, 1], None), ([0, 0, 1], [0.0, 0.0, 1.0])])
def test_one_class_is_undefined(y_true, weights):
    rows = {"y_true": y_true, "y_score": [0.1, 0.2, 0.3]}
    for options in ({}, {"max_fpr": 0.5}):
        with pytest.warns(UndefinedMetricWarning, match="a class has no weight"):
            assert np.isnan(roc_auc_score(**rows, sample_weight=weights, **options))
    with pytest.warns(UndefinedMetricWarning, match="no negative sample has weight"):
        fpr, tpr, _ = roc_curve(**rows, sample_weight=weights)
    assert np.isnan(fpr).all()
    assert tpr[-1] == 1.0
    with pytest.warns(UndefinedMetricWarning, match="no positive sample has weight"):
        assert np.isnan(average_precision_score(**rows, sample_weight=[0, 0, 0]))


def test_patients_after_a_haemorrhage():
    """Outcome by WFNS grade of Turck et al. 2010, against results of the R package pROC."""
    outcome = np.repeat(["good", "poor"], [72, 41])
    grade = np.repeat([1, 2, 3, 4, 5] * 2, [37, 20, 3, 8, 4, 2, 12, 1, 8, 18])
    assert roc_auc_score(outcome, grade) == pytest.approx(0.823678861788618, abs=1e-15)
    standardised = 0.5 * (1.0 + (0.0334417344173442 - 0.005) / (0.1 - 0.005))
    assert roc_auc_score(outcome, grade, max_fpr=0.1) == pytest.approx(standardised, abs=1e-14)


def test_scores_must_be_finite_even_without_weight():
    for metric in (roc_auc_score, roc_curve, average_precision_score):
        with pytest.raises(ValueError, match="y_score must be finite, but value 1 is nan"):
            metric([0, 1, 1], [1, np.nan, 2], sample_weight=[1, 0, 1])


@pytest.mark.parametrize(("function", "y_true", "y_score", "options", "message"), [
    *((roc_auc_score, [0, 1], [1, 2], {"max_fpr": most}, "max_fpr must be in") for most in (0.0, 1.5)),
    (roc_auc_score, [0, 1], [1, 2], {"average": "mean"}, "average must be"),
    (roc_auc_score, [0, 1], [1, 2], {"multi_class": "raise"}, "multi_class must be"),
    (roc_auc_score, [0, 1], [1, 2], {"labels": [0, 1, 2]}, "labels must have two elements"),
    (roc_auc_score, [0, 1], [1, 2], {"labels": [0, 2]}, "y_true has the label 1, which is not in labels"),
    (roc_auc_score, [0, 1], [1, 2], {"labels": [1, 1]}, "labels must be one-dimensional without duplicates"),
    (roc_auc_score, [0, 1, 2], np.eye(3), {"max_fpr": 0.5}, "max_fpr must be None"),
    (roc_auc_score, [0, 1, 2], np.eye(3), {"average": "samples"}, "average='samples' is not available"),
    (roc_auc_score, [0, 1, 2], np.eye(3), {"average": "micro"}, "average='micro' is not available"),
    (roc_auc_score, np.eye(2), np.ones((2, 3)), {}, "y_true has shape"),
    (roc_auc_score, 2 * np.eye(2), np.ones((2, 2)), {}, "zeros and ones"),
    (hand_till_score, [0, 1, 2], np.ones((3, 2)), {}, "y_score has 2 columns, but y_true has 3 classes"),
    (hand_till_score, [0, 1, 2], np.ones((3, 2)), {"labels": [0, 1, 2]}, "but labels has 3 classes"),
    (hand_till_score, [0, 0, 0], np.ones((3, 1)), {}, "at least two columns"),
    (hand_till_score, [0, 1, 2], np.ones(3), {}, "y_score must have 2 dimension"),
    (hand_till_score, [0, 1, 2], np.eye(3), {"average": "micro"}, "average must be"),
    (hand_till_score, [0, 1, 2], np.eye(3), {"sample_weight": [1, 1]}, "sample_weight has 2 samples"),
])  # fmt: skip
def test_invalid_labels_and_options(function, y_true, y_score, options, message):
    with pytest.raises(ValueError, match=message):
        function(y_true, y_score, **options)


def test_labels_say_which_one_is_positive():
    y_true, y_score = ["sick", "well", "sick"], [0.9, 0.1, 0.05]
    assert roc_auc_score(y_true, y_score) == 0.5
    assert roc_auc_score(y_true[:2], y_score[:2], labels=["well", "sick"]) == 1.0
    assert roc_auc_score(y_true[:2], y_score[:2]) == 0.0
    assert average_precision_score(y_true[:2], y_score[:2], pos_label="sick") == 1.0
    assert roc_curve(y_true[:2], y_score[:2], pos_label="sick")[1].tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("scale", [2.0**-330, 2.0**329])
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
        found, expected = (metric(positive, values, sample_weight=weight) for weight in (scale * weights, weights))
        assert found == expected


def test_no_area_above_one():
    positive, noise, weights = random_rows(2000)
    scores = 100.0 * positive + noise
    mirrored = np.column_stack([scores, -scores])
    for n in range(20, 200):
        rows, options = (positive[:n], scores[:n]), {"sample_weight": weights[:n]}
        for metric in (roc_auc_score, partial(roc_auc_score, max_fpr=0.3), average_precision_score):
            assert 1.0 - 1e-13 <= metric(*rows, **options) <= 1.0
        assert 0.0 <= roc_auc_score(positive[:n], mirrored[:n], **options) <= 1e-13


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
    codes, scores = np.arange(30) % 2, np.random.default_rng(3).dirichlet(np.ones(3), 30)
    options = {"multi_class": "ovr", "labels": [0, 1, 2]}
    assert_as_scikit_learn("roc_auc_score", codes, scores, average=average, **options)
    assert_as_scikit_learn("roc_auc_score", codes[:, None] == np.arange(3), scores, average=average)


@pytest.mark.parametrize("average", ["macro", "weighted", "micro", "samples"])
def test_no_weight_in_any_column_is_undefined(average):
    for truth, weights in ((np.zeros((4, 3)), None), (np.eye(4)[:, :3], np.zeros(4))):
        with pytest.warns(UndefinedMetricWarning, match="a class has no weight") as caught:
            assert np.isnan(roc_auc_score(truth, np.ones((4, 3)), average=average, sample_weight=weights))
        assert [warning.filename for warning in caught] == [__file__]
    for function, message in ((roc_auc_score, "a class has no weight"), (hand_till_score, "fewer than two classes")):
        with pytest.warns(UndefinedMetricWarning, match=message):
            assert np.isnan(function([0, 0], np.eye(2), labels=[0, 1]))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_class_probabilities(n_classes, weighted):
    rng = np.random.default_rng(0)
    codes, proba = rng.integers(0, n_classes, 200), rng.dirichlet(np.ones(n_classes), 200).round(2)
    weights = rng.exponential(size=200) if weighted else None
    truth, columns = (codes, proba[:, 1]) if n_classes == 2 else (codes[:, None] == np.arange(3), proba)
    auc = roc_auc_score(codes, columns, sample_weight=weights)
    precision = sklearn_metrics.average_precision_score(truth, columns, sample_weight=weights)
    assert [class_roc_auc(codes, p, weights) for p in (columns, proba)] == pytest.approx([auc, auc], rel=1e-12)
    assert class_average_precision(codes, proba, weights) == pytest.approx(precision, rel=1e-12)


def random_classes(n_rows, n_classes, *, seed=0, decimals=2):
    """Return codes, probabilities that sum to 1 and often tie, and weights."""
    rng = np.random.default_rng(seed)
    codes = np.append(np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes))
    scores = (rng.dirichlet(np.ones(n_classes), n_rows) + 0.3 * np.eye(n_classes)[codes]).round(decimals)
    return codes, scores / scores.sum(axis=1, keepdims=True), rng.exponential(size=n_rows)


@given(st.integers(2, 5), st.integers(5, 40), st.integers(0, 10**6), st.sampled_from([0, 1, 3]))
def test_mean_over_pairs(n_classes, n_rows, seed, decimals):
    codes, scores, weights = random_classes(n_rows, n_classes, seed=seed, decimals=3)
    scores = scores.round(decimals)
    for weight in (None, weights):
        matrix = hand_till_score(codes, scores, average=None, sample_weight=weight)
        expected = reference.pair_matrix(codes, scores, n_classes, weight)
        np.testing.assert_allclose(matrix, expected, rtol=1e-12, atol=1e-14)
        for average in ("macro", "weighted"):
            found = hand_till_score(codes, scores, average=average, sample_weight=weight)
            expected = reference.hand_till(codes, scores, n_classes, weight, average == "weighted")
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_layout_and_dtype_of_the_scores_do_not_matter():
    codes, scores, weights = random_classes(200, 20)
    options = {"average": None, "sample_weight": weights}
    expected, single = hand_till_score(codes, scores, **options), scores.astype(np.float32)
    for same in (np.asfortranarray(scores), np.repeat(scores, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(hand_till_score(codes, same, **options), expected)
    np.testing.assert_array_equal(roc_auc_score(codes, scores, **options), expected)
    found, expected = (hand_till_score(codes, same, **options) for same in (single, single.astype(np.float64)))
    np.testing.assert_array_equal(found, expected)


def test_labels_name_the_columns():
    codes, scores, _ = random_classes(100, 3)
    names, order = np.array(["b", "c", "a"]), [2, 0, 1]  # of sorted names
    expected = hand_till_score(codes, scores, average=None)
    np.testing.assert_array_equal(hand_till_score(names[codes], scores, labels=names, average=None), expected)
    found = hand_till_score(names[codes], scores[:, order], average=None)
    np.testing.assert_array_equal(found, expected[np.ix_(order, order)])


@pytest.mark.parametrize("how", ["absent", "weightless"])
def test_a_missing_class_is_left_out(how):
    codes, scores, weights = random_classes(60, 3)
    there = codes != 1
    options = {"labels": [0, 1, 2], "sample_weight": weights * there}
    if how == "absent":
        codes, scores, options["sample_weight"] = codes[there], scores[there], weights[there]
    matrix = hand_till_score(codes, scores, average=None, **options)
    expected = [[True, True, False], [True, True, True], [False, True, True]]
    np.testing.assert_array_equal(np.isnan(matrix), expected)
    assert hand_till_score(codes, scores, **options) == (matrix[0, 2] + matrix[2, 0]) / 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_several_weights_at_once():
    """The results are those of single weights to the last bit; the last weights are those of a single class."""
    codes, scores, weights = random_classes(300, 4)
    columns, is_last = np.ascontiguousarray(scores.T), codes == 3
    several = np.stack((weights, 2.0 * weights, weights * (codes != 2), weights * is_last))
    for chosen in (several[:2], several):
        expected = [hand_till_score(codes, scores, sample_weight=each) for each in chosen]
        np.testing.assert_array_equal(hand_till_by_weights(codes.astype(np.uint32), columns, chosen), expected)
    expected = [roc_auc_score(is_last, columns[3], sample_weight=each) for each in several]
    np.testing.assert_array_equal(auc_by_weights(is_last, columns[3], several), expected)

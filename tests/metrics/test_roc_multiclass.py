import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.metrics import hand_till_score, roc_auc_score
from aucforest.metrics.roc import score_matrices
from tests.reference import metrics as reference


def random_classes(n_rows, n_classes, *, seed=0, decimals=2):
    """Return codes, probabilities that sum to 1 and often tie, and weights."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n_rows)
    codes[:n_classes] = np.arange(n_classes)
    scores = rng.dirichlet(np.ones(n_classes), n_rows) + 0.3 * np.eye(n_classes)[codes]
    scores = scores.round(decimals)
    return codes, scores / scores.sum(axis=1, keepdims=True), rng.exponential(size=n_rows)


@given(st.integers(2, 5), st.integers(5, 40), st.integers(0, 10**6), st.sampled_from([0, 1, 3]))
def test_mean_over_pairs(n_classes, n_rows, seed, decimals):
    codes, scores, weights = random_classes(n_rows, n_classes, seed=seed, decimals=3)
    scores = scores.round(decimals)
    for sample_weight in (None, weights):
        np.testing.assert_allclose(
            hand_till_score(codes, scores, average=None, sample_weight=sample_weight),
            reference.pair_matrix(codes, scores, n_classes, sample_weight),
            rtol=1e-12,
            atol=1e-14,
        )
        for average in ("macro", "weighted"):
            np.testing.assert_allclose(
                hand_till_score(codes, scores, average=average, sample_weight=sample_weight),
                reference.hand_till(codes, scores, n_classes, sample_weight, average == "weighted"),
                rtol=1e-12,
                atol=1e-14,
            )


def test_layout_and_dtype_of_the_scores_do_not_matter():
    codes, scores, weights = random_classes(200, 20)
    options = {"average": None, "sample_weight": weights}
    expected = hand_till_score(codes, scores, **options)
    wide = np.zeros((200, 40))
    wide[:, ::2] = scores
    np.testing.assert_array_equal(hand_till_score(codes, np.asfortranarray(scores), **options), expected)
    np.testing.assert_array_equal(hand_till_score(codes, wide[:, ::2], **options), expected)
    np.testing.assert_array_equal(roc_auc_score(codes, scores, **options), expected)
    single = scores.astype(np.float32)
    np.testing.assert_array_equal(
        hand_till_score(codes, single, **options), hand_till_score(codes, single.astype(np.float64), **options)
    )


def test_labels_name_the_columns():
    codes, scores, _ = random_classes(100, 3)
    names = np.array(["b", "c", "a"])
    expected = hand_till_score(codes, scores, average=None)
    np.testing.assert_array_equal(hand_till_score(names[codes], scores, labels=names, average=None), expected)
    order = [2, 0, 1]  # sorted names
    np.testing.assert_array_equal(
        hand_till_score(names[codes], scores[:, order], average=None), expected[np.ix_(order, order)]
    )


@pytest.mark.parametrize("how", ["absent", "weightless"])
def test_a_missing_class_is_left_out(how):
    codes, scores, weights = random_classes(60, 3)
    there = codes != 1
    if how == "absent":
        options = {"labels": [0, 1, 2], "sample_weight": weights[there]}
        codes, scores = codes[there], scores[there]
    else:
        options = {"sample_weight": weights * there}
    matrix = hand_till_score(codes, scores, average=None, **options)
    expected = [[True, True, False], [True, True, True], [False, True, True]]
    np.testing.assert_array_equal(np.isnan(matrix), expected)
    assert hand_till_score(codes, scores, **options) == (matrix[0, 2] + matrix[2, 0]) / 2


def test_several_matrices_and_weights_at_once():
    """The results are those of single matrices and weights to the last bit, and NaN without a pair of classes."""
    codes, first, weights = random_classes(300, 4)
    both = first, random_classes(300, 4, seed=1)[1]
    matrices = np.array([scores.T for scores in both], order="C")
    of_first = np.stack((weights, weights * (codes != 2), weights * (codes == 1)))
    for all_weights in (np.stack((of_first, of_first[::-1])), np.stack((of_first[:1], 2.0 * of_first[:1]))):
        found = score_matrices(codes.astype(np.uint32), matrices, all_weights)
        for scores, own, found_of_scores in zip(both, all_weights, found):
            for some, value in zip(own, found_of_scores):
                if np.any(some[codes != 1] > 0):
                    assert value == hand_till_score(codes, scores, sample_weight=some)
                else:
                    assert np.isnan(value)


def test_no_pair_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="fewer than two classes"):
        assert np.isnan(hand_till_score([0, 0], np.eye(2), labels=[0, 1]))


@pytest.mark.parametrize(
    ("y_true", "shape", "options", "message"),
    [
        ([0, 1, 2], (3, 2), {}, "y_score has 2 columns, but y_true has 3 classes"),
        ([0, 1, 1], (3, 3), {}, "y_score has 3 columns, but y_true has 2 classes"),
        ([0, 1, 2], (3, 2), {"labels": [0, 1, 2]}, "but labels has 3 classes"),
        ([0, 1, 2], (3, 2), {"labels": [0, 1]}, "y_true has the label 2, which is not in labels"),
        ([0, 1, 2], (3, 3), {"labels": [0, 1, 1]}, "labels must be one-dimensional without duplicates"),
        ([0, 0, 0], (3, 1), {}, "at least two columns"),
        ([0, 1, 2], (3,), {}, "y_score must have 2 dimension"),
        ([0, 1, 2], (3, 3), {"average": "micro"}, "average must be"),
        ([0, 1], (3, 3), {}, "y_true has 2 samples, but y_score has 3"),
        ([0, 1, 2], (3, 3), {"sample_weight": [1, 1]}, "sample_weight has 2 samples"),
    ],
)
def test_invalid_labels_and_columns(y_true, shape, options, message):
    with pytest.raises(ValueError, match=message):
        hand_till_score(y_true, np.zeros(shape), **options)


def test_scores_must_be_finite():
    with pytest.raises(ValueError, match="y_score must be finite"):
        hand_till_score([0, 1, 2], [[0.5, 0.2, 0.3], [0.1, 0.1, np.inf], [0.2, 0.1, 0.7]])

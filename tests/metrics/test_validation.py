import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

from aucforest.metrics import validation
from aucforest.metrics.validation import check_scores, check_weights, class_codes, is_positive

three_weights, three_labels, three_codes = (partial(f, n_rows=3) for f in (check_weights, is_positive, class_codes))
third_of_two = partial(three_labels, pos_label="c")


@pytest.mark.parametrize("labels", [
    *([low, high, high] for low, high in [(False, True), (0, 1), (-1, 1), (3, 9), (0.5, 1.5), ("a", "b")]),
    np.array(["a", "b", "b"], dtype=object), np.array([0, 1, 1], dtype=np.uint8),
    np.array(["2020-01-01", "2021-01-01", "2021-01-01"], dtype="datetime64[D]"),
    pd.Series(["a", "b", "b"], index=[5, 6, 7]), pd.Series(["a", "b", "b"], dtype="category"),
    pd.Series([0, 1, 1], dtype="Int64"),
])  # fmt: skip
def test_the_greater_of_two_labels_is_positive(labels):
    assert is_positive(labels, 3).tolist() == [False, True, True]
    assert is_positive(np.asarray(labels)[::-1], 3).tolist() == [True, True, False]
    assert is_positive(labels, 3, pos_label=np.asarray(labels)[0]).tolist() == [True, False, False]
    codes, classes = class_codes(labels, 3)
    assert codes.tolist() == [0, 1, 1]
    assert classes.tolist() == sorted(set(np.asarray(labels).tolist()))


@pytest.mark.parametrize(("values", "expected"), [
    ([1, 2, 3], [1.0, np.nan, 3.0]), ([True, False, True], [1.0, np.nan, 1.0]),
    (np.float32([1, 2, 3]), np.float32([1, np.nan, 3])),
    (["a", "b", "c"], np.array(["a", None, "c"], dtype=object)),
    (np.array(["a", "b", 3], dtype=object), np.array(["a", None, 3], dtype=object)),
    (np.arange(3).astype("M8[ns]"), np.array([0, "NaT", 2], dtype="M8[ns]")),
    (np.arange(3).astype("m8[s]"), np.array([0, "NaT", 2], dtype="m8[s]")),
])  # fmt: skip
def test_masked_values_are_missing(values, expected):
    unmasked, expected = validation.unmask(np.ma.masked_array(values, [0, 1, 0])), np.asarray(expected)
    assert unmasked.dtype == expected.dtype
    np.testing.assert_array_equal(unmasked, expected)


@pytest.mark.parametrize(("label", "pos_label", "expected"), [
    (1, None, True), (True, None, True), (0, None, False), (2, None, False), ("a", None, False), ("a", "a", True),
])  # fmt: skip
def test_a_single_label(label, pos_label, expected):
    assert is_positive([label] * 3, 3, pos_label=pos_label).tolist() == [expected] * 3


@pytest.mark.parametrize("values", [
    [3, -2, 3, 7], [0, 10**12, 5, 5], np.array([-128, 127, 0, 127], dtype=np.int8),
    np.array([2**63, 2**64 - 1, 0, 5], dtype=np.uint64), np.array([-(2**63), 2**63 - 1, 2**63 - 2, 0]),
    [2.0, -1.0, 0.0, 2.0], [2.5, -1.0, 0.0, 2.5], [1e300, -1e300, 0.0, 2.5], [True, False, True, True],
    ["z", "y", "", "z"],
])  # fmt: skip
def test_codes_are_positions_among_the_sorted_labels(values):
    (codes, classes), (expected, positions) = class_codes(values, 4), np.unique(values, return_inverse=True)
    np.testing.assert_array_equal(classes, expected)
    assert classes.dtype == expected.dtype
    np.testing.assert_array_equal(codes, positions)


@pytest.mark.parametrize(("values", "dtype"), [
    ([1, 2], np.float64), ([True, False], np.float64),
    *((np.array([1, 2], kind), np.float32) for kind in (np.float16, np.float32)),
    (np.array([1, 2], np.longdouble), np.float64), (np.array([1, 2.5], object), np.float64),
    (np.arange(6.0)[::3], np.float64), (pd.Series([1.0, 2.0]), np.float64),
])  # fmt: skip
def test_dtype_of_scores(values, dtype):
    checked = check_scores(values)
    assert checked.dtype == dtype
    assert checked.flags.c_contiguous
    np.testing.assert_array_equal(checked, np.asarray(values, dtype=float))


@pytest.mark.parametrize(("check", "values", "error", "message"), [
    (check_scores, [], ValueError, "y_score is empty"),
    (check_scores, [[1, 2]], ValueError, "y_score must have 1 dimension"),
    (check_scores, [1j, 2], TypeError, "must hold real numbers"),
    (check_scores, ["1", "2"], TypeError, "must hold real numbers"),
    (check_scores, np.array(["a", "b"], dtype=object), TypeError, "y_score must hold real numbers"),
    (check_scores, [0, 2**53 + 2], ValueError, r"y_score has integers above 2\*\*53"),
    (check_scores, [0, -(2**63)], ValueError, r"y_score has integers above 2\*\*53"),
    (three_weights, [1, -0.5, 1], ValueError, "sample_weight must not be negative, but value 1 is -0.5"),
    (three_weights, [1, 1, np.nan], ValueError, "sample_weight must be finite, but value 2 is nan"),
    (three_weights, [1, 1], ValueError, "sample_weight has 2 samples, but y_score has 3"),
    (three_weights, [[1, 1, 1]], ValueError, "sample_weight must have one dimension"),
    (three_weights, ["1", "2", "3"], TypeError, "sample_weight must hold real numbers"),
    (three_weights, [1j, 2, 3], TypeError, "sample_weight must hold real numbers"),
    (three_labels, [0, 1], ValueError, "y_true has 2 samples, but y_score has 3"),
    (three_codes, [[0, 1], [1, 0]], ValueError, "y_true must have one dimension"),
    (third_of_two, [0, 1, 0], ValueError, r"^pos_label='c' is not one of the labels \[0 1\] of y_true$"),
    (third_of_two, ["a", "b", "b"], ValueError, r"^pos_label='c' is not one of the labels \['a' 'b'\] of y_true$"),
    *(
        (three_labels, labels, ValueError, "must have two labels")
        for labels in ([0, 1, 2], ["a", "b", "c"], [0, 1, np.nan], [np.nan, np.nan, 1], [0, 1, None], [np.nan] * 3)
    ),
    *(
        (check, labels, ValueError, "missing value")
        for check in (three_labels, three_codes)
        for labels in (
            [0.0, np.nan, 1.0], np.array(["a", None, "b"], dtype=object),
            pd.Series(["a", None, "b"], dtype="string"), pd.Series([None, True, False], dtype="boolean"),
        )
    ),
    (three_labels, np.array([1, "a", 1], dtype=object), TypeError, "cannot be sorted"),
    (three_codes, np.array([1, "a", 1], dtype=object), TypeError, "cannot be sorted"),
])  # fmt: skip
def test_invalid_scores_weights_and_labels(check, values, error, message):
    with pytest.raises(error, match=message):
        check(values)


def test_a_matrix_of_one_column_is_a_vector():
    column = np.array([[0], [1], [1]])
    assert is_positive(column, 3).tolist() == class_codes(column, 3)[0].tolist() == [0, 1, 1]
    assert validation.two_classes(column, column, None)[1].tolist() == [0.0, 1.0, 1.0]
    assert [rows.tolist() for rows in validation.stream_rows(column, column)] == [[0, 1, 1], [0.0, 1.0, 1.0]]


@pytest.mark.parametrize("greatest", [5e-324, 9e-101, 2e100, 1e200])
def test_weights_whose_products_overflow_or_underflow_are_refused(greatest):
    bounds = re.escape("the greatest must be from 1e-100 to 1e+100 (or all are 0)")
    with pytest.raises(ValueError, match=f"^sample_weight: {bounds}, but is {re.escape(str(greatest))}$"):
        validation.check_weights([0.0, greatest, 0.0], 3)
    for usual in ([0.0, 0.0], [1e-300, 1e-100], [0.0, 1e100]):
        assert validation.check_weights(usual, 2).tolist() == usual


@pytest.mark.parametrize("check", [check_scores, three_weights])
def test_checked_arrays_are_writeable(check):
    values = np.arange(3.0)
    assert check(values) is values
    values.flags.writeable = False
    assert check(values).flags.writeable
    assert not values.flags.writeable


def test_codes_are_counted_and_changed_in_blocks(monkeypatch):
    monkeypatch.setattr(validation, "_BLOCK_ROWS", 7)
    codes = np.random.default_rng(0).integers(0, 3, 40).astype(np.uint16)
    assert validation.count_classes(codes, 4).tolist() == [*np.bincount(codes).tolist(), 0]
    new = np.array([2, 0, 1], dtype=np.uint16)
    np.testing.assert_array_equal(validation.recode(codes, new), new[codes])
    assert validation.recode(codes, new).dtype == np.uint16

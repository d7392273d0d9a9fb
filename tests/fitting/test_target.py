"""The labels of parts of the rows are joined, or refused."""

import numpy as np
import pytest

from aucforest.fitting.target import Target, code_classes, code_part


@pytest.mark.parametrize(("parts", "weight", "error", "sentence"), [
    ([[0.5, 1.5], [1.0, 0.0]], None, ValueError, "continuous"),
    ([[1.0, 0.0], [1.0, np.nan]], None, ValueError, "NaN"),
    ([[1, 0], ["a", "b"]], None, TypeError, "numbers and strings"),
    ([[1, "a"]], None, TypeError, "cannot be sorted"),
    ([[1, 0], [1]], [0.0, 0.0, 0.0], ValueError, "zero for all samples"),
    ([[], []], None, ValueError, "no samples"),
])  # fmt: skip
def test_targets_are_refused(parts, weight, error, sentence):
    weights = None if weight is None else np.array(weight)
    with pytest.raises(error, match=sentence):
        Target.from_parts(
            [code_part(np.array(part, dtype=object if "a" in part and 1 in part else None)) for part in parts], weights
        )


def test_many_classes_of_few_rows_are_no_regression():
    y = np.arange(100) % 60
    np.testing.assert_array_equal(Target.from_parts([code_part(y[:70]), code_part(y[70:])], None).labels, y)


def test_classes_that_differ_by_case_and_spaces_are_named_with_their_rows():
    y = np.array(["Yes", "no", "yes ", "Yes"], dtype=object)
    with pytest.warns(UserWarning, match=r"^y: 'Yes' \(2\), 'yes ' \(1\) differ only by case and spaces and are"):
        classes, _ = code_classes(y)
    assert classes.tolist() == ["Yes", "no", "yes "]

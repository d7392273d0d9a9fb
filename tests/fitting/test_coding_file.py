"""A coding comes back from its file to the last bit, or not at all."""

import numpy as np
import pytest

from aucforest.fitting.coding import Coding
from aucforest.fitting.coding_file import CODING, read_coding, write_coding
from aucforest.persistence.model_file import write_model
from aucforest.persistence.plain_values import labels_to_plain
from aucforest.tree.binning import BinValues
from aucforest.tree.features import CATEGORICAL, NUMERIC

VALUES = BinValues(
    np.array([0, 2, 5]), np.array([-np.inf, 0.1, 0.0, 1.0, 2.0]), np.array([-1.0, 5e-324, 0.0, 1.0, 2.0])
)
CATEGORIES = {1: np.array(["a", "é", "c"], dtype=object)}


@pytest.mark.parametrize("categories", [{}, CATEGORIES, {0: np.array([1, 2]), 1: np.array([False, True])}])
def test_codings_come_back(tmp_path, categories):
    write_coding(tmp_path, Coding(categories, VALUES), "a")
    coding = read_coding(tmp_path, "a", 2)
    assert coding is not None
    assert all(np.array_equal(one, other) for one, other in zip(coding.values, VALUES))
    assert coding.kinds.tolist() == [NUMERIC, CATEGORICAL if len(categories.get(1, [])) > 2 else NUMERIC]
    assert {j: labels.tolist() for j, labels in coding.categories.items()} == {
        j: labels.tolist() for j, labels in categories.items()
    }
    assert [labels.dtype for labels in coding.categories.values()] == [labels.dtype for labels in categories.values()]


def test_others_are_not_believed(tmp_path):
    assert read_coding(tmp_path, "a", 2) is None
    write_coding(tmp_path, Coding(CATEGORIES, VALUES), "a")
    assert read_coding(tmp_path, "b", 2) is None
    content = (tmp_path / CODING).read_bytes()
    for cut in (0, 5, len(content) // 2, len(content) - 1):
        (tmp_path / CODING).write_bytes(content[:cut])
        assert read_coding(tmp_path, "a", 2) is None


@pytest.mark.parametrize(
    ("first", "upper", "category"),
    [
        ([0, 2, 4], None, 1),  # fewer values than there are
        ([0, 2, 6], None, 1),
        ([0, 6, 5], None, 1),  # not rising
        ([1, 2, 5], None, 1),
        ([0, 5], None, 1),  # of one feature
        (None, [0.0], 1),
        (None, None, 2),  # of a third feature
        (None, None, "x"),
    ],
)
def test_what_compiled_code_would_read_out_of_bounds_is_not_believed(tmp_path, first, upper, category):
    arrays = VALUES._asdict()
    arrays |= {} if first is None else {"first": np.array(first)}
    arrays |= {} if upper is None else {"upper": np.array(upper)}
    categories = {str(category): labels_to_plain(CATEGORIES[1])}
    write_model(tmp_path / CODING, arrays, {"fit": "a", "categories": categories})
    assert read_coding(tmp_path, "a", 2) is None
    assert read_coding(tmp_path, "a", 3) is None


def test_features_split_by_sets_have_no_more_codes_than_a_set(tmp_path):
    for n_bins in (255, 256):
        values = BinValues(np.array([0, n_bins]), *np.tile(np.arange(float(n_bins)), (2, 1)))
        for categories in ({}, {0: CATEGORIES[1]}):
            write_coding(tmp_path, Coding(categories, values), "a")
            assert (read_coding(tmp_path, "a", 1) is None) == (n_bins == 256 and len(categories) > 0)

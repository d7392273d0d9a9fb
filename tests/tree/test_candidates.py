"""The features of a node: drawn by its key without replacement; constant ones do not count."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree.candidates import draw_features
from aucforest.tree.growing import take_rows
from aucforest.tree.splitter import Columns, make_scratch
from tests.reference import tree as reference


@given(
    codes=st.lists(st.lists(st.integers(0, 2), min_size=5, max_size=5), min_size=1, max_size=12),
    is_taken=st.lists(st.booleans(), min_size=5, max_size=5).filter(any),
    key=st.integers(0, 2**64 - 1),
    max_features=st.integers(1, 13),
)
def test_features_are_those_of_the_reference(codes, is_taken, key, max_features):
    matrix, n_features = np.array(codes, dtype=np.uint8), len(codes)
    columns = Columns(matrix, np.full(n_features, 3), np.empty(0, dtype=np.int64))
    elements = np.empty(5, dtype=np.uint64)
    n_rows = take_rows(np.zeros(5, dtype=np.uint16), np.array(is_taken, dtype=np.uint16), True, elements)
    scratch = make_scratch(n_features, 3, 2)
    n_tried = draw_features(columns, elements[:n_rows], np.uint64(key), max_features, scratch)
    table = reference.Table(codes, [0] * 5, [1] * 5, 1)
    rules = reference.Rules(max_features=max_features)
    assert scratch.tried[:n_tried].tolist() == reference.tried_features(table, np.flatnonzero(is_taken), key, rules)
    assert scratch.features.tolist() == list(range(n_features))

"""The AUC criterion against scikit-learn."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from sklearn.metrics import roc_auc_score

from tests.tree.criteria.scoring import children, gain


@given(children(most=40))
def test_auc_gain_is_the_mean_roc_auc_over_pairs(sides):
    left, right = map(np.array, sides)
    scores = []
    for i, j in combinations(np.flatnonzero(left + right), 2):
        y_true = np.repeat([0, 0, 1, 1], [left[i], right[i], left[j], right[j]])
        y_score = np.repeat([0, 1, 0, 1], [left[i], right[i], left[j], right[j]])
        auc = roc_auc_score(y_true, y_score)
        scores.append(max(auc, 1 - auc))
    assert gain("auc", left, right) == pytest.approx(np.mean(scores) - 0.5, abs=1e-12)

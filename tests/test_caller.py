"""Warnings name the line of the user."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from aucforest import AUCForestClassifier
from aucforest.metrics import roc_auc_score


def files_of_warnings(call):
    """Return the files that the warnings of a call name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return {warning.filename for warning in caught}


def fit_few_trees():
    y = np.arange(40) % 2
    return AUCForestClassifier(2, oob_score=True).fit(y[:, None].astype(float), y)


@pytest.mark.parametrize(
    "call",
    [
        lambda: roc_auc_score([1, 1], [0.2, 0.3]),  # one call deep
        fit_few_trees,  # decorated by scikit-learn
        lambda: cross_val_score(AUCForestClassifier(2, oob_score=True), np.eye(9)[:, :2], [0, 1, 0] * 3, cv=2),
    ],
)
def test_a_warning_names_the_line_outside_of_the_package(call):
    assert files_of_warnings(call) == {__file__}

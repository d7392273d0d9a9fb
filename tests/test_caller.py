"""Warnings name the line of the user's code."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from aucforest import AUCForestClassifier
from aucforest.metrics import roc_auc_score


@pytest.mark.parametrize("call", [
    lambda: roc_auc_score([1, 1], [0.2, 0.3]),  # one call deep
    lambda: AUCForestClassifier(2, oob_score=True, random_state=0).fit(np.eye(9), [0, 1, 0] * 3),  # decorated
    lambda: cross_val_score(AUCForestClassifier(2, oob_score=True, random_state=0), np.eye(9, 2), [0, 1, 0] * 3, cv=2),
])  # fmt: skip
def test_a_warning_names_the_line_outside_of_the_package(call):
    with pytest.warns(Warning, match=".") as caught:
        call()
    assert {warning.filename for warning in caught} == {__file__}

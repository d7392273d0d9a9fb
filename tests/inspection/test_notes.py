"""Notes on the columns of frames of any library."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.feature_extraction import FeatureHasher

from aucforest import AUCForestClassifier
from aucforest.inspection import column_notes

Y = np.where(np.arange(60) % 3 == 0, "yes", "no")
COLUMNS = {"refund": np.where(Y == "yes", 20.0, 1.0), "channel": ["web", "shop", "mail"] * 20, "site": ["A"] * 60}


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_notes_do_not_depend_on_the_library(library):
    X = library({**COLUMNS, "channel": ["web", "shop"] * 30})
    forest = AUCForestClassifier(5, random_state=0).fit(X, Y)
    assert column_notes(X, Y, model=forest) == [
        "column 'site': the same value in every row, never used in a split",
        "'refund' alone separates the classes (ROC AUC 1.0000): is it known at prediction time?",
    ]
    (*_, note) = column_notes(library(COLUMNS), model=forest)
    assert note.startswith("column 'channel': 20 of 60 rows (33 %) have a category that training has not seen ('mail')")


def test_tables_that_do_not_match_are_refused():
    frame = pd.DataFrame(COLUMNS)
    model = AUCForestClassifier(2).fit(frame, Y)
    for given, sentence in (
        (([1, 2],), "two dimensions"),
        ((frame, [0, 1]), "inconsistent numbers of samples"),
        ((frame[["site"]],), "feature names should match"),
    ):
        with pytest.raises(ValueError, match=sentence):
            column_notes(*given, model=model)
    assert column_notes(np.eye(9), model=FeatureHasher()) == column_notes(np.eye(9))  # without n_features_in_

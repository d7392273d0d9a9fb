"""What CBPE refuses besides bad rows, and whose chunks it takes."""

import numpy as np
import pandas as pd
import pytest

from aucforest.monitoring import CBPE, Chunks, shift
from tests.monitoring.test_estimation import ONE, drawn


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"metrics": ["roc_auc", "roc_auc"]}, "metrics must be distinct"),
        ({"n_draws": 2.5}, r"n_draws must be an integer of at least 2, but is 2\.5"),
        ({"random_state": "seed"}, "random_state must be None or an integer of at least 0, but is 'seed'"),
        ({"random_state": -1}, "random_state must be None or an integer"),
    ],
)
def test_options_that_do_not_exist(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        CBPE(**options).fit(*drawn())


@pytest.mark.parametrize("random_state", [None, np.int64(3)])
def test_seeds(random_state):
    score, y_true = drawn()
    assert len(CBPE(random_state=random_state).fit(score, y_true).estimate(score).estimates) == 10


def test_features_are_as_many_as_in_the_reference():
    score, y_true = drawn()
    X = np.column_stack([score, score])
    for fitted, new, sentence in [
        (X, np.column_stack([X, score]), "X has 3 columns, but the reference has 2"),
        (None, X, "X has 2 columns, but the reference has no X"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            CBPE().fit(score, y_true, X=fitted).estimate(score, X=new)


def test_importance_weights_need_every_reference_row(monkeypatch):
    """The domain classifier of the shift report may look at a sample of them."""
    monkeypatch.setattr(shift, "MOST_ROWS", 50)
    score, y_true = drawn(200)
    X = score[:, None]
    for importance_weighted in (False, True):
        cbpe = CBPE(importance_weighted=importance_weighted, calibration="isotonic").fit(score, y_true, X=X)
        (row,) = cbpe.estimate(score, X=X, chunks=ONE).estimates
        assert 0.5 < row.estimate < 1.0
    with pytest.raises(ValueError, match="importance_weighted=True needs X"):
        cbpe.estimate(score, chunks=ONE)


def test_chunks_are_chunks():
    score, y_true = drawn()
    for call in (
        lambda: CBPE().fit(score, y_true, chunks=100),
        lambda: CBPE().fit(score, y_true).estimate(score, chunks=3),
    ):
        with pytest.raises(TypeError, match=r"chunks must be made by Chunks\.by_size, by_number or by_period"):
            call()


def test_periods_of_the_reference_are_not_those_of_new_rows():
    """Though there be as many rows: their times are others."""
    score, y_true = drawn()
    weeks = Chunks.by_period(pd.date_range("2024-01-01", periods=score.size, freq="h"), "W")
    cbpe = CBPE().fit(score, y_true, chunks=weeks)
    with pytest.raises(ValueError, match="pass chunks: the timestamps given to fit are those of the reference rows"):
        cbpe.estimate(score)
    assert len(cbpe.estimate(score, chunks=ONE).estimates) == 1

"""Ordinary forests with joblib's own way to Dask."""

import pytest
from joblib import parallel_config

from aucforest import AUCForestClassifier
from tests.fitting.forests import assert_same, make_rows


@pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning")
def test_trees_grow_on_the_workers(client):
    X, y = make_rows(3000)
    local = AUCForestClassifier(8, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match="for any of 8 trees"):
        local.fit(X, y)
    forest = AUCForestClassifier(8, oob_score=True, random_state=0)
    with parallel_config(backend="dask"), pytest.warns(UserWarning, match="for any of 8 trees"):
        forest.fit(X, y)
    assert_same(local, forest)

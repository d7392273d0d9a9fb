"""Trees of sparse codes are those of dense codes, whether nodes list their codes or look up rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree import growing
from aucforest.tree.sparse import most_listed
from tests.tree.growing import canonical, grow

RANDOM = np.random.default_rng(0)
N_ROWS = 300
WORDS = np.where(RANDOM.random((N_ROWS, 40)) < 0.06, RANDOM.integers(-3, 9, (N_ROWS, 40)), 0).astype(float)
WORDS[RANDOM.random(WORDS.shape) < 0.005] = np.nan
# Columns of few zeros, of two values, of zeros only, and of nonzeros except in one row.
WORDS[:, 0] = RANDOM.integers(0, 4, N_ROWS)
WORDS[:, 1] = RANDOM.random(N_ROWS) < 0.5
WORDS[:, 2] = 0.0
WORDS[:, 3] = 1.0
WORDS[17, 3] = 0.0
LABELS = (np.nan_to_num(WORDS[:, :20]).sum(axis=1) + RANDOM.normal(size=N_ROWS) > 1.0).astype(int)
MANY = LABELS + 2 * (WORDS[:, 5] > 0) + (WORDS[:, 7] > 0)
COUNTS = RANDOM.integers(0, 4, N_ROWS)

OPTIONS = {
    "two classes": {}, "bootstrap sample": {"counts": COUNTS, "max_features": 6},
    "weights": {"weights": RANDOM.integers(1, 2**40, N_ROWS), "max_features": 6},
    "many classes": {"labels": MANY, "max_features": 6, "criterion": "gini"},
    "many classes with weights": {"labels": MANY, "weights": RANDOM.integers(1, 2**30, N_ROWS)},
    "minimum sizes": {"min_samples_leaf": 4, "criterion": "entropy", "max_features": 9},
    "random splits": {"random": True, "counts": COUNTS}, "best first": {"max_leaf_nodes": 19, "max_features": 8},
    "few bins": {"max_bins": 3, "max_features": 8}, "wide codes": {"n_bytes": 2, "max_features": 8},
    "wider codes": {"n_bytes": 4, "max_features": 8}, "constraints": {"signs": (1, -1) * 20, "max_features": 8},
}  # fmt: skip


@pytest.mark.parametrize("lists", [None, 0, 1], ids=["both ways", "rows are looked up", "codes are listed"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_trees_are_those_of_dense_codes(options, lists, monkeypatch):
    if lists is not None:
        monkeypatch.setattr(growing, "most_listed", lambda n_stored, *_: n_stored * lists)
    dense, sparse = (canonical(grow(WORDS, sparse=way, **{"labels": LABELS, **options})) for way in (False, True))
    assert len(dense) > 9
    assert sparse == dense


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 6), st.floats(0.0, 1.0))
def test_any_matrix(seed, n_rows, n_features, density):
    random = np.random.default_rng(seed)
    X = np.where(random.random((n_rows, n_features)) < density, random.integers(-2, 3, (n_rows, n_features)), 0.0)
    X[0] = 0.0
    labels, counts = random.integers(0, 2, n_rows), random.integers(0, 3, n_rows)
    counts[0] = 1
    dense, sparse = (
        canonical(grow(X, labels, n_classes=2, counts=counts, max_features=2, sparse=way)) for way in (False, True)
    )
    assert sparse == dense


def test_nodes_list_few_codes():
    assert most_listed(240_000, 2_000, 44) == 2_640
    assert most_listed(40, 2_000, 44) == 40
    assert most_listed(10_000, 10**6, 3) == 64

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from aucforest.monitoring._rows import RankedColumn

some_scores = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=30).map(np.array)


@given(some_scores)
def test_ranks_groups_and_sums(scores):
    column, values = RankedColumn(scores), np.arange(1.0, scores.size + 1)
    assert (column.scores[column.order] == np.sort(scores)).all()
    assert column.distinct.tolist() == np.unique(scores).tolist()
    np.testing.assert_allclose(column.midranks, rankdata(scores) - (scores.size + 1) / 2)
    np.testing.assert_allclose(column.sums(values), [values[scores == value].sum() for value in column.distinct])
    below = [values[scores < s].sum() + 0.5 * values[scores == s].sum() for s in scores]
    np.testing.assert_allclose(column.below(values), below)
    assert column.to_rows(column.distinct).tolist() == scores.tolist()


@given(some_scores.map(np.sort))
def test_from_sorted_equals_the_sorted_column(ascending):
    one, other = RankedColumn.from_sorted(ascending), RankedColumn(ascending)
    assert (one.order.tolist(), one.edges.tolist()) == (other.order.tolist(), other.edges.tolist())
    assert one.scores is ascending

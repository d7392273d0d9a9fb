"""Drawn labels have the distribution of all labellings."""

import numpy as np
import pytest

from aucforest.monitoring._draws import draw_aucs, draw_average_precisions
from aucforest.monitoring._influence import Rows
from aucforest.monitoring._validation import rank_columns
from tests.monitoring.golden import binary_cases
from tests.reference.metrics import average_precision
from tests.reference.soft import auc_over_all_labels, over_all_labels

N_DRAWS = 40_000
SMALL = [case for case in binary_cases() if 2 <= len(case["p"]) <= 12 and sum(case["p"]) > 0]
SMALL.append({"name": "rare negatives, one certain", "score": [1, 2, 2, 3], "p": [0.9, 0.8, 0.7, 1.0]})
SMALL.append({"name": "a certain positive among few", "score": [1, 2, 2, 3, 4], "p": [0.1, 0.0, 0.2, 1.0, 0.1]})


def rows_of(case):
    """Return the rows of a case."""
    return Rows(rank_columns(np.array(case["score"], float)), np.array(case["p"], float)[:, None])


def assert_same_distribution(drawn, defined, mean, variance):
    """Compare share that is defined, mean and variance, each within five standard errors."""
    known = drawn[~np.isnan(drawn)]
    assert known.size / drawn.size == pytest.approx(defined, abs=5 * np.sqrt(0.25 / drawn.size))
    assert known.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / known.size) + 1e-12)
    assert known.var() == pytest.approx(variance, rel=0.1, abs=1e-12)


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case["name"])
def test_aucs(case):
    drawn = draw_aucs(rows_of(case), N_DRAWS, np.random.default_rng(0))
    assert_same_distribution(drawn, *auc_over_all_labels(case["score"], case["p"]))


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case["name"])
def test_average_precisions(case):
    drawn = draw_average_precisions(rows_of(case), N_DRAWS, np.random.default_rng(0))
    drawn = drawn[~np.isnan(drawn)]
    p = np.array(case["p"])
    defined, mean, _ = over_all_labels(average_precision, case["score"], case["p"])
    # the enumeration leaves out all rows positive, whose average precision is 1
    all_positive, none = p.prod(), (1 - p).prod()
    mean = (mean * defined + all_positive) / (1 - none)
    assert drawn.mean() == pytest.approx(mean, abs=5 * drawn.std() / np.sqrt(drawn.size) + 1e-12)


def test_batches_do_not_change_the_classes_drawn():
    random = np.random.default_rng(1)
    p = random.dirichlet([1.0, 2.0, 3.0], size=40)
    rows = Rows(rank_columns(p), p)
    one = [np.nanmean(draw_average_precisions(one, 20_000, random)) for one in rows.by_column()]
    assert np.nanmean(draw_average_precisions(rows, 20_000, random)) == pytest.approx(np.mean(one), abs=0.003)


def test_a_class_that_is_never_drawn_is_not_a_number():
    rows = Rows(rank_columns(np.arange(3.0)), np.array([[0.0], [0.0], [1e-9]]))
    assert np.isnan(draw_aucs(rows, 10, np.random.default_rng(0))).all()
    assert np.isnan(draw_average_precisions(rows, 10, np.random.default_rng(0))).all()

"""Forests from a cluster are those that were recorded, to the last bit, however rows are parted and trees are grown."""

import dask.array as da
import pytest

from aucforest.distributed import DaskAUCForestClassifier
from tests.estimators import golden
from tests.estimators.test_golden import FORESTS, MIXED, check


def fit_on_cluster(n_parts, **options):
    """Return what fits a forest to rows in partitions."""

    def fit(model, X, y, sample_weight):
        chunks = -(-len(X) // n_parts)
        columns = [None if values is None else da.from_array(values, chunks=chunks) for values in (y, sample_weight)]
        forest = DaskAUCForestClassifier(**model.get_params(), **options)
        return forest.fit(da.from_array(X, chunks=(chunks, -1)), *columns).to_local()

    return fit


def some_slow(names):
    """Mark every second one as slow."""
    return [name if place % 2 == 0 else pytest.param(name, marks=pytest.mark.slow) for place, name in enumerate(names)]


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("name", some_slow(sorted({*FORESTS[3::16], *MIXED})))
def test_golden_forest_replicated(name):
    if callable(golden.CASES[name].params.get("criterion")):
        pytest.skip("a function of this file's process")
    check(name, fit_on_cluster(3))


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("name", some_slow(sorted({*FORESTS[11::32], *MIXED})))
@pytest.mark.parametrize("n_parts", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_golden_forest_gathered(name, n_parts):
    if callable(golden.CASES[name].params.get("criterion")):
        pytest.skip("a function of this file's process")
    check(name, fit_on_cluster(n_parts, strategy="gather"))

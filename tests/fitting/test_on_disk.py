"""Looks by several threads: results in order, few batches on their way, nothing left running."""

import threading
import time

import numpy as np
import pyarrow as pa
import pytest

from aucforest.fitting import on_disk as _looks
from aucforest.fitting.on_disk import FeatureBatches
from aucforest.fitting.target import Target
from aucforest.tables.columns import read_table
from aucforest.tables.kinds import to_features
from aucforest.tables.sources import open_source


def features(n=1000, weight=None):
    target = Target(np.array([0, 1]), (np.arange(n) % 2).astype(np.uint16), weight)
    table = open_source(pa.table({"a": range(n), "b": range(n)}))
    return FeatureBatches(table, ["a", "b"], to_features, target, dates={})


@pytest.fixture(autouse=True)
def tiny_batches(monkeypatch):
    monkeypatch.setattr(_looks, "_BATCH_CELLS", 20)


def test_results_come_in_order_from_any_row_on():
    def look(start, table):
        time.sleep(0.002 * (start % 3 == 0))
        return start, table.get_column("a").to_list()

    for first_row in (0, 995, 37):
        results = list(features().map(look, "rows", 3, first_row=first_row))
        assert [value for _, (_, values) in results for value in values] == list(range(first_row, 1000))
        assert [stop for stop, _ in results] == [start + len(values) for _, (start, values) in results]


def test_few_batches_are_on_their_way():
    begun = []

    def look(start, table):
        begun.append(start)

    for n_ended, _ in enumerate(features().map(look, "rows", 2), 1):
        assert len(begun) <= n_ended + 3


def test_an_error_stops_all():
    def look(start, table):
        if start == 100:
            raise ValueError("no")

    before = threading.active_count()
    with pytest.raises(ValueError, match="no"):
        list(features().map(look, "rows", 2))
    assert threading.active_count() == before


@pytest.mark.parametrize(("there", "found"), [(990, "990"), (2000, "1,010 or more")])
def test_rows_that_come_and_go(there, found):
    changed = features()._replace(source=features(there).source)
    with pytest.raises(ValueError, match=rf"had 1,000 rows when it was read first, but has {found} now: it must not"):
        list(changed.map(lambda start, table: None, "rows", 2))


def test_rows_of_positive_weight():
    weight = np.tile([0.0, 1.0, 2.0, 0.0], 250)
    some = features(weight=weight)
    table = read_table(some.to_frame(next(some.source.batches(["a", "b"], 6, 10))))
    rows, place, n_rows = some.rows_of(6, table)
    assert rows.tolist() == [0, 3, 4, 7, 8]
    assert (place, n_rows) == (3, 5)
    assert features().rows_of(6, table) == (None, 6, 10)

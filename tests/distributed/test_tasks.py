"""Tasks on partitions, called without a cluster."""

import threading
import warnings

import numpy as np
import pytest
from distributed import Client, LocalCluster

from aucforest.distributed import _tasks
from aucforest.distributed._tasks import cut_part, read_partition_target
from aucforest.fitting.coding import Coding
from aucforest.fitting.parts import Part
from aucforest.tree.binning import BinValues


def test_cut_rows_are_copies():
    codes = np.arange(30, dtype=np.uint8).reshape(3, 10)
    piece = cut_part(Part(codes, np.zeros(10, dtype=np.uint16), None), 0, 4)
    np.testing.assert_array_equal(piece.codes, codes[:, :4])
    assert not np.shares_memory(piece.codes, codes)


def test_an_empty_partition_has_no_classes():
    assert [*map(len, read_partition_target(0, [], []))] == [0, 0, 0]
    assert _tasks.merge_summaries([None, None], 255) is None


def test_weights_of_other_rows_are_refused():
    with pytest.raises(ValueError, match="partition 3 of sample_weight has 1 rows, that of y has 2"):
        read_partition_target(3, [0, 1], [1.0])


def choose_codes_with_two_threads():
    barrier, indices = threading.Barrier(2, timeout=10), []

    def choose(run, *_):
        indices.extend(run(lambda _: barrier.wait(), [0, 1]))
        return Coding({}, BinValues(np.zeros(1, np.int64), np.empty(0), np.empty(0)))

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr(_tasks, "choose_coding", choose)
        _tasks.choose_codes((), None, None, None, {}, {})
    return sorted(indices) == [0, 1]


@pytest.mark.slow
def test_all_threads_of_a_worker_choose_bins():
    """Two threads of another cluster meet at a barrier, in a process in which joblib would use only one thread."""
    options = {"threads_per_worker": 2, "processes": True, "dashboard_address": ":0", "host": "127.0.0.1"}
    with LocalCluster(1, **options) as cluster, Client(cluster, set_as_default=False) as other:
        assert other.submit(choose_codes_with_two_threads).result()

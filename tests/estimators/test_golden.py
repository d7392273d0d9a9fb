"""Forests are what they were when they were recorded, to the last bit; only the numbers of nodes may change."""

import numpy as np
import pytest

from aucforest import AUCForestClassifier
from tests.estimators import golden

RECORDED = golden.read()
IN_THREADS = [name for name, case in golden.CASES.items() if case.estimator is AUCForestClassifier][::30]


def bits(array):
    """Return numbers as bytes: -0 is not 0, and NaN is itself."""
    return np.ascontiguousarray(array).tobytes()


def node_difference(recorded, grown):
    """Say where trees differ first, None for nowhere."""
    before, now = recorded["checksum"], grown["checksum"]
    n_nodes = min(len(before), len(now))
    if len(before) == len(now) and np.array_equal(before, now):
        return None
    node = int(np.argmax(before[:n_nodes] != now[:n_nodes])) if np.any(before[:n_nodes] != now[:n_nodes]) else n_nodes
    if node >= golden.N_PLAIN or node == n_nodes:
        return f"node {node} in pre-order over all trees, of {len(before)} recorded and {len(now)} grown nodes"
    tree = int(recorded["tree"][node])
    place = node - int(np.argmax(recorded["tree"] == tree))
    fields = [name for name in golden.FIELDS if bits(recorded[name][node]) != bits(grown[name][node])]
    values = "; ".join(f"{name} was {recorded[name][node]!r}, is {grown[name][node]!r}" for name in fields)
    return f"tree {tree}, node {place} in pre-order: {values}"


def check(name, **params):
    """Compare a case, grown with some other parameters, with what is recorded of it."""
    recorded, grown = RECORDED[name], golden.describe(*golden.grow(name, **params))
    difference = node_difference(recorded, grown)
    assert difference is None, f"{name}: {difference}"
    for part in ("proba", "chosen"):
        message = f"{name}: {part} was\n{recorded[part]}\nbut is\n{grown[part]}"
        assert bits(recorded[part]) == bits(grown[part]), message


def test_all_cases_are_recorded():
    assert list(RECORDED) == list(golden.CASES)


@pytest.mark.parametrize("name", golden.CASES)
def test_golden_forest(name):
    check(name)


@pytest.mark.parametrize("name", IN_THREADS)
def test_golden_forest_in_threads(name):
    check(name, n_jobs=2)

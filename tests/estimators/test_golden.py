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


def first_difference(before, now):
    """Return the first row in which arrays differ, None for none."""
    n_rows = min(len(before), len(now))
    differs = [bits(one) != bits(other) for one, other in zip(before, now)]
    return int(np.argmax(differs)) if any(differs) else None if len(before) == len(now) else n_rows


def say_difference(recorded, grown):
    """Say where a forest differs first from what is recorded of it, None for nowhere."""
    node = first_difference(recorded["checksum"], grown["checksum"])
    if node is not None:
        n_before, n_now = len(recorded["checksum"]), len(grown["checksum"])
        if node >= n_now:
            return f"{n_now} nodes, but {n_before} are recorded, the same up to there"
        tree = grown["tree"][node]
        place = node - np.argmax(grown["tree"] == tree)
        where = f"tree {tree}, node {place} in pre-order ({n_now} nodes in all, recorded {n_before})"
        if node >= len(recorded["tree"]):
            return f"{where} has another checksum: is { ({name: grown[name][node] for name in golden.FIELDS[1:-1]}) }"
        fields = [name for name in golden.FIELDS if bits(recorded[name][node]) != bits(grown[name][node])]
        return f"{where}: " + "; ".join(f"{name} {recorded[name][node]} became {grown[name][node]}" for name in fields)
    for part in ("proba", "chosen"):
        row = first_difference(recorded[part], grown[part])
        if row is not None:
            return f"{part}[{row}] {recorded[part][row]} became {grown[part][row]}, of the same trees"
    return None


def check(name, **params):
    """Compare a case, grown with some other parameters, with what is recorded of it."""
    difference = say_difference(RECORDED[name], golden.describe(*golden.grow(name, **params)))
    if difference:
        pytest.fail(f"{name}: {difference}", pytrace=False)


def test_all_cases_are_recorded():
    assert list(RECORDED) == list(golden.CASES)


@pytest.mark.parametrize("name", golden.CASES)
def test_golden_forest(name):
    check(name)


@pytest.mark.parametrize("name", IN_THREADS)
def test_golden_forest_in_threads(name):
    check(name, n_jobs=2)

"""Forests are what they were when they were recorded, to the last bit; only the numbers of nodes may change."""

import numpy as np
import pyarrow as pa
import pytest

from aucforest import AUCForestClassifier
from aucforest.distributed import fit_out_of_core
from tests.estimators import golden
from tests.fitting.tables import copy_rows

RECORDED = golden.read()
FORESTS = [name for name, case in golden.CASES.items() if case.estimator is AUCForestClassifier]
MIXED = [name for name in FORESTS if name.startswith("mixed")]


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
        index = node - np.argmax(grown["tree"] == tree)
        where = f"tree {tree}, node {index} in pre-order ({n_now} nodes in all, recorded {n_before})"
        if node >= len(recorded["tree"]):
            return f"{where} has another checksum: is { ({name: grown[name][node] for name in golden.FIELDS[1:-1]}) }"
        fields = [name for name in golden.FIELDS if bits(recorded[name][node]) != bits(grown[name][node])]
        return f"{where}: " + "; ".join(f"{name} {recorded[name][node]} became {grown[name][node]}" for name in fields)
    for part in ("proba", "chosen"):
        row = first_difference(recorded[part], grown[part])
        if row is not None:
            return f"{part}[{row}] {recorded[part][row]} became {grown[part][row]}, of the same trees"
    return None


def check(name, fit=golden.fit_in_memory, **params):
    """Compare a case, grown elsewhere or with some other parameters, with what is recorded of it."""
    difference = say_difference(RECORDED[name], golden.describe(*golden.grow(name, fit, **params)))
    if difference:
        advice = "if that is meant, raise `_FORMAT` of fitting/job.py (no checkpoint may mix both), and record it anew"
        pytest.fail(f"{name}: {difference}: {advice}", pytrace=False)


def test_all_cases_are_recorded():
    assert list(RECORDED) == list(golden.CASES)


# Kernels of codes of 32 bits are compiled for these tests alone.
CASES = [pytest.param(name, marks=pytest.mark.slow if "32 bits" in name else ()) for name in golden.CASES]


@pytest.mark.parametrize("name", CASES)
def test_golden_forest(name):
    check(name)


@pytest.mark.parametrize("name", [name for name in [*FORESTS[::30], *MIXED] if "32 bits" not in name])
def test_golden_forest_in_threads(name):
    check(name, n_jobs=2)


def fit_from_table(model, X, y, sample_weight):
    """Fit out of core; the forest then knows no names of features, as that of a matrix."""
    columns = {f"x{i}": column for i, column in enumerate(X.T)} | {"y": y}
    if sample_weight is not None:
        columns["weight"] = sample_weight
    fit_out_of_core(model, pa.table(columns), "y", sample_weight=None if sample_weight is None else "weight")
    del model.feature_names_in_
    return model


@pytest.mark.parametrize("name", sorted(name for name in {*FORESTS[::10], *MIXED} if "32 bits" not in name))
def test_golden_forest_out_of_core(name):
    check(name, fit_from_table)


@pytest.mark.parametrize("name", sorted(name for name in {*FORESTS[2::20], *MIXED} if "32 bits" not in name))
def test_golden_forest_out_of_core_from_copies(name, monkeypatch):
    copy_rows(monkeypatch)
    check(name, fit_from_table)

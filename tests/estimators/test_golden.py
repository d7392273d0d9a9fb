"""Forests are what they were when they were recorded, to the last bit; only the numbers of nodes may change."""

from itertools import zip_longest

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
ADVICE = "if that is meant, raise `_FORMAT` of fitting/job.py (no checkpoint may mix both), and record it anew"


def bits(array):
    """Return numbers as bytes: -0 is not 0, and NaN is itself."""
    return np.ascontiguousarray(array).tobytes()


def check(name, fit=golden.fit_in_memory, **params):
    """Compare a case, grown elsewhere or with some other parameters, with what is recorded of it.

    The fields of the first nodes are recorded as they are, all nodes by a checksum.
    """
    grown = golden.describe(*golden.grow(name, fit, **params))
    for part, recorded in RECORDED[name].items():
        found = grown[part][: len(recorded)] if part in golden.FIELDS else grown[part]
        for row, (before, now) in enumerate(zip_longest(recorded, found)):
            if bits(before) != bits(now):
                pytest.fail(f"{name}: {part}[{row}] {before} became {now}: {ADVICE}", pytrace=False)


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

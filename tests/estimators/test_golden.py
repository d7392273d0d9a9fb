"""Forests are equal to recorded ones, to the last bit; only the indices of nodes may change."""

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
# Only these tests need the kernels for codes of 32 bits.
CASES = [pytest.param(name, marks=pytest.mark.slow if "32 bits" in name else ()) for name in golden.CASES]
ADVICE = "if that is meant, raise `_FORMAT` of fitting/job.py (no checkpoint may mix both), and record it anew"


def check(name, *fit):
    grown = golden.describe(*golden.grow(name, *fit))
    for part, recorded in RECORDED[name].items():
        for row, (before, now) in enumerate(zip_longest(recorded, grown[part])):
            # bytes distinguish -0 from 0, and NaN is equal to itself
            if np.asarray(before).tobytes() != np.asarray(now).tobytes():
                pytest.fail(f"{name}: {part}[{row}] {before} became {now}: {ADVICE}", pytrace=False)


def test_all_cases_are_recorded():
    assert list(RECORDED) == list(golden.CASES)


@pytest.mark.parametrize("name", CASES)
def test_golden_forest(name):
    check(name)


def some(start, step):
    """Parametrize by the forests with the given start and step, and by all mixed forests."""
    names = {*FORESTS[start::step], *(name for name in FORESTS if name.startswith("mixed"))}
    return pytest.mark.parametrize("name", sorted(name for name in names if "32 bits" not in name))


def fit_from_table(model, X, y, sample_weight):
    columns = {f"x{i}": column for i, column in enumerate(X.T)} | {"y": y}
    weight = {} if sample_weight is None else {"weight": sample_weight}
    fit_out_of_core(model, pa.table(columns | weight), "y", sample_weight=next(iter(weight), None))
    del model.feature_names_in_
    return model


@some(0, 5)
def test_golden_forest_out_of_core(name):
    check(name, fit_from_table)


@some(2, 10)
def test_golden_forest_out_of_core_from_copies(name, monkeypatch):
    copy_rows(monkeypatch)
    check(name, fit_from_table)

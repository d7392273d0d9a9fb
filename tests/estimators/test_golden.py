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
# Kernels of codes of 32 bits are compiled for these tests alone.
CASES = [pytest.param(name, marks=pytest.mark.slow if "32 bits" in name else ()) for name in golden.CASES]
ADVICE = "if that is meant, raise `_FORMAT` of fitting/job.py (no checkpoint may mix both), and record it anew"


def check(name, *fit):
    """Compare a case, grown here or out of core, with what is recorded of it."""
    grown = golden.describe(*golden.grow(name, *fit))
    for part, recorded in RECORDED[name].items():
        found = grown[part][: len(recorded)] if part in golden.FIELDS else grown[part]
        for row, (before, now) in enumerate(zip_longest(recorded, found)):
            # as bytes, -0 is not 0, and NaN is itself
            if np.asarray(before).tobytes() != np.asarray(now).tobytes():
                pytest.fail(f"{name}: {part}[{row}] {before} became {now}: {ADVICE}", pytrace=False)


def test_all_cases_are_recorded():
    assert list(RECORDED) == list(golden.CASES)


@pytest.mark.parametrize("name", CASES)
def test_golden_forest(name):
    check(name)


def some(start, step):
    """Return every so many forests, and those of several criteria."""
    names = {*FORESTS[start::step], *(name for name in FORESTS if name.startswith("mixed"))}
    return pytest.mark.parametrize("name", sorted(name for name in names if "32 bits" not in name))


def fit_from_table(model, X, y, sample_weight):
    columns = {f"x{i}": column for i, column in enumerate(X.T)} | {"y": y}
    weight = {} if sample_weight is None else {"weight": sample_weight}
    fit_out_of_core(model, pa.table(columns | weight), "y", sample_weight=next(iter(weight), None))
    del model.feature_names_in_  # of a matrix it knows none
    return model


@some(0, 5)
def test_golden_forest_out_of_core(name):
    check(name, fit_from_table)


@some(2, 10)
def test_golden_forest_out_of_core_from_copies(name, monkeypatch):
    copy_rows(monkeypatch)
    check(name, fit_from_table)

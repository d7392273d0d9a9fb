"""The bundled data: shapes, kinds and counts as their source states them."""

import csv
import gzip
import sys
from importlib.resources import files

import numpy as np
import pytest

from aucforest.datasets import load_abalone, load_flights, load_page_blocks
from tests.estimators.data import assert_same


@pytest.mark.parametrize("load", [load_abalone, load_page_blocks, load_flights])
def test_the_bunch_has_what_a_scikit_learn_user_expects(load):
    bunch, frames = load(), load(as_frame=True)
    assert set(bunch) - {"day"} == {"data", "target", "frame", "feature_names", "target_names", "DESCR", "filename"}
    assert (bunch.data.dtype, bunch.target.dtype) == (np.float64, np.int64)
    assert bunch.data.shape == (len(bunch.target), len(bunch.feature_names))
    assert bunch.frame is None
    assert "Licence: CC" in bunch.DESCR
    assert all(f"| {name} |" in bunch.DESCR for name in bunch.feature_names)
    assert list(frames.data.columns) == bunch.feature_names
    assert list(frames.frame.columns) == [*bunch.feature_names, frames.target.name]
    numeric = frames.data.apply(lambda column: column.cat.codes if column.dtype == "category" else column).astype(float)
    np.testing.assert_array_equal(numeric, bunch.data)
    np.testing.assert_array_equal(frames.target, bunch.target)
    assert_same(load(return_X_y=True), (bunch.data, bunch.target))
    X, y = load(return_X_y=True, as_frame=True)
    assert X.equals(frames.data)
    assert y.equals(frames.target)


def test_abalone_is_the_file():
    rows = read((files("aucforest.datasets") / "data" / "abalone.csv").read_bytes())
    assert load_abalone().data[:, 0].tolist() == [{"I": 0, "F": 1, "M": 2}[row["sex"]] for row in rows]
    frame = load_abalone(as_frame=True).frame
    for name, kind in (("sex", str), ("rings", int), ("shell_weight", float)):
        assert frame[name].tolist() == [kind(row[name]) for row in rows]


def read(raw):
    return list(csv.DictReader(raw.decode().splitlines()))


def test_flights_are_the_file():
    rows = read(gzip.decompress((files("aucforest.datasets") / "data" / "flights.csv.gz").read_bytes()))
    flights = load_flights(as_frame=True)
    assert flights.day.tolist() == [int(row["day"]) for row in rows]
    assert "day" not in flights.data
    for name in ("carrier", "origin", "dest"):
        assert flights.data[name].tolist() == [row[name] for row in rows]
        assert sorted(flights.data[name].cat.categories) == list(flights.data[name].cat.categories)
    gusts = [float(row["wind_gust"] or "nan") for row in rows]
    np.testing.assert_array_equal(flights.data["wind_gust"], gusts)
    assert 0.7 < np.isnan(gusts).mean() < 0.8
    assert flights.target.tolist() == [int(row["cancelled"]) for row in rows]


def test_rare_classes_have_the_published_frequencies():
    rings = load_abalone().target
    assert (rings.min(), rings.max()) == (1, 29)
    shares = [np.mean(rare) for rare in (rings >= 18, rings == 19, load_flights().target)]
    assert [round(100 * float(share), 1) for share in shares] == [3.3, 0.8, 2.5]
    assert np.bincount(load_page_blocks().target).tolist() == [4913, 329, 28, 87, 115]


def test_the_error_of_a_missing_pandas_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"^as_frame=True needs pandas: pip install aucforest\[frame\]$"):
        load_abalone(as_frame=True)

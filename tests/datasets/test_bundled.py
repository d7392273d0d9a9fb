"""The bundled data: the values of the files, and the class frequencies that their source states."""

import sys
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from aucforest.datasets import load_abalone, load_flights, load_page_blocks
from tests.estimators.data import assert_same

FILES = {load_abalone: "abalone.csv", load_page_blocks: "page_blocks.csv", load_flights: "flights.csv.gz"}


@pytest.mark.parametrize("load", FILES)
def test_the_bunch_has_what_a_scikit_learn_user_expects(load):
    bunch, frames = load(), load(as_frame=True)
    assert set(bunch) - {"day"} == {"data", "target", "frame", "feature_names", "target_names", "DESCR", "filename"}
    assert (bunch.data.dtype, bunch.target.dtype) == (np.float64, np.int64)
    assert bunch.data.shape == (len(bunch.target), len(bunch.feature_names))
    assert bunch.frame is None
    assert "Licence: CC" in bunch.DESCR
    assert all(f"| {name} |" in bunch.DESCR for name in bunch.feature_names)
    assert list(frames.data.columns) == bunch.feature_names
    numeric = frames.data.apply(lambda column: column.cat.codes if column.dtype == "category" else column).astype(float)
    np.testing.assert_array_equal(numeric, bunch.data)
    np.testing.assert_array_equal(frames.target, bunch.target)
    assert_same(load(return_X_y=True), (bunch.data, bunch.target))
    X, y = load(return_X_y=True, as_frame=True)
    assert X.equals(frames.data)
    assert y.equals(frames.target)


@pytest.mark.parametrize(("load", "name"), FILES.items())
def test_frames_have_the_values_of_the_files(load, name):
    loaded, expected = load(as_frame=True), pd.read_csv(files("aucforest.datasets") / "data" / name)
    if load is load_flights:
        assert loaded.day.tolist() == expected.pop("day").tolist()
    expected.iloc[:, -1] -= load is load_page_blocks  # whose file counts classes from 1
    pd.testing.assert_frame_equal(loaded.frame.astype(expected.dtypes), expected)
    orders = [column.cat.categories.tolist() for _, column in loaded.data.select_dtypes("category").items()]
    assert orders == ([["I", "F", "M"]] if load is load_abalone else list(map(sorted, orders)))


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

"""Predictions batch by batch are those of all rows at once."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aucforest import AUCForestClassifier, AUCStackingClassifier
from aucforest.distributed import predict_out_of_core
from aucforest.tables import files
from tests.fitting.tables import features_and_labels, make_forest, make_rows

TABLE = make_rows(1000)
NEW = make_rows(1000, seed=7)


@pytest.fixture(scope="module")
def forest():
    return make_forest(threshold="prevalence").fit(*features_and_labels(TABLE))


@pytest.fixture(autouse=True)
def tiny_batches(monkeypatch):
    monkeypatch.setattr(files, "_MOST_ROWS", 77)


def test_batches_are_the_whole(forest):
    X, _ = features_and_labels(NEW)
    shuffled = NEW.select(NEW.column_names[::-1])
    batches = list(predict_out_of_core(forest, shuffled, keep=["weight", "coded"]))
    assert len(batches) == 13
    got = pa.Table.from_batches(batches)
    assert got.column_names == ["weight", "coded", "prediction", "probability_a", "probability_b"]
    assert got["coded"].to_pylist() == NEW["coded"].to_pylist()
    assert got["prediction"].to_pylist() == forest.predict(X).tolist()
    assert np.array_equal(got["probability_b"], forest.predict_proba(X)[:, 1])


def test_a_stack_reads_the_columns_of_its_forest():
    stack = AUCStackingClassifier(make_forest(n_estimators=30), threshold="gmean").fit(*features_and_labels(TABLE))
    X, _ = features_and_labels(NEW)
    got = pa.Table.from_batches(predict_out_of_core(stack, NEW.select(NEW.column_names[::-1])))
    assert np.array_equal(got["probability_b"], stack.predict_proba(X)[:, 1])
    assert got["prediction"].to_pylist() == stack.predict(X).tolist()


@pytest.mark.parametrize(("proba", "names"), [(True, ["probability_a", "probability_b"]), (False, ["prediction"])])
def test_one_kind_of_columns(forest, proba, names):
    assert next(predict_out_of_core(forest, NEW, proba=proba)).schema.names == names


def test_files_are_written_whole_or_not_at_all(forest, tmp_path):
    pq.write_table(NEW, tmp_path / "new.parquet", row_group_size=100)
    assert predict_out_of_core(forest, tmp_path / "new.parquet", out=tmp_path / "out.parquet") == 1000
    expected = pa.Table.from_batches(predict_out_of_core(forest, NEW))
    assert pq.read_table(tmp_path / "out.parquet").equals(expected)
    text = pa.array(["1.5"] * 900 + ["x"] * 100)
    pq.write_table(NEW.set_column(0, "double", text), tmp_path / "new.parquet")
    with pytest.raises(
        ValueError, match=r"new.parquet, row 901: column 'double' has the value 'x', which is not a number"
    ):
        predict_out_of_core(forest, tmp_path / "new.parquet", out=tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.parquet", "out.parquet"]


def test_words_are_words_in_types_that_know_nothing_from_text():
    """A category NA is one in a Parquet or Arrow table, whose missing values are missing."""
    text = pa.array(["NA", "", "x", None] * 25)
    table = pa.table({"text": text, "number": range(100), "y": [1, 0, 0, 1] * 25})
    forest = AUCForestClassifier(5, random_state=0).fit(table.select(["text", "number"]), table["y"].to_numpy())
    got = pa.Table.from_batches(predict_out_of_core(forest, table))
    assert forest.categories_[0].tolist() == ["", "NA", "x"]
    assert np.array_equal(got["probability_1"], forest.predict_proba(table.select(["text", "number"]))[:, 1])


def test_a_forest_that_knows_no_names():
    X = np.column_stack([np.arange(100) % 7, np.arange(100)]).astype(object)
    X[:, 0] = [f"c{value}" for value in X[:, 0]]
    forest = AUCForestClassifier(5, random_state=0, categorical_features=[0]).fit(X, np.arange(100) % 3 == 0)
    table = pa.table({"any": X[:, 0].tolist(), "name": X[:, 1].tolist()})
    got = pa.Table.from_batches(predict_out_of_core(forest, table))
    assert np.array_equal(got["probability_True"], forest.predict_proba(X)[:, 1])


def test_refusals(forest):
    with pytest.raises(ValueError, match="the Table lacks feature columns seen in fit: 'few'"):
        predict_out_of_core(forest, NEW.drop_columns("few"))
    with pytest.raises(ValueError, match="has no column 'wight'; did you mean 'weight'"):
        predict_out_of_core(forest, NEW, keep=["wight"])
    with pytest.raises(ValueError, match="the result would have two columns named 'prediction'"):
        predict_out_of_core(forest, NEW.rename_columns({"weight": "prediction"}), keep=["prediction"])
    with pytest.raises(TypeError, match="can be read only once"):
        predict_out_of_core(forest, NEW.to_reader())


def test_rare_text_in_a_column_of_numbers_is_missing_with_a_warning():
    frame = pa.table({"a": [*range(40)], "b": ["x", "y"] * 20})
    forest = AUCForestClassifier(5, random_state=0).fit(frame, np.arange(40) % 2)
    text = pa.array([str(value) if value else "n/k" for value in range(40)])
    with pytest.warns(UserWarning, match=r"column 'a': 1 of 40 values is no number \('n/k'\), read as missing"):
        got = pa.Table.from_batches(predict_out_of_core(forest, frame.set_column(0, "a", text)))
    missing = frame.set_column(0, "a", pa.array([None, *range(1, 40)], pa.float64()))
    assert np.array_equal(got["probability_1"], forest.predict_proba(missing)[:, 1])
    with pytest.raises(ValueError, match="the Table, row 1: column 'a' has the value 'n/k', which is not a number"):
        list(predict_out_of_core(forest, frame.set_column(0, "a", text), stray_text="text"))
    with pytest.raises(ValueError, match="stray_text"):
        predict_out_of_core(forest, frame, stray_text="missing")

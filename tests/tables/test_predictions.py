"""The columns of a model are found in new tables by name, and are read in the types of the training data."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.dummy import DummyClassifier

from aucforest import AUCForestClassifier
from aucforest.distributed import fit_out_of_core, predict_out_of_core
from aucforest.tables.predictions import AddedColumns, ModelColumns, Predictions, labels_of
from aucforest.tables.read_options import ReadOptions
from aucforest.tables.sources import open_source
from tests.estimators.data import make_table, small_forest
from tests.tables.text_tables import write_table

N = 120


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N), "D")
    return pd.DataFrame({
        "number": random.normal(size=N).round(3), "weight": random.integers(1, 99, N) / 4, "word": ["a", "b", "1"] * 40,
        "flag": np.arange(N) % 4 == 0, "day": days, "wait": pd.to_timedelta(np.arange(N), "h"),
        "at": (days + pd.Timedelta("1h")).tz_localize("UTC"), "y": np.arange(N) % 3 == 0,
    })  # fmt: skip


def spelled(frame):
    numbers = {name: frame[name].map(lambda x: f"{x}".replace(".", ",")) for name in ("number", "weight")}
    numbers["weight"] += " kg"
    return frame.assign(**numbers, day=frame["day"].dt.strftime("%d.%m.%Y"))


@pytest.fixture(scope="module")
def model(frame, tmp_path_factory):
    path = write_table(spelled(frame), tmp_path_factory.mktemp("model") / "t.csv")
    with pytest.warns(UserWarning, match="are read as"):
        return fit_out_of_core(AUCForestClassifier(5, random_state=0), path, "y")


def typed(model, given, others=()):
    """Return the features of a table in the kinds of a model, and the notes."""
    source = open_source(given)
    source.batches = partial(source.batches, max_rows=50)
    columns = ModelColumns(model, source, others)
    return pa.concat_tables([features for features, _ in columns.batches()]), columns.unseen_notes()


def test_features_are_the_same_whatever_holds_them(tmp_path, frame, model):
    """The table is a CSV with the same spelling as in training, a Parquet file, or a frame."""
    paths = [write_table(spelled(frame), tmp_path / "t.csv"), write_table(frame, tmp_path / "t.parquet")]
    wanted = typed(model, frame)[0].to_pandas()
    for source in (*paths, frame):
        found, notes = typed(model, source)
        assert notes == []
        pd.testing.assert_frame_equal(found.to_pandas(), wanted, check_dtype=False)
    predicted = [pa.Table.from_batches(predict_out_of_core(model, path, proba=True)) for path in paths]
    assert predicted[0].equals(predicted[1])


@pytest.mark.parametrize("type_", [int, float, "category"])
def test_numbers_may_be_booleans(frame, model, type_):
    rows = frame.assign(flag=frame["flag"].astype(int).astype(type_))
    assert typed(model, rows)[0].column("flag").to_pylist() == frame["flag"].tolist()
    sentence = "column 'flag' has type .*, but the model needs a boolean: 2 in the DataFrame, row 2 is neither 0"
    with pytest.raises(ValueError, match=sentence):
        typed(model, rows.assign(flag=pd.Series([1, 2, 0] * 40).astype(type_)))


def test_another_spelling_than_in_training_is_read_if_it_is_sure(tmp_path, frame, model):
    """If 1.234 may be 1234, or the day may be the month, the format of the model decides."""
    unsure = spelled(frame)[:2].assign(number=["1,234", "2,345"], weight="1,234 kg", day="1/2/2024")
    of_unsure = {"number": [1.234, 2.345], "weight": [1.234] * 2, "day": [pd.Timestamp("2024-02-01")] * 2}
    for rows, wanted in ((frame, {"number": frame["number"].tolist()}), (unsure, of_unsure)):
        found, _ = typed(model, write_table(rows, tmp_path / "t.csv"))
        assert found.select(list(wanted)).to_pydict() == wanted


@pytest.mark.parametrize(("where", "n_rows"), [
    ("day < '2024-03-01'", 10), ("month(day) = 3", 20), ("weight > 10", 15), ("y = 'maybe' AND weight > 10", 5),
    ("number IS NULL OR word = 'a'", 15), ("extra > 1.5", 12),
])  # fmt: skip
def test_rows_are_selected_by_the_types_of_the_model(tmp_path, model, where, n_rows):
    """The formats of the model are used, because the new file alone does not determine them."""
    rows = pd.DataFrame({
        "number": "0,125", "weight": ["2,125", "20,125"] * 15, "word": ["a", "b"] * 15, "flag": "True",
        "day": ["01.02.2024"] * 10 + ["02.03.2024"] * 20, "wait": "1 days", "at": "2024-01-01 10:00+00:00",
        "y": ["maybe", "no", "yes"] * 10, "extra": ["1.5", "2.5", "1", "7", "0"] * 6,
    })  # fmt: skip
    source = open_source(write_table(rows, tmp_path / "t.csv"), None, ReadOptions(where=where))
    (batch,) = [batch for _, batch in ModelColumns(model, source, ["y", "extra"]).batches(["y", "extra"])]
    assert batch.num_rows == n_rows
    assert batch.select(["y", "extra"]).schema.types == [pa.string()] * 2


def test_unseen_categories_are_counted_over_all_batches(tmp_path, frame, model):
    rows = spelled(frame).assign(word=["a", "z", None, "q", "1", "a"] * 20)
    _, (note,) = typed(model, write_table(rows, tmp_path / "t.csv"))
    assert note.startswith("column 'word': 40 of 120 rows (33 %) have a category that training has not seen ('z', 'q')")
    with pytest.warns(UserWarning, match=re.escape(note)):
        predict_out_of_core(model, tmp_path / "t.csv", out=tmp_path / "t.parquet")


def test_columns_that_a_table_lacks(frame, model):
    renamed, lacks = frame.rename(columns={"word": "Word"}), "the DataFrame lacks feature columns seen in fit:"
    for table, others, sentence in (
        (renamed, (), f"{lacks} 'word'; did you mean 'Word'"),
        (frame[["y"]], (), f"{lacks} 'number', .* and 2 more"),
        (frame, ["id"], "has no column 'id'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            typed(model, table, others)


def test_a_model_without_names_takes_the_columns_in_order():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    model = AUCForestClassifier(2, random_state=0).fit(X, y)
    table = pa.table({"id": range(60), "b": X[:, 0], "a": X[:, 1]})
    columns = ModelColumns(model, open_source(table), ["id"])
    assert (columns.has_names, columns.names) == (False, ["b", "a"])
    ((typed, _),) = columns.batches()
    np.testing.assert_array_equal(columns.model_input(typed), X)
    with pytest.raises(ValueError, match="the Table has 3 columns, but the model was fitted on 2 without names"):
        ModelColumns(model, open_source(table))


def test_batches_are_the_predictions_of_the_whole_table():
    X, y = make_table(n_rows=300)
    table = pa.table({"id": np.arange(300), **{f"x{j}": column for j, column in enumerate(X.T)}})
    forest = small_forest(8, threshold="gmean").fit(table.drop_columns("id"), np.array(["no", "yes"])[y])
    notes = AddedColumns([pa.field("note", pa.string())], lambda X, proba: [[f"{row[1]:.3f}" for row in proba]])
    predictions = Predictions(forest, open_source(table), ["id"], None, notes)
    made = pa.Table.from_batches(predictions.batches(), schema=predictions.schema)
    proba = forest.predict_proba(table.drop_columns("id"))
    assert made.column_names == ["id", "prediction", "probability_no", "probability_yes", "note"]
    assert made["id"].to_pylist() == table["id"].to_pylist()
    assert made["prediction"].to_pylist() == forest.predict(table.drop_columns("id")).tolist()
    np.testing.assert_array_equal(made["probability_yes"], proba[:, 1])
    assert made["note"].to_pylist() == [f"{p:.3f}" for p in proba[:, 1]]
    for with_proba, left_out in ((True, "prediction"), (False, "probability_yes")):
        assert left_out not in Predictions(forest, open_source(table), [], with_proba).schema.names
    twice = table.rename_columns({"id": "prediction"})
    with pytest.raises(ValueError, match="the result would have two columns named 'prediction'"):
        Predictions(forest, open_source(twice), ["prediction"], None)


def test_labels_of_a_model_without_a_threshold_are_those_that_it_predicts():
    X, y = make_table(n_rows=100, seed=0)
    model = DummyClassifier(strategy="constant", constant=1).fit(X, y)
    assert labels_of(model, X, np.tile([0.9, 0.1], (100, 1))).tolist() == [1] * 100

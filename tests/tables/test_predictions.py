"""Predictions of a table, batch by batch."""

import numpy as np
import pyarrow as pa
import pytest

from aucforest.tables.predictions import Notes, Predictions, labels_of
from aucforest.tables.sources import open_source
from tests.estimators.data import make_table, small_forest

X, Y = make_table(n_rows=300)
NAMES = [f"x{j}" for j in range(X.shape[1])]


@pytest.fixture(scope="module")
def table():
    return pa.table({"id": np.arange(len(Y)), **dict(zip(NAMES, X.T))})


@pytest.fixture(scope="module")
def forest(table):
    return small_forest(8, threshold="gmean").fit(table.drop_columns("id"), np.array(["no", "yes"])[Y])


def test_batches_are_the_predictions_of_the_whole_table(forest, table):
    notes = Notes([pa.field("note", pa.string())], lambda X, proba: [[f"{row[1]:.3f}" for row in proba]])
    predictions = Predictions(forest, open_source(table), ["id"], None, notes)
    made = pa.Table.from_batches(predictions.batches(), schema=predictions.schema)
    proba = forest.predict_proba(table.drop_columns("id"))
    assert made.column_names == ["id", "prediction", "probability_no", "probability_yes", "note"]
    assert made["id"].to_pylist() == table["id"].to_pylist()
    assert made["prediction"].to_pylist() == forest.predict(table.drop_columns("id")).tolist()
    np.testing.assert_array_equal(made["probability_yes"], proba[:, 1])
    assert made["note"].to_pylist() == [f"{p:.3f}" for p in proba[:, 1]]


@pytest.mark.parametrize(("proba", "left_out"), [(True, "prediction"), (False, "probability_yes")])
def test_what_is_not_asked_for_is_left_out(forest, table, proba, left_out):
    assert left_out not in Predictions(forest, open_source(table), [], proba).schema.names


def test_two_columns_of_one_name_are_refused(forest, table):
    twice = table.rename_columns({"id": "prediction"})
    with pytest.raises(ValueError, match="the result would have two columns named 'prediction'"):
        Predictions(forest, open_source(twice), ["prediction"], None)


def test_labels_are_those_of_the_threshold(forest, table):
    proba = forest.predict_proba(table.drop_columns("id"))
    assert labels_of(forest, table, proba).tolist() == np.where(proba[:, 1] >= forest.threshold_, "yes", "no").tolist()

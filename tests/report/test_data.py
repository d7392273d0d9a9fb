"""The table of columns, and warnings about rows that the model was trained on."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aucforest import AUCStackingClassifier
from aucforest.report import data
from aucforest.report.data import check_overlap, column_table, data_section, training_rows_warning
from aucforest.report.rows import score_rows
from tests.estimators.data import make_table, small_forest
from tests.report import pages
from tests.report.pages import TEST, printed

X, Y = make_table(n_rows=500, missing=0.1, seed=3)
X = np.column_stack([X, np.arange(500) + 2.0**53])
NO_ROW = "No row of this report has the same label and values as a training row."


@pytest.mark.parametrize("frames", [pd, pl])
def test_columns_of_frames_are_described(frames):
    numbers = pages.X[1:, 1]
    columns = {
        "kind": np.where(X[:, 0] > np.nanmedian(X[:, 0]), "big", "small").tolist(), "code": ["007", "10"] * 250,
        "number": [None, *numbers.tolist()], "day": np.datetime64("2024-01-01") + np.arange(500) % 100,
        "wait": np.array([1, 2, 30, 1, 2] * 100, dtype="m8[h]").astype("m8[ns]"),
    }  # fmt: skip
    described = {cells[0]: cells[1:] for cells in column_table(frames.DataFrame(columns)).rows}
    assert list(described) == list(columns)
    assert described["kind"][0] == described["code"][0] == "category"
    assert "big (" in described["kind"][3]
    *first, usual = described["number"]
    assert first == ["number", "0.20 %", str(len(set(numbers)))]
    assert printed(usual.split()[0]) == pytest.approx(np.median(numbers), abs=5e-4)
    assert described["day"] == ["date", "0.0 %", "100", "2024-02-19 (90 % from 2024-01-05 to 2024-04-04)"]
    assert described["wait"] == ["duration", "0.0 %", "3", "2:00:00 (90 % from 1:00:00 to 1 day, 6:00:00)"]
    flags = [True, None, False, True] * 125
    flags = frames.DataFrame({"flag": pd.array(flags, dtype="boolean") if frames is pd else flags})
    assert column_table(flags).rows == [["flag", "category", "25.0 %", "2", "True (66.7 %), False (33.3 %)"]]


def test_large_integers_are_told_apart():
    numbers = [2**62 + 16 * row for row in range(1000)] * 2  # float64 holds 63 of these numbers
    ((*_, n_distinct, _),) = column_table(np.array(numbers)[:, None]).rows
    assert n_distinct == "1,000"
    for table in (
        pd.DataFrame({"id": pd.array([*numbers, None], dtype="Int64")}),
        pl.DataFrame({"id": [*numbers, None]}),
        pa.table({"id": [*numbers, None]}),
        np.array([*numbers, None], dtype=object)[:, None],
    ):
        ((_, *found, _),) = column_table(table).rows
        assert found == ["number", "0.050 %", "1,000"], type(table)


def test_suspicious_columns_are_named():
    y = pages.Y[TEST]
    frame = pd.DataFrame({"empty": np.nan, "amount": pages.X[TEST][:, 0], "outcome": np.where(y, "won", "lost")})
    assert data_section(score_rows(small_forest(2).fit(frame, y), frame, y, None), None).points == [
        "Column 'empty': no values, never used in a split.",
        "'outcome' alone separates the classes (ROC AUC 1.0000): is it known at prediction time?",
    ]


def overlap(model, X, train, test=slice(300, 500)):
    rows, y_train = score_rows(model, X[test], Y[test], None), Y[: len(train)]
    training = data.Training(train, y_train, y_train, None)
    return check_overlap(rows, training, data.pair_columns(rows, training))


def test_rows_equal_to_training_rows_are_counted():
    model = small_forest(10).fit(X[:300], Y[:300])
    text, warning = overlap(model, X, X[:300], test=slice(260, 500))
    assert text.startswith("40 of the 240 rows of this report (16.7 %) have the same label and values as")
    assert warning.startswith(text)
    assert overlap(model, X, X[:300]) == (NO_ROW, None)
    coarse = np.random.default_rng(0).integers(0, 6, size=(500, 2)).astype(float)
    text, warning = overlap(small_forest(10).fit(coarse[:300], Y[:300]), coarse, coarse[:300])
    assert text.startswith("188 of the 200 rows of this report (94.0 %)")
    assert "among the training rows themselves 9" in text
    assert warning is None


@pytest.mark.filterwarnings("ignore:X. column 'id'. integers above")
@pytest.mark.parametrize("frames", [pd, pl])
def test_columns_of_frames_are_matched_by_name(frames):
    names, ids, y = ["a", "b", None, "c", "d"] * 40, [2**62 + row for row in range(200)], np.arange(200) % 2
    train = frames.DataFrame({"id": ids, "name": names, "count": [float(row) for row in range(200)]})
    test = frames.DataFrame({"name": names[:50], "count": range(50), "id": ids[:100:2]})
    rows = score_rows(small_forest(5).fit(train, y), test[["id", "name", "count"]], y[:50], None)
    training = data.Training(train, y, y, None)
    text, _ = check_overlap(rows, training, data.pair_columns(rows, training))
    assert text.startswith("1 of the 50 rows")  # float64 would call 50 of the identifiers equal


def test_columns_are_matched_by_position_if_only_one_table_has_names():
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    assert overlap(small_forest(10).fit(X[:300], Y[:300]), X, frame[:300])[0] == NO_ROW
    model = small_forest(10).fit(frame[:300], Y[:300])
    with pytest.raises(ValueError, match="X_train lacks the column 'x1', which the model was fitted to"):
        overlap(model, frame, frame[:300].rename(columns={"x1": "z"}))
    with pytest.raises(ValueError, match=rf"has {X.shape[1] + 1} columns, but the rows of the report have"):
        overlap(model, frame, np.column_stack([X, X[:, 0]])[:300])


def test_a_forest_is_compared_with_its_out_of_bag_rows():
    forest = small_forest(60, oob_score=True, shrinkage=0).fit(X[:300], Y[:300])
    trained_rows, new_rows = (score_rows(forest, X[part], Y[part], None) for part in (slice(300), slice(300, 500)))
    text, warning = check_overlap(trained_rows, None, {})
    assert "was not checked" in text
    assert warning.endswith("Check that the model was not trained on these rows.")
    assert check_overlap(new_rows, None, {}) == (text, None)


def test_training_rows_are_known_without_their_weights():
    weight = np.linspace(1.0, 3.0, 200)
    forest = small_forest(5).fit(X[:200], Y[:200], weight)
    for given in (weight, None):
        known = training_rows_warning(forest, X[:200], Y[:200], given, forest.predict_proba(X[:200]))
        assert known == "these are the rows that the model was trained on, so that all metrics are too good"


def test_a_stack_is_compared_with_its_own_out_of_bag_rows():
    stack = AUCStackingClassifier(small_forest(40, random_state=4), oob_score=True).fit(X[:200], Y[:200])

    def warning(part):
        return training_rows_warning(stack, X[part], Y[part], None, stack.predict_proba(X[part]))

    assert warning(slice(200)).endswith(f"the ROC AUC of out-of-bag rows is {stack.oob_score_:.4f}")
    assert warning(slice(200, 500)) is None
    chance = f"exceeds that of the out-of-bag rows, {stack.oob_score_:.3f}, by more than chance explains"
    assert chance in warning(slice(150))


def test_class_frequencies_by_weight():
    rows = score_rows(small_forest(2).fit(X, Y), X[:2], np.array([0, 1]), np.array([1.0, 3.0]))
    (table,) = (table for table in data_section(rows, None).tables if "frequency by weight" in table.columns)
    assert [row[-1] for row in table.rows] == ["25.0 %", "75.0 %"]

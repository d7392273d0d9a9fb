"""The section on the rows with the highest scores."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from aucforest import AUCForestClassifier
from aucforest.inspection import explain
from aucforest.report.reasons import reasons_section
from aucforest.report.rows import score_rows


@pytest.fixture(scope="module")
def data():
    """Rows with a category and missing values, labelled, with an index of their own."""
    random = np.random.default_rng(0)
    X = pd.DataFrame({"size": random.normal(scale=1e7, size=300), "colour": random.choice(["red", "blue"], 300)})
    y = np.where((X["size"] > 0) & (X["colour"] == "red"), "bad", "good")
    X = X.astype({"colour": "category"}).set_index(pd.Index([f"row {i}" for i in range(300)]))
    X.loc[random.random(300) < 0.1, "size"] = np.nan
    return X, y


def test_the_reasons_of_the_highest_scores(data):
    X, y = data
    forest = AUCForestClassifier(20, random_state=0).fit(X[:200], y[:200])
    forest._reverse_classes()  # "bad" is the positive class
    rows = score_rows(forest, X[200:], y[200:], None)
    table = reasons_section(rows, None).tables[0]
    highest = np.argsort(-rows.scores[:, 1], kind="stable")[:10]
    assert [row[0] for row in table.rows] == X.index[200:][highest].tolist()
    assert [row[2] for row in table.rows] == y[200:][highest].tolist()
    first = explain(forest, X[200:]).top(1)[highest[0]][0]
    assert table.rows[0][3].startswith(f"{first.feature} ")
    assert "e+" not in str(table.rows)
    assert any("colour = red (+" in row[3] for row in table.rows)


def test_other_models_and_more_classes_have_none(data):
    X, y = data
    sizes = X[["size"]].fillna(0.0)
    assert reasons_section(score_rows(RandomForestClassifier(5).fit(sizes, y), sizes, y, None), None) is None
    kinds = np.arange(300) % 3
    assert reasons_section(score_rows(AUCForestClassifier(5).fit(X, kinds), X, kinds, None), None) is None

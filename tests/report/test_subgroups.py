"""Subgroups: their metrics are those of their rows."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score, roc_auc_score

from aucforest.report.importances import held_out_importance
from aucforest.report.rows import score_rows
from aucforest.report.subgroups import default_groups, read_groups, subgroups_section
from tests.estimators.data import make_table

X, Y = make_table(n_rows=600, missing=0.0, seed=3)
MODEL = LogisticRegression().fit(X, Y)
SITE = np.where(np.arange(600) % 3 == 0, "north", "south").astype(object)
SITE[:15] = None


def table_of(by, weight=None):
    rows = score_rows(MODEL, X, Y, weight)
    (table,) = subgroups_section(rows, read_groups(by, rows, weight), 0.95).tables
    return {row[0]: row[1:] for row in table.rows}


def test_metrics_are_those_of_the_rows_of_a_group():
    found = table_of({"site": SITE})
    assert list(found) == ["south", "north", "missing"]
    for name in ("north", "south"):
        inside = name == SITE
        y, score = Y[inside], MODEL.predict_proba(X[inside])[:, 1]
        cells = found[name]
        assert cells[0] == str(inside.sum())
        assert cells[1].startswith(f"{y.sum()} (")
        assert float(cells[3]) == pytest.approx(roc_auc_score(y, score), abs=6e-4)
        assert float(cells[5].split()[0]) == pytest.approx(100 * recall_score(y, MODEL.predict(X[inside])), abs=0.06)
    assert found["missing"][0] == "15"
    assert found["missing"][3:5] == ["too few", "–"]


def test_numbers_are_grouped_by_quarters():
    found = table_of({"size": np.arange(600)})
    assert [cells[0] for cells in found.values()] == ["150"] * 4
    assert list(found) == ["to 149.8", "to 299.5", "to 449.2", "above 449.2"]


def test_rows_of_weight_zero_are_in_no_group():
    weight = np.where(np.arange(600) < 300, 0.0, 1.0)
    found = table_of({"site": SITE}, weight)
    assert {name: int(cells[0]) for name, cells in found.items()} == {"south": 200, "north": 100}


def test_rare_values_are_one_group():
    values = np.array([f"v{min(row // 40, 14)}" for row in range(600)])
    found = table_of({"code": values})
    assert len(found) == 11
    assert found["all others"][0] == "200"


def test_columns_are_named_or_are_the_most_important_categories():
    pandas = pytest.importorskip("pandas")
    from tests.estimators.data import small_forest

    frame = pandas.DataFrame({"x": X[:, 0], "noise": np.tile(["a", "b"], 300), "kind": np.where(Y, "p", "q")})
    rows = score_rows(small_forest(20).fit(frame, Y), frame, Y, None)
    assert list(default_groups(rows, held_out_importance(rows, 1, 0))) == ["kind", "noise"]
    assert list(default_groups(rows, None)) == ["noise", "kind"]
    assert list(read_groups("kind", rows, None)) == ["kind"]
    with pytest.raises(ValueError, match=r"^by names 'y', which is no column of X_test$"):
        read_groups(["x", "y"], rows, None)
    with pytest.raises(ValueError, match=r"^by has 3 values of 's', but y_test has 600 rows$"):
        read_groups({"s": [1, 2, 3]}, rows, None)


def test_groups_of_more_classes_have_accuracies():
    x, y = make_table(n_rows=300, n_classes=3, missing=0.0, seed=1)
    model = LogisticRegression(max_iter=500).fit(x, y)
    half = np.arange(300) < 150
    (table,) = subgroups_section(score_rows(model, x, y, None), {"half": half}, 0.95).tables
    for name, rows, accuracy, _ in table.rows:
        inside = half == (name == "True")
        assert rows == "150"
        assert float(accuracy.split()[0]) == pytest.approx(100 * model.score(x[inside], y[inside]), abs=0.06)

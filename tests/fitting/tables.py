"""Tables with every kind of column, and whether forests are alike in all that a fit sets."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from aucforest import AUCForestClassifier
from aucforest.fitting import on_disk
from aucforest.fitting.plan import plan_on_disk
from tests.persistence.trees import assert_same_trees


def make_rows(n=3000, seed=0, n_classes=2):
    """Return a table of every kind of column with gaps, labels of text, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    many = np.char.add("c", np.minimum(rng.geometric(0.01, n), 400).astype(str))
    level = X[:, 0] + 0.5 * X[:, 1] + 0.3 * (many < "c2") + rng.normal(size=n)
    cuts = np.quantile(level, np.sqrt(np.linspace(0, 1, n_classes + 1)[1:-1]))

    def gaps():
        return rng.random(n) < 0.1

    return pa.table({
        "double": pa.array(X[:, 0], mask=gaps()),
        "float": X[:, 1].astype(np.float32),
        "nan": np.where(gaps(), np.nan, X[:, 2]),
        "few": pa.array(np.round(X[:, 3]).astype(np.int16), mask=gaps()),
        "text": pa.array(many, mask=gaps()),
        "coded": pa.array(rng.choice(["u", "v", "w"], n), mask=gaps()).dictionary_encode(),
        "flag": pa.array(rng.random(n) < 0.4, mask=gaps()),
        "nothing": pa.nulls(n, pa.float64()),
        "weight": rng.choice([0.0, 0.5, 1.0, 2.25], n),
        "label": np.array(["a", "b", "c"])[np.searchsorted(cuts, level)],
    })  # fmt: skip


def features_and_labels(table, drop=()):
    """Return what `fit` takes."""
    return table.drop_columns(["weight", "label", *drop]), np.array(table["label"].to_pylist())


def make_forest(**params):
    return AUCForestClassifier(**{"n_estimators": 6, "random_state": 3, "n_jobs": 2, **params})


def assert_same_forests(one, other):
    assert_same_trees(one.trees_, other.trees_)
    assert set(vars(one)) == set(vars(other))
    for name in ("classes_", "feature_names_in_", "oob_decision_function_", "class_prior_"):
        if hasattr(other, name):
            assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=name[0] == "o"), name
    for name in ("threshold_", "threshold_std_", "shrinkage_", "oob_score_", "_seed"):
        assert np.array_equal(getattr(one, name, None), getattr(other, name, None)), name
    assert one._sample_records == other._sample_records
    both = [{j: values.tolist() for j, values in forest.categories_.items()} for forest in (one, other)]
    assert both[0] == both[1]


def copy_rows(monkeypatch):
    """Let trees out of core grow from copies of their rows."""

    def plan(*arguments):
        return replace(plan_on_disk(*arguments), copies_rows=True)

    monkeypatch.setattr(on_disk, "plan_on_disk", plan)

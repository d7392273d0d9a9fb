"""Training data with everything in it, and what it means that two forests are the same."""

from typing import Any

import dask.array as da
import numpy as np
import pandas as pd

from aucforest.persistence.folded_trees import fold
from tests.fitting.tables import assert_same_rates

FITTED = (
    "classes_", "class_prior_", "shrinkage_", "dispersion_", "threshold_", "threshold_std_", "oob_score_",
    "oob_decision_function_", "feature_names_in_", "n_features_in_",
)  # fmt: skip


def make_rows(n_rows: int = 9000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix with missing values and few and many distinct ones, and labels; the rare class comes last."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, 4))
    X[:, 1] = np.rint(3.0 * X[:, 1])
    score = X[:, 0] + generator.normal(size=n_rows) + np.linspace(0.0, 2.0, n_rows)
    y = np.where(score > 3.0, "rare", "common")
    y[: n_rows // 3] = "common"
    X[generator.random(X.shape) < 0.1] = np.nan
    return X, y


def make_frame(n_rows: int = 9000) -> tuple[pd.DataFrame, pd.Series]:
    """Return a frame with columns of categories, text, bools and numbers, and labels."""
    X, y = make_rows(n_rows)
    generator = np.random.default_rng(1)
    frame = pd.DataFrame(X[:, :2], columns=["size", "count"])
    colours = pd.Categorical.from_codes(generator.integers(-1, 5, n_rows), list("bcdea"))
    frame["colour"] = colours
    frame["city"] = pd.Series(generator.choice(["Rome", "Oslo", "Lima"], n_rows)).where(X[:, 2] < 1.0, None)
    frame["open"] = generator.random(n_rows) < 0.5
    return frame, pd.Series(y == "rare", name="label")


def chunked(n_parts: int, *columns: Any) -> list[Any]:
    """Return Dask arrays of so many partitions."""
    return [None if column is None else _chunked(n_parts, column) for column in columns]


def _chunked(n_parts: int, column: np.ndarray) -> Any:
    return da.from_array(column, chunks=(-(-len(column) // n_parts), *column.shape[1:]))


def assert_same(one: Any, other: Any) -> None:
    """Compare two forests to the last bit."""
    trees, other_trees = fold(one.trees_), fold(other.trees_)
    assert trees.keys() == other_trees.keys()
    for name, array in trees.items():
        np.testing.assert_array_equal(other_trees[name], array, err_msg=name)
    for name in FITTED:
        assert hasattr(one, name) == hasattr(other, name), name
        value, other_value = getattr(one, name, None), getattr(other, name, None)
        assert getattr(value, "dtype", None) == getattr(other_value, "dtype", None), name
        np.testing.assert_array_equal(value, other_value, err_msg=name)
    assert one.categories_.keys() == other.categories_.keys()
    for feature, categories in one.categories_.items():
        assert categories.tolist() == other.categories_[feature].tolist()
    assert_same_rates(one.target_rates_, other.target_rates_)

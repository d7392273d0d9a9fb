"""Training data as matrices, frames and Dask arrays, for forests on clusters."""

from typing import Any

import dask.array as da
import numpy as np
import pandas as pd


def make_rows(n_rows: int = 9000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix with missing values, and labels; one column has few distinct values, and late rows are "rare"."""
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
    generator, frame = np.random.default_rng(1), pd.DataFrame(X[:, :2], columns=["size", "count"])
    frame["colour"] = pd.Categorical.from_codes(generator.integers(-1, 5, n_rows), list("bcdea"))
    frame["city"] = pd.Series(generator.choice(["Rome", "Oslo", "Lima"], n_rows)).where(X[:, 2] < 1.0, None)
    frame["open"] = generator.random(n_rows) < 0.5
    return frame, pd.Series(y == "rare", name="label")


def chunked(n_parts: int, *columns: Any) -> list[Any]:
    """Return the columns as Dask arrays with n_parts partitions."""
    chunks = [None if column is None else (-(-len(column) // n_parts), *column.shape[1:]) for column in columns]
    return [size and da.from_array(column, chunks=size) for column, size in zip(columns, chunks)]

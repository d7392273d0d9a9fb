"""Small fitted stacks for tests, each with the data it was fitted to."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from aucforest import AUCStackingClassifier

from .data import make_table, small_forest
from .test_model_files import make_frame


def small_stack(n_estimators=30, *, stack=None, **params):
    """Return a stack of a forest with these parameters."""
    return AUCStackingClassifier(small_forest(n_estimators, **params), **(stack or {}))


def fitted_state(model, table):
    """Return the fitted numbers of a stack, and its predictions for a table."""
    return model.weights_, model.intercepts_, model.oob_decision_function_, model.predict_proba(table)


def with_dates():
    """Return a frame with dates, all of whose parts are exact as float32, and labels by month and number."""
    X, _ = make_table(240, 2)
    dates = pd.Timestamp("1970-01-01") + pd.to_timedelta(np.arange(240), unit="D")
    noise = np.random.default_rng(0).normal(size=240)
    return pd.DataFrame({"x": X[:, 0], "day": dates}), (X[:, 0] + (dates.month > 6) + noise > 0.5).astype(int)


def sparse():
    X, y = make_table(240, 4)
    return csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0)), y


def narrow():
    X, y = make_table(240)
    return X.astype(np.float32), y


def only_categories():
    frame, y = make_frame()
    return frame[["letter", "code"]].astype("category"), y


DATA = {
    "two classes": make_table, "three classes": lambda: make_table(400, n_classes=3),
    "missing values": lambda: make_table(missing=0.2), "float32": narrow, "categories": make_frame,
    "only categories": only_categories, "dates": with_dates, "sparse": sparse,
}  # fmt: skip
PARAMS = {
    "categories": {"forest": small_forest(20, categorical_features=["letter", "code"]), "threshold": "gmean"},
    "three classes": {"threshold": "prevalence", "oob_score": True},
}


@cache
def fitted(name):
    """Return the fitted stack of a data set, whose members all have positive weights, and X. Do not change them."""
    X, y = DATA[name]()
    stack = AUCStackingClassifier(**{"forest": small_forest(20), "random_state": 0, **PARAMS.get(name, {})})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* no out-of-bag probability")
        stack.fit(X, y)
    stack.weights_ = np.maximum(stack.weights_, 0.1)
    return stack, X

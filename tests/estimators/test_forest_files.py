"""What files hold of forests: every option and every threshold comes back."""

import numpy as np
import pandas as pd
import pytest

from aucforest import AUCTreeClassifier, LinearAUCClassifier
from tests.estimators.data import assert_same, make_table, own_auc, small_forest, small_tree
from tests.estimators.test_model_files import assert_same_predictions, saved

N_ROWS = 60
RANDOM = np.random.default_rng(0)


def table(n_classes=2):
    return make_table(N_ROWS, 4, n_classes)


def with_values(change, n_classes=2):
    """Return what makes a table whose values are changed by a function."""
    return lambda: (change(table(n_classes)[0]), table(n_classes)[1], None)


def with_weights(weights, n_classes=2):
    return lambda: (*table(n_classes), weights)


def with_labels(*labels):
    return lambda: (table(len(labels))[0], np.array(labels)[table(len(labels))[1]], None)


def frame():
    """Return a frame with columns of all kinds, some without a value; the same one at every call."""
    random = np.random.default_rng(0)
    X, y = table()
    columns = pd.DataFrame(X, columns=["[", '{"}', "\N{SNOWMAN}\n\0", "b"])
    columns["letter"] = pd.Categorical(random.choice(list("vwxyz"), N_ROWS))
    columns["bool"], columns["text"] = X[:, 0] > 0, [f"row {i}" for i in range(N_ROWS)]
    columns["one"], columns["none"] = pd.Categorical(["q"] * N_ROWS), pd.Categorical([None] * N_ROWS, categories=["u"])
    columns["great"] = pd.Categorical(random.integers(2**60, 2**60 + 4, N_ROWS))
    columns["unsigned"] = random.integers(2**63, 2**64 - 1, N_ROWS, dtype=np.uint64)
    return columns, y, None


TABLES = {
    "two classes": with_values(np.copy),
    "three classes": with_values(np.copy, 3),
    "a class of few rows": lambda: (table()[0], (np.arange(N_ROWS) < 3).astype(int), None),
    "many classes": lambda: (table()[0], np.arange(N_ROWS) % 20, None),
    "two rows": lambda: (table()[0][:2], np.array([0, 1]), None),
    "text": with_labels("", "a\0b", "\ud800"),
    "infinite values": with_values(lambda X: np.where(np.abs(X) > 0.3, np.inf * X, X)),
    "infinite values alone": with_values(lambda X: np.inf * X),
    "greatest values": with_values(lambda X: 1.7e308 * np.tanh(X)),
    "least values": with_values(lambda X: 1e-320 * X),
    "constant columns": with_values(lambda X: np.where(np.arange(4) > 0, 7.0, X)),
    "nothing but constants": with_values(np.zeros_like),
    "missing columns": with_values(lambda X: np.where(np.arange(4) < 2, np.nan, X)),
    "nothing but missing values": with_values(lambda X: np.full_like(X, np.nan)),
    "whole numbers": with_values(np.rint, 3),
    "weights of 0": with_weights((np.arange(N_ROWS) % 3 > 0).astype(np.float64)),
    "tiny weights": with_weights(1e-200 * RANDOM.uniform(1, 2, N_ROWS)),
    "huge weights": with_weights(1e200 * RANDOM.uniform(0.5, 1, N_ROWS), 3),
    "weights of all sizes": with_weights(10.0 ** RANDOM.uniform(-200, 200, N_ROWS)),
    "great whole weights": with_weights(RANDOM.integers(1, 2**31, N_ROWS).astype(np.float64)),
    "a class without weight": with_weights((table(3)[1] < 2).astype(np.float64), 3),
    "a frame": frame,
}  # fmt: skip


RULES = [
    None, "prevalence", "gmean", "youden", "f1", 0.0, 0.3, 1.0,
    *({"cost": [[0.0, a, b], [c, 0.0, d], [a, b, 0.0]]} for a, b, c, d in ((3, 1, 1, 2), (0, 0, 1, 1), (1e307,) * 4)),
]  # fmt: skip


COMMON = [
    {}, {"criterion": "gini"}, {"criterion": own_auc}, {"splitter": "random"}, {"max_bins": None},
    {"max_leaf_nodes": 3}, {"monotonic_cst": "all"}, {"bootstrap": False}, {"sampling": "rates"},
    {"sampling": "balanced", "calibration": "auto"}, {"class_weight": "balanced"}, {"categorical_features": [0, 1]},
    {"oob_score": True, "threshold": "f1", "sampling": "balanced", "n_estimators": 20},
]  # fmt: skip
RARE = [
    *({"criterion": name} for name in ("entropy", "log_loss", "hellinger")),
    {"splitter": "random", "max_bins": None, "max_features": None}, {"max_bins": 2}, {"max_depth": 1},
    {"min_gain": 1e9, "criterion": "gini"}, {"min_samples_leaf": 10}, {"min_weight_fraction_leaf": 0.3},
    {"max_samples": 1}, {"sampling": "subsample"}, {"sampling": "half-samples", "n_estimators": 100},
    {"sampling": "balanced", "calibration": None},
    *({"sampling": "stratified", "calibration": each} for each in ("auto", None)),
    *({"class_weight": weight} for weight in ("balanced_subsample", "tiny")),
    *({"shrinkage": amount} for amount in (None, 0, 1e-300, 7.5, 1e308)), {"n_estimators": 1},
    *({"oob_score": score, "n_estimators": 20} for score in (True, "balanced_accuracy", "average_precision")),
]  # fmt: skip


def made(options, y, n_features):
    """Return a forest of some options, where classes and features are filled in."""
    classes, options = np.unique(np.asarray(y)).tolist(), dict(options)
    if "monotonic_cst" in options:
        options["monotonic_cst"] = [1, *[0] * (n_features - 1)]
    if options.get("sampling") == "rates":
        options["sampling"] = {classes[0]: 0.01}
    if options.get("class_weight") == "tiny":
        options["class_weight"] = dict.fromkeys(classes[1:], 1e-50)
    return small_forest(**{"n_estimators": 4, **options})


def assert_comes_back(model, X, folder):
    own = callable(getattr(model, "criterion", None))
    loaded = saved(model, folder)
    assert_same(model.set_params(criterion=None) if own else model, loaded)
    assert_same_predictions(model, loaded, X)
    for tree in getattr(loaded, "trees_", []):
        tree.validate()


# The tables of which files hold different things.
TELLING = {"two classes", "three classes", "text", "greatest values", "weights of all sizes", "a frame"}
WALK = [
    *(pytest.param(name, COMMON, id=name, marks=() if name in TELLING else pytest.mark.slow) for name in TABLES),
    pytest.param("two classes", RARE, id="two classes, rare options"),
    pytest.param("a frame", RARE, id="a frame, rare options", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "options"), WALK)
@pytest.mark.filterwarnings("ignore")
def test_every_option(name, options, tmp_path):
    (X, y, weights), refused = TABLES[name](), []
    linear = [LinearAUCClassifier(), LinearAUCClassifier(max_iter=3)]
    trees = [small_tree(), AUCTreeClassifier(max_bins=None, splitter="random", random_state=0)]
    forests = [made(each, y, X.shape[1]) for each in options]
    for model in (*forests, *trees, *linear):
        try:
            model.fit(X, y, weights)
        except ValueError as error:
            refused.append((model, error))
            continue
        assert_comes_back(model, X, tmp_path)
    # linear models, tuned thresholds and costs of another number of classes, weights beyond what is allowed
    assert len(refused) <= 7, refused


@pytest.mark.parametrize("name", sorted(TELLING))
@pytest.mark.filterwarnings("ignore")
def test_every_threshold(name, tmp_path):
    (X, y, weights), n_set = TABLES[name](), 0
    forest = small_forest(20).fit(X, y, weights)
    for rule in RULES:
        if isinstance(rule, dict):
            rule = {"cost": [costs[: len(forest.classes_)] for costs in rule["cost"][: len(forest.classes_)]]}
        try:
            forest.set_threshold(rule, X, y, weights)
        except ValueError:
            continue
        n_set += 1
        assert_comes_back(forest, X, tmp_path)
    assert n_set >= 2


@pytest.mark.filterwarnings("ignore")
def test_trees_added_later(tmp_path):
    X, y = table()
    forest = small_forest(sampling="subsample").fit(X, y)
    forest.set_params(n_estimators=8, warm_start=True, sampling="bootstrap").fit(X, y)
    assert_comes_back(forest, X, tmp_path)
    assert_comes_back(forest.estimators_[7], X, tmp_path)

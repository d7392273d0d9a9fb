"""Forests in model files: forests of all options are restored to the last bit, and damaged files are refused."""

import copy
from itertools import product

import numpy as np
import pandas as pd
import pytest

from aucforest import AUCForestClassifier, AUCStackingClassifier, LinearAUCClassifier

from .data import assert_same, make_table, own_auc, small_forest, small_tree
from .rated import make_interaction, make_rated
from .test_model_files import array, assert_same_predictions, at, check_metadata, check_refused, read, saved

N_ROWS = 60
RANDOM = np.random.default_rng(0)
X, Y = make_table(N_ROWS, 4)
X3, Y3 = make_table(N_ROWS, 4, 3)
ENCODINGS = ["auto", "sets", "rates", "interactions", ["sets", "rates"]]


def frame():
    """Return a frame with columns of all kinds, some of them empty. All calls return the same values."""
    random = np.random.default_rng(0)
    columns = pd.DataFrame(X, columns=["[", '{"}', "\N{SNOWMAN}\n\0", "b"])
    columns["letter"] = pd.Categorical(random.choice(list("vwxyz"), N_ROWS))
    columns["bool"], columns["text"] = X[:, 0] > 0, [f"row {i}" for i in range(N_ROWS)]
    columns["one"], columns["none"] = pd.Categorical(["q"] * N_ROWS), pd.Categorical([None] * N_ROWS, categories=["u"])
    columns["great"] = pd.Categorical(random.integers(2**60, 2**60 + 4, N_ROWS))
    columns["unsigned"] = random.integers(2**63, 2**64 - 1, N_ROWS, dtype=np.uint64)
    return columns


# Forests of these tables have different labels, thresholds, weights, names and categories.
TABLES = {
    "two classes": (X, Y, None), "many classes": (X, np.arange(N_ROWS) % 20, None),
    "text": (X3, np.array(["", "a\0b", "\ud800"])[Y3], None), "greatest values": (1.7e308 * np.tanh(X), Y, None),
    "weights of all sizes": (X, Y, 10.0 ** RANDOM.uniform(-100, 100, N_ROWS)), "a frame": (frame(), Y, None),
}  # fmt: skip


RULES = [
    None, "prevalence", "gmean", "youden", "f1", 0.0, 0.3, 1.0,
    *({"cost": [[0.0, a, b], [c, 0.0, d], [a, b, 0.0]]} for a, b, c, d in ((3, 1, 1, 2), (0, 0, 1, 1), (1e307,) * 4)),
]  # fmt: skip


OPTIONS = [
    {}, {"criterion": own_auc}, {"criterion": "gini", "shrinkage": None}, {"bootstrap": False},
    {"sampling": "balanced"}, {"sampling": "balanced", "calibration": None}, {"sampling": "subsample"},
    {"sampling": "half-samples", "n_estimators": 100}, {"class_weight": "balanced"},
    {"oob_score": True, "n_estimators": 20},
]  # fmt: skip


def come_back(model, folder, X):
    """Save and load a model, assert that it is the same, and return it."""
    loaded, own = saved(model, folder), callable(getattr(model, "criterion", None))
    assert_same(model.set_params(criterion=None) if own else model, loaded)
    assert_same_predictions(model, loaded, X)
    for tree in getattr(loaded, "trees_", []):
        tree.validate()
    return loaded


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.filterwarnings("ignore")
def test_every_option(name, tmp_path):
    X, y, weights = TABLES[name]
    forests = [small_forest(**{"n_estimators": 4, **options}) for options in OPTIONS]
    others = [LinearAUCClassifier()] if name in ("two classes", "text") else []
    for model in (*forests, *others, small_tree(), small_tree(max_bins=None, splitter="random")):
        come_back(model.fit(X, y, weights), tmp_path, X)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.filterwarnings("ignore")
def test_every_threshold(name, tmp_path):
    (X, y, weights), n_set = TABLES[name], 0
    forest = small_forest(20).fit(X, y, weights)
    for rule in RULES:
        if isinstance(rule, dict):
            rule = {"cost": [costs[: len(forest.classes_)] for costs in rule["cost"][: len(forest.classes_)]]}
        try:
            forest.set_threshold(rule, X, y, weights)
        except ValueError:
            continue
        n_set += 1
        come_back(forest, tmp_path, X)
    assert n_set >= 2


@pytest.mark.filterwarnings("ignore")
def test_trees_added_later(tmp_path):
    forest = small_forest(sampling="subsample").fit(X, Y)
    forest.set_params(n_estimators=8, warm_start=True, sampling="bootstrap").fit(X, Y)
    come_back(forest, tmp_path, X)
    come_back(forest.estimators_[7], tmp_path, X)


def rated_forest(**params):
    return AUCForestClassifier(**{"n_estimators": 16, "random_state": 0, "max_depth": 5, **params})


@pytest.fixture(scope="module")
def interaction():
    """Return a forest with rates of two columns, one of them with an interaction, and its data."""
    X, y = make_interaction()
    forest = rated_forest().fit(X, y)
    assert [table.is_interaction for table in forest.target_rates_.tables] == [False, True, False]
    return forest, X, y


@pytest.fixture(scope="module")
def content(interaction, tmp_path_factory):
    path = tmp_path_factory.mktemp("rates") / "model"
    interaction[0].save(path)
    arrays, metadata = read(path)
    assert arrays["rates.0.totals"].dtype == np.uint8
    return arrays, metadata


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_a_forest_comes_back_to_the_last_bit(encoding, n_classes, tmp_path):
    X, y = make_rated(n_classes=n_classes)
    forest = rated_forest(categorical_encoding=encoding).fit(X, y)
    loaded = come_back(forest, tmp_path, X)
    assert (loaded.target_rates_ is None) == (encoding == "sets") == (len(loaded.encodings_) == 0)
    come_back(forest[3], tmp_path, X)
    loaded.save(tmp_path / "again")
    forest.save(tmp_path / "model")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_interactions_weights_and_unequal_sampling_come_back(interaction, tmp_path):
    forest, X, y = interaction
    come_back(forest, tmp_path, X)
    random = np.random.default_rng(0)
    for params, weights in (({}, random.uniform(0.5, 2.0, len(y))), ({"sampling": {0: 0.2, 1: 1.0}}, None)):
        come_back(rated_forest(**params).fit(X, y, weights), tmp_path, X)


def test_warm_starts_go_on_from_a_file(tmp_path):
    X, y = make_rated()
    for encoding in ENCODINGS:
        more = rated_forest(categorical_encoding=encoding).set_params(n_estimators=24).fit(X, y)
        loaded = saved(rated_forest(categorical_encoding=encoding).fit(X, y), tmp_path)
        loaded.set_params(warm_start=True, n_estimators=24).fit(X, y)
        assert loaded.encodings_[:16] == more.encodings_[:16]
        assert len(loaded.encodings_) == (0 if encoding == "sets" else 24)
        np.testing.assert_array_equal(loaded.apply(X)[:, :16], more.apply(X)[:, :16])


MANY = {
    "text": pd.Series([f"\ud800 é{i}" for i in range(5000)], dtype=object),
    "numbers": np.arange(5000, dtype=np.uint16)[::-1],
    "floats": np.append(np.arange(1, 5000) / 7, np.inf).astype(np.float32),
    "dates": pd.Series(pd.date_range("2020", periods=5000), dtype=object),
    "mixed": np.array([i if i % 2 else i + 0.5 for i in range(5000)], dtype=object),
}


@pytest.mark.parametrize("kind", MANY)
def test_many_categories_are_arrays(kind, tmp_path):
    X = pd.DataFrame({"one": MANY[kind], "x": np.arange(5000) % 7})
    forest = small_forest(2, max_depth=2, categorical_features=["one"]).fit(X, np.arange(5000) % 3 == 0)
    come_back(forest, tmp_path, X)
    arrays, metadata = read(tmp_path / "model")
    is_plain = metadata["categories"][0][1]["values"] is not None
    assert is_plain == (kind == "mixed") == (not any(name.startswith("categories.0.") for name in arrays))


def test_lengths_of_texts_are_checked(tmp_path):
    X = pd.DataFrame({"one": [f"é{i}" for i in range(5000)], "x": np.arange(5000) % 7})
    small_forest(2, max_depth=2).fit(X, np.arange(5000) % 3 == 0).save(tmp_path / "model")
    content = read(tmp_path / "model")
    for change in (lambda lengths: np.append(lengths, [1, 1]).astype(np.uint8), lambda lengths: lengths[::-1] - 1):
        check_refused(content, values("categories.0.lengths", change), "do not add up", tmp_path)
    # The boundaries of labels are then within letters of two bytes.
    check_refused(content, values("categories.0.text", lambda text: np.roll(text, -1)), "utf-8", tmp_path)


def item(number, index, value):
    return at("rates", "tables", number, index, put=value)


def values(name, change):
    return lambda arrays, metadata: arrays.update({name: change(arrays[name])})


def order(*indices):
    """Return a function that brings the tables in another order, with their arrays."""

    def change(arrays, metadata):
        metadata["rates"]["tables"] = [metadata["rates"]["tables"][index] for index in indices]
        before = dict(arrays)
        for (number, index), name in product(enumerate(indices), ("totals", "edges")):
            arrays[f"rates.{number}.{name}"] = before[f"rates.{index}.{name}"]

    return change


BAD_FACTORS = [1.0, -1.0], [1.0, np.inf], [0.0, 0.0]
HOSTILE = {
    "a feature that is a float": (item(0, 0, 0.0), "a table of rates must be two features"),
    "a number": (item(0, 0, 1), "rates of feature 1, which has no categories"),
    **{f"with {f}": (item(1, 1, f), f"rates of feature 0 interact with feature {f}") for f in (0, -2)},
    "alone with parts": (item(1, 1, -1), "wrong number of parts or edges"),
    "more parts": (item(1, 2, 3), "wrong number of parts or edges"),
    "no smoothing": (item(0, 3, 0.0), "smoothing of rates is not positive and finite"),
    "no tables": (at("rates", "tables", put=[]), "there are no rates, or too many"),
    "unknown": (at("rates", "more", put=1), "more is unknown"),
    **{f"class {k}": (at("rates", "classes", put=[k]), "classes of rates are unknown") for k in (0, 2)},
    "an interaction first": (order(1, 0, 2), "the tables of rates are not in order"),
    "the same table twice": (order(0, 1, 0), "the tables of rates are not in order"),
    "a table too few": (lambda arrays, metadata: metadata["rates"]["tables"].pop(), "tree.*features|feature"),
    "a total too few": (values("rates.1.totals", lambda totals: totals[1:]), "rates.1.totals must be"),
    "negative totals": (values("rates.0.totals", lambda totals: -totals.astype(np.int64)), "negative or too large"),
    "great totals": (values("rates.0.totals", lambda totals: np.full(totals.shape, 2**61)), "negative or too large"),
    "NaN edge": (values("rates.1.edges", lambda edges: edges * np.nan), "edges of rates are not finite and rising"),
    "no edge": (values("rates.1.edges", lambda edges: edges[:0]), "wrong number of parts or edges"),
    "frequencies of more": (array("rates.frequencies", [0.5, 0.6]), "the frequencies of rates are not those"),
    **{f"factors {f}": (array("rates.factors", f), "factors of rates are not positive") for f in BAD_FACTORS},
    "an unknown encoding": (at("encodings", 0, put="codes"), "encodings are unknown"),
    "an encoding beyond": (values("encodings", lambda indices: indices + 3), "the encodings of trees are unknown"),
    "an encoding too few": (values("encodings", lambda indices: indices[1:]), "encodings must be int64"),
    "a mixture of one": (at("encoding_mixture", put=["sets"]), "the names of encoding_mixture are"),
    "scores above 1": (values("encoding_mixture_scores", lambda scores: scores + 1), "the scores of encoding_mixture"),
    "many trees": (values("encoding_mixture_n_trees", lambda n: n + 99), "the numbers of trees of encoding_mixture"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_rates_are_refused(name, content, tmp_path):
    check_refused(content, *HOSTILE[name], tmp_path)


def test_damaged_metadata_are_refused_by_a_sentence(content, content_of_stack, tmp_path):
    check_metadata(content, tmp_path)
    check_metadata(content_of_stack, tmp_path, but="forest")


def test_stacks_come_back(tmp_path):
    X, y = make_rated()
    loaded = come_back(AUCStackingClassifier(rated_forest(), random_state=0).fit(X, y), tmp_path, X)
    assert list(loaded.members_) == ["forest", "residual", "boosted", "linear"]
    content = read(tmp_path / "model")
    totals = content[0]["residual/rates.0.totals"].copy()
    totals[0, 0] += 1
    others = {"frequencies": [0.25, 0.75], "factors": [0.5, 1.0], "0.totals": totals}
    for member, (name, other) in product(("residual", "boosted"), others.items()):
        change = array(f"{member}/rates.{name}", other)
        check_refused(content, change, "forests of the stack have different target rates", tmp_path)


@pytest.fixture(scope="module")
def content_of_stack(tmp_path_factory):
    X, y = make_interaction()
    late = X["night"] * np.random.default_rng(0).integers(1, 3, len(X))
    X["evening"] = pd.Categorical(np.array(["no", "yes", "late"])[late])
    forest = rated_forest(n_estimators=40)
    stack = AUCStackingClassifier(forest, residual=False, boosted=False, random_state=0).fit(X, y)
    found = [(table.feature, table.other, table.n_parts) for table in stack.members_["linear"].interactions]
    assert found[:2] == [(0, 3, 3), (0, 1, 2)]
    folder = tmp_path_factory.mktemp("stack")
    come_back(stack, folder, X)
    return read(folder / "model")


@pytest.mark.parametrize(("number", "index", "put", "message"), [
    (0, slice(1, 3), [-1, 1], "an interaction of the additive model has only one feature"),
    (0, 1, 4, "the rates of feature 0 interact with feature 4"), (0, 2, 2, "have a wrong number of parts or edges"),
])  # fmt: skip
def test_interactions_of_unknown_cells_are_refused(number, index, put, message, content_of_stack, tmp_path):
    check_refused(content_of_stack, at("linear", "interactions", number, index, put=put), message, tmp_path)


@pytest.mark.parametrize(("name", "value"), [("codes_", 1e6), ("code_features_", 9)])
def test_coefficients_of_unknown_cells_are_refused(name, value, content_of_stack, tmp_path):
    change = values(f"linear/{name}", lambda cells: np.append(cells[:-1], value).astype(cells.dtype))
    check_refused(content_of_stack, change, "codes_ has invalid values", tmp_path)


def test_warm_starts_need_the_same_features(interaction):
    forest, X, y = interaction
    of_sets = rated_forest(categorical_encoding="sets").fit(X, y)
    for before, after in ((copy.deepcopy(forest), "rates"), (of_sets, "auto")):
        before.set_params(warm_start=True, n_estimators=20, categorical_encoding=after)
        with pytest.raises(ValueError, match=r"^warm_start: the existing trees read columns of many categories in"):
            before.fit(X, y)

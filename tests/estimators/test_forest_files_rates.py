"""Target rates come back from files to the last bit, and what would index beyond an array is refused."""

import copy
from itertools import product

import numpy as np
import pandas as pd
import pytest

import aucforest
from aucforest import AUCForestClassifier, AUCStackingClassifier, ModelFormatError
from aucforest.persistence.model_file import write_model

from .data import assert_same
from .rated import make_interaction, make_rated
from .test_model_files import array, assert_same_predictions, at, check_refused, read, saved

ENCODINGS = ["auto", "sets", "rates", "interactions", ["sets", "rates"]]


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
    return read(path)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_a_forest_comes_back_to_the_last_bit(encoding, n_classes, tmp_path):
    X, y = make_rated(n_classes=n_classes)
    forest = rated_forest(categorical_encoding=encoding).fit(X, y)
    loaded = saved(forest, tmp_path)
    assert (loaded.target_rates_ is None) == (encoding == "sets") == (len(loaded.encodings_) == 0)
    assert_same(forest, loaded)
    assert_same_predictions(forest, loaded, X)
    assert_same_predictions(forest[3], saved(forest[3], tmp_path), X)
    loaded.save(tmp_path / "again")
    forest.save(tmp_path / "model")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_interactions_weights_and_unequal_sampling_come_back(interaction, tmp_path):
    forest, X, y = interaction
    assert_same(forest, saved(forest, tmp_path))
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    for params, sample_weight in (({}, weights), ({"sampling": {0: 0.2, 1: 1.0}}, None)):
        other = rated_forest(**params).fit(X, y, sample_weight)
        assert_same(other, saved(other, tmp_path))
        assert_same_predictions(other, saved(other, tmp_path), X)


def test_warm_starts_go_on_from_a_file(tmp_path):
    X, y = make_rated()
    for encoding in ENCODINGS:
        more = rated_forest(categorical_encoding=encoding).set_params(n_estimators=24).fit(X, y)
        loaded = saved(rated_forest(categorical_encoding=encoding).fit(X, y), tmp_path)
        loaded.set_params(warm_start=True, n_estimators=24).fit(X, y)
        assert loaded.encodings_[:16] == more.encodings_[:16]
        assert len(loaded.encodings_) == (0 if encoding == "sets" else 24)
        np.testing.assert_array_equal(loaded.apply(X)[:, :16], more.apply(X)[:, :16])


def test_totals_take_few_bytes(content):
    arrays, _ = content
    assert arrays["rates.0.totals"].dtype == np.uint8
    assert arrays["rates.1.totals"].shape == (120, 2)


@pytest.mark.parametrize("kind", ["text", "numbers", "floats", "dates", "mixed"])
def test_many_categories_are_arrays(kind, tmp_path):
    n = 5000
    values = {
        "text": pd.Series([f"\ud800 é{i}" for i in range(n)], dtype=object),
        "numbers": np.arange(n, dtype=np.uint16)[::-1],
        "floats": np.append(np.arange(1, n) / 7, np.inf).astype(np.float32),
        "dates": pd.Series(pd.date_range("2020", periods=n), dtype=object),
        "mixed": np.array([i if i % 2 else i + 0.5 for i in range(n)], dtype=object),
    }
    X = pd.DataFrame({"one": values[kind], "x": np.arange(n) % 7})
    y = np.arange(n) % 3 == 0
    forest = AUCForestClassifier(2, max_depth=2, random_state=0, categorical_features=["one"]).fit(X, y)
    loaded = saved(forest, tmp_path)
    assert_same(forest, loaded)
    assert_same_predictions(forest, loaded, X)
    arrays, metadata = read(tmp_path / "model")
    is_plain = metadata["categories"][0][1]["values"] is not None
    assert is_plain == (kind == "mixed") == (not any(name.startswith("categories.0.") for name in arrays))


def test_lengths_of_texts_are_checked(tmp_path):
    X = pd.DataFrame({"one": [f"é{i}" for i in range(5000)], "x": np.arange(5000) % 7})
    AUCForestClassifier(2, max_depth=2).fit(X, np.arange(5000) % 3 == 0).save(tmp_path / "model")
    arrays, metadata = read(tmp_path / "model")
    lengths = arrays["categories.0.lengths"]
    for wrong, message in ((np.append(lengths, [1, 1]), "do not add up"), (lengths[::-1] - 1, "do not add up")):
        write_model(tmp_path / "wrong", {**arrays, "categories.0.lengths": wrong.astype(np.uint8)}, metadata)
        with pytest.raises(ModelFormatError, match=message):
            aucforest.load(tmp_path / "wrong")
    # cut within letters of two bytes
    arrays["categories.0.text"] = np.roll(arrays["categories.0.text"], -1)
    write_model(tmp_path / "wrong", arrays, metadata)
    with pytest.raises(ModelFormatError, match="utf-8"):
        aucforest.load(tmp_path / "wrong")


def table(number, index, value):
    """Return what changes an item of a table: its feature, the other one, the number of parts, or the smoothing."""
    return at("rates", "tables", number, index, put=value)


def values(name, change):
    """Return what changes an array."""
    return lambda arrays, metadata: arrays.update({name: change(arrays[name])})


def order(*indices):
    """Return what brings the tables in another order, with their arrays."""

    def change(arrays, metadata):
        metadata["rates"]["tables"] = [metadata["rates"]["tables"][index] for index in indices]
        before = dict(arrays)
        for number, index in enumerate(indices):
            for name in ("totals", "edges"):
                arrays[f"rates.{number}.{name}"] = before[f"rates.{index}.{name}"]

    return change


HOSTILE = {
    "a number": (table(0, 0, 1), "rates of feature 1, which has no categories"),
    "a feature that is a float": (table(0, 0, 0.0), "a table of rates must be two features"),
    "another table's feature": (table(0, 0, 2), "must be .* of shape"),
    "with itself": (table(1, 1, 0), "rates of feature 0 interact with feature 0"),
    "with nothing": (table(1, 1, -2), "rates of feature 0 interact with feature -2"),
    "alone with parts": (table(1, 1, -1), "wrong number of parts or edges"),
    "with many categories": (
        lambda arrays, metadata: (table(1, 1, 2)(arrays, metadata), array("rates.1.edges", [])(arrays, metadata)),
        "wrong number of parts or edges",
    ),
    "more parts": (table(1, 2, 3), "wrong number of parts or edges"),
    "no smoothing": (table(0, 3, 0.0), "smoothing of rates is not positive and finite"),
    "an item too few": (at("rates", "tables", 0, put=[0, -1, 1]), "a table of rates must be two features"),
    "no tables": (at("rates", "tables", put=[]), "there are no rates, or too many"),
    "classes of text": (at("rates", "classes", put="1"), "rates have no tables and classes"),
    "unknown": (at("rates", "more", put=1), "rates have no tables and classes"),
    "rates of text": (at("rates", put="all"), "rates must be dict"),
    "the first class": (at("rates", "classes", put=[0]), "classes of rates are unknown"),
    "a class beyond": (at("rates", "classes", put=[2]), "classes of rates are unknown"),
    "an interaction first": (order(1, 0, 2), "the tables of rates are not in order"),
    "the same table twice": (order(0, 1, 1), "the tables of rates are not in order"),
    "a table too few": (lambda arrays, metadata: metadata["rates"]["tables"].pop(), "tree.*features|feature"),
    "no totals": (lambda arrays, metadata: arrays.pop("rates.1.totals"), "rates.1.totals is missing"),
    "a total too few": (values("rates.1.totals", lambda totals: totals[1:]), "rates.1.totals must be"),
    "negative totals": (values("rates.0.totals", lambda totals: -totals.astype(np.int64)), "negative or too large"),
    "great totals": (values("rates.0.totals", lambda totals: np.full(totals.shape, 2**61)), "negative or too large"),
    "totals that are floats": (values("rates.0.totals", lambda totals: totals * 1.0), "rates.0.totals must be"),
    "NaN edge": (values("rates.1.edges", lambda edges: edges * np.nan), "edges of rates are not finite and rising"),
    "no edge": (values("rates.1.edges", lambda edges: edges[:0]), "no edges for feature 1, which is numeric"),
    "an edge of a column alone": (array("rates.0.edges", [0.5]), "wrong number of parts or edges"),
    "frequencies of more": (array("rates.frequencies", [0.5, 0.6]), "the frequencies of rates are not those"),
    "negative factor": (array("rates.factors", [1.0, -1.0]), "factors of rates are not positive"),
    "infinite factor": (array("rates.factors", [1.0, np.inf]), "factors of rates are not positive"),
    "no factor": (array("rates.factors", [0.0, 0.0]), "factors of rates are not positive"),
    "an unknown encoding": (at("encodings", 0, put="codes"), "encodings are unknown"),
    "encodings twice": (at("encodings", 0, put="rates"), "encodings are unknown"),
    "no encodings": (lambda arrays, metadata: metadata.pop("encodings"), "encodings must be|encodings is missing"),
    "an encoding beyond": (values("encodings", lambda indices: indices + 3), "the encodings of trees are unknown"),
    "an encoding too few": (values("encodings", lambda indices: indices[1:]), "encodings must be int64"),
    "a mixture of one": (at("encoding_mixture", put=["sets"]), "the names of encoding_mixture are fewer"),
    "scores above 1": (values("encoding_mixture_scores", lambda scores: scores + 1), "the scores of encoding_mixture"),
    "many trees": (values("encoding_mixture_n_trees", lambda n: n + 99), "the numbers of trees of encoding_mixture"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_rates_are_refused(name, content, tmp_path):
    check_refused(content, *HOSTILE[name], tmp_path)


def test_stacks_come_back(tmp_path):
    X, y = make_rated()
    stack = AUCStackingClassifier(rated_forest(), random_state=0).fit(X, y)
    loaded = saved(stack, tmp_path)
    assert_same(stack, loaded)
    assert_same_predictions(stack, loaded, X)
    assert list(loaded.members_) == ["forest", "residual", "boosted", "linear"]
    arrays, metadata = read(tmp_path / "model")
    totals = arrays["residual/rates.0.totals"].copy()
    totals[0, 0] += 1
    others = {"frequencies": np.array([0.25, 0.75]), "factors": np.array([0.5, 1.0]), "0.totals": totals}
    for member, (name, other) in product(("residual", "boosted"), others.items()):
        write_model(tmp_path / "other", arrays | {f"{member}/rates.{name}": other}, metadata)
        with pytest.raises(ModelFormatError, match="forests of the stack have different target rates"):
            aucforest.load(tmp_path / "other")


def test_the_additive_model_of_a_stack_may_read_categories_beyond_those_of_sets(tmp_path):
    """The most frequent categories need not be the first 254 of the additive model."""
    random = np.random.default_rng(0)
    code = np.repeat(np.arange(400), 12)
    X = np.column_stack((code, random.normal(size=len(code))))
    y = (random.normal(0.0, 2.0, 400)[code] + random.logistic(size=len(code)) > 0).astype(int)
    forest = rated_forest(n_estimators=30, categorical_features=[0])
    stack = AUCStackingClassifier(forest, residual=False, random_state=0).fit(X, y)
    assert stack.members_["linear"].codes_.max() == 399
    assert_same_predictions(stack, saved(stack, tmp_path), X)


@pytest.fixture(scope="module")
def interaction_stack():
    X, y = make_interaction()
    late = X["night"] * np.random.default_rng(0).integers(1, 3, len(X))
    X["evening"] = pd.Categorical(np.array(["no", "yes", "late"])[late])
    forest = rated_forest(n_estimators=40)
    stack = AUCStackingClassifier(forest, residual=False, boosted=False, random_state=0).fit(X, y)
    found = [(table.feature, table.other, table.n_parts) for table in stack.members_["linear"].interactions]
    assert found[:2] == [(0, 3, 3), (0, 1, 2)]
    return stack, X


def test_interactions_of_the_additive_model_come_back(interaction_stack, tmp_path):
    stack, X = interaction_stack
    loaded = saved(stack, tmp_path)
    assert_same(stack, loaded)
    assert_same_predictions(stack, loaded, X)


@pytest.mark.parametrize(
    ("number", "index", "put", "message"),
    [
        (1, 1, -1, "have a wrong number of parts or edges"),
        (0, slice(1, 3), [-1, 1], "an interaction of the additive model has only one feature"),
        (0, 1, 4, "the rates of feature 0 interact with feature 4"),
        (0, 0, 1, "there are rates of feature 1, which has no categories"),
        (0, 2, 2, "have a wrong number of parts or edges"),
        (1, 2, 3, "have a wrong number of parts or edges"),
        (0, 3, -1.0, "the smoothing of rates is not positive and finite"),
        (1, slice(None), [0], "a table of rates must be two features"),
    ],
)
def test_interactions_of_unknown_cells_are_refused(number, index, put, message, interaction_stack, tmp_path):
    interaction_stack[0].save(tmp_path / "whole")
    check_refused(read(tmp_path / "whole"), at("linear", "interactions", number, index, put=put), message, tmp_path)


@pytest.mark.parametrize(("name", "value"), [("codes_", 1e6), ("code_features_", 9)])
def test_coefficients_of_unknown_cells_are_refused(name, value, interaction_stack, tmp_path):
    interaction_stack[0].save(tmp_path / "whole")
    change = values(f"linear/{name}", lambda cells: np.append(cells[:-1], value).astype(cells.dtype))
    check_refused(read(tmp_path / "whole"), change, name, tmp_path)


def test_warm_starts_need_the_same_features(interaction):
    forest, X, y = interaction
    for before, after in (
        (copy.deepcopy(forest), "rates"),
        (rated_forest(categorical_encoding="sets").fit(X, y), "auto"),
    ):
        before.set_params(warm_start=True, n_estimators=20, categorical_encoding=after)
        with pytest.raises(ValueError, match=r"^warm_start: the existing trees read columns of many categories in"):
            before.fit(X, y)

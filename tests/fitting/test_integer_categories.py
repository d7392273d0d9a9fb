"""Columns of integers that are categories: how they are found, and the trees that read their target rates."""

import copy
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from aucforest import AUCForestClassifier, AUCStackingClassifier, AUCTreeClassifier, load
from aucforest.distributed import fit_out_of_core
from aucforest.fitting import integer_categories, on_disk
from aucforest.fitting.integer_categories import CountedRows, count_integers, merge_counts
from aucforest.fitting.target_rates import SMOOTHING
from aucforest.inspection import column_notes, explain, oob_permutation_importance
from aucforest.persistence.plain_values import labels_to_plain
from tests.estimators.test_model_files import at, check_refused, read
from tests.fitting.tables import make_accounts
from tests.reference import integer_categories as reference


def make_columns(**options):
    frame = make_accounts(**options).to_pandas()
    return frame[["x", "account", "age"]], frame.label


X, Y = make_columns()


def make_column(kind, seed, n=240, n_values=60):
    """Return integers and labels: categories, numbers with a smooth effect, both, without effect, and codes."""
    rng = np.random.default_rng(seed)
    n, n_values = {"ranges": (480, 120), "regions": (480, 300)}.get(kind, (n, n_values))
    values, effects = rng.integers(0, n_values, n), 3.0 * rng.normal(size=n_values)
    score = {
        "categories": effects[values],
        "smooth": 3.0 * np.sin(values / n_values * 4.0),
        "both": effects[values] + 0.4 * values,
        "some of both": effects[values] + 0.15 * values,
        "ranges": 4.0 * rng.normal(size=n_values)[values // 10] + effects[values] / 3.0,
        "regions": 4.0 * rng.normal(size=n_values)[values // 10],
        "nothing": np.zeros(n),
        "codes": np.zeros(n),
    }[kind]
    if kind == "codes":
        is_coded = rng.random(n) < 0.5
        values[is_coded] = rng.integers(95, 100, is_coded.sum())
        score = 3.0 * (values % 2) * is_coded
    return values, (score + rng.logistic(size=n) > np.median(score)).astype(np.int64)


@pytest.mark.parametrize(("kind", "widths"), [
    ("categories", {(1,)}), ("smooth", {()}), ("both", {(1,), (1, 10)}), ("some of both", {(1,)}), ("nothing", {()}),
    ("ranges", {(1, 10)}), ("regions", {(1, 10)}), ("codes", {()}),
])  # fmt: skip
def test_categories_are_found_by_the_definition(kind, widths, monkeypatch):
    columns = (make_column(kind, seed) for seed in range(4))
    assert {find_widths(*column, monkeypatch) for column in columns} == widths


def find_widths(values, labels, monkeypatch):
    """Return the widths of the ranges of integers that are categories, which must be those of the definition."""
    monkeypatch.setattr(integer_categories, "MOST_IN_SETS", 20)
    monkeypatch.setattr(integer_categories, "_N_LEFT_OUT", 5)
    constants = (getattr(integer_categories, name) for name in ("_NEIGHBORS", "_SMOOTHING", "_VALUE_SMOOTHING"))
    found = count_integers(values.astype(float), CountedRows.of(labels, int(labels.max()) + 1, 1)).find_widths()
    assert found == reference.find_widths(values, labels, 5, SMOOTHING.tolist(), *constants)
    return found


def test_effects_of_values_ranges_and_neighbors_are_told_apart_by_the_definition(monkeypatch):
    rng, found = np.random.default_rng(0), set()
    for _ in range(200):
        n_values, step = rng.choice([40, 120, 250]), rng.choice([1, 3, 7])
        index = np.minimum(rng.geometric(2.0 / n_values, 300), n_values) - 1
        effects = rng.normal(size=(2, n_values)) * rng.choice([0.0, 1.5, 4.0], (2, 1))
        score = effects[0, index] + effects[1, index * step // 10] + rng.logistic(size=300)
        score += rng.choice([0.0, 4.0]) * np.sin(index / n_values * 9.0)
        labels = np.searchsorted(np.quantile(score, [0.3, 0.8][: rng.integers(1, 3)]), score)
        found.add(find_widths(step * index - 150, np.unique(labels, return_inverse=True)[1], monkeypatch))
    assert {(), (1,), (1, 10)} <= found


@given(st.data())
def test_counts_of_parts_are_merged_to_those_of_all_rows(data):
    """Also if only a sample of the values is counted, and some rows are left out."""
    rng, n = np.random.default_rng(data.draw(st.integers(0, 1000))), data.draw(st.integers(0, 400))
    values = rng.integers(-200, 200, n).astype(float)
    values[rng.random(n) < 0.1] = np.nan
    rows = CountedRows(rng.integers(-1, 3, n), 3, max_values=data.draw(st.sampled_from([20, 100, 1000])))
    whole, cut = count_integers(values, rows), data.draw(st.integers(0, n))
    parts = zip(np.split(values, [cut]), np.split(rows.labels, [cut]))
    merged = merge_counts(*(count_integers(part, rows._replace(labels=labels)) for part, labels in parts))
    np.testing.assert_array_equal(merged.values, whole.values)
    np.testing.assert_array_equal(merged.counts, whole.counts)
    assert merged.shift == whole.shift
    assert len(whole.values) <= rows.max_values
    for value, counts in zip(whole.values, whole.counts):
        assert counts.tolist() == [np.count_nonzero((values == value) & (rows.labels == k)) for k in range(3)]
    if rows.max_values == 1000:
        assert len(whole.values) == len(np.unique(values[(rows.labels >= 0) & ~np.isnan(values)]))


@pytest.mark.parametrize("value", [0.5, np.inf, -np.inf, 2.0**60])
@pytest.mark.parametrize("row", [3, 299])
def test_other_numbers_than_integers_are_not_counted(value, row):
    values, rows = np.arange(300.0), CountedRows.of(np.zeros(300, dtype=np.int64), 2, 1)
    assert count_integers(values, rows) is not None
    values[row] = value
    counted = count_integers(values, rows)
    assert counted is None
    assert merge_counts(counted, count_integers(np.arange(300.0), rows)) is None


@pytest.fixture(scope="module")
def forest():
    return AUCForestClassifier(40, oob_score=True, random_state=0).fit(X, Y)


def categories(model):
    """Return the integers that are the categories of the only such column."""
    (values,) = (values for feature, values in model.categories_.items() if feature >= model.n_features_in_)
    return values


def find(X, y=Y, sample_weight=None, groups=None, **params):
    """Return the columns of integers that are categories in a small forest."""
    return list(AUCForestClassifier(5, random_state=0, **params).fit(X, y, sample_weight, groups=groups).expanded_)


def make_customers():
    """Return a frame of more than 254 customers, and labels."""
    rng = np.random.default_rng(0)
    customer, effects = np.minimum(rng.geometric(0.005, 4000), 500), 3.0 * rng.normal(size=501)
    y = effects[customer] + rng.logistic(size=4000) > 0.0
    return pd.DataFrame({"x": rng.normal(size=4000), "customer": 3 * customer - 700}), y


@pytest.mark.parametrize("make", [make_customers, partial(make_columns, n_classes=3)])
def test_rates_of_integers_are_those_of_the_same_categories(make):
    """Trees of rates do not split on the column itself, so the forests are equal to the last bit."""
    X, y = make()
    options = {"categorical_encoding": "rates", "oob_score": True, "random_state": 0}
    forest = AUCForestClassifier(40, **options).fit(X, y)
    expected = AUCForestClassifier(40, **options, categorical_features=[X.columns[1]]).fit(X, y)
    assert (list(forest.categories_), list(forest.expanded_)) == ([X.shape[1]], [1])
    assert forest.oob_score_ == expected.oob_score_
    np.testing.assert_array_equal(forest.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(categories(forest), expected.categories_[1])  # if many, the most frequent first
    for dtype in (np.float64, np.float32):
        of_matrix = AUCForestClassifier(40, **options).fit(X.to_numpy(dtype), y)
        np.testing.assert_array_equal(categories(of_matrix), categories(forest))
        totals, expected_totals = (model.target_rates_.tables[0].totals for model in (of_matrix, forest))
        np.testing.assert_array_equal(totals, expected_totals)


def test_out_of_bag_scores_choose_rates(forest):
    numbers = AUCForestClassifier(40, categorical_encoding="sets", oob_score=True, random_state=0).fit(X, Y)
    assert list(numbers.expanded_) == []
    assert numbers.oob_score_ < forest.oob_score_ - 0.05
    assert list(forest.split_features_) == ["x", "account", "age", "account: category", "account: rate"]
    assert forest.encodings_.count("rates") > 20


def test_trees_of_sets_read_the_number_and_its_categories():
    """They are equal to the trees of a forest that is fitted to the numbers and to categories, as two columns."""
    options = {"criterion": "gini", "bootstrap": False, "shrinkage": None, "calibration": None, "random_state": 0}
    mixed = AUCForestClassifier(24, categorical_encoding=["sets", "rates"], **options).fit(X, Y)
    both = X.assign(category=X.account.astype("category"))
    both = AUCForestClassifier(24, categorical_encoding="sets", **options).fit(both, Y)
    pairs = [pair for *pair, encoding in zip(mixed.trees_, both.trees_, mixed.encodings_) if encoding == "sets"]
    assert len(pairs) == 12
    for feature in (1, 3):
        assert any(feature in tree.feature for tree, _ in pairs)
    for tree, expected in pairs:
        np.testing.assert_array_equal(tree.threshold, expected.threshold)
        np.testing.assert_array_equal(tree.feature, expected.feature)


@pytest.mark.parametrize(("n_values", "is_found"), [(50, False), (60, True)])
def test_columns_of_many_values_are_searched(n_values, is_found):
    rng = np.random.default_rng(0)
    values, effects = rng.integers(0, n_values, 1000), 1.5 * rng.normal(size=n_values)
    y = effects[values] + rng.logistic(size=1000) > 0
    assert find(np.column_stack((values, rng.normal(size=1000))), y) == [0] * is_found


def test_columns_of_text_stay_categories():
    """Columns of text are not searched for integers, although their categories are encoded as integers."""
    shop = np.char.add("shop ", np.random.default_rng(0).integers(0, 90, len(X)).astype(str))
    table, options = X[["account", "age"]].assign(shop=shop), {"categorical_encoding": "rates", "random_state": 0}
    forest = AUCForestClassifier(20, **options).fit(table, Y)
    assert list(forest.categories_) == [2, 3]
    assert list(forest.expanded_) == [0]
    expected = AUCForestClassifier(20, **options, categorical_features=["account", "shop"])
    in_order = table[["age", "shop", "account"]]
    np.testing.assert_array_equal(forest.predict_proba(table), expected.fit(in_order, Y).predict_proba(in_order))


def test_tables_that_would_take_much_memory_are_not_searched():
    labels = np.zeros(10, dtype=np.int64)
    assert CountedRows.of(labels, 2, 1).max_values == 2**14
    assert CountedRows.of(labels, 2, 2**20 // 400).max_values == 200
    assert CountedRows.of(labels, 2, 2**20 // 400 + 1) is None
    assert CountedRows.of(labels, 10_000, 1) is None
    wide = np.hstack((X[["account"]], np.zeros((len(X), 3000))))
    assert (find(wide[:, :9]), find(wide)) == ([0], [])


def test_sparse_rows_are_not_searched():
    dense = X[["x", "account"]].fillna(0).to_numpy()
    sparse = sp.csr_matrix(dense)
    assert find(sparse) == []
    # But they can be predicted.
    forest = AUCForestClassifier(5, warm_start=True, random_state=0).fit(dense, Y)
    stack = AUCStackingClassifier(AUCForestClassifier(40), random_state=0).fit(dense, Y)
    for model in (forest, stack):
        assert list(model.expanded_) == [1]
        np.testing.assert_array_equal(model.predict_proba(sparse), model.predict_proba(dense))
        np.testing.assert_array_equal(model.encode(sparse), model.encode(dense))
    with pytest.raises(ValueError, match=r"warm_start: X is sparse, but the existing trees read target rates"):
        forest.set_params(n_estimators=6).fit(sparse, Y)


def test_copied_rows_are_no_evidence():
    """In memory, and out of core, where the copies of a row are in several batches."""
    rng = np.random.default_rng(0)
    X = np.stack((rng.integers(0, 10_000, 1500), rng.integers(0, 10_000, 1500), rng.normal(size=1500)), axis=1)
    y = (X[:, 0] / 2000 + rng.logistic(size=1500) > 6).astype(int)
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    rows = rng.permutation(np.append(negative, rng.choice(positive, len(negative))))
    X, y = X[rows], y[rows]
    assert find(X, y) == []
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_disk, "_BATCH_CELLS", 400)
        assert list(fit_out_of_core(AUCForestClassifier(5, random_state=0), table, "y").expanded_) == []
    # If rows with the same integers differ in another column, they are not copies.
    X[:, 2] = rng.normal(size=len(X))
    assert find(X, y) == [0, 1]


def test_columns_that_are_not_searched():
    for params in ({"categorical_encoding": "sets"}, {"monotonic_cst": [0, 1, 0]}, {"categorical_features": [1]}):
        assert find(X, **params) == []
    assert not AUCTreeClassifier(random_state=0).fit(X, Y).expanded_
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(X.account.fillna(0), unit="D")
    assert AUCForestClassifier(5).fit(pd.DataFrame({"day": days}), Y).target_rates_ is None
    # If the rows of an account are a group, its labels do not help to predict other groups.
    assert find(X, groups=X.account.fillna(-1)) == []
    assert find(X, groups=make_accounts().to_pandas().customer) == [1]


def test_rows_of_weight_0_do_not_count():
    assert find(X, sample_weight=np.where(np.arange(len(X)) < 200, 1.0, 0.0)) == []
    weights = np.where(X.account == X.account.max(), 0.0, 1.0)
    forest = AUCForestClassifier(5, random_state=0).fit(X, Y, weights)
    np.testing.assert_array_equal(categories(forest), np.unique(X.account[weights > 0].dropna()))


def test_numbers_are_not_found():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n, age = 2000, rng.integers(18, 300, 2000)
        numbers = np.stack((age, rng.integers(0, 500, n), rng.permutation(n), rng.poisson(200, n)), axis=1)
        y = 0.05 * np.abs(age - 150) + rng.logistic(size=n) > 5.0
        assert find(numbers.astype(float), y) == []


@pytest.mark.parametrize(("with_regions", "encodings"), [(False, ["sets", "rates"]), (True, ["rates"])])
def test_a_stack_uses_them_in_all_members(with_regions, encodings):
    X, y = make_columns(with_regions=with_regions)
    members = AUCStackingClassifier(AUCForestClassifier(40), random_state=0).fit(X, y).members_
    assert {"forest", "residual", "boosted", "linear"} <= members.keys()
    for name in ("residual", "boosted"):
        np.testing.assert_array_equal(members[name].categories_[3], np.unique(X.account.dropna()))
        assert list(members[name].categories_) == [3, 4][: 1 + with_regions]
    assert members["linear"].categorical == (3, 4)[: 1 + with_regions]
    assert members["boosted"].categorical_encoding == encodings


def test_unknown_and_missing_numbers_have_the_rate_of_all(forest):
    rate = forest.encode(X.assign(account=np.nan))["account: rate"].to_numpy()
    for unknown in (10**6, 1000.5, -1000, np.inf):
        np.testing.assert_array_equal(forest.encode(X.assign(account=unknown))["account: rate"], rate)
    np.testing.assert_array_equal(forest.encode(X)["account: rate"] == rate, X.account.isna())


@pytest.fixture(scope="module")
def with_regions():
    return AUCForestClassifier(40, warm_start=True, random_state=0).fit(*make_columns(with_regions=True))


def test_ranges_of_neighboring_integers_are_categories(with_regions):
    """An unseen integer has the category of its range, or else of the nearest one."""
    names = ["x", "account", "age", "account: category", "account: range of 10"]
    names += ["account: rate", "account: range of 10: rate"]
    assert list(with_regions.split_features_) == names
    np.testing.assert_array_equal(with_regions.categories_[4], np.arange(100, 140))
    rows = pd.DataFrame({"x": 0.5, "account": [1004, 1007.0, 1010, 1400, np.nan], "age": 30})
    encoded = with_regions.encode(rows)
    np.testing.assert_array_equal(encoded["account: range of 10"], [0, 0, 1, 39, np.nan])
    np.testing.assert_array_equal(encoded["account: category"], [4, np.nan, 5, np.nan, np.nan])
    note = column_notes(rows[:2], model=with_regions)[-1]
    assert note.startswith("column 'account': 1 of 2 rows (50 %) have a category that training has not seen")
    assert note.endswith("it counts as missing, except for its number and range of 10")
    explained = explain(with_regions, rows)
    assert list(explained.feature_names) == ["x", "account", "age"]
    assert explained.categories[4][:2] == ["1000 to 1009", "1010 to 1019"]
    assert with_regions.feature_importances_[1] == pytest.approx(with_regions.split_importances_[[1, 3, 4, 5]].sum())


@pytest.mark.filterwarnings("ignore:warm_start. shrinkage, mixture and calibration stay:UserWarning")
def test_a_warm_start_keeps_ranges(with_regions):
    """The rows are few, and have other integers."""
    grown = copy.deepcopy(with_regions).set_params(n_estimators=45).fit(X[:90], Y[:90])
    assert (grown.expanded_, len(grown)) == (with_regions.expanded_, 45)


@pytest.mark.filterwarnings("ignore:warm_start. shrinkage, mixture and calibration stay:UserWarning")
def test_a_warm_start_adds_trees_that_read_the_same(forest):
    grown = AUCForestClassifier(20, oob_score=True, warm_start=True, random_state=0).fit(X, Y)
    grown.set_params(n_estimators=40).fit(X, Y)
    np.testing.assert_array_equal(categories(grown), categories(forest))
    # The rows of a warm start may have other integers, and may be too few to find whether these are categories.
    fewer = grown.set_params(n_estimators=45, oob_score=False).fit(X[:90].assign(age=X.age[:90] + 1), Y[:90])
    assert (len(fewer), list(fewer.expanded_)) == (45, [1])
    numbers = AUCForestClassifier(20, warm_start=True, random_state=0).fit(X[:90], Y[:90])
    assert list(numbers.expanded_) == list(numbers.set_params(n_estimators=25).fit(X, Y).expanded_) == []


@pytest.mark.parametrize("out_of_core", [False, True])
def test_a_warm_start_needs_integers_again(out_of_core):
    forest = AUCForestClassifier(5, warm_start=True, date_parts=["month"], random_state=0).fit(X, Y)
    forest.set_params(n_estimators=6)
    days = pd.to_timedelta(X.account, unit="D")
    for values in (days, pd.Timestamp("2024-01-01") + days, X.account.astype("str")):
        rows = X.assign(account=values)
        with pytest.raises(ValueError, match=r"^warm_start: column 1 had integers in the previous fit"):
            fit_out_of_core(forest, pa.table(rows.assign(y=Y)), "y") if out_of_core else forest.fit(rows, Y)
    with pytest.raises(ValueError, match=r"^warm_start: monotonic_cst of column 1 must be 0"):
        forest.set_params(monotonic_cst={"account": 1}).fit(X, Y)


def test_bad_input_is_refused_as_by_other_forests(forest):
    unnamed = AUCForestClassifier(5, random_state=0).fit(X.to_numpy(), Y)
    assert unnamed.expanded_
    for rows, error, message in (
        (X.to_numpy().astype(complex), ValueError, "Complex data not supported"),
        (X.to_numpy()[:0], ValueError, r"shape=\(0, 3\)"),
    ):
        with pytest.raises(error, match=message):
            unnamed.predict(rows)


def test_permuted_columns_are_permuted_with_their_rates(forest):
    """The target rates of a permuted column are computed from the permuted numbers, out of bag and for new rows."""
    importance = oob_permutation_importance(forest, X, Y, n_repeats=2, random_state=0)
    assert np.argmax(importance.importances_mean) == 1
    explained = explain(forest, X[:20])
    assert list(explained.feature_names) == ["x", "account", "age"]
    log_odds = special.logit(forest.predict_proba(X[:20])[:, 1])
    np.testing.assert_allclose(explained.values.sum(axis=1) + explained.base_values, log_odds, atol=1e-9)


@pytest.mark.parametrize(("interact", "first", "step", "with_ranges"), [
    (False, 0.0, 1.0, False), (True, -1000.0, 10.0, False), (False, -100.0, 1.0, True),
])  # fmt: skip
def test_files_and_exports(tmp_path, interact, first, step, with_ranges):
    onnxruntime, rng = pytest.importorskip("onnxruntime"), np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(3000, 2)), columns=["x", "other"])
    account, effects = rng.integers(0, 200, 3000), rng.normal(size=(200, 2))
    X["account"], effect = first + step * account, effects[account]
    if with_ranges:
        effect = 2.0 * effects[account // 10] + effect / 3.0
    y = 1.5 * effect[:, 0] + 3.0 * interact * effect[:, 1] * np.sign(X.x) + rng.logistic(size=3000) > 1.0
    stack = AUCStackingClassifier(AUCForestClassifier(40), random_state=0).fit(X, y)
    assert list(stack.expanded_) == [2]
    assert ("account: range of 10" in stack.split_features_) == with_ranges
    assert bool(stack.members_["linear"].interactions) == interact or with_ranges
    rows = X.copy()
    rows.iloc[:30, 0], rows.iloc[20:50, -1], rows.iloc[50:60, -1] = np.nan, np.nan, 10_000.0
    rows.iloc[60:70, -1] += 0.5
    rows.iloc[70:80, -1] = -0.5
    for model in (stack, stack.members_["forest"]):
        expected = model.predict_proba(rows)
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(rows), expected)
        model.to_onnx(tmp_path / "model.onnx")
        session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
        _, proba = session.run(None, {"X": model.encode(rows).to_numpy()})
        np.testing.assert_allclose(proba, expected, atol=1e-6)


@pytest.mark.parametrize(("integers", "message"), [
    ([[1, 1, 7]], "the ranges of integers are unknown"), ([[1, 1, 10.0]], "the ranges of integers are unknown"),
    ([[1]], "the ranges of integers are unknown"), ([[1, 10, 1]], "the ranges of integers are unknown"),
    ([[False, 1, 10]], "feature False of dates, integers or text is unknown or repeated"),
    ([[1, True, 10]], "the ranges of"), ([[]], r"feature \[\] of dates, integers or text is unknown"),
    ([1], "there are categories of feature 4, but 4 features"),
])  # fmt: skip
def test_damaged_ranges_are_refused(with_regions, tmp_path, integers, message):
    with_regions.save(tmp_path / "model")
    contents = read(tmp_path / "model")
    assert contents[1]["integers"] == [[1, 1, 10]]
    check_refused(contents, at("integers", put=integers), message, tmp_path)


@pytest.mark.parametrize("change", [
    lambda values: [values[0], *values[:-1]], lambda values: values[::-1], lambda values: [],
    lambda values: [value + 0.5 for value in values], lambda values: list(map(str, values)),
    lambda values: [*values[:-1], 2**60], lambda values: [-(2**63), *values[1:]],
    lambda values: [*range(254), *range(200, 300)],
])  # fmt: skip
def test_damaged_categories_of_integers_are_refused(forest, tmp_path, change):
    forest.save(tmp_path / "model")
    contents = read(tmp_path / "model")
    ((_, labels),) = contents[1]["categories"]
    damaged = at("categories", 0, 1, put=labels_to_plain(np.array(change(labels["values"]))))
    check_refused(contents, damaged, "the categories of column 1 are not integers up to", tmp_path)


def test_only_numbers_have_integers(forest, tmp_path):
    forest.save(tmp_path / "model")
    contents = read(tmp_path / "model")
    for columns, message in (
        ([3], "feature 3 of dates, integers or text is unknown or repeated"),
        ([1, 1], "feature 1 of dates, integers or text is unknown or repeated"),
        ([], "there are categories of feature 3, but 3 features"),
    ):
        check_refused(contents, at("integers", put=columns), message, tmp_path)
    check_refused(contents, at("dates", put=[[1, ["time"], None]]), "feature 1 of dates, integers or text is", tmp_path)
    check_refused(
        contents, at("categories", 0, 0, put=1), "there are categories of feature 1, which is a number", tmp_path
    )
    check_refused(contents, at("categories", put=[]), "the categories of column 1 are not integers", tmp_path)


def test_unknown_numbers_have_a_note(forest):
    assert column_notes(X, model=forest) == []
    (note,) = column_notes(X.assign(account=np.arange(len(X)) % 2), model=forest)
    assert note.startswith("column 'account': 1,800 of 1,800 rows (100 %) have a category that training has not seen")

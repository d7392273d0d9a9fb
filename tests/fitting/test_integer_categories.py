"""Columns of integers that are categories: how they are found, and that forests use them as categories."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest import AUCForestClassifier, AUCStackingClassifier, AUCTreeClassifier, load
from aucforest.fitting import integer_categories
from aucforest.fitting.integer_categories import CountedRows, count_integers, merge_counts
from tests.fitting.tables import make_accounts
from tests.reference import integer_categories as reference

FOUND = r"integers that are used as categories.*categorical_features=\"from_dtype\""


def make_column(kind, seed, n=240, n_values=60):
    """Return integers and labels: categories, numbers with a smooth effect, both, numbers without effect, and codes."""
    rng = np.random.default_rng(seed)
    values, effects = rng.integers(0, n_values, n), 3.0 * rng.normal(size=n_values)
    score = {
        "categories": effects[values],
        "smooth": 3.0 * np.sin(values / n_values * 4.0),
        "both": effects[values] + 0.4 * values,
        "nothing": np.zeros(n),
        "codes": np.zeros(n),
    }[kind]
    if kind == "codes":
        is_coded = rng.random(n) < 0.5
        values[is_coded] = rng.integers(95, 100, is_coded.sum())
        score = 3.0 * (values % 2) * is_coded
    return values, (score + rng.logistic(size=n) > np.median(score)).astype(np.int64)


@pytest.mark.parametrize("kind", ["categories", "smooth", "both", "nothing", "codes"])
def test_categories_are_found_by_the_definition(kind, monkeypatch):
    monkeypatch.setattr(integer_categories, "MOST_IN_SETS", 5)
    neighbors, found = integer_categories._NEIGHBORS, []
    for seed in range(4):
        values, labels = make_column(kind, seed)
        counts = count_integers(values.astype(float), CountedRows.of(labels, 2, 1))
        smoothings = integer_categories.SMOOTHING.tolist()
        expected = reference.are_categories(values.tolist(), labels.tolist(), 5, smoothings, neighbors)
        assert counts.are_categories() == expected
        found.append(expected)
    assert all(found) if kind == "categories" else not any(found)


@given(st.data())
def test_counts_of_parts_are_merged_to_those_of_all_rows(data):
    """Also if only a sample of the values is counted, and some rows are left out."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    n = data.draw(st.integers(0, 400))
    values = rng.integers(-200, 200, n).astype(float)
    values[rng.random(n) < 0.1] = np.nan
    rows = CountedRows(rng.integers(-1, 3, n), 3, max_values=data.draw(st.sampled_from([20, 100, 1000])))
    whole = count_integers(values, rows)
    cut = data.draw(st.integers(0, n))
    pieces = (slice(0, cut), slice(cut, n))
    merged = merge_counts(*(count_integers(values[piece], rows.part(piece)) for piece in pieces))
    np.testing.assert_array_equal(merged.values, whole.values)
    np.testing.assert_array_equal(merged.counts, whole.counts)
    assert merged.shift == whole.shift
    assert len(whole.values) <= rows.max_values
    for value, counts in zip(whole.values, whole.counts):
        of_value = [np.count_nonzero((values == value) & (rows.labels == k)) for k in range(3)]
        assert counts.tolist() == of_value
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


@pytest.mark.parametrize("n_classes", [2, 3])
def test_integers_are_used_as_the_same_categories(n_classes):
    frame = make_accounts(n_classes=n_classes).to_pandas()
    X, y = frame[["x", "account", "age"]], frame.label
    with pytest.warns(UserWarning, match=f"X: column 'account': {FOUND}"):
        forest = AUCForestClassifier(40, oob_score=True, random_state=0).fit(X, y)
    expected = AUCForestClassifier(40, categorical_features=["account"], oob_score=True, random_state=0).fit(X, y)
    assert list(forest.categories_) == [1]
    assert forest.categories_[1].dtype == np.int64
    assert forest.oob_score_ == expected.oob_score_
    np.testing.assert_array_equal(forest.predict_proba(X), expected.predict_proba(X))
    # They are also categories in arrays, of which float32 is not changed.
    for dtype in (np.float64, np.float32):
        matrix = X.to_numpy(dtype)
        before = matrix.copy()
        with pytest.warns(UserWarning, match=f"X: column 1: {FOUND}"):
            of_matrix = AUCForestClassifier(40, random_state=0).fit(matrix, y)
        np.testing.assert_array_equal(matrix, before)
        np.testing.assert_array_equal(of_matrix.categories_[1], forest.categories_[1])
    numbers = AUCForestClassifier(40, categorical_features="from_dtype", oob_score=True, random_state=0).fit(X, y)
    assert numbers.categories_ == {}
    assert numbers.oob_score_ < forest.oob_score_ - 0.05


@pytest.mark.parametrize(
    "params",
    [
        {"categorical_features": "from_dtype"},
        {"categorical_features": None},
        {"categorical_features": []},
        {"categorical_encoding": "sets"},
        {"monotonic_cst": {"account": 1}},
    ],
)
def test_integers_stay_numbers(params):
    frame = make_accounts().to_pandas()
    forest = AUCForestClassifier(5, random_state=0, **params).fit(frame[["x", "account", "age"]], frame.label)
    assert forest.categories_ == {}


def test_a_tree_has_no_target_rates_and_reads_numbers():
    frame = make_accounts().to_pandas()
    tree = AUCTreeClassifier(categorical_features="auto", random_state=0).fit(frame[["x", "account"]], frame.label)
    assert tree.categories_ == {}


def test_dates_are_no_categories():
    frame = make_accounts().to_pandas()
    days = pd.DataFrame({"day": pd.Timestamp("2020-01-01") + pd.to_timedelta(frame.account.fillna(0), unit="D")})
    assert AUCForestClassifier(5, random_state=0).fit(days, frame.label).categories_ == {}


def test_rows_of_a_group_say_nothing_about_each_other():
    """Rows of an account are alike, but they are one group, so the column says nothing about other groups."""
    frame = make_accounts().to_pandas()
    X, groups = frame[["x", "account", "age"]], frame.account.fillna(-1)
    assert AUCForestClassifier(5, random_state=0).fit(X, frame.label, groups=groups).categories_ == {}
    with pytest.warns(UserWarning, match=FOUND):
        assert list(AUCForestClassifier(5, random_state=0).fit(X, frame.label, groups=frame.customer).categories_) == [
            1
        ]


def test_rows_of_weight_0_do_not_count():
    frame = make_accounts().to_pandas()
    X, weights = frame[["x", "account", "age"]], np.ones(len(frame))
    weights[200:] = 0.0
    assert AUCForestClassifier(5, random_state=0).fit(X, frame.label, weights).categories_ == {}


def test_numbers_without_categories_are_not_found():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, age = 2000, rng.integers(18, 300, 2000)
        X = np.stack((age, rng.integers(0, 500, n), rng.permutation(n), rng.poisson(200, n)), axis=1).astype(float)
        y = 0.05 * np.abs(age - 150) + rng.logistic(size=n) > 5.0
        assert AUCForestClassifier(1, random_state=0).fit(X, y).categories_ == {}


def test_a_stack_warns_once_and_all_members_read_the_same_features():
    frame = make_accounts().to_pandas()
    X = frame[["x", "account", "age"]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stack = AUCStackingClassifier(AUCForestClassifier(40), random_state=0).fit(X, frame.label)
    assert len([warning for warning in caught if "used as categories" in str(warning.message)]) == 1
    assert {"forest", "residual", "boosted", "linear"} <= stack.members_.keys()
    for name in ("residual", "boosted"):
        np.testing.assert_array_equal(stack.members_[name].categories_[1], stack.categories_[1])
    assert stack.members_["linear"].categorical == (1,)


@pytest.mark.filterwarnings(f"ignore:.*{FOUND}:UserWarning")
def test_such_forests_are_saved_exported_and_grown_further(tmp_path):
    frame = make_accounts().to_pandas()
    X = frame[["x", "account", "age"]]
    forest = AUCForestClassifier(40, warm_start=True, random_state=0).fit(X, frame.label)
    expected = forest.predict_proba(X)
    forest.save(tmp_path / "forest")
    np.testing.assert_array_equal(load(tmp_path / "forest").predict_proba(X), expected)
    np.testing.assert_array_equal(forest.predict_proba(X.astype({"x": np.float64, "account": "Int64"})), expected)
    encoded = forest.to_sklearn()
    assert encoded.n_features_in_ == forest.encode(X).shape[1]
    forest.set_params(n_estimators=45).fit(X, frame.label)
    assert len(forest) == 45
    unseen = X.assign(account=10**6)
    np.testing.assert_array_equal(forest.predict_proba(unseen), forest.predict_proba(X.assign(account=np.nan)))
    with pytest.raises(ValueError, match="column 'account' has values such as 'c1', but had values such as"):
        forest.predict(X.assign(account="c1"))

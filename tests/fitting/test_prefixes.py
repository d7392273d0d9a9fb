"""First characters or digits that are categories: how they are found, and the forests that read them."""

import copy

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from aucforest import AUCForestClassifier, AUCStackingClassifier, load
from aucforest.cli._outputs import describe_features
from aucforest.columns.categorical import Factor
from aucforest.distributed import fit_out_of_core
from aucforest.fitting import integer_categories, on_disk, prefixes
from aucforest.fitting.integer_categories import CountedRows, merge_counts
from aucforest.fitting.prefixes import count_categories, find_length
from aucforest.fitting.target_rates import SMOOTHING
from aucforest.inspection import column_notes, explain, oob_permutation_importance
from aucforest.inspection.models import range_names_of
from tests.estimators.data import assert_same_fit
from tests.estimators.test_model_files import at, check_refused, read
from tests.fitting.tables import make_accounts
from tests.reference import prefixes as reference
from tests.reference import target_rates

FRAME = make_accounts(with_regions=True).to_pandas()
NUMBERS = FRAME.account
BY_NAME = {"categorical_features": ["account"]}
FRAME["account"] = FRAME.account.map("{:06.0f}".format).where(FRAME.account.notna(), None)
X, Y = FRAME[["x", "account", "age"]], np.array(FRAME.label.tolist())
NUMBERED = X.assign(account=NUMBERS)


def find(X, y=Y, sample_weight=None, groups=None, **params):
    """Return the columns whose first characters or digits are categories, and the numbers of characters or widths."""
    forest = AUCForestClassifier(5, random_state=0, **params).fit(X, y, sample_weight, groups=groups)
    return {feature: column.sizes[0] for feature, column in forest.expanded_.items()}


@pytest.fixture(scope="module")
def forest():
    return AUCForestClassifier(40, oob_score=True, warm_start=True, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def integers():
    return AUCForestClassifier(40, oob_score=True, warm_start=True, random_state=0, **BY_NAME).fit(NUMBERED, Y)


def test_first_characters_are_found_by_the_definition(monkeypatch):
    monkeypatch.setattr(prefixes, "MOST_IN_SETS", 10)
    found, rng = set(), np.random.default_rng(0)
    for seed in range(60):
        digits, n_classes = rng.integers(0, 4, (rng.choice([20, 60]), 4)).astype(str), rng.integers(2, 4)
        texts = ["x" * (seed % 30) + "".join(row[: rng.integers(3, 5)]) + "\0" * (seed % 2) for row in digits.tolist()]
        row = rng.integers(0, len(texts), 300)
        effects = {seed % 30 + n: rng.normal(size=(len(texts), n_classes)) for n in (1, 2, 30)}
        first = {n: np.unique([text[:n] for text in texts], return_inverse=True)[1] for n in effects}
        score = sum(rng.choice([0.0, 2.5]) * effects[n][first[n]] for n in effects)[row]
        labels = np.argmax(score + rng.gumbel(size=score.shape), axis=1)
        labels = np.unique(labels, return_inverse=True)[1]
        rows, column = CountedRows.of(labels, int(labels.max()) + 1, 1), Factor(texts, row)
        parts = [rows._replace(labels=labels[:100]), rows._replace(labels=labels[100:])]
        counts = merge_counts(
            *(count_categories(column, i, part) for i, part in zip((range(100), range(100, 300)), parts))
        )
        np.testing.assert_array_equal(counts.counts, count_categories(column, None, rows).counts)
        length = find_length(sorted({texts[i] for i in row}), counts)
        expected = reference.find_length(
            [texts[i] for i in row], labels, SMOOTHING.tolist(), integer_categories._VALUE_SMOOTHING
        )
        assert length == expected
        found.add(max(0, length - seed % 30))
    assert {0, 1, 2} <= found


def test_ranges_are_found_by_the_definition(monkeypatch):
    monkeypatch.setattr(integer_categories, "MOST_IN_SETS", 10)
    found, rng = set(), np.random.default_rng(0)
    for _ in range(60):
        numbers = rng.choice(np.arange(-100, 300), 60, replace=False)
        row, first = rng.integers(0, 60, 300), {width: numbers // width + 10 for width in (10, 100)}
        score = sum(rng.choice([0.0, 2.5]) * rng.normal(size=50)[first[width]] for width in first)[row]
        values, labels = numbers[row], (score + rng.logistic(size=300) > 0).astype(np.int64)
        width = count_categories(values, None, CountedRows.of(labels, 2, 1)).find_range()
        smoothings = SMOOTHING.tolist(), integer_categories._VALUE_SMOOTHING
        assert width == reference.find_range(values.tolist(), labels, *smoothings)
        found.add(width)
    assert found >= {0, 10, 100}


def test_only_text_that_occurs_is_counted():
    rows = CountedRows.of(np.array([0, 1, 1]), 2, 1)
    for values in (["a", np.nan, 5], ["a", None], ["a", "b"]):
        assert count_categories(Factor(values, np.array([0, 1, 0])), None, rows).counts.max(initial=0) == 1
    two_rows = rows._replace(labels=rows.labels[:2])
    assert len(count_categories(Factor(["a", 5], np.array([0, 1, 0])), np.array([0, 2]), two_rows).values) == 1
    assert count_categories(Factor(["a", 5], np.array([0, 1, 0])), None, rows) is None
    assert len(count_categories(np.full(3, np.nan), None, rows).values) == 0


def test_only_integers_that_occur_are_counted():
    rows = CountedRows.of(np.array([0, 1, 1]), 2, 1)
    for column in (np.array([7.0, -1, 7]), np.array([7, -1, 7]), Factor([7, -1.0, 0.5], np.array([0, 1, 0]))):
        counted = count_categories(column, None, rows)
        np.testing.assert_array_equal((counted.values, *counted.counts.T), [[-1, 7], [0, 1], [1, 1]])
    for values in ([7, 0.5], [7, 2**53 + 1], [7, -(2**60)], [7, "a"], [7, "8"], [7, np.inf]):
        assert count_categories(Factor(values, np.array([0, 1, 0])), None, rows) is None
    for dtype in (np.int64, np.uint64):
        assert count_categories(np.array([7, 2**53 + 1, 7], dtype=dtype), None, rows) is None
    for flags in (Factor([True, 0], np.array([0, 1, 0])), np.array([True, False, True])):  # True is equal to 1
        assert count_categories(flags, None, rows).values.tolist() == [0, 1]


def test_of_many_texts_a_sample_is_counted(monkeypatch):
    monkeypatch.setattr(integer_categories, "_MOST_VALUES", 120)
    monkeypatch.setattr(integer_categories, "_LEAST_VALUES", 100)
    assert find(X) == {1: 5}


def test_unseen_text_with_known_first_characters(forest):
    names = ["x", "account", "age", "account: first 5 characters", "account: rate", "account: first 5 characters: rate"]
    assert list(forest.split_features_) == names
    assert forest.categories_[3].tolist() == [f"{region:05d}" for region in range(100, 140)]
    rows = pd.DataFrame({"x": 0.5, "account": ["001004", "00100X", "001010", "00", None, "99"], "age": 30})
    encoded = forest.encode(rows)
    np.testing.assert_array_equal(encoded["account: first 5 characters"], [0, 0, 1, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(encoded["account"], [4, np.nan, 5, np.nan, np.nan, np.nan])
    note = "has not seen ('00100X'); it counts as missing, except for its first 5 characters"
    assert column_notes(rows[:2], model=forest)[-1].endswith(note)
    assert list(explain(forest, rows).feature_names) == ["x", "account", "age"]
    assert forest.feature_importances_[1] == pytest.approx(forest.split_importances_[[1, 3, 4, 5]].sum())
    assert np.argmax(oob_permutation_importance(forest, X, Y, n_repeats=2, random_state=0).importances_mean) == 1


def test_rates_are_smoothed_towards_those_of_first_characters(forest):
    table, by_prefix = forest.target_rates_.tables
    assert (table.feature, table.prior, by_prefix.feature, by_prefix.prior) == (1, 3, 3, -1)
    labels, frequencies = pd.Series((forest.classes_[1] == Y).astype(int)), forest.target_rates_.frequencies
    by_text, of_prefix = labels.groupby(X.account).agg(list), labels.groupby(X.account.str[:5]).agg(list)

    def choose(cells, priors):
        return max(SMOOTHING.tolist(), key=lambda s: target_rates.leave_one_out(cells, priors, s))

    smoothing = choose(of_prefix, np.tile(frequencies, (len(of_prefix), 1)))
    others = [
        np.subtract(*[np.bincount(of, minlength=2) for of in (of_prefix[t[:5]], by_text[t])]) for t in by_text.index
    ]
    priors = [(counts + smoothing * frequencies) / (counts.sum() + smoothing) for counts in others]
    assert (by_prefix.smoothing, table.smoothing) == (smoothing, choose(by_text, priors))
    assert not {1, 3, 5} & {
        f for tree, e in zip(forest.trees_, forest.encodings_) if e == "rates" for f in tree.feature
    }
    rate, of_prefix = forest.encode(X.assign(account=X.account.str[:5] + "X")).iloc[:, 4:].to_numpy().T
    np.testing.assert_array_equal(rate, of_prefix)


def test_they_rank_better(forest):
    sets = AUCForestClassifier(40, categorical_encoding="sets", oob_score=True, random_state=0).fit(X, Y)
    assert forest.oob_score_ > sets.oob_score_ + 0.01


@pytest.mark.parametrize(("account", "params"), [
    (NUMBERS.astype("Int64").astype("category"), {}), (NUMBERS.astype("Int64"), BY_NAME), (NUMBERS, BY_NAME),
    (NUMBERS.astype("Int64").astype(object), BY_NAME),
])  # fmt: skip
def test_integers_and_text_with_the_same_first_digits_are_the_same(forest, account, params):
    integers = AUCForestClassifier(40, oob_score=True, random_state=0, **params).fit(X.assign(account=account), Y)
    assert integers.split_features_[3] == "account: range of 10"
    assert range_names_of(integers)[3][:2] == ["1000 to 1009", "1010 to 1019"]
    np.testing.assert_array_equal(integers.oob_decision_function_, forest.oob_decision_function_)
    rows = pd.DataFrame({"x": 0.5, "account": [1004, 1009, 1010, 99, 2**60], "age": 30})
    texts = rows.assign(account=rows.account.map("{:06d}".format))
    np.testing.assert_array_equal(integers.predict_proba(rows), forest.predict_proba(texts))
    np.testing.assert_array_equal(integers.encode(rows).iloc[:, 3], [0, 0, 1, np.nan, np.nan])
    note = "has not seen (1009); it counts as missing, except for its range of 10"
    assert column_notes(rows[:2], model=integers)[-1].endswith(note)
    assert "1 of them categorical, 1 of integers with ranges; 6 features" in describe_features(integers)


def test_text_of_integers_of_different_length_has_ranges(tmp_path):
    account = (NUMBERS - 950).astype("Int64").astype(str).where(NUMBERS.notna(), None)
    forest = AUCForestClassifier(20, random_state=0).fit(X.assign(account=account), Y)
    assert forest.split_features_[3] == "account: range of 10"
    rows = pd.DataFrame({"x": 0.5, "account": ["54", "59", "144", "059", "5x", None], "age": 30})
    np.testing.assert_array_equal(forest.encode(rows).iloc[:, 3], [0, 0, 9, np.nan, np.nan, np.nan])
    forest.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(rows), forest.predict_proba(rows))
    assert find(X.assign(account="0" + account)) == {1: 3}  # leading zeros


@pytest.mark.parametrize("kind", ["category", "string[pyarrow]", "object", "integers"])
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("groups", [None, "customer"])
def test_the_same_is_found_out_of_core(monkeypatch, kind, weight, groups):
    monkeypatch.setattr(on_disk, "_BATCH_CELLS", 900)
    frame = FRAME.assign(account=NUMBERS) if kind == "integers" else FRAME.astype({"account": kind})
    table, params = pa.Table.from_pandas(frame, preserve_index=False), BY_NAME if kind == "integers" else {}
    given = {"sample_weight": None if weight is None else FRAME[weight], "groups": groups and FRAME[groups]}
    expected = AUCForestClassifier(20, random_state=0, oob_score=True, **params)
    expected.fit(frame[list(X)] if params else X, Y, **given)
    assert list(expected.expanded_) == [1]
    forest, dropped = clone(expected), {"weight", "customer"} - {weight, groups}
    forest = fit_out_of_core(forest, table, "label", sample_weight=weight, groups=groups, drop=list(dropped))
    assert_same_fit(forest, expected)


def test_text_that_is_not_searched():
    assert find(X, categorical_encoding="sets") == {}
    assert find(X.assign(account=X.account.str[:5])) == {}  # 40 categories are sets
    assert find(X.assign(account=pd.Categorical(NUMBERS + 0.5))) == {}
    assert find(X.assign(account=NUMBERS // 10), categorical_features=["account"]) == {}
    assert find(X, sample_weight=np.where(np.arange(len(X)) < 50, 1.0, 0.0)) == {}
    assert find(X, groups=X.account.fillna("-")) == {1: 5}  # other groups have the same first characters


def test_random_names_have_no_first_characters():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        shop, effects = rng.integers(0, 300, 3000), rng.normal(size=300)
        names = pd.Series(np.char.add(rng.choice([*"abcdef"], 300), rng.integers(0, 10**6, 300).astype(str))[shop])
        y = effects[shop] + rng.logistic(size=3000) > 1.0
        assert find(pd.DataFrame({"x": rng.normal(size=3000), "shop": names}), y) == {}


@pytest.mark.filterwarnings("ignore:warm_start. shrinkage, mixture and calibration stay:UserWarning")
def test_a_warm_start_keeps_them(forest, integers):
    by_name = copy.deepcopy(integers).set_params(n_estimators=45, oob_score=False).fit(NUMBERED, Y[::-1])
    grown = copy.deepcopy(forest).set_params(n_estimators=45, oob_score=False).fit(X, Y[::-1])
    assert (grown.expanded_, by_name.expanded_) == (forest.expanded_, integers.expanded_)
    assert len(grown) == len(by_name) == 45
    assert find(X, Y[::-1]) == find(NUMBERED, Y[::-1], **BY_NAME) == {}  # a new fit does not find them
    by_name.set_params(n_estimators=50)
    for account in (NUMBERS // 10, X.account.fillna("-")):
        with pytest.raises(ValueError, match=r"^warm_start: column 1 has different categories than in the previous"):
            by_name.fit(X.assign(account=account), Y)
    with pytest.raises(ValueError, match=r"^warm_start: column 1 had categories in the previous fit, but has other va"):
        by_name.set_params(categorical_features=None).fit(NUMBERED, Y)
    for texts in (X.account.str[:1], X.account.str[1:]):
        with pytest.raises(ValueError, match=r"^warm_start: column 1 has different categories than in the previous"):
            grown.set_params(n_estimators=50).fit(X.assign(account=texts), Y)
    for out_of_core in (False, True):
        rows = X.assign(account=X.account.fillna("0").astype(int))
        with pytest.raises(ValueError, match=r"^warm_start: column 1 had text in the previous fit, but has other valu"):
            fit_out_of_core(grown, pa.table(rows.assign(y=Y)), "y") if out_of_core else grown.fit(rows, Y)


def test_files_and_exports(forest, integers, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    stack = AUCStackingClassifier(AUCForestClassifier(40), random_state=0).fit(X, Y)
    assert stack.members_["linear"].categorical == (1, 3)
    assert stack.members_["boosted"].categorical_encoding == ["rates", "interactions"]
    rows = X.assign(account=X.account.where(X.index % 3 > 0, X.account.str[:5] + "?"))
    others = X.assign(account=NUMBERS + 4 * (X.index % 3 == 0))
    for model, new in ((stack, rows), (forest, rows), (integers, others)):
        expected = model.predict_proba(new)
        model.save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        assert loaded.expanded_ == model.expanded_
        np.testing.assert_array_equal(loaded.predict_proba(new), expected)
        model.to_onnx(tmp_path / "model.onnx")
        session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
        _, proba = session.run(None, {"X": model.encode(new).to_numpy()})
        np.testing.assert_allclose(proba, expected, atol=1e-6)


@pytest.mark.parametrize(("change", "message"), [
    (at("prefixes", put=[[1]]), "each item of prefixes must be a feature"), (at("prefixes", put=[[1, 0]]), "column 1 "),
    (at("prefixes", put=[[1, 4]]), "column 1 has other first characters"), (at("prefixes", put=[[1, 99]]), "column 1 "),
    (at("prefixes", put=[[1, True]]), "each item of"), (at("prefixes", put=[[1, 2.0]]), "each item of prefixes must"),
    (at("prefixes", put=[[3, 5]]), "feature 3 of dates, integers or text is unknown or repeated"),
    (at("prefixes", put=[[1, 5], [1, 5]]), "feature 1 of dates, integers or text is unknown or repeated"),
    (at("prefixes", put=[[0, 5]]), "column 0 has other first characters than its categories"),
    (at("prefixes", put=[]), "there are categories of feature 3, but 3 features"),
    (at("rates", "tables", 0, 4, put=1), "the rates of feature 1 have the rates of feature 1 as priors"),
    (at("rates", "tables", 1, put=[3, -1, 1, 1.0, 3]), "the rates of feature 1 have the rates of feature 3 as priors"),
    (at("rates", "tables", 0, put=[1, -1, 1, 1.0, 3, 3]), "a table of rates must be two features"),
])  # fmt: skip
def test_damaged_files_are_refused(forest, tmp_path, change, message):
    forest.save(tmp_path / "model")
    contents = read(tmp_path / "model")
    assert contents[1]["prefixes"] == [[1, 5]]
    check_refused(contents, change, message, tmp_path)


@pytest.mark.parametrize(("items", "message"), [
    ([[1, 100]], "column 1 has other first characters"), ([[1, 1, 10]], "there are categories of feature 1, which is"),
    ([[0, 10]], "column 0 has other first"), ([[1, 20]], "the ranges of integers are unknown"),
    ([[1, 10, 100]], "column 1 "), ([[1, 10], 2], "the columns of integers are not in order"),
])  # fmt: skip
def test_damaged_ranges_are_refused(integers, tmp_path, items, message):
    integers.save(tmp_path / "model")
    contents = read(tmp_path / "model")
    assert contents[1]["integers"] == [[1, 10]]
    check_refused(contents, at("integers", put=items), message, tmp_path)

"""Bootstrap samples and subsamples: by block, by stratum, with and without replacement; and samples by class."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aucforest
from aucforest.fitting.bootstrap import BLOCK_ROWS, N_HALVES, BootstrapSampler, half_of, resolve_sampler
from aucforest.fitting.spec import tree_keys
from tests.estimators.data import UNSCORED, digest, make_table, small_forest
from tests.reference.tree import derive_key

WORDS = st.integers(0, 2**64 - 1)
SIZES = st.integers(1, 3 * BLOCK_ROWS)
X, SCORE = make_table(n_rows=300, missing=0.1)
LABELS = np.random.default_rng(0).permutation(np.repeat(["a", "b", "c"], [200, 70, 30]))
TWO = LABELS == "c"


def in_parts(sampler: BootstrapSampler, key: int, bounds: list[int]) -> np.ndarray:
    """Sample the blocks between each two bounds by a separate sampler, and join the counts."""
    stored = sampler.store_sizes([key - 1 if key else 1, key])
    parts = [stored.part(a * BLOCK_ROWS, (b - a) * BLOCK_ROWS) for a, b in pairwise(bounds)]
    # A part of a part is also a part of all rows.
    parts.append(parts.pop().part(0, BLOCK_ROWS * sampler.n_blocks))
    return np.concatenate([part.counts(key) for part in parts])


def assert_same_in_parts(sampler: BootstrapSampler, key: int) -> None:
    """Compare the sample of all rows with those of single blocks, and those of both halves and of no block."""
    n_blocks, whole = sampler.n_blocks, sampler.counts(key)
    for bounds in (list(range(n_blocks + 1)), [0, n_blocks // 2, n_blocks // 2, n_blocks]):
        np.testing.assert_array_equal(in_parts(sampler, key, bounds), whole)


def by_hand(sampler: BootstrapSampler, strata: np.ndarray, key: int) -> np.ndarray:
    """Sample with Python's own containers, one row after the other."""
    counts = np.zeros(sampler.n_rows, dtype=np.int64)
    for block, sizes in enumerate(sampler.block_sizes(key)):
        start, n_taken = block * BLOCK_ROWS, 0
        block_key = derive_key(key, "block", block)
        for stratum, size in enumerate(sizes.tolist()):
            rows = start + np.flatnonzero(strata[start : start + BLOCK_ROWS] == stratum)
            taken: set[int] = set()
            for j in range(size):
                last = len(rows) if sampler.replace else len(rows) - size + j + 1
                row = rows[derive_key(block_key, "row", n_taken) % 2**32 * last >> 32]
                if not sampler.replace and row in taken:
                    row = rows[last - 1]
                taken.add(row)
                counts[row] += 1
                n_taken += 1
    return counts


def sampled_rows(forest):
    """Return how many rows of every class each tree sampled."""
    return np.rint([tree.weight[0] * tree.value[0] for tree in forest.trees_]).astype(int).tolist()


@pytest.mark.parametrize("key", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("n_rows", [1, 4096, 4097, 14_000])
@pytest.mark.parametrize("replace", [True, False])
def test_samples_do_not_depend_on_parts_of_the_rows(key, n_rows, replace):
    sampler = BootstrapSampler.for_rows(n_rows, -(-n_rows // 2), replace=replace)
    whole = sampler.counts(key)
    assert whole.sum() == sampler.n_sampled
    assert replace or whole.max() == 1
    assert sampler.block_sizes(key).shape == (-(-n_rows // BLOCK_ROWS), 1)
    assert_same_in_parts(sampler, key)
    assert np.array_equal(whole, by_hand(sampler, np.zeros(n_rows), key))
    assert np.array_equal(sampler.counts_of_trees([7, key]), [sampler.counts(7), whole])


@pytest.mark.parametrize("replace", [True, False])
def test_sizes_of_blocks(replace):
    """Mean and variance of the binomial or hypergeometric distribution, within five standard errors."""
    n_rows, n_sampled, n_trees, share = 5000, 2500, 400, BLOCK_ROWS / 5000
    sampler = BootstrapSampler.for_rows(n_rows, n_sampled, replace=replace)
    sizes = np.array([sampler.block_sizes(key)[0, 0] for key in tree_keys(3, range(n_trees))])
    variance = n_sampled * share * (1.0 - share) * (1.0 if replace else (n_rows - n_sampled) / (n_rows - 1))
    assert sizes.mean() == pytest.approx(n_sampled * share, abs=5.0 * np.sqrt(variance / n_trees))
    assert sizes.var() == pytest.approx(variance, rel=5.0 * np.sqrt(2.0 / n_trees))


@given(WORDS, SIZES, st.lists(st.integers(1, 3000), min_size=1, max_size=5), st.integers(0, 9))
def test_strata_have_the_given_sizes(key, n_rows, sizes, seed):
    strata = np.random.default_rng(seed).integers(len(sizes), size=n_rows).astype(np.uint16)
    present = np.bincount(strata, minlength=len(sizes)) > 0
    sizes = np.where(present, sizes, 0)
    sampler = BootstrapSampler.for_strata(strata, sizes)
    counts = sampler.counts(key)
    assert np.array_equal(np.bincount(strata, counts, minlength=len(sizes)), sizes)
    assert_same_in_parts(sampler, key)
    assert np.array_equal(counts, by_hand(sampler, strata, key))
    n_rows_of = np.bincount(strata, minlength=len(sizes))
    np.testing.assert_array_equal(sampler.rates[present], sizes[present] / n_rows_of[present])


@pytest.mark.parametrize(("sampling", "max_samples", "expected"), [
    ("stratified", None, [200, 70, 30]), ("stratified", 100, [67, 23, 10]), ("stratified", 0.5, [100, 35, 15]),
    ("stratified", 1, [1, 1, 1]), ("balanced", None, [30, 30, 30]), ("balanced", 60, [20, 20, 20]),
    ("balanced", 0.5, [50, 50, 50]), ("balanced", 2, [1, 1, 1]), ({"c": 0.5}, None, [200, 70, 15]),
    ({"a": 0.1, "c": 2}, None, [20, 70, 60]), ({"a": 1e-9}, None, [1, 70, 30]), ({}, None, [200, 70, 30]),
])  # fmt: skip
def test_samples_by_class(sampling, max_samples, expected):
    forest = small_forest(4, sampling=sampling, max_samples=max_samples, max_depth=2).fit(X, LABELS)
    assert sampled_rows(forest) == [expected] * 4
    assert len({tree.n_samples[0] for tree in forest.trees_}) > 1 or sum(expected) < 10


@pytest.mark.parametrize("n_rows", [2, 301, BLOCK_ROWS + 904])
def test_trees_share_halves(n_rows):
    sampler, keys = BootstrapSampler.for_halves(n_rows, 7), tree_keys(7, range(300))
    counts = sampler.counts_of_trees(keys)
    assert counts.max() == 1
    assert np.all(counts.sum(axis=1) == n_rows // 2)
    halves = np.array([*map(half_of, keys)])
    assert np.bincount(halves).min() > 2
    for half in range(N_HALVES):
        assert np.ptp(counts[halves == half], axis=0).max() == 0
    assert len(np.unique(counts, axis=0)) == (2 if n_rows == 2 else N_HALVES)
    assert n_rows == 2 or not np.any(
        np.all(counts[:, None] == BootstrapSampler.for_halves(n_rows, 8).counts_of_trees(keys[:9]), axis=2)
    )
    for key in keys[:3]:
        assert_same_in_parts(sampler, key)


@pytest.mark.parametrize(("max_samples", "n_sampled"), [(None, 190), (40, 40), (0.5, 150), (1.0, 300), (1e-9, 1)])
def test_a_subsample_is_without_replacement(max_samples, n_sampled):
    forest = small_forest(4, sampling="subsample", max_samples=max_samples).fit(X, LABELS)
    for tree in forest.trees_:
        assert tree.weight[0] == tree.n_samples[0] == n_sampled


@pytest.mark.parametrize(("labels", "rates"), [
    (TWO, {True: 2.0, np.False_: 0.5}), (np.where(TWO, 7, -3), {7: 2.0, np.int64(-3): 0.5}),
    (pd.Series(np.where(TWO, "yes", "no")), {"yes": 2, "no": 0.5}),
])  # fmt: skip
def test_sampling_rates_by_label(labels, rates):
    assert sampled_rows(small_forest(2, sampling=rates, max_depth=1).fit(X, labels)) == [[135, 60]] * 2


@pytest.mark.parametrize(("params", "message"), [
    ({"sampling": {"z": 1.0}}, r"^sampling has a rate for class 'z', but y has the classes \['a', 'b', 'c'\]$"),
    ({"sampling": {"b": 0}}, "^sampling: the rate of class 'b' must be a positive number, but is 0$"),
    ({"sampling": {"b": np.inf}}, "must be a positive number, but is inf$"),
    ({"sampling": {"b": "x"}}, "must be a positive number, but is 'x'$"),
    ({"sampling": {"b": 0.5}, "max_samples": 0.5}, "^max_samples=0.5 cannot be combined with a dict as sampling$"),
    ({"sampling": "balanced", "bootstrap": False}, "^sampling='balanced' needs bootstrap=True$"),
    ({"sampling": {}, "bootstrap": False}, "^sampling={} needs bootstrap=True$"),
    ({"sampling": "balanced", "max_samples": 301}, "^max_samples=301 must be at most 300, the number of samples$"),
    ({"sampling": "subsample", "max_samples": 301}, "^max_samples=301 must be at most 300, the number of samples$"),
    ({"sampling": "half-samples"}, "^n_estimators=6 must be at least 100 with sampling='half-samples'$"),
    ({"sampling": "half-samples", "n_estimators": 100, "max_samples": 9}, "^max_samples=9 must be None with"),
    ({"sampling": "weighted"}, "'sampling' parameter .* Got 'weighted' instead"),
])  # fmt: skip
def test_bad_sampling(params, message):
    forest = small_forest(**params)
    with pytest.raises(ValueError, match=message):
        forest.fit(X, LABELS)
    assert not hasattr(forest, "trees_")


def test_a_rare_class_is_not_sampled_too_often():
    labels = (np.arange(30_000) == 7).astype(np.uint16)
    sampler = resolve_sampler(small_forest(sampling="balanced").get_params(), labels, np.array([0, 1]))
    assert sampler.sizes.tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"^sampling.*: .* hold each sample of class 1 15000 times, more than 10000$"):
        resolve_sampler(small_forest(sampling="balanced", max_samples=1.0).get_params(), labels, np.array([0, 1]))
    often = resolve_sampler(small_forest(sampling={1: 10_000}).get_params(), labels, np.array([0, 1]))
    assert often.sizes.tolist() == [29_999, 10_000]


@pytest.mark.filterwarnings(UNSCORED)
@pytest.mark.parametrize("sampling", ["stratified", "balanced", "subsample", {"a": 0.2, "c": 1.5}], ids=str)
def test_rows_of_weight_zero_are_as_if_absent(sampling):
    weight = np.where(np.arange(300) % 4 == 0, 0.0, 1.0 + np.arange(300) % 3)
    kept, all_rows = weight > 0, small_forest(oob_score=True, sampling=sampling).fit(X, LABELS, weight)
    fewer = small_forest(oob_score=True, sampling=sampling).fit(X[kept], LABELS[kept], weight[kept])
    assert digest(all_rows) == digest(fewer)
    np.testing.assert_array_equal(all_rows.predict_proba(X), fewer.predict_proba(X))
    np.testing.assert_array_equal(all_rows.oob_decision_function_[kept], fewer.oob_decision_function_)
    assert np.isnan(all_rows.oob_decision_function_[~kept]).all()
    assert all_rows.oob_score_ == fewer.oob_score_


def test_weights_multiply_the_counts():
    forest = small_forest(3, sampling="balanced", max_depth=2).fit(X, LABELS, np.where(LABELS == "b", 4.0, 2.0))
    assert sampled_rows(forest) == [[60, 120, 60]] * 3
    np.testing.assert_allclose(forest.class_prior_, np.array([400, 280, 60]) / 740)


def test_a_class_whose_rows_weigh_nothing():
    weight = np.where(LABELS == "b", 0.0, 1.0)
    forest = small_forest(40, sampling="balanced", oob_score=True, threshold="prevalence").fit(X, LABELS, weight)
    assert sampled_rows(forest) == [[30, 0, 30]] * 40
    assert np.all(forest.predict_proba(X)[:, 1] == 0.0)
    assert set(forest.predict(X)) == {"a", "c"}


def test_a_warm_start_with_another_sampling():
    whole = small_forest(5, sampling="balanced").fit(X, TWO)
    forest = small_forest(3, sampling="balanced", warm_start=True).fit(X, TWO)
    forest.set_params(n_estimators=5).fit(X, TWO)
    np.testing.assert_array_equal(forest.predict_proba(X), whole.predict_proba(X))
    before = forest.predict_proba(X)
    sentence = r"^warm_start: calibration='auto' needs .*, not 30 \+ 30 of 300 samples, 300 of 300 samples$"
    with pytest.raises(ValueError, match=sentence):
        forest.set_params(n_estimators=7, sampling="bootstrap").fit(X, TWO)
    np.testing.assert_array_equal(forest.predict_proba(X), before)
    forest.set_params(calibration=None).fit(X, TWO)
    assert sampled_rows(forest)[:5] == [[30, 30]] * 5
    assert {sum(counts) for counts in sampled_rows(forest)[5:]} == {300}
    assert {tree.shrinkage for tree in forest.trees_} == {5.0}


def test_samples_of_another_numpy_are_not_taken_again(tmp_path):
    """The numbers of numpy's generator, which divides samples among blocks, may change with a feature release."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(BLOCK_ROWS + 50, 3))
    y = table[:, 0] + rng.normal(size=len(table)) > 1
    forest = small_forest(4, shrinkage=0.0).fit(table, y)
    stream = "aucforest 0.3 and numpy " + ".".join(np.__version__.split(".")[:2])
    assert [record.stream for record in forest._sample_records] == [stream]
    forest.set_threshold("f1", table, y)
    forest._sample_records = [forest._sample_records[0]._replace(stream="aucforest 0.3 and numpy 1.0")]
    forest.save(tmp_path / "model")
    model = aucforest.load(tmp_path / "model")
    sentence = f"were taken with aucforest 0.3 and numpy 1.0, and {stream} may take"
    with pytest.raises(ValueError, match=sentence):
        model.set_threshold("f1", table, y)
    with pytest.raises(ValueError, match=sentence):
        model.set_params(warm_start=True, n_estimators=5, oob_score=True).fit(table, y)
    assert small_forest(2).fit(table[:500], y[:500])._sample_records[0].stream == "aucforest 0.3"


def test_more_rows_than_numpy_samples_from_without_replacement():
    params = {"sampling": "subsample", "max_samples": None, "bootstrap": True, "n_estimators": 100}
    with pytest.raises(ValueError, match=r"^sampling='subsample' needs fewer than 1,000,000,000 samples"):
        resolve_sampler(params, np.broadcast_to(np.uint16(0), 10**9), np.arange(1))

"""How many rows of every class a tree draws, and what undoes it in probabilities."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn.metrics import roc_auc_score

import aucforest
from aucforest.fitting.bootstrap import BLOCK_ROWS
from aucforest.fitting.sampling import resolve_draws
from aucforest.inspection import predict_proba_stderr
from tests.estimators.data import assert_same, digest, everything, make_table, small_forest

X, SCORE = make_table(n_rows=300, missing=0.1)
# 200, 70 and 30 rows
LABELS = np.random.default_rng(0).permutation(np.repeat(["a", "b", "c"], [200, 70, 30]))
TWO = LABELS == "c"

UNSCORED = "ignore:.* they have no out-of-bag probability"
SCHEMES = [
    {"sampling": "stratified"},
    {"sampling": "balanced"},
    {"sampling": "subsample"},
    {"sampling": {"a": 0.2, "c": 1.5}},
]
every_scheme = pytest.mark.parametrize("params", SCHEMES, ids=str)


def drawn(forest):
    """Return how many rows of every class each tree drew."""
    return np.rint([tree.weight[0] * tree.value[0] for tree in forest.trees_]).astype(int).tolist()


@pytest.mark.parametrize(
    ("sampling", "max_samples", "expected"),
    [
        ("stratified", None, [200, 70, 30]),
        ("stratified", 100, [67, 23, 10]),
        ("stratified", 0.5, [100, 35, 15]),
        ("stratified", 1, [1, 1, 1]),
        ("balanced", None, [30, 30, 30]),
        ("balanced", 60, [20, 20, 20]),
        ("balanced", 0.5, [50, 50, 50]),
        ("balanced", 2, [1, 1, 1]),
        ({"c": 0.5}, None, [200, 70, 15]),
        ({"a": 0.1, "c": 2}, None, [20, 70, 60]),
        ({"a": 1e-9}, None, [1, 70, 30]),
        ({}, None, [200, 70, 30]),
    ],
)
def test_draws_by_class(sampling, max_samples, expected):
    forest = small_forest(4, sampling=sampling, max_samples=max_samples, max_depth=2).fit(X, LABELS)
    assert drawn(forest) == [expected] * 4
    assert len({tree.n_samples[0] for tree in forest.trees_}) > 1 or sum(expected) < 10


@pytest.mark.parametrize(("max_samples", "n_draws"), [(None, 190), (40, 40), (0.5, 150), (1.0, 300), (1e-9, 1)])
def test_a_subsample_is_without_replacement(max_samples, n_draws):
    forest = small_forest(4, sampling="subsample", max_samples=max_samples).fit(X, LABELS)
    for tree in forest.trees_:
        assert tree.weight[0] == tree.n_samples[0] == n_draws


def test_draws_over_many_blocks_of_rows():
    table, labels = np.tile(X, (33, 1)), np.tile(LABELS, 33)
    forest = small_forest(3, sampling="balanced", max_depth=1).fit(table, labels)
    assert drawn(forest) == [[990, 990, 990]] * 3


@pytest.mark.parametrize(
    ("labels", "rates"),
    [
        (TWO, {True: 2.0, False: 0.5}),
        (TWO, {np.True_: 2.0, np.False_: 0.5}),
        (np.where(TWO, 7, -3), {7: 2.0, np.int64(-3): 0.5}),
        (np.where(TWO, "yes", "no"), {"yes": 2, "no": 0.5}),
        (pd.Series(np.where(TWO, "yes", "no")), {"yes": 2, "no": 0.5}),
    ],
)
def test_labels_of_rates(labels, rates):
    assert drawn(small_forest(2, sampling=rates, max_depth=1).fit(X, labels)) == [[135, 60]] * 2


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sampling": {"z": 1.0}}, r"^sampling has a rate for class 'z', but y has the classes \['a', 'b', 'c'\]$"),
        ({"sampling": {"b": 0}}, "^sampling: the rate of class 'b' must be a positive number, but is 0$"),
        ({"sampling": {"b": -0.5}}, "must be a positive number, but is -0.5$"),
        ({"sampling": {"b": np.nan}}, "must be a positive number, but is nan$"),
        ({"sampling": {"b": np.inf}}, "must be a positive number, but is inf$"),
        ({"sampling": {"b": None}}, "must be a positive number, but is None$"),
        ({"sampling": {"b": "x"}}, "must be a positive number, but is 'x'$"),
        ({"sampling": {"b": 0.5}, "max_samples": 0.5}, "^max_samples=0.5 cannot be combined with a dict as sampling$"),
        (
            {"sampling": {"b": 10_001}},
            "^sampling: a bootstrap sample would hold each sample of class 'b' 10001 times, more than",
        ),
        ({"sampling": "balanced", "bootstrap": False}, "^sampling='balanced' needs bootstrap=True$"),
        ({"sampling": {}, "bootstrap": False}, "^sampling={} needs bootstrap=True$"),
        ({"sampling": "balanced", "max_samples": 301}, "^max_samples=301 must be at most 300, the number of samples$"),
        ({"sampling": "subsample", "max_samples": 301}, "^max_samples=301 must be at most 300, the number of samples$"),
        ({"sampling": "weighted"}, "'sampling' parameter .* Got 'weighted' instead"),
    ],
)
def test_bad_sampling(params, message):
    forest = small_forest(**params)
    with pytest.raises(ValueError, match=message) as caught:
        forest.fit(X, LABELS)
    assert "\n" not in str(caught.value)
    assert not hasattr(forest, "trees_")


def test_a_rare_class_is_not_drawn_without_end():
    labels = (np.arange(30_000) == 7).astype(np.uint16)
    draws = resolve_draws(small_forest(sampling="balanced").get_params(), labels, np.array([0, 1]))
    assert draws.sizes.tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"each sample of class 1 15000 times, more than 10000$"):
        resolve_draws(small_forest(sampling="balanced", max_samples=1.0).get_params(), labels, np.array([0, 1]))
    assert resolve_draws(small_forest(sampling={1: 10_000}).get_params(), labels, np.array([0, 1])).sizes.tolist() == [
        29_999,
        10_000,
    ]


@every_scheme
def test_results_do_not_depend_on_n_jobs(params):
    table, labels = np.tile(X, (15, 1)), np.tile(LABELS, 15)
    forests = [small_forest(40, oob_score=True, max_depth=4, n_jobs=n_jobs, **params) for n_jobs in (1, 2, 3)]
    expected, *others = [everything(forest.fit(table, labels), table) for forest in forests]
    for other in others:
        assert_same(expected, other)


@pytest.mark.filterwarnings(UNSCORED)
@every_scheme
def test_rows_of_weight_zero_are_as_if_absent(params):
    weight = np.where(np.arange(300) % 4 == 0, 0.0, 1.0 + np.arange(300) % 3)
    kept = weight > 0
    all_rows = small_forest(oob_score=True, **params).fit(X, LABELS, weight)
    fewer = small_forest(oob_score=True, **params).fit(X[kept], LABELS[kept], weight[kept])
    assert digest(all_rows) == digest(fewer)
    np.testing.assert_array_equal(all_rows.predict_proba(X), fewer.predict_proba(X))
    np.testing.assert_array_equal(all_rows.oob_decision_function_[kept], fewer.oob_decision_function_)
    assert np.isnan(all_rows.oob_decision_function_[~kept]).all()
    assert all_rows.oob_score_ == fewer.oob_score_


def corrected_and_raw(labels, **params):
    """Return probabilities and out-of-bag ones with prior correction, then without; the trees are the same."""
    found = []
    for correction in (True, False):
        forest = small_forest(60, oob_score=True, prior_correction=correction, **params).fit(X, labels)
        found.append((forest.predict_proba(X), forest.oob_decision_function_))
    return zip(*found)


@pytest.mark.filterwarnings(UNSCORED)
@pytest.mark.parametrize("sampling", ["balanced", {True: 3.0, False: 0.5}, {True: 5.0}])
def test_prior_correction_of_two_classes(sampling):
    for corrected, raw in corrected_and_raw(TWO, sampling=sampling):
        known = ~np.isnan(raw[:, 1])
        corrected, raw, is_rare = corrected[known], raw[known], TWO[known]
        np.testing.assert_allclose(corrected.sum(axis=1), 1.0)
        log_odds, raw_log_odds = logit(corrected[:, 1]), logit(raw[:, 1])
        exponent, offset = np.polyfit(raw_log_odds, log_odds, 1)
        np.testing.assert_allclose(log_odds, exponent * raw_log_odds + offset, atol=1e-8)
        assert exponent > 0
        assert roc_auc_score(is_rare, corrected[:, 1]) == pytest.approx(roc_auc_score(is_rare, raw[:, 1]))
        assert corrected[:, 1].mean() == pytest.approx(TWO.mean(), abs=0.01)


def test_prior_correction_of_many_classes():
    for corrected, raw in corrected_and_raw(LABELS, sampling={"a": 0.1, "c": 2.0}):
        of_rarest = np.log(raw[:, :2] / raw[:, 2:]), np.log(corrected[:, :2] / corrected[:, 2:])
        fits = [np.polyfit(of_rarest[0][:, k], of_rarest[1][:, k], 1) for k in range(2)]
        assert fits[0][0] == pytest.approx(fits[1][0])
        for k, (exponent, offset) in enumerate(fits):
            np.testing.assert_allclose(of_rarest[1][:, k], exponent * of_rarest[0][:, k] + offset, atol=1e-8)


@pytest.mark.parametrize(
    "params", [{}, {"sampling": "stratified"}, {"sampling": "subsample", "max_samples": 0.3}], ids=str
)
def test_draws_that_keep_the_class_shares_need_no_correction(params):
    for corrected, raw in corrected_and_raw(LABELS, **params):
        np.testing.assert_array_equal(corrected, raw)


def test_weights_multiply_what_is_drawn():
    forest = small_forest(3, sampling="balanced", max_depth=2).fit(X, LABELS, np.where(LABELS == "b", 4.0, 2.0))
    assert drawn(forest) == [[60, 120, 60]] * 3
    np.testing.assert_allclose(forest.class_prior_, np.array([400, 280, 60]) / 740)


def test_a_class_whose_rows_weigh_nothing():
    weight = np.where(LABELS == "b", 0.0, 1.0)
    forest = small_forest(40, sampling="balanced", oob_score=True, threshold="prevalence").fit(X, LABELS, weight)
    assert drawn(forest) == [[30, 0, 30]] * 40
    assert np.all(forest.predict_proba(X)[:, 1] == 0.0)
    assert set(forest.predict(X)) == {"a", "c"}
    others = weight > 0
    two = small_forest(40, sampling="balanced", oob_score=True).fit(X[others], LABELS[others])
    np.testing.assert_allclose(forest.predict_proba(X)[:, [0, 2]], two.predict_proba(X))


def test_a_warm_start_with_other_draws():
    whole = small_forest(5, sampling="balanced").fit(X, TWO)
    forest = small_forest(3, sampling="balanced", warm_start=True).fit(X, TWO)
    forest.set_params(n_estimators=5).fit(X, TWO)
    np.testing.assert_array_equal(forest.predict_proba(X), whole.predict_proba(X))
    before = forest.predict_proba(X)
    sentence = r"^warm_start: prior_correction=True needs .*, not 30 \+ 30 of 300 samples, 300 of 300 samples$"
    with pytest.raises(ValueError, match=sentence):
        forest.set_params(n_estimators=7, sampling="bootstrap").fit(X, TWO)
    np.testing.assert_array_equal(forest.predict_proba(X), before)
    forest.set_params(prior_correction=False).fit(X, TWO)
    assert drawn(forest)[:5] == [[30, 30]] * 5
    assert {sum(counts) for counts in drawn(forest)[5:]} == {300}
    values = [tree.prediction[leaves] for tree, leaves in zip(forest.trees_, forest.apply(X).T)]
    np.testing.assert_allclose(forest.predict_proba(X), np.mean(values, axis=0))
    assert {tree.shrinkage for tree in forest.trees_} == {5.0}


def test_samples_of_another_numpy_are_not_drawn_anew(tmp_path):
    """The numbers of numpy's generator, which distributes draws over blocks, may change with a feature release."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(BLOCK_ROWS + 50, 3))
    y = table[:, 0] + rng.normal(size=len(table)) > 1
    forest = small_forest(4, shrinkage=0.0).fit(table, y)
    stream = "numpy " + ".".join(np.__version__.split(".")[:2])
    assert [drawn.stream for drawn in forest._drawn] == [stream]
    forest.set_threshold("f1", table, y)
    forest._drawn = [forest._drawn[0]._replace(stream="numpy 1.0")]
    forest.save(tmp_path / "model")
    for model in (forest, aucforest.load(tmp_path / "model")):
        for use in (
            lambda model=model: model.set_threshold("f1", table, y),
            lambda model=model: predict_proba_stderr(model, table[:5]),
            lambda model=model: model.set_params(warm_start=True, n_estimators=5, oob_score=True).fit(table, y),
        ):
            with pytest.raises(ValueError, match=f"were drawn with numpy 1.0, and {stream} may draw different"):
                use()
    assert small_forest(2).fit(table[:500], y[:500])._drawn[0].stream == ""

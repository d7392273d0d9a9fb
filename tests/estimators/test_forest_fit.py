"""Fits of forests: warm starts, groups and target rates."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import GroupKFold, cross_validate

from aucforest.estimators._evidence import PRIOR, PRIOR_WITH_RATES
from aucforest.estimators.out_of_bag import training_rows
from aucforest.inspection import oob_permutation_importance
from tests.estimators.data import UNSCORED, assert_same, digest, everything, make_table, refuse, small_forest
from tests.estimators.test_model_files import at, check_refused, read, saved

pytestmark = pytest.mark.filterwarnings(UNSCORED)
X, Y = make_table()
X_GROUPS, Y_GROUPS = make_table(n_rows=300, missing=0.1)
GROUPS = np.random.default_rng(0).integers(60, size=300)
WEIGHT = np.where(np.arange(300) % 5 == 0, 0.0, 1.0 + np.arange(300) % 2)
MISSING = GROUPS.astype(object)
MISSING[7] = None


def test_warm_start():
    whole, forest = (small_forest(n, oob_score=True, random_state=4).fit(X, Y) for n in (7, 3))
    first = forest.trees_
    forest.predict(X)
    forest.set_params(n_estimators=7, warm_start=True).fit(X, Y)
    assert all(kept.feature is tree.feature for kept, tree in zip(first, forest.trees_))
    assert_same(everything(forest, X), everything(whole, X))
    with pytest.raises(ValueError, match=r"^warm_start: n_estimators=5 must be at least 7, the number of existing"):
        forest.set_params(n_estimators=5).fit(X, Y)
    with pytest.warns(UserWarning, match="^warm_start: n_estimators=7 trees exist already, no tree is") as caught:
        forest.set_params(n_estimators=7).fit(X, Y)
    assert caught[0].filename == __file__
    assert_same(everything(forest, X), everything(whole, X))
    forest, big = (small_forest(n, random_state=np.random.RandomState(0)).fit(X, Y) for n in (3, 5))
    assert digest(forest.set_params(n_estimators=5, warm_start=True).fit(X, Y)) == digest(big)


@pytest.mark.parametrize(("table", "labels", "message"), [
    (X[:, :4], Y, "^warm_start: X has 4 features, but the existing trees have 5$"),
    (X, 2 * Y, r"^warm_start: y has the classes \[0, 2\], but the existing trees have \[0, 1\]$"),
    (X, np.arange(240) % 3, r"^warm_start: y has the classes \[0, 1, 2\], but the existing trees have \[0, 1\]$"),
    (X, np.zeros(240), "^y has only one class"), (X[:0], Y[:0], "0 sample"),
])  # fmt: skip
def test_a_warm_start_that_fails_keeps_all(table, labels, message):
    forest = small_forest(3, warm_start=True).fit(X, Y)
    before = dict(vars(forest), n_estimators=5)
    with pytest.raises(ValueError, match=message):
        forest.set_params(n_estimators=5).fit(table, labels)
    assert vars(forest).keys() == before.keys()
    assert all(vars(forest)[name] is value for name, value in before.items())
    assert digest(forest.fit(X, Y)) == digest(small_forest(5).fit(X, Y))


@pytest.mark.parametrize(("before", "after", "n_rows", "drawn"), [
    ({"bootstrap": False}, {"bootstrap": True}, 240, "all of 240 samples, 240 of 240 samples"),
    ({}, {"max_samples": 0.5}, 240, "240 of 240 samples, 120 of 240 samples"),
    ({}, {}, 200, "240 of 240 samples, 200 of 200 samples"),
])  # fmt: skip
def test_trees_that_drew_otherwise_have_no_common_out_of_bag_score(before, after, n_rows, drawn):
    """To find out-of-bag rows, the samples of all trees are drawn again, which requires equal sampling."""
    forest, rows = small_forest(3, warm_start=True, **before).fit(X, Y), (X[:n_rows], Y[:n_rows])
    not_calibrated = f"^warm_start: shrinkage, mixture and calibration stay, because trees .* different ways: {drawn}$"
    with pytest.warns(UserWarning, match=not_calibrated) as caught:
        forest.set_params(n_estimators=4, **after).fit(*rows)
    assert [warning.filename for warning in caught] == [__file__]
    assert forest.calibration_ is None
    before_refusal = digest(forest)
    with pytest.raises(ValueError, match=f"^warm_start: oob_score=True needs .* for all trees, not {drawn}$"):
        forest.set_params(n_estimators=5, oob_score=True).fit(*rows)
    assert digest(forest) == before_refusal
    forest.set_params(oob_score=False, calibration=None).fit(*rows)
    forest.set_params(warm_start=False, n_estimators=40, oob_score=True).fit(*rows)
    assert 0 <= forest.oob_score_ <= 1


@pytest.mark.parametrize("params", [{}, {"sampling": "subsample"}, {"class_weight": "balanced_subsample"}], ids=str)
def test_groups_of_one_row_are_rows(params):
    forest = small_forest(20, oob_score=True, shrinkage=5.0, **params)
    rows = everything(forest.fit(X_GROUPS, Y_GROUPS, WEIGHT), X_GROUPS)
    groups = everything(forest.fit(X_GROUPS, Y_GROUPS, WEIGHT, groups=np.arange(300)), X_GROUPS)
    assert_same(rows, groups)


def test_what_groups_are_called_does_not_matter():
    first = small_forest(8, oob_score=True).fit(X_GROUPS, Y_GROUPS, groups=GROUPS)
    names = np.array([f"customer {number}" for number in np.random.default_rng(1).permutation(60)])
    for groups in (names[GROUPS], pd.Series(names[GROUPS], dtype="category"), (GROUPS * 1.5).tolist()):
        other = small_forest(8, oob_score=True).fit(X_GROUPS, Y_GROUPS, groups=groups)
        assert_same(everything(first, X_GROUPS), everything(other, X_GROUPS))


def test_a_warm_start_with_groups():
    whole, forest = (small_forest(n, oob_score=True).fit(X_GROUPS, Y_GROUPS, groups=GROUPS) for n in (12, 7))
    forest.set_params(n_estimators=12, warm_start=True).fit(X_GROUPS, Y_GROUPS, groups=GROUPS)
    assert_same(everything(whole, X_GROUPS), everything(forest, X_GROUPS))
    forest.set_params(n_estimators=15)
    sentence = r"^warm_start: oob_score=True needs .*, not 60 of 60 groups \(300 samples\), "
    for groups, other in ((None, "300 of 300 samples$"), (np.roll(GROUPS, 1), r"60 of 60 groups \(300 samples\)$")):
        with pytest.raises(ValueError, match=sentence + other):
            forest.fit(X_GROUPS, Y_GROUPS, groups=groups)
    assert len(forest) == 12
    with pytest.warns(UserWarning, match=r"^warm_start: shrinkage, mixture .*: 60 of 60 groups \(300 samples\), 300"):
        forest.set_params(oob_score=False).fit(X_GROUPS, Y_GROUPS)
    assert forest._groups is None


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_what_is_sampled_anew_knows_the_groups(weight, tmp_path):
    forest = small_forest(20).fit(X_GROUPS, Y_GROUPS, weight, groups=GROUPS)
    tuned = small_forest(20, threshold="f1").fit(X_GROUPS, Y_GROUPS, weight, groups=GROUPS)
    loaded = saved(forest, tmp_path)
    for model in (forest, loaded):
        model.set_threshold("f1", X_GROUPS, Y_GROUPS, weight)
        assert (model.threshold_, model.threshold_std_) == (tuned.threshold_, tuned.threshold_std_)
    known = {"sample_weight": weight, "n_repeats": 2, "random_state": 0}
    one, other = (oob_permutation_importance(model, X_GROUPS, Y_GROUPS, **known) for model in (forest, loaded))
    np.testing.assert_array_equal(one.importances, other.importances)
    sentence = r"on 60 of 60 groups \(300 samples\), not on 60 of 60 groups \(299 samples\)$"
    with pytest.raises(ValueError, match=sentence):
        training_rows(small_forest(3).fit(X_GROUPS, Y_GROUPS, groups=GROUPS), X_GROUPS[:299], Y_GROUPS[:299], None)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups") / "model"
    small_forest(2).fit(X_GROUPS, Y_GROUPS, groups=GROUPS).save(path)
    return read(path)


def groups(change):
    """Return a function that changes the groups in the content of a file."""
    return lambda arrays, metadata: arrays.update(groups=change(arrays["groups"]))


@pytest.mark.parametrize(("change", "sentence"), [
    (groups(lambda values: values[:-1]), "groups has invalid values"),
    (groups(lambda values: values[::-1].copy()), "groups has invalid values"),
    (groups(lambda values: values - 1), "groups has invalid values"),
    (groups(lambda values: values.astype(np.float64)), "groups must be int32"),
    *(
        (at("drawn", 0, slice(4, None), put=record), "drawn has invalid groups|groups has invalid values")
        for record in ([60, "x"], ["60", "x"], [60, 7], [-1, "x"], [59, None])
    ),
])  # fmt: skip
def test_groups_of_damaged_files_are_refused(change, sentence, content, tmp_path):
    check_refused(content, change, sentence, tmp_path)


@pytest.mark.parametrize(("groups", "params", "sentence"), [
    (GROUPS[:299], {}, "groups has 299 values, but X has 300 samples"),
    (np.full(300, "a"), {}, "groups has only one group, 'a': out-of-bag samples need at least 2"),
    (MISSING, {}, "groups has a missing value in row 7: give every sample a group"),
    (np.where(GROUPS[9] == GROUPS, np.nan, GROUPS), {}, "groups has a missing value in row [0-9]:"),
    (pd.Series(MISSING, dtype="Int64"), {}, "groups has a missing value in row 7:"),
    (pd.to_datetime(pd.Series(MISSING)), {}, "groups has a missing value in row 7:"),
    (np.where(GROUPS[7] == GROUPS, np.datetime64("NaT"), np.datetime64(0, "D")), {}, "missing value in row [0-7]:"),
    (np.ones((300, 2)), {}, r"groups must be one-dimensional, but has the shape \(300, 2\)"),
    (GROUPS, {"bootstrap": False}, "groups need bootstrap=True: without it every tree is grown on all groups"),
    (GROUPS, {"sampling": "balanced"}, "groups need sampling='bootstrap', 'subsample' or 'half-samples', but it"),
    (GROUPS, {"sampling": "stratified"}, "but it is 'stratified': whole groups cannot be sampled by class"),
    (GROUPS, {"sampling": {0: 0.5}}, "but it is {0: 0.5}: whole groups cannot be sampled by class"),
    (GROUPS, {"max_samples": 61}, "max_samples=61 must be at most 60, the number of groups"),
])  # fmt: skip
def test_bad_groups(groups, params, sentence):
    refuse(small_forest(3, **params), sentence, X_GROUPS, Y_GROUPS, groups=groups)


def test_groups_of_rows_of_weight_zero_are_absent():
    one_group, kept = 1.0 * (GROUPS == 59), GROUPS >= 20
    refuse(small_forest(3), "groups has only one group, 59:", X_GROUPS, Y_GROUPS, one_group, groups=GROUPS)
    forest = small_forest(3).fit(X_GROUPS, Y_GROUPS, 1.0 * kept, groups=GROUPS)
    assert digest(forest) == digest(small_forest(3).fit(X_GROUPS[kept], Y_GROUPS[kept], groups=GROUPS[kept]))


def test_groups_and_weights_are_routed():
    options = {"cv": GroupKFold(3), "params": {"groups": GROUPS, "sample_weight": WEIGHT}}
    options |= {"return_estimator": True, "return_indices": True}
    with sklearn.config_context(enable_metadata_routing=True):
        forest = small_forest(5).set_fit_request(groups=True, sample_weight=True).set_score_request(sample_weight=False)
        scorer = get_scorer("roc_auc").set_score_request(sample_weight=True)
        result = cross_validate(forest, X_GROUPS, Y_GROUPS, scoring=scorer, **options)
    train, test = (result["indices"][name][0] for name in ("train", "test"))
    data = X_GROUPS[train], Y_GROUPS[train], WEIGHT[train]
    expected, by_row = small_forest(5).fit(*data, groups=GROUPS[train]), small_forest(5).fit(*data)
    assert digest(result["estimator"][0]) == digest(expected) != digest(by_row)
    scores = expected.predict_proba(X_GROUPS[test])[:, 1]
    assert result["test_score"][0] == roc_auc_score(Y_GROUPS[test], scores, sample_weight=WEIGHT[test])


@pytest.mark.parametrize("n_groups", [1, 9, 10])
def test_few_groups_of_a_class_choose_nothing(n_groups):
    rng, groups = np.random.default_rng(0), np.repeat(np.arange(60), 5)
    labels = np.array(["no", "yes"])[(groups < n_groups).astype(int)]
    table = np.hstack((rng.normal(size=(60, 3))[groups], labels[:, None] == "yes"))
    params = {"n_estimators": 120, "criterion": "auto", "oob_score": True, "calibration": "auto"}
    if n_groups == 10:
        chosen = small_forest(**params, threshold="gmean").fit(table, labels, groups=groups)
        assert np.all(chosen.mixture_["oob_score"] > 0.5)
        assert chosen.threshold_ > 0
        assert chosen.calibration_.n_samples > 0
        return
    sentence = f"^groups: only {n_groups} groups have samples of class 'yes', fewer than 10: its out-of-bag prob"
    with pytest.warns(UserWarning, match=sentence) as caught:
        forest = small_forest(**params, threshold={"alerts": 0.2}).fit(table, labels, groups=groups)
    assert [warning.filename for warning in caught] == [__file__]
    assert forest.shrinkage_ == PRIOR
    assert np.ptp(forest.mixture_["n_trees"]) == 0
    assert np.isnan(forest.mixture_["oob_score"]).all()
    assert forest.calibration_ is None
    refused = f"^threshold='gmean' cannot be tuned out of bag: only {n_groups} groups have samples of class 'yes'"
    with pytest.raises(ValueError, match=refused):
        small_forest(5, threshold="gmean").fit(table, labels, groups=groups)
    with pytest.raises(ValueError, match=refused):
        forest.set_threshold("gmean", table, labels)
    assert 0 < forest.set_threshold("gmean", table, labels, oob=False).threshold_ < 1


@pytest.mark.filterwarnings("ignore:groups. only")
def test_few_groups_of_one_of_many_classes():
    labels, cost = np.where(GROUPS < 4, 2, Y_GROUPS), 1 - np.eye(3)
    forest = small_forest(20, threshold={"cost": cost}).fit(X_GROUPS, labels, groups=GROUPS)
    np.testing.assert_array_equal(forest.threshold_, cost)
    assert forest.shrinkage_ == PRIOR


def test_the_plan_has_room_for_groups():
    groups, table = np.repeat(np.arange(1000, dtype=np.int32), [1, 9] * 500), np.arange(5000.0)[:, None]
    forest = small_forest(1, max_features=1, max_depth=1).fit(table, groups % 2, groups=groups)
    sampler = training_rows(forest, table, groups % 2, None).bags.sampler
    counts = [sampler.counts(key) for key in range(50)]
    assert max(np.count_nonzero(count) for count in counts) <= sampler.n_distinct <= 5000
    assert max(int(count.sum()) for count in counts) <= sampler.n_sampled
    assert sampler.rates == pytest.approx(1.0)
    assert sampler.tree_bytes == sampler.block_sizes(1).nbytes == 2000


def test_a_warm_start_with_more_rows_keeps_what_was_chosen():
    """Choices need the out-of-bag rows of all trees, which cannot be found if trees sampled from different rows."""
    table, labels = make_table(n_rows=400, seed=4)
    params = {"criterion": ["gini", "entropy"], "splitter": "best", "warm_start": True}
    forest = small_forest(60, **params).fit(table[:240], labels[:240])
    calibration = forest.calibration_
    # These differ from what a new fit would choose.
    forest.shrinkage_, forest.variants_ = 50.0, [("gini", "best")] * 45 + [("entropy", "best")] * 15
    with pytest.warns(UserWarning, match="^warm_start: shrinkage, mixture and calibration stay"):
        forest.set_params(n_estimators=120).fit(table, labels)
    assert forest.shrinkage_ == 50.0
    assert forest.calibration_ is calibration is not None
    assert forest.variants_.count(("gini", "best")) == 90


@pytest.mark.parametrize("labels", [Y, np.arange(len(Y)) < 6], ids=["no bootstrap", "few positives"])
def test_a_warm_start_without_evidence_is_as_even_as_a_fit(labels):
    params = {"criterion": ["gini", "entropy", "hellinger"], "bootstrap": labels is not Y}
    forest = small_forest(1, warm_start=True, **params).fit(X, labels)
    forest.set_params(n_estimators=12).fit(X, labels)
    assert forest.variants_ == small_forest(12, **params).fit(X, labels).variants_


def make_strong(n_categories=800):
    """Return a column of many categories with a strong effect, a number, and the labels."""
    random = np.random.default_rng(0)
    shop, amount = random.integers(0, n_categories, 4000), random.normal(size=4000)
    effects = 2.5 * random.normal(size=n_categories)
    X = pd.DataFrame({"amount": amount, "shop": pd.Categorical(shop)})
    return X, random.logistic(size=4000) < effects[shop] + amount


X_STRONG, Y_STRONG = make_strong()


def test_dropped_encodings_stay_dropped_in_a_warm_start():
    forest = small_forest(100).fit(X_STRONG, Y_STRONG)
    assert set(forest.encodings_) == {"rates"}
    more = small_forest(140).fit(X_STRONG, Y_STRONG)
    forest.set_params(warm_start=True, n_estimators=140).fit(X_STRONG, Y_STRONG)
    assert forest.encodings_ == more.encodings_
    np.testing.assert_array_equal(forest.predict_proba(X_STRONG), more.predict_proba(X_STRONG))
    with pytest.warns(UserWarning, match="sampled in different ways"):
        forest.set_params(n_estimators=180, max_samples=0.5).fit(X_STRONG, Y_STRONG)
    assert set(forest.encodings_) == {"rates"}


def test_a_warm_start_with_more_rows_keeps_the_features():
    X, y = make_strong(n_categories=150)
    forest = small_forest(40).fit(X, y)
    names = forest.split_features_.tolist()
    more = pd.concat((X, X[:300]), ignore_index=True).assign(amount=lambda frame: frame.amount + 0.01)
    with pytest.warns(UserWarning, match="sampled in different ways"):
        forest.set_params(warm_start=True, n_estimators=50).fit(more, np.append(y, y[:300]))
    assert forest.split_features_.tolist() == names
    assert forest.target_rates_.tables[0].totals.sum() == len(more)


def test_float32_and_float64_are_alike():
    matrix = np.column_stack((X_STRONG.amount, X_STRONG.shop.astype(int))).astype(np.float32)
    forest = small_forest(60, categorical_features=[1], oob_score=True)
    narrow, wide = (everything(forest.fit(given, Y_STRONG), given) for given in (matrix, matrix.astype(np.float64)))
    assert_same(narrow, wide)


def test_a_scorer_sees_the_features_without_rates():
    forest = small_forest(40, oob_score=lambda estimator, rows, labels: rows.shape[1]).fit(X_STRONG, Y_STRONG)
    assert forest.oob_score_ == 2


def test_weights_may_have_another_unit_after_the_fit():
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(Y_STRONG))
    forest = small_forest(40).fit(X_STRONG, Y_STRONG, weight)
    data, weights = (forest, X_STRONG, Y_STRONG), (weight, 3.0 * weight)
    found = (oob_permutation_importance(*data, sample_weight=given, random_state=0) for given in weights)
    np.testing.assert_allclose(*(each.importances_mean for each in found), rtol=1e-6)
    with pytest.raises(ValueError, match=r"the class totals of categories differ$"):
        oob_permutation_importance(forest, X_STRONG, np.roll(Y_STRONG, 1), sample_weight=weight)


def test_a_column_with_the_name_of_a_rate():
    sentence = "^X has a column 'shop: rate', which is also the name of another feature"
    refuse(small_forest(10), sentence, X_STRONG.assign(**{"shop: rate": 0.0}), Y_STRONG)


@pytest.mark.parametrize(("encoding", "amount"), [("sets", PRIOR), ("rates", PRIOR_WITH_RATES)])
def test_shrinkage_without_clear_evidence(encoding, amount):
    random = np.random.default_rng(2)
    X = pd.DataFrame({"shop": pd.Categorical(random.integers(0, 200, 400))})
    forest = small_forest(40, categorical_encoding=encoding).fit(X, random.integers(0, 2, 400))
    assert forest.shrinkage_ == amount


def test_a_group_that_repeats_is_not_scored_by_trees_that_know_it():
    """Rows of a group are copies, and labels are noise: rows alone seem to be predictable."""
    rng = np.random.default_rng(1)
    table, labels = np.repeat(rng.normal(size=(200, 4)), 5, axis=0), np.repeat(rng.integers(2, size=200), 5)
    params = {"criterion": "auc", "shrinkage": 0.0, "oob_score": True, "n_jobs": 2}
    forest, groups = small_forest(100, **params), np.repeat(np.arange(200), 5)
    assert forest.fit(table, labels).oob_score_ > 0.95
    assert abs(forest.fit(table, labels, groups=groups).oob_score_ - 0.5) < 0.15


def test_noise_of_many_categories_does_not_look_good_out_of_bag():
    scores = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        X = pd.DataFrame({"x": random.normal(size=3000), "shop": pd.Categorical(random.integers(0, 600, 3000))})
        y = random.permutation(np.arange(3000) % 8 == 0)
        scores.append(small_forest(60, random_state=seed, oob_score=True).fit(X, y).oob_score_)
    assert abs(np.mean(scores) - 0.5) < 0.02

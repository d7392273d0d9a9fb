"""Forests that are fitted to Dask collections equal, to the last bit, those of the same rows in memory."""

import pickle
from copy import copy
from functools import partial
from inspect import getmembers, isfunction, signature

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import aucforest
from aucforest import AUCForestClassifier
from aucforest.distributed import ClusterError, DaskAUCForestClassifier, _on_cluster, auc_sketch
from aucforest.distributed._executor import DaskExecutor
from aucforest.distributed._plan import Workers
from aucforest.fitting.job import JobFolder
from tests.distributed.conftest import wait_for
from tests.estimators.data import assert_same_fit
from tests.fitting.forests import chunked, make_frame, make_rows
from tests.fitting.tables import RATED, interactions_of, make_accounts, make_many

X, Y = make_rows()
WEIGHTS = np.random.default_rng(2).integers(0, 4, len(Y)) / 2.0
WEIGHTS[:3000] = 0.0  # the first of three partitions
COSTS = np.random.default_rng(0).exponential([[0.0, 1.0], [20.0, 0.0]], (len(Y), 2, 2))
OPTIONS = {"n_estimators": 6, "random_state": 0}
NUMBERS = np.where(Y == "rare", 7, 3)
NUMBERS[:5] = 5  # a class in a single partition


@pytest.fixture(scope="module")
def local():
    return AUCForestClassifier(**OPTIONS).fit(X, Y)


@pytest.fixture(scope="module")
def fitted(client):
    return DaskAUCForestClassifier(**OPTIONS, client=client).fit(*chunked(2, X, Y))


@pytest.fixture
def plans(monkeypatch):
    made, plan_on_cluster = [], _on_cluster.plan_on_cluster
    monkeypatch.setattr(_on_cluster, "plan_on_cluster", lambda *given: made.append(plan_on_cluster(*given)) or made[-1])
    return made


@pytest.mark.parametrize(
    ("n_parts", "y", "options", "weights"),
    [
        (1, Y, {}, None), (4, NUMBERS, OPTIONS | {"max_depth": None}, None), (7, Y, {"strategy": "gather"}, None),
        (3, Y, {"threshold": "f1", "oob_score": "average_precision", "class_weight": "balanced"}, WEIGHTS),
        (3, Y, {"sampling": "balanced", "oob_score": True, "threshold": {"cost": COSTS}}, None),
        (3, Y, {"bootstrap": False, "class_weight": {"rare": 3.0}}, WEIGHTS),
        (3, Y, {"sampling": "subsample", "class_weight": "balanced_subsample", "shrinkage": 2.0, "max_bins": 16}, None),
        (3, Y, {"sampling": "half-samples", "n_estimators": 100}, WEIGHTS),
        (3, Y, {"monotonic_cst": [1, 0, -1, 0], "max_leaf_nodes": 9, "splitter": "random", "max_bins": None}, WEIGHTS),
    ],
    ids=["default", "numbers", "gather", "tuned", "balanced", "all rows", "subsample", "half-samples", "constrained"],
)  # fmt: skip
def test_forests_are_equal(client, n_parts, y, options, weights):
    forest = DaskAUCForestClassifier(**{"n_estimators": 40, "random_state": 1, "max_depth": 4} | options)
    assert_same_fit(forest.to_local().fit(X, y, weights), forest.fit(*chunked(n_parts, X, y, weights)))


def fit_to_frames(forest, rows, parts):
    """Fit a forest to partitions of a frame, and compare it with one of the same rows in memory."""
    local = forest.to_local().fit(*rows)
    assert_same_fit(local, forest.fit(*parts))
    np.testing.assert_array_equal(forest.predict_proba(parts[0]).compute(), local.predict_proba(rows[0]))
    pd.testing.assert_frame_equal(forest.encode(parts[0]).compute(), local.encode(rows[0]))


def test_large_trees_are_sent_in_batches(client, monkeypatch):
    options = {"threshold": "youden", "oob_score": True, "random_state": 3, "max_depth": 4}
    monkeypatch.setattr("aucforest.estimators._forest_fit.THRESHOLD_STD_ROWS", 2000)
    local = AUCForestClassifier(40, **options).fit(X, Y)
    monkeypatch.setattr(_on_cluster, "_BATCH_BYTES", 5000)
    assert len(_on_cluster.cut_trees(local._pack(), 40)) > 5
    assert_same_fit(local, DaskAUCForestClassifier(40, **options).fit(*chunked(3, X, Y)))


@pytest.mark.parametrize(("n_parts", "options", "weight", "n_classes"), [
    (3, {"strategy": "gather", "threshold": "f1"}, "weight", 2),
    (7, {"strategy": "replicate", "oob_score": "average_precision"}, "weight", 3),
    (7, {"strategy": "gather", "sampling": "balanced", "class_weight": "balanced"}, "weight", 3),
    (3, {"strategy": "replicate", "bootstrap": False, "oob_score": False, "n_estimators": 6}, "weight", 2),
    (7, {"strategy": "gather", "max_bins": None, "class_weight": "balanced_subsample"}, None, 2),
    (3, {"strategy": "gather", "categorical_encoding": "rates"}, None, 2),
])  # fmt: skip
def test_forests_with_target_rates_are_equal(client, n_parts, options, weight, n_classes):
    frame = make_many(n_classes=n_classes).to_pandas()
    tables, names = (frame, dd.from_pandas(frame, npartitions=n_parts)), ["shop", "sign", "postcode", "other"]
    forest = DaskAUCForestClassifier(**RATED | {"random_state": 0, "oob_score": True} | options)
    fit_to_frames(forest, *((rows[names], rows.label, None if weight is None else rows[weight]) for rows in tables))
    assert bool(interactions_of(forest)) == (options.get("categorical_encoding") != "rates")


def test_integers_that_are_categories_first_characters_and_dates_are_found_as_in_memory(client):
    frame = make_accounts(n_classes=3, with_regions=True).to_pandas()
    frame["code"] = frame.account.fillna(0).map("C{:05.0f}".format)
    frame["zip"] = frame.account
    tables, names = (frame, dd.from_pandas(frame, npartitions=5)), ["x", "account", "age", "code", "zip"]
    forest = DaskAUCForestClassifier(20, categorical_features=["code", "zip"], random_state=0, oob_score=True)
    fit_to_frames(forest, *((rows[names], rows.label, rows.weight) for rows in tables))
    assert forest.expanded_[1].parts == ("number", "category", "range of 10")
    assert forest.expanded_[3].parts == ("text", "first 5 characters")
    assert forest.expanded_[4].parts == ("category", "range of 10")
    assert len(forest.categories_[5]) == 200
    frame, labels = make_frame()
    booked = pd.Series(np.datetime64("2024-01-01", "us") + (np.arange(9000) * 79 % 500_000).astype("m8[m]"))
    frame = frame[["size"]].assign(booked=booked.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))
    forest = DaskAUCForestClassifier(**OPTIONS)
    parts = [dd.from_pandas(rows, npartitions=3) for rows in (frame, labels)]
    fit_to_frames(forest, (frame, labels), parts)
    assert forest.n_features_in_ == 2
    assert forest.explain_plan(*parts).size.n_features == 5


def test_target_rates_of_a_matrix_with_an_empty_partition(client):
    """A partition of rows of weight 0 has no codes."""
    X, y = make_rows(900)
    X[:, 0] = np.random.default_rng(0).integers(0, 90, 900)
    weights = np.repeat([0.0, 1.0, 0.5], 300)
    options = OPTIONS | {"categorical_features": [0], "oob_score": True, "n_estimators": 40}
    local = AUCForestClassifier(**options).fit(X, y, weights)
    assert_same_fit(local, DaskAUCForestClassifier(**options).fit(*chunked(6, X, y, weights)))


def test_the_second_plan_includes_target_rates(client, plans):
    rows, forest = dd.from_pandas(make_many().to_pandas(), npartitions=2), DaskAUCForestClassifier(**RATED)
    data = rows[["shop", "sign", "postcode"]], rows.label
    explained = forest.explain_plan(*data)
    plans.clear()
    forest.fit(*data)
    assert plans[0] == explained
    assert plans[1].size.matrix_bytes == 900 * 5
    assert plans[1].worker_bytes > plans[0].worker_bytes


def test_frames_with_unknown_divisions_and_categories_and_empty_partitions(client):
    frame, labels = make_frame()
    parts = dd.from_pandas(frame.assign(label=labels), npartitions=5)
    unknown = pd.Series(dtype=pd.CategoricalDtype([dd.utils.UNKNOWN_CATEGORIES]))
    own_categories = lambda part: part.assign(colour=part.colour.cat.remove_unused_categories())  # noqa: E731
    parts = parts.map_partitions(own_categories, meta=parts._meta.assign(colour=unknown)).clear_divisions()
    kept = parts[(parts["size"].fillna(0.0) < 2.0) & ~parts["count"].between(3.0, 4.0)]
    without_first = lambda part: part[:0] if len(part) > 0 and part.index[0] == 0 else part  # noqa: E731
    kept = kept.map_partitions(without_first, meta=kept._meta)
    assert not kept.colour.cat.known
    rows, columns = kept.compute(), list(frame.columns)
    assert len(rows) < len(frame)
    local = AUCForestClassifier(**OPTIONS).fit(rows[columns].astype({"colour": object}), rows.label)
    forest = DaskAUCForestClassifier(categorical_features=["colour", "city", "open"], **OPTIONS)
    assert_same_fit(local, forest.fit(kept[columns], kept.label))
    assert forest.classes_.dtype == bool
    np.testing.assert_array_equal(forest.predict_proba(kept[columns]).compute(), local.predict_proba(rows[columns]))


def test_parquet_files(client, tmp_path):
    columns = [f"x{j}" for j in range(X.shape[1])]
    rows = pd.DataFrame(X, columns=columns).assign(y=Y, w=WEIGHTS, other=0.0)
    for i, part in enumerate(np.array_split(np.arange(len(rows)), 6)):
        rows.iloc[part].to_parquet(tmp_path / f"{i}.parquet")
    frame = dd.read_parquet(tmp_path)
    assert frame.y.optimize().npartitions < frame[columns].optimize().npartitions
    forest = DaskAUCForestClassifier(**OPTIONS).fit(frame[columns], frame["y"], frame["w"])
    assert_same_fit(AUCForestClassifier(**OPTIONS).fit(rows[columns], rows.y, WEIGHTS), forest)
    proba = forest.predict_proba(frame[columns])[:, 1]
    exact = aucforest.metrics.roc_auc_score(Y == "rare", proba.compute(), sample_weight=WEIGHTS)
    assert auc_sketch(frame["y"] == "rare", proba, frame["w"]).score() == pytest.approx(exact, abs=1e-3)


def test_warm_start_adds_trees(client):
    models = [kind(4, random_state=0, warm_start=True) for kind in (AUCForestClassifier, DaskAUCForestClassifier)]
    for n_estimators in (4, 6):
        for model, data in zip(models, ((X, Y), chunked(2, X, Y))):
            model.set_params(n_estimators=n_estimators).fit(*data)
    assert_same_fit(*models)


def test_a_fit_is_resumed_with_either_strategy(client, local, tmp_path, monkeypatch):
    options, saved, save = OPTIONS | {"checkpoint_dir": tmp_path / "trees"}, [], JobFolder.save
    DaskAUCForestClassifier(**options | {"n_estimators": 3}, strategy="gather").fit(*chunked(2, X, Y))
    note = lambda folder, numbers, *known: (saved.extend(numbers), save(folder, numbers, *known))  # noqa: E731
    monkeypatch.setattr(JobFolder, "save", note)
    for n_parts in (5, 3):
        assert_same_fit(local, DaskAUCForestClassifier(**options).fit(*chunked(n_parts, X, Y)))
        assert sorted(saved) == [3, 4, 5]
    for other, data, match in [
        ({"max_depth": 3}, X, "max_depth is None there, but 3 here"),
        ({"random_state": 1}, X, "the seed is"),
        ({"random_state": None}, X, r"checkpoint_dir needs an integer random_state, .* it is None"),
        ({}, np.where(X > 0.1, 0.1, X), "the digest of the values is"),
    ]:
        with pytest.raises(ValueError, match=match):
            DaskAUCForestClassifier(**options | other).fit(*chunked(2, data, Y))


def test_clones_have_the_client_but_pickles_do_not(client, fitted, local, tmp_path):
    twin = clone(fitted)
    assert twin.client is client
    assert twin.get_params() == fitted.get_params()
    assert not hasattr(twin, "trees_")
    restored = pickle.loads(pickle.dumps(fitted))
    assert restored.client is None
    assert_same_fit(local, restored)
    assert type(fitted.to_local()) is AUCForestClassifier
    assert fitted.to_local().get_params() == local.get_params()
    fitted.save(tmp_path / "forest.safetensors")
    assert_same_fit(local, aucforest.load(tmp_path / "forest.safetensors"))


def test_no_method_computes_a_collection_without_saying_so(local):
    forest = DaskAUCForestClassifier()
    vars(forest).update({name: value for name, value in vars(local).items() if name.endswith("_") or name[0] == "_"})
    fail = lambda part: 1 / 0  # noqa: E731
    arrays, labels, weights = (part.map_blocks(fail, meta=part._meta) for part in chunked(3, X, Y, WEIGHTS))
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    frame = frame.map_partitions(fail, meta=frame._meta)
    methods = {name: signature(method).parameters for name, method in getmembers(DaskAUCForestClassifier, isfunction)}
    lazy = {"predict", "predict_proba", "predict_log_proba", "apply", "encode"}
    others = {"fit", "score", "explain_plan", "decision_path", "predict_interval", "set_threshold"}
    assert {name for name, known in methods.items() if name[0] != "_" and "X" in known} == lazy | others
    refused = [("set_threshold", "f1", X, labels), ("set_threshold", "f1", X, Y, weights)]
    refused += [("score", X, labels), ("score", X, Y, weights)]
    for X_ in (arrays, frame):
        for name in lazy:
            found = getattr(forest, name)(X_)
            with pytest.raises(ZeroDivisionError):
                found.compute(scheduler="sync")
        refused += [("decision_path", X_), ("predict_interval", X_), ("score", X_, Y), ("score", X_, labels)]
        refused += [("set_threshold", "f1", X_, Y), ("set_threshold", 0.5, X_)]
    sentence = r"takes no Dask collections: call it on model\.to_local\(\), with X\.compute\(\)"
    for method, *arguments in refused:
        with pytest.raises(TypeError, match=sentence):
            getattr(forest, method)(*arguments)
    assert forest.score(X, Y, WEIGHTS) == local.score(X, Y, WEIGHTS)
    assert forest.set_threshold("f1", X, Y) is forest
    np.testing.assert_array_equal(forest.predict(X), copy(local).set_threshold("f1", X, Y).predict(X))


def test_parameters_are_those_of_the_forest_and_three_more():
    own = {"strategy": "auto", "checkpoint_dir": None, "client": None}
    forest = DaskAUCForestClassifier(7, max_depth=3, strategy="gather")
    params = AUCForestClassifier(7, max_depth=3).get_params()
    assert forest.get_params() == params | own | {"strategy": "gather"}
    assert repr(forest) == "DaskAUCForestClassifier(max_depth=3, n_estimators=7, strategy='gather')"
    forest.set_params(criterion="gini", strategy="replicate")
    assert (forest.criterion, forest.strategy) == ("gini", "replicate")
    assert clone(forest).get_params() == forest.get_params() == pickle.loads(pickle.dumps(forest)).get_params()
    assert list(signature(DaskAUCForestClassifier).parameters) == [*signature(AUCForestClassifier).parameters, *own]
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        DaskAUCForestClassifier(depth=3)


def test_invalid_data_are_refused_without_changing_the_forest(fitted):
    rows, labels = chunked(3, X, Y)
    mask, full = da.ones(9000, dtype=bool, chunks=3000), partial(da.full, 9000, chunks=3000)
    unknown, unknown_short = rows[mask], labels[da.concatenate([~mask[:1], mask[1:]]).rechunk(3000)]
    text = dd.from_pandas(pd.DataFrame({"a": ["x", "y"] * 4500}), npartitions=3)
    twice = dd.from_pandas(pd.DataFrame(X[:, :2], columns=["a", "a"]), npartitions=3)
    for error, match, arguments, params in [
        (ValueError, "partition 0 of X has 3000 rows, that of y has 2999", (unknown, unknown_short), {}),
        (ValueError, "y has only one class, 7", (rows, full(7)), {}),
        (TypeError, "y has bytes as labels, such as b'a'", (rows, full(b"a")), {}),
        (ValueError, "Input y contains NaN", (rows, full(np.nan)), {}),
        (ValueError, "Negative values in data", (rows, labels, full(-1.0)), {}),
        (ValueError, "sample_weight is zero for all samples", (rows, labels, full(0.0)), {}),
        (ValueError, "X has no samples", (rows[:0], labels[:0]), {}),
        (TypeError, "X has sparse blocks", (rows.map_blocks(sp.csr_matrix, meta=np.empty((0, 0))), labels), {}),
        (ValueError, "X has 2 columns named 'a': column names must be unique", (twice, labels), {}),
        (ValueError, "column 'a' is not numeric", (text, labels), {"categorical_features": None}),
        (ValueError, "'strategy' parameter", (rows, labels), {"strategy": "level"}),
        (ValueError, "groups cannot be sampled .* memory, or by fit_out_of_core$", (rows, labels, None, Y), {}),
        (ValueError, "cost cannot be passed .* a cluster: set threshold={'cost': ", (rows, labels, None, None, Y), {}),
    ]:
        forest = copy(fitted).set_params(**params)
        before = dict(vars(forest))
        with pytest.raises(error, match=match):
            forest.fit(*arguments)
        assert vars(forest) == before


def test_an_interrupted_fit_cancels_its_tasks(client, monkeypatch):
    forest, n_tasks = DaskAUCForestClassifier(**OPTIONS), []

    def count_tasks(dask_scheduler):
        return sum("join" in str(key) or "encode" in str(key) for key in dask_scheduler.tasks)

    def interrupt(*_):
        n_tasks.append(client.run_on_scheduler(count_tasks))
        raise KeyboardInterrupt

    monkeypatch.setattr(_on_cluster.RowsOnCluster, "_grow_trees", interrupt)
    with pytest.raises(KeyboardInterrupt):
        forest.fit(*chunked(2, X, Y))
    assert not hasattr(forest, "trees_")
    assert n_tasks[0] > 0
    assert wait_for(lambda: client.run_on_scheduler(count_tasks) == 0)


def test_the_plan_has_sizes_and_reasons(client):
    plan = DaskAUCForestClassifier(20).explain_plan(*chunked(3, X, Y))
    size = plan.size
    assert (size.n_rows, size.n_features, size.n_classes, size.n_trees) == (9000, 4, 2, 20)
    assert (plan.strategy, size.matrix_bytes, plan.n_parts) == ("replicate", 36_000, 1)
    assert plan.workers == Workers(n_workers=2, n_threads=2, memory=2**31)
    assert "replicate: the binned data, 35.16 KiB, fit into 40% of 2.00 GiB" in str(plan)
    unknown = dd.from_pandas(make_frame()[0], npartitions=2)
    assert DaskAUCForestClassifier(sampling="balanced").explain_plan(unknown).size.n_rows == 9000
    for name, given in (("sampling", {"rare": 1.0, "common": 0.5}), ("class_weight", {True: 3.0})):
        with pytest.raises(ValueError, match=f"^explain_plan needs y if {name} is a dict"):
            DaskAUCForestClassifier(**{name: given}).explain_plan(unknown)


@pytest.mark.parametrize("params", [
    {"monotonic_cst": {"size": 1}}, {"class_weight": {True: 3.0}, "strategy": "replicate"},
    {"sampling": "balanced", "oob_score": True},
])  # fmt: skip
def test_the_plan_equals_that_of_fit(client, monkeypatch, plans, params):
    """The workers are too small, so that the fit ends after planning."""
    monkeypatch.setattr(DaskExecutor, "workers", lambda self: Workers(2, 2, 70_000))
    frame, labels = make_frame()
    rows = dd.from_pandas(frame.assign(label=labels, weight=np.arange(len(frame)) % 3), npartitions=3)
    forest, strategy = DaskAUCForestClassifier(random_state=0, **params), params.get("strategy", "gather")
    for weights in ((), (rows.weight,)):
        data = rows[list(frame.columns)], rows.label, *weights
        explained = forest.explain_plan(*data)
        plans.clear()
        with pytest.raises(ClusterError, match=rf"too little memory: strategy='{strategy}' .* of n_workers=2 workers"):
            forest.fit(*data)
        assert [explained] == plans
        assert explained.strategy == strategy

"""The forest: the checks of scikit-learn, bootstrap samples, threads and processes."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.impute import SimpleImputer
from sklearn.inspection import partial_dependence
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from aucforest import AUCForestClassifier, AUCStackingClassifier, AUCTreeClassifier
from tests.estimators.data import (
    UNSCORED,
    X4,
    Y4,
    assert_same,
    digest,
    everything,
    make_table,
    own_auc,
    refuse,
    small_forest,
)
from tests.reference.tree import walk

X, Y = make_table(n_rows=240, missing=0.1)
FILLED = np.nan_to_num(X)


def inherent(forest):
    """Name the checks that no forest with draws can pass."""
    if not forest.bootstrap:
        return {}
    reason = "draws are made for rows: repeated rows are drawn apart, a weighted row is drawn as one"
    return dict.fromkeys((f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")), reason)


UNDEFINED = "ignore:(ROC AUC|Hand and Till's M) is not defined"


@parametrize_with_checks([AUCForestClassifier(4)], expected_failed_checks=inherent)
@pytest.mark.filterwarnings(UNSCORED, UNDEFINED)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        AUCForestClassifier(4, bootstrap=False, class_weight="balanced_subsample"),
        AUCForestClassifier(4, sampling="balanced"),
        AUCForestClassifier(4, criterion="gini", max_bins=None, oob_score=True, max_samples=0.5, n_jobs=2),
    ],
    expected_failed_checks=inherent,
)
@pytest.mark.filterwarnings(UNSCORED, UNDEFINED)
def test_scikit_learn_of_other_parameters(estimator, check):
    check(estimator)


def run_python(program, **options):
    """Run a program in a process of its own, in which warnings are errors."""
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(program)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


BACKENDS = """
    import json, sys
    import numpy as np
    from joblib import parallel_config
    from tests.estimators.data import digest, make_table, own_auc, small_forest

    def run():
        X, y = make_table(n_rows=300, n_classes=4, seed=1)
        forest = small_forest(40, oob_score=True, class_weight="balanced_subsample").fit(X, y, np.linspace(0.5, 2, 300))
        arrays = forest.predict_proba(X), forest.oob_decision_function_, forest.apply(X)
        # Processes compile a criterion anew.
        own = small_forest(2, criterion=own_auc).fit(X, y > 0)
        trees = "".join(b.hex() for model in (forest, own) for tree in digest(model) for b in tree)
        # More than a megabyte of codes: workers see them as memory maps.
        wide = np.tile(X, (250, 4))
        forest = small_forest(2, max_depth=3, class_weight="balanced").fit(wide, np.tile(y, 250))
        memory_maps = forest.predict_proba(wide[:300])
        return [trees, memory_maps.tobytes().hex(), *(array.tobytes().hex() for array in arrays)]

    if __name__ == "__main__":
        expected = run()
        same = {}
        for backend in ("sequential", "threading", "loky", "multiprocessing"):
            with parallel_config(backend=backend, n_jobs=2):
                same[backend] = run() == expected
        print(json.dumps(same))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are not forked")
def test_results_do_not_depend_on_the_backend():
    process = run_python(BACKENDS)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert json.loads(output) == dict.fromkeys(["sequential", "threading", "loky", "multiprocessing"], True)


@pytest.mark.slow
def test_ctrl_c_during_a_fit():
    process = run_python(
        """
        import threading, time
        from tests.estimators.data import make_table, small_forest

        X, y = make_table(n_rows=20_000)
        for n_jobs, warm_start in ((1, True), (2, False)):
            forest = small_forest(2, max_depth=6, n_jobs=n_jobs, verbose=1, warm_start=warm_start).fit(X, y)
            before = forest.predict_proba(X)
            try:
                # For long; larger trees would take too much memory.
                forest.set_params(n_estimators=200_000).fit(X, y)
            except KeyboardInterrupt:
                assert len(forest) == 2 and (forest.predict_proba(X) == before).all()
                while any("(worker)" in thread.name for thread in threading.enumerate()):
                    time.sleep(0.01)
                forest.set_params(n_estimators=3, verbose=0).fit(X, y)
                print("interrupted, and fitted", len(forest), flush=True)
        """
    )
    try:
        # Every second bar says that the trees of the long fit start to grow.
        seen = ""
        for n_bars in (2, 4):
            while seen.count("| 0/") < n_bars:
                seen += process.stderr.read(1)
                assert process.poll() is None, seen
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert output == "interrupted, and fitted 3\n" * 2, errors
    assert process.returncode == 0


@pytest.mark.filterwarnings(UNSCORED)
@pytest.mark.parametrize("grouped", [False, True], ids=["samples", "groups"])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"sampling": "subsample"},
        *({"sampling": sampling} for sampling in ("stratified", "balanced", {0: 0.2, 3: 1.5})),
        {"criterion": own_auc, "max_leaf_nodes": 20, "splitter": "random", "class_weight": "balanced"},
    ],
    ids=["bootstrap", "subsample", "stratified", "balanced", "rates", "best first"],
)
def test_results_do_not_depend_on_n_jobs(params, grouped):
    if grouped and params.get("sampling", "subsample") != "subsample":
        pytest.skip("whole groups are not sampled by class")
    table, labels, groups = np.tile(X4, (30, 1)), np.tile(Y4, 30), np.arange(9000) // 7 % 1200 if grouped else None
    forests = [small_forest(40, n_jobs=n_jobs, oob_score=True, max_depth=5, **params) for n_jobs in (1, 3)]
    one, other = (forest.fit(table, labels, groups=groups) for forest in forests)
    assert_same(everything(one, table), everything(other, table))
    assert (one.oob_score_, one.shrinkage_) == (other.oob_score_, other.shrinkage_)


def test_the_progress_bar(capsys):
    small_forest(5, n_jobs=2).fit(X, Y)
    assert capsys.readouterr().err == ""
    small_forest(5, n_jobs=2, verbose=1).fit(X, Y)
    shown = capsys.readouterr()
    assert "trees: 100%" in shown.err
    assert "5/5" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_estimators": 0}, r"'n_estimators' parameter .* an int in the range \[1, inf\). Got 0 instead"),
        ({"max_samples": 0}, r"'max_samples' parameter .* Got 0 instead"),
        ({"max_samples": 1.5}, r"'max_samples' parameter .* Got 1.5 instead"),
        ({"max_samples": 241}, "^max_samples=241 must be at most 240, the number of samples$"),
        ({"max_samples": 0.5, "bootstrap": False}, "^max_samples=0.5 needs bootstrap=True$"),
        ({"oob_score": True, "bootstrap": False}, "^oob_score=True needs out-of-bag samples: set bootstrap=True"),
        ({"bootstrap": "no"}, "'bootstrap' parameter .* Got 'no' instead"),
        ({"warm_start": 2}, "'warm_start' parameter .* Got 2 instead"),
        ({"verbose": -1}, "'verbose' parameter .* Got -1 instead"),
        ({"n_jobs": 0.5}, "'n_jobs' parameter .* Got 0.5 instead"),
        ({"n_jobs": 0}, "n_jobs == 0 in Parallel has no meaning"),
        *(({"shrinkage": value}, r"'shrinkage' parameter .* Got ") for value in (-1, np.nan, np.inf, "prior", [1.0])),
        *(
            ({"oob_score": name}, f"'oob_score' parameter .* Got '{name}' instead")
            for name in ("best", "precision_at_k")
        ),
        ({"oob_score": "recall_at_1.5"}, r"^k of 'recall_at_1.5' must be a number of samples"),
        ({"oob_score": "f1", "bootstrap": False}, "^oob_score='f1' needs out-of-bag samples: set bootstrap=True$"),
        ({"criterion": ["auc", "chi2"]}, r"^criterion=\['auc', 'chi2'\]: 'chi2' is none of auc, "),
        ({"criterion": ["auc", "auto"]}, "'auto' is none of auc, "),
        ({"splitter": ["best", 3]}, r"^splitter=\['best', 3\]: 3 is none of best, random"),
        ({"criterion": []}, r"^criterion=\[\] must be a non-empty list without duplicates"),
        ({"criterion": ["entropy", "log_loss"]}, "without duplicates"),
        ({"criterion": [own_auc, own_auc]}, "without duplicates"),
        ({"criterion": [["auc"]]}, r"\['auc'\] is none of auc, "),
        ({"pos_label": 7}, r"^pos_label=7 is not one of the classes \[0, 1\]$"),
        *(
            ({"categorical_encoding": value}, "categorical_encoding")
            for value in ([], ["auto"], "codes", [["rates"]], ["rates", "rates"], ["sets", {}], 3)
        ),
    ],
)
def test_bad_parameter(params, message):
    refuse(small_forest(**params), message, X, Y)


def test_max_samples_counts_rows_of_positive_weight():
    refuse(small_forest(max_samples=121), "^max_samples=121 must be at most 120, the number", X, Y, np.arange(240) % 2)


def test_without_a_bootstrap_a_tree_sees_all_rows():
    forest = small_forest(bootstrap=False).fit(X, Y)
    assert [(tree.n_samples[0], tree.weight[0]) for tree in forest.trees_] == [(240, 240)] * 6
    assert forest.score(X, Y) == 1.0
    assert len({str(tree) for tree in digest(forest)}) == 6


def test_balanced_subsamples_balance_every_tree():
    every = small_forest(class_weight="balanced_subsample").fit(X4, Y4)
    for tree in every.trees_:
        np.testing.assert_allclose(tree.value[0], np.full(4, 0.25))
        assert tree.weight[0] == pytest.approx(300)
    once = small_forest(class_weight="balanced").fit(X4, Y4)
    assert np.ptp([tree.value[0, 0] for tree in once.trees_]) > 0.01
    assert np.mean([tree.value[0, 0] for tree in once.trees_]) == pytest.approx(0.25, abs=0.05)


def test_members():
    forest = small_forest(criterion="gini", max_depth=4, class_weight="balanced_subsample", calibration=None).fit(
        X4, Y4
    )
    assert len(forest) == len(forest.estimators_) == len(forest.trees_) == 6
    assert (forest.n_classes_, forest.n_outputs_) == (4, 1)
    total = np.zeros((300, 4))
    for i, (member, tree) in enumerate(zip(forest.estimators_, forest.trees_, strict=True)):
        assert isinstance(member, AUCTreeClassifier)
        assert (member.criterion, member.max_depth, member.max_features) == ("gini", 4, "sqrt")
        assert member.tree_ is tree
        assert member.n_features_in_ == 5
        assert member is forest[i]
        np.testing.assert_array_equal(member.apply(X4), forest.apply(X4)[:, i])
        total += member.predict_proba(X4)
    np.testing.assert_array_equal(total / 6, forest.predict_proba(X4))
    assert list(forest) == forest.estimators_ == [*forest[:-1], forest[-1]]
    with pytest.raises(IndexError):
        forest[6]
    with pytest.raises(NotFittedError):
        small_forest()[0]


def test_the_paths_of_a_row():
    forest = small_forest(4).fit(X4, Y4)
    paths, first = forest.decision_path(X4)
    assert first.tolist() == np.cumsum([0, *(tree.n_nodes for tree in forest.trees_)]).tolist()
    assert paths.shape == (300, first[-1])
    for row in range(0, 300, 13):
        steps = [start + np.array(walk(tree, X4[row])) for tree, start in zip(forest.trees_, first)]
        np.testing.assert_array_equal(np.sort(paths[row].indices), np.concatenate(steps))
    assert set(paths.data) == {1}
    assert paths.dtype == np.int64


def test_as_good_as_the_forest_of_scikit_learn():
    differences = []
    for seed in range(4):
        table, labels = make_classification(900, 10, n_informative=5, weights=[0.85], class_sep=0.8, random_state=seed)
        params = {"max_features": "sqrt", "min_samples_leaf": 3, "random_state": seed}
        peer = RandomForestClassifier(60, **params).fit(table[:500], labels[:500])
        ours = AUCForestClassifier(60, criterion="auc", **params).fit(table[:500], labels[:500])
        scores = [roc_auc_score(labels[500:], model.predict_proba(table[500:])[:, 1]) for model in (ours, peer)]
        assert scores[0] > 0.8
        differences.append(scores[0] - scores[1])
    assert np.mean(differences) > -0.01


SAMPLED = [({}, 240), ({"sampling": "subsample"}, 152), ({"max_samples": 50}, 50), ({"max_samples": 0.25}, 60)]


@pytest.mark.parametrize(("params", "n_rows"), [*SAMPLED, ({"max_samples": 1e-9}, 1), ("groups", 240)])
def test_bootstrap_samples_are_those_that_trees_were_grown_on(params, n_rows):
    groups = np.arange(240) // 4 if params == "groups" else None
    forest = small_forest(4, **({} if groups is not None else params)).fit(X, Y, groups=groups)
    samples = forest.estimators_samples_
    assert len(samples) == 4
    for tree, rows in zip(forest.trees_, samples):
        assert len(rows) == tree.weight[0] == n_rows
        assert len(np.unique(rows)) == tree.n_samples[0]
        np.testing.assert_allclose(np.bincount(Y[rows], minlength=2) / len(rows), tree.value[0])
        if groups is not None:
            assert np.ptp(np.bincount(rows, minlength=240).reshape(-1, 4), axis=1).max() == 0


def test_bootstrap_samples_that_are_not_known():
    of_all = small_forest(2, bootstrap=False).fit(X, Y).estimators_samples_
    assert [rows.tolist() for rows in of_all] == [[*range(240)]] * 2
    with pytest.raises(AttributeError, match=r"^estimators_samples_ needs the same sampling of all classes and trees"):
        small_forest(sampling="balanced").fit(X, Y).estimators_samples_
    forest = small_forest(2, warm_start=True, calibration=None).fit(X, Y)
    forest.set_params(n_estimators=4, max_samples=99).fit(X, Y)
    assert not hasattr(forest, "estimators_samples_")
    assert not hasattr(small_forest(), "estimators_samples_")


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"criterion": "gini"}, {"splitter": "random"}, {"max_leaf_nodes": 20}, {"min_weight_fraction_leaf": 0.01},
     {"bootstrap": False, "shrinkage": 0.0}, {"class_weight": "balanced_subsample"}, {"sampling": "balanced"}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("weighted", [False, True])
def test_a_factor_of_all_weights_changes_nothing(options, n_classes, weighted):
    """Up to rounding. Constant weights are as none. Columns are of few values, so that many splits tie."""
    table, labels = make_table(300, n_classes=n_classes, seed=n_classes)
    table = np.column_stack([table.round(), table[:, 0] + 3 * table[:, 1]])
    weights = np.random.default_rng(0).choice([0.3, 0.7, 1.9], len(labels)) if weighted else None
    scaled = 0.123 * weights if weighted else np.full(len(labels), 1 / 3)
    one, other = (small_forest(6, **options).fit(table, labels, given) for given in (weights, scaled))
    assert one.shrinkage_ == other.shrinkage_
    for tree, twin in zip(one.trees_, other.trees_):
        for name in ("feature", "threshold", "missing_left"):
            np.testing.assert_array_equal(getattr(tree, name), getattr(twin, name))
    np.testing.assert_allclose(one.predict_proba(table), other.predict_proba(table), rtol=0, atol=1e-12)


def forest(**params):
    return small_forest(20, min_samples_leaf=5, **params)


def test_html_shows_the_parameters_and_links_nowhere_else():
    html = small_forest().fit(X, Y)._repr_html_()
    assert "n_estimators" in html
    assert "href=" not in html


@pytest.mark.parametrize("make", [forest, lambda: AUCStackingClassifier(forest())], ids=["forest", "stack"])
def test_partial_dependence_is_the_mean_prediction(make):
    model = make().fit(FILLED, Y)
    found = partial_dependence(model, FILLED, [0], grid_resolution=4, kind="both", response_method="predict_proba")
    for i, value in enumerate(found["grid_values"][0]):
        table = FILLED.copy()
        table[:, 0] = value
        np.testing.assert_allclose(found["individual"][0, :, i], model.predict_proba(table)[:, 1])
    np.testing.assert_allclose(found["average"][0], found["individual"][0].mean(axis=0))
    assert found["average"][0, -1] > found["average"][0, 0] + 0.2


def test_pipelines_of_columns():
    kinds = np.random.default_rng(0).choice(["a", "b", "c"], len(Y))
    frame = pd.DataFrame(X, columns=list("vwxyz")).assign(kind=kinds)
    labels = np.where((Y == 1) ^ (kinds == "c"), "yes", "no")
    columns = ColumnTransformer(
        [("kinds", OneHotEncoder(sparse_output=False), ["kind"]), ("numbers", SimpleImputer(), list("vwxyz"))],
        verbose_feature_names_out=False,
    )
    model = make_pipeline(columns, forest()).set_output(transform="pandas").fit(frame, labels)
    assert model[-1].feature_names_in_.tolist() == ["kind_a", "kind_b", "kind_c", *"vwxyz"]
    assert roc_auc_score(labels == "yes", model.predict_proba(frame)[:, 1]) > 0.8


def test_weights_are_routed_by_scikit_learn():
    weight, train, test = np.where(Y == 1, 5.0, 1.0), np.arange(160), np.arange(160, 240)
    with config_context(enable_metadata_routing=True):
        model = forest().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        scorer = get_scorer("neg_brier_score").set_score_request(sample_weight=True)
        options = {"cv": [(train, test)], "params": {"sample_weight": weight}, "return_estimator": True}
        found = cross_validate(model, X, Y, scoring=scorer, **options)
    expected = forest().fit(X[train], Y[train], weight[train]).predict_proba(X[test])
    np.testing.assert_array_equal(found["estimator"][0].predict_proba(X[test]), expected)
    errors = (expected[:, 1] - Y[test]) ** 2
    assert found["test_score"][0] == pytest.approx(-np.average(errors, weights=weight[test]))

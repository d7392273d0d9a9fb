"""The forest: the checks of scikit-learn, bootstrap samples, threads and processes."""

import os
import signal
import subprocess
import sys
import time
from itertools import product

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from aucforest import AUCForestClassifier, AUCTreeClassifier
from tests.estimators.data import X4, Y4, assert_same, digest, everything, make_table, own_auc, refuse, small_forest
from tests.reference.tree import walk

pytestmark = pytest.mark.filterwarnings("ignore:.* no out-of-bag prob|(ROC AUC|Hand and Till's M) is not defined")
X, Y = make_table(missing=0.1)
BEST_FIRST = {"criterion": own_auc, "max_leaf_nodes": 20, "splitter": "random", "class_weight": "balanced"}


def inherent(forest):
    """Name the checks that no forest with bootstrap samples can pass."""
    if not forest.bootstrap:
        return {}
    reason = "rows are sampled: repeated rows independently, but a weighted row as one"
    return dict.fromkeys((f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")), reason)


@parametrize_with_checks([AUCForestClassifier(4)], expected_failed_checks=inherent)
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
def test_scikit_learn_of_other_parameters(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sequential", "threading", "loky", "multiprocessing"])
def test_results_do_not_depend_on_the_backend(backend):
    def run():
        params, weight = {"oob_score": True, "class_weight": "balanced_subsample"}, np.linspace(0.5, 2, 300)
        forest, own = small_forest(40, **params).fit(X4, Y4, weight), small_forest(2, criterion=own_auc).fit(X4, Y4 > 0)
        # more than a megabyte, so that processes get a memory map
        wide = small_forest(2, max_depth=3).fit(np.tile(X4, (250, 4)), np.tile(Y4, 250))
        return everything(forest, X4), digest(own), digest(wide), wide.predict_proba(np.tile(X4, 4))

    with parallel_config(backend=backend, n_jobs=2):
        found = run()
    assert_same(found, run())


@pytest.mark.slow
def test_ctrl_c_during_a_fit():
    program = """if True:
        import threading, time
        from tests.estimators.data import make_table, small_forest

        X, y = make_table(n_rows=20_000)
        for n_jobs, warm_start in ((1, True), (2, False)):
            forest = small_forest(2, max_depth=6, n_jobs=n_jobs, verbose=1, warm_start=warm_start).fit(X, y)
            before = forest.predict_proba(X)
            try:
                # For long; larger trees would take too much memory.
                forest.set_params(n_estimators=20_000).fit(X, y)
            except KeyboardInterrupt:
                assert len(forest) == 2 and (forest.predict_proba(X) == before).all()
                while any("(worker)" in thread.name for thread in threading.enumerate()):
                    time.sleep(0.01)
                forest.set_params(n_estimators=3, verbose=0).fit(X, y)
                print("interrupted, and fitted", len(forest), flush=True)
    """
    options = {"env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, "text": True}
    command = [sys.executable, "-W", "error", "-c", program]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
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


@pytest.mark.parametrize(("params", "grouped"), [
    *(({"sampling": sampling}, False) for sampling in ("stratified", "balanced", {0: 0.2, 3: 1.5})),
    *product(({}, {"sampling": "subsample"}, BEST_FIRST), (False, True)),
])  # fmt: skip
def test_results_do_not_depend_on_n_jobs(params, grouped):
    table, labels, groups = np.tile(X4, (30, 1)), np.tile(Y4, 30), np.arange(9000) // 7 % 1200 if grouped else None
    forests = [small_forest(40, n_jobs=n_jobs, oob_score=True, max_depth=5, **params) for n_jobs in (1, 3)]
    one, other = (forest.fit(table, labels, groups=groups) for forest in forests)
    assert_same(everything(one, table), everything(other, table))
    assert (one.oob_score_, one.shrinkage_) == (other.oob_score_, other.shrinkage_)


def test_the_progress_bar(capsys):
    small_forest(5, n_jobs=2).fit(X, Y)
    assert capsys.readouterr().err == ""
    small_forest(5, n_jobs=2, verbose=1).fit(X, Y)
    out, err = capsys.readouterr()
    assert "trees: 100%" in err
    assert "5/5" in err
    assert out == ""


@pytest.mark.parametrize(("params", "message"), [
    ({"n_estimators": 0}, r"'n_estimators' parameter .* an int in the range \[1, inf\). Got 0 instead"),
    *(
        ({name: value}, f"'{name}' parameter .* Got {value!r} instead")
        for name, value in {"max_samples": 0, "bootstrap": "no", "warm_start": 2, "verbose": -1}.items()
    ),
    ({"n_jobs": 0.5}, "'n_jobs' parameter .* Got 0.5 instead"),
    ({"max_samples": 1.5}, r"'max_samples' parameter .* Got 1.5 instead"),
    ({"max_samples": 241}, "^max_samples=241 must be at most 240, the number of samples$"),
    ({"max_samples": 0.5, "bootstrap": False}, "^max_samples=0.5 needs bootstrap=True$"),
    ({"oob_score": True, "bootstrap": False}, "^oob_score=True needs out-of-bag samples: set bootstrap=True"),
    ({"n_jobs": 0}, "n_jobs == 0 in Parallel has no meaning"),
    *(({"shrinkage": value}, r"'shrinkage' parameter .* Got ") for value in (-1, np.nan, np.inf, "prior", [1.0])),
    *(({"oob_score": name}, f"'oob_score' param.* Got '{name}' instead") for name in ("best", "precision_at_k")),
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
])  # fmt: skip
def test_bad_parameter(params, message):
    refuse(small_forest(**params), message, X, Y)


def test_max_samples_counts_rows_of_positive_weight():
    refuse(small_forest(max_samples=121), "^max_samples=121 must be at most 120, the number", X, Y, np.arange(240) % 2)


def test_members():
    params = {"criterion": "gini", "max_depth": 4, "class_weight": "balanced_subsample", "calibration": None}
    forest = small_forest(**params).fit(X4, Y4)
    assert len(forest) == len(forest.estimators_) == len(forest.trees_) == 6
    assert (forest.n_classes_, forest.n_outputs_) == (4, 1)
    for i, (member, tree) in enumerate(zip(forest.estimators_, forest.trees_, strict=True)):
        assert isinstance(member, AUCTreeClassifier)
        assert (member.criterion, member.max_depth, member.max_features) == ("gini", 4, "sqrt")
        assert member.tree_ is tree
        assert member.n_features_in_ == 5
        assert member is forest[i]
        np.testing.assert_array_equal(member.apply(X4), forest.apply(X4)[:, i])
    total = sum(member.predict_proba(X4) for member in forest)
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
    "options", [{}, {"splitter": "random", "min_weight_fraction_leaf": 0.01, "shrinkage": 20.0}], ids=str
)
@pytest.mark.parametrize("values", [[1.0], [0.3, 0.7, 1.9], [1.0, 2.0, 3.0]], ids=["alike", "fractions", "integers"])
def test_a_factor_of_all_weights_changes_nothing(options, n_classes, values):
    """Equal weights are like no weights. Columns have few values, so that many splits tie."""
    table, labels = make_table(300, n_classes=n_classes, seed=n_classes)
    table = np.column_stack([table.round(), table[:, 0] + 3 * table[:, 1]])
    weights = np.random.default_rng(0).choice(values, 300)
    one, *others = (
        small_forest(30, **options).fit(table, labels, given)
        for given in (None if values == [1.0] else weights, 0.123 * weights, 2.0**-40 * weights)
    )
    for other, atol in zip(others, (1e-12, 0.0)):
        assert one.shrinkage_ == other.shrinkage_
        for tree, twin in zip(one.trees_, other.trees_):
            for name in ("feature", "threshold", "missing_left"):
                np.testing.assert_array_equal(getattr(tree, name), getattr(twin, name))
        np.testing.assert_allclose(one.predict_proba(table), other.predict_proba(table), rtol=0, atol=atol)

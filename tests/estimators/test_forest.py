"""The forest: the checks of scikit-learn, bootstrap samples, threads and processes."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_val_predict, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from aucforest import AUCForestClassifier, AUCStackingClassifier, AUCTreeClassifier
from aucforest.fitting.bootstrap import BootstrapSampler
from aucforest.fitting.spec import tree_keys
from tests.estimators.data import assert_same, digest, everything, make_table, small_forest, small_tree, walk

X, Y = make_table(n_rows=240, missing=0.1)
X4, Y4 = make_table(n_rows=300, n_classes=4, seed=1)

UNSCORED = "ignore:.* no out-of-bag probability"


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


def test_results_do_not_depend_on_n_jobs():
    many = np.tile(X4, (30, 1))
    labels = np.tile(Y4, 30)
    forests = [small_forest(9, n_jobs=n_jobs, oob_score=True, max_depth=6) for n_jobs in (1, 2, 3, -1, None)]
    with pytest.warns(UserWarning, match="of 9000 samples .* training sample of every one of the 9 trees"):
        expected, *others = [everything(forest.fit(many, labels), many) for forest in forests]
    for other in others:
        assert_same(expected, other)
    assert len({forest.oob_score_ for forest in forests}) == 1


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
    ],
)
def test_bad_parameter(params, message):
    forest = small_forest(**params)
    with pytest.raises(ValueError, match=message) as caught:
        forest.fit(X, Y)
    assert "\n" not in str(caught.value)
    assert not [name for name in vars(forest) if name.endswith("_")]


def test_max_samples_counts_rows_of_positive_weight():
    with pytest.raises(ValueError, match=r"^max_samples=121 must be at most 120, the number of samples$"):
        small_forest(max_samples=121).fit(X, Y, np.arange(240) % 2)


@pytest.mark.parametrize(("max_samples", "n_sampled"), [(None, 240), (50, 50), (0.25, 60), (1.0, 240), (1e-9, 1)])
def test_a_tree_draws_rows(max_samples, n_sampled):
    forest = small_forest(max_samples=max_samples).fit(X, Y)
    for tree, key in zip(forest.trees_, tree_keys(forest._seed, range(6)), strict=True):
        counts = BootstrapSampler.of_all(240, n_sampled).counts(key)
        assert tree.weight[0] == n_sampled == counts.sum()
        assert tree.n_samples[0] == np.count_nonzero(counts)
        np.testing.assert_allclose(tree.value[0], np.bincount(Y, counts, minlength=2) / n_sampled)


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


def test_importances_are_the_means_over_trees_with_splits():
    """As in scikit-learn's forest: gains of criteria have different units, and a tree without a split has none."""
    X, y = make_table()
    forest = small_forest(12).fit(X, y)
    means = np.mean([tree.feature_importances_ for tree in forest], axis=0)
    np.testing.assert_allclose(forest.feature_importances_, means, rtol=1e-14)
    leaf = small_tree().fit(np.zeros((4, 5)), [0, 1, 1, 1]).trees_
    larger = small_forest(1).fit(X, y)
    larger.trees_ = [replace(tree, gain=1e300 * tree.gain) for tree in forest.trees_[:6]] + forest.trees_[6:] + leaf
    np.testing.assert_allclose(larger.feature_importances_, means, rtol=1e-14)


@pytest.mark.parametrize("params", [{}, {"sampling": "subsample"}, {"max_samples": 50}, "groups"])
def test_bootstrap_samples_are_those_that_trees_were_grown_on(params):
    groups = np.arange(240) // 4 if params == "groups" else None
    forest = small_forest(4, **({} if groups is not None else params)).fit(X, Y, groups=groups)
    samples = forest.estimators_samples_
    assert len(samples) == 4
    for tree, rows in zip(forest.trees_, samples):
        assert len(rows) == tree.weight[0]
        assert len(np.unique(rows)) == tree.n_samples[0]
        np.testing.assert_allclose(np.bincount(Y[rows]) / len(rows), tree.value[0])
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


@pytest.mark.parametrize("make", [small_forest, small_tree])
def test_numbers_of_classes_and_outputs(make):
    model = make()
    assert not hasattr(model, "n_classes_")
    assert not hasattr(model, "n_outputs_")
    model.fit(X4, Y4)
    assert (model.n_classes_, model.n_outputs_) == (4, 1)


# Whole numbers, so that many splits of different features tie, and a column with more values than bins.
TABLES = {}
for n_classes in (2, 3):
    columns, labels = make_table(600, n_classes=n_classes, seed=n_classes)
    TABLES[n_classes] = np.column_stack([columns.round(), columns[:, 0] + 3 * columns[:, 1]]), labels
OPTIONS = [
    {},
    {"criterion": "gini"},
    {"criterion": "entropy"},
    {"criterion": "hellinger"},
    {"splitter": "random"},
    {"max_leaf_nodes": 20},
    {"min_weight_fraction_leaf": 0.01},
    {"bootstrap": False, "shrinkage": 0.0},
    {"class_weight": "balanced"},
    {"class_weight": "balanced_subsample"},
]


def assert_same_up_to_rounding(forest, other, X):
    """Compare trees, and predictions but for the rounding of weights."""
    assert forest.shrinkage_ == other.shrinkage_
    for tree, twin in zip(forest.trees_, other.trees_):
        np.testing.assert_array_equal(tree.feature, twin.feature)
        np.testing.assert_array_equal(tree.threshold, twin.threshold)
        np.testing.assert_array_equal(tree.missing_left, twin.missing_left)
    np.testing.assert_allclose(forest.predict_proba(X), other.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_classes", TABLES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_factor_of_all_weights_changes_nothing(options, n_classes, weighted):
    """Constant weights are as none."""
    X, y = TABLES[n_classes]
    weights = np.random.default_rng(0).choice([0.3, 0.7, 1.9], len(y)) if weighted else None
    forest = AUCForestClassifier(10, random_state=0, **options).fit(X, y, weights)
    scaled = 0.123 * weights if weighted else np.full(len(y), 1 / 3)
    assert_same_up_to_rounding(forest, AUCForestClassifier(10, random_state=0, **options).fit(X, y, scaled), X)


matplotlib.use("Agg")

X_TOOLS, Y_TOOLS = make_table(n_rows=300, missing=0.05)
X3, Y3 = make_table(n_rows=300, n_classes=3, seed=1)
FILLED = np.nan_to_num(X_TOOLS)


def test_html_shows_the_parameters_and_links_nowhere_else():
    html = small_forest().fit(X_TOOLS, Y_TOOLS)._repr_html_()
    assert "n_estimators" in html
    assert "href=" not in html


@pytest.fixture
def pyplot():
    module = pytest.importorskip("matplotlib.pyplot")
    yield module
    module.close("all")


def forest(**params):
    return small_forest(20, min_samples_leaf=5, **params)


@pytest.fixture(scope="module")
def fitted():
    return forest().fit(FILLED, Y_TOOLS)


@pytest.fixture(scope="module")
def stack():
    return AUCStackingClassifier(forest()).fit(FILLED, Y_TOOLS)


@pytest.mark.parametrize("name", ["fitted", "stack"])
def test_partial_dependence_is_the_mean_prediction(name, request):
    fitted = request.getfixturevalue(name)
    found = partial_dependence(fitted, FILLED, [0], grid_resolution=4, kind="both", response_method="predict_proba")
    for i, value in enumerate(found["grid_values"][0]):
        table = FILLED.copy()
        table[:, 0] = value
        np.testing.assert_allclose(found["individual"][0, :, i], fitted.predict_proba(table)[:, 1])
    np.testing.assert_allclose(found["average"][0], found["individual"][0].mean(axis=0))
    assert found["average"][0, -1] > found["average"][0, 0] + 0.2


def test_partial_dependence_of_many_classes_and_two_features(pyplot):
    model = forest().fit(X3, Y3)
    options = {"grid_resolution": 4, "response_method": "predict_proba"}
    averages = partial_dependence(model, X3, [0], **options)["average"]
    np.testing.assert_allclose(averages.sum(axis=0), 1.0)
    display = PartialDependenceDisplay.from_estimator(model, X3, [0, (0, 1)], target=2, **options)
    np.testing.assert_allclose(display.lines_[0, 0].get_ydata(), averages[2])


def test_calibration():
    model = CalibratedClassifierCV(forest(), cv=3).fit(X_TOOLS, Y_TOOLS)
    np.testing.assert_allclose(model.predict_proba(X_TOOLS).sum(axis=1), 1.0)
    assert roc_auc_score(Y_TOOLS, model.predict_proba(X_TOOLS)[:, 1]) > 0.8


@pytest.mark.parametrize(
    "search",
    [
        lambda model: GridSearchCV(model, {"max_depth": [1, 4]}, scoring="roc_auc", cv=3),
        lambda model: HalvingGridSearchCV(
            model,
            {"max_depth": [1, 4]},
            resource="n_estimators",
            min_resources=4,
            max_resources=8,
            scoring="roc_auc",
            cv=3,
            random_state=0,
        ),
    ],
    ids=["grid", "halving"],
)
def test_searches(search):
    found = search(small_forest(5)).fit(X_TOOLS, Y_TOOLS)
    assert found.best_params_["max_depth"] == 4
    assert found.best_estimator_.max_depth == 4
    assert found.best_score_ == max(found.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(found.predict_proba(X_TOOLS), found.best_estimator_.predict_proba(X_TOOLS))


def test_pipelines_of_columns():
    pandas = pytest.importorskip("pandas")
    kinds = np.random.default_rng(0).choice(["a", "b", "c"], len(Y_TOOLS))
    frame = pandas.DataFrame(X_TOOLS, columns=list("vwxyz")).assign(kind=kinds)
    labels = np.where((Y_TOOLS == 1) ^ (kinds == "c"), "yes", "no")
    columns = ColumnTransformer(
        [("kinds", OneHotEncoder(sparse_output=False), ["kind"]), ("numbers", SimpleImputer(), list("vwxyz"))],
        verbose_feature_names_out=False,
    )
    model = make_pipeline(columns, forest()).set_output(transform="pandas").fit(frame, labels)
    assert model[-1].feature_names_in_.tolist() == ["kind_a", "kind_b", "kind_c", *"vwxyz"]
    assert roc_auc_score(labels == "yes", model.predict_proba(frame)[:, 1]) > 0.8
    assert cross_val_predict(model, frame, labels, cv=3).shape == (300,)


def test_unions_and_selection_by_importance():
    union = FeatureUnion([("as it is", "passthrough"), ("scaled", StandardScaler())])
    model = make_pipeline(union, SelectFromModel(forest(), max_features=4), forest()).fit(FILLED, Y_TOOLS)
    # The columns that matter, twice each.
    assert sorted(model[1].get_support(indices=True)) == [0, 1, 5, 6]
    assert model.score(FILLED, Y_TOOLS) > 0.8


def test_votes_stacks_and_one_against_the_rest():
    first, second = forest(criterion="gini").fit(FILLED, Y_TOOLS), LogisticRegression().fit(FILLED, Y_TOOLS)
    models = [("forest", forest(criterion="gini")), ("linear", LogisticRegression())]
    voted = VotingClassifier(models, voting="soft").fit(FILLED, Y_TOOLS).predict_proba(FILLED)
    np.testing.assert_allclose(voted, (first.predict_proba(FILLED) + second.predict_proba(FILLED)) / 2)
    assert StackingClassifier(models, cv=3).fit(FILLED, Y_TOOLS).score(FILLED, Y_TOOLS) > 0.75
    rest = OneVsRestClassifier(forest()).fit(X3, Y3)
    np.testing.assert_allclose(rest.predict_proba(X3).sum(axis=1), 1.0)


@pytest.mark.parametrize("name", ["fitted", "stack"])
def test_permutation_importance(name, request):
    model = request.getfixturevalue(name)
    drop = permutation_importance(model, FILLED, Y_TOOLS, n_repeats=2, random_state=0, scoring="roc_auc")
    assert drop.importances_mean.argsort()[:-3:-1].tolist() == [0, 1]


def test_weights_are_routed_by_scikit_learn():
    weight = np.where(Y_TOOLS == 1, 5.0, 1.0)
    folds = [(np.arange(200), np.arange(200, 300))]
    with config_context(enable_metadata_routing=True):
        model = forest().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        scorer = get_scorer("neg_brier_score").set_score_request(sample_weight=True)
        options = {"cv": folds, "params": {"sample_weight": weight}, "return_estimator": True}
        found = cross_validate(make_pipeline(scaler, model), X_TOOLS, Y_TOOLS, scoring=scorer, **options)
    expected = forest().fit(StandardScaler().fit(X_TOOLS[:200]).transform(X_TOOLS[:200]), Y_TOOLS[:200], weight[:200])
    scaled = StandardScaler().fit(X_TOOLS[:200]).transform(X_TOOLS[200:])
    np.testing.assert_array_equal(found["estimator"][0][-1].predict_proba(scaled), expected.predict_proba(scaled))
    errors = (expected.predict_proba(scaled)[:, 1] - Y_TOOLS[200:]) ** 2
    assert found["test_score"][0] == pytest.approx(-np.average(errors, weights=weight[200:]))

"""Out-of-bag permutation importance against plain loops."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.utils import check_random_state

from aucforest.estimators.out_of_bag import training_rows
from aucforest.estimators.out_of_bag_pairs import OutOfBagPairs
from aucforest.inspection import importance, oob_permutation_importance
from aucforest.metrics import compare_auc, hand_till_score
from aucforest.tree.tree import SHARED_CODE
from tests.estimators.data import make_table, small_forest
from tests.estimators.rated import make_interaction
from tests.reference.importance import out_of_bag_sums

X, Y = make_table(n_rows=300, missing=0.1)
X3, Y3 = make_table(n_rows=700, n_classes=3, seed=1)
WEIGHT, WEIGHT3 = (np.where(np.arange(n) % 7 == 0, 0.0, 1.0 + np.arange(n) % 3) for n in (300, 700))


def permuted_proba(forest, rows, feature, repeat):
    """Return the probabilities of the rows of positive weight when a feature of X is permuted, by loops."""
    kept = rows.bags.all_kept
    matrix, counts = np.minimum(rows.take(kept), SHARED_CODE), rows.counts(range(len(forest)))[kept].T
    if feature is not None:
        random = np.random.default_rng([int(check_random_state(0).randint(np.iinfo(np.int32).max)), feature])
        order = [random.permutation(len(matrix)) for _ in range(repeat + 1)][-1]
        columns = np.array(forest._inputs_of_features) == feature
        matrix[:, columns] = matrix[order][:, columns]
    sums = np.array(out_of_bag_sums(forest.trees_, matrix.tolist(), counts.tolist()))
    return forest._mean_of_trees(sums, (counts == 0).sum(axis=0)[:, None])


SCORES = {
    "roc_auc": lambda y, p, weight: roc_auc_score(y, p[:, 1], sample_weight=weight),
    "hand_till": lambda y, p, weight: hand_till_score(y, p, sample_weight=weight),
    "average_precision": lambda y, p, weight: average_precision_score(y, p, sample_weight=weight),
    "balanced_accuracy": lambda y, p, weight: balanced_accuracy_score(y, p.argmax(axis=1), sample_weight=weight),
    "neg_log_loss": lambda y, p, weight: -log_loss(y, p, sample_weight=weight),
}


RATED, RATED_Y = make_interaction(600)
ENCODINGS = ["sets", "rates", "interactions"]
RATES = {"max_depth": 4, "categorical_encoding": ENCODINGS}


@pytest.mark.parametrize(("data", "params", "weight", "groups", "scoring"), [
    ((X, Y), {}, None, None, "roc_auc"), ((X, Y), {"sampling": "balanced"}, WEIGHT, None, "neg_log_loss"),
    ((X, Y), {"max_samples": 0.4}, WEIGHT, None, "roc_auc"), ((X3, Y3), {"max_depth": 5}, None, None, "roc_auc"),
    ((X3, Y3), {"max_depth": 5}, WEIGHT3, None, "average_precision"),
    ((X3, Y3), {}, WEIGHT3, None, "balanced_accuracy"), ((RATED, RATED_Y), RATES, None, None, "roc_auc"),
    ((RATED, RATED_Y), RATES, np.arange(600) % 7 / 3, None, "neg_log_loss"),
    ((RATED, RATED_Y), RATES, None, np.arange(600) // 2, "roc_auc"),
])  # fmt: skip
def test_importances_equal_those_by_loops(data, params, weight, groups, scoring):
    X, y = data
    score = SCORES["hand_till" if scoring == "roc_auc" and y.max() > 1 else scoring]
    forest = small_forest(25, **params).fit(X, y, weight, groups)
    options = {"scoring": scoring, "n_repeats": 2, "sample_weight": weight, "random_state": 0}
    result = oob_permutation_importance(forest, X, y, **options)
    if params is RATES:
        assert (forest._inputs_of_features, {*forest.encodings_}) == ([0, 1, 2, 0, 0, 2], {*ENCODINGS})
    rows = training_rows(forest, X, y, weight)
    kept, proba = rows.bags.all_kept, permuted_proba(forest, rows, None, 0)
    kept_weight = None if weight is None else weight[kept]
    baseline = by_row = score(y[kept], proba, kept_weight)
    if scoring == "roc_auc":
        baseline = OutOfBagPairs(forest, rows, None).correct(by_row, 25, kept, proba)
    assert result.baseline_score == pytest.approx(baseline, rel=1e-12)
    assert (result.n_scored, len(result.feature_names)) == (len(kept), X.shape[1])
    for feature in (0, X.shape[1] - 1):
        for repeat in range(2):
            expected = by_row - score(y[kept], permuted_proba(forest, rows, feature, repeat), kept_weight)
            assert result.importances[feature, repeat] == pytest.approx(expected, abs=1e-12)


def test_importances_do_not_depend_on_tasks_and_threads(monkeypatch):
    table = np.random.default_rng(0).normal(size=(4500, 70))
    labels = (table[:, 0] + table[:, 69] > 1).astype(int)
    forest, found = small_forest(15, max_features=None, max_depth=4, n_jobs=2).fit(table, labels), []
    for n_jobs, limits in [(1, {}), (2, {"_MOST_BYTES": 2**28, "_TASK_ORDERS": 3}), (2, {"_MOST_BYTES": 10**6})]:
        for name, limit in limits.items():
            monkeypatch.setattr(importance, name, limit)
        with pytest.warns(UserWarning, match="of 4500 samples .* every one of the 15 trees, .* in the importances"):
            found.append(oob_permutation_importance(forest, table, labels, n_repeats=1, random_state=1, n_jobs=n_jobs))
    assert set(found[0].importances_mean.argsort()[-2:]) == {0, 69}
    for result in found[1:]:
        np.testing.assert_array_equal(result.importances, found[0].importances)
        np.testing.assert_array_equal(result.importances_stderr, found[0].importances_stderr)


def test_standard_errors_are_close_to_those_of_delong():
    """Standard errors from ten parts have 9 degrees of freedom, so the mean square of many is compared."""
    table, labels = make_table(n_rows=1500, n_features=3)
    ratios = []
    for seed in range(6):
        forest = small_forest(40, random_state=seed, n_jobs=2, max_features=1).fit(table, labels)
        result = oob_permutation_importance(forest, table, labels, n_repeats=1, random_state=seed)
        rows, state = training_rows(forest, table, labels, None), check_random_state(seed)
        out_of_bag = importance._OutOfBagSums(forest, rows, 1, int(state.randint(np.iinfo(np.int32).max)), 2)
        for features, totals in out_of_bag.permuted():
            for feature, total in zip(features, totals):
                both = [(sums / out_of_bag.n_trees[:, None])[:, 1] for sums in (out_of_bag.baseline, total)]
                test = compare_auc(labels, *both)
                assert test.difference == pytest.approx(result.importances[feature, 0])
                ratios.append((result.importances_stderr[feature] * test.z / test.difference) ** 2)
    # The mean of 18 squares with a standard deviation of sqrt(2 / 9) has a standard error of 0.11.
    assert 0.67 < np.mean(ratios) < 1.45


def test_the_variance_of_permutations_decreases_with_repeats():
    """If the variance is 4 due to rows and 1 due to a permutation, that of a mean over 5 repeats is 4 + 1 / 5."""
    random = np.random.default_rng(0)
    repeats = random.normal(scale=2, size=(4000, 1)) + random.normal(size=(4000, 5))
    parts = random.normal(scale=np.sqrt(10 * 5), size=(4000, 10))
    errors = np.array([importance.standard_error(*both) for both in zip(repeats, parts)])
    # A single estimate has a standard deviation of 2.4.
    assert np.mean(errors**2) == pytest.approx(4.2, abs=0.15)
    # With fewer than 9 degrees of freedom, intervals of 1.96 standard errors would contain 0 in 0.892 of the cases.
    result = importance.PermutationImportance(repeats, errors, 0.0, 1, "roc_auc", tuple(map(str, range(4000))), 10)
    low, high = result.importances_interval().T
    assert np.mean((low <= 0) & (high >= 0)) >= 0.92
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), but is 95"):
        result.importances_interval(95)
    assert importance.standard_error(repeats[0, :1], parts[0]) == parts[0].std(ddof=1) / np.sqrt(10)


def test_a_class_of_one_row_has_no_standard_error():
    labels = np.where(np.arange(300) == X[:, 0].argmax(), 1, 0)
    result = oob_permutation_importance(small_forest(40).fit(X, labels), X, labels)
    assert np.isnan(result.importances_stderr).all()
    assert np.isfinite(result.importances).all()


def test_scorers_can_be_functions():
    labels = np.where(Y == 1, "yes", "no")
    forest, sizes = small_forest(40).fit(X, labels), []

    def accuracy(estimator, rows, labels):
        sizes.append(len(rows))
        return np.mean(estimator.predict(rows) == labels)

    by_name, by_hand = (
        oob_permutation_importance(forest, X, labels, scoring=scoring, random_state=0)
        for scoring in ("accuracy", accuracy)
    )
    np.testing.assert_allclose(by_hand.importances, by_name.importances, atol=1e-15)
    np.testing.assert_allclose(by_hand.importances_stderr, by_name.importances_stderr, atol=1e-15)
    assert by_hand.scoring == "accuracy"
    # all rows and ten parts; all rows for five repeats of five features, and each part once for each feature
    assert (sizes.count(300), sizes.count(30), len(sizes)) == (1 + 25, 10 + 50, 86)


def test_tables_have_the_names_of_columns_and_progress_is_shown(capsys):
    frame = pd.DataFrame(X, columns=list("abcde"))
    result = oob_permutation_importance(small_forest(40).fit(frame, Y), frame, Y, verbose=1)
    assert "5/5" in capsys.readouterr().err
    table = result.to_frame()
    assert table.index[:2].tolist() == ["a", "b"]
    assert table["mean"].is_monotonic_decreasing
    of_repeats = result.importances[2]
    assert table.loc["c"].tolist() == [of_repeats.mean(), result.importances_stderr[2], of_repeats.std()]
    lines = repr(result).splitlines()
    assert lines[0] == f"out-of-bag roc_auc {result.baseline_score:.4f} (300 samples); drop by feature:"
    assert lines[1].split() == ["a", f"{table['mean']['a']:+.4f}", "±", f"{table['stderr']['a']:.4f}"]
    assert f"<td>{table.loc['a', 'mean']:.6g}</td>" in result._repr_html_()


def test_the_plot_shows_means_and_intervals():
    result = oob_permutation_importance(small_forest(40).fit(X, Y), X, Y, random_state=0)
    display = result.plot(max_features=3)
    ax = display.ax_
    assert [label.get_text() for label in ax.get_yticklabels()][:2] == ["feature_0", "feature_1"]
    points, _, (bars,) = display.container_
    order = result.importances_mean.argsort()[:-4:-1]
    assert points.get_xdata().tolist() == result.importances_mean[order].tolist()
    ends = np.array([segment[:, 0] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, result.importances_interval()[order])
    assert result.plot(ax).ax_ is ax
    with pytest.raises(ValueError, match=r"^max_features must be an integer >= 1, got 0$"):
        result.plot(max_features=0)


@pytest.mark.parametrize(("options", "sentence", "params"), [
    ({"n_repeats": 0}, "n_repeats must be an integer >= 1, got 0", {}),
    ({}, "no sample is out of bag: all 6 trees use all 300", {"sampling": "subsample", "max_samples": 1.0}),
])  # fmt: skip
def test_invalid_arguments_are_refused(options, sentence, params):
    forest = small_forest(**params).fit(X, Y)
    with pytest.raises(ValueError, match=sentence):
        oob_permutation_importance(forest, **{"X": X, "y": Y, **options})

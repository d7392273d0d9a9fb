"""Comparison of criteria: equal rows and seeds, the test against its definition, the table and the plot."""

import math
import sys

import numba
import numpy as np
import pytest
from sklearn.metrics import recall_score, roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit

from aucforest import AUCForestClassifier, AUCStackingClassifier
from aucforest.datasets import load_page_blocks
from aucforest.inspection import CriteriaComparison, compare_criteria, folds
from tests.reference.nadeau_bengio import corrected_resampled_ttest

CRITERIA = ("auc", "gini", "entropy")
METRICS = ("roc_auc", "fit_seconds")
QUALITY = ("roc_auc", "average_precision", "g_mean", "brier", "log_loss")
N_TRAIN, N_TEST = 80, 20
# The upper bound of a metric for two classes, and for more.
GREATEST = dict.fromkeys(QUALITY, (1.0, 1.0)) | {"brier": (1.0, 2.0)}
GREATEST |= dict.fromkeys(("log_loss", "fit_seconds"), (np.inf, np.inf))


def comparison(seed=0, n_folds=10, criteria=CRITERIA, metrics=METRICS, n_classes=2):
    fields = [("fold", "i8"), ("criterion", "U7"), ("n_train", "i8"), ("n_test", "i8")]
    table = np.zeros((n_folds, len(criteria)), [*fields, *((metric, "f8") for metric in metrics)])
    random = np.random.default_rng(seed)
    table["criterion"] = criteria
    table["n_train"], table["n_test"] = N_TRAIN, N_TEST
    for metric in metrics:
        table[metric] = random.normal(0.8, 0.1, table.shape)
    return CriteriaComparison(criteria, metrics, table, n_classes)


@pytest.mark.parametrize(("seed", "n_folds"), [(0, 2), (1, 5), (2, 30)])
def test_summary_is_the_corrected_resampled_test(seed, n_folds):
    result = comparison(seed, n_folds)
    rows = {(row.metric, row.criterion): row for row in result.summary(level=0.9)}
    assert len(rows) == len(METRICS) * len(CRITERIA)
    for (metric, criterion), row in rows.items():
        values = result.folds[metric][:, CRITERIA.index(criterion)]
        differences = values - result.folds[metric][:, CRITERIA.index("gini")]
        assert row.mean == pytest.approx(values.mean())
        assert row.difference == pytest.approx(differences.mean())
        if criterion == "gini":
            assert (row.difference, row.difference_low, row.difference_high, row.pvalue) == (0, 0, 0, 1)
        else:
            _, pvalue = corrected_resampled_ttest(differences, N_TRAIN, N_TEST)
            assert row.pvalue == pytest.approx(pvalue, abs=1e-12)
        # The test rejects the bounds of a 90 % interval of the difference at 10 %, up to a difference of 1.
        upper = 1.0 if metric == "roc_auc" else np.inf
        for end in (row.difference_low, row.difference_high):
            pvalue = corrected_resampled_ttest(differences - end, N_TRAIN, N_TEST)[1] if criterion != "gini" else 0.1
            assert pvalue == pytest.approx(0.1, abs=1e-6) if abs(end) < upper else pvalue > 0.1
        # So it does for the mean, if the variance is proportional to t (1 - t / upper) from the mean to the bound t.
        for end in (row.low, row.high):
            assert 0 < end < upper
            scale = math.sqrt(end * (1 - end / upper) / (row.mean * (1 - row.mean / upper)))
            moved = (values - row.mean) * scale + row.mean - end
            assert corrected_resampled_ttest(moved, N_TRAIN, N_TEST)[1] == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize("values", [[0.0, 0.05, 0.4], [0.998, 1.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0 - 2**-40]])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_intervals_stay_in_the_range_of_the_metric(values, n_classes):
    result = comparison(n_folds=3, metrics=tuple(GREATEST), n_classes=n_classes)
    for metric, of_classes in GREATEST.items():
        result.folds[metric][:, 0] = np.multiply(values, min(of_classes[n_classes - 2], 2.0))
    for row in result.summary(level=0.99):
        upper = GREATEST[row.metric][n_classes - 2]
        assert 0 <= row.low <= row.mean <= row.high <= upper
        assert -upper <= row.difference_low <= row.difference <= row.difference_high <= upper


@pytest.mark.parametrize("values", [[1.0] * 3, [0.0] * 3, [0.1] * 3, [1.0, 1.0, 1.0 - 2**-53]])
def test_equal_folds_have_no_interval(values):
    result = comparison(n_folds=3, criteria=("auc", "gini"))
    result.folds["roc_auc"] = np.reshape(values, (3, 1))
    for row in result.summary()[:2]:
        assert row.mean == pytest.approx(values[0])
        assert np.isnan([row.low, row.high]).all()
        assert (row.difference, row.pvalue) == (0.0, 1.0)
        assert np.isnan(row.difference_low) == np.isnan(row.difference_high) == (row.criterion == "auc")
    assert f"auc   {values[0]:.4f}  +0.0000  p = 1\n  gini  {values[0]:.4f}\n" in repr(result)
    assert result.verdict().endswith("on these folds; gini has the highest ROC AUC, then auc, +0.0000.")
    result.plot()


def shifted(shifts, metric="roc_auc"):
    """Return a comparison of criteria whose means differ from the mean of Gini by these shifts."""
    result = comparison(n_folds=10, criteria=("gini", *shifts), metrics=(metric, "fit_seconds"))
    noise = np.random.default_rng(0).normal(size=(10, len(shifts)))
    noise = (noise - noise.mean(axis=0)) / noise.std(axis=0, ddof=1)
    result.folds[metric][:, 1:] = result.folds[metric][:, :1] + list(shifts.values()) + 0.01 * noise
    return result


def test_p_values_are_adjusted_by_holms_method():
    result = shifted({"auc": 0.015, "entropy": 0.016, "c": 0.0, "d": np.nan})
    gini, second, first, third, undefined = result.summary()[:5]
    assert (gini.pvalue, gini.adjusted_pvalue) == (1.0, 1.0)
    assert [first.criterion, second.criterion] == ["entropy", "auc"]
    assert [first.adjusted_pvalue, third.adjusted_pvalue] == pytest.approx([3 * first.pvalue, third.pvalue])
    assert second.adjusted_pvalue == pytest.approx(max(3 * first.pvalue, 2 * second.pvalue))
    assert np.isnan(undefined.adjusted_pvalue)
    assert first.pvalue < 0.05 < first.adjusted_pvalue


NONE = "No criterion ranks significantly better than gini on these folds"


# A mean over 10 folds of 80 and 20 rows with this spread has a standard error of 0.00592, and t is 2.262. The last
# difference is not significant among three, although the interval does not contain 0.
@pytest.mark.parametrize(("shifts", "significant", "best"), [
    ({"auc": 0.006, "auto": 0.004}, NONE, "auc has the highest ROC AUC, +0.006, 95 % interval -0.007 to +0.019."),
    (
        {"auc": -0.03, "auto": -0.004}, f"{NONE}, and auc ranks significantly worse",
        "gini has the highest ROC AUC, then auto, -0.004, 95 % interval -0.017 to +0.009.",
    ),
    (
        {"auc": 0.03, "auto": 0.04, "entropy": -0.05},
        "auc and auto rank significantly better than gini on these folds, and entropy ranks significantly worse",
        "auto has the highest ROC AUC, +0.040, 95 % interval +0.027 to +0.053.",
    ),
    ({"c": 0.015, "a": 0.0, "b": 0.0}, NONE, "c has the highest ROC AUC, +0.015, 95 % interval +0.002 to +0.028."),
])  # fmt: skip
def test_the_verdict(shifts, significant, best):
    result = shifted(shifts)
    assert result.verdict() == repr(result).splitlines()[0] == f"{significant}; {best}"


def test_the_verdict_on_losses_and_other_metrics():
    assert shifted({}).verdict() == "There is no criterion to compare with gini."
    result = shifted({"auc": -0.03}, metric="log_loss")
    sentence = "auc does significantly better than gini on these folds; auc has the lowest log loss, -0.030, 99 % inter"
    assert result.verdict(level=0.99).startswith(sentence)
    assert result.verdict("fit_seconds").startswith("No criterion does significantly better than gini on these folds; ")
    with pytest.raises(ValueError, match="metric must be among log_loss, fit_seconds, got 'brier'"):
        result.verdict("brier")
    with pytest.raises(ValueError, match="metrics must be among log_loss, fit_seconds, got 'f1'"):
        result.plot(metrics=["f1"])
    for method in (result.verdict, result.summary, result.plot):
        with pytest.raises(ValueError, match=r"level must be in \(0, 1\), but is 95"):
            method(level=95)
    only_cost = comparison(metrics=("fit_seconds",))
    with pytest.raises(ValueError, match="the comparison has no metric of quality, only fit_seconds: name one"):
        only_cost.verdict()
    assert repr(only_cost).startswith("3 criteria on 10 folds, differences from gini")
    text = repr(comparison(metrics=("fit_seconds", "roc_auc")))
    assert text.index("ROC AUC\n") < text.index("fit time in seconds\n")


def test_a_difference_without_spread_cannot_be_tested():
    result = comparison()
    result.folds["roc_auc"] = result.folds["roc_auc"][:, :1] + [0.1, 0.0, 0.0]
    rows = result.summary()[:3]
    np.testing.assert_array_equal([row.pvalue for row in rows], [np.nan, 1, 1])
    assert [row.pvalue_text for row in rows] == ["", "", "p = 1"]
    assert np.isnan([rows[0].difference_low, rows[0].difference_high]).all()


def test_levels_close_to_one():
    less, more = (comparison(metrics=("fit_seconds",)).summary(level)[0] for level in (1 - 1e-12, 1 - 1e-16))
    assert 0 <= more.low < less.low < less.high < more.high < np.inf
    assert more.difference_low < less.difference_low < less.difference_high < more.difference_high


def test_the_text_and_the_tables_have_all_means():
    result = comparison()
    text, html, frame = repr(result), result._repr_html_(), result.to_frame()
    for row in result.summary():
        digits = 2 if row.high - row.low >= 0.2 else 3
        assert f"{row.mean:.{digits}f} [{row.low:.{digits}f}, {row.high:.{digits}f}]" in text
        assert f"<td>{row.mean:.6g}</td>" in html
    assert text.count("p = ") + text.count("p < 0.001") == 2
    assert result.summary()[0]._replace(adjusted_pvalue=0.00099).pvalue_text == "p < 0.001"
    assert frame.shape == (30, 6)
    np.testing.assert_array_equal(frame[frame["criterion"] == "entropy"]["roc_auc"], result.folds["roc_auc"][:, 2])


def test_costs_are_rounded_by_their_intervals_and_have_no_p_values():
    result = comparison(criteria=("auc", "gini"), metrics=("roc_auc", "n_nodes", "depth"))
    result.folds["n_nodes"] = 1455.724 + np.arange(20).reshape(10, 2) % 7
    result.folds["depth"] = [11.25, 15.5]
    text = repr(result)
    assert "  auc   1458.4 [1455.7, 1461.2]" in text
    assert text.endswith("tree depth\n  auc   11.25  -4.250\n  gini  15.50")
    assert [row.pvalue_text == "" for row in result.summary()] == [False, True, True, True, True, True]
    assert result._table()["adjusted_pvalue"].notna().tolist() == [True, True, False, False, False, False]


def test_the_plot_shows_paired_differences():
    result = comparison()
    assert len([panel for panel in result.plot().axes if panel.axison]) == len(METRICS)
    panel = result.plot(metrics=["roc_auc"]).axes[0]
    rows = [row for row in result.summary()[:3] if row.criterion != "gini"]
    ends = [x for row in rows for x in ((row.difference_low, row.difference_high), (row.difference,))]
    assert [tuple(line.get_xdata()) for line in panel.lines] == [(0.0, 0.0), *ends]
    auc = dict(zip(CRITERIA, result.folds["roc_auc"].T))
    dots = [points.get_offsets()[:, 0] for points in panel.collections]
    np.testing.assert_array_equal(dots, [auc[row.criterion] - auc["gini"] for row in rows])
    assert [label.get_text() for label in panel.get_yticklabels()] == [row.criterion for row in rows]


def test_p_values_do_not_overlap_with_panels():
    figure = comparison().plot()
    figure.draw_without_rendering()
    panels = [panel for panel in figure.axes if panel.axison]
    for panel in panels:
        boxes = [text.get_window_extent() for text in panel.texts if text.get_text()]
        assert len(boxes) == 2 * panel.get_title().startswith("ROC AUC")
        assert not any(box.overlaps(other.get_window_extent()) for box in boxes for other in panels)


@pytest.fixture(scope="module")
def data():
    X, y = load_page_blocks(return_X_y=True)
    return X[:1500], np.where(y[:1500] == 1, "line", "other")


def run(data, criteria=("auc", "gini"), **params):
    defaults = {"n_estimators": 5, "cv": 3, "random_state": 0, "verbose": 0}
    return compare_criteria(*data, criteria=criteria, **defaults | params)


def quality(comparison, criterion):
    k = comparison.criteria.index(criterion)
    return [comparison.folds[metric][:, k].tolist() for metric in (*QUALITY, "n_nodes", "depth")]


def test_metrics_depend_on_the_criterion_and_the_seed_only(data):
    alone, among = run(data, ("gini",), n_jobs=2), run(data, ("auc", "hellinger", "gini"))
    assert quality(alone, "gini") == quality(among, "gini")
    assert quality(among, "auc") not in (quality(among, "gini"), quality(run(data, random_state=1), "auc"))
    rows = np.arange(len(data[1]))  # seeds differ between folds of the same rows
    assert len(set(quality(run(data, cv=[(rows[::2], rows[1::2])] * 3), "auc")[4])) == 3


@numba.njit
def gini(left, node):  # the gain of "auc", with the name of another criterion
    return 0.5 * abs(left[0] / node[0] - left[1] / node[1])


def test_the_name_of_a_function_is_no_name_of_a_criterion(data):
    comparison = run(data, (gini, "auc"))
    assert comparison.criteria == ("gini()", "auc", "gini")
    assert quality(comparison, "gini()")[0] == pytest.approx(quality(comparison, "auc")[0], abs=0.01)


def test_a_stack_has_the_folds_and_seeds_of_the_forests(data):
    found = run(data, ("auto", "stack"), n_estimators=30, oob_score="neg_log_loss", threshold="gmean")
    assert found.criteria == ("auto", "stack", "gini")
    assert quality(found, "auto") == quality(run(data, ("auto",), n_estimators=30, threshold="gmean"), "auto")
    (X, y), random = data, np.random.RandomState(0)
    train, test = folds.make_folds(X, y, cv=3, random_state=random)[1]
    seed = random.randint(np.iinfo(np.int32).max, size=3)[1]
    stack = AUCStackingClassifier(AUCForestClassifier(30, random_state=seed), threshold="gmean").fit(X[train], y[train])
    of_stack = found.folds[1, 1]
    auc = roc_auc_score(y[test] == "other", stack.predict_proba(X[test])[:, 1])
    assert of_stack["roc_auc"] == pytest.approx(auc, abs=1e-12)
    recalls = recall_score(y[test], stack.predict(X[test]), average=None)
    assert of_stack["g_mean"] == pytest.approx(np.sqrt(recalls.prod()))
    trees = [tree for name in ("forest", "residual", "boosted") for tree in stack.members_[name].trees_]
    assert of_stack["n_nodes"] == np.mean([tree.n_nodes for tree in trees])


def test_the_default_threshold_finds_a_rare_class():
    X, y = np.random.default_rng(0).normal(size=(1000, 3)), np.arange(1000) < 20
    X[y] += 0.8
    options = {"cv": 2, "n_estimators": 30, "random_state": 0, "verbose": 0, "metrics": ["g_mean"]}
    found, plain = compare_criteria(X, y, **options), compare_criteria(X, y, threshold=None, **options)
    assert found.criteria == ("auto", "auc", "gini")
    assert found.folds["g_mean"].min() > 0.3
    assert plain.folds["g_mean"].mean() < 0.1


def test_each_fold_fits_another_criterion_first(data, monkeypatch):
    order, fit = [], AUCForestClassifier.fit
    note = lambda forest, *data, **options: order.append(forest.criterion) or fit(forest, *data, **options)  # noqa: E731
    monkeypatch.setattr(AUCForestClassifier, "fit", note)
    run(data, CRITERIA, cv=4)
    after_compiling = order[3:]
    assert after_compiling[::3] == ["auc", "entropy", "gini", "auc"]
    assert sorted(order) == sorted(CRITERIA * 5)


def test_folds_are_recorded(data):
    table = run(data, n_repeats=2).folds
    assert table["fold"].tolist() == [[k, k] for k in range(6)]
    assert table["criterion"].tolist() == [["auc", "gini"]] * 6
    np.testing.assert_array_equal(table["n_train"] + table["n_test"], 1500)
    assert (table["fit_seconds"] > 0).all()


def test_more_than_two_classes_and_weights():
    X, y = (values[::3] for values in load_page_blocks(return_X_y=True))
    plain, weighted = (run((X, y), ("auc",), sample_weight=weight) for weight in (None, np.where(y == 0, 0.25, 1.0)))
    assert plain.n_classes == 5
    assert (plain.folds["roc_auc"] > 0.9).all()
    assert (weighted.folds["log_loss"] != plain.folds["log_loss"]).all()


def test_progress_is_shown(data, capsys):
    for verbose, shown in ((1, True), (0, False)):
        run(data, verbose=verbose)
        assert ("6/6" in capsys.readouterr().err) == shown


@pytest.mark.parametrize(("params", "sentence"), [
    ({"criteria": "auc"}, "criteria must be a non-empty list of names, got 'auc'"),
    ({"criteria": ("auc", "auc")}, "criteria contains 'auc' twice"),
    ({"criteria": ("auc", "ginny")}, "'criterion'.*'ginny'"),
    ({"metrics": ("roc_auc", "f1")}, "metrics must be among .*, got 'f1'"),
    ({"y": np.repeat(["fraud", "genuine"], [1, 1499])}, "class fraud has 1 sample, too few for 3 folds"),
    ({"cv": StratifiedShuffleSplit(2), "n_repeats": 2}, "n_repeats=2 needs an integer cv"),
    ({"n_repeats": 0}, "n_repeats must be an integer >= 1, got 0"),
    ({"cv": StratifiedShuffleSplit(1)}, "at least 2 folds, but cv has 1"),
    ({"cv": [(range(1000), range(500))] * 2, "y": np.arange(1500) > 500}, "fold 0 has no test sample of class"),
    ({"sample_weight": [1.0]}, "inconsistent numbers of samples"), ({"y": np.linspace(0, 1, 1500)}, "continuous"),
    ({"y": ["a"] * 1500}, "y has only one class, 'a': at least 2 are needed"),
    ({"y": ["a", "b"]}, "inconsistent numbers of samples"),
    ({"groups": np.arange(1400)}, "groups has 1400 values, but X has 1500 samples"),
    ({"groups": np.arange(1500) > 500, "cv": 2, "y": np.arange(1500) > 500}, "no training sample of class"),
    ({"criteria": [["auc", "gini"], "auto"]}, r"criteria must hold single .* has the list \['auc', 'gini'\]"),
])  # fmt: skip
def test_invalid_arguments_are_refused(data, params, sentence):
    X, y = data
    with pytest.raises((ValueError, TypeError), match=sentence):
        run((X, params.pop("y", y)), **params)


def test_a_missing_extra_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"^plotting needs matplotlib: pip install aucforest\[plot\]$"):
        comparison().plot()
    with pytest.raises(ImportError, match=r"^to_frame needs pandas: pip install aucforest\[frame\]$"):
        comparison().to_frame()

"""The result of a comparison: its test against the definition, its table and its picture."""

import math
import sys
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest

from aucforest.inspection import CriteriaComparison
from tests.reference.nadeau_bengio import corrected_resampled_ttest

mpl.use("Agg")
CRITERIA = ("auc", "gini", "entropy")
METRICS = ("roc_auc", "fit_seconds")
N_TRAIN, N_TEST = 80, 20
# the greatest value of a metric with two classes, and with more
GREATEST = {
    "roc_auc": (1.0, 1.0),
    "average_precision": (1.0, 1.0),
    "g_mean": (1.0, 1.0),
    "brier": (1.0, 2.0),
    "log_loss": (np.inf, np.inf),
    "fit_seconds": (np.inf, np.inf),
}


def comparison(seed=0, n_folds=10, criteria=CRITERIA, metrics=METRICS, n_classes=2):
    """Return a comparison with drawn figures."""
    fields = [("fold", "i8"), ("criterion", "U7"), ("n_train", "i8"), ("n_test", "i8")]
    table = np.zeros((n_folds, len(criteria)), [*fields, *((metric, "f8") for metric in metrics)])
    random = np.random.default_rng(seed)
    table["fold"] = np.arange(n_folds)[:, None]
    table["criterion"] = criteria
    table["n_train"], table["n_test"] = N_TRAIN, N_TEST
    for metric in metrics:
        table[metric] = random.normal(0.8, 0.1, table.shape)
    return CriteriaComparison(criteria, metrics, table, n_classes)


@pytest.mark.parametrize("n_folds", [2, 5, 30])
@pytest.mark.parametrize("seed", range(3))
def test_summary_is_the_corrected_resampled_test(seed, n_folds):
    result = comparison(seed, n_folds)
    rows = {(row.metric, row.criterion): row for row in result.summary(level=0.9)}
    assert len(rows) == len(METRICS) * len(CRITERIA)
    for (metric, criterion), row in rows.items():
        values = result.folds[metric][:, CRITERIA.index(criterion)]
        differences = values - result.folds[metric][:, CRITERIA.index("gini")]
        assert row.mean == pytest.approx(values.mean())
        assert row.difference == pytest.approx(differences.mean())
        if criterion != "gini":
            _, pvalue = corrected_resampled_ttest(differences, N_TRAIN, N_TEST)
            assert row.pvalue == pytest.approx(pvalue, abs=1e-9)  # Simpson's rule is good to that
        # the ends of a 90 % interval of the difference are what the test rejects at 10 %, up to a difference of 1
        upper = 1.0 if metric == "roc_auc" else np.inf
        for end in (row.difference_low, row.difference_high):
            pvalue = corrected_resampled_ttest(differences - end, N_TRAIN, N_TEST)[1] if criterion != "gini" else 0.1
            assert pvalue == pytest.approx(0.1, abs=1e-6) if abs(end) < upper else pvalue > 0.1
        # and of the mean, when the variance goes with t (1 - t / upper) from the mean to the end t
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
        upper = of_classes[n_classes - 2]
        result.folds[metric][:, 0] = np.multiply(values, min(upper, 2.0))
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
    result.plot()


def test_gini_does_not_differ_from_itself():
    for row in comparison().summary():
        if row.criterion == "gini":
            assert (row.difference, row.difference_low, row.difference_high, row.pvalue) == (0, 0, 0, 1)


def test_p_values_are_printed_short():
    rows = [row for row in comparison().summary() if row.metric == "roc_auc"]
    assert [rows[1].pvalue_text, rows[0].pvalue_text] == ["", f"p = {rows[0].pvalue:.2g}"]
    assert rows[0]._replace(pvalue=0.00099).pvalue_text == "p < 0.001"


def test_a_difference_without_spread_cannot_be_tested():
    result = comparison()
    result.folds["roc_auc"] = result.folds["roc_auc"][:, :1] + [0.1, 0.0, 0.0]
    rows = [row for row in result.summary() if row.metric == "roc_auc"]
    np.testing.assert_array_equal([row.pvalue for row in rows], [np.nan, 1, 1])
    assert [row.pvalue_text for row in rows] == ["", "", "p = 1"]
    assert np.isnan([rows[0].difference_low, rows[0].difference_high]).all()


def test_a_level_next_to_one():
    levels = (0.99, 1 - 1e-12, 1 - 1e-16)
    rows = [comparison(metrics=("fit_seconds",)).summary(level)[0] for level in levels]
    for less, more in pairwise(rows):
        assert 0 <= more.low < less.low < less.high < more.high < np.inf
        assert more.difference_low < less.difference_low < less.difference_high < more.difference_high


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_is_a_share(level):
    with pytest.raises(ValueError, match=f"level must lie between 0 and 1, got {level}"):
        comparison().summary(level)


def test_the_frame_has_a_row_a_fit():
    result = comparison()
    frame = result.to_frame()
    assert frame.shape == (30, 6)
    assert frame["criterion"].tolist()[:4] == ["auc", "gini", "entropy", "auc"]
    np.testing.assert_array_equal(frame[frame["criterion"] == "entropy"]["roc_auc"], result.folds["roc_auc"][:, 2])


def test_the_text_names_every_figure():
    text = repr(comparison())
    for row in comparison().summary():
        assert f"{row.mean:.4f} [{row.low:.4f}, {row.high:.4f}]" in text
    assert text.count("p = ") + text.count("p < 0.001") == 4


def test_the_picture_shows_means_and_intervals():
    result = comparison()
    figure = result.plot()
    assert len([panel for panel in figure.axes if panel.axison]) == len(METRICS)
    panel = result.plot(metrics=["roc_auc"]).axes[0]
    lines = [tuple(line.get_xdata()) for line in panel.lines]
    rows = [row for row in result.summary() if row.metric == "roc_auc"]
    assert lines == [ends for row in rows for ends in ((row.low, row.high), (row.mean,))]
    assert [label.get_text() for label in panel.get_yticklabels()] == list(CRITERIA)


def test_an_unknown_metric_is_not_drawn():
    with pytest.raises(ValueError, match="metrics must be among roc_auc, fit_seconds, got 'f1'"):
        comparison().plot(metrics=["f1"])


@pytest.mark.parametrize(
    ("method", "module", "sentence"),
    [
        ("plot", "matplotlib.pyplot", r"^plotting needs matplotlib: pip install aucforest\[plot\]$"),
        ("to_frame", "pandas", r"^to_frame needs pandas: pip install aucforest\[frame\]$"),
    ],
)
def test_a_missing_extra_is_one_sentence(monkeypatch, method, module, sentence):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=sentence):
        getattr(comparison(), method)()

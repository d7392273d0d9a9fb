import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from aucforest.monitoring import CBPEResult, ChunkEstimate, ShiftReport

mpl.use("Agg")


@pytest.fixture
def result():
    rows = [
        ChunkEstimate(f"[{k}:{k}]", k, k, 10, name, 0.8 + 0.01 * k, 0.02, 0.7, 0.9, realized, low, np.nan, alert)
        for k, alert in enumerate((False, True, None))  # the last is undefined
        for name, realized, low in (("roc_auc", 0.81, 0.75), ("f1", np.nan, np.nan))
    ]
    return CBPEResult(rows, {f"[{k}:{k}]": ShiftReport(0.1 * k, 0.0) for k in range(3)})


def test_results_as_frame(result):
    frame = result.to_frame()
    assert list(frame.columns) == [*ChunkEstimate._fields, *ShiftReport._fields]
    assert frame["psi"].tolist() == [0.0, 0.0, 0.1, 0.1, 0.2, 0.2]
    assert frame["alert"].tolist() == 2 * [False] + 2 * [True] + 2 * [pd.NA]
    assert len(frame[frame["alert"]]) == 2
    assert frame["valid"].isna().all()
    expected = pd.DataFrame(result.records()).astype({"alert": "boolean", "valid": "boolean"})
    pd.testing.assert_frame_equal(frame, expected)
    assert expected[expected["metric"] == "roc_auc"]["estimate"].tolist() == pytest.approx([0.8, 0.81, 0.82])


def test_results_of_one_metric(result):
    assert [row.chunk for row in result.of("f1")] == ["[0:0]", "[1:1]", "[2:2]"]
    with pytest.raises(ValueError, match="metric must be among roc_auc, f1, but is 'recall'"):
        result.of("recall")
    assert repr(result) == "CBPEResult(3 chunks, metrics roc_auc, f1, 2 alerts)"


def test_plot_of_results(result):
    display = result.plot()
    assert [ax.get_ylabel() for ax in display.axes_] == ["roc_auc", "f1"]
    (legend,) = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == ["realized", "alert limits", "alert", "estimate"]
    display.figure_.draw_without_rendering()
    box = legend.get_window_extent()
    assert not any(box.overlaps(ax.get_window_extent()) for ax in display.axes_)  # it hides no estimate
    assert display.axes_[0].containers[0].lines[0].get_ydata().tolist() == pytest.approx([0.8, 0.81, 0.82])
    assert [text.get_text() for text in display.axes_[-1].get_xticklabels()] == ["[0:0]", "[1:1]", "[2:2]"]
    # The second metric has no realized values and no limits.
    assert len(display.axes_[1].lines) == len(display.axes_[0].lines) - 2
    assert [ax.get_ylabel() for ax in result.plot(metrics=["f1"]).axes_] == ["f1"]

from functools import cache

import numpy as np
import pytest

from aucforest.monitoring import CBPE, Chunks
from tests.monitoring.data import DATA, load

# Tolerances of the average precision, because that of the peer, nannyml, depends on the order of tied rows.
TIES = {"car_loan_all_metrics": 1e-3, "mc_cm": 5e-3}


@cache
def columns(family):
    """Return scores, labels, predictions and months of a data set."""
    with np.load(DATA / f"{family}.npz") as stored:
        labels = stored["y_true"], stored["y_pred"]
        if family == "mc":
            return np.column_stack([stored[f"score_{k}"] for k in range(3)]) / 100, *labels, None
        return stored["score"] / 100, *labels, np.datetime64("2018-01") + stored["month"]


def replay(name):
    recorded = load("cbpe_datasets")[name]
    y_score, y_true, y_pred, months = columns("mc" if name.startswith("mc") else "car_loan")
    cells = [metric for metric in recorded["metrics"] if metric.startswith(("true_", "false_"))]
    others = ["cost" if metric == "business_value" else metric for metric in recorded["metrics"] if metric not in cells]
    names = others + ["confusion_matrix"] * bool(cells)
    options = {"calibration": "isotonic", "bias_correction": False, "metrics": names}
    options["normalize"] = recorded["options"].get("normalize_confusion_matrix")
    if "business_value_matrix" in recorded["options"]:
        options["cost"] = -np.array(recorded["options"]["business_value_matrix"])
    if "labels" in recorded:
        labels = np.array(recorded["labels"])
        y_true, y_pred = labels[y_true], labels[y_pred]
        options |= {"labels": labels, "multi_class": "ovr", "calibration": recorded["calibration"]}
    n, chunker, parts, cbpe = recorded["n_reference"], recorded["chunker"], [], CBPE(**options)
    for part in (slice(0, n), slice(n, None)):
        rows = {"y_score": y_score[part], "y_true": y_true[part], "y_pred": y_pred[part]}
        if "chunk_period" in chunker:
            chunks = Chunks.by_period(months[part], chunker["chunk_period"])
        else:
            chunks = Chunks.by_size(chunker["chunk_size"])
        if not parts:
            cbpe.fit(**rows, chunks=chunks)
        parts.append(cbpe.estimate(**rows, chunks=chunks))
    return cbpe, parts


@pytest.mark.parametrize("name", [
    # Average precision simulates labels, which takes long.
    pytest.param(name, marks=[pytest.mark.slow] * (name in ("mc_cm", "car_loan_all_metrics")))
    for name in sorted(load("cbpe_datasets"))
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:the alert limits of .* are so wide:UserWarning")
@pytest.mark.filterwarnings("ignore:.*not defined:sklearn.exceptions.UndefinedMetricWarning")
def test_recorded_data_sets(name):
    recorded = load("cbpe_datasets")[name]
    cbpe, parts = replay(name)
    for metric, peer in recorded["metrics"].items():
        if metric == "business_value" and recorded["options"].get("normalize_business_value"):
            continue  # the peer's mean over predicted classes, not over rows
        limits, estimated, realized = (np.array(peer[key], float) for key in ("limits", "estimated", "realized"))
        if metric == "business_value":  # minus the cost
            metric, limits, estimated, realized = "cost", -limits[::-1], -estimated, -realized
        rows = [row for part in parts for row in part.of(metric)]
        assert [row.chunk for row in rows] == recorded["keys"]
        scale = max(1.0, np.nanmax(np.abs(estimated)))
        # The peer rounds cumulative sums to 5 decimals.
        tolerance = TIES[name] if metric == "average_precision" else 1e-6 * scale
        np.testing.assert_allclose([row.estimate for row in rows], estimated, atol=tolerance)
        np.testing.assert_allclose([row.realized for row in rows], realized, atol=1e-10 * scale)
        np.testing.assert_allclose(cbpe.limits_[metric], limits, atol=1e-9 * scale)
        # The peer has no alerts of shifts, and does not widen its limits for small chunks.
        invalid = [part.shifts[row.chunk].valid is False for part in parts for row in part.of(metric)]
        usual = np.array([row.n_rows for row in rows]) >= 0.9 * cbpe._usual_size
        same = np.array([row.alert is True for row in rows]) == np.array(peer["alert"], bool) | invalid
        assert same[usual].all()


def test_the_estimate_of_car_loan_is_as_good_as_the_peers():
    y_score, y_true, _, _ = columns("car_loan")
    cbpe = CBPE().fit(y_score=y_score[:50_000], y_true=y_true[:50_000], chunks=Chunks.by_size(5000))
    rows = cbpe.estimate(y_score[50_000:], y_true=y_true[50_000:]).estimates
    peer = load("cbpe_datasets")["car_loan"]["metrics"]["roc_auc"]
    peer_error = np.abs(np.subtract(peer["estimated"][10:], peer["realized"][10:])).mean()
    assert peer_error == pytest.approx(0.0021, abs=1e-4)
    assert np.mean([abs(row.estimate - row.realized) for row in rows]) <= peer_error

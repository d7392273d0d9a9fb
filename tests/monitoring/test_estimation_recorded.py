from functools import cache

import numpy as np
import pytest

from aucforest.monitoring import CBPE, Chunks
from tests.monitoring.data import DATA, load

BINARY, MULTICLASS = 1e-6, 2e-6
# The peer rounds cumulative sums to 5 decimals, which changes estimates of small chunks more.
TOLERANCE = {"titanic": 3e-6, "car_loan_num7": 2e-6}
# The average precision of the peer depends on the order of tied rows.
TIES = {"car_loan_all_metrics": 1e-3, "mc_cm": 5e-3}
# Alert limits do not use an incomplete chunk here, but they do in the peer.
INCOMPLETE = ("titanic", "car_loan_num7", "california_size500")
START = {"car_loan": "2018-01", "california": "2020-10"}


@cache
def columns(name):
    """Return scores, labels, predictions and months of a data set."""
    if name == "titanic":
        parts = [load("cbpe_datasets")[name][part] for part in ("reference", "analysis")]
        return (*(np.concatenate([part[key] for part in parts]) for key in ("s", "y", "yhat")), None)
    family = "car_loan" if name.startswith(("car_loan", "synthetic")) else name.split("_")[0]
    with np.load(DATA / f"{family}.npz") as stored:
        y_pred = stored["y_pred_sample" if name.startswith("synthetic") else "y_pred"]
        if family == "mc":
            return np.column_stack([stored[f"score_{k}"] for k in range(3)]) / 100, stored["y_true"], y_pred, None
        return stored["score"] / 100, stored["y_true"], y_pred, np.datetime64(START[family]) + stored["month"]


def replay(name):
    recorded = load("cbpe_datasets")[name]
    y_score, y_true, y_pred, months = columns(name)
    cells = [metric for metric in recorded["metrics"] if metric.startswith(("true_", "false_"))]
    others = ["cost" if metric == "business_value" else metric for metric in recorded["metrics"] if metric not in cells]
    options = {
        "calibration": "isotonic",
        "bias_correction": False,
        "metrics": others + ["confusion_matrix"] * bool(cells),
    }
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
        # a number of chunks of the peer is converted to a size
        chunks = Chunks.by_size(chunker.get("chunk_size") or len(y_true[part]) // chunker.get("chunk_number", 1))
        if "chunk_period" in chunker:
            chunks = Chunks.by_period(months[part], chunker["chunk_period"])
        if not parts:
            cbpe.fit(**rows, chunks=chunks)
        parts.append(cbpe.estimate(**rows, chunks=chunks))
    return cbpe, parts


@pytest.mark.parametrize(
    "name",
    [
        # average precisions, with simulated labels, take long
        pytest.param(name, marks=[pytest.mark.slow] * (name in ("mc_cm", "car_loan_all_metrics")))
        for name in sorted(load("cbpe_datasets"))
    ],
)
@pytest.mark.filterwarnings("ignore:the alert limits of .* are so wide:UserWarning")
@pytest.mark.filterwarnings("ignore:.*not defined:sklearn.exceptions.UndefinedMetricWarning")
def test_recorded_data_sets(name):
    recorded = load("cbpe_datasets")[name]
    cbpe, parts = replay(name)
    for metric, peer in recorded["metrics"].items():
        if metric == "business_value" and recorded["options"].get("normalize_business_value"):
            continue  # the peer's mean over predicted classes, not over rows
        limits, estimated, realized = (np.array(peer[key], float) for key in ("limits", "estimated", "realized"))
        if metric == "business_value":  # what is earned, ours is what it costs
            metric, limits, estimated, realized = "cost", -limits[::-1], -estimated, -realized
        rows = [row for part in parts for row in part.of(metric)]
        assert [row.chunk for row in rows] == recorded["keys"]
        scale = max(1.0, np.nanmax(np.abs(estimated)))
        tolerance = TOLERANCE.get(name, MULTICLASS if name.startswith("mc") else BINARY) * scale
        found = np.array([row.estimate for row in rows])
        defined = ~np.isnan(found)
        assert defined.all() or metric == "precision"  # nothing predicted
        tolerance = TIES[name] if metric == "average_precision" else tolerance
        np.testing.assert_allclose(found[defined], estimated[defined], atol=tolerance)
        known = ~np.isnan(realized)
        found = np.array([row.realized for row in rows])[known]
        np.testing.assert_allclose(found, realized[known], atol=1e-10 * scale)
        if name not in INCOMPLETE:
            np.testing.assert_allclose(cbpe.limits_[metric], limits, atol=1e-9 * scale)
            # the peer has no alerts of shifts, and its limits for small chunks are not farther
            invalid = [part.shifts[row.chunk].valid is False for part in parts for row in part.of(metric)]
            usual = np.array([row.n_rows for row in rows]) >= 0.9 * cbpe._usual_size
            same = np.array([row.alert is True for row in rows]) == np.array(peer["alert"], bool) | invalid
            assert same[usual & defined].all()


def test_the_estimate_of_car_loan_is_as_good_as_the_peers():
    y_score, y_true, _, _ = columns("car_loan")
    cbpe = CBPE().fit(y_score=y_score[:50_000], y_true=y_true[:50_000], chunks=Chunks.by_size(5000))
    rows = cbpe.estimate(y_score[50_000:], y_true=y_true[50_000:]).estimates
    peer = load("cbpe_datasets")["car_loan"]["metrics"]["roc_auc"]
    peer_error = np.abs(np.subtract(peer["estimated"][10:], peer["realized"][10:])).mean()
    assert peer_error == pytest.approx(0.0021, abs=1e-4)
    assert np.mean([abs(row.estimate - row.realized) for row in rows]) <= peer_error

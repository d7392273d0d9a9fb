"""Whole data sets, chunk by chunk, against the recorded peer: estimates, realized values, limits, alerts and keys."""

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
        recorded = load("cbpe_datasets")[name]
        both = [
            np.concatenate([recorded[part][key] for part in ("reference", "analysis")]) for key in ("s", "y", "yhat")
        ]
        return (*both, None)
    family = "car_loan" if name.startswith(("car_loan", "synthetic")) else name.split("_")[0]
    with np.load(DATA / f"{family}.npz") as stored:
        y_pred = stored["y_pred_sample" if name.startswith("synthetic") else "y_pred"]
        if family == "mc":
            return np.column_stack([stored[f"score_{k}"] for k in range(3)]) / 100, stored["y_true"], y_pred, None
        months = np.datetime64(START[family]) + stored["month"]
        return stored["score"] / 100, stored["y_true"], y_pred, months


def peer_chunks(chunker, months, n_rows):
    """Return the chunks of the peer; a number of chunks of the peer is converted to a size."""
    if "chunk_period" in chunker:
        return Chunks.by_period(months, chunker["chunk_period"])
    return Chunks.by_size(chunker.get("chunk_size") or n_rows // chunker["chunk_number"])


def replay(name):
    """Return the fitted CBPE and the results of both parts."""
    recorded = load("cbpe_datasets")[name]
    y_score, y_true, y_pred, months = columns(name)
    options = {"calibration": "isotonic", "bias_correction": False, "metrics": wanted(recorded["metrics"])}
    options["normalize"] = recorded["options"].get("normalize_confusion_matrix")
    if "business_value_matrix" in recorded["options"]:
        options["cost"] = -np.array(recorded["options"]["business_value_matrix"])
    if "labels" in recorded:
        labels = np.array(recorded["labels"])
        y_true, y_pred = labels[y_true], labels[y_pred]
        options |= {"labels": labels, "multi_class": "ovr", "calibration": recorded["calibration"]}
    n = recorded["n_reference"]
    parts = []
    cbpe = CBPE(**options)
    for part in (slice(0, n), slice(n, None)):
        chunks = peer_chunks(recorded["chunker"], None if months is None else months[part], len(y_true[part]))
        if not parts:
            cbpe.fit(y_score=y_score[part], y_true=y_true[part], y_pred=y_pred[part], chunks=chunks)
        parts.append(cbpe.estimate(y_score[part], y_pred=y_pred[part], y_true=y_true[part], chunks=chunks))
    return cbpe, parts


def wanted(metrics):
    """Return our names of the recorded metrics."""
    cells = [name for name in metrics if name.startswith(("true_", "false_"))]
    others = ["cost" if name == "business_value" else name for name in metrics if name not in cells]
    return others + ["confusion_matrix"] * bool(cells)


def numbers(values):
    """Return a recorded list with NaN for null."""
    return np.array([np.nan if value is None else value for value in values], dtype=float)


LONG = ("mc_cm", "car_loan_all_metrics")  # average precisions, with simulated labels


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in sorted(load("cbpe_datasets"))]
)
@pytest.mark.filterwarnings("ignore:the alert limits of .* are so wide:UserWarning")
@pytest.mark.filterwarnings("ignore:.*not defined:sklearn.exceptions.UndefinedMetricWarning")
def test_recorded_data_sets(name):
    recorded = load("cbpe_datasets")[name]
    cbpe, parts = replay(name)
    first = next(iter(recorded["metrics"]))
    assert [row.chunk for part in parts for row in part.of(first)] == recorded["keys"]
    for metric, peer in recorded["metrics"].items():
        if metric == "business_value" and recorded["options"].get("normalize_business_value"):
            continue  # the peer's mean over predicted classes, not over rows
        if metric == "business_value":  # what is earned, ours is what it costs
            metric, peer = "cost", peer | {key: (-numbers(peer[key])).tolist() for key in ("estimated", "realized")}
            peer["limits"] = [None if limit is None else -limit for limit in peer["limits"][::-1]]
        valid = [part.shifts[row.chunk].valid for part in parts for row in part.of(metric)]
        compare(
            name, metric, cbpe, [row for part in parts for row in part.of(metric)], peer, np.array(valid, dtype=object)
        )


def compare(name, metric, cbpe, rows, peer, valid):
    """Compare the chunks of one metric; the peer has no alerts of shifts, which are those that are not `valid`."""
    scale = max(1.0, np.nanmax(np.abs(numbers(peer["estimated"]))))
    tolerance = TOLERANCE.get(name, MULTICLASS if name.startswith("mc") else BINARY) * scale
    if metric == "average_precision":
        tolerance = TIES[name]
    estimated = np.array([row.estimate for row in rows])
    nothing_predicted = np.isnan(estimated)
    assert not nothing_predicted.any() or metric == "precision"
    np.testing.assert_allclose(
        estimated[~nothing_predicted], numbers(peer["estimated"])[~nothing_predicted], atol=tolerance
    )
    realized, expected = np.array([row.realized for row in rows]), numbers(peer["realized"])
    known = ~np.isnan(expected)
    np.testing.assert_allclose(realized[known], expected[known], atol=1e-10 * scale)
    if name not in INCOMPLETE:
        limits = [np.nan if limit is None else limit for limit in peer["limits"]]
        np.testing.assert_allclose(cbpe.limits_[metric], limits, atol=1e-9 * scale)
        alerts = np.array([row.alert is True for row in rows])
        same_limits = np.array([row.n_rows for row in rows]) >= 0.9 * cbpe._usual_size  # the peer's are never farther
        expected = np.array(peer["alert"], dtype=bool) | (valid == False)  # noqa: E712
        assert (alerts == expected)[same_limits & ~nothing_predicted].all()


def test_the_estimate_of_car_loan_is_as_good_as_the_peers():
    y_score, y_true, _, _ = columns("car_loan")
    chunks = Chunks.by_size(5000)
    result = CBPE().fit(y_score=y_score[:50_000], y_true=y_true[:50_000], chunks=chunks)
    rows = result.estimate(y_score[50_000:], y_true=y_true[50_000:]).estimates
    peer = load("cbpe_datasets")["car_loan"]["metrics"]["roc_auc"]
    peer_error = np.abs(numbers(peer["estimated"]) - numbers(peer["realized"]))[10:].mean()
    assert peer_error == pytest.approx(0.0021, abs=1e-4)
    assert np.mean([abs(row.estimate - row.realized) for row in rows]) <= peer_error

"""A program that uses all kernels, with data in many forms. It fails if a function is compiled.

tests/test_packaging.py runs it with the machine code of a wheel, which `aucforest warm-up` has compiled.
"""

import tempfile
import warnings

import numpy as np
import pandas as pd
from numba.core import event
from scipy import sparse

from aucforest import (
    AUCForestClassifier,
    AUCStackingClassifier,
    AUCTreeClassifier,
    LinearAUCClassifier,
    inspection,
    load,
    losses,
    metrics,
)

warnings.simplefilter("ignore")
rng, N = np.random.default_rng(0), 240
X = rng.normal(size=(N, 5))
X[:, 3] = X[:, 3].round()
score = X[:, 0] + rng.normal(size=N) / 2
y, y3, weight, groups = (score > 0.8).astype(int), np.digitize(score, [-0.5, 0.8]), rng.random(N), np.arange(N) // 3
narrow, gaps = X.astype(np.float32), np.where(rng.random(X.shape) < 0.1, np.nan, X)
frame = pd.DataFrame({"number": X[:, 0], "narrow": narrow[:, 1], "count": rng.integers(0, 9, N), "flag": X[:, 2] > 0})
frame["category"] = pd.Categorical(rng.choice(list("abcdefg"), N))
frame["text"] = rng.choice(["x", "y", "zz"], N)
frame["date"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, N), unit="D")
frame["gaps"] = gaps[:, 2]
some, few = (sparse.csr_array(np.where(np.abs(X) > least, X, 0.0)) for least in (1.0, 2.2))


def locked(array):
    array = array.copy()
    array.setflags(write=False)
    return array


FORMS = [
    *(X, narrow, gaps, X.round().astype(int), X > 0, X.tolist(), np.asfortranarray(X), np.asfortranarray(narrow)),
    *(np.repeat(X, 2, 0)[::2], locked(X), locked(narrow), frame, pd.DataFrame(X)),
    *(some, some.astype(np.float32), few, few.astype(np.float32)),
]
OPTIONS = [
    *({"max_bins": None}, {"criterion": "gini"}, {"sampling": "balanced"}, {"class_weight": "balanced"}),
    *({"splitter": "random"}, {"max_leaf_nodes": 8}, {"bootstrap": False, "calibration": None}, {"calibration": None}),
    *({"max_samples": 0.5}, {"shrinkage": 1.0}, {"shrinkage": 0.0}),
]
COSTS, SIGNS = [[0, 1], [5, 0]], [1, 0, 0, 0, -1]
OF_TWO_CLASSES = [{"threshold": "f1", "oob_score": True}, {"threshold": {"cost": COSTS}}, {"monotonic_cst": SIGNS}]


def forest(n_estimators=8, **params):
    return AUCForestClassifier(n_estimators, random_state=0, **params)


def fits():
    for labels in (y, y3):
        for data in FORMS:
            model = forest(max_depth=4).fit(data, labels)
            model.predict_proba(data), model.predict(data[:1])
        for params in OPTIONS + (OF_TWO_CLASSES if labels is y else []):
            forest(**params).fit(X, labels).predict(X)
        forest().fit(X, labels, sample_weight=weight).predict(X)
        forest().fit(X, labels, groups=groups).predict(X)
    forest().fit(X, np.where(y, "yes", "no"))
    AUCTreeClassifier(random_state=0).fit(frame, y).predict(frame)
    AUCTreeClassifier(random_state=0).fit(X, y3).apply(X)
    many = rng.normal(size=(200_100, 1)).round(1)
    forest(1, max_depth=1, calibration=None, shrinkage=0.0).fit(many, many[:, 0] > 2)
    forest(4, warm_start=True).fit(X, y).set_params(n_estimators=8).fit(X, y)


def forests(folder):
    for data in (X, narrow, gaps, frame, some, locked(X)):
        for labels in (y, y3):
            model = forest().fit(data, labels)
            inspection.explain(model, data[:2])
            inspection.oob_permutation_importance(model, data, labels, n_repeats=1)
            model.set_threshold({"cost": 1 - np.eye(len(model.classes_))}, data, labels)
            model.apply(data), model.decision_path(data[:2]), model.feature_importances_, model.encode(data)
            model.save(folder + "/f.aucforest")
            load(folder + "/f.aucforest").predict(data)
            model.to_sklearn()


def others(folder):
    from aucforest.distributed import fit_out_of_core
    from aucforest.monitoring import CBPE
    from aucforest.report import report

    model = forest(30, oob_score=True).fit(X, y)
    model.set_threshold("youden", X, y)
    model.to_onnx(folder + "/f.onnx")
    inspection.forest_summary(model), inspection.column_notes(frame)
    inspection.compare_criteria(X, y, cv=2, n_estimators=4, verbose=0)
    inspection.OOBCurveDisplay.from_estimator(model, X, y)
    inspection.ThresholdCurveDisplay.from_estimator(model, X, y)
    report(model, X, y)
    CBPE.from_forest(model, y, X, metrics=["roc_auc"]).estimate(model.predict_proba(X), X=X)
    frame.assign(y=y).to_csv(folder + "/t.csv", index=False)
    fit_out_of_core(forest(), folder + "/t.csv", "y").predict(frame)
    AUCStackingClassifier(forest()).fit(X, y).set_threshold("f1", X, y).predict(X)
    AUCStackingClassifier(forest()).fit(frame, y3).predict(frame)


def measures():
    proba = rng.dirichlet(np.ones(3), size=N)
    LinearAUCClassifier().fit(X, y).predict(X)
    for loss in ("exp", "logistic", "sigmoid", "squared_hinge"):
        losses.pairwise_loss(y, score, loss=loss, sample_weight=weight, group=groups)
    losses.boosting_objective()(y, score)
    losses.smooth_auc(y, score, eps=0.1)
    for scores in (score, score.astype(np.float32), locked(score), pd.Series(score)):
        for truth in (y, y > 0, locked(y), pd.Series(y)):
            for given in ({}, {"sample_weight": weight}):
                metrics.roc_auc_score(truth, scores, **given), metrics.roc_curve(truth, scores, **given)
                metrics.roc_auc_score(truth, scores, max_fpr=0.1, **given)
                metrics.average_precision_score(truth, scores, **given), metrics.gains_curve(truth, scores, **given)
                metrics.metrics_at_k(truth, scores, 10, **given), metrics.recall_at_fpr(truth, scores, 0.1, **given)
                metrics.optimal_threshold(truth, scores, **given), metrics.AUCSketch().update(truth, scores, **given)
                metrics.auc_confidence_interval(truth, scores, **given)
            metrics.compare_auc(truth, scores, scores), metrics.roc_confidence_band(truth, scores)
    for values in (proba, proba.astype(np.float32), locked(proba)):
        for given in ({}, {"sample_weight": weight}):
            metrics.hand_till_score(y3, values, **given)
            metrics.roc_auc_score(y3, values, multi_class="ovr", **given)


class Compiled(event.Listener):
    def on_start(self, event):
        raise AssertionError(event.data["dispatcher"].py_func.__qualname__, event.data["args"])

    def on_end(self, event):
        pass


if __name__ == "__main__":
    event.register("numba:compile", Compiled())
    with tempfile.TemporaryDirectory() as folder:
        fits()
        forests(folder)
        measures()
        others(folder)

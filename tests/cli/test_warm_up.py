"""What is compiled beforehand is what a first day needs; that of a wheel, too, which is tested with the wheel."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from aucforest.__main__ import main
from aucforest._machine_code import Shipped, status

module = import_module("aucforest.cli.warm_up")  # the package has the command of this name


@pytest.mark.parametrize(("arguments", "is_native"), [(["warm-up"], None), (["warm-up", "--native"], "1")])
def test_native_ignores_shipped_code(arguments, is_native, monkeypatch, capsys):
    seen = []
    monkeypatch.setenv("AUCFOREST_NATIVE", "")  # so that it is restored
    monkeypatch.delenv("AUCFOREST_NATIVE")
    monkeypatch.setattr(module, "cpu_count", lambda: 1)
    monkeypatch.setattr(module, "compile_kernels", lambda: seen.append(os.environ.get("AUCFOREST_NATIVE")))
    monkeypatch.setattr(sys, "argv", ["aucforest", *arguments])
    main()
    assert seen == [is_native]
    assert capsys.readouterr().out == f"{status()}\n"


def test_warm_up_says_why_nothing_can_be_compiled(monkeypatch):
    """tests/test_machine_code.py has the settings of numba with which this happens."""
    monkeypatch.setattr(sys, "argv", ["aucforest", "warm-up"])
    monkeypatch.setattr(module, "own_folder", lambda: None)
    monkeypatch.setattr(module, "shipped", Shipped)
    with pytest.raises(
        SystemExit, match=r"^there is no folder to keep machine code in: set NUMBA_CACHE_DIR to one that"
    ):
        main()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(SystemExit, match=r"^NUMBA_DISABLE_JIT is set, so nothing can be compiled: unset it$"):
        main()


def test_the_second_process_goes_backward_and_ends_with_the_first(monkeypatch):
    started = []

    class Process:
        def __init__(self, command, **_):
            started.append(command[-1])

        def __enter__(self):
            return self

        def __exit__(self, *_):
            started.append("waited for")

        def kill(self):
            started.append("killed")

    monkeypatch.setattr(module, "cpu_count", lambda: 2)
    monkeypatch.setattr(module.subprocess, "Popen", Process)
    monkeypatch.setattr(module, "compile_kernels", lambda: None)
    module.warm_up()
    backward = "from aucforest.cli.warm_up import compile_kernels; compile_kernels(-1)"
    assert started == [backward, "waited for"]
    monkeypatch.setattr(module, "compile_kernels", lambda: {}["interrupted"])
    with pytest.raises(KeyError):
        module.warm_up()
    assert started[2:] == [backward, "killed", "waited for"]


# without the packages of the command line
WARM_UP = """
import sys


class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("typer", "rich", "pandas", "pyarrow"):
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Absent())
sys.argv = ["aucforest", "warm-up"]
from aucforest.__main__ import main
if __name__ == "__main__":
    main()
"""

# All that needs kernels, in the forms in which data come, and what `others` add, which imports plots and reports.
FIRST_DAY = """
import sys, tempfile, warnings
import numpy as np
import pandas as pd
from numba.core import event
from scipy import sparse
from aucforest import AUCForestClassifier, AUCStackingClassifier, AUCTreeClassifier, LinearAUCClassifier, load
from aucforest import inspection, losses, metrics

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
N = 240
X = rng.normal(size=(N, 5))
X[:, 3] = X[:, 3].round()
score = X[:, 0] + rng.normal(size=N) / 2
y, y3, weight, groups = (score > 0.8).astype(int), np.digitize(score, [-0.5, 0.8]), rng.random(N), np.arange(N) // 3
narrow, gaps = X.astype(np.float32), np.where(rng.random(X.shape) < 0.1, np.nan, X)
frame = pd.DataFrame({
    "number": X[:, 0],
    "narrow": narrow[:, 1],
    "count": rng.integers(0, 9, N),
    "flag": rng.random(N) < 0.5,
    "category": pd.Categorical(rng.choice(list("abcdefg"), N)),
    "text": rng.choice(["x", "y", "zz"], N),
    "date": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, N), unit="D"),
    "gaps": gaps[:, 2],
})
some, few = (sparse.csr_array(np.where(np.abs(X) > least, X, 0.0)) for least in (1.0, 2.2))


def locked(array):
    array = array.copy()
    array.setflags(write=False)
    return array


FORMS = {
    "array": X, "float32": narrow, "gaps": gaps, "integers": X.round().astype(int), "flags": X > 0, "lists": X.tolist(),
    "by column": np.asfortranarray(X), "float32 by column": np.asfortranarray(narrow),
    "strides": np.repeat(X, 2, 0)[::2], "read-only": locked(X), "read-only float32": locked(narrow),
    "frame": frame, "frame of numbers": pd.DataFrame(X),
    "sparse": some, "sparse float32": some.astype(np.float32), "few": few, "few float32": few.astype(np.float32),
}
OPTIONS = {
    "weights": {}, "groups": {}, "all bins": {"max_bins": None}, "tuned": {"threshold": "f1", "oob_score": True},
    "gini": {"criterion": "gini"}, "balanced": {"sampling": "balanced"}, "class weights": {"class_weight": "balanced"},
    "random": {"splitter": "random"}, "leaves": {"max_leaf_nodes": 8},
    "no bootstrap": {"bootstrap": False, "calibration": None},
    "monotone": {"monotonic_cst": [1, 0, 0, 0, -1]}, "uncalibrated": {"calibration": None},
    "few rows": {"max_samples": 0.5},
    "shrunk": {"shrinkage": 1.0}, "not shrunk": {"shrinkage": 0.0}, "costs": {"threshold": {"cost": [[0, 1], [5, 0]]}},
}


def forest(n_estimators=8, **params):
    return AUCForestClassifier(n_estimators, random_state=0, **params)


def fits():
    for name, data in FORMS.items():
        for labels in (y, y3):
            model = forest(max_depth=4).fit(data, labels)
            rows = model.predict_proba(data), model.predict(data[:1])
            yield f"{name}, {len(model.classes_)} classes"
    for name, params in OPTIONS.items():
        given = {"weights": {"sample_weight": weight}, "groups": {"groups": groups}}.get(name, {})
        for labels in (y, y3):
            if labels is y or not ("threshold" in params or "monotonic_cst" in params):
                forest(**params).fit(X, labels, **given).predict(X)
                yield f"{name}, {len(set(labels))} classes"
    forest().fit(X, np.where(y, "yes", "no"))
    AUCTreeClassifier(random_state=0).fit(frame, y).predict(frame)
    AUCTreeClassifier(random_state=0).fit(X, y3).apply(X)
    yield "trees"
    many = rng.normal(size=(200_100, 1)).round(1)
    forest(1, max_depth=1, calibration=None, shrinkage=0.0).fit(many, many[:, 0] > 2)
    yield "many rows"
    forest(4, warm_start=True).fit(X, y).set_params(n_estimators=8).fit(X, y)
    yield "warm start"


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
            yield f"a forest of a {type(data).__name__}"


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
    yield "displays"
    report(model, X, y)
    yield "report"
    proba = model.predict_proba(X)
    CBPE.from_forest(model, y, X, metrics=["roc_auc"]).estimate(proba, X=X)
    yield "monitoring"
    frame.assign(y=y).to_csv(folder + "/t.csv", index=False)
    fit_out_of_core(forest(), folder + "/t.csv", "y").predict(frame)
    yield "out of core"
    AUCStackingClassifier(forest()).fit(X, y).set_threshold("f1", X, y).predict(X)
    AUCStackingClassifier(forest()).fit(frame, y3).predict(frame)
    yield "stacks"


def measures():
    proba = rng.dirichlet(np.ones(3), size=N)
    LinearAUCClassifier().fit(X, y).predict(X)
    for loss in ("exp", "logistic", "sigmoid", "squared_hinge"):
        losses.pairwise_loss(y, score, loss=loss, sample_weight=weight, group=groups)
    losses.boosting_objective()(y, score)
    losses.smooth_auc(y, score, eps=0.1)
    yield "losses"
    for scores in (score, score.astype(np.float32), locked(score), pd.Series(score)):
        for truth in (y, y > 0, locked(y), pd.Series(y)):
            for given in ({}, {"sample_weight": weight}):
                metrics.roc_auc_score(truth, scores, **given)
                metrics.roc_auc_score(truth, scores, max_fpr=0.1, **given)
                metrics.average_precision_score(truth, scores, **given), metrics.roc_curve(truth, scores, **given)
                metrics.metrics_at_k(truth, scores, 10, **given), metrics.gains_curve(truth, scores, **given)
                metrics.recall_at_fpr(truth, scores, 0.1, **given)
                metrics.optimal_threshold(truth, scores, **given)
                metrics.auc_confidence_interval(truth, scores, **given)
                metrics.AUCSketch().update(truth, scores, **given)
            metrics.compare_auc(truth, scores, scores)
            metrics.roc_confidence_band(truth, scores)
    for values in (proba, proba.astype(np.float32), locked(proba)):
        for given in ({}, {"sample_weight": weight}):
            metrics.hand_till_score(y3, values, **given)
            metrics.roc_auc_score(y3, values, multi_class="ovr", **given)
    yield "metrics"


def first_day():
    with tempfile.TemporaryDirectory() as folder:
        for steps in (fits(), forests(folder), measures(), others(folder)):
            for _ in steps:
                pass
"""

# tests/test_packaging.py runs it with the code of a wheel, which is what `warm_up` compiles.
BY_EVENT = """
class Compiled(event.Listener):
    def on_start(self, event):
        raise AssertionError(event.data["dispatcher"].py_func.__qualname__, event.data["args"])

    def on_end(self, event):
        pass


event.register("numba:compile", Compiled())
first_day()
"""


def run(folder: Path, program: str, **environment: str) -> None:
    file = folder / "program.py"
    file.write_text(program)
    finished = subprocess.run([sys.executable, file], capture_output=True, text=True, env={**os.environ, **environment})
    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.slow
def test_warming_up_needs_no_extra(tmp_path):
    run(tmp_path, WARM_UP)

"""Runs in NannyML's own environment and answers one JSON request a line; started by `_nannyml.py`."""

import json
import sys
import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from nannyml import __version__, datasets  # noqa: E402
from nannyml.calibration import NoopCalibrator  # noqa: E402
from nannyml.performance_estimation.confidence_based import CBPE  # noqa: E402
from nannyml.performance_estimation.confidence_based.metrics import estimate_roc_auc  # noqa: E402

SETS = {
    "car_loan": (datasets.load_synthetic_car_loan_dataset, "repaid", "y_pred_proba", "y_pred"),
    "employment_MA": (datasets.load_us_census_ma_employment_data, "employed", "predicted_probability", "prediction"),
    "mc": (
        datasets.load_synthetic_multiclass_classification_dataset,
        "y_true",
        {name: f"y_pred_proba_{name}" for name in ("prepaid_card", "highstreet_card", "upmarket_card")},
        "y_pred",
    ),
}


class Worker:
    """Keeps tables and fitted estimators between requests."""

    def load(self, path):
        """Read scores and labels: one column, or one a class."""
        with np.load(path) as stored:
            scores, y_true = stored["y_score"], stored["y_true"]
        if scores.ndim == 1:
            frame, columns = pd.DataFrame({"score": scores, "y_pred": (scores > 0.5).astype(int)}), "score"
        else:
            frame = pd.DataFrame(scores, columns=[f"p{k}" for k in range(scores.shape[1])])
            columns = dict(enumerate(frame.columns))
            frame["y_pred"] = scores.argmax(axis=1)
        frame["y_true"] = y_true
        self.frame, self.columns = frame, columns
        kind = "classification_binary" if scores.ndim == 1 else "classification_multiclass"
        self.options = {"problem_type": kind, "y_true": "y_true", "y_pred_proba": columns, "y_pred": "y_pred"}

    def kernel(self):
        """Estimate the AUC of all rows, scores taken as calibrated."""
        return estimate_roc_auc(self.frame["score"], self.frame["score"])

    def fit(self):
        """Fit as a user does, ten chunks."""
        self.cbpe = CBPE(metrics=["roc_auc"], chunk_number=10, **self.options).fit(self.frame)

    def replay(self, name, folder):
        """Estimate a data set of the wheel in chunks of 5000; write rows and results to a file."""
        load, y_true, scores, y_pred = SETS[name]
        reference, analysis, targets = load()
        if y_true not in analysis:
            analysis[y_true] = targets[y_true].to_numpy()
        kind = "classification_multiclass" if isinstance(scores, dict) else "classification_binary"
        cbpe = CBPE(
            metrics=["roc_auc"], problem_type=kind, y_true=y_true, y_pred_proba=scores, y_pred=y_pred, chunk_size=5000
        )
        cbpe.fit(reference)
        columns = [scores] if isinstance(scores, str) else list(scores.values())
        estimated = cbpe.estimate(analysis).filter(period="analysis").to_df()[("roc_auc", "value")]
        if kind == "classification_binary":
            fitted = [bool(cbpe.needs_calibration)]
        else:
            fitted = [not isinstance(cbpe._calibrators[name], NoopCalibrator) for name in scores]
        path = f"{folder}/{name}.npz"
        rows = {}
        for part, frame in (("reference", reference), ("analysis", analysis)):
            labels = frame[y_true].to_numpy()
            rows[f"{part}_y_score"] = frame[columns].to_numpy(float)
            # the wheel's labels are numbers or text; classes in the order of the columns of scores
            rows[f"{part}_y_true"] = (
                labels if len(columns) == 1 else np.searchsorted(sorted(scores), labels.astype(str))
            )
        rows["order"] = np.arange(2) if len(columns) == 1 else np.argsort(np.argsort(list(scores)))
        np.savez(path, estimated=estimated.to_numpy(float), fitted=fitted, **rows)
        return path


def main():
    """Answer requests until the input ends."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # the peer may print
    worker = Worker()
    print(json.dumps(__version__), file=answers, flush=True)
    for line in sys.stdin:
        method, arguments = json.loads(line)
        print(json.dumps(getattr(worker, method)(*arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main()

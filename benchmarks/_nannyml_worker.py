"""Runs in NannyML's own environment and answers one JSON request a line; started by `_nannyml.py`."""

import json
import sys
import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from nannyml import __version__  # noqa: E402
from nannyml.performance_estimation.confidence_based import CBPE  # noqa: E402
from nannyml.performance_estimation.confidence_based.metrics import estimate_roc_auc  # noqa: E402


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

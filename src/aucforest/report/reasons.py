"""The section on reasons: the features with the largest contributions to the highest scores."""

import numpy as np
from sklearn.utils import _safe_indexing

from aucforest.estimators._base import TreeBasedClassifier
from aucforest.inspection.explanation import Reason, explain
from aucforest.report.page import Section, Table, number, signed
from aucforest.report.rows import ScoredRows

_N_ROWS = 10
_N_REASONS = 3


def reasons_section(rows: ScoredRows, n_jobs: int | None) -> Section | None:
    """Return the section on the rows with the highest scores, or None if the model is not ours or has many classes."""
    if len(rows.classes) != 2 or not isinstance(rows.model, TreeBasedClassifier):
        return None
    highest = np.argsort(-rows.scores[:, 1], kind="stable")[:_N_ROWS]
    explanation = explain(rows.model, _safe_indexing(rows.X, highest), n_jobs=n_jobs)
    names = rows.X.index if hasattr(rows.X, "iloc") else range(len(rows.labels))
    body = [
        [str(names[row]), number(rows.scores[row, 1]), rows.classes[rows.labels[row]], _listed(reasons)]
        for row, reasons in zip(highest.tolist(), explanation.top(_N_REASONS))
    ]
    label, name = str(rows.model.classes_[1]), rows.classes[1]
    explained = explanation.target.replace(f"probability of {label}", f"probability of {name}", 1)
    columns = ["row", "score", "true class", "features that move the prediction most"]
    lead = (
        f"The {len(body)} rows with the highest scores. The number in brackets is the Shapley value of the feature: "
        f"what it adds to the {explained}. It describes the model, and does not say what would happen if the "
        "value were changed. Rows are named by their index, or counted from 0."
    )
    return Section(
        "reasons", "Reasons for the highest scores", lead, [], [Table("Rows and reasons", columns, body, "lrll")]
    )


def _listed(reasons: list[Reason]) -> str:
    """Return formatted reasons."""
    return "; ".join(f"{reason.condition_in(number)} ({signed(reason.contribution)})" for reason in reasons)

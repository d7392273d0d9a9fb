"""The section on the members of a stack: their weights, and what they add to its forest."""

import warnings
from dataclasses import replace

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.estimators.stacking import AUCStackingClassifier
from aucforest.metrics import compare_auc
from aucforest.metrics.intervals import normal_quantile
from aucforest.metrics.roc import class_roc_auc
from aucforest.report.metrics import row_losses
from aucforest.report.page import Section, Table, interval, number, signed
from aucforest.report.rows import ScoredRows, scores_of
from aucforest.report.sections import LEVEL

_MEMBERS = {
    "forest": "the forest",
    "residual": "a forest of the samples that the first forest predicts badly out of bag",
    "linear": "an additive model: a sum of effects of single columns",
}


def members_section(rows: ScoredRows) -> Section | None:
    """Return the section on a stack, or None for other models."""
    stack = rows.model
    if not isinstance(stack, AUCStackingClassifier):
        return None
    meanings = _MEMBERS | ({} if stack.linear == "auto" else {"linear": type(stack.linear).__name__})
    weights = [[name, number(weight), meanings[name]] for name, weight in zip(stack.members_, stack.coef_.tolist())]
    tables = [Table("The members of the stack and their weights", ["member", "weight", "what it is"], weights, "lrl")]
    if len(weights) > 1:
        alone = replace(rows, scores=scores_of(stack.members_["forest"], rows.X))
        columns = ["metric", "forest alone", "stack", "difference", "95 % interval"]
        body = [_auc(alone, rows), _log_loss(alone, rows)]
        tables.append(Table("The stack and its forest alone, on these rows", columns, body, "lrrrr"))
    lead = (
        "The score of a class is the sum of the scores of the members, with two classes of log odds, times their "
        "weights. A member of weight 0 did not help on the out-of-bag samples, and is not used."
    )
    points = [
        "A single prediction is not explained by values of the features: Shapley values are those of the probabilities "
        "of a forest, and do not add up to the scores of a stack."
    ]
    return Section("members", "What each member adds", lead, [], tables, points=points)


def _auc(alone: ScoredRows, rows: ScoredRows) -> list[str]:
    """Return the ROC AUCs and their difference, which has DeLong's interval for two classes."""
    before, after = (class_roc_auc(rows.labels, each.scores, rows.sample_weight) for each in (alone, rows))
    ends = np.nan, np.nan
    if len(rows.classes) == 2:
        pair = rows.scores[:, 1], alone.scores[:, 1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            ends = compare_auc(rows.labels == 1, *pair, level=LEVEL, sample_weight=rows.sample_weight).interval
    return ["ROC AUC", number(before), number(after), signed(after - before), interval(*ends, signed)]


def _log_loss(alone: ScoredRows, rows: ScoredRows) -> list[str]:
    """Return the log losses and their difference with the interval of a mean over rows."""
    before, after = (row_losses(each)["log loss"] for each in (alone, rows))
    means = [float(np.average(losses, weights=rows.weights)) for losses in (before, after, after - before)]
    deviations = rows.weights * (after - before - means[2])
    margin = normal_quantile(LEVEL) * float(np.sqrt(np.square(deviations).sum()) / rows.weights.sum())
    shown = interval(means[2] - margin, means[2] + margin, signed)
    return ["log loss", number(means[0]), number(means[1]), signed(means[2]), shown]

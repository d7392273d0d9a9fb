"""``aucforest evaluate``: how good a model is on labelled rows."""

import numpy as np
from sklearn.metrics import confusion_matrix

from aucforest.cli._inputs import read_for_model, read_model
from aucforest.cli._options import Data, Jobs, JsonOut, Model, Positive, Target, Weight
from aucforest.cli._outputs import (
    QUALITY,
    MetricValue,
    auc_with_interval,
    check_outputs,
    console,
    metrics_table,
    positive_class,
    rich_table,
    write_json,
)
from aucforest.inspection.scoring import METRICS, FittedFold
from aucforest.tables.predictions import labels_of


def evaluate(
    model: Model,
    data: Data,
    target: Target,
    positive: Positive = None,
    weight: Weight = None,
    json_out: JsonOut = None,
    jobs: Jobs = -1,
) -> None:
    """Evaluate a model on labelled rows that it was not fitted on.

    Of two classes the ROC AUC has an interval. G-mean and confusion matrix are those of the model's threshold.

    Example: aucforest evaluate model.aucforest test.csv --target label --json figures.json
    """
    check_outputs(json_out, inputs=[model, data])
    forest = read_model(model, jobs)
    rows = read_for_model(forest, data, target, positive, weight)
    fold = FittedFold(forest, float("nan"), rows.X, rows.y, rows.weight)
    metrics = [MetricValue(metric, METRICS[metric].measure(fold)) for metric in QUALITY]
    if len(forest.classes_) == 2:
        metrics[0] = auc_with_interval(fold.is_class[:, 1], fold.proba[:, 1], rows.weight)
    labels = labels_of(forest, rows.X, fold.proba)
    matrix = confusion_matrix(rows.y, labels, labels=forest.classes_, sample_weight=rows.weight)
    classes = list(map(str, forest.classes_.tolist()))
    to = console(json_out)
    to.print(metrics_table(rows.title, {model.name: metrics}))
    to.print(f"{positive_class(forest)}{len(rows.y):,} rows\n", markup=False, highlight=False)
    cells = [[name, *(f"{count:,}" for count in counts)] for name, counts in zip(classes, matrix.tolist())]
    headings = ["", *(f">{name}" for name in classes)]
    to.print(rich_table("confusion matrix, a row a true class", headings, cells, min_width=40))
    content = {
        "data": rows.title,
        "model": model.name,
        "n_samples": len(rows.y),
        "classes": classes,
        "figures": [metric._asdict() for metric in metrics],
        "threshold": np.asarray(getattr(forest, "threshold_", None)).tolist(),
        "confusion_matrix": matrix.tolist(),
    }
    write_json(json_out, content)

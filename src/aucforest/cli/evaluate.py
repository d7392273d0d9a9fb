"""``aucforest evaluate``: how good a model is on labelled rows."""

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from sklearn.metrics import confusion_matrix

from aucforest.cli._figures import QUALITY, Figure, as_table, auc_with_interval, positive_class
from aucforest.cli._inputs import read_model
from aucforest.cli._labelled import read_for_model
from aucforest.cli._options import Data, Jobs, JsonOut, Model, Positive, Target, Weight
from aucforest.cli._outputs import check_outputs, console, rich_table, write_json
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
    """Judge a model by labelled rows that it was not fitted on.

    Of two classes the ROC AUC has an interval. G-mean and confusion matrix are those of the model's threshold.

    Example: aucforest evaluate model.aucforest test.csv --target label --json figures.json
    """
    check_outputs(json_out, inputs=[model, data])
    forest = read_model(model, jobs)
    rows = read_for_model(forest, data, target, positive, weight)
    fold = FittedFold(forest, float("nan"), rows.X, rows.y, rows.weight)
    figures = [Figure(metric, METRICS[metric].measure(fold)) for metric in QUALITY]
    if len(forest.classes_) == 2:
        figures[0] = auc_with_interval(fold.is_class[:, 1], fold.proba[:, 1], rows.weight)
    labels = labels_of(forest, rows.X, fold.proba)
    matrix = confusion_matrix(rows.y, labels, labels=forest.classes_, sample_weight=rows.weight)
    classes = list(map(str, forest.classes_.tolist()))
    to = console(json_out)
    to.print(as_table(rows.title, {model.name: figures}))
    to.print(f"{positive_class(forest)}{len(rows.y):,} rows\n", markup=False, highlight=False)
    to.print(_confusion(classes, matrix))
    if json_out is not None:
        content = {
            "data": rows.title,
            "model": model.name,
            "n_samples": len(rows.y),
            "classes": classes,
            "figures": [figure._asdict() for figure in figures],
            "threshold": np.asarray(getattr(forest, "threshold_", None)).tolist(),
            "confusion_matrix": matrix.tolist(),
        }
        write_json(json_out, content)


def _confusion(classes: list[str], matrix: NDArray[np.float64]) -> Table:
    """Return the confusion matrix as a table, a row a true class."""
    rows = [[name, *(f"{count:,}" for count in counts)] for name, counts in zip(classes, matrix.tolist())]
    headings = ["", *(f">{name}" for name in classes)]
    return rich_table("confusion matrix, a row a true class", headings, rows, min_width=40)

"""``aucforest predict``: labels and probabilities of the rows of a table of any size."""

from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from numpy.typing import NDArray

from aucforest._progress import is_watched, progress_bar
from aucforest.cli._inputs import echo_notes, load_model, open_table
from aucforest.cli._options import Data, Jobs, Model, Prevalence, names_in, takes_read_options
from aucforest.cli._outputs import TABLES, check_outputs, check_suffix, table_writer
from aucforest.estimators.log_odds import explained_models
from aucforest.inspection import explain
from aucforest.inspection.models import input_names_of
from aucforest.metrics.intervals import require_level
from aucforest.metrics.validation import positive_last
from aucforest.tables.copies import STANDARD
from aucforest.tables.predictions import NOTHING_ADDED, AddedColumns, Predictions, labels_of
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions


@takes_read_options(for_model=True)
def predict(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(help="A .csv or .parquet file; - is CSV on standard output.")] = STANDARD,
    proba: Annotated[
        bool | None, typer.Option("--proba/--labels", help="Write only probabilities or only labels.")
    ] = None,
    keep: Annotated[str | None, typer.Option(help="Columns to copy to the output.", metavar="A,B")] = None,
    reasons: Annotated[
        int, typer.Option(min=0, metavar="K", help="Add columns with the K features that move each prediction most.")
    ] = 0,
    interval: Annotated[
        bool, typer.Option("--interval", help="Add columns with the confidence interval of each probability.")
    ] = False,
    level: Annotated[
        float | None, typer.Option(help="Confidence level of the intervals, 0.95 by default.", metavar="LEVEL")
    ] = None,
    prevalence: Prevalence = None,
    read_options: ReadOptions = DEFAULT_OPTIONS,
    jobs: Jobs = -1,
) -> None:
    """Predict the rows of a table of any size, batch by batch.

    The columns of the model are found by name, in any order; others are ignored. The output has the columns to keep,
    the label as "prediction", and the probability of each class, named "probability_" and the class.

    Reasons are columns "reason_1", "reason_2" and so on, each with a feature, its value and its contribution: what it
    adds to the log odds of the positive class (of more than two classes: of the predicted class).

    Intervals are columns such as "low_yes" and "high_yes" for the positive class (of more than two classes: for each
    class). They need a forest fitted with --sampling half-samples.

    Categories that the training data did not have, and text in columns of numbers, count as missing. Their number and
    some examples are printed on standard error.

    Example: aucforest predict model.aucforest new.csv --keep id --out predictions.csv
    """
    check_suffix("--out", None if out == STANDARD else out, TABLES)
    check_outputs(out, inputs=[model, data])
    if level is not None and not interval:
        raise typer.BadParameter("needs --interval", param_hint="--level")
    forest, kept = load_model(model, jobs, prevalence), names_in(keep)
    table = open_table(data, None, read_options)
    added = _reasons(forest, reasons)
    added = _interval(forest, 0.95 if level is None else level, added) if interval else added
    predictions, n_rows = Predictions(forest, table, kept, proba, added), 0
    bar = progress_bar(total=table.n_rows or None, desc="predicting", unit=" rows", leave=False, verbose=is_watched())
    with table_writer(out, predictions.schema) as write, bar as progress:
        for batch in predictions.batches():
            write(pa.table(batch))
            n_rows += batch.num_rows
            progress.update(batch.num_rows)
    echo_notes([*predictions.stray_notes, *predictions.unseen_notes])
    typer.echo(f"{n_rows:,} rows: {'standard output' if out == STANDARD else out}", err=True)


def _reasons(model: Any, k: int) -> AddedColumns:
    """Return additional columns with the k largest contributions to each prediction."""
    if k == 0:
        return NOTHING_ADDED
    explained_models(model)  # raises its errors before rows are read
    k = min(k, len(input_names_of(model)))
    classes, fields = model.classes_, [pa.field(f"reason_{index}", pa.string()) for index in range(1, k + 1)]

    def compute(X: Any, proba: NDArray[Any]) -> list[Any]:
        label = classes[positive_last(model)[-1]] if len(classes) == 2 else labels_of(model, X, proba)
        explanation = explain(model, X, n_jobs=getattr(model, "n_jobs", None)).of_class(label)
        return list(zip(*([*map(str, row), *[None] * (k - len(row))] for row in explanation.top(k))))

    return AddedColumns(fields, compute)


def _interval(model: Any, level: float, further: AddedColumns) -> AddedColumns:
    """Return additional columns with the confidence intervals of each row, followed by `further` columns."""
    if not hasattr(model, "dispersion_"):
        raise ValueError("--interval needs a forest that was fitted with --sampling half-samples: fit one")
    require_level(level)
    classes = model.classes_.tolist()
    labels = classes if len(classes) > 2 else [model.pos_label_]
    fields = [pa.field(f"{bound}_{label}", pa.float64()) for label in labels for bound in ("low", "high")]

    def compute(X: Any, proba: NDArray[Any]) -> list[Any]:
        bounds = model.predict_interval(X, level)
        return [*bounds.reshape(len(bounds), -1).T, *further.compute(X, proba)]

    return AddedColumns([*fields, *further.fields], compute)

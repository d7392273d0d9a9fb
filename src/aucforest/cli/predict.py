"""``aucforest predict``: labels and probabilities of the rows of a table of any size."""

from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from numpy.typing import NDArray

from aucforest._progress import is_watched, progress_bar
from aucforest.cli._inputs import open_table, read_model, say
from aucforest.cli._options import Data, Jobs, Model, Prevalence, names_in, takes_read_options
from aucforest.cli._outputs import TABLES, check_outputs, check_suffix, table_writer
from aucforest.estimators.stacking import AUCStackingClassifier
from aucforest.inspection import explain
from aucforest.metrics.validation import positive_last
from aucforest.tables.copies import STANDARD
from aucforest.tables.dates import n_added
from aucforest.tables.predictions import Notes, Predictions, labels_of
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions

_EXPLAINED = "explained_probability"


@takes_read_options(for_model=True)
def predict(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(help="A .csv or .parquet file; - is CSV on standard output.")] = STANDARD,
    proba: Annotated[bool | None, typer.Option("--proba/--labels", help="Write probabilities or labels only.")] = None,
    keep: Annotated[str | None, typer.Option(help="Columns to copy to the output.", metavar="A,B")] = None,
    reasons: Annotated[
        int, typer.Option(min=0, metavar="K", help="Add columns with the K features that move each prediction most.")
    ] = 0,
    prevalence: Prevalence = None,
    read_options: ReadOptions = DEFAULT_OPTIONS,
    jobs: Jobs = -1,
) -> None:
    """Predict the rows of a table of any size, batch by batch.

    The columns of the model are found by name, in any order; others are ignored. The output has the columns to keep,
    the label as "prediction", and of each class the probability as "probability_" and the class.

    Reasons are columns "reason_1", "reason_2" and so on, each with a feature, its value and its Shapley value: what it
    adds to the probability of the positive class or, of three and more classes, of the predicted one. They explain the
    mean of the trees, which is the column "explained_probability" where the model calibrates it.

    Categories that the training data did not have, and text in columns of numbers, count as missing; standard error has
    their number and some of them.

    Example: aucforest predict model.aucforest new.csv --keep id --out predictions.csv
    """
    check_suffix("--out", None if out == STANDARD else out, TABLES)
    check_outputs(out, inputs=[model, data])
    forest, kept = read_model(model, jobs, prevalence), names_in(keep)
    table = open_table(data, None, read_options)
    predictions, n_rows = Predictions(forest, table, kept, proba, _reasons(forest, reasons)), 0
    bar = progress_bar(desc="predicting", unit=" rows", leave=False, verbose=is_watched())
    with table_writer(out, predictions.schema) as write, bar as progress:
        for batch in predictions.batches():
            write(pa.table(batch))
            n_rows += batch.num_rows
            if done := table.done(n_rows):
                progress.total = round(n_rows / done)
            progress.update(batch.num_rows)
    say([*_scale_of_reasons(forest, reasons), *predictions.stray, *predictions.unseen])
    typer.echo(f"{n_rows:,} rows: {'standard output' if out == STANDARD else out}", err=True)


def _reasons(model: Any, k: int) -> Notes | None:
    """Return a function that computes the k reasons with the largest absolute values for each row."""
    k = min(k, model.n_features_in_ + n_added(getattr(model, "dates_", {})))
    if k == 0:
        return None
    if isinstance(model, AUCStackingClassifier):
        raise ValueError("--reasons is for forests and trees, but the model is a stack: leave it out, or fit a forest")
    classes, fields = model.classes_, [pa.field(f"reason_{place}", pa.string()) for place in range(1, k + 1)]
    if _is_calibrated(model):
        fields.insert(0, pa.field(_EXPLAINED, pa.float64()))

    def write(X: Any, proba: NDArray[Any]) -> list[Any]:
        label = classes[positive_last(model)[-1]] if len(classes) == 2 else labels_of(model, X, proba)
        explanation = explain(model, X, n_jobs=getattr(model, "n_jobs", None)).of_class(label)
        reasons = [[*map(str, row), *[None] * (k - len(row))] for row in explanation.top(k)]
        explained = [explanation.predictions] if explanation.is_before_calibration else []
        return [*explained, *zip(*reasons)]

    return Notes(fields, write)


def _is_calibrated(model: Any) -> bool:
    """Return whether the probabilities of a model are not the mean of its trees, which reasons explain."""
    return getattr(model, "calibration_", None) is not None


def _scale_of_reasons(model: Any, k: int) -> list[str]:
    """Return a sentence on what the reasons of a calibrated model add up to."""
    if k == 0 or not _is_calibrated(model):
        return []
    return [f"reasons explain probabilities before calibration, which are in the column {_EXPLAINED!r}"]

"""``aucforest predict``: labels and probabilities of the rows of a table of any size."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from aucforest._arrow.kinds import ModelColumns
from aucforest.cli._models import labels_of, read_model
from aucforest.cli._options import Data, Jobs, Model, names_in
from aucforest.cli._outputs import TABLES, check_outputs, check_suffix
from aucforest.cli._progress import progress
from aucforest.cli._reading import STANDARD, open_table
from aucforest.cli._writing import table_writer

LABEL = "prediction"


def predict(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(help="A .csv or .parquet file; - is CSV on standard output.")] = STANDARD,
    proba: Annotated[
        bool | None, typer.Option("--proba/--labels", help="Write probabilities only, or labels only.")
    ] = None,
    keep: Annotated[str | None, typer.Option(help="Columns to copy to the output.", metavar="A,B")] = None,
    jobs: Jobs = -1,
) -> None:
    """Predict the rows of a table of any size, batch by batch.

    The columns of the model are found by name, in any order; others are ignored. The output has the columns to keep,
    the label as "prediction", and of each class the probability as "probability_" and the class.

    Example: aucforest predict model.aucforest new.csv --keep id --out predictions.csv
    """
    check_suffix("--out", out, TABLES)
    check_outputs(out, inputs=[model, data])
    forest, kept = read_model(model, jobs), names_in(keep)
    with open_table(data) as table:
        columns = ModelColumns(forest, table, kept)
        schema = _schema(forest, table.schema(kept), proba)
        batches = table.batches(list(dict.fromkeys([*columns.names, *kept])))
        n_rows = 0
        with table_writer(out, schema) as write, progress("predicting") as show:
            for batch in batches:
                X = columns.features(columns.typed(batch, n_rows))
                found = _predictions(forest, X, proba)
                values = [found[name] if name in found else batch.column(name) for name in schema.names]
                write(pa.table([pa.array(v).cast(f.type) for v, f in zip(values, schema)], schema=schema))
                n_rows += batch.num_rows
                show(n_rows, table.done())
    typer.echo(f"{n_rows:,} rows: {'standard output' if out == STANDARD else out}", err=True)


def _schema(forest: Any, kept: Any, proba: bool | None) -> Any:
    """Return names and types of the output: what is kept and what is predicted."""
    fields = [pa.field(field.name, _plain(field.type)) for field in kept]
    if proba is not True:
        fields.append(pa.field(LABEL, pa.array(forest.classes_.tolist()).type))
    if proba is not False:
        fields += [pa.field(name, pa.float64()) for name in _probability_names(forest.classes_)]
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the output would have two columns {name!r}")
    return pa.schema(fields)


def _plain(type_: Any) -> Any:
    """Return the type of the values behind codes."""
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _probability_names(classes: Any) -> Sequence[str]:
    """Return what the columns of probabilities are called."""
    return [f"probability_{label}" for label in classes.tolist()]


def _predictions(forest: Any, X: Any, proba: bool | None) -> dict[str, Any]:
    """Return the columns that are predicted, by name."""
    probabilities = forest.predict_proba(X)
    columns = dict(zip(_probability_names(forest.classes_), probabilities.T)) if proba is not False else {}
    return columns if proba is True else columns | {LABEL: labels_of(forest, X, probabilities).tolist()}

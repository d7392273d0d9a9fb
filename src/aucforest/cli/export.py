"""``aucforest export``: a model as an ONNX or skops file, compared with the model on the rows of a table."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import typer
from numpy.typing import NDArray

from aucforest._files import file_beside
from aucforest._optional import import_optional
from aucforest.cli._inputs import open_once, read_model, say
from aucforest.cli._options import TABLE_HELP, Model, takes_csv_format
from aucforest.cli._outputs import check_outputs, check_suffix
from aucforest.tables.csv_format import DEFAULT_FORMAT, CsvFormat
from aucforest.tables.kinds import ModelColumns
from aucforest.tables.labels import check_has_rows

# Maximum difference of probabilities, which are float32 in ONNX.
_TOLERANCES = {"ONNX": 1e-6, "scikit-learn": 1e-9}

PredictProba = Callable[[NDArray[np.float32]], NDArray[Any]]


@takes_csv_format(for_model=True)
def export(
    model: Model,
    onnx: Annotated[Path | None, typer.Option(metavar="OUT", help="The .onnx file to write.")] = None,
    sklearn: Annotated[
        Path | None, typer.Option(metavar="OUT", help="The .skops file to write, with a scikit-learn forest.")
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(metavar="DATA", help=f"Rows on which the files and the model must agree. {TABLE_HELP}"),
    ] = None,
    csv_format: CsvFormat = DEFAULT_FORMAT,
) -> None:
    """Write a model as an ONNX file, or a forest as a scikit-learn forest in a skops file.

    The input of both is a float32 matrix: the features in the order of the model, codes in place of categories, and NaN
    for missing values. "aucforest inspect MODEL --json -" lists the features, and categories in the order of their
    codes. ONNX includes the threshold; the scikit-learn forest predicts the most probable class. With --check, a file
    is only written if it agrees with the model.

    Example: aucforest export model.aucforest --onnx model.onnx --check new.csv
    """
    if onnx is None and sklearn is None:
        raise typer.BadParameter("name a file to write", param_hint="--onnx or --sklearn")
    check_suffix("--onnx", onnx, (".onnx",))
    check_suffix("--sklearn", sklearn, (".skops",))
    check_outputs(onnx, sklearn, inputs=[model, check])
    forest = read_model(model)
    for option, out, method in (("--onnx", onnx, "to_onnx"), ("--sklearn", sklearn, "to_sklearn")):
        if out is not None and not hasattr(forest, method):
            hint = ": use --onnx" if onnx is None and hasattr(forest, "to_onnx") else ""
            raise ValueError(f"{option}: {type(forest).__name__} has no such export{hint}")
    outs = {kind: out for kind, out in (("ONNX", onnx), ("scikit-learn", sklearn)) if out is not None}
    with ExitStack() as stack:
        beside = {kind: stack.enter_context(file_beside(out)) for kind, out in outs.items()}
        if onnx is not None:
            forest.to_onnx(beside["ONNX"])
        if sklearn is not None:
            skops = import_optional("skops.io", purpose="--sklearn", extra="skops")
            skops.dump(forest.to_sklearn(), beside["scikit-learn"])
        if check is not None:
            readers = {"ONNX": _read_onnx, "scikit-learn": _read_skops}
            _compare(forest, {kind: readers[kind](file) for kind, file in beside.items()}, check, csv_format)
    for kind, out in outs.items():
        typer.echo(f"{kind}: {out}", err=True)


def _read_onnx(file: Path) -> PredictProba:
    """Return a function that predicts probabilities with an ONNX file."""
    session = import_optional("onnxruntime", purpose="--check of ONNX", extra="onnx").InferenceSession(file)
    return lambda X: session.run(["probabilities"], {"X": X})[0]


def _read_skops(file: Path) -> PredictProba:
    """Return a function that predicts probabilities with a skops file, which was just written and so is trusted."""
    skops = import_optional("skops.io", purpose="--sklearn", extra="skops")
    model = skops.load(file, trusted=skops.get_untrusted_types(file=file))
    names = getattr(model, "feature_names_in_", None)
    return lambda X: model.predict_proba(X if names is None else pd.DataFrame(X, columns=names))


def _compare(forest: Any, exported: dict[str, PredictProba], data: Path, csv_format: CsvFormat) -> None:
    """Compare probabilities for values rounded to float32, which the files read; raise ValueError if they differ."""
    n_rows, rounding, largest = 0, 0.0, dict.fromkeys(exported, 0.0)
    with open_once(data, csv_format) as table:
        columns = ModelColumns(forest, table, csv_format=csv_format)
        for batch in table.batches(columns.names):
            typed = columns.typed(batch, n_rows)
            rounded = columns.features(pa.table([_rounded(column) for column in typed.columns], names=columns.names))
            proba, X = forest.predict_proba(rounded), np.asarray(forest.encode(rounded), dtype=np.float32)
            rounding = max(rounding, _largest(forest.predict_proba(columns.features(typed)) - proba))
            for kind, predict_proba in exported.items():
                largest[kind] = max(largest[kind], _largest(predict_proba(X) - proba))
            n_rows += batch.num_rows
        check_has_rows(table, n_rows)
        say([*columns.stray_notes(), *columns.unseen_notes()])
    typer.echo(f"compared on {n_rows:,} rows; rounding to float32 moves a probability by {rounding:.2g} at most")
    for kind, difference in largest.items():
        typer.echo(f"{kind}: largest difference of probabilities {difference:.2g}")
        if difference > _TOLERANCES[kind]:
            raise ValueError(
                f"the {kind} file differs from the model by {difference:.2g}, more than {_TOLERANCES[kind]:.0e}: no"
                " file is written; report this as a bug"
            )


def _largest(differences: NDArray[Any]) -> float:
    return float(np.abs(differences).max(initial=0.0))


def _rounded(column: Any) -> Any:
    """Return numbers, or dates in seconds, rounded to float32; other values are unchanged."""
    if pa.types.is_floating(column.type):
        return column.cast(pa.float32())
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if not pa.types.is_timestamp(column.type):
        return column
    micros = pc.cast(column.cast(pa.timestamp("us", column.type.tz)), pa.int64())
    seconds = pc.divide(micros.cast(pa.float64()), 1e6).cast(pa.float32()).cast(pa.int64(), safe=False)
    return seconds.cast(pa.timestamp("s", column.type.tz))

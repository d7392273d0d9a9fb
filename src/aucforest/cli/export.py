"""``aucforest export``: write a model as an ONNX or skops file, and check the file on the rows of a table."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from aucforest._files import file_beside
from aucforest._optional import import_optional
from aucforest.cli._inputs import echo_notes, load_model, open_table
from aucforest.cli._options import TABLE_HELP, Model, Prevalence, takes_read_options
from aucforest.cli._outputs import check_outputs, check_suffix
from aucforest.tables.labels import check_has_rows
from aucforest.tables.predictions import ModelColumns
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions
from aucforest.tables.sources import stray_notes

_TOLERANCES = {"ONNX": 1e-6, "scikit-learn": 1e-9}  # maximum difference of probabilities; those of ONNX are float32

PredictProba = Callable[[NDArray[np.float64]], NDArray[Any]]


@takes_read_options(for_model=True)
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
    prevalence: Prevalence = None,
    read_options: ReadOptions = DEFAULT_OPTIONS,
) -> None:
    """Write a model as an ONNX file, or a forest as a scikit-learn forest in a skops file.

    Both take a matrix with the features in the order of the model, categories as codes, and NaN for missing values.
    ONNX reads it as float64; scikit-learn rounds it to float32. "aucforest inspect MODEL --json -" lists the features,
    and categories in the order of their codes. Features of the kind "rate" are class frequencies of categories; in
    Python, model.encode computes them. ONNX includes the threshold; the scikit-learn forest predicts the most probable
    class. With --check, a file is only written if it agrees with the model.

    Example: aucforest export model.aucforest --onnx model.onnx --check new.csv
    """
    if onnx is None and sklearn is None:
        raise typer.BadParameter("name a file to write", param_hint="--onnx or --sklearn")
    check_suffix("--onnx", onnx, (".onnx",))
    check_suffix("--sklearn", sklearn, (".skops",))
    check_outputs(onnx, sklearn, inputs=[model, check])
    forest = load_model(model, prevalence=prevalence)
    for option, out, method in (("--onnx", onnx, "to_onnx"), ("--sklearn", sklearn, "to_sklearn")):
        if out is not None and not hasattr(forest, method):
            hint = ": use --onnx" if onnx is None and hasattr(forest, "to_onnx") else ""
            raise ValueError(f"{option}: {type(forest).__name__} has no such export{hint}")
    outs = {kind: out for kind, out in (("ONNX", onnx), ("scikit-learn", sklearn)) if out is not None}
    with ExitStack() as stack:
        temporary = {kind: stack.enter_context(file_beside(out)) for kind, out in outs.items()}
        if onnx is not None:
            forest.to_onnx(temporary["ONNX"])
        if sklearn is not None:
            skops = import_optional("skops.io", purpose="--sklearn", extra="skops")
            skops.dump(forest.to_sklearn(), temporary["scikit-learn"])
        if check is not None:
            readers = {"ONNX": _read_onnx, "scikit-learn": _read_skops}
            _compare(forest, {kind: readers[kind](file) for kind, file in temporary.items()}, check, read_options)
    for kind, out in outs.items():
        typer.echo(f"{kind}: {out}", err=True)


def _read_onnx(file: Path) -> PredictProba:
    session = import_optional("onnxruntime", purpose="--check of ONNX", extra="onnx").InferenceSession(file)
    return lambda X: session.run(["probabilities"], {"X": X})[0]


def _read_skops(file: Path) -> PredictProba:
    skops = import_optional("skops.io", purpose="--sklearn", extra="skops")
    # The command has just written the file, so its types are trusted.
    model = skops.load(file, trusted=skops.get_untrusted_types(file=file))
    names = getattr(model, "feature_names_in_", None)
    return lambda X: model.predict_proba(X if names is None else pd.DataFrame(X, columns=names))


def _compare(forest: Any, exported: dict[str, PredictProba], data: Path, read_options: ReadOptions) -> None:
    """Print the largest difference of probabilities on the rows of a table; raise ValueError if it is too large.

    scikit-learn rounds values to float32, so it is compared with the probabilities of the model for rounded values.
    """
    n_rounded, largest_by_rounding, largest = 0, 0.0, dict.fromkeys(exported, 0.0)
    table = open_table(data, None, read_options)
    columns = ModelColumns(forest, table)
    for typed, _ in columns.batches():
        features = columns.model_input(typed)
        proba, X = forest.predict_proba(features), np.asarray(forest.encode(features))
        for kind, predict_proba in exported.items():
            differences = _differences(predict_proba(X), proba)
            if kind == "scikit-learn":
                largest_by_rounding = max(largest_by_rounding, differences.max(initial=0.0))
                n_rounded += int(np.count_nonzero(differences > _TOLERANCES[kind]))
                rounded = X.astype(np.float32).astype(np.float64)
                differences = _differences(predict_proba(rounded), forest._predict_valid(rounded))
            largest[kind] = max(largest[kind], differences.max(initial=0.0))
    check_has_rows(table, columns.n_rows)
    echo_notes([*stray_notes(table, columns.names), *columns.unseen_notes()])
    typer.echo(f"compared on {columns.n_rows:,} rows")
    for kind, difference in largest.items():
        typer.echo(f"{kind}: largest difference of probabilities {difference:.2g}")
        if difference > _TOLERANCES[kind]:
            raise ValueError(
                f"the {kind} file differs from the model by {difference:.2g}, more than {_TOLERANCES[kind]:.0e}: no"
                " file is written; report this as a bug"
            )
    if n_rounded:
        rows = "1 row" if n_rounded == 1 else f"{n_rounded:,} rows"
        typer.echo(
            "scikit-learn: it rounds values to float32, so it was compared on rounded values; rounding changes the"
            f" probabilities of {rows} of {columns.n_rows:,}, by up to {largest_by_rounding:.2g}"
        )


def _differences(proba: NDArray[Any], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.abs(proba - expected).max(axis=1)

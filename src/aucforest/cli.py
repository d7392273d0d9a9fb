"""The command line: ``aucforest compare`` and ``aucforest estimate``."""

import json
import math
import warnings
from difflib import get_close_matches
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NoReturn

import numpy as np
import typer
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aucforest._files import write_whole
from aucforest._optional import import_optional
from aucforest.datasets import load_abalone
from aucforest.estimators._base import refuse_dates
from aucforest.inspection import ComparisonRow, CriteriaComparison, compare_criteria
from aucforest.inspection._scoring import METRICS
from aucforest.monitoring import CBPE, CBPEResult, ChunkEstimate, Chunks

PICTURES = (".png", ".svg", ".pdf")
SIGNIFICANT = 0.05

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)


class _Data(NamedTuple):
    """What is compared on: a title, the columns and the labels."""

    title: str
    X: Any
    y: NDArray[Any]


@app.callback()
def _commands() -> None:
    """Forests whose trees are grown for ranking."""


@app.command()
def compare(
    file: Annotated[
        Path | None, typer.Argument(help="A .csv or .parquet table; without it, old abalone (rings >= 18).")
    ] = None,
    target: Annotated[str | None, typer.Option(help="The column of class labels.", metavar="COLUMN")] = None,
    positive: Annotated[str | None, typer.Option(help="Compare this label with all others.", metavar="LABEL")] = None,
    criteria: Annotated[str, typer.Option(help="Split criteria; gini is always compared.")] = "auc,gini",
    trees: Annotated[int, typer.Option(min=1, help="Trees of a forest.")] = 100,
    folds: Annotated[int, typer.Option(min=2, help="Stratified folds.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="How often the folds are drawn.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Draws folds and forests.")] = 0,
    jobs: Annotated[int, typer.Option(help="Threads; -1 takes all cores.")] = -1,
    json_out: Annotated[Path | None, typer.Option("--json", help="Write all figures here.", metavar="OUT")] = None,
    plot_out: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw the comparison here (.png, .svg, .pdf).", metavar="OUT"),
    ] = None,
) -> None:
    """Compare split criteria on the same folds and seeds, with a significance test against Gini."""
    _check_outputs(json_out, plot_out, inputs=[file])
    try:
        data = _bundled(target, positive) if file is None else _table(file, target, positive)
        comparison = compare_criteria(
            data.X,
            data.y,
            criteria=_names(criteria),
            cv=folds,
            n_repeats=repeats,
            random_state=seed,
            n_jobs=jobs,
            n_estimators=trees,
        )
        _show(data, comparison)
        if json_out is not None:
            write_whole(json_out, _as_json(data, comparison))
            typer.echo(f"figures: {json_out}")
        if plot_out is not None:
            write_whole(plot_out, _as_picture(data, comparison, plot_out.suffix[1:]))
            typer.echo(f"picture: {plot_out}")
    except (ValueError, TypeError, OSError, ImportError) as error:
        _refuse(str(error))


@app.command()
def estimate(
    reference: Annotated[Path, typer.Argument(help="Labelled rows that the model was not trained on; .csv, .parquet.")],
    new: Annotated[Path, typer.Argument(help="Rows to estimate the performance on; labels are optional.")],
    score: Annotated[str, typer.Option(help="The column of scores; of more classes one a class.", metavar="A[,B,...]")],
    target: Annotated[str, typer.Option(help="The column of class labels.", metavar="COLUMN")],
    labels: Annotated[
        str | None, typer.Option(help="Classes in the order of the scores; of two, the last is positive.")
    ] = None,
    prediction: Annotated[str | None, typer.Option(help="The column of predicted labels.", metavar="COLUMN")] = None,
    features: Annotated[str | None, typer.Option(help="Columns that are watched for a shift.", metavar="A,B")] = None,
    metrics: Annotated[str, typer.Option(help="What to estimate, such as roc_auc,f1.")] = "roc_auc",
    size: Annotated[int | None, typer.Option(help="Rows of a chunk.")] = None,
    number: Annotated[int | None, typer.Option(help="Number of chunks; 10 if nothing else is said.")] = None,
    period: Annotated[str | None, typer.Option(help="Period of a chunk: h, D, W, M, Q or Y; needs --time.")] = None,
    time: Annotated[str | None, typer.Option(help="The column of timestamps.", metavar="COLUMN")] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows without score or reference label.")
    ] = False,
    json_out: Annotated[Path | None, typer.Option("--json", help="Write all figures here.", metavar="OUT")] = None,
    csv_out: Annotated[Path | None, typer.Option("--csv", help="Write the table here.", metavar="OUT")] = None,
    plot_out: Annotated[
        Path | None, typer.Option("--plot", help="Draw the estimates here (.png, .svg, .pdf).", metavar="OUT")
    ] = None,
) -> None:
    """Estimate the performance of a model on unlabelled rows, chunk by chunk, with intervals and alerts."""
    _check_outputs(json_out, csv_out, plot_out, inputs=[reference, new])
    if (period is None) != (time is None) or sum(cut is not None for cut in (size, number, period)) > 1:
        _refuse("chunks are cut by --size, by --number, or by --period together with --time")
    columns = {"score": _names(score), "target": [target], "prediction": [prediction] if prediction else []}
    columns |= {"features": _names(features) if features else [], "time": [time] if time else []}
    classes = None if labels is None else _names(labels)
    try:
        known = _scored(reference, columns, classes)
        asked = _scored(new, columns, classes, target)
        cuts = [_chunks(rows["time"], size, number, period) for rows in (known, asked)]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            on_nan: Literal["drop", "raise"] = "drop" if drop_missing else "raise"
            cbpe = CBPE(_names(metrics), level=level, labels=classes, on_nan=on_nan)
            cbpe.fit(known["score"], known["target"], known["prediction"], X=known["features"], chunks=cuts[0])
            result = cbpe.estimate(
                asked["score"], asked["prediction"], y_true=asked["target"], X=asked["features"], chunks=cuts[1]
            )
        for sentence in dict.fromkeys(str(warning.message) for warning in caught):
            typer.echo(f"Warning: {sentence}", err=True)
        _show_estimates(f"{new.name}, judged by {reference.name}", result)
        _write_estimates(result, json_out, csv_out, plot_out)
    except (ValueError, TypeError, OSError, ImportError) as error:
        _refuse(str(error))


def _names(listed: str) -> list[str]:
    """Return the names in a list with commas."""
    return [name.strip() for name in listed.split(",")]


def _check_outputs(*outs: Path | None, inputs: list[Path | None]) -> None:
    """Refuse outputs that overwrite a file of this call or have no folder, and a picture of no known kind."""
    taken = {file.resolve() for file in inputs if file is not None}
    for out in outs:
        if out is None:
            continue
        if not out.parent.is_dir():
            _refuse(f"the folder {out.parent} does not exist")
        if out.is_dir():
            _refuse(f"{out} is a folder, not a file to write")
        if out.resolve() in taken:
            _refuse(f"{out} would be overwritten: it is read, or another output")
        taken.add(out.resolve())
    picture = outs[-1]  # the last is always --plot
    if picture is not None and picture.suffix not in PICTURES:
        _refuse(f"--plot must end in {', '.join(PICTURES)}, got {picture.name}")


def _scored(file: Path, columns: dict[str, list[str]], classes: list[str] | None, optional: str = "") -> dict[str, Any]:
    """Read what each option names: a column, several as a matrix, None for nothing; `optional` may be missing or empty.

    Classes are texts; of whole numbers without ".0", which a column gets by a gap.
    """
    frame = _read(file)
    rows: dict[str, Any] = {}
    for option, names in columns.items():
        if names == [optional] and (optional not in frame.columns or frame[optional].isna().all()):
            names = []
        for name in names:
            if name not in frame.columns:
                raise ValueError(f"{file.name} has no column {name!r}{_nearest(name, frame.columns)}")
        several = option == "features" or len(names) > 1
        if not names:
            rows[option] = None
            continue
        values = frame[names] if several else frame[names[0]]
        if classes is not None and option in ("target", "prediction"):
            values = values.convert_dtypes().astype("string")
        if option == "time" and getattr(values.dtype, "tz", None) is not None:
            values = values.dt.tz_localize(None)  # the calendar of the column's own zone
        rows[option] = values.to_numpy()
    return rows


def _chunks(times: Any, size: int | None, number: int | None, period: Any) -> Chunks:
    """Return how the rows of a file are cut."""
    if period is not None:
        return Chunks.by_period(times, period)
    return Chunks.by_size(size) if size is not None else Chunks.by_number(10 if number is None else number)


def _show_estimates(title: str, result: CBPEResult) -> None:
    """Print a row a chunk and metric; alerts are red."""
    caption = (
        "No estimate without labels sees a change of what the scores mean; PSI above 0.2 is a big shift of scores."
    )
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD)
    for heading in ("chunk", "rows", "metric", "estimate", "interval", "realised", "limits", "PSI"):
        table.add_column(heading, justify="left" if heading in ("chunk", "metric") else "right")
    for row in result.estimates:
        table.add_row(*_estimate_cells(row, result.shifts[row.chunk].psi), style="red" if row.alert else None)
    Console().print(table)


def _estimate_cells(row: ChunkEstimate, psi: float) -> list[str]:
    """Return the cells of a row; what is not known is left empty."""

    def numbers(*values: float) -> str:
        return "" if all(map(math.isnan, values)) else " to ".join(f"{value:.4g}" for value in values)

    estimate = f"{numbers(row.estimate)}{' alert' if row.alert else ''}"
    return [
        escape(row.chunk),
        str(row.n_rows),
        row.metric,
        estimate,
        numbers(row.low, row.high),
        numbers(row.realised),
        numbers(row.lower_limit, row.upper_limit),
        numbers(psi),
    ]


def _write_estimates(result: CBPEResult, json_out: Path | None, csv_out: Path | None, plot_out: Path | None) -> None:
    """Write the files that are asked for."""
    if json_out is not None:
        rows = [
            {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in record.items()}
            for record in result.records()
        ]
        write_whole(json_out, json.dumps({"metrics": result.metrics, "estimates": rows}, indent=1).encode())
        typer.echo(f"figures: {json_out}")
    if csv_out is not None:
        write_whole(csv_out, result.to_frame().to_csv(index=False).encode())
        typer.echo(f"table: {csv_out}")
    if plot_out is not None:
        write_whole(plot_out, _picture_bytes(result.plot().figure_, plot_out.suffix[1:]))
        typer.echo(f"picture: {plot_out}")


def _refuse(sentence: str) -> NoReturn:
    """Say in one line what is wrong, and stop."""
    typer.echo(f"Error: {' '.join(sentence.split())}", err=True)
    raise typer.Exit(2)


def _bundled(*labels: str | None) -> _Data:
    """Return the abalone data with the usual rare class."""
    if any(labels):
        raise ValueError("--target and --positive need a FILE")
    X, rings = load_abalone(return_X_y=True)
    return _Data("abalone, rings >= 18", X, rings >= 18)


def _table(file: Path, target: str | None, positive: str | None) -> _Data:
    """Read a table and split it into matrix and labels."""
    if target is None:
        raise ValueError("--target must name the column of class labels")
    frame = _read(file)
    if target not in frame.columns:
        raise ValueError(f"{file.name} has no column {target!r}{_nearest(target, frame.columns)}")
    labels, features = frame[target], frame.drop(columns=target)
    if labels.isna().any():
        raise ValueError(f"column {target!r} has {labels.isna().sum()} missing labels")
    if features.empty:
        raise ValueError(f"{file.name} has no rows, or no column besides {target!r}")
    refuse_dates(features)
    title = f"{file.name}, {target}"
    if positive is not None:
        names = labels.astype(str)
        if positive not in set(names):
            raise ValueError(f"column {target!r} has no label {positive!r}{_nearest(positive, names.unique())}")
        title, labels = f"{title} = {positive}", names == positive
    if labels.nunique() == 1:
        raise ValueError(f"column {target!r} has one class only: {labels.iloc[0]}")
    return _Data(title, features, labels.to_numpy())


def _read(file: Path) -> Any:
    """Read a CSV or Parquet file as a DataFrame."""
    pandas = import_optional("pandas", purpose="reading tables", extra="cli")
    # Read in parts, a long column could get a type for each part.
    readers = {".csv": partial(pandas.read_csv, low_memory=False), ".parquet": pandas.read_parquet}
    if file.suffix not in readers:
        raise ValueError(f"FILE must end in {' or '.join(readers)}, got {file.name}")
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    try:
        return readers[file.suffix](file)
    except (ValueError, OSError) as error:  # the errors of both parsers are ValueErrors
        raise ValueError(f"cannot read {file}: {error}") from error


def _nearest(word: str, words: Any) -> str:
    """Return a hint at the words most like a misspelt one."""
    near = get_close_matches(word, [str(other) for other in words])
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def _show(data: _Data, comparison: CriteriaComparison) -> None:
    """Print the means as a table, a row a metric and a column a criterion."""
    caption = (
        f"Means of {len(comparison.folds)} folds with 95 % intervals; p: corrected resampled t-test against "
        f"gini, green where better and red where worse at {SIGNIFICANT}."
    )
    table = Table(title=data.title, caption=caption, box=box.SIMPLE_HEAD)
    table.add_column("")
    for criterion in comparison.criteria:
        table.add_column(criterion, justify="right")
    rows = comparison.summary()
    for metric in comparison.metrics:
        table.add_row(METRICS[metric].title, *(_cell(row) for row in rows if row.metric == metric))
    Console().print(table)


def _cell(row: ComparisonRow) -> str:
    """Return the mean with as many decimals as its interval warrants, and the p-value."""
    half_width = row.high - row.mean
    decimals = 4 if half_width == 0 else max(0, 1 - math.floor(math.log10(half_width)))
    text = f"{row.mean:.{decimals}f} ±{half_width:.{decimals}f}"
    text = f"{text}\n{row.pvalue_text}"
    if row.pvalue >= SIGNIFICANT:
        return text
    better = (row.difference > 0) == METRICS[row.metric].higher_is_better
    return f"[{'green' if better else 'red'}]{text}[/]"


def _as_json(data: _Data, comparison: CriteriaComparison) -> bytes:
    """Return data, summary and the figures of every fit as JSON."""
    classes, counts = np.unique(data.y, return_counts=True)
    content = {
        "data": data.title,
        "n_samples": len(data.y),
        "n_features": data.X.shape[1],
        "class_counts": dict(zip(map(str, classes.tolist()), counts.tolist())),
        "summary": [row._asdict() for row in comparison.summary()],
        "folds": [dict(zip(comparison.folds.dtype.names or (), fit)) for fit in comparison.folds.ravel().tolist()],
    }
    return json.dumps(content, indent=1).encode()


def _as_picture(data: _Data, comparison: CriteriaComparison, kind: str) -> bytes:
    """Return the plot of a comparison as a file of the kind, such as "png"."""
    figure = comparison.plot()
    figure.suptitle(data.title)
    return _picture_bytes(figure, kind)


def _picture_bytes(figure: Any, kind: str) -> bytes:
    """Return a figure as a file of the kind."""
    content = BytesIO()
    figure.savefig(content, format=kind, dpi=150)
    return content.getvalue()

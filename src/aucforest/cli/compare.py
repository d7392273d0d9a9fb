"""``aucforest compare``: split criteria side by side."""

import json
import math
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from aucforest._files import write_whole
from aucforest.cli._messages import nearest
from aucforest.cli._outputs import check_outputs, picture_bytes
from aucforest.cli._tables import names_in, read_table
from aucforest.datasets import load_abalone
from aucforest.estimators._base import refuse_dates
from aucforest.inspection import ComparisonRow, CriteriaComparison, compare_criteria
from aucforest.inspection._scoring import METRICS

SIGNIFICANT = 0.05


class _Data(NamedTuple):
    """What is compared on: a title, the columns and the labels."""

    title: str
    X: Any
    y: NDArray[Any]


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
    check_outputs(json_out, plot_out, inputs=[file])
    data = _bundled(target, positive) if file is None else _table(file, target, positive)
    comparison = compare_criteria(
        data.X,
        data.y,
        criteria=names_in(criteria),
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
    frame = read_table(file)
    if target not in frame.columns:
        raise ValueError(f"{file.name} has no column {target!r}{nearest(target, frame.columns)}")
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
            raise ValueError(f"column {target!r} has no label {positive!r}{nearest(positive, names.unique())}")
        title, labels = f"{title} = {positive}", names == positive
    if labels.nunique() == 1:
        raise ValueError(f"column {target!r} has one class only: {labels.iloc[0]}")
    return _Data(title, features, labels.to_numpy())


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
    return picture_bytes(figure, kind)

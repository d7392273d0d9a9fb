"""``aucforest compare``: split criteria side by side."""

import math
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from aucforest.cli._inputs import Labelled, check_folds, read_training
from aucforest.cli._options import TARGET_HELP, Jobs, JsonOut, PlotOut, Positive, Seed, names_in
from aucforest.cli._outputs import PICTURES, check_outputs, check_suffix, console, rich_table, write_json, write_picture
from aucforest.datasets import load_abalone
from aucforest.inspection import ComparisonRow, CriteriaComparison, compare_criteria
from aucforest.inspection.scoring import METRICS

SIGNIFICANT = 0.05


def compare(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="A .csv or .parquet table, - for CSV on standard input; without it, abalone of 18 rings.",
        ),
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help=TARGET_HELP)] = None,
    positive: Positive = None,
    criteria: Annotated[
        str, typer.Option(help="Split criteria, or auto for a mixed forest; gini is always compared.")
    ] = "auc,gini",
    trees: Annotated[int, typer.Option(min=1, help="Trees of a forest.")] = 100,
    folds: Annotated[int, typer.Option(min=2, help="Stratified folds.")] = 5,
    repeats: Annotated[int, typer.Option(min=1, help="How often the folds are drawn.")] = 3,
    seed: Seed = 0,
    jobs: Jobs = -1,
    json_out: JsonOut = None,
    plot_out: PlotOut = None,
) -> None:
    """Compare split criteria on the same folds and seeds, with a significance test against Gini.

    Example: aucforest compare train.csv --target label --criteria auc,gini,hellinger --plot comparison.png
    """
    check_suffix("--plot", plot_out, PICTURES)
    if file is None and (target or positive):
        raise typer.BadParameter("--target and --positive need a FILE")
    if file is not None and target is None:
        raise typer.BadParameter("must name the column of class labels", param_hint="--target")
    check_outputs(json_out, plot_out, inputs=[file])
    if file is not None and target is not None:
        data = read_training(file, target, positive)
    else:
        X, rings = load_abalone(return_X_y=True)
        data = Labelled("abalone, rings >= 18", X, (rings >= 18).astype(np.uint16), None, np.array([False, True]))
    check_folds(data, folds)
    comparison = compare_criteria(
        data.X,
        data.y,
        criteria=names_in(criteria),
        cv=folds,
        n_repeats=repeats,
        random_state=seed,
        n_jobs=jobs,
        n_estimators=trees,
        verbose=int(sys.stderr.isatty()),
    )
    console(json_out).print(_as_table(data, comparison))
    write_json(json_out, _as_json(data, comparison))
    if plot_out is not None:
        figure = comparison.plot()
        figure.suptitle(data.title)
        write_picture(plot_out, figure)


def _as_table(data: Labelled, comparison: CriteriaComparison) -> Table:
    """Return the means as a table, a row a metric and a column a criterion."""
    caption = (
        f"Means of {len(comparison.folds)} folds with 95 % intervals; p: corrected resampled t-test against "
        f"gini, green where better and red where worse at {SIGNIFICANT}."
    )
    summary = comparison.summary()
    rows = [
        [METRICS[metric].title, *(_cell(row) for row in summary if row.metric == metric)]
        for metric in comparison.metrics
    ]
    return rich_table(data.title, ["", *(f">{name}" for name in comparison.criteria)], rows, caption=caption)


def _cell(row: ComparisonRow) -> str:
    """Return the mean and its interval with as many decimals as that warrants, and the p-value."""
    text = f"{row.mean:.4f}"
    if not math.isnan(row.low):
        decimals = max(0, 1 - math.floor(math.log10((row.high - row.low) / 2)))
        text = f"{row.mean:.{decimals}f} ({row.low:.{decimals}f} to {row.high:.{decimals}f})"
    text += f"\n{row.pvalue_text}"
    if not row.pvalue < SIGNIFICANT:
        return text
    better = (row.difference > 0) == METRICS[row.metric].higher_is_better
    return f"[{'green' if better else 'red'}]{text}[/]"


def _as_json(data: Labelled, comparison: CriteriaComparison) -> dict[str, Any]:
    """Return data, summary and the metrics of every fit."""
    return {
        "data": data.title,
        "n_samples": len(data.y),
        "n_features": data.X.shape[1],
        "class_counts": dict(zip(map(str, data.classes.tolist()), np.bincount(data.y).tolist())),
        "summary": [row._asdict() for row in comparison.summary()],
        "folds": [dict(zip(comparison.folds.dtype.names or (), fit)) for fit in comparison.folds.ravel().tolist()],
    }
